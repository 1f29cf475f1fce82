"""Files of decomposition maps: `.npz`, and the forms of E3SM-IO: text, netCDF and HDF5.

Maps may come from others, so sizes are checked before memory is taken, and nothing is unpickled.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import psutil

from pffbench.data.readers import open_arrays, open_variable
from pffbench.errors import UserError
from pffbench.geometry.box import Shape
from pffbench.geometry.maps import DecompositionMap
from pffbench.geometry.stretches import Integers
from pffbench.regular_files import open_regular
from pffbench.units import Size

#: Bytes that a map's file may have, and the part of this machine's memory that an array in it may.
_MOST_BYTES = 2**34
_PART_OF_MEMORY = 0.25
#: Bytes that a line of a text may have: one of few numbers, one of a number of an element, and one
#: of all elements of a process.
_SHORT_LINE, _ELEMENT, _MOST_LINE = 2**16, 21, 2**30
_MOST_PROCESSES = 10_000_000
_MOST_AXES = 4
_KEYS = ("shape", "counts", "offsets", "lengths")
#: First word of the text form, and the only version.
_WORD, _VERSION = b"version", 2001
#: How files of HDF5, and so of netCDF-4, begin, and classic ones of netCDF.
_HDF5, _CLASSIC = b"\x89HDF\r\n\x1a\n", b"CDF"
#: First word of a trace of calls, which Scorpio may append to the text form.
_TRACE = b"Obtained"


class _NotAMapError(Exception):
    """Says why a file is not a decomposition map."""


def read_map(path: str, variable: str | None = None) -> DecompositionMap:
    """Read a map.

    Parameters
    ----------
    path : str
        The file.
    variable : str, optional
        Name of the map in a file that may hold several, such as ``D2``.

    Raises
    ------
    UserError
        The file cannot be read, or is no map.
    """
    try:
        with open_regular(path, most=_MOST_BYTES) as file:
            several = file.read(len(_HDF5)).startswith((_HDF5, _CLASSIC))
            if variable is not None and not several:
                raise _NotAMapError(f"it has one map, so 'variable' must not be given ({variable})")
            if not several:
                found = _from_npz(file) if zipfile.is_zipfile(file) else _from_text(file)
        if several:
            found = _from_arrays(Path(path), variable)
        _check(found)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from None
    except MemoryError:
        raise UserError(f"{path} does not fit into memory") from None
    except _NotAMapError as error:
        raise UserError(f"{path} is not a decomposition map: {error}") from None
    return found


def write_npz(path: str | Path, made: DecompositionMap) -> None:
    """Write a map as `.npz`."""
    arrays = {key: getattr(made, key) for key in _KEYS[1:]}
    with Path(path).open("wb") as file:
        np.savez_compressed(file, shape=np.array(made.shape, np.int64), **arrays)


def write_text(path: str | Path, made: DecompositionMap) -> None:
    """Write a map in the text form of E3SM-IO."""
    lengths = " ".join(map(str, reversed(made.shape)))
    lines = [f"version {_VERSION} npes {made.processes} ndims {len(made.shape)} ", f"{lengths} "]
    ends = np.cumsum(made.counts)
    for process, (end, count) in enumerate(zip(ends, made.counts, strict=True)):
        each = range(end - count, end)
        elements = [made.offsets[i] + 1 + k for i in each for k in range(made.lengths[i])]
        lines += [f"{process} {len(elements)}", " ".join(map(str, elements))]
    Path(path).write_text("\n".join(lines) + "\n", encoding="ascii")


def _check(found: DecompositionMap) -> None:
    """Refuse stretches that are not in the array."""
    total = math.prod(found.shape)
    if not 1 <= found.processes <= _MOST_PROCESSES:
        raise _NotAMapError(
            f"it has {found.processes} processes (1 to {_MOST_PROCESSES} are possible)"
        )
    if not found.offsets.size:
        raise _NotAMapError("no process has an element")
    for name, arrays, least in (("an offset", found.offsets, 0), ("a length", found.lengths, 1)):
        if arrays.min() < least:
            raise _NotAMapError(f"{name} is {arrays.min()}, and must be at least {least}")
    outside = np.flatnonzero(found.lengths > total - found.offsets)
    if outside.size:
        first = int(outside[0])
        raise _NotAMapError(
            f"a stretch of {found.lengths[first]} elements begins at {found.offsets[first]}, and "
            f"the array of shape {list(found.shape)} has {total}",
        )


def _shape(lengths: Sequence[int]) -> Shape:
    shape = tuple(int(n) for n in lengths)
    if not 1 <= len(shape) <= _MOST_AXES or min(shape) < 1 or math.prod(shape) >= 2**63:
        raise _NotAMapError(
            f"shape {list(shape)} (1 to {_MOST_AXES} axes of 1 or more are possible)"
        )
    return shape


def _from_npz(file: BinaryIO) -> DecompositionMap:
    try:
        with zipfile.ZipFile(file) as parts:
            members = parts.infolist()
            sizes = {part.filename.removesuffix(".npy"): part.file_size for part in members}
        if missing := [key for key in _KEYS if key not in sizes]:
            raise _NotAMapError(f"the array {missing[0]} is missing (needed: {', '.join(_KEYS)})")
        for key in _KEYS:
            _check_memory(key, sizes[key])
        file.seek(0)
        with np.load(file, allow_pickle=False) as data:
            arrays = {key: _integers(data[key], key) for key in _KEYS}
    except (_NotAMapError, MemoryError, OSError):
        raise
    except Exception as error:  # noqa: BLE001 - a spoilt archive fails in a dozen ways
        why = " ".join(str(error).split()) or type(error).__name__
        raise _NotAMapError(why) from None
    shape = _shape(arrays["shape"].tolist())
    counts, offsets, lengths = (arrays[key] for key in _KEYS[1:])
    return _map_of(shape, counts, offsets, lengths)


def _check_memory(key: str, nbytes: int) -> None:
    most = min(int(_PART_OF_MEMORY * psutil.virtual_memory().total), _MOST_BYTES)
    if nbytes > most:
        raise _NotAMapError(f"{key} takes {Size(nbytes)} of memory, more than {Size(most)}")


def _map_of(
    shape: Shape, counts: Integers, offsets: Integers, lengths: Integers
) -> DecompositionMap:
    """Return the map of arrays, which are checked to belong together."""
    if counts.size and counts.min() < 0:
        raise _NotAMapError(f"a count is {counts.min()}, and must be at least 0")
    if counts.size and counts.max() > len(offsets):  # the sum below is one of 64 bits
        raise _NotAMapError(f"a count is {counts.max()}, and there are {len(offsets)} offsets")
    if not len(offsets) == len(lengths) == int(counts.sum()):
        raise _NotAMapError(
            f"counts add up to {counts.sum()} stretches, and there are {len(offsets)} offsets and "
            f"{len(lengths)} lengths",
        )
    return DecompositionMap(shape, counts, offsets, lengths)


def _integers(array: Any, key: str) -> Integers:
    if not isinstance(array, np.ndarray):
        raise _NotAMapError(f"{key} is not an array in the format of NumPy")
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise _NotAMapError(
            f"{key} must be a list of integers, not {array.dtype} of shape {array.shape}"
        )
    if array.dtype.kind == "u" and array.size and int(array.max()) >= 2**63:
        raise _NotAMapError(f"{key} has {array.max()}, which is too large")
    return np.ascontiguousarray(array, np.int64)


def _from_arrays(path: Path, variable: str | None) -> DecompositionMap:
    """Read a map from the arrays that E3SM-IO's dat2decomp writes for each, as in ``D1.offsets``.

    Stretches after the first ``fill_starts`` of a process are written with fill values and are not
    part of the text form, so they are left out.
    """
    with open_arrays(path) as contents:
        suffix = ".offsets"
        names = sorted(n.removesuffix(suffix) for n in contents.arrays if n.endswith(suffix))
        if not names:
            raise _NotAMapError("it has no array such as D1.offsets, which E3SM-IO writes")
        if variable is None and len(names) > 1:
            raise _NotAMapError(
                f"name one of its maps with the key 'variable' ({', '.join(names)})"
            )
        name = names[0] if variable is None else variable
        if name not in names:
            raise _NotAMapError(f"it has no map {name!r} (there are: {', '.join(names)})")
        try:
            shape = _shape(np.atleast_1d(contents.attribute(f"{name}.dims")).tolist())
        except (LookupError, AttributeError):
            raise _NotAMapError(f"the attribute {name}.dims is missing") from None
    counts, used, offsets, lengths = (
        _read_integers(path, f"{name}.{array}")
        for array in ("nreqs", "fill_starts", "offsets", "lengths")
    )
    if (used < 0).any() or (used > counts).any() or not len(used) == len(counts):
        raise _NotAMapError(f"{name}.fill_starts has numbers beyond {name}.nreqs")
    found = _map_of(shape, counts, offsets, lengths)
    place = np.arange(len(offsets)) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = place < np.repeat(used, counts)
    return DecompositionMap(shape, used, found.offsets[kept], found.lengths[kept])


def _read_integers(path: Path, key: str) -> Integers:
    found = open_variable(path, key)
    try:
        _check_memory(key, math.prod(found.shape) * found.dtype.itemsize)
        return _integers(found.read(tuple(slice(0, n) for n in found.shape)), key)
    finally:
        found.close()


def _from_text(file: BinaryIO) -> DecompositionMap:
    lines = _Lines(file)
    words = lines.following().split()
    if words[:1] != [_WORD] or words[2:3] != [b"npes"] or words[4:5] != [b"ndims"]:
        raise _NotAMapError(
            "it is neither .npz, netCDF, HDF5, nor text that begins with: version 2001 npes"
        )
    version, processes, axes = _numbers(words[1:6:2], "the first line", count=3).tolist()
    if version != _VERSION:
        raise _NotAMapError(f"version {version} of the text form is not known ({_VERSION} is)")
    if not 1 <= processes <= _MOST_PROCESSES:
        raise _NotAMapError(f"npes {processes} (1 to {_MOST_PROCESSES} are possible)")
    lengths = _numbers(lines.following().split(), "the second line", count=axes)
    shape = _shape(lengths.tolist()[::-1])  # the fastest axis is the first one there
    counts, offsets, found = np.zeros(processes, np.int64), [], []
    for process, elements in _processes(lines, processes):
        begins, amounts = _stretches(elements, math.prod(shape), process)
        counts[process] = len(begins)
        offsets.append(begins)
        found.append(amounts)
    none = np.empty(0, np.int64)
    return DecompositionMap(
        shape, counts, np.concatenate([none, *offsets]), np.concatenate([none, *found])
    )


class _Lines:
    """The lines of a text that are not blank, none longer than it can be."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        file.seek(0)

    def following(self, most: int = _SHORT_LINE) -> bytes:
        """Return the next line; empty at the end."""
        while line := self._file.readline(most + 1):
            if len(line) > most:
                raise _NotAMapError(f"a line is longer than {Size(most)}, as none there can be")
            if line.strip():
                return line
        return b""


def _processes(lines: _Lines, count: int) -> Iterator[tuple[int, Integers]]:
    """Yield each process that has elements, with their numbers as the file has them."""
    following = 0
    while following < count:
        line = lines.following()
        if not line:
            raise _NotAMapError(f"it ends before process {following} of {count}")
        if line.startswith(_TRACE):  # the processes that are left have nothing
            return
        line_of = f"the line before the elements of process {following}"
        process, elements = _numbers(line.split(), line_of, count=2).tolist()
        if not following <= process < count:
            raise _NotAMapError(
                f"process {process} stands where {following} to {count - 1} can stand"
            )
        following = process + 1
        if elements:
            words = lines.following(min(_MOST_LINE, _ELEMENT * elements + 2)).split()
            yield process, _numbers(words, f"the line of process {process}", elements)


def _numbers(words: Sequence[bytes], where: str, count: int) -> Integers:
    if len(words) != count:
        raise _NotAMapError(f"{where} has {len(words)} numbers instead of {count}")
    try:
        return np.array(words).astype(np.int64) if words else np.empty(0, np.int64)
    except (ValueError, OverflowError):
        raise _NotAMapError(f"{where} has something other than whole numbers") from None


def _stretches(elements: Integers, total: int, process: int) -> tuple[Integers, Integers]:
    """Return the stretches of elements that are numbered from 1, where 0 stands for nothing."""
    mine = np.sort(elements[elements != 0]) - 1
    if mine.size and not 0 <= mine[0] <= mine[-1] < total:
        wrong = int(mine[0] if mine[0] < 0 else mine[-1]) + 1
        raise _NotAMapError(f"process {process} has element {wrong}, and there are 1 to {total}")
    first = np.flatnonzero(np.diff(mine, prepend=-2) != 1)
    return mine[first], np.diff(first, append=mine.size)
