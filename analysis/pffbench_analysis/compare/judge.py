"""Comparison of two sides: obstacles, families of comparisons, and their decisions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from pffbench.summary.inference import MARGIN, ComparisonTable, decide
from pffbench.summary.labels import stored_as
from pffbench.summary.rank_test import FEWEST, Times
from pffbench.summary.starts import (
    OF_PHASES,
    OF_SHORT_PHASES,
    OF_TOTALS,
    SHORT,
    BetweenStarts,
)

from pffbench.grouping import grouped
from pffbench.phases import READ_PHASES, in_common
from pffbench.record.run import MeasuredRun
from pffbench.text import counted
from pffbench_analysis.compare.comparison import RAW, CaseName, Comparison, Pair, Side, typical
from pffbench_analysis.compare.matching import match, only_raw
from pffbench_analysis.runs import ABSENT, Difference, differences

#: Quantities that must be equal on both sides for equal work.
_SIZE = ("ranks", "nodes", "bytes", "arrays")


def compare_runs(
    base: Sequence[MeasuredRun],
    new: Sequence[MeasuredRun],
    across: Sequence[str] = (),
    margin: float = MARGIN,
) -> Comparison:
    """Compare runs.

    Parameters
    ----------
    base, new : sequence of MeasuredRun
        The runs of each side, each a start of the program of its own. With one run a side, what
        is known beforehand of the variation between starts decides.
    across : sequence of str
        Parameters or options in which cases may differ: the subject of the comparison.
    margin : float
        Relative difference under which two sides count as equal.

    Raises
    ------
    UserError
        `across` names a parameter or option that no case has.
    """
    one, other = Side("base", tuple(base)), Side("new", tuple(new), len(base))
    cases, only_base, only_new = match(one, other, across)
    pairs = _judged(_pairs(cases, one, other), margin)
    return Comparison(
        base=one,
        new=other,
        pairs=tuple(pairs),
        overall=tuple(_judged(_overall(pairs, one), margin)),
        only_base=tuple(only_base),
        only_new=tuple(only_new),
        differences=tuple(differences(base[0], new[0])),
        stored=tuple(_stored(cases, one, other)),
        only_raw=only_raw(one, other),
    )


def _pairs(cases: Sequence[CaseName], base: Side, new: Side) -> list[Pair]:
    """Return all cases and phases, still to be judged, or with the reason why they are not."""
    against = "; ".join([*_unfit(base), *_unfit(new)])
    found = []
    for case in cases:
        phases: dict[str, None] = {}
        for side, name in ((base, case.base), (new, case.new)):
            for run in side.runs:
                phases |= dict.fromkeys(run.seconds.get(name, {}))
        for phase in phases:
            pair = Pair(case, phase, base.times(case.base, phase), new.times(case.new, phase))
            if reason := against or _obstacle(pair, base, new):
                pair = replace(pair, reason=reason, missing=True)
            elif reason := _below_resolution(pair, base, new):
                pair = replace(pair, reason=reason)
            elif reason := _too_few(pair):
                pair = replace(pair, reason=reason, missing=True)
            found.append(pair)
    return found


def _unfit(side: Side) -> Iterator[str]:
    """Yield the reasons why a side cannot be compared."""
    for run in side.runs:
        record = run.record
        if record.status != "finished":
            yield f"the {side.which} run is not finished ({record.status})"
        elif record.valid is not True:
            yield f"the {side.which} run is not valid: {record.objection or 'see its run.json'}"


def _obstacle(pair: Pair, base: Side, new: Side) -> str:
    """Return why a case cannot be compared in a phase, whatever its times; empty if it can."""
    sides = [(base, pair.case.base), (new, pair.case.new)]
    if wrong := [side.which for side, name in sides if name in side.invalid]:
        return f"failed, or read wrong data, in the {' and the '.join(wrong)} run"
    if not pair.base or not pair.new:
        lacking = new if pair.base else base
        return f"the {lacking.which} run has no finished repetition with it"
    sizes = sorted({s for side, name in sides for s in side.sizes(name, pair.phase)})
    if len(sizes) > 1:
        one, other = (sorted(side.sizes(name, pair.phase)) for side, name in sides)
        there = zip(_SIZE, one[0], other[-1], strict=True)
        unequal = [f"{a} and {b} {key}" for key, a, b in there if a != b]
        return ", ".join(unequal) or "runs of one side differ in ranks, nodes, bytes or arrays"
    doubtful = [side.which for side, name in sides if name in side.unproved]
    if pair.phase in (*READ_PHASES, "read_total") and doubtful:
        return f"state of the page cache not proved in the {' and the '.join(doubtful)} run"
    return ""


def _below_resolution(pair: Pair, base: Side, new: Side) -> str:
    short = [
        side.which
        for side, times in ((base, pair.base), (new, pair.new))
        if min(times.values()) <= 0 or typical(times) < side.resolution
    ]
    return f"below resolution in the {' and the '.join(short)} run" if short else ""


def _too_few(pair: Pair) -> str:
    counts = len(pair.base), len(pair.new)
    if min(counts) >= FEWEST:
        return ""
    return f"too few repetitions: {counts[0]} and {counts[1]}, {FEWEST} of each are needed"


def _judged(pairs: Sequence[Pair], margin: float) -> list[Pair]:
    """Decide comparable pairs, family by family.

    Sums of phases of the formats are one family: the probability that any claim about them is
    false is at most 5 %. Single phases are another one, which shows the origin of a difference.
    Raw transfers in addition to formats, the control, are judged separately from both.
    """
    found = list(pairs)
    families = grouped(
        ((pair.is_total, pair.case.control), place)
        for place, pair in enumerate(pairs)
        if pair.comparable
    )
    for places in families.values():
        tables = [
            ComparisonTable(
                {"new": pairs[i].new, "base": pairs[i].base},
                (("new", "base"),),
                between=_between(pairs[i]),
            )
            for i in places
        ]
        decisions = decide(tables, (FEWEST,), margin=margin)
        for number, place in enumerate(places):
            found[place] = replace(found[place], decision=decisions[number, "new", "base"])
    return found


def _between(pair: Pair) -> BetweenStarts:
    """Return what is known of the variation of a phase between starts of the program."""
    if pair.is_total:
        return OF_TOTALS
    return OF_SHORT_PHASES if typical(pair.base) < SHORT else OF_PHASES


def _overall(judged: Sequence[Pair], base: Side) -> list[Pair]:
    """Return each backend, by the geometric mean of its cases, block by block.

    Rows of several cases are a separate family, and so are those of raw bytes next to formats.
    """
    groups = grouped(
        ((name, pair.phase), pair)
        for pair in judged
        if pair.comparable and pair.is_total and (name := _stands_for(pair.case, base))
    )
    found = []
    for (name, phase), pairs in groups.items():
        if name != RAW and len(pairs) == 1:
            continue  # its reason is already given
        label = f"{name}, {counted(len(pairs), 'case')}"
        stands = CaseName("", "", label, pairs[0].case.backend, control=name == RAW)
        row = Pair(stands, phase, _mean([p.base for p in pairs]), _mean([p.new for p in pairs]))
        if min(len(row.base), len(row.new)) >= FEWEST:  # else too few blocks in common
            found.append(row)
    return sorted(found, key=lambda pair: pair.case.control)


def _stands_for(case: CaseName, base: Side) -> str:
    """Name the row of a case: its backend, or raw bytes; empty where it has none.

    A backend without bytes, such as `null`, gives no information on the speed of storage.
    """
    if not case.control:
        return case.backend
    return RAW if base.record.cases[case.base].get("verified", True) else ""


def _mean(cases: Sequence[Times]) -> Times:
    """Return the geometric mean over cases for each block that all of them have."""
    return {b: math.exp(float(np.mean(np.log(some)))) for b, some in in_common(cases).items()}


def _stored(cases: Sequence[CaseName], base: Side, new: Side) -> Iterator[Difference]:
    """Yield the differences between two sides in how cases were stored or transferred."""
    for case in cases:
        one, other = base.record.cases[case.base], new.record.cases[case.new]
        for what, tell in (("stored as", stored_as), ("transfer", _transfer)):
            a, b = tell(one), tell(other)
            if a != b:
                yield Difference(f"{case.label}: {what}", a or ABSENT, b or ABSENT)


def _transfer(entry: Mapping[str, Any]) -> str:
    facts: Mapping[str, str] = entry.get("transfer_facts") or {}
    return ", ".join(f"{key} {value}" for key, value in sorted(facts.items()))
