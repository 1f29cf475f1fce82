"""Legend of a summary's tables: a line for each of their words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pffbench.summary.columns import columns_of, workload_of
from pffbench.summary.summary import Summary

_SETTINGS = {
    "matched": "every library does the same work: equal chunks, no fill, equal caches and codecs",
    "defaults": "each library with its own defaults",
}
_LAYOUTS = {
    "shared": "one array, cut over the ranks",
    "own": "one {store} for all ranks, in it an array for each",
    "file_per_process": "a file for each rank",
    "file_per_group": "a file for each group of ranks, within it one array cut over them "
    "(shared), or an array for each (own)",
}


def legend_lines(summary: Summary, of: Literal["text", "page"] = "text") -> Iterator[str]:
    """Yield explanations of the words in the tables, only of those that occur."""
    cases = summary.cases
    settings = {case.sample.settings for case in cases if not case.raw}
    layouts = {
        case.sample.layout for case in cases if (w := workload_of(case)) is None or w.cuts_arrays
    }
    yield from (f"{word}: {text}" for word, text in _SETTINGS.items() if word in settings)
    own = [case for case in cases if case.sample.layout == "own"]
    store = " or directory".join(["file"] + [""] * any((c.disk_files or 1) > 1 for c in own))
    for word, text in _LAYOUTS.items():
        if word in layouts:
            yield f"layout {word}: {text.format(store=store)}"
    columns = [column for group in summary.groups.values() for column in columns_of(group, of)]
    # The page names its cases by itself.
    columns = [column for column in columns if of == "text" or not column.is_text]
    yield from dict.fromkeys(column.legend for column in columns if column.legend)
    if any(len({case.repetitions for case in group}) > 1 for group in summary.groups.values()):
        yield (
            "where n differs, ×best and roof are over the repetitions that both cases have, and "
            "need not be the ratio of the medians beside them"
        )
