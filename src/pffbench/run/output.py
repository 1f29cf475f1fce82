"""Output streams whose failure does not end a run: a full disk, a closed pipe.

What a command prints must not end it: a run's results are in files. Where a stream cannot be
written it falls silent; characters that its encoding lacks are replaced; one that was closed before
the program began leads to nowhere.
"""

from __future__ import annotations

import codecs
import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import TYPE_CHECKING, Any, TextIO, cast

from pffbench.errors import NOT_VALID, VALID
from pffbench.text import escape_controls

if TYPE_CHECKING:
    from rich.console import Console

#: What stands for characters of ours where an encoding lacks them.
_PLAIN = {
    "×": "x", "–": "-", "—": "-", "…": "...", "µ": "u", "≈": "~", "≤": "<=", "≥": ">=", "±": "+-",
    "•": "*", "†": "+", "→": ">", "✓": "+", "✗": "x", "²": "2",
}  # fmt: skip
_REPLACING = "pffbench.plain"


class BestEffortStream:
    """A text stream that falls silent where it would fail.

    Parameters
    ----------
    stream : text stream
        Where the text goes.
    of_run : bool
        Whether it is a run that prints, of which nothing is lost with the text.
    """

    def __init__(self, stream: TextIO, *, of_run: bool = True) -> None:
        self._stream = stream
        self._of_run = of_run
        #: Whether text was lost that somebody waits for; a reader that has gone does not.
        self.lost = False

    def write(self, text: str) -> int:
        """Write, as a text stream does."""
        try:
            return self._stream.write(text)
        except OSError as error:
            self._fall_silent(error)
        return len(text)

    def flush(self) -> None:
        """Write what the buffer holds."""
        try:
            self._stream.flush()
        except OSError as error:
            self._fall_silent(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _fall_silent(self, error: OSError) -> None:
        """Lead the descriptor to nowhere, for what is buffered and what libraries print in C."""
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
    """Make both standard streams such ones; standard output is handed out.

    Parameters
    ----------
    of_run : bool
        As of `BestEffortStream`.
    """
    _open_closed()
    out = BestEffortStream(_prepared(sys.stdout), of_run=of_run)
    err = BestEffortStream(_prepared(sys.stderr), of_run=of_run)
    with redirect_stdout(cast(TextIO, out)), redirect_stderr(cast(TextIO, err)):
        try:
            yield out
        finally:  # here, while a failure is still told as such
            out.flush()
            err.flush()


def status_after(status: int, output: BestEffortStream) -> int:
    """Return the exit status of a command whose result is what it printed."""
    return NOT_VALID if status == VALID and output.lost else status


def make_console(width: int | None = None, *, force_terminal: bool | None = None) -> Console:
    """Make a console that prints text as it is, whatever it looks like.

    Parameters
    ----------
    width : int, optional
        Columns; those of the terminal when not given.
    force_terminal : bool, optional
        Whether there is a terminal; it is looked for when not given.
    """
    from rich.console import Console

    return Console(
        width=width, force_terminal=force_terminal, markup=False, emoji=False, highlight=False
    )


def _open_closed() -> None:
    """Open what the program was started without: else the next file would get its number.

    A library that prints to standard output would then write into that file.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            with suppress(OSError):
                os.open(os.devnull, os.O_RDWR)  # the lowest number that is free


def _prepared(stream: TextIO | None) -> TextIO:
    """Return a stream that takes any character; one to nowhere where there is none."""
    if stream is None:
        stream = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 -- stays open
    if hasattr(stream, "reconfigure"):
        codecs.register_error(_REPLACING, _replaced)
        stream.reconfigure(errors=_REPLACING)
    return stream


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """Return what is printed for characters that an encoding lacks, as codecs ask for it."""
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end]
    plain = (_PLAIN.get(c) or escape_controls(c) for c in text)
    shown = "".join(plain).encode("ascii", "backslashreplace").decode("ascii")
    return shown, error.end
