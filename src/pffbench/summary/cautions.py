"""The caveats of a verdict, each with a remedy."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from pffbench.phases import READ_PHASES
from pffbench.storage.durability import QUIET
from pffbench.summary.again import larger
from pffbench.summary.conclusions import (
    TOO_SHORT,
    VERBS,
    absent,
    cases_of,
    comparison_names,
    contender_labels,
    number,
)
from pffbench.summary.dependence import shifts
from pffbench.summary.headline import Answer, Contender
from pffbench.summary.labels import format_title
from pffbench.summary.rank_test import Times
from pffbench.summary.statistics import LoadSummary
from pffbench.summary.summary import Summary
from pffbench.text import abridged

#: Above this number, comparisons are counted, not named.
_NAMED = 4
#: Repetitions this many times above their median are named where sums and medians differ.
_SLOW = 1.5
#: Fraction of disturbed blocks, or repetitions, from which on they are reported.
_OFTEN = 0.2


def cautions(summary: Summary) -> list[str]:
    """Return the caveats of the verdict, each with a remedy."""
    limits = [f"limited: {text}" for text in summary.record.limits]
    if summary.record.traced:  # whatever else is true of its times
        return [*limits, f"warning: {TRACED}"]
    if not summary.answers:
        return [*limits, *busy(summary.load)]
    return [
        *limits,
        *(f"warning: {text}" for text in absent(summary)),
        *_too_short(summary),
        *_sums(summary),
        *_shifted(summary),
        *_read_warnings(summary),
        *_unsettled(summary),
        *busy(summary.load),
    ]


def _too_short(summary: Summary) -> Iterator[str]:
    short = [a for a in summary.answers if a.too_short]
    if short and len(short) < len(summary.answers):
        yield (
            f"warning: {len(short)} comparison{'s are' if len(short) > 1 else ' is'} "
            f"{TOO_SHORT}; {larger(summary.record, [a.case for a in short], 1)[0]}"
        )


def _sums(summary: Summary) -> Iterator[str]:
    """Report answers whose medians hide what the times add up to."""
    told = [
        _sum(summary, answer, other)
        for answer in summary.all_answers
        for other in answer.others
        if other.spent is not None and not answer.too_short
    ]
    yield from told[:_NAMED]
    if len(told) > _NAMED:
        yield f"warning: in {len(told) - _NAMED} more comparisons sums and medians differ"


def _sum(summary: Summary, answer: Answer, other: Contender) -> str:
    label = contender_labels(summary)
    where = comparison_names(summary).get(answer.key, "")
    times = _times_of(summary, answer)
    slow = [
        f"{text} of {label[name]}"
        for name in (other.name, answer.name)
        if (text := slow_repetitions(list(times.get(name, {}).values())))
    ]
    return (
        f"warning: {VERBS[answer.total].lower()}{' with ' * bool(where)}{where}: "
        f"{label[other.name]} takes {number(other.spent or 0)} times as long as "
        f"{label[answer.name]} by the sum of the times, {number(other.ratio.value)} times by the "
        f"medians{': ' * bool(slow)}{' and '.join(slow)}"
    )


def _times_of(summary: Summary, answer: Answer) -> dict[str, Times]:
    """Return the seconds of the fastest case of each contender, by the contender's name."""
    cases = summary.by_name
    best = {answer.name: answer.case} | {other.name: other.case for other in answer.others}
    return {
        name: cases[case].phases[answer.total].by_block
        for name, case in best.items()
        if case in cases
    }


def slow_repetitions(seconds: Sequence[float]) -> str:
    """Describe the repetitions far above the median, such as those of a second mode."""
    median = statistics.median(seconds)
    slow = sorted(value / median for value in seconds if value > _SLOW * median)
    if not slow:
        return ""
    times = "–".join(dict.fromkeys(f"{value:.2g}" for value in (slow[0], slow[-1])))
    return f"{len(slow)} of {len(seconds)} repetitions took {times} times the median"


def _shifted(summary: Summary) -> Iterator[str]:
    """Report formats whose repetitions depend on each other, by the halves of the run."""
    label = contender_labels(summary)
    told: dict[str, str] = {}
    for answer in summary.answers:
        ways = {} if answer.too_short else _times_of(summary, answer)
        for name, ratio in shifts(ways).items():
            told.setdefault(label[name], f"{label[name]} {number(ratio)} times")
    if told:
        yield (
            "warning: against the others, the second half of the run took "
            f"{', '.join(told.values())} as long as the first: repetitions depend on each other, "
            "and claims are false more often than in 5 % of runs; run again"
        )


def _read_warnings(summary: Summary) -> Iterator[str]:
    """Report reads of the verdict whose time is not the library's, or not proved."""
    rests_on = cases_of(summary, [a for a in summary.answers if a.total == "read_total"])
    for code, text in (
        (
            "page_faults",
            "half or more of the bytes went through memory mapped anew for each read in {names}: "
            "the allocator is part of the time; choose smaller arrays or chunks",
        ),
        (
            "cache_unproved",
            "the state of the page cache was not proved in {names}: take cache: dropped, or read "
            "in another job (cache: separate)",
        ),
    ):
        names = dict.fromkeys(
            f"{format_title(case.sample.backend)} ({case.sample.layout})"
            for case in rests_on
            for phase in ("read", *READ_PHASES)
            if phase in case.phases
            if any(w.code == code for w in case.phases[phase].warnings)
        )
        if names:
            yield f"warning: {text.format(names=abridged(names, _NAMED, ', '))}"


#: What the times of a run are worth whose system calls were counted, and what to do with it.
TRACED = (
    "system calls were counted, which slows them, so the times show nothing (pffbench compare "
    "--counts compares the counts of two runs); for times, run again without counts"
)


def busy(load: LoadSummary) -> Iterator[str]:
    """Report that others used the processors in many blocks of repetitions."""
    for blocks, part, who, remedy in (
        (load.busy, load.busy_others, "others", "on an idle machine, or exclusively"),
        (load.stolen, load.steal, "the host of this machine", "on another host, or later"),
    ):
        if blocks > _OFTEN * load.blocks:
            of = "while it ran"
            if load.blocks > 1:
                of = f"in {blocks} of {load.blocks} blocks of repetitions"
            yield f"BUSY: {who} used {part:.0%} of the processors {of}; run again {remedy}"


def _unsettled(summary: Summary) -> Iterator[str]:
    load = summary.load
    if load.repetitions and load.unsettled > _OFTEN * load.repetitions:
        yield (
            f"warning: over {QUIET >> 20} MiB of earlier writes were not on their device when "
            f"{load.unsettled} of {load.repetitions} repetitions began; measure while nothing else "
            "writes"
        )
