"""An experiment from the structure of a user's file: shapes, types, chunks, filters and sizes.

Arrays that are stored alike are one entry of the experiment; uncompressed ones that differ are a
list in one entry. No values are read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import yaml

from pffbench.backends import hdf5_files
from pffbench.backends.inspection import codec_words
from pffbench.backends.zarr.format import codecs_of, configured_name
from pffbench.case import itemsize
from pffbench.data.base import DTYPES
from pffbench.data.contents import FAILURES, MOST_NAMES, Format
from pffbench.data.readers import open_arrays
from pffbench.errors import UserError
from pffbench.parallel.decomposition import Shape
from pffbench.text import abridged, counted, has_controls, one_line, plain_name, value_text
from pffbench.units import Size
from pffbench.workloads.hyperslab import ListedArray

#: Most bytes of an entry: the formats move them many times in two minutes.
_MOST_BYTES = 64 * 2**20
#: Most entries, and the part of the file's bytes that an entry has at least.
_MOST_ENTRIES, _LEAST_PART = 3, 0.01
#: Most names that a note lists, and most axes of an array, one of which is then that of the steps.
_LISTED, _MOST_AXES = 4, 5
#: A codec as the formats name it: with compressor, level and shuffle.
_CODEC = re.compile(
    r"(none|gzip|zlib|szip|zstd|lz4|lzf|blosc)(?:-(\w+))?(?: (\d+))?(?: (byte|bit))?"
)
#: How each format stores compressed arrays: in a shared HDF5 file collectively only, and Zarr
#: without HDF5's shuffle.
_WAYS: Mapping[str, list[str]] = {
    "backend": ["hdf5", "netcdf4", "zarr"] * 2,
    "layout": ["shared"] * 3 + ["file_per_process"] * 3,
    "transfer": ["collective", "collective"] + ["independent"] * 4,
}


class FileArray(msgspec.Struct, frozen=True):
    """How an array is stored; arrays that are stored alike have equal records.

    Parameters
    ----------
    shape : tuple of int
        Its shape.
    dtype : str
        Its type, as NumPy names it.
    chunks : tuple of int or None
        Shape of a chunk; None for a contiguous array.
    codec : str
        Codec with level and shuffle, as `StoredAs.codec`.
    shards : tuple of int or None
        Shape of a shard of Zarr.
    grows : bool
        Whether the first axis is unlimited.
    unreadable : str
        Why the array cannot be read; empty if it can.
    """

    shape: Shape
    dtype: str
    chunks: Shape | None = None
    codec: str = "none"
    shards: Shape | None = None
    grows: bool = False
    unreadable: str = ""

    @property
    def nbytes(self) -> int:
        """Bytes of an array; 0 for a type that no experiment has."""
        return math.prod(self.shape) * itemsize(self.dtype) if self.dtype in DTYPES else 0

    @property
    def in_steps(self) -> bool:
        """Whether a program writes it step by step: it grows by chunks of one step."""
        if len(self.shape) == _MOST_AXES:
            return True
        alone = self.chunks is None or self.chunks[0] == 1
        return self.grows and alone and len(self.shape) > 1

    @property
    def lacking(self) -> str:
        """Why no experiment has such an array; empty where one can."""
        if self.unreadable:
            return self.unreadable
        if self.dtype not in DTYPES:
            return f"type {self.dtype}"
        if not self.shape or 0 in self.shape:
            return "no elements along an axis" if self.shape else "a single value"
        return f"more than {_MOST_AXES} axes" if len(self.shape) > _MOST_AXES else ""

    def __str__(self) -> str:
        chunks = f"chunks {value_text(self.chunks)}" if self.chunks else "contiguous"
        return f"{self.dtype} {value_text(self.shape)}, {chunks}, codec {codec_words(self.codec)}"


class Draft(msgspec.Struct, frozen=True):
    """An experiment as text, and what it does not carry over from the file."""

    text: str
    entries: tuple[str, ...]
    notes: tuple[str, ...]


def draft_experiment(path: Path) -> Draft:
    """Make an experiment of the arrays of a file.

    Raises
    ------
    UserError
        The file cannot be read or named in an experiment, or holds no array that an experiment can
        have.
    """
    if has_controls(str(path)):
        raise UserError(
            f"{one_line(str(path))}: an experiment cannot name a path with control characters or "
            "bytes that are not UTF-8; make a symbolic link with another name"
        )
    found = structure_of(path)
    alike: dict[FileArray, list[str]] = {}
    lacking: dict[str, list[str]] = {}
    for name, stored in found.items():
        if reason := stored.lacking or ("a name with control characters" * has_controls(name)):
            lacking.setdefault(reason, []).append(name)
        else:
            alike.setdefault(stored, []).append(name)
    notes = [f"not carried over ({why}): {_list_names(names)}" for why, names in lacking.items()]
    if not alike:
        raise UserError("; ".join([f"{path}: holds no array for an experiment", *notes]))
    ordered = sorted(alike, key=lambda stored: -stored.nbytes * len(alike[stored]))
    least = _LEAST_PART * sum(stored.nbytes * len(names) for stored, names in alike.items())
    taken = [s for s in ordered[:_MOST_ENTRIES] if s.nbytes * len(alike[s]) >= least]
    if left := [name for stored in ordered[len(taken) :] for name in alike[stored]]:
        notes.append(f"left out, smaller than the others: {_list_names(left)}")
    if len(found) > MOST_NAMES:
        notes.append(f"only the first {len(found)} arrays of the file were looked at")
    entries = [_Entry(path, stored, alike[stored]) for stored in taken]
    notes += [note for entry in entries for note in entry.notes()]
    notes.append("attributes, dimensions and groups are not part of an experiment")
    cases = _cases(entries)
    return Draft(_write_yaml(path, cases, notes), tuple(map(str, entries)), tuple(notes))


def structure_of(path: Path) -> dict[str, FileArray]:
    """Return how each array of a file is stored, by its name."""
    with open_arrays(path) as contents:
        stored = {name: _describe(contents.kind, a) for name, a in contents.arrays.items()}
        others = {name: FileArray((), "", unreadable=w) for name, w in contents.unreadable.items()}
        return stored | others


def _describe(kind: Format, array: Any) -> FileArray:
    try:
        return _read_description(kind, array)
    except FAILURES:  # such as a type that NumPy has not
        return FileArray((), "unknown")


def _read_description(kind: Format, array: Any) -> FileArray:
    shape = tuple(map(int, array.shape or ()))
    dtype = _name_type(np.dtype(array.dtype))
    if kind == "hdf5":
        grows = bool(array.maxshape) and array.maxshape[0] is None
        return FileArray(shape, dtype, array.chunks, _name_hdf5_codec(array), grows=grows)
    if kind == "zarr":
        return FileArray(shape, dtype, array.chunks, _name_zarr_codec(array), array.shards)
    return FileArray(shape, dtype, grows=kind == "classic" and array.grows)


def _name_type(dtype: np.dtype[Any]) -> str:
    """Return the name of a type as NumPy has it, or in words where that says nothing."""
    words = {"O": "variable length", "S": "text", "V": "opaque"}
    told = "compound" if dtype.fields else words.get(dtype.kind)
    return told or dtype.newbyteorder("=").name


def _name_hdf5_codec(dataset: Any) -> str:
    creation = dataset.id.get_create_plist()
    filters = [creation.get_filter(n) for n in range(creation.get_nfilters())]
    plain = (hdf5_files.SHUFFLE, hdf5_files.FLETCHER32)
    if len([number for number, *_ in filters if number not in plain]) > 1:
        return "several filters"
    return hdf5_files.codec_name((number, values) for number, _, values, _ in filters)


def _name_zarr_codec(array: Any) -> str:
    metadata = array.metadata.to_dict()
    codecs, _ = codecs_of(metadata)
    if metadata.get("filters") or len(codecs) > 1:
        return "several filters"
    return configured_name(*codecs[0]) if codecs else "none"


class _Entry:
    """The entry of arrays that are stored alike, as small as a run of two minutes needs.

    Parameters
    ----------
    path : Path
        The file.
    stored : FileArray
        How they are stored.
    names : sequence of str
        Their names.
    """

    def __init__(self, path: Path, stored: FileArray, names: Sequence[str]) -> None:
        self._path, self._stored, self._names = path, stored, names
        self._codec = _CODEC.fullmatch(stored.codec)
        inside = zip(stored.shards or (), stored.shape, strict=False)
        self._shards = stored.shards if all(s <= n for s, n in inside) else None
        self._arrays = max(1, min(len(names), _MOST_BYTES // stored.nbytes))
        self._shape = _shorten(stored, self._shards)

    def __str__(self) -> str:
        return f"{counted(len(self._names), 'array')} of {self._stored}: {_list_names(self._names)}"

    @property
    def listed_with(self) -> object:
        """What entries have in common that can be one list of arrays; None where it cannot be."""
        if self._compressed or self._shards:  # a list has no data of a file, and no shards
            return None
        return "steps", self._shape[0] * self._stored.in_steps

    def name(self, used: set[str]) -> str:
        """Return a name that a list of arrays may have, and add its names to the used ones."""
        last = re.sub(r"\W", "_", self._names[0].rpartition("/")[2], flags=re.ASCII)[:48]
        for number in count():
            name = last if last[:1].isalpha() and not number else f"a{number}_{last}"
            names = ListedArray(name, count=self._arrays).names
            if used.isdisjoint(names):
                used.update(names)
                return name
        raise AssertionError

    def keys(self) -> dict[str, Any]:
        """Return the keys of the entry."""
        stored = self._stored
        inner = self._shape[stored.in_steps :]
        keys: dict[str, Any] = {"workload": "codecs" if stored.chunks else "hyperslab"}
        keys |= {"arrays": self._arrays} if self._arrays > 1 else {}
        keys |= {"steps": self._shape[0]} if stored.in_steps else {}
        keys |= {"shape": list(inner), "dtype": stored.dtype}
        if stored.chunks:
            # A library's chunk may reach beyond the array, an experiment's may not.
            chunks = [min(c, n) for c, n in zip(stored.chunks, self._shape, strict=True)]
            keys |= {"chunks": chunks, "decomposition": "block"}
        if self._shards:
            keys |= {"cut_unit": list(self._shards[-len(inner) :])}
            keys |= {"zarr": {"shards": list(self._shards)}}
        if self._compressed:
            return keys | self._compression()
        ways = ("backend", "layout")  # all combinations of which are possible
        return keys | {name: list(dict.fromkeys(_WAYS[name])) for name in ways}

    @property
    def _compressed(self) -> bool:
        return self._codec is not None and self._codec[1] != "none"

    def _compression(self) -> dict[str, Any]:
        """Return the keys of the codec, of the data, whose values matter then, and of the ways."""
        assert self._codec is not None
        codec, compressor, level, shuffle = self._codec.groups()
        keys: dict[str, Any] = {"codec": "gzip" if codec == "zlib" else codec}
        keys |= {"compressor": compressor} if compressor else {}
        keys |= {"level": int(level)} if level and (int(level) or codec != "zstd") else {}
        keys |= {"source": "file", "file": str(self._path)}
        keys |= {"variable": self._names[0]} if self._names[0] else {}
        ways = {name: list(values) for name, values in _WAYS.items()}
        if codec == "blosc":
            keys |= {"shuffle": shuffle or "none"}
        elif shuffle:
            ways |= {"shuffle": [shuffle, shuffle, "none"] * 2}
        return keys | ways | {"zip": list(ways)}

    def notes(self) -> Iterator[str]:
        """Yield what the entry has otherwise than the file."""
        name, stored = _list_names(self._names), self._stored
        if len(self._names) > self._arrays or self._shape != stored.shape:
            whole = Size(stored.nbytes * len(self._names))
            some = self._arrays * math.prod(self._shape) * itemsize(stored.dtype)
            yield (
                f"{name}: {Size(some)} in place of {whole}, for a run of two minutes; for more, "
                "raise arrays, steps or shape"
            )
        if self._codec is None:
            yield f"{name}: no experiment has {stored.codec}; measured without compression"
        if self._compressed and len(self._names) > 1:
            yield f"{name}: all have the values of {one_line(self._names[0])}"
        if not stored.chunks:
            yield f"{name}: contiguous in the file; here a chunk is the part of a rank"
        if self._shards != stored.shards:
            yield f"{name}: shards are larger than the array, and left out"
        if self._codec is not None and self._codec[4] and self._codec[1] != "blosc":
            yield f"{name}: Zarr has no shuffle before {self._codec[1]}, and is measured without"


#: Keys that each array of a list has.
_OF_ARRAY = ("shape", "dtype", "chunks", "decomposition")


def _cases(entries: Sequence[_Entry]) -> list[dict[str, Any]]:
    """Return the keys of each entry; those of several that can be one list together."""
    cases: list[dict[str, Any]] = []
    lists: dict[object, list[_Entry]] = {}
    for entry in entries:
        lists.setdefault(entry.listed_with or entry, []).append(entry)
    for members in lists.values():
        each = [entry.keys() for entry in members]
        if len(each) == 1:
            cases += each
            continue
        used: set[str] = set()
        arrays = [
            {"name": entry.name(used)}
            | {key: keys[key] for key in _OF_ARRAY if key in keys}
            | ({"count": keys["arrays"]} if "arrays" in keys else {})
            for entry, keys in zip(members, each, strict=True)
        ]
        workload = min(keys["workload"] for keys in each)  # codecs, where one has chunks
        common = {k: v for k, v in each[0].items() if k not in _OF_ARRAY}
        cases.append(common | {"workload": workload, "arrays": arrays})
    return cases


def _shorten(stored: FileArray, shards: Shape | None) -> Shape:
    """Return the shape, with the first axes cut to whole chunks where it has too many bytes."""
    shape = list(stored.shape)
    for axis, unit in enumerate(shards or stored.chunks or (1,) * len(shape)):
        rest = math.prod(shape) // shape[axis] * itemsize(stored.dtype)
        shape[axis] = min(shape[axis], max(1, _MOST_BYTES // (rest * unit)) * unit)
    return tuple(shape)


def _list_names(names: Sequence[str]) -> str:
    return abridged([one_line(name or "the array", 60) for name in names], _LISTED, ", ")


def _write_yaml(path: Path, cases: list[dict[str, Any]], notes: Sequence[str]) -> str:
    """Return the experiment as YAML, with the notes as its first lines."""
    experiment = {
        "name": plain_name(path.name.partition(".")[0]) or "file",
        "question": f"Which format suits arrays as in {one_line(path.name, 80)}?",
        "time_budget": "120 s",
        "impossible": "skip",
        "common": {"durability": "sync"},
        "cases": cases,
    }
    head = "".join(
        f"# {note}\n" for note in (f"Made by pffbench init {one_line(str(path))}", *notes)
    )
    return head + yaml.dump(
        experiment, Dumper=yaml.SafeDumper, sort_keys=False, allow_unicode=True, width=100,
        default_flow_style=None,
    )  # fmt: skip
