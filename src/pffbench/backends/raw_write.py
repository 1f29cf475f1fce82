"""Writing raw bytes to the last one: the system may take a part of what a call gives it."""

from __future__ import annotations

from collections.abc import Sequence
from os import pwrite

from pffbench.backends.base import Buffer
from pffbench.backends.raw import Copy, Runs
from pffbench.parallel.decomposition import Box


def bytes_of(buffer: Buffer) -> memoryview:
    """View a C-contiguous buffer as bytes."""
    return buffer.reshape(-1).view("u1").data


def write_all(descriptor: int, data: memoryview, offset: int) -> int:
    """Write all bytes; the kernel may take fewer than given, 2 GiB - 4 KiB at most."""
    done = pwrite(descriptor, data, offset)
    while done < data.nbytes:
        done += pwrite(descriptor, data[done:], offset + done)
    return done


def write_runs(descriptor: int, data: memoryview, runs: Runs) -> int:
    """Write the bytes of a box, one stretch of the file after the other."""
    length, begin = runs.length, 0
    for offset in runs.offsets.data:
        part = data[begin : begin + length]
        if pwrite(descriptor, part, offset) < length:
            write_all(descriptor, part, offset)
        begin += length
    return begin


def why_short(file: str | int, copies: Sequence[Copy], box: Box, buffer: Buffer) -> str:
    """Write a box into each copy of its array; say what the system has against its last byte.

    The file is given by its path or as a descriptor, which stays open.
    """
    try:
        with open(file, "r+b", buffering=0, closefd=isinstance(file, str)) as opened:
            for copy in copies:
                data = bytes_of(copy.from_memory(buffer))
                write_runs(opened.fileno(), data, copy.runs(box))
    except OSError as error:
        return error.strerror or str(error)
    except MemoryError:  # for a copy in the order of the file; what is asked for stays unknown
        return ""
    return ""
