"""What a comparison says in sentences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from pffbench_analysis.compare.inference import FALSE_DISCOVERIES, half_width
from pffbench_analysis.compare.model import RAW, Comparison, Pair, Verdict

#: Sentences name this many of a kind.
_NAMED = 5
_TOTALS = {"write_total": "to write", "update_total": "to update", "read_total": "to read"}


def heading(found: Comparison) -> str:
    """Name the two runs."""
    return f"{found.new.directory} compared with {found.base.directory}"


def verdict_lines(found: Comparison) -> list[str]:
    """Say what is slower and faster, how sure that is, and what was not compared."""
    if not found.comparable:
        return [_nothing(found), *_lone(found)]
    counts = Counter(pair.verdict for pair in found.pairs)
    lines = [
        "cases × phases: "
        + ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
    ]
    for verdict in (Verdict.SLOWER, Verdict.FASTER):
        lines += _named(verdict, [p for p in found.pairs if p.verdict is verdict])
    lines += [_overall(pair) for pair in found.overall if not pair.case.raw]
    return [
        *lines, machine(found), _power(found), *_lone(found), *_unverified(found), _rule(found)
    ]  # fmt: skip


def _unverified(found: Comparison) -> Iterator[str]:
    for run in (found.base, found.new):
        if run.record.imported:
            yield f"measured by {run.record.imported}, verified by nobody: {run.directory}"


def _nothing(found: Comparison) -> str:
    reasons = Counter(pair.reason for pair in found.pairs)
    if not reasons:
        return "nothing is comparable: the runs have no case in common"
    return f"nothing is comparable: {reasons.most_common(1)[0][0]}"


def _named(verdict: Verdict, pairs: Sequence[Pair]) -> Iterator[str]:
    ordered = sorted(pairs, key=lambda p: (not p.is_total, -abs(math.log(p.ratio))))
    for pair in ordered[:_NAMED]:
        yield f"{verdict}: {told(pair)}"
    if len(ordered) > _NAMED:
        yield f"{verdict}: {len(ordered) - _NAMED} more"


def told(pair: Pair) -> str:
    """Say what became of a case in a phase."""
    return f"{pair.case.label}: {pair.phase} takes {ratio(pair)}"


def ratio(pair: Pair) -> str:
    """Say how many times as long something takes, with the interval."""
    return (
        f"{pair.ratio:#.3g} times as long (95 % interval {pair.low:#.3g}–{pair.high:#.3g}; "
        f"{seconds(pair.base_median)} → {seconds(pair.new_median)})"
    )


def seconds(value: float) -> str:
    """Write a time with a unit that suits it."""
    if math.isnan(value):
        return ""
    return f"{value:.3g} s" if value >= 1 else f"{value * 1e3:.3g} ms"


def percent(part: float) -> str:
    """Write a part of 1 as a percentage with two digits."""
    value = 100 * part
    return f"{value:.0f} %" if value >= 10 else f"{value:.2g} %"


def _overall(pair: Pair) -> str:
    head = f"{pair.case.label}, {_TOTALS[pair.phase]} everything"
    if not pair.told:
        interval = f"95 % interval {pair.low:#.3g}–{pair.high:#.3g}"
        return f"{head}: no difference shown ({', '.join(filter(None, (interval, pair.doubt)))})"
    return f"{head}: {pair.verdict}, {ratio(pair)}"


def machine(found: Comparison) -> str:
    """Say by how much the machine itself has changed, as raw bytes tell."""
    raw = [pair for pair in found.overall if pair.case.raw]
    if not raw:
        return f"the machine itself: not known, since no {RAW} (posix, mpiio) are comparable"
    parts = ", ".join(
        f"{p.ratio:#.3g} times as long {_TOTALS[p.phase]} ({p.low:#.3g}–{p.high:#.3g})" for p in raw
    )
    if any(pair.told for pair in raw):
        return f"the machine itself changed: {RAW} take {parts}"
    return f"no change of the machine itself is shown: {RAW} take {parts}"


def _power(found: Comparison) -> str:
    widths = sorted(half_width(p.low, p.high) for p in found.comparable)
    return (
        f"half of the intervals reach further than ±{percent(widths[len(widths) // 2])}: "
        "smaller differences can be there and not be seen"
    )


def _rule(found: Comparison) -> str:
    return (
        "a difference is told when its interval excludes 1, it is at least "
        f"{percent(found.smallest)}, and at most {percent(FALSE_DISCOVERIES)} of all that are told "
        "may be chance (false discovery rate); what changes from day to day is in no interval"
    )


def _lone(found: Comparison) -> Iterator[str]:
    for which, cases in (("base", found.only_base), ("new", found.only_new)):
        for lone in cases[:_NAMED]:
            yield f"not comparable: {lone.label}, only in the {which} run: {lone.reason}"
        if len(cases) > _NAMED:
            yield f"not comparable: {len(cases) - _NAMED} more cases only in the {which} run"


def reasons(found: Comparison) -> list[tuple[str, int]]:
    """Return why pairs were not compared, with how many there are."""
    return Counter(pair.reason for pair in found.pairs if not pair.comparable).most_common()


def gate(found: Sequence[Comparison], limit: float) -> tuple[int, list[str]]:
    """Decide whether the new runs pass.

    Parameters
    ----------
    found : sequence of Comparison
        One for each new run.
    limit : float
        The slowdown, as a part, that is still allowed.

    Returns
    -------
    status : {0, 1, 2}
        1: something is slower by more than the limit; 2: else, nothing of a run was comparable.
    lines : list of str
        Why.
    """
    part = percent(limit)
    lines, statuses = [], [0]
    for one in found:
        slower = one.slower_than(limit)
        if slower:
            statuses.append(1)
            named = "; ".join(told(pair) for pair in slower[:_NAMED])
            more = f"; and {len(slower) - _NAMED} more" if len(slower) > _NAMED else ""
            run = one.new.directory
            lines.append(f"FAILED: {run} is slower by more than {part}: {named}{more}")
        elif not one.comparable:
            statuses.append(2)
            lines.append(f"FAILED: {one.new.directory}: {_nothing(one)}")
        else:
            compared = len({pair.case.base for pair in one.comparable})
            lines.append(
                f"PASSED: nothing is shown to be slower by more than {part}; {compared} of "
                f"{len(one.base.record.cases)} cases of the base run were compared"
            )
    return (1 if 1 in statuses else max(statuses)), lines
