"""Cases of a run that may do what a study did, and the numbers that they are compared with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pffbench.results.cells import varying
from pffbench.results.names import value_name
from pffbench.results.phases import PhaseSummary
from pffbench.results.spread import Spread
from pffbench.results.summary import CaseSummary, Summary
from pffbench.units import Estimate
from pffbench_studies.published.values import PublishedValue


def cases_like(summary: Summary, **wanted: object) -> Iterator[CaseSummary]:
    """Yield the cases with these parameters; of a tuple each value is allowed."""
    for case in summary.cases:
        if all(
            case.parameters.get(key) in (value if isinstance(value, tuple) else (value,))
            for key, value in wanted.items()
        ):
            yield case


def in_words(c: CaseSummary, *keys: str) -> tuple[str, ...]:
    """Return the values of some keys of a case as the answer names them: ``one file per rank``."""
    return tuple(value_name(key, c.keys[key]) for key in keys)


def apart(case: CaseSummary, summary: Summary) -> str:
    """Return what sets a case apart from others of its format, settings and transfer, in words."""
    alike = [
        other.keys
        for other in summary.groups[case.entry.group]
        if _method_keys(other) == _method_keys(case)
    ]
    return " ".join(value_name(k, case.keys[k]) for k in varying(alike) if k in case.keys)


def _method_keys(case: CaseSummary) -> tuple[object, ...]:
    return tuple(case.parameters[key] for key in ("backend", "settings", "transfer"))


def but(key: str, case: CaseSummary) -> str:
    """Return parameters and options of a case, except for one of them, as text."""
    return repr([{**one, key: None} for one in (case.parameters, case.options)])


@dataclass(frozen=True)
class Match:
    """A published number and its counterpart: a case and phase of a run."""

    #: The number.
    published: PublishedValue
    #: The case.
    case: CaseSummary
    #: Its phase.
    phase: PhaseSummary
    #: Factor from the phase's seconds to the published unit.
    factor: float
    #: Data of the operation, such as ``2048 datasets of 128``.
    subject: str
    #: The study's word for the phase.
    operation: str
    #: Way of the run, such as ``one file per rank, library defaults``.
    variant: str
    #: Format or library that the study compares.
    alternative: str
    #: Whether the variant is the nearest one to the study.
    nearest: bool
    #: Measurement other than the phase's time, such as a compression ratio, in the published unit;
    #: it is in no order of times.
    measured: Spread | None = None
    #: The study's name of the alternative where it is not the run's; else empty.
    known_as: str = ""
    #: Whether the study has no such alternative: it is compared with the number of the nearest one,
    #: and is in no order.
    beyond: bool = False

    @property
    def published_as(self) -> str:
        """The study's name of the alternative."""
        return self.known_as or self.alternative

    @property
    def estimate(self) -> Estimate:
        """Median in the published unit with its 95 % interval, of which one value has none."""
        if self.measured is not None:
            return self.measured.estimate
        return self.phase.seconds.estimate.scaled(self.factor)

    @property
    def here(self) -> float:
        """Median in the published unit."""
        return self.estimate.value

    @property
    def ratio(self) -> float:
        """Median here over the published number."""
        return self.here / self.published.value

    @property
    def below_resolution(self) -> bool:
        """Whether the phase is too short to be distinguished from the harness."""
        return not self.measured and self.phase.warned("below_resolution")
