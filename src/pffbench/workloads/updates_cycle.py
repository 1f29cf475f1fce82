"""One repetition of the workload `updates`.

    create → define → write → flush → close → sync
    reopen → reopen_array → (extend → update) for each step
    flush_update → close_update → sync_update
    open → open_array → read → close_read
    remove

With a dropped cache it is dropped before the store is opened again, too: what is changed in part
is then read from the device first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from pffbench.backends.base import Array, ArraySpec
from pffbench.data.generations import Generation, Merged
from pffbench.workloads.between import left_by_another_job, settle_cache, settle_cache_again
from pffbench.workloads.cycle import Cycle
from pffbench.workloads.ladder import (
    count_owned,
    filled,
    finish_writing,
    read_store,
    remove_store,
    write_pieces,
    write_store,
)
from pffbench.workloads.read_proof import watched_read
from pffbench.workloads.rounds import Round, turns

if TYPE_CHECKING:
    from pffbench.workloads.updates import Updates, UpdatesParameters


def run_updates(cycle: Cycle) -> None:
    """Write, change and read back; collective."""
    written = left_by_another_job(cycle) if cycle.stage == "read" else _write(cycle)
    if cycle.stage == "write":
        return
    p, workload = _parameters(cycle), cast("Updates", cycle.workload)
    settle = settle_cache_again if p.cache == "dropped" else settle_cache
    merged = Merged(cycle.source, workload.changed(p, cycle.team.size))
    with watched_read(cycle, settle(cycle, written)):
        read_store(replace(cycle, workload=workload.afterwards(), source=merged))
    remove_store(cycle)


def _parameters(cycle: Cycle) -> UpdatesParameters:
    return cast("UpdatesParameters", cycle.case.parameters)


def _write(cycle: Cycle) -> set[str]:
    """Write the store, then change it; return the files that this rank wrote to."""
    written = write_store(replace(cycle, source=Generation(cycle.source, 0)))
    if _parameters(cycle).cache == "dropped":
        settle_cache(cycle, written)
    before = cycle.observed.disk
    written |= _change(replace(cycle, source=Generation(cycle.source, 1)))
    after = cycle.observed.disk
    if before is not None and after is not None:
        cycle.observed.count("update", "grown_bytes", after.stored - before.stored)
    return written


def _change(cycle: Cycle) -> set[str]:
    """Open the store again and change what is to be changed; return the files written to."""
    p, team, clock = _parameters(cycle), cycle.team, cycle.clock
    with cycle.step("plan"):
        workload = cast("Updates", cycle.workload)
        specs = workload.arrays(p, team.size, team.rank)
        changes = workload.changes(p, team.size, team.rank)
        path, comm = cycle.path(team.rank), cycle.comm
    with clock.phase("reopen"):
        store = cycle.hold(cycle.backend.reopen(path, comm))
    mine = [spec for spec in specs if spec.owner in (None, team.rank)]
    growing = specs if store.collective_growth and p.change == "append" else mine
    needed = list(dict.fromkeys([*growing, *(access.spec for access in changes[0])]))
    wanted = specs if store.collective_lookup else needed
    with clock.phase("reopen_array", operations=count_owned(specs, team.rank)):
        arrays = store.arrays(wanted)
    rows = specs[0].shape[0] if specs else 0
    rounds = (Round(specs, accesses) for accesses in changes)
    for group in turns(team.comm, rounds, cycle.memory):
        for turn, pieces in zip(group, filled(cycle, group), strict=True):
            if turn.first and p.change == "append":
                rows += p.rows
                _extend(cycle, arrays, growing, rows)
            write_pieces(cycle, arrays, pieces, "update")
    return finish_writing(cycle, store, "_update")


def _extend(
    cycle: Cycle, arrays: Mapping[str, Array], specs: Sequence[ArraySpec], rows: int
) -> None:
    """Make arrays so many rows long."""
    with cycle.step("preparation"):
        calls = [arrays[spec.name].extender(rows) for spec in specs]
    with cycle.clock.phase("extend", operations=count_owned(specs, cycle.team.rank)):
        for call in calls:
            call()
