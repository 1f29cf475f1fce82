"""What a run prints must not end it: a log on a full disk, a reader that has gone."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO, cast


class LastingStream:
    """A text stream that falls silent where it would fail.

    Parameters
    ----------
    stream : text stream
        Where the text goes.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

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
        if self._stream is sys.__stdout__:
            print(
                f"pffbench: standard output cannot be written any more ({error.strerror}); that "
                "changes nothing of the run and its results, which are in files",
                file=sys.stderr,
                flush=True,
            )


@contextmanager
def lasting_output() -> Iterator[None]:
    """Make both standard streams such ones."""
    out, err = LastingStream(sys.stdout), LastingStream(sys.stderr)
    with redirect_stdout(cast(TextIO, out)), redirect_stderr(cast(TextIO, err)):
        try:
            yield
        finally:  # here, while a failure is still told as such
            out.flush()
