"""A finding of the doctor, and how findings are printed: by topic, with remedies."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warning", "problem", "unknown"]

#: The remedy for most trouble with libraries.
MAKE_ENV = "`make env` in the checkout builds a private environment with parallel h5py and netCDF4"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    Parameters
    ----------
    topic : str
        Subject; findings of a topic are printed together.
    status : {"ok", "warning", "problem", "unknown"}
        ``problem``: an experiment will fail or mislead; ``warning``: it will run, with a
        caveat; ``unknown``: it could not be determined.
    text : str
        The finding.
    remedy : str
        The remedy; empty where none is needed.
    """

    topic: str
    status: Status
    text: str
    remedy: str = ""


def looked_at(topic: str, check: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """Run a check; an unexpected error becomes a finding and ends only this check."""
    found: list[Finding] = []
    try:
        found.extend(check())
    except Exception as error:  # noqa: BLE001 -- no error that a check meets may end the doctor
        found.append(
            Finding(
                topic,
                "problem",
                f"looking at this failed: {type(error).__name__}: {error}",
                "when the other findings do not explain it, please report it as a bug",
            )
        )
    return found


def count(findings: Iterable[Finding], status: Status) -> int:
    """Count the findings of a status."""
    return sum(finding.status == status for finding in findings)


_MARKS: dict[Status, str] = {"ok": "✓", "warning": "!", "problem": "✗", "unknown": "?"}
_COLOURS: dict[Status, str] = {
    "ok": "green",
    "warning": "yellow",
    "problem": "red",
    "unknown": "cyan",
}
_PLAIN = str.maketrans({"✓": "+", "✗": "x", "→": ">", "µ": "u"})
_INDENT = 14


def verdict(findings: Iterable[Finding]) -> str:
    """Return the last line: how many problems and warnings there are."""
    found = list(findings)
    counts = [(count(found, "problem"), "problem"), (count(found, "warning"), "warning")]
    return ", ".join(f"{number} {word}{'s' * (number != 1)}" for number, word in counts)


def lines_of(findings: Iterable[Finding], width: int | None) -> Iterator[tuple[str, Status | None]]:
    """Format findings as lines, with the status that colours each line.

    Parameters
    ----------
    findings : iterable of Finding
        Those of one topic are grouped in the order of its first appearance.
    width : int or None
        Line width; None keeps each text in one line, for logs and grep.
    """
    topics: dict[str, list[Finding]] = {}
    for finding in findings:
        topics.setdefault(finding.topic, []).append(finding)
    for topic, members in topics.items():
        yield topic, None
        for finding in members:
            head = f"  {_MARKS[finding.status]} {finding.status}".ljust(_INDENT)
            yield from ((line, finding.status) for line in _broken(head, finding.text, width))
            if finding.remedy:
                head = "→ ".rjust(_INDENT)
                yield from ((line, None) for line in _broken(head, finding.remedy, width))


def as_text(findings: Iterable[Finding]) -> str:
    """Format findings and the verdict as plain text that can be printed here."""
    found = list(findings)
    lines = [line for line, _ in lines_of(found, None)]
    encoding = sys.stdout.encoding or "ascii"
    return _encodable("\n".join([*lines, verdict(found)]), encoding)


def print_report(findings: Iterable[Finding]) -> None:
    """Print findings and the verdict to standard output."""
    found = list(findings)
    watched = _watched()
    width = min(shutil.get_terminal_size().columns, 110) if watched else None
    for line, status in lines_of(found, width):
        _print(line, status, watched)
    _print(verdict(found), None, watched)
    sys.stdout.flush()


def _broken(head: str, text: str, width: int | None) -> list[str]:
    words = " ".join(text.split())
    if width is None:
        return [head + words]
    return textwrap.wrap(
        words,
        max(width, 2 * _INDENT),
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _watched() -> bool:
    try:
        from pffbench.record.progress import on_terminal
    except ImportError:  # a library that it needs is missing, which the doctor reports
        return False
    return on_terminal(os.environ)


def _print(line: str, status: Status | None, coloured: bool) -> None:
    line = _encodable(line, sys.stdout.encoding or "ascii")
    if not coloured:
        print(line)
        return
    try:
        from rich.console import Console
        from rich.text import Text
    except ImportError:
        print(line)
        return
    text = Text(line)
    if status is not None:
        text.stylize(_COLOURS[status], 2, _INDENT)
    elif line.startswith(" "):
        text.stylize("dim")
    else:
        text.stylize("bold")
    Console(force_terminal=True, soft_wrap=True).print(text, highlight=False)


def _encodable(line: str, encoding: str) -> str:
    """Return a line in the output's encoding; plain marks replace those that it lacks."""
    try:
        line.encode(encoding)
    except UnicodeEncodeError:
        return line.translate(_PLAIN).encode(encoding, "replace").decode(encoding)
    return line
