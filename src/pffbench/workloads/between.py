"""Between writing and reading: which files there are, and what the page cache holds of them."""

from __future__ import annotations

from pffbench.storage.cachestate import CacheProof, bring_about, leave_a_copy
from pffbench.storage.durable import files_below
from pffbench.workloads.cycle import Cycle


def left_by_another_job(cycle: Cycle) -> set[str]:
    """Find the files that this rank is to read; those that all ranks share, once per node."""
    found: set[str] = set()
    with cycle.step("files"):
        looks = cycle.alone or cycle.team.is_leader
        if looks and cycle.backend.capabilities.keeps_data:
            found.update(files_below([cycle.path(cycle.reader_of)]))
    return found


def settle_cache(cycle: Cycle, written: set[str]) -> set[str]:
    """Bring about and measure the state of the page cache before reading.

    Returns
    -------
    set of str
        The files that this rank is going to read: those that it or another rank wrote, or copies.
    """
    if cycle.case.parameters.cache == "copied":
        written = _copied(cycle)
    cycle.clock.tell("cache")  # whatever can fail in it is a step that ranks agree on
    cycle.observed.cache, to_read = _prepare_cache(cycle, written)
    return to_read


def settle_cache_again(cycle: Cycle, written: set[str]) -> set[str]:
    """Do it once more in one repetition; of both proofs the one with more resident counts."""
    before = cycle.observed.cache
    to_read = settle_cache(cycle, written)
    after = cycle.observed.cache
    if before is not None and after is not None and before.fraction > after.fraction:
        cycle.observed.cache = before
    return to_read


def _prepare_cache(cycle: Cycle, written: set[str]) -> tuple[CacheProof, set[str]]:
    """Bring about the cache state for the files that this rank is going to read."""
    comm, cache = cycle.team.comm, cycle.case.parameters.cache
    to_read = written
    if cycle.workload.reads_elsewhere(cycle.case.parameters):
        to_read = set().union(*comm.allgather(written))
    elif cache == "shifted":
        reader = cycle.team.topology.partners.index(cycle.team.rank)
        to_read = comm.sendrecv(written, dest=reader, source=cycle.reader_of)
    return bring_about(cycle.team, cache, written, to_read, cycle.drop_hook), to_read


def _copied(cycle: Cycle) -> set[str]:
    """Let whoever has a store to itself, or rank 0, copy it; return the files of the copy."""
    team, keeps_data = cycle.team, cycle.backend.capabilities.keeps_data
    found: set[str] = set()
    with cycle.step("copying"):
        if keeps_data and (cycle.alone or team.is_root):
            leave_a_copy(cycle.path(team.rank))
    with cycle.step("files"):
        if keeps_data:
            found.update(files_below([cycle.read_path(team.rank)]))
    return found
