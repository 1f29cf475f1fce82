"""One repetition of the workload `chunk_cache`: written, repacked if wanted, read, counted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from pffbench.workloads.between import left_by_another_job, settle_cache
from pffbench.workloads.cycle import Cycle
from pffbench.workloads.decodes import Decodes
from pffbench.workloads.ladder import (
    read_store,
    remove_store,
    write_store,
)
from pffbench.workloads.read_proof import watched_read
from pffbench.workloads.repack import note_storage, repack_by_library, repack_by_program

if TYPE_CHECKING:
    from pffbench.workloads.chunk_cache import ChunkCacheParameters


def run_chunk_cache(cycle: Cycle) -> None:
    """Write granules, rewrite the store with other chunks, read it and count decodes; collective.

    The rungs are those of `write_read_cycle`, with ``repack`` between writing and reading. What
    is read may be another store than was written, by another transfer: that is a second `Cycle`
    of the same repetition.
    """
    anew = _as_read(cycle)
    if cycle.stage == "read":
        written = left_by_another_job(anew)
    else:
        written = write_store(cycle, look=Decodes(cycle).after_writing)
        if anew.label:
            written = _repack(cycle, anew)
    if cycle.stage == "write":
        return
    decodes = Decodes(anew)
    with watched_read(anew, settle_cache(anew, written)):
        read_store(anew, look=decodes.after_reading)
    decodes.count()
    remove_store(anew)


def _as_read(cycle: Cycle) -> Cycle:
    """Return the same repetition with the store that is read, and how it is read."""
    p = _parameters(cycle)
    return replace(
        cycle,
        case=replace(cycle.case, parameters=p.as_read()),
        label="-repacked" if p.repacks else "",
    )


def _repack(cycle: Cycle, anew: Cycle) -> set[str]:
    p, team = _parameters(cycle), cycle.team
    if p.repack_with == "library":
        granules = msgspec.structs.replace(p, chunks=p.shape, write="chunks")
        copies = cycle.workload.writes(granules, team.size, team.rank)
        written = repack_by_library(cycle, anew, copies)
    else:
        written = repack_by_program(cycle, anew, p.repack_datasets)
    note_storage(anew)
    return written


def _parameters(cycle: Cycle) -> ChunkCacheParameters:
    from pffbench.workloads.chunk_cache import ChunkCacheParameters

    p = cycle.case.parameters
    assert isinstance(p, ChunkCacheParameters)
    return p
