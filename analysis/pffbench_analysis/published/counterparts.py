"""Published numbers, their counterparts in a run, and what a study needs to find these."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pffbench.summary.statistics import Spread
from pffbench.summary.summary import CaseSummary, PhaseSummary, Summary


@dataclass(frozen=True)
class PublishedValue:
    """A row of a study's table.

    Parameters
    ----------
    study, source, url : str
        Which study, where in it, and where that is found.
    reading : {"printed", "figure", "computed"}
        Whether the number is printed there, read off a curve, or computed from raw results.
    statistic : str
        What it is of several repetitions; empty where that is not told.
    quantity, unit : str
        What it measures; the unit of a ratio or a count is empty.
    value : float
        The number; NaN where only a range is given.
    low, high : float
        The range; NaN where none is given.
    sd : float
        Standard deviation over the repetitions; NaN where it is not told.
    alike : str
        What its authors say that makes it the same as others with the same words, such as
        ``comparable reads``; mostly empty.
    approximate : bool
        Whether it is rounded by its authors, told as about, or read off a figure.
    note : str
        What has to be known about it.
    parameters : dict of str to str
        The columns that are the study's own: format, operation, shape, codec and so on.
    """

    study: str
    source: str
    url: str
    reading: str
    statistic: str
    quantity: str
    unit: str
    value: float
    low: float
    high: float
    sd: float
    alike: str
    approximate: bool
    note: str
    parameters: Mapping[str, str]

    def differs_from(self, other: PublishedValue) -> bool:
        """Whether the study tells the two numbers apart.

        It does not where the standard deviations around them meet, or where its authors call
        them alike. A standard deviation that is not told counts as none.
        """
        if self.alike and self.alike == other.alike:
            return False
        reach = sum(0.0 if math.isnan(sd) else sd for sd in (self.sd, other.sd))
        return abs(self.value - other.value) > reach


@dataclass(frozen=True)
class Match:
    """A published number and the case and phase of a run that do the same.

    Parameters
    ----------
    published : PublishedValue
        The number.
    case : CaseSummary
        The case.
    phase : PhaseSummary
        Its phase.
    factor : float
        What makes the published unit of the phase's seconds.
    subject : str
        What was worked on, such as ``2048 datasets of 128``.
    operation : str
        The study's word for the phase.
    variant : str
        How the run did it, such as ``file_per_process, defaults``.
    alternative : str
        What the study compares: the format or library.
    nearest : bool
        Whether the variant is as near to what the study did as pffbench comes.
    measured : Spread, optional
        What was measured instead of the phase's time, such as a compression ratio, in the
        published unit; it takes part in no order of times.
    known_as : str
        The study's name of the alternative where it is not the run's; else empty.
    beyond : bool
        Whether the study has no such alternative: it stands beside the number of the nearest one,
        and takes part in no order.
    """

    published: PublishedValue
    case: CaseSummary
    phase: PhaseSummary
    factor: float
    subject: str
    operation: str
    variant: str
    alternative: str
    nearest: bool
    measured: Spread | None = None
    known_as: str = ""
    beyond: bool = False

    @property
    def published_as(self) -> str:
        """The study's name of the alternative."""
        return self.known_as or self.alternative

    @property
    def here(self) -> float:
        """Median in the published unit."""
        return self._found.median * self._scale

    @property
    def _found(self) -> Spread:
        return self.measured or self.phase.seconds

    @property
    def _scale(self) -> float:
        return 1.0 if self.measured else self.factor

    @property
    def interval(self) -> tuple[float, float]:
        """Bounds of the 95 % interval of the median, in the published unit; NaN for one value."""
        return self._scale * self._found.low, self._scale * self._found.high

    @property
    def ratio(self) -> float:
        """Median here over the published number."""
        return self.here / self.published.value

    @property
    def below_resolution(self) -> bool:
        """Whether the phase is too short to be told apart from the harness."""
        if self.measured:
            return False
        return any(caveat.code == "below_resolution" for caveat in self.phase.warnings)


@dataclass(frozen=True)
class Reason:
    """Something in which study and run differ, so that numbers may.

    Parameters
    ----------
    about : str
        What.
    there, here : str
        As the study had it, and as the run has it.
    bears_on : str
        Which numbers it changes, and in which direction where that is known.
    """

    about: str
    there: str
    here: str
    bears_on: str


@dataclass(frozen=True)
class Study:
    """A study whose numbers are kept.

    Parameters
    ----------
    name : str
        As in the key ``study`` of an experiment; its table is called the same.
    title, url : str
        What it is, and where.
    """

    name: str
    title: str
    url: str


class Matcher(Protocol):
    """What a study needs so that runs are put beside it; see `matchers`."""

    def matches(self, summary: Summary, values: Sequence[PublishedValue]) -> list[Match]:
        """Return the numbers of a study that a run has a counterpart of."""
        ...

    def reasons(self, summary: Summary) -> list[Reason]:
        """Return in what study and run differ."""
        ...

    def claims(self, values: Sequence[PublishedValue]) -> list[str]:
        """Return what the study's numbers say of its own text."""
        ...
