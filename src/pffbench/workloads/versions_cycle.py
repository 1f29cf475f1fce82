"""One repetition of the workload `versions`: each version is staged, committed and flushed.

    create → (write → commit → flush) for each version → close → sync
    open → open_array → read → close_read              the latest version
    look_up_…, read_…                                  the first, the middle one, all of them
    remove

Each of the targets is read through an open store of its own; with a dropped cache, after dropping
it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, cast

import numpy as np

from pffbench.backends.base import Store
from pffbench.data.verify import Mismatch
from pffbench.storage.durable import disk_usage, files_below
from pffbench.versioning.history import COLUMNS, Table, Values, Version
from pffbench.versioning.keeper import Keeper, Keeping, Recalling
from pffbench.workloads.between import left_by_another_job, settle_cache_again
from pffbench.workloads.cycle import Cycle
from pffbench.workloads.ladder import remove_store, sync_store
from pffbench.workloads.read_proof import POISON, watched_read
from pffbench.workloads.versions_counts import Tally, count_kept, count_times

if TYPE_CHECKING:
    from pffbench.workloads.versions import VersionsParameters


def run_versions(cycle: Cycle) -> None:
    """Write all versions, then read some of them back; collective."""
    with cycle.step("keeper"):
        p = _parameters(cycle)
        keeper = p.keeper(p.storage, cycle.case.options)
    written = left_by_another_job(cycle) if cycle.stage == "read" else _write(cycle, keeper)
    if cycle.stage == "write":
        return
    with watched_read(cycle, written):
        for target in _targets(p):
            _prepare_cache(cycle, written, target)
            _read(cycle, keeper, target)
    remove_store(cycle)


def _parameters(cycle: Cycle) -> VersionsParameters:
    return cast("VersionsParameters", cycle.case.parameters)


def _seed(cycle: Cycle) -> int:
    """Return a seed for histories: the first value of the case's data, which has the run's seed."""
    value = np.empty(1, cycle.source.dtype)
    cycle.source.fill(value, 0, (0,), (1,))
    return int.from_bytes(value.tobytes(), "little")


def _write(cycle: Cycle, keeper: Keeper) -> set[str]:
    """Put one version after the other into a new store; return its files."""
    p, clock, path = _parameters(cycle), cycle.clock, cycle.path(cycle.team.rank)
    with clock.phase("create"):
        store = keeper.create(path)
    cycle.open_stores.append(cast(Store, store))  # whoever cleans up only closes it
    tally = _put_all(cycle, store)
    with clock.phase("close"):
        store.close()
    cycle.open_stores.clear()
    with cycle.step("files"):
        files = set(files_below([path]))
    if p.durability == "sync":
        sync_store(cycle, files)
    with cycle.step("inspection"):
        kept, stored_as = keeper.look_at(path)
        tally.count(cycle.observed)
        count_kept(cycle.observed, kept, tally.referenced if keeper.keeps_all else tally.last)
        count_times(cycle.observed, clock.times)
        if cycle.team.is_root:
            cycle.observed.disk = disk_usage([cycle.scratch.path(cycle.directory)])
            cycle.observed.stored_as = stored_as
            stored_as.more["kept"] = p.keep
    return files


def _put_all(cycle: Cycle, store: Keeping) -> Tally:
    """Stage, commit and flush each version; return what they amount to."""
    p, clock = _parameters(cycle), cycle.clock
    tally = Tally(p.storage)
    history = iter(p.history(_seed(cycle), cycle.team.rank))
    for _ in range(p.versions + 1):
        with cycle.step("data"):
            version = next(history)
            tally.see(version)
            stage, commit = store.stage(version), store.commit(version)
        with clock.phase("write", version.edited_bytes, len(version.edits)):
            stage()
        with clock.phase("commit"):
            commit()
        with clock.phase("flush"):
            store.flush()
    return tally


@dataclass(frozen=True)
class _Target:
    """Versions that are read, and the phases that this takes.

    Parameters
    ----------
    numbers : range
        Which.
    look_up, read : str
        Phases of finding them and of reading them.
    main : bool
        Whether opening and closing are timed too: of the target that others are compared by.
    """

    numbers: range
    look_up: str
    read: str
    main: bool = False


def _targets(p: VersionsParameters) -> Iterator[_Target]:
    """Yield what is read: the latest version first, whose phases have the usual names."""
    last, middle = p.versions, p.versions // 2
    yield _Target(range(last, last + 1), "open_array", "read", main=True)
    if p.keeper.keeps_all:
        yield _Target(range(1), "look_up_first", "read_first")
        yield _Target(range(middle, middle + 1), "look_up_middle", "read_middle")
        yield _Target(range(last + 1), "look_up_all", "read_all")


def _prepare_cache(cycle: Cycle, written: set[str], target: _Target) -> None:
    """Bring about the cache state; of several proofs the one with most pages resident counts."""
    before = cycle.observed.cache
    if before is not None and before.wanted != "dropped":
        return
    settle_cache_again(cycle, written)


def _read(cycle: Cycle, keeper: Keeper, target: _Target) -> None:
    """Read the versions of a target and verify them off the timer."""
    p, author = _parameters(cycle), cycle.reader_of
    path, clock = cycle.read_path(author), cycle.clock

    def region(name: str) -> AbstractContextManager[object]:
        return clock.phase(name) if target.main else cycle.step(name)

    with region("open"):
        store = keeper.open(path)
    cycle.open_stores.append(cast(Store, store))
    history = iter(p.history(_seed(cycle), author))
    wanted = islice(history, target.numbers.start, target.numbers.stop)
    for number in target.numbers:
        with cycle.step("data"):
            version = next(wanted)
            assert version.number == number
        _read_version(cycle, store, version, target)
    with region("close_read"):
        store.close()
    cycle.open_stores.clear()


def _read_version(cycle: Cycle, store: Recalling, version: Version, target: _Target) -> None:
    with cycle.clock.phase(target.look_up, operations=len(COLUMNS)):
        found = store.look_up(version.number)
    with cycle.step("memory"):
        call: Callable[[], Mapping[str, Values]] = store.reader(found, _poisoned(version.table))
    with cycle.clock.phase(target.read, version.nbytes, len(COLUMNS)):
        got = call()
    with cycle.step("verification"):
        for number, name in enumerate(COLUMNS):
            wrong = difference(number, version.table[name], got[name])
            if wrong is not None:
                cycle.observed.mismatches.append(wrong)
        cycle.observed.verified_bytes += version.nbytes


def _poisoned(table: Table) -> Table:
    """Return memory for a table that holds what no table does."""
    buffers = {name: np.empty_like(column, order="C") for name, column in table.items()}
    for buffer in buffers.values():
        buffer.view(np.uint8).fill(POISON)
    return buffers


def difference(number: int, right: Values, got: Values) -> Mismatch | None:
    """Compare a column with what it should be, byte by byte.

    Parameters
    ----------
    number : int
        Number of the column.
    right, got : ndarray
        What it should be, and what was read.
    """
    got = np.ascontiguousarray(got)
    if (got.shape, got.dtype) != (right.shape, right.dtype):
        start = (0,) * right.ndim
        wanted, found = (f"{v.dtype} of shape {v.shape}" for v in (right, got))
        return Mismatch(number, start, wanted, found, right.size)
    differs = np.ascontiguousarray(right).view("u8") != got.view("u8")
    if not differs.any():
        return None
    index = tuple(int(i) for i in np.unravel_index(differs.argmax(), right.shape))
    return Mismatch(number, index, str(right[index]), str(got[index]), int(differs.sum()))
