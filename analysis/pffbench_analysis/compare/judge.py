"""Verdicts on every case and phase of two runs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pffbench.summary.inference import holm
from pffbench.summary.labels import stored_as
from pffbench.summary.rank_test import ALPHA, FEWEST, Values
from pffbench_analysis.compare.comparison import (
    RAW,
    SMALLEST_EFFECT,
    CaseName,
    Comparison,
    Pair,
    Verdict,
)
from pffbench_analysis.compare.estimate import MeasuredPhase, dependence, estimate
from pffbench_analysis.compare.matching import match, only_raw
from pffbench_analysis.compare.measured import (
    Measured,
    measured,
    obstacle,
    too_few,
    unfit,
)
from pffbench_analysis.runs import ABSENT, Difference, Run, differences


def compare_runs(
    base: Run, new: Run, across: Sequence[str] = (), smallest: float = SMALLEST_EFFECT
) -> Comparison:
    """Compare two runs.

    Parameters
    ----------
    base, new : Run
        The runs.
    across : sequence of str
        Parameters or options in which cases may differ: the subject of the comparison.
    smallest : float
        The relative difference below which no verdict is given.

    Raises
    ------
    UserError
        `across` names a parameter or option that no case has.
    """
    cases, only_base, only_new = match(base, new, across)
    one, other = measured(base, "base"), measured(new, "new")
    pairs = _pairs(cases, one, other)
    judged = _judged_apart(pairs, one, other, smallest)
    return Comparison(
        base=base,
        new=new,
        pairs=tuple(judged),
        overall=_overall([p for p in judged if p.comparable], one, other, smallest),
        only_base=tuple(only_base),
        only_new=tuple(only_new),
        differences=tuple(differences(base, new)),
        stored=tuple(_stored(cases, base, new)),
        smallest=smallest,
        only_raw=only_raw(base, new),
    )


def _pairs(cases: Sequence[CaseName], base: Measured, new: Measured) -> list[Pair]:
    """Return all cases and phases; those without an obstacle are still to be judged."""
    against = "; ".join([*unfit(base), *unfit(new)])
    found = []
    for case in cases:
        phases = {**base.phases.get(case.base, {}), **new.phases.get(case.new, {})}
        for phase in phases:
            one, other = base.phase(case.base, phase), new.phase(case.new, phase)
            reason = against or obstacle(phase, (case.base, case.new), base, new)
            few = "" if reason else too_few(one, other)
            refused = Verdict.NOT_COMPARABLE
            found.append(
                Pair(case, phase, refused, reason or few, one, other, too_few=bool(few))
            )
    return found


def _judged_apart(
    pairs: Sequence[Pair], base: Measured, new: Measured, smallest: float
) -> list[Pair]:
    """Judge comparable pairs, family by family.

    Sums of phases of the formats are one family: the probability that any claim about them is
    false is at most 5 %. Single phases are another one, which shows the origin of a difference.
    Raw transfers in addition to formats, the control, are judged separately from both.
    """
    found = list(pairs)
    families: dict[tuple[bool, bool], list[int]] = defaultdict(list)
    for place, pair in enumerate(pairs):
        if not pair.reason:
            families[pair.is_total, pair.case.control].append(place)
    for places in families.values():
        judged = _judged([pairs[i] for i in places], smallest, base, new)
        for place, pair in zip(places, judged, strict=True):
            found[place] = pair
    return found


def _judged(
    pairs: Sequence[Pair], smallest: float, base: Measured, new: Measured
) -> list[Pair]:
    """Judge each pair, in view of their number."""
    tables = [base.tables, new.tables]
    inflations = {
        n: (dependence(tables, n), dependence(tables, n, cautious=False))
        for n in {min(pair.base.n, pair.new.n) for pair in pairs}
    }
    estimates = []
    for pair in pairs:
        now, later = inflations[min(pair.base.n, pair.new.n)]
        estimates.append(estimate(pair.base.seconds, pair.new.seconds, now, len(pairs), later))
    adjusted = holm([found.p for found in estimates])
    return [
        _verdict(replace(pair, estimate=e, adjusted_p=q), len(pairs), smallest)
        for pair, e, q in zip(pairs, estimates, adjusted, strict=True)
    ]


def _verdict(pair: Pair, number: int, smallest: float) -> Pair:
    """Return the verdict; a difference is claimed only without objections."""
    if pair.low <= 1 <= pair.high:
        return replace(pair, verdict=Verdict.SAME, reason="the interval holds 1")
    if pair.adjusted_p > ALPHA:
        reason = f"may be chance among {number} comparisons (p {pair.adjusted_p:.2f} for all)"
        return replace(pair, verdict=Verdict.SAME, reason=reason)
    if abs(math.log(pair.ratio)) < math.log1p(smallest):
        return replace(pair, verdict=Verdict.SAME, reason=f"less than {100 * smallest:g} %")
    verdict = Verdict.SLOWER if pair.ratio > 1 else Verdict.FASTER
    return replace(pair, verdict=verdict, reason="")


def _overall(
    judged: Sequence[Pair], base: Measured, new: Measured, smallest: float
) -> tuple[Pair, ...]:
    """Compare each backend by the geometric mean of its cases, block by block.

    Rows of several cases are a separate family, and so are those of raw bytes next to formats.
    """
    groups: dict[tuple[str, str], list[CaseName]] = defaultdict(list)
    for pair in judged:
        if pair.is_total and (name := _stands_for(pair.case, base.run)):
            groups[name, pair.phase].append(pair.case)
    families: dict[bool, list[Pair]] = defaultdict(list)
    for (name, phase), cases in groups.items():
        one = _mean([base.phases[case.base][phase] for case in cases])
        other = _mean([new.phases[case.new][phase] for case in cases])
        if name != RAW and len(cases) == 1:
            continue  # its reason is already given
        if min(one.n, other.n) < FEWEST:
            continue  # the cases have too few blocks in common
        label = f"{name}, {len(cases)} case{'' if len(cases) == 1 else 's'}"
        stands = CaseName("", "", label, cases[0].backend, control=name == RAW)
        families[name == RAW].append(Pair(stands, phase, Verdict.SAME, "", one, other))
    found = (_judged(pairs, smallest, base, new) for _, pairs in sorted(families.items()))
    return tuple(pair for pairs in found for pair in pairs)


def _stands_for(case: CaseName, run: Run) -> str:
    """Name the row of a case: its backend, or raw bytes; empty where it has none.

    A backend without bytes, such as `null`, gives no information on the speed of storage.
    """
    if not case.control:
        return case.backend
    return RAW if run.record.cases[case.base].get("verified", True) else ""


def _mean(phases: Sequence[MeasuredPhase]) -> MeasuredPhase:
    """Return the geometric mean over cases for each block that all of them have."""
    common = sorted(set.intersection(*(set(phase.repetitions) for phase in phases)))
    rows = [dict(zip(p.repetitions, p.seconds, strict=True)) for p in phases]
    seconds = np.array([[row[b] for b in common] for row in rows], dtype=np.float64)
    mean: Values = np.exp(np.mean(np.log(seconds), axis=0))
    return MeasuredPhase(mean, tuple(common), {})


def _stored(cases: Sequence[CaseName], base: Run, new: Run) -> Iterator[Difference]:
    """Yield the differences between two runs in how cases were stored or transferred."""
    for case in cases:
        one, other = base.record.cases[case.base], new.record.cases[case.new]
        for what, tell in (("stored as", stored_as), ("transfer", _transfer)):
            a, b = tell(one), tell(other)
            if a != b:
                yield Difference(f"{case.label}: {what}", a or ABSENT, b or ABSENT)


def _transfer(entry: Mapping[str, Any]) -> str:
    facts: Mapping[str, str] = entry.get("transfer_facts") or {}
    return ", ".join(f"{key} {value}" for key, value in sorted(facts.items()))
