"""Findings of the doctor, and how they are printed: a cause, its consequences and a remedy."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Literal

import msgspec
from msgspec.structs import replace

Status = Literal["ok", "warning", "problem", "unknown", "absent"]


class Finding(msgspec.Struct, frozen=True):
    """The result of one check."""

    #: Its subject, which `look_at` sets; findings of a topic are printed together.
    topic: str
    #: ``problem``: an experiment will fail or mislead; ``warning``: it will run, with a caveat;
    #: ``unknown``: it could not be determined; ``absent``: something optional is missing.
    status: Status
    #: The finding.
    text: str
    #: The remedy; empty if none is needed, or if the text has it.
    remedy: str = ""
    #: What does not work because of it.
    consequences: tuple[str, ...] = ()


#: What a check yields.
Findings = Iterator[Finding]
#: A finding of each status, by its text and remedy.
ok, absent = partial(Finding, "", "ok"), partial(Finding, "", "absent")
warning, problem = partial(Finding, "", "warning"), partial(Finding, "", "problem")
unknown = partial(Finding, "", "unknown")


def look_at(topic: str, check: Callable[[], Iterable[Finding]]) -> Findings:
    """Run a check; an unexpected error becomes a finding and ends only this check."""
    try:
        for finding in check():
            yield replace(finding, topic=topic)
    except Exception as error:  # noqa: BLE001 -- no error that a check meets may end the doctor
        text = f"looking at this failed: {type(error).__name__}: {error}"
        remedy = "if the other findings do not explain it, please report it as a bug"
        yield Finding(topic, "problem", text, remedy)


_MARKS: dict[Status, str] = {
    "ok": "✓", "warning": "!", "problem": "✗", "unknown": "?", "absent": "-",
}  # fmt: skip
_INDENT = 14
#: Columns of a line at most.
_WIDEST = 110


def lines_of(finding: Finding) -> Iterator[str]:
    """Yield the lines of a finding, no longer than the terminal is wide."""
    parts = [
        (f"  {_MARKS[finding.status]} {finding.status}", finding.text),
        *(("so: ".rjust(_INDENT), text) for text in finding.consequences),
        ("→ ".rjust(_INDENT), finding.remedy),
    ]
    for head, text in parts:
        yield from textwrap.wrap(
            " ".join(text.split()),
            min(shutil.get_terminal_size().columns, _WIDEST),
            initial_indent=head.ljust(_INDENT),
            subsequent_indent=" " * _INDENT,
            break_on_hyphens=False,
        )
