"""Published numbers, their counterparts in a run, and the protocol of studies that match them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pffbench.summary.statistics import Spread
from pffbench.summary.summary import CaseSummary, PhaseSummary, Summary
from pffbench_analysis.published.reasons import Reason


@dataclass(frozen=True)
class PublishedValue:
    """A row of a study's table.

    Parameters
    ----------
    study, source, url : str
        Name of the study, place of the number in it, and its address.
    reading : {"printed", "figure", "computed"}
        Whether the number is printed there, read off a curve, or computed from raw results.
    statistic : str
        Statistic over the repetitions; empty if not stated.
    quantity, unit : str
        Measured quantity; the unit of a ratio or a count is empty.
    value : float
        The number; NaN where only a range is given.
    low, high : float
        The range; NaN where none is given.
    sd : float
        Standard deviation over the repetitions; NaN if not stated.
    alike : str
        Words by which its authors equate it with other numbers, such as ``comparable reads``;
        mostly empty.
    approximate : bool
        Whether it is rounded by its authors, given as approximate, or read off a figure.
    note : str
        Remark on the number.
    parameters : dict of str to str
        Columns specific to the study: format, operation, shape, codec and so on.
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
        """Whether the study distinguishes the two numbers.

        It does not where their ranges of one standard deviation meet, or where its authors call
        them alike. A missing standard deviation counts as zero.
        """
        if self.alike and self.alike == other.alike:
            return False
        reach = sum(0.0 if math.isnan(sd) else sd for sd in (self.sd, other.sd))
        return abs(self.value - other.value) > reach


@dataclass(frozen=True)
class Match:
    """A published number and its counterpart: a case and phase of a run.

    Parameters
    ----------
    published : PublishedValue
        The number.
    case : CaseSummary
        The case.
    phase : PhaseSummary
        Its phase.
    factor : float
        Factor from the phase's seconds to the published unit.
    subject : str
        Data of the operation, such as ``2048 datasets of 128``.
    operation : str
        The study's word for the phase.
    variant : str
        Way of the run, such as ``file_per_process, defaults``.
    alternative : str
        Format or library that the study compares.
    nearest : bool
        Whether the variant is the nearest one to the study.
    measured : Spread, optional
        Measurement other than the phase's time, such as a compression ratio, in the published
        unit; it is in no order of times.
    known_as : str
        The study's name of the alternative where it is not the run's; else empty.
    beyond : bool
        Whether the study has no such alternative: it is compared with the number of the nearest
        one, and is in no order.
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
        """Whether the phase is too short to be distinguished from the harness."""
        if self.measured:
            return False
        return any(caveat.code == "below_resolution" for caveat in self.phase.warnings)


@dataclass(frozen=True)
class Study:
    """A study whose numbers are kept.

    Parameters
    ----------
    name : str
        Value of the key ``study`` of an experiment; its table has the same name.
    title, url : str
        Title and address.
    """

    name: str
    title: str
    url: str


class Matcher(Protocol):
    """Protocol of a study that runs can be compared with; see `matchers`."""

    def matches(self, summary: Summary, values: Sequence[PublishedValue]) -> list[Match]:
        """Return the numbers of a study that have a counterpart in a run."""
        ...

    def reasons(self, summary: Summary) -> list[Reason]:
        """Return the differences between study and run."""
        ...

    def claims(self, values: Sequence[PublishedValue]) -> list[str]:
        """Return statements of the study's text, checked against its numbers."""
        ...
