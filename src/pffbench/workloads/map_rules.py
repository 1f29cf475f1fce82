"""Cases whose arrays are cut by a decomposition map: rules, data, and the space that they need."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pffbench.backends.base import Backend
from pffbench.data.views import Gathered
from pffbench.geometry.maps import Consecutive
from pffbench.mpi import open_file
from pffbench.workloads.base import Impossible

if TYPE_CHECKING:
    from pffbench.data import Source
    from pffbench.geometry.box import Shape
    from pffbench.workloads.arrays import CaseArrays
    from pffbench.workloads.listed import ArrayParameters


def check_map(p: ArrayParameters, ranks: int, *, rows: bool = False) -> str | None:
    """Return why arrays cannot be cut by the decomposition map of a case, or None.

    Parameters
    ----------
    p : ArrayParameters
        The case, with arrays of one kind.
    ranks : int
        Number of ranks.
    rows : bool
        Whether the map is one of each row of an array.
    """
    if p.map_file is None:
        return None
    if reason := p.map_file.error(ranks):
        return reason
    if reason := _check_shape(p, p.map_file.map.shape, rows=rows):
        return reason
    if not p.irregular:
        return None
    if p.chunks == "rank_part":
        return "with a decomposition map no chunk is the part of a rank; name a chunk shape"
    if p.rearranger == "gather":
        return Impossible(
            "rearranger: gather needs parts that are boxes; a map allows box and chunk_owner"
        )
    if p.rearranger != "none" and p.map_file.overlaps == "allow":
        return Impossible(
            "an exchange cannot send one element twice; overlaps: allow needs rearranger: none"
        )
    return None


def _check_shape(p: ArrayParameters, shape: Shape, *, rows: bool) -> str | None:
    """Return that the shape of a case is not that of its map, or None."""
    given, keys = p.given_shape, p.shape_keys
    if given is None and not rows:
        return None
    if keys == ("shape",) and given is not None and given[1 if rows else 0 :] == shape:
        return None
    if rows:
        return (
            f"each row has the shape of the decomposition map; give shape: [rows, {_list(shape)}]"
        )
    what = f"shape {list(given or ())}" if keys == ("shape",) else keys[-1]
    return f"{what} is not that of the decomposition map, {list(shape)}; leave it out"


def _list(shape: Shape) -> str:
    return ", ".join(map(str, shape))


def refuse_map(p: ArrayParameters, backend: type[Backend]) -> str | None:
    """Return why a backend cannot move stretches of an array, or None."""
    reason = _refuse_stretches(p, backend) if p.irregular and p.rearranger == "none" else None
    return None if reason is None else Impossible(reason)


def _refuse_stretches(p: ArrayParameters, backend: type[Backend]) -> str | None:
    if backend.capabilities.stretches:
        return _refuse_overlaps(p, backend)
    if backend.file_per == "chunk":
        return (
            f"with a decomposition map ranks share chunks, and {backend.name} loses data then; "
            "name rearranger: chunk_owner, which gives each chunk to one rank"
        )
    return f"backend {backend.name} moves boxes only; a decomposition map needs rearranger: box"


def _refuse_overlaps(p: ArrayParameters, backend: type[Backend]) -> str | None:
    """Return that OMPIO would give ranks that read the same elements wrong ones, or None."""
    overlaps = p.map_file is not None and p.map_file.overlaps == "allow"
    if not (overlaps and backend.capabilities.call_per_box and p.transfer_of_reads == "collective"):
        return None
    if (version := open_file.reads_overlaps_wrongly(os.environ)) is None:
        return None
    return (
        f"OMPIO of {version} gives ranks wrong data where their boxes overlap in one collective "
        f"read, as a map with overlaps: allow has them in {backend.name}; take transfer: "
        "independent, or ROMIO (OMPI_MCA_io=^ompio)"
    )


def in_stored_order(source: Source, arrays: CaseArrays) -> Source:
    """Return data of a user's array in the order in which files have its elements."""
    family = arrays.families[0]  # a case of a user's array has one kind
    if not isinstance(family.cut, Consecutive):
        return source
    lead: Shape = () if family.steps is None else (family.steps,)
    return Gathered(source, (*lead, *family.cut.map.shape), *family.cut.stretches)


#: Bytes of a block of a file system, of which a stretch touches one more than it fills.
_BLOCK = 4096


def elements_on_disk(p: ArrayParameters, whole: int) -> int:
    """Return how many elements of an array of `whole` take space in files, an upper estimate.

    Holes take none in an array without chunks that each rank writes to by itself, unless a library
    fills it first. Blocks of the file system are filled by the stretches in them.
    """
    assert p.map_file is not None
    chunked = p.settings != "matched" or p.chunks not in ("auto", "contiguous")
    if p.rearranger != "none" or chunked:
        return whole
    found, each = p.map_file.map, p.itemsize
    touched = int(found.lengths.sum()) + 2 * found.merged_count * _BLOCK // each
    return min(found.end, touched)
