"""Findings of the doctor, and how they are printed: causes once, with consequences and remedy."""

from __future__ import annotations

import shutil
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from pffbench.parallel.launcher import on_terminal
from pffbench.text import counted

Status = Literal["ok", "warning", "problem", "unknown", "absent"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    #: Subject, given by what runs the check (`of_topic`); findings of one are printed together.
    topic: str
    #: ``problem``: an experiment will fail or mislead; ``warning``: it will run, with a caveat;
    #: ``unknown``: it could not be determined; ``absent``: something optional is missing.
    status: Status
    #: The finding.
    text: str
    #: The remedy; empty where none is needed.
    remedy: str = ""
    #: The name by which other findings refer to this one as their cause; mostly empty.
    name: str = ""
    #: The name of the finding that this one follows from; mostly empty.
    because: str = ""
    #: The texts of the findings that follow from this one, see `grouped`.
    consequences: tuple[str, ...] = ()


#: What a check yields.
Findings = Iterator[Finding]
#: A finding of each status, by its text and remedy.
ok, absent = partial(Finding, "", "ok"), partial(Finding, "", "absent")
warning, problem = partial(Finding, "", "warning"), partial(Finding, "", "problem")
unknown = partial(Finding, "", "unknown")


@dataclass(frozen=True, slots=True)
class Ability:
    """The transfers that a backend can make here in one layout."""

    #: The backend and the layout.
    backend: str
    layout: str
    #: Transfers that work; empty where none does.
    transfers: tuple[str, ...]
    #: Whether they were tried here, on all ranks.
    tested: bool = False
    #: Why there are none.
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """The result of an examination; all of it can be written as JSON."""

    #: Kind and prefix of the installation.
    installation: str
    #: Causes with their consequences, and all other findings, by topic.
    findings: tuple[Finding, ...]
    #: What can run here, for each backend and layout.
    abilities: tuple[Ability, ...] = ()

    def count(self, status: Status) -> int:
        """Count the findings of a status; consequences are not counted."""
        return sum(finding.status == status for finding in self.findings)

    @property
    def verdict(self) -> str:
        """The last line: how many problems and warnings there are."""
        problems, warnings = self.count("problem"), self.count("warning")
        return f"{counted(problems, 'problem')}, {counted(warnings, 'warning')}"


def grouped(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Put findings that follow from another one below it, and sort all by topic.

    Topics come in the order of their first finding.
    """
    found = list(findings)
    names = {finding.name for finding in found if finding.name}
    following: dict[str, list[str]] = defaultdict(list)
    for finding in found:
        if finding.because in names:
            following[finding.because].append(finding.text)
    causes = [
        replace(
            finding,
            consequences=tuple(dict.fromkeys([*finding.consequences, *following[finding.name]])),
        )
        for finding in found
        if finding.because not in names
    ]
    topics = list(dict.fromkeys(finding.topic for finding in causes))
    return tuple(sorted(causes, key=lambda finding: topics.index(finding.topic)))


def of_topic(topic: str, findings: Iterable[Finding]) -> Findings:
    """Yield findings of a topic; those that have one keep it."""
    return (replace(finding, topic=finding.topic or topic) for finding in findings)


def looked_at(topic: str, check: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """Run a check; an unexpected error becomes a finding and ends only this check."""
    found: list[Finding] = []
    try:
        found.extend(check())
    except Exception as error:  # noqa: BLE001 -- no error that a check meets may end the doctor
        found.append(
            problem(
                f"looking at this failed: {type(error).__name__}: {error}",
                "when the other findings do not explain it, please report it as a bug",
            )
        )
    return list(of_topic(topic, found))


_MARKS: dict[Status, str] = {
    "ok": "✓", "warning": "!", "problem": "✗", "unknown": "?", "absent": "-",
}  # fmt: skip
_COLOURS: dict[Status, str] = {
    "ok": "green", "warning": "yellow", "problem": "red", "unknown": "cyan", "absent": "blue",
}  # fmt: skip
_INDENT = 14
#: Width of lines where there is no terminal, and at most.
_WIDTH, _WIDEST = 80, 110
#: Topic of the last section, and the headings and widths of its columns.
WHAT_RUNS = "What runs here"
_COLUMNS = {"": 14, "shared": 14, "own": 14, "file_per_process": 17}
_BOTH = {"independent", "collective"}

Line = tuple[str, Status | None]


def lines_of(report: Report, width: int = _WIDTH) -> Iterator[Line]:
    """Format a report and its verdict as lines of a width, with the status that colours each."""
    topic = ""
    for finding in report.findings:
        if finding.topic != topic:
            topic = finding.topic
            yield topic, None
        parts: list[tuple[str, str, Status | None]] = [
            (f"  {_MARKS[finding.status]} {finding.status}", finding.text, finding.status),
            *(("so: ".rjust(_INDENT), text, None) for text in finding.consequences),
            ("→ ".rjust(_INDENT), finding.remedy, None),
        ]
        for head, text, status in parts:
            lines = _broken(head.ljust(_INDENT), text, width)
            yield from ((line, status) for line in lines)
    if report.abilities:
        yield WHAT_RUNS, None
        yield from ((line, None) for line in _table(report.abilities, width))
    yield report.verdict, None


def _table(abilities: Iterable[Ability], width: int) -> Iterator[str]:
    """Format what runs: a row for each backend, a column for each layout."""
    rows: dict[str, dict[str, str]] = {}
    tested = False
    for ability in abilities:
        rows.setdefault(ability.backend, {"": ability.backend})[ability.layout] = _cell(ability)
        tested |= ability.tested
    for row in ({name: name for name in _COLUMNS}, *rows.values()):
        cells = (row.get(name, "no").ljust(length) for name, length in _COLUMNS.items())
        yield f"  {''.join(cells)}".rstrip()
    how = "shared files were tried just now" if tested else "by what is installed, not tried"
    note = (
        f"yes: independent and collective transfer, where ranks share a file ({how}); "
        "file_per_group can what shared can, or own"
    )
    yield from _broken("  ", note, width)


def _cell(ability: Ability) -> str:
    alone = ability.layout == "file_per_process"
    if not ability.transfers or alone or set(ability.transfers) == _BOTH:
        return "yes" if ability.transfers else "no"
    return ability.transfers[0]


def as_text(report: Report) -> str:
    """Format a report as plain text."""
    return "\n".join(line for line, _ in lines_of(report))


def print_report(report: Report) -> None:
    """Print a report to standard output, in colours on a terminal."""
    try:
        from rich.console import Console
        from rich.text import Text
    except ImportError:  # which the doctor reports
        print(as_text(report))
        return
    if not on_terminal():
        print(as_text(report))
        return
    console = Console(force_terminal=True, soft_wrap=True)
    for line, status in lines_of(report, min(shutil.get_terminal_size().columns, _WIDEST)):
        text = Text(line)
        if status is not None:
            text.stylize(_COLOURS[status], 2, _INDENT)
        else:
            text.stylize("dim" if line.startswith(" ") else "bold")
        console.print(text, highlight=False)


def _broken(head: str, text: str, width: int) -> list[str]:
    """Return the lines of a text behind its head; none of no text."""
    return textwrap.wrap(
        " ".join(text.split()),
        max(width, 2 * _INDENT),
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_on_hyphens=False,
    )
