"""An entry of an experiment: arrays that are stored alike, and the ways to store them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from pffbench.case import LEVELS, Compressor
from pffbench.data.readers import open_variable
from pffbench.draft.shapes import (
    MOST_STEPS,
    MOST_UNITS,
    count_units,
    first_chunks,
    other_chunks,
    shorten,
)
from pffbench.draft.structure import MOST_AXES, FileArray
from pffbench.errors import UserError
from pffbench.geometry.box import Shape
from pffbench.text import abridged, counted, one_line, value_text
from pffbench.units import Size

#: Most arrays of an entry, and names that a note lists.
_MOST_ARRAYS, _LISTED = 100, 4
#: Largest chunk in bytes that is read to find out whether the values can be.
_LARGEST_READ = 64 * 2**20
#: A codec as the formats name it: with compressor, level and shuffle.
_CODEC = re.compile(r"(gzip|zlib|szip|zstd|lz4|lzf|blosc)(?:-(\w+))?(?: (-?\d+))?(?: (byte|bit))?")
#: What uncompressed arrays are compared with.
_USUAL_CODEC: Mapping[str, Any] = {"codec": "gzip", "level": 4, "shuffle": "byte"}
#: The formats in one file and in many. A shared HDF5 file takes compressed data collectively only.
_WAYS: Mapping[str, list[str]] = {
    "backend": ["hdf5", "netcdf4", "zarr"] * 2,
    "files": ["one"] * 3 + ["per_rank"] * 3,
    "transfer": ["collective", "collective"] + ["independent"] * 4,
}


class Entry:
    """The entry of arrays that are stored alike, as small as a run of minutes needs.

    Parameters
    ----------
    path : Path
        The file.
    stored : FileArray
        How they are stored.
    names : sequence of str
        Their names.
    most_bytes : int
        Most bytes of the entry.
    swept : bool
        Whether the experiment compares two chunk shapes and a codec with none.
    """

    def __init__(
        self, path: Path, stored: FileArray, names: Sequence[str], most_bytes: int, *, swept: bool
    ) -> None:
        self.names = names
        self._path, self._stored, self._swept = path, stored, swept
        self._steps = int(_written_in_steps(stored))
        self._shape, self._shards, self._chunks = _cut(stored, self._steps, most_bytes)
        self._other = self._other_chunks() if swept else None
        self._arrays = self._count_arrays(most_bytes)
        self._codec = _codec_keys(stored.codec)
        reads = swept or self._codec is not None
        self._unread = _reason_not_read(path, names[0], stored) if reads else None
        self._reads = reads and self._unread is None

    def __str__(self) -> str:
        return f"{counted(len(self.names), 'array')} of {self._stored}: {list_names(self.names)}"

    @property
    def sweeps(self) -> str:
        """What the experiment compares for these arrays, in words."""
        chunks = self._chunk_values
        shapes = " and ".join(c if isinstance(c, str) else value_text(c) for c in chunks)
        codecs = self._codec_values["codec"] if self._codec_values else "none"
        named = " and ".join(codecs if isinstance(codecs, list) else [codecs])
        return f"chunks {shapes or 'rank_part'}, codec {named}, one file and a file for each rank"

    def keys(self) -> dict[str, Any]:
        """Return the keys of the entry."""
        keys: dict[str, Any] = {"datasets": self._arrays} if self._arrays > 1 else {}
        keys |= {"steps": self._shape[0]} if self._steps else {}
        keys |= {"shape": list(self._shape[self._steps :]), "dtype": self._stored.dtype}
        if values := self._chunk_values:
            keys["chunks"] = values if len(values) > 1 else values[0]
        if unit := self._unit:
            keys |= {"cut_unit": list(unit), "decomposition": self._decomposition}
        if self._shards:
            keys["zarr"] = {"shards": list(self._shards)}
        if self._reads:
            keys |= {"source": "file", "file": str(self._path)}
            keys |= {"variable": self.names[0]} if self.names[0] else {}
        elif self._unread is not None:
            keys["source"] = "smooth"
        ways = {name: list(values) for name, values in _WAYS.items()}
        return keys | self._codec_values | ways | {"zip": list(ways)}

    @property
    def _chunk_values(self) -> list[Any]:
        """The values of the key ``chunks``; empty if it is not given."""
        if not self._chunks and not self._other:
            return []
        first = list(self._chunks) if self._chunks else "rank_part"
        return [first, list(self._other)] if self._other else [first]

    @property
    def _decomposition(self) -> str:
        """By blocks, or by slabs if only the first axis has several units, one of each rank."""
        inner, unit = self._shape[self._steps :], self._unit or ()
        several = [n > u for n, u in zip(inner, unit, strict=True)]
        return "block" if any(several[1:]) else "slab"

    @property
    def _unit(self) -> Shape | None:
        """What ranks hold whole multiples of, so that no two of them share a chunk or shard."""
        if self._shards:
            return self._shards[self._steps :]
        shapes = [shape for shape in (self._chunks, self._other) if shape]
        return tuple(map(max, zip(*shapes, strict=True)))[self._steps :] if shapes else None

    @property
    def _codec_values(self) -> dict[str, Any]:
        """The keys of the codec, which is compared with none; empty if there is none."""
        if not self._swept:
            return self._codec or {}
        if self._codec is None:
            usual = dict(_USUAL_CODEC)
            if self._stored.itemsize == 1:  # whose bytes a shuffle leaves in place
                del usual["shuffle"]
            return usual | {"codec": ["none", usual["codec"]]}
        return self._codec | {"codec": [self._codec["codec"], "none"]}

    @property
    def _change_of_chunks(self) -> str:
        """What becomes of chunks that the experiment cannot have, in words."""
        chunks = self._stored.chunks or ()
        beyond = any(c > n for c, n in zip(chunks, self._stored.shape, strict=True))
        why = "reach beyond the array" if beyond else "hold the whole array of the experiment"
        if self._chunks:
            return f"{why} and are cut to {value_text(self._chunks)}"
        return f"{why}, so a chunk is the part of a rank"

    def _other_chunks(self) -> Shape | None:
        itemsize = self._stored.itemsize
        if not self._chunks:
            return first_chunks(self._shape, self._steps, itemsize)
        if self._shards and self._shards != self._chunks:
            return self._shards
        return other_chunks(self._chunks, self._shape, self._steps, itemsize)

    def _count_arrays(self, most_bytes: int) -> int:
        nbytes = math.prod(self._shape) * self._stored.itemsize
        calls = self._shape[0] if self._steps else 1
        shapes = [shape for shape in (self._chunks, self._other) if shape]
        units = [count_units(self._shape, shape) for shape in shapes]
        most = min(_MOST_ARRAYS, most_bytes // nbytes, MOST_UNITS // max(calls, *units, 1))
        return max(1, min(len(self.names), most))

    def notes(self) -> Iterator[str]:
        """Yield what the entry has otherwise than the file."""
        name, stored = list_names(self.names), self._stored
        if len(self.names) > self._arrays or self._shape != stored.shape:
            whole = Size(stored.nbytes * len(self.names))
            some = self._arrays * math.prod(self._shape) * stored.itemsize
            yield (
                f"{name}: {Size(some)} in place of {whole}, for a run of minutes (to change that, "
                "edit arrays, steps or shape)"
            )
        if stored.chunks and self._chunks != stored.chunks:
            yield f"{name}: chunks of {value_text(stored.chunks)} {self._change_of_chunks}"
        if not stored.chunks:
            yield f"{name}: contiguous in the file, in chunks of one rank each in the experiment"
        if stored.in_steps and not self._steps:
            yield f"{name}: all steps are written at once, because a chunk holds whole steps"
        if self._shards != stored.shards:
            yield f"{name}: shards hold the whole array of the experiment, and are left out"
        if self._reads and len(self.names) > 1:
            yield f"{name}: all have the values of {one_line(self.names[0])}"
        if self._unread is not None:
            yield f"{name}: generated values in place of those of the file ({self._unread})"
        yield from self._notes_on_codec(name)

    def _notes_on_codec(self, name: str) -> Iterator[str]:
        stored = self._stored.codec
        if self._codec is None:
            if stored != "none":
                more = " and with gzip" if self._swept else ""
                yield f"{name}: no key for {stored}, so measured without compression{more}"
            return
        told = _CODEC.fullmatch(stored)
        level = int(told[3]) if told and told[3] else None
        if level is not None and level != self._codec.get("level", level):
            least, most = LEVELS[self._codec["codec"]]
            yield (
                f"{name}: level {level} is outside of {least} to {most}, so measured with "
                f"{self._codec['level']}"
            )


def list_names(names: Sequence[str]) -> str:
    """Return the first names of arrays, and how many more there are."""
    return abridged([one_line(name or "the array", 60) for name in names], _LISTED, ", ")


def _written_in_steps(stored: FileArray) -> bool:
    """Whether the experiment writes arrays step by step: if several ranks have chunks of a step."""
    if len(stored.shape) == MOST_AXES:  # the key shape has fewer
        return True
    several = stored.chunks is None or count_units(stored.shape[1:], stored.chunks[1:]) > 1
    return stored.in_steps and several


def _cut(
    stored: FileArray, steps: int, most_bytes: int
) -> tuple[Shape, Shape | None, Shape | None]:
    """Return the shape of the arrays, and their shards and chunks where ranks can share them out.

    A chunk that holds all of an array, or of a step, would leave all ranks but one without data.
    """
    whole = stored.shards or stored.chunks or ()
    unit = tuple(map(min, zip(whole, stored.shape, strict=False)))
    fits = bool(unit) and math.prod(unit) * stored.itemsize <= most_bytes
    if not fits:
        unit = (1,) * len(stored.shape)
    shape = shorten(stored.shape, unit, stored.itemsize, most_bytes, counted=fits)
    if steps:
        shape = (min(shape[0], MOST_UNITS if stored.chunks else MOST_STEPS), *shape[1:])
    for whole in filter(None, (stored.shards, stored.chunks) if fits else ()):
        unit = tuple(map(min, zip(whole, shape, strict=True)))
        if count_units(shape[steps:], unit[steps:]) == 1:
            continue
        if whole != stored.shards:
            return shape, None, unit
        if unit == whole:
            return shape, whole, stored.chunks
    return shape, None, None


def _codec_keys(codec: str) -> dict[str, Any] | None:
    """Return the keys of a codec; None for none, and for one that no key names."""
    told = _CODEC.fullmatch(codec)
    if told is None or told[2] not in (None, *get_args(Compressor)):
        return None
    name, compressor, level, shuffle = told.groups()
    name = "gzip" if name == "zlib" else name
    keys: dict[str, Any] = {"codec": name}
    if compressor:
        keys["compressor"] = compressor
    if level and name in LEVELS and (int(level) or name != "zstd"):  # 0 is the usual one there
        least, most = LEVELS[name]
        keys["level"] = min(max(int(level), least), most)
    if shuffle or name == "blosc":
        keys["shuffle"] = shuffle or "none"
    return keys


def _reason_not_read(path: Path, name: str, stored: FileArray) -> str | None:
    """Return why the values of an array cannot be read, as one element shows, or None."""
    unit = stored.chunks or (1,)
    if math.prod(unit) * stored.itemsize > _LARGEST_READ:
        return None
    try:
        variable = open_variable(path, name or None)
        try:
            variable.read((slice(0, 1),) * len(stored.shape))
        finally:
            variable.close()
    except UserError as error:
        return one_line(str(error).removeprefix(f"{path}: "), 160)
    return None
