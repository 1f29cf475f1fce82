"""Legend of a summary's tables: a line for each of their words."""

from __future__ import annotations

from collections.abc import Iterator

from pffbench.summary.columns import footprint_columns, takes_new_memory
from pffbench.summary.summary import Summary

_SETTINGS = {
    "matched": "every library does the same work: equal chunks, no fill, equal caches and codecs",
    "defaults": "each library with its own defaults",
}
_LAYOUTS = {
    "shared": "one array, cut over the ranks",
    "own": "one {store} for all ranks, in it an array for each",
    "file_per_process": "a file for each rank",
}


def legend_lines(summary: Summary) -> Iterator[str]:
    """Yield explanations of the words in the tables, only of those that occur."""
    cases = summary.cases
    settings = {case.sample.settings for case in cases if not case.raw}
    layouts = {case.sample.layout for case in cases if case.sample.workload != "startup"}
    yield from (f"{word}: {text}" for word, text in _SETTINGS.items() if word in settings)
    own = [case for case in cases if case.sample.layout == "own"]
    store = " or directory".join(["file"] + [""] * any((c.disk_files or 1) > 1 for c in own))
    for word, text in _LAYOUTS.items():
        if word in layouts:
            yield f"layout {word}: {text.format(store=store)}"
    movers = (("write", "writing_ranks"), ("read", "reading_ranks"))
    counted = [(case.counts.get(key, 0), case.sample.ranks) for case in cases for key in movers]
    if any(0 < count < ranks for count, ranks in counted):
        yield "writers, readers: ranks that move the data by calls of their own, counted"
    if any(("write", "stretches") in case.counts for case in cases):
        yield "write calls, read calls: system calls of all ranks in phases write and read, counted"
    if any("inquire" in case.phases for case in cases):
        yield "MiB/s of reading: what all ranks have in memory in the end, read or received"
    phases = [phase for case in cases for phase in case.phases.values()]
    yield "n: repetitions; times are medians of the slowest rank, low–high their 95 % interval"
    if any(phase.ratio is not None for phase in phases):
        yield "×best: time over that of the fastest case with the same settings"
    if any(len({case.repetitions for case in group}) > 1 for group in summary.groups.values()):
        yield (
            "where n differs, ×best and roof are over the repetitions that both cases have, and "
            "need not be the ratio of the medians beside them"
        )
    if any(phase.roofline is not None for phase in phases):
        yield "roof: speed as a part of that of raw bytes (settings raw, in the same table)"
    if any(takes_new_memory(compared) for compared in summary.groups.values()):
        yield (
            "new mem: how much of the time of reading the library takes to get memory from the "
            "system, by its bytes and the rate measured in this run"
        )
    if any(footprint_columns(compared, "write") for compared in summary.groups.values()):
        yield (
            "threads: those of a rank that ran; +MiB: memory that the transfer added to a rank, at "
            "least; inodes: files and directories"
        )
