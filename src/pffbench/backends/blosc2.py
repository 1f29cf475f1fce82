"""Blosc2's own format: a store is a directory, and each array in it is a .b2nd file.

This is the model for a new backend, as `docs/contract.md` explains. It has a library that need
not be installed, options, codecs, and no file that ranks share.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from pffbench.backends.array_spec import ArraySpec, Capabilities
from pffbench.backends.base import Buffer, Call, Edges, Store
from pffbench.backends.chunk_limits import refuse_size
from pffbench.backends.directory import DirectoryArray, DirectoryBackend, OpenFilesStore
from pffbench.backends.inspection import Chunking, StoredAs
from pffbench.case import Options, Parameters, Settings
from pffbench.geometry.box import Box

if TYPE_CHECKING:
    from mpi4py import MPI

#: Blosc2's names of the compressors inside Blosc, and of the shuffles.
_CODECS = {"blosclz": "BLOSCLZ", "lz4": "LZ4", "lz4hc": "LZ4HC", "zlib": "ZLIB", "zstd": "ZSTD"}
_SHUFFLES = {"none": "NOFILTER", "byte": "SHUFFLE", "bit": "BITSHUFFLE"}
#: Bytes of a chunk at most (BLOSC2_MAX_BUFFERSIZE): its size has 32 bits.
_LARGEST_CHUNK = 2**31 - 1 - 32


class Blosc2Options(Options, frozen=True, kw_only=True):
    """Options of Blosc2; every default is the library's own."""

    #: Threads that compress and decompress. The library's default is one per core. With ``matched``
    #: each rank has one.
    threads: Annotated[int, msgspec.Meta(ge=1, le=4096)] | None = None


class Blosc2(DirectoryBackend[Blosc2Options]):
    """Arrays as .b2nd files, each of which one rank writes."""

    name = "blosc2"
    title = "Blosc2"
    summary = "Blosc2's .b2nd files through python-blosc2 (no MPI inside)"
    suffix = ".b2dir"
    libraries = ("blosc2",)
    capabilities = Capabilities(
        arrays=frozenset({"per_rank"}),
        codecs=frozenset({"none", "blosc"}),
        shuffles={"blosc": frozenset(_SHUFFLES)},
        compressors=frozenset(_CODECS),
        new_arrays=frozenset({"independent"}),
        threads=True,
    )

    def __init__(self, options: Blosc2Options, settings: Settings) -> None:
        super().__init__(options, settings)
        import blosc2

        self._library = blosc2
        self._threads = options.threads or (1 if settings == "matched" else None)
        told = self._threads or "the library's default"
        self.notes = (f"threads of Blosc2: {told}",)

    @classmethod
    def refuse(
        cls,
        parameters: Parameters,
        options: Blosc2Options,
        specs: Sequence[ArraySpec],
        edges: Edges,
    ) -> str | None:
        for spec in specs:
            if spec.chunks == "contiguous":
                return "a Blosc2 array is always chunked; name a chunk shape, rank_part or auto"
            if reason := refuse_size(spec, _LARGEST_CHUNK, "a Blosc2 chunk"):
                return reason
        return None

    def store(self, path: str, comm: MPI.Intracomm | None) -> Store:
        return Blosc2Store(self._library, self._threads, path, comm)

    def describe(self, path: str) -> StoredAs:
        array = self._library.open(os.path.join(path, min(os.listdir(path))), mode="r")
        how = array.schunk.cparams
        used = [f.name for f in how.filters if f.name != "NOFILTER"]
        codec = f"blosc-{how.codec.name.lower()} {how.clevel}" if how.clevel else "none"
        told = " ".join([codec, *(ours for ours, name in _SHUFFLES.items() if name in used)])
        return StoredAs(chunks=array.chunks, codec=told, fill="never")


class Blosc2Array(DirectoryArray):
    """One .b2nd file. Slicing it reads into a new array: the library offers no other way."""

    def write_call(self, box: Box, buffer: Buffer) -> Call:
        return partial(self._array.__setitem__, box.slices, buffer)

    def read_call(self, box: Box, out: Buffer) -> Call:
        return partial(self._array.__getitem__, box.slices)

    def layout(self, collective: bool) -> Chunking:
        compressed = self._array.schunk.cparams.clevel > 0
        return Chunking(self._array.chunks, self._spec.itemsize, compressed, cache=None)


class Blosc2Store(OpenFilesStore):
    """An open directory of .b2nd files, which are open as long as their arrays."""

    array_type = Blosc2Array

    def __init__(
        self, library: Any, threads: int | None, path: str, comm: MPI.Intracomm | None
    ) -> None:
        super().__init__(path, comm)
        self._library = library
        self._threads = {} if threads is None else {"nthreads": threads}

    def file(self, name: str) -> str:
        return os.path.join(self.path, f"{name}.b2nd")

    def create_array(self, spec: ArraySpec) -> Call:
        how: dict[str, Any] = {"cparams": self._compression(spec), "dparams": self._threads}
        if isinstance(spec.chunks, tuple):
            how["chunks"] = spec.chunks
        how |= {"urlpath": self.file(spec.name), "mode": "w-"}
        return partial(self._library.empty, spec.shape, spec.stored_dtype, **how)

    def _compression(self, spec: ArraySpec) -> dict[str, Any]:
        if spec.codec == "library":
            return self._threads
        shuffle = _SHUFFLES["none" if spec.codec == "none" else spec.shuffle]
        told = {"filters": [self._library.Filter[shuffle]], "clevel": 0, **self._threads}
        if spec.codec == "blosc":
            told |= {"codec": self._library.Codec[_CODECS[spec.compressor]], "clevel": spec.level}
        return told

    def open_array(self, spec: ArraySpec) -> Call:
        file = self.file(spec.name)
        return partial(self._library.open, file, mode="r", dparams=self._threads)
