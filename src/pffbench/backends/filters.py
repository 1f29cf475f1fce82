"""Compression filters of HDF5 and netCDF-4 files: their numbers and parameters.

zlib and szip are built into HDF5, LZF into h5py; Blosc, Zstandard and LZ4 are plug-ins, registered
with The HDF Group (https://github.com/HDFGroup/hdf5_plugins), that the Python package hdf5plugin
brings. Filters of files that ranks share run in collective transfers only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pffbench.backends.base import ArraySpec
from pffbench.case import Parameters

#: Numbers of the filters in files; the first four are HDF5's own.
DEFLATE, SHUFFLE, FLETCHER32, SZIP = 1, 2, 3, 4
LZF, BLOSC, LZ4, ZSTD = 32000, 32001, 32004, 32015
#: Pixels of a block of szip; 8, as h5py has it, which any chunk of some size can be cut into.
SZIP_BLOCK = 8
#: What Blosc calls its compressors and shuffles in a filter's parameters.
_COMPRESSORS = ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd")
_SHUFFLES = ("none", "byte", "bit")

#: What can be asked for in HDF5 and in netCDF-4: codecs, the shuffles of each, what Blosc calls
#: its compressors, and the package that a codec needs.
CODECS = frozenset({"none", "gzip", "szip", "zstd", "lz4", "blosc"})
#: What h5py has beside: other programs that read HDF5 files mostly have not.
CODECS_OF_H5PY = frozenset({"lzf"})
_BYTE = frozenset({"none", "byte"})
SHUFFLES: Mapping[str, frozenset[str]] = {
    "gzip": _BYTE,
    "zstd": _BYTE,
    "lz4": _BYTE,
    "lzf": _BYTE,
    "blosc": frozenset(_SHUFFLES),
}
COMPRESSORS = frozenset({"blosclz", "lz4", "lz4hc", "zlib", "zstd"})
CODEC_LIBRARIES: Mapping[str, str] = dict.fromkeys(("blosc", "lz4", "zstd"), "hdf5plugin")


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of a dataset.

    Parameters
    ----------
    number : int
        Its registered number.
    values : tuple of int
        Its parameters.
    """

    number: int
    values: tuple[int, ...]


def plugin_filter(spec: ArraySpec) -> Filter | None:
    """Return the filter of a codec that HDF5 has from a plug-in; None of those built in."""
    if spec.codec == "zstd":
        return Filter(ZSTD, (spec.level,))
    if spec.codec == "lz4":
        return Filter(LZ4, (0,))  # bytes of a block: the filter's own default
    if spec.codec == "blosc":
        shuffle = _SHUFFLES.index(spec.shuffle)
        # The filter fills the first four in itself: versions, type size, chunk size.
        return Filter(BLOSC, (0, 0, 0, 0, spec.level, shuffle, _COMPRESSORS.index(spec.compressor)))
    return None


def refuse_filters(parameters: Parameters, specs: Iterable[ArraySpec]) -> str | None:
    """Refuse data that a filter gives up on where the file does not come out right, or None."""
    gives_up = any(spec.codec in ("szip", "lzf", "blosc") for spec in specs)
    if parameters.source == "uniform" and gives_up and parameters.layout != "file_per_process":
        return (
            f"codec {parameters.codec} leaves chunks that it cannot make smaller as they are, and "
            "parallel HDF5 does not note that in the file, which cannot be read then (so HDF5 "
            "1.10.8); source: uniform needs codec gzip, zstd or lz4"
        )
    return None


def shuffles_before(spec: ArraySpec) -> bool:
    """Whether HDF5's own byte shuffle stands before the compression; Blosc shuffles by itself."""
    return spec.shuffle == "byte" and spec.codec != "blosc"


def codec_name(filters: Iterable[tuple[int, Sequence[int]]]) -> str:
    """Return the codec of a dataset with level and shuffle, by the filters that its file names."""
    shuffled, found = "", "none"
    for number, values in filters:
        if number == SHUFFLE:
            shuffled = " byte"
        elif number != FLETCHER32:
            found = _named(number, values)
    return found + shuffled


def _named(number: int, values: Sequence[int]) -> str:
    if number == BLOSC and len(values) > 6:
        shuffle = _SHUFFLES[values[5]]
        shuffled = "" if shuffle == "none" else f" {shuffle}"
        return f"blosc-{_COMPRESSORS[values[6]]} {values[4]}{shuffled}"
    names = {DEFLATE: "gzip", SZIP: "szip", ZSTD: "zstd", LZ4: "lz4", LZF: "lzf"}
    name = names.get(number, f"filter {number}")
    return f"{name} {values[0]}" if number in (DEFLATE, ZSTD) and values else name
