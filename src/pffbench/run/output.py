"""Output streams whose failure does not end a run: a full disk, a closed pipe.

The results of a run are in files, so printing must not end it. A stream that cannot be written
discards its text, characters missing from its encoding are replaced, and a stream closed before
the program began is opened on the null device.
"""

from __future__ import annotations

import codecs
import errno
import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import TYPE_CHECKING, Any, TextIO, cast

from pffbench.errors import NOT_VALID, VALID
from pffbench.text import escape_controls

if TYPE_CHECKING:
    from rich.console import Console

#: Replacements of our characters in encodings without them.
_PLAIN = {
    "×": "x", "–": "-", "—": "-", "…": "...", "µ": "u", "≈": "~", "≤": "<=", "≥": ">=", "±": "+-",
    "•": "*", "†": "+", "→": ">", "✓": "+", "✗": "x", "²": "2", "∞": "inf",
}  # fmt: skip
_REPLACING = "pffbench.plain"


class BestEffortStream:
    """A text stream that discards its text after an error.

    Parameters
    ----------
    stream : text stream
        Destination of the text.
    of_run : bool
        Whether a run prints, which loses no results with the text.
    """

    def __init__(self, stream: TextIO, *, of_run: bool = True) -> None:
        self._stream = stream
        self._of_run = of_run
        #: Whether requested text was lost; a pipe closed by its reader does not count.
        self.lost = False

    def write(self, text: str) -> int:
        """Write, as a text stream does."""
        try:
            return self._stream.write(text)
        except OSError as error:
            self._fall_silent(error)
        return len(text)

    def flush(self) -> None:
        """Write the buffered text."""
        try:
            self._stream.flush()
        except OSError as error:
            self._fall_silent(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _fall_silent(self, error: OSError) -> None:
        """Redirect the descriptor to the null device, also for buffered text and C libraries."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
        gone = error.errno == errno.EPIPE
        self.lost = self.lost or not gone
        if self._stream is not sys.__stdout__ or (gone and not self._of_run):
            return
        told = f"standard output cannot be written ({error.strerror})"
        if self._of_run:
            told = (
                f"standard output cannot be written any more ({error.strerror}); that changes "
                "nothing of the run and its results, which are in files"
            )
        print(f"pffbench: {told}", file=sys.stderr, flush=True)


@contextmanager
def best_effort_output(*, of_run: bool) -> Iterator[BestEffortStream]:
    """Wrap both standard streams in `BestEffortStream`; yield standard output.

    Parameters
    ----------
    of_run : bool
        See `BestEffortStream`.
    """
    _open_closed()
    out = BestEffortStream(_prepared(sys.stdout), of_run=of_run)
    err = BestEffortStream(_prepared(sys.stderr), of_run=of_run)
    with redirect_stdout(cast(TextIO, out)), redirect_stderr(cast(TextIO, err)):
        try:
            yield out
        finally:  # here, while a failure is still reported as one
            out.flush()
            err.flush()


def status_after(status: int, output: BestEffortStream) -> int:
    """Return the exit status of a command whose result is its output."""
    return NOT_VALID if status == VALID and output.lost else status


def make_console(unknown: int | None = None, *, force_terminal: bool | None = None) -> Console:
    """Return a console that prints text unchanged, without markup.

    Parameters
    ----------
    unknown : int, optional
        Number of columns where neither a terminal nor ``COLUMNS`` tells it, such as in a log.
    force_terminal : bool, optional
        Whether there is a terminal; detected by default.
    """
    from rich.console import Console

    watched = sys.stdout.isatty() if force_terminal is None else force_terminal
    width = None if watched or os.environ.get("COLUMNS", "").isdecimal() else unknown
    return Console(
        width=width, force_terminal=force_terminal, markup=False, emoji=False, highlight=False
    )


def print_json(data: Any) -> None:
    """Print plain data as one JSON document, for programs.

    Sizes, durations and numbers of NumPy are numbers; what is not finite is null. Nothing is
    imported that may be missing where `pffbench doctor` runs.
    """
    import json

    text = json.dumps(_finite(data), indent=2, default=lambda number: number.item())
    print(text, flush=True)


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def _open_closed() -> None:
    """Open the standard streams closed at the start: otherwise the next file gets their number.

    A library that prints to standard output would then write into that file.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            with suppress(OSError):
                os.open(os.devnull, os.O_RDWR)  # the lowest free number


def _prepared(stream: TextIO | None) -> TextIO:
    """Return a stream that accepts any character; the null device if there is none."""
    if stream is None:
        stream = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 -- stays open
    if hasattr(stream, "reconfigure"):
        codecs.register_error(_REPLACING, _replaced)
        stream.reconfigure(errors=_REPLACING)
    return stream


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """Return the replacement of characters missing from an encoding, as a codec error handler."""
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end]
    plain = (_PLAIN.get(c) or escape_controls(c) for c in text)
    shown = "".join(plain).encode("ascii", "backslashreplace").decode("ascii")
    return shown, error.end
