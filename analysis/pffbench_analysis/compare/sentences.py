"""The sentences of a comparison: verdict, power and rule."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from pffbench.errors import INCONCLUSIVE, MACHINE_CHANGED, NOT_VALID, VALID, WRONG_INPUT
from pffbench.summary.rank_test import ALPHA, FEWEST
from pffbench.text import one_line
from pffbench_analysis.compare.comparison import RAW, Comparison, Pair, Verdict

#: Largest number of items of a kind in a sentence, and of characters of a version.
_NAMED, _LONGEST = 5, 60
_TOTALS = {"write_total": "to write", "update_total": "to update", "read_total": "to read"}


def heading(found: Comparison) -> str:
    """Name the two runs."""
    return f"{found.new.directory} compared with {found.base.directory}"


def verdict_lines(found: Comparison) -> list[str]:
    """Return the verdict: slower and faster cases, confidence, and cases not compared."""
    if not found.comparable:
        return [_nothing(found), *_lone(found)]
    judged = [pair for pair in found.pairs if not pair.case.control]
    counts = Counter(pair.verdict for pair in judged)
    counted = (f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
    lines = [f"cases × phases: {', '.join(counted) or 'no case of a format is in both runs'}"]
    for verdict in (Verdict.SLOWER, Verdict.FASTER):
        lines += _named(verdict, [pair for pair in judged if pair.verdict is verdict])
    lines += [_overall(pair) for pair in found.overall if not pair.case.control]
    changed = any(pair.told for pair in found.overall if pair.case.control)
    lines.insert(0 if changed else len(lines), machine(found))
    return [
        *lines, _versions(found), _power(found), *_lone(found), *_unverified(found), _rule(found)
    ]  # fmt: skip


def _versions(found: Comparison) -> str:
    """List the versions in which the runs differ, the most likely cause of a difference."""
    if not found.versions:
        return "versions: the same of all software that both runs used"
    named = []
    for difference in found.versions:
        name = difference.key.removeprefix("software.").removeprefix("libraries.")
        before, after = (one_line(text, _LONGEST) for text in (difference.a, difference.b))
        named.append(f"{name.removesuffix('.version')} {before} → {after}")
    return f"versions that differ: {'; '.join(named)}"


def _unverified(found: Comparison) -> Iterator[str]:
    for run in (found.base, found.new):
        if run.record.imported:
            yield f"measured by {run.record.imported}, verified by nobody: {run.directory}"


def _nothing(found: Comparison) -> str:
    """Return why nothing can be judged, for totals where there are any, since these are judged."""
    if not found.pairs:
        return "nothing is comparable: the runs have no case in common"
    if all(pair.case.control for pair in found.pairs):
        return f"nothing is comparable: the runs have only {RAW} in common, and no case of a format"
    head = "no total is comparable" if found.comparable else "nothing is comparable"
    return f"{head}: {_causes(found.not_gated or found.pairs)}"


def _causes(pairs: Sequence[Pair]) -> str:
    """List the obstacles to comparing some pairs, the most frequent first."""
    named = [reason for reason, _ in Counter(pair.reason for pair in pairs).most_common()]
    more = [f"{len(named) - _NAMED} more reasons"] if len(named) > _NAMED else []
    return "; ".join([*named[:_NAMED], *more])


def _named(verdict: Verdict, pairs: Sequence[Pair]) -> Iterator[str]:
    ordered = sorted(pairs, key=lambda p: (not p.is_total, -abs(math.log(p.ratio))))
    for pair in ordered[:_NAMED]:
        yield f"{verdict}: {told(pair)}"
    if len(ordered) > _NAMED:
        yield f"{verdict}: {len(ordered) - _NAMED} more"


def told(pair: Pair) -> str:
    """Describe the verdict on a case in a phase."""
    return f"{pair.case.label}: {pair.phase} takes {ratio(pair)}"


def ratio(pair: Pair) -> str:
    """Format a ratio of times, with the interval."""
    return (
        f"{pair.ratio:#.3g} times as long (95 % interval {pair.low:#.3g}–{pair.high:#.3g}; "
        f"{seconds(pair.base.median)} → {seconds(pair.new.median)})"
    )


def seconds(value: float) -> str:
    """Format a time with a suitable unit."""
    if math.isnan(value):
        return ""
    return f"{value:.3g} s" if value >= 1 else f"{value * 1e3:.3g} ms"


def percent(part: float) -> str:
    """Format a fraction as a percentage with two digits."""
    value = 100 * part
    return f"{value:.0f} %" if value >= 10 else f"{value:.2g} %"


def _overall(pair: Pair) -> str:
    head = f"{pair.case.label}, {_TOTALS[pair.phase]} everything"
    if not pair.told:
        interval = f"95 % interval {pair.low:#.3g}–{pair.high:#.3g}"
        return f"{head}: no difference shown ({', '.join(filter(None, (interval, pair.doubt)))})"
    return f"{head}: {pair.verdict}, {ratio(pair)}"


def machine(found: Comparison) -> str:
    """Describe the change of the machine itself, as shown by raw bytes."""
    if found.only_raw:
        return "the machine itself: not known, since raw transfers are all that is compared"
    raw = [pair for pair in found.overall if pair.case.control]
    if not raw:
        return f"the machine itself: not known, since no {RAW} (posix, mpiio) are comparable"
    parts = ", ".join(
        f"{p.ratio:#.3g} times as long {_TOTALS[p.phase]} ({p.low:#.3g}–{p.high:#.3g})" for p in raw
    )
    if any(pair.told for pair in raw):
        return f"the machine itself changed: {RAW} take {parts}"
    return f"no change of the machine itself is shown: {RAW} take {parts}"


def _power(found: Comparison) -> str:
    shown = sorted(pair.estimate.shown for pair in found.gated or found.comparable)
    middle = shown[len(shown) // 2]
    if math.isinf(middle):
        return (
            "so few repetitions show no difference in half of the comparisons or more, however "
            "large it is"
        )
    return (
        f"in half of the comparisons a slowdown of {percent(middle - 1)} or more would have been "
        "shown with a probability of 80 %; smaller ones can be there and not be seen"
    )


def _rule(found: Comparison) -> str:
    return (
        "a difference is told when its interval excludes 1, it is at least "
        f"{percent(found.smallest)}, and the probability that any that is told of the totals, or "
        f"of single phases, is chance is at most {percent(ALPHA)} (rank test, Holm's correction); "
        "what changes from day to day is in no interval"
    )


def _lone(found: Comparison) -> Iterator[str]:
    for which, cases in (("base", found.only_base), ("new", found.only_new)):
        for lone in cases[:_NAMED]:
            yield f"not comparable: {lone.label}, only in the {which} run: {lone.reason}"
        if len(cases) > _NAMED:
            yield f"not comparable: {len(cases) - _NAMED} more cases only in the {which} run"


def reasons(found: Comparison) -> list[tuple[str, int]]:
    """Return the reasons why pairs were not compared, with their counts."""
    return Counter(pair.reason for pair in found.pairs if not pair.comparable).most_common()


def gate(found: Sequence[Comparison], limit: float) -> tuple[int, list[str]]:
    """Decide whether the new runs pass.

    A run passes only if each sum of phases of each format is shown not to be slower by more than
    the limit: the upper bounds of the ratios, each holding with 95 %, lie under it. Absence of a
    shown slowdown is not enough, since too few repetitions show none either. Where no run has a
    format, raw transfers are judged alike; next to formats these are the control of the machine.

    Parameters
    ----------
    found : sequence of Comparison
        One for each new run.
    limit : float
        The largest allowed relative slowdown.

    Returns
    -------
    status : int
        `VALID`, `NOT_VALID` (slower), `WRONG_INPUT` (nothing is comparable), `INCONCLUSIVE` or
        `MACHINE_CHANGED`; of several new runs the worst, in the order of `_WORST`.
    lines : list of str
        Reasons.
    """
    decided = [_gate_of(comparison, limit) for comparison in found]
    statuses = {status for status, _ in decided}
    return next(s for s in _WORST if s in statuses), [line for _, line in decided]


#: Statuses of a gate, the worst first. Each run is judged by its own control: one that fails has a
#: machine that did not change, so a changed machine of another run takes nothing from it.
_WORST = (NOT_VALID, MACHINE_CHANGED, WRONG_INPUT, INCONCLUSIVE, VALID)


def _gate_of(found: Comparison, limit: float) -> tuple[int, str]:
    run, part = found.new.directory, percent(limit)
    gated = found.gated
    few = [pair for pair in found.not_gated if pair.too_few]
    if not gated and not few:
        return WRONG_INPUT, f"NOT COMPARABLE: {run}: {_nothing(found)}"
    if changed := [pair for pair in found.controls if pair.changed(limit)]:
        named = "; ".join(told(pair) for pair in changed[:_NAMED])
        return MACHINE_CHANGED, (
            f"MACHINE CHANGED: {RAW} of {run} differ by more than {part}, so nothing is said of "
            f"the software: {named}. Compare runs of one allocation, or of a quiet machine"
        )
    if slower := [pair for pair in gated if pair.slower_than(limit)]:
        slower.sort(key=lambda pair: -pair.low)
        named = "; ".join(told(pair) for pair in slower[:_NAMED])
        more = f"; and {len(slower) - _NAMED} more" if len(slower) > _NAMED else ""
        return NOT_VALID, f"FAILED: {run} is slower by more than {part}: {named}{more}"
    if open_ := [pair for pair in gated if not pair.within(limit)]:
        more = f". {_too_few(few)}" if few else ""
        return INCONCLUSIVE, f"INCONCLUSIVE: {run}: {_undecided(found, open_, limit)}{more}"
    if few:
        return INCONCLUSIVE, f"INCONCLUSIVE: {run}: {_too_few(few)}"
    return VALID, (
        f"PASSED: {run}: each of {len(gated)} totals is shown not to be slower by more than "
        f"{part}; {_extent(found)}"
    )


def _extent(found: Comparison) -> str:
    """State the extent of the base run that a gate has judged."""
    cases = found.base.record.cases
    judged = len({pair.case.base for pair in found.gated if pair.case.base})
    all_ = sum(1 for entry in cases.values() if found.only_raw or not entry.get("raw"))
    text = f"{judged} of {all_} cases of the base run were compared"
    if left := found.not_gated:
        are = "total is" if len(left) == 1 else "totals are"
        text += f"; {len(left)} {are} not comparable: {_causes(left)}"
    return text


def _too_few(few: Sequence[Pair]) -> str:
    first = few[0]
    are = "1 total has" if len(few) == 1 else f"{len(few)} totals have"
    return (
        f"{are} too few repetitions to show anything, such as {first.case.label}: {first.phase} "
        f"({first.base.n} and {first.new.n}); at least {FEWEST} of each run are needed"
    )


def _undecided(found: Comparison, open_: Sequence[Pair], limit: float) -> str:
    """State the power of these repetitions, and the number that would decide."""
    worst = max(open_, key=lambda pair: (pair.estimate.upper, pair.ratio))
    shown = max(pair.estimate.shown for pair in open_)
    could = (
        "So few repetitions show no slowdown, however large"
        if math.isinf(shown)
        else f"These repetitions show a slowdown of {percent(shown - 1)} or more"
    )
    needed = max(_needed(pair, limit) for pair in open_)
    count = f"about {needed}" if needed <= _MANY else f"more than {_MANY}"
    return (
        f"{len(open_)} of {len(found.gated)} totals may be slower by more than {percent(limit)}, "
        f"such as {told(worst)}. {could}; {count} of each run would decide"
    )


#: Largest number of repetitions that is suggested.
_MANY = 1000


def _needed(pair: Pair, limit: float) -> int:
    """Return the repetitions of each run that would show a ratio to be below or above a limit."""
    needed = pair.estimate.repetitions_for(1 + limit)
    return _MANY + 1 if needed is None else max(min(pair.base.n, pair.new.n) + 1, needed)
