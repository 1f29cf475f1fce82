"""Cases whose arrays are cut by a decomposition map: rules, and the space that they need."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pffbench.backends.base import Backend
from pffbench.mpi import open_file
from pffbench.workloads.base import Impossible
from pffbench.workloads.irregular import MapFile

if TYPE_CHECKING:
    from pffbench.workloads.hyperslab import HyperslabParameters


def check_map(p: HyperslabParameters, ranks: int) -> str | None:
    """Return why arrays cannot be cut by the decomposition map of a case, or None."""
    if not isinstance(p.decomposition, MapFile):
        return None
    if reason := p.decomposition.error(ranks):
        return reason
    shape = p.decomposition.map.shape
    if p.shape_per_rank is not None or p.shape not in (None, shape):
        given = "shape_per_rank" if p.shape is None else f"shape {list(p.shape)}"
        return f"{given} is not that of the decomposition map, {list(shape)}; leave it out"
    if p.cut_unit is not None:
        return "a decomposition map says where arrays are cut; leave cut_unit out"
    if p.files_word != "one-shared":
        return "a decomposition map needs files: one and arrays: shared"
    if p.chunks == "rank_part":
        return "with a decomposition map no chunk is the part of a rank; name a chunk shape"
    if p.rearranger == "gather":
        return Impossible(
            "rearranger: gather needs parts that are boxes; a map allows box and chunk_owner"
        )
    if p.rearranger != "none" and p.decomposition.overlaps == "allow":
        return Impossible(
            "an exchange cannot send one element twice; overlaps: allow needs rearranger: none"
        )
    if (p.read_start or p.read_shape) and p.read_decomposition is None:
        return "with a decomposition map, reading another part needs a read_decomposition too"
    if p.read_decomposition is not None and p.decomposition.holes == "allow":
        return "elements that no process has cannot be read; holes: allow needs the map to read by"
    return None


def refuse_map(p: HyperslabParameters, backend: type[Backend]) -> str | None:
    """Return why a backend cannot move stretches of an array, or None."""
    if not p.irregular or p.rearranger != "none":
        return None
    if backend.capabilities.stretches:
        return _refuse_overlaps(p, backend)
    if backend.file_per == "chunk":
        return (
            f"with a decomposition map ranks share chunks, and {backend.name} loses data then; "
            "name rearranger: chunk_owner, which gives each chunk to one rank"
        )
    return f"backend {backend.name} moves boxes only; a decomposition map needs rearranger: box"


def _refuse_overlaps(p: HyperslabParameters, backend: type[Backend]) -> str | None:
    """Return that OMPIO would give ranks that read the same elements wrong ones, or None."""
    overlaps = isinstance(p.decomposition, MapFile) and p.decomposition.overlaps == "allow"
    if not (overlaps and backend.capabilities.call_per_box and p.transfer_of_reads == "collective"):
        return None
    if (version := open_file.reads_overlaps_wrongly(os.environ)) is None:
        return None
    return (
        f"OMPIO of {version} gives ranks wrong data where their boxes overlap in one collective "
        f"read, as a map with overlaps: allow has them in {backend.name}; take transfer: "
        "independent, or ROMIO (OMPI_MCA_io=^ompio)"
    )


#: Bytes of a block of a file system, of which a stretch touches one more than it fills.
_BLOCK = 4096


def elements_on_disk(p: HyperslabParameters, whole: int) -> int:
    """Return how many elements of an array of `whole` take space in files, an upper estimate.

    Holes take none in an array without chunks that each rank writes to by itself, unless a library
    fills it first. Blocks of the file system are filled by the stretches in them.
    """
    assert isinstance(p.decomposition, MapFile)
    chunked = p.settings != "matched" or p.chunks not in ("auto", "contiguous")
    if p.rearranger != "none" or chunked:
        return whole
    found, each = p.decomposition.map, p.itemsize
    touched = int(found.lengths.sum()) + 2 * found.merged_count * _BLOCK // each
    return min(found.end, touched)
