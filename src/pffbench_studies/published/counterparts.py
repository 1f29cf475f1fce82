"""Cases of a run that may do what a study did, and the numbers that they are compared with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pffbench.summary.statistics import Spread
from pffbench.summary.summary import CaseSummary, PhaseSummary, Summary
from pffbench_studies.published.values import PublishedValue


@dataclass(frozen=True)
class StudyCase:
    """A case of a run, with what it was asked for.

    Parameters
    ----------
    case : CaseSummary
        The case.
    p : mapping
        Its parameters, as in `run.json`.
    options : mapping
        Options of its backend.
    """

    case: CaseSummary
    p: Mapping[str, Any]
    options: Mapping[str, Any]

    @property
    def backend(self) -> str:
        """Name of the backend."""
        return self.case.sample.backend


def cases_like(summary: Summary, **wanted: object) -> Iterator[StudyCase]:
    """Yield the cases with these parameters; of a tuple each value is allowed."""
    for case in summary.cases:
        found = study_case(summary, case)
        if all(
            found.p.get(key) in (value if isinstance(value, tuple) else (value,))
            for key, value in wanted.items()
        ):
            yield found


def study_case(summary: Summary, case: CaseSummary) -> StudyCase:
    """Return a case with its parameters and options."""
    entry = summary.entry(case)
    return StudyCase(case, entry["parameters"], entry.get("options") or {})


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
        return self._in_unit("median")

    @property
    def interval(self) -> tuple[float, float]:
        """Bounds of the 95 % interval of the median, in the published unit; NaN for one value."""
        return self._in_unit("low"), self._in_unit("high")

    def _in_unit(self, statistic: str) -> float:
        if self.measured is not None:
            return float(getattr(self.measured, statistic))
        return self.factor * float(getattr(self.phase.seconds, statistic))

    @property
    def ratio(self) -> float:
        """Median here over the published number."""
        return self.here / self.published.value

    @property
    def below_resolution(self) -> bool:
        """Whether the phase is too short to be distinguished from the harness."""
        caveats = () if self.measured else self.phase.warnings
        return any(caveat.code == "below_resolution" for caveat in caveats)
