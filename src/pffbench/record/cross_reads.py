"""Who could read whose files, in a run of several environments: record, table and sentences."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec


class CrossRead(msgspec.Struct, frozen=True):
    """Whether an environment could read the files of another one, or its own.

    Parameters
    ----------
    case : str
        The case.
    backend : str
        Its backend.
    writer, reader : str
        The environments.
    result : {"VALID", "FAILED", "LEFT_OUT"}
        ``VALID``: every byte was verified. ``LEFT_OUT``: one of them has no such case.
    error : str
        Why not; else empty.
    """

    case: str
    backend: str
    writer: str
    reader: str
    result: Literal["VALID", "FAILED", "LEFT_OUT"]
    error: str = ""


def cross_reads_of(entries: Iterable[Any]) -> list[CrossRead]:
    """Return the reads that `run.json` lists."""
    return [msgspec.convert(one, CrossRead) for one in entries]


def cross_read_table(found: Sequence[CrossRead]) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows: a row for each format and writer, a column for each reader."""
    readers = list(dict.fromkeys(one.reader for one in found))
    cells: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for one in found:
        cells[one.backend, one.writer][one.reader].append(one.result)
    rows = [
        [*key, *(_cell(by_reader[reader]) for reader in readers)]
        for key, by_reader in cells.items()
    ]
    return ["format", "written by", *(f"read by {reader}" for reader in readers)], rows


def _cell(results: Sequence[str]) -> str:
    tried = [result for result in results if result != "LEFT_OUT"]
    valid = tried.count("VALID")
    if not tried:
        return "left out"
    if len(set(tried)) == 1:
        return tried[0]
    return f"{valid} of {len(tried)} VALID"


def cross_read_lines(found: Sequence[CrossRead]) -> list[str]:
    """Return the result in sentences: how many were read, and why others were not."""
    if not found:
        return []
    counts = Counter(one.result for one in found)
    tried = counts["VALID"] + counts["FAILED"]
    lines = [
        f"Who reads whose files: {counts['VALID']} of {tried} reads VALID, every byte verified"
    ]
    why = Counter(
        (one.reader, one.backend, one.writer, one.error) for one in found if one.result == "FAILED"
    )
    for (reader, backend, writer, error), times in why.items():
        cases = f" ({times} cases)" if times > 1 else ""
        whose = "its own files" if reader == writer else f"files of {writer}"
        lines.append(f"{reader} does not read {whose} with {backend}: {error}{cases}")
    out = Counter(one.error for one in found if one.result == "LEFT_OUT")
    lines += [f"{times} reads left out: {error}" for error, times in out.items()]
    return lines
