"""Judging a version: whether it differs from the good one, when that is known, and why it does."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from pffbench.experiment.plan import Plan
from pffbench.experiment.schema import Experiment
from pffbench.phases import TOTALS
from pffbench.results.cells import make_cells
from pffbench.results.judge import FEWEST, Pair, Ratio, Seconds, Verdict, Word, decide
from pffbench.results.summary import CaseSummary
from pffbench.run.recorder import Recorder
from pffbench.run.spec import RoundSpec

#: Counts that differ by more than this part, of all phases, have changed.
_COUNT_CHANGED = 0.01
#: Part of a longer time that must be processor time for it to be named so.
_MOSTLY = 0.5
#: Counters of work and not of time, and the layer whose work each counts.
_LAYERS = {
    "write_calls": "system calls",
    "read_calls": "system calls",
    "written_bytes": "bytes of system calls",
    "read_bytes": "bytes of system calls",
}

#: What is shown of a version: the word of the judge against the good one, or which of the two
#: others it is like.
Standing = Word | Literal["like", "unlike"]


class Question(msgspec.Struct, frozen=True):
    """The question about a version, which rounds are run to answer.

    First the bad version is compared with the good one. The time of each version between them is
    compared with the one half-way between both.
    """

    #: Time or count of the bad version over the good one's; None in the first comparison.
    change: float | None = None

    @property
    def _half(self) -> float:
        return math.sqrt(self.change or 1.0)

    def answer(self, new: Seconds, good: Seconds, most: int) -> tuple[Standing, Verdict]:
        """Return what is shown by the rounds up to now, and the comparison with the good version.

        Parameters
        ----------
        new, good : dict of int to float
            Seconds of both versions by round, each of which is a start.
        most : int
            Most rounds. Each look at them has an equal part of the error.
        """
        alpha = 0.05 / len(looks_of(most))
        if self.change is None:
            verdict = decide({"": Pair([(new, good)])}, alpha=alpha)[""]
            return verdict.word, verdict
        half = Pair([(new, {number: self._half * seconds for number, seconds in good.items()})])
        found = decide({"": half}, alpha=alpha, smallest=0.0)[""]
        ratio = Ratio(*(self._half * value for value in found.ratio))
        verdict = Verdict(found.word, ratio, found.rounds)
        if found.word not in ("slower", "faster"):
            return "open", verdict
        return self._side(ratio.value), verdict

    def answer_by_count(self, ratio: float) -> Standing:
        """Return what the ratio of two counts shows, which have no error."""
        if self.change is not None:
            return self._side(ratio)
        if abs(ratio - 1) <= _COUNT_CHANGED:
            return "same"
        return "slower" if ratio > 1 else "faster"

    def _side(self, ratio: float) -> Standing:
        return "like" if (ratio > self._half) == (self._half > 1) else "unlike"


def looks_of(most: int) -> list[int]:
    """Return the numbers of rounds after which a search looks, from the first that can show it."""
    return sorted({most, *(min(FEWEST << place, most) for place in range(5))})


def most_rounds(experiment: Experiment) -> int:
    """Return the most rounds that count."""
    return experiment.rounds - experiment.warmup


class UntilAnswered:
    """Schedule of a run that ends when a version is shown to differ as asked.

    Versions that are the same run to the end: a difference of 5 % may show yet.

    Parameters
    ----------
    question : Question
        The question.
    total : str
        The time that it is about, such as ``write``.
    new, good : str
        Names of the environments of both versions.
    plan : Plan
        The case in both.
    record : Recorder
        The times up to now.
    """

    def __init__(
        self, question: Question, total: str, new: str, good: str, plan: Plan, record: Recorder
    ) -> None:
        self._question, self._total, self._names = question, total, (new, good)
        self._plan, self._record = plan, record

    def first(self) -> RoundSpec:
        """Return a round of both versions."""
        both = range(len(self._plan.cases))
        return RoundSpec(tuple(both), dict.fromkeys(both, 1))

    def after(self, number: int, passed: float, expected: Mapping[str, float]) -> RoundSpec:
        """Return the next round, or none."""
        experiment = self._plan.experiment
        budget, most = experiment.time_budget, most_rounds(experiment)
        counted = number + 1 - experiment.warmup
        late = budget is not None and passed + sum(expected.values()) > budget
        failed = any(entry.failure for entry in self._record.cases.values())
        if not late and not failed and not (counted in looks_of(most) and self._answered(number)):
            return self.first()
        if counted < most and not failed:
            why = "the time budget ended" if late else "the question of the search is answered"
            self._record.stop([case.id for case in self._plan.cases], counted, why)
        return RoundSpec((), {})

    def _answered(self, number: int) -> bool:
        seconds = self._record.timings.seconds(number)
        cells = make_cells(self._record.cases, seconds, lambda *_: 0, restarted=True)
        times = {c.keys["environment"]: c.seconds for c in cells if c.keys["total"] == self._total}
        new, good = (times.get(name, {}) for name in self._names)
        standing, _ = self._question.answer(new, good, most_rounds(self._plan.experiment))
        return standing not in ("same", "open")


def count_of(case: CaseSummary, total: str, counter: str) -> float:
    """Return a count of a case, of all phases of a total together."""
    phases = TOTALS[f"{total}_total"]
    return sum(n for (phase, name), n in case.counts.items() if name == counter and phase in phases)


def reason(good: CaseSummary, new: CaseSummary, total: str, *, timed: bool) -> str:
    """Return which counts changed, and of a time whether the processor time did.

    Parameters
    ----------
    good, new : CaseSummary
        The case with the good version, and with the first changed one.
    total : str
        The time that changed, or during which the count did.
    timed : bool
        Whether it is a time: the single round of a count does not tell how long work takes.
    """
    told = f"; {_processor_time(good, new, total)}" if timed else ""
    changed = list(_changed_counts(good, new, total))
    if changed:
        return f"changed counts: {'; '.join(changed)}{told}"
    if not any(counter in _LAYERS for _, counter in new.counts):
        return f"system calls and their bytes were not counted here, so no layer is named{told}"
    return f"no count of system calls or bytes changed{told}"


def _processor_time(good: CaseSummary, new: CaseSummary, total: str) -> str:
    """Return how much of the change of a time is of processor time."""
    before, after = (case.phases[f"{total}_total"] for case in (good, new))
    longer = after.seconds.median - before.seconds.median
    of_a_rank = (after.cpu_seconds - before.cpu_seconds) / new.ranks
    told = f"processor seconds of a rank {of_a_rank:+.3g}, of {longer:+.3g} in all"
    # Both are negative in a faster version.
    is_processor = bool(longer) and of_a_rank / longer >= _MOSTLY
    return f"it is {'processor time' if is_processor else 'mostly waiting'} ({told})"


def _changed_counts(good: CaseSummary, new: CaseSummary, total: str) -> Iterator[str]:
    for (phase, counter), count in new.counts.items():
        if phase not in TOTALS[f"{total}_total"] or counter not in _LAYERS:
            continue
        before = good.counts.get((phase, counter), 0.0)
        if abs(count - before) > _COUNT_CHANGED * max(count_of(good, total, counter), 1.0):
            yield f"{_LAYERS[counter]} in {phase} ({counter}) {before:g} → {count:g}"
