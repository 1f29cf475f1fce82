"""Judging a version: whether it differs from the good one, when that is known, and why it does."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from pffbench.experiment.plan import Plan
from pffbench.experiment.schema import Experiment
from pffbench.phases import TOTALS
from pffbench.run.recorder import Recorder
from pffbench.run.spec import BlockSpec
from pffbench.summary.dependence import variance_inflation
from pffbench.summary.rank_test import ALPHA, Ratio, Times, ratio_of_times
from pffbench.summary.summary import CaseSummary

#: Counts that differ by more than this part, of all phases, have changed.
_COUNT_CHANGED = 0.01
#: Looks of a search, the first one, and the blocks from which on a dependence of blocks shows.
_LOOKS, _FIRST_LOOK, _SHOW_DEPENDENCE = 6, 8, 20
#: Part of a longer time that must be processor time for it to be named so.
_MOSTLY = 0.5
#: Counters of work and not of time, and the layer whose work each counts.
_LAYERS = {
    "write_calls": "system calls",
    "read_calls": "system calls",
    "written_bytes": "bytes of system calls",
    "read_bytes": "bytes of system calls",
}

#: Whether a version is shown to take more or less than the good one, or to differ from it by over
#: or by under half as much as the bad one.
Standing = Literal["more", "less", "equal", "like", "unlike", "undecided"]


class Question(msgspec.Struct, frozen=True):
    """The question about a version, which blocks of repetitions are run to answer.

    The ratio of its time to that of the good version is compared with a point, by the interval of
    the signed-rank test over blocks. Each look has an equal part of the error. Ranks are started
    anew in each block, so that blocks are taken for independent until there are enough of them to
    see otherwise.
    """

    #: The ratio that it is compared with: 1, or half-way to that of the bad version.
    point: float = 1.0
    #: Without another point, the smallest difference that is searched for.
    margin: float = 0.02

    def answer(
        self, new: Times, good: Times, most: int, *, ended: bool
    ) -> tuple[Standing, Ratio | None]:
        """Return what is shown by the blocks up to now, and the ratio at the look that shows it.

        Parameters
        ----------
        new, good : dict of int to float
            Seconds of both versions by block.
        most : int
            Most blocks.
        ended : bool
            Whether no further block follows.
        """
        blocks = sorted(new.keys() & good.keys())
        looks = looks_of(most)
        known: Ratio | None = None
        for n in [look for look in looks if look <= len(blocks)] + [len(blocks)] * ended:
            first = blocks[:n]
            one, other = ({block: way[block] for block in first} for way in (new, good))
            dependent = n >= _SHOW_DEPENDENCE
            inflation = variance_inflation([[one, other]], n, cautious=False) if dependent else 1.0
            known = ratio_of_times(one, other, ALPHA / len(looks), inflation, paired=True)
            if known is not None and (standing := self._standing(known)) != "undecided":
                return standing, known
        return "undecided", known

    def _standing(self, ratio: Ratio) -> Standing:
        if self.point == 1.0:
            if ratio.low > 1 or ratio.high < 1:
                return "more" if ratio.low > 1 else "less"
            return "equal" if ratio.is_equivalent(self.margin) else "undecided"
        above = ratio.low > self.point
        if not above and ratio.high >= self.point:
            return "undecided"
        return "like" if above == (self.point > 1) else "unlike"

    def answer_by_count(self, ratio: float) -> Standing:
        """Return what the ratio of two counts shows, which have no error."""
        if self.point == 1.0:
            if abs(ratio - 1) <= _COUNT_CHANGED:
                return "equal"
            return "more" if ratio > 1 else "less"
        mine, half = math.log(ratio), math.log(self.point)
        return "like" if mine * half > 0 and abs(mine) > abs(half) else "unlike"


def looks_of(most: int) -> list[int]:
    """Return the numbers of blocks after which a search looks, from the first that can show it."""
    if most <= _FIRST_LOOK:
        return [most]
    step = (most / _FIRST_LOOK) ** (1 / (_LOOKS - 1))
    return sorted({round(_FIRST_LOOK * step**place) for place in range(_LOOKS)})


def most_blocks(experiment: Experiment) -> int:
    """Return the most blocks that count."""
    return experiment.blocks - experiment.warmup


class UntilAnswered:
    """Schedule of a run that ends when a question is answered.

    Parameters
    ----------
    question : Question
        The question.
    total : str
        The time that it is about.
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

    def first(self) -> BlockSpec:
        """Return a block of both versions."""
        both = range(len(self._plan.cases))
        return BlockSpec(tuple(both), dict.fromkeys(both, 1))

    def after(self, block: int, passed: float, expected: Mapping[str, float]) -> BlockSpec:
        """Return the next block, or none."""
        experiment = self._plan.experiment
        budget = experiment.time_budget
        late = budget is not None and passed + sum(expected.values()) > budget
        failed = any("failure" in entry for entry in self._record.cases.values())
        times = self._record.seconds(block)
        of = {c.environment: times.get(c.id, {}).get(self._total, {}) for c in self._plan.cases}
        most = most_blocks(experiment)
        new, good = (of.get(name, {}) for name in self._names)
        standing, _ = self._question.answer(new, good, most, ended=False)
        if not late and not failed and standing == "undecided":
            return self.first()
        counted = block + 1 - experiment.warmup
        why = "the question of the search is answered" if not late else "the time budget ended"
        if counted < most and not failed:
            self._record.stop([case.id for case in self._plan.cases], counted, why)
        return BlockSpec((), {})


def count_of(case: CaseSummary, total: str, counter: str) -> float:
    """Return a count of a case, of all phases of a total together."""
    phases = TOTALS[total]
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
        Whether it is a time: the single block of a count does not tell how long work takes.
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
    before, after = good.phases[total], new.phases[total]
    if before.cpu_seconds is None or after.cpu_seconds is None:
        return "processor time was not recorded"
    longer = after.seconds.median - before.seconds.median
    of_a_rank = (after.cpu_seconds - before.cpu_seconds) / new.sample.ranks
    told = f"processor seconds of a rank {of_a_rank:+.3g}, of {longer:+.3g} in all"
    # Both are negative in a faster version.
    is_processor = bool(longer) and of_a_rank / longer >= _MOSTLY
    return f"it is {'processor time' if is_processor else 'mostly waiting'} ({told})"


def _changed_counts(good: CaseSummary, new: CaseSummary, total: str) -> Iterator[str]:
    for (phase, counter), count in new.counts.items():
        if phase not in TOTALS[total] or counter not in _LAYERS:
            continue
        before = good.counts.get((phase, counter), 0.0)
        if abs(count - before) > _COUNT_CHANGED * max(count_of(good, total, counter), 1.0):
            yield f"{_LAYERS[counter]} in {phase} ({counter}) {before:g} → {count:g}"
