"""Where the data go that are read: into memory, or on as printed text."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal, TextIO

from pffbench.backends.base import Buffer, Call, what_was_read

ReadSink = Literal["buffer", "print"]
#: What text is printed into: it takes all and keeps nothing.
DEVICE = os.devnull
#: Makes of the library's call, and the buffer that it may read into, the call that is timed.
Sink = Callable[[Call, Buffer], Call]


def into_memory(call: Call, out: Buffer) -> Call:
    """Return the library's call itself: nothing else is timed."""
    return call


@contextmanager
def open_sink(kind: ReadSink) -> Iterator[Sink]:
    """Open what data are read into; entered before the first phase begins.

    Parameters
    ----------
    kind : {"buffer", "print"}
        ``buffer``: memory. ``print``: each array is turned into text and printed as soon as it is
        read, as ``print(dataset[...])`` does, into the null device, which costs as good as nothing.
    """
    if kind == "buffer":
        yield into_memory
        return
    with Path(DEVICE).open("w", encoding="utf-8") as stream:
        yield partial(_printing, stream)


def _printing(stream: TextIO, call: Call, out: Buffer) -> Call:
    def read_and_print() -> Any:
        returned = call()
        print(what_was_read(returned, out), file=stream)
        return returned

    return read_and_print
