"""The sides of a comparison: their runs, and the cases that both have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from pffbench.errors import UserError
from pffbench.grouping import grouped
from pffbench.record.run import MeasuredRun
from pffbench.record.run_json import CaseEntry, RunRecord
from pffbench.results.cells import keys_of
from pffbench.results.names import labels
from pffbench.text import counted, value_text
from pffbench_analysis.differences import ABSENT


class Side(msgspec.Struct, frozen=True):
    """The runs of one side: of one experiment, program and machine."""

    #: The side.
    which: Literal["old", "new"]
    #: One or more, each of which is a start of the program.
    runs: tuple[MeasuredRun, ...]

    @property
    def record(self) -> RunRecord:
        """The record of the first run, which stands for all in what does not vary."""
        return self.runs[0].record

    @property
    def name(self) -> str:
        """The first directory, and the number of the others."""
        first, *others = (str(run.directory) for run in self.runs)
        return f"{first} and {counted(len(others), 'more run')}" if others else first

    def excluded(self, case: str) -> str:
        """Return why a case takes no part in one of the runs; usually empty."""
        entries = (run.record.cases.get(case) for run in self.runs)
        return next((entry.excluded for entry in entries if entry and entry.excluded), "")


class Match(NamedTuple):
    """A case of both sides: its names, which differ across a parameter, and its label."""

    old: str
    new: str
    label: str


class Lone(NamedTuple):
    """A case of one side alone."""

    which: str
    case: str
    label: str
    reason: str


_Texts = Mapping[str, str]


def match(old: Side, new: Side, across: Sequence[str] = ()) -> tuple[list[Match], list[Lone]]:
    """Find the cases that two sides share: those with equal parameters and options.

    Parameters
    ----------
    old, new : Side
        The sides.
    across : sequence of str
        Parameters or options that may differ: the subject of the comparison.

    Raises
    ------
    UserError
        No case has a parameter or option that `across` names.
    """
    mine, others = ({n: _texts(e) for n, e in side.record.cases.items()} for side in (old, new))
    _check(across, (*mine.values(), *others.values()))
    here, there = (_by_work(cases, across) for cases in (mine, others))
    pairs = {
        names[0]: there[work][0]
        for work, names in here.items()
        if len(names) == len(there.get(work, [])) == 1
    }
    named = [labels({n: keys_of(e) for n, e in s.record.cases.items()}) for s in (old, new)]
    matched = [Match(name, other, named[0][name]) for name, other in pairs.items()]
    left = {name: texts for name, texts in mine.items() if name not in pairs}
    right = {name: texts for name, texts in others.items() if name not in pairs.values()}
    alone = [
        Lone(side.which, name, names[name], _why(name, texts, nearby, other, across))
        for side, names, own, nearby, other in (
            (old, named[0], left, right, new),
            (new, named[1], right, left, old),
        )
        for name, texts in own.items()
    ]
    return matched, alone


def _texts(entry: CaseEntry) -> _Texts:
    """Return parameters and options as they were asked for; options by their backend."""
    options = {f"{entry.backend}.{key}": value for key, value in entry.options.items()}
    every = {**entry.parameters, **options}
    return {key: value_text(value) for key, value in every.items() if value is not None}


def _check(across: Sequence[str], cases: Iterable[_Texts]) -> None:
    known = {key for texts in cases for key in texts}
    for key in across:
        if key not in known:
            raise UserError(
                f"--across {key}: no case has such a parameter or option; there are "
                f"{', '.join(sorted(known))}"
            )


def _by_work(cases: Mapping[str, _Texts], across: Sequence[str]) -> dict[object, list[str]]:
    return grouped(
        (frozenset((k, v) for k, v in texts.items() if k not in across), name)
        for name, texts in cases.items()
    )


def _why(
    name: str, texts: _Texts, nearby: Mapping[str, _Texts], other: Side, across: Sequence[str]
) -> str:
    """Return why a case has no counterpart: how the nearest one differs."""
    for one in other.record.left_out:
        if one.case == name:
            return f"left out in the other run: {one.reason}"
    same = ("backend", "workload")
    near = [t for t in nearby.values() if all(t.get(k) == texts.get(k) for k in same)]
    if not near:
        return "not in the other run"
    nearest = min(near, key=lambda t: len(_different(texts, t)))
    keys = [key for key in _different(texts, nearest) if key not in across]
    if not keys:
        return f"several cases fit when {', '.join(across)} may differ"
    told = (f"{key} {texts.get(key, ABSENT)}, there {nearest.get(key, ABSENT)}" for key in keys)
    return f"different settings: {'; '.join(told)}"


def _different(a: _Texts, b: _Texts) -> list[str]:
    return [key for key in dict.fromkeys((*a, *b)) if a.get(key) != b.get(key)]
