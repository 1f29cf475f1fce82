"""The sentences of a comparison: verdict, power and rule."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from pffbench.summary.cautions import busy
from pffbench.summary.conclusions import bounds, number
from pffbench.summary.rank_test import ALPHA
from pffbench.summary.starts import OF_TOTALS

from pffbench.results.load import summarise_load
from pffbench.text import abridged, one_line
from pffbench.units import percent, seconds_text
from pffbench_analysis.compare.comparison import RAW, Comparison, Pair, Verdict, typical

#: Largest number of items of a kind in a sentence, and of characters of a version.
NAMED, _LONGEST = 5, 60
_TOTALS = {"write_total": "to write", "update_total": "to update", "read_total": "to read"}


def heading(found: Comparison) -> str:
    """Name the two sides."""
    return f"{found.new.name} compared with {found.base.name}"


def verdict_lines(found: Comparison) -> list[str]:
    """Return the verdict: slower and faster cases, confidence, and cases not compared."""
    if not found.comparable:
        return [nothing(found), *_lone(found)]
    judged = [pair for pair in found.pairs if not pair.case.control]
    counts = Counter(pair.verdict for pair in judged)
    counted = (f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
    lines = [f"cases × phases: {', '.join(counted) or 'no case of a format is in both runs'}"]
    for verdict in (Verdict.SLOWER, Verdict.FASTER):
        lines += _named(verdict, [pair for pair in judged if pair.verdict is verdict])
    lines += [_overall(pair) for pair in found.overall if not pair.case.control]
    changed = any(pair.different for pair in found.machine)
    lines.insert(0 if changed else len(lines), machine(found))
    return [
        *_busy(found), *lines, _versions(found), _power(found), *_lone(found),
        _rule(found),
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


def _busy(found: Comparison) -> Iterator[str]:
    """Say that others used the machine of a run, in the words of its own answer."""
    for run in (*found.base.runs, *found.new.runs):
        yield from (f"{run.directory}: {text}" for text in busy(summarise_load(run.kept)))


def nothing(found: Comparison) -> str:
    """Return why nothing can be judged, for totals where there are any, since these are judged."""
    if not found.pairs:
        return "nothing is comparable: the runs have no case in common"
    if all(pair.case.control for pair in found.pairs):
        return f"nothing is comparable: the runs have only {RAW} in common, and no case of a format"
    head = "no total is comparable" if found.comparable else "nothing is comparable"
    return f"{head}: {causes(found.not_gated or found.pairs)}"


def causes(pairs: Sequence[Pair]) -> str:
    """List the obstacles to comparing some pairs, the most frequent first."""
    counted = Counter(pair.reason for pair in pairs).most_common()
    return abridged([reason for reason, _ in counted], NAMED)


def _named(verdict: Verdict, pairs: Sequence[Pair]) -> Iterator[str]:
    ordered = sorted(pairs, key=lambda p: (not p.is_total, -abs(math.log(p.ratio))))
    for pair in ordered[:NAMED]:
        yield f"{verdict}: {in_words(pair)}"
    if len(ordered) > NAMED:
        yield f"{verdict}: {len(ordered) - NAMED} more"


def in_words(pair: Pair) -> str:
    """Describe the ratio of a case in a phase."""
    sums = f"; {number(pair.decision.spent)} by the sum" if pair.decision.differs_in_sum else ""
    return f"{pair.case.label}: {pair.phase} takes {ratio(pair)}{sums}"


def ratio(pair: Pair) -> str:
    """Format a ratio of medians, with the interval."""
    return (
        f"{number(pair.ratio)} times as long (interval {bounds(pair.decision.ratio)}; "
        f"{seconds_text(typical(pair.base))} → {seconds_text(typical(pair.new))})"
    )


def _overall(pair: Pair) -> str:
    return f"{pair.case.label}, {_TOTALS[pair.phase]} everything: {pair.verdict}, {ratio(pair)}"


def machine(found: Comparison) -> str:
    """Describe the change of the machine itself, as shown by raw bytes."""
    if found.only_raw:
        return "the machine itself: not known, since raw transfers are all that is compared"
    raw = found.machine
    if not raw:
        return f"the machine itself: not known, since no {RAW} (posix, mpiio) are comparable"
    parts = ", ".join(
        f"{number(p.ratio)} times as long {_TOTALS[p.phase]} ({bounds(p.decision.ratio)})"
        for p in raw
    )
    if any(pair.different for pair in raw):
        return f"the machine itself changed: {RAW} take {parts}"
    if all(pair.decision.equivalent for pair in raw):
        return f"the machine itself did not change: {RAW} take {parts}"
    return f"whether the machine itself changed is not decided: {RAW} take {parts}"


def _power(found: Comparison) -> str:
    """State the slowdown that would have been seen."""
    shown = sorted(pair.decision.shown for pair in found.gated or found.comparable)
    return f"a slowdown of {percent(shown[len(shown) // 2] - 1)} or more would be shown (median)"


def _rule(found: Comparison) -> str:
    if max(found.starts) == 1:
        starts = (
            "for these two starts of the program, whose variation is taken from other runs "
            f"({percent(OF_TOTALS.deviation)}); several runs of each side measure it: "
            "pffbench compare OLD … -- NEW …"
        )
    else:
        starts = f"by {found.starts[0]} and {found.starts[1]} starts of the program"
    return (
        f"ratios of medians, {starts}. The probability that any difference reported of the "
        f"totals, or of single phases, is chance is at most {percent(ALPHA)}"
    )


def _lone(found: Comparison) -> Iterator[str]:
    for which, cases in (("base", found.only_base), ("new", found.only_new)):
        for lone in cases[:NAMED]:
            yield f"not comparable: {lone.label}, only in the {which} run: {lone.reason}"
        if len(cases) > NAMED:
            yield f"not comparable: {len(cases) - NAMED} more cases only in the {which} run"


def reasons(found: Comparison) -> list[tuple[str, int]]:
    """Return the reasons why pairs were not compared, with their counts."""
    return Counter(pair.reason for pair in found.pairs if not pair.comparable).most_common()
