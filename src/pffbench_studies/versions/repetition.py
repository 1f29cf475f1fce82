"""One repetition of the workload `versions`, and its counters.

    create → (write → commit → flush) for each version → close → sync
    open → open_array → read → close_read              the latest version
    look_up_…, read_…                                  the first, the middle one, all of them
    remove

Each target is read through a newly opened store; with a dropped cache, after dropping it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from math import prod
from typing import TYPE_CHECKING, cast

import msgspec
import numpy as np

from pffbench.backends.base import Store
from pffbench.data.verify import Mismatch
from pffbench.observe.clock import PhaseTime
from pffbench.storage.durability import disk_usage, files_below
from pffbench.workloads.read_proof import POISON
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.write_read import run_stages, settle_cache_again, sync_store
from pffbench_studies.versions.chunks import grid_of
from pffbench_studies.versions.history import COLUMNS, Table, Values, Version
from pffbench_studies.versions.interface import (
    ColumnStorage,
    ReadCall,
    StoredSize,
    VersionReader,
    VersionStore,
    VersionWriter,
    make_store,
)

if TYPE_CHECKING:
    from pffbench.workloads.repetition import Observed
    from pffbench_studies.versions.workload import VersionsParameters


def run_versions(repetition: Repetition) -> None:
    """Write all versions, then read some of them back; collective."""
    with repetition.step("keeper"):
        p = _parameters(repetition)
        keeper = make_store(p.backend, p.keep, p.storage, repetition.subject.case.options)
    files: set[str] = set()

    def settle(_: Repetition, written: set[str]) -> set[str]:
        """Leave the cache to each target, which is read in a state of its own."""
        files.update(written)
        return written

    def read() -> None:
        for target in _targets(p):
            _prepare_cache(repetition, files)
            _read(repetition, keeper, target)

    run_stages(repetition, lambda: _write(repetition, keeper), read, settle=settle)


def _parameters(repetition: Repetition) -> VersionsParameters:
    return cast("VersionsParameters", repetition.subject.parameters)


def _history(repetition: Repetition, rank: int) -> Iterator[Version]:
    """Return the history of a rank, whose seed is the first value of the case's data."""
    value = np.empty(1, repetition.subject.source.dtype)
    repetition.subject.source.fill(value, 0, (0,), (1,))
    return iter(_parameters(repetition).history(int.from_bytes(value.tobytes(), "little"), rank))


def _write(repetition: Repetition, keeper: VersionStore) -> set[str]:
    """Write all versions to a new store; return its files."""
    p, clock = _parameters(repetition), repetition.place.clock
    path = repetition.path
    with clock.phase("create"):
        store = keeper.create(path)
    repetition.place.open_stores.append(cast(Store, store))  # the clean-up only closes it
    tally = _put_all(repetition, store)
    with clock.phase("close"):
        store.close()
    repetition.place.open_stores.clear()
    with repetition.step("files"):
        files = set(files_below([path]))
    if p.durability == "sync":
        sync_store(repetition, files)
    with repetition.step("inspection"):
        kept, stored_as = keeper.look_at(path)
        tally.count(repetition.observed)
        count_kept(repetition.observed, kept, tally.referenced if p.keeps_all else tally.last)
        count_times(repetition.observed, clock.times)
        if repetition.place.keeps_directory:
            repetition.observed.disk = disk_usage([repetition.place.path])
        if repetition.place.team.is_root:
            repetition.observed.stored_as = stored_as
            stored_as.more["kept"] = p.keep
    return files


def _put_all(repetition: Repetition, store: VersionWriter) -> Tally:
    """Stage, commit and flush each version; return their tally."""
    p, clock = _parameters(repetition), repetition.place.clock
    tally = Tally(p.storage)
    history = _history(repetition, repetition.place.team.rank)
    for _ in range(p.versions + 1):
        with repetition.step("data"):
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


class _Target(msgspec.Struct, frozen=True):
    """Versions that are read, and the phases of reading them."""

    #: Numbers of the versions.
    numbers: range
    #: Phases of finding them and of reading them.
    look_up: str
    read: str
    #: Whether opening and closing are timed too: only for the target that comparisons use.
    main: bool = False


def _targets(p: VersionsParameters) -> Iterator[_Target]:
    """Yield the targets: the latest version first, whose phases have the usual names."""
    last, middle = p.versions, p.versions // 2
    yield _Target(range(last, last + 1), "open_array", "read", main=True)
    if p.keeps_all:
        yield _Target(range(1), "look_up_first", "read_first")
        yield _Target(range(middle, middle + 1), "look_up_middle", "read_middle")
        yield _Target(range(last + 1), "look_up_all", "read_all")


def _prepare_cache(repetition: Repetition, written: set[str]) -> None:
    """Establish the cache state; of several proofs the one with most resident pages counts."""
    before = repetition.observed.cache
    if before is None or before.wanted == "dropped":
        settle_cache_again(repetition, written)


def _read(repetition: Repetition, keeper: VersionStore, target: _Target) -> None:
    """Read the versions of a target and verify them off the timer."""
    author, clock = repetition.author, repetition.place.clock
    path = repetition.read_path

    def region(name: str) -> AbstractContextManager[object]:
        return clock.phase(name) if target.main else repetition.step(name)

    with region("open"):
        store = keeper.open(path)
    repetition.place.open_stores.append(cast(Store, store))
    wanted = islice(_history(repetition, author), target.numbers.start, target.numbers.stop)
    for number in target.numbers:
        with repetition.step("data"):
            version = next(wanted)
            assert version.number == number
        _read_version(repetition, store, version, target)
    with region("close_read"):
        store.close()
    repetition.place.open_stores.clear()


def _read_version(
    repetition: Repetition, store: VersionReader, version: Version, target: _Target
) -> None:
    with repetition.place.clock.phase(target.look_up, operations=len(COLUMNS)):
        found = store.look_up(version.number)
    with repetition.step("memory"):
        call: ReadCall = store.reader(found, _poisoned(version.table))
    with repetition.place.clock.phase(target.read, version.nbytes, len(COLUMNS)):
        got = call()
    with repetition.step("verification"):
        for number, name in enumerate(COLUMNS):
            wrong = difference(number, version.table[name], got[name])
            if wrong is not None:
                repetition.observed.mismatches.append(wrong)
        repetition.observed.verified_bytes += version.nbytes


def _poisoned(table: Table) -> Table:
    """Return memory for a table, filled with values that no table holds."""
    buffers = {name: np.empty_like(column, order="C") for name, column in table.items()}
    for buffer in buffers.values():
        buffer.view(np.uint8).fill(POISON)
    return buffers


def difference(number: int, right: Values, got: Values) -> Mismatch | None:
    """Compare a column with its expected values, byte by byte.

    Parameters
    ----------
    number : int
        Number of the column.
    right, got : ndarray
        The expected values, and those read.
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


#: Phases that each version passes through.
_PHASES = ("write", "commit", "flush")
_TENTHS = 10


class Tally:
    """Counts the changes of a table from version to version, and checks its length.

    Parameters
    ----------
    storage : ColumnStorage
        Storage of the columns, with their chunks.

    Attributes
    ----------
    referenced : int
        Chunks that all versions consist of, those in several versions counted several times.
    last : int
        Chunks that the last version consists of.
    """

    def __init__(self, storage: ColumnStorage) -> None:
        self.referenced = self.last = 0
        self._storage = storage
        self._sums: Counter[str] = Counter()
        self._length: int | None = None

    def see(self, version: Version) -> None:
        """Count a version.

        Raises
        ------
        RuntimeError
            Its length differs from the rows inserted, deleted and appended.
        """
        rows = version.rows
        if self._length is not None and version.length != self._length + rows.gained:
            raise RuntimeError(
                f"version {version.number} has {version.length} rows instead of "
                f"{self._length + rows.gained}"
            )
        self._length = version.length
        self._sums.update(msgspec.structs.asdict(rows), edits=len(version.edits))
        chunks = self._storage.chunks
        columns = version.table.values()
        self.last = sum(prod(grid_of(c.shape, chunks(c.ndim))) for c in columns)
        self.referenced += self.last

    def count(self, observed: Observed) -> None:
        """Record the counts."""
        for name, amount in self._sums.items():
            observed.count("version", name, amount)
        observed.count("version", "final_rows", self._length or 0)


def count_kept(observed: Observed, kept: StoredSize, referenced: int) -> None:
    """Record the contents of the closed store, and the number of chunks of its versions."""
    counts = {
        "file_bytes": kept.data_bytes + kept.metadata_bytes,
        "data_bytes": kept.data_bytes,
        "metadata_bytes": kept.metadata_bytes,
        "chunks_stored": kept.chunks,
        "chunks_referenced": referenced,
        "chunks_reused": max(0, referenced - kept.chunks),
    }
    for name, amount in counts.items():
        observed.count("close", name, amount)


def count_times(observed: Observed, times: Sequence[PhaseTime]) -> None:
    """Record the course of this rank's time per version, to show growth with their number.

    The initial version is part of the first tenth of the sums and of no median.
    """
    parts = {t.phase: np.array(t.parts) for t in times if t.phase in _PHASES}
    parts["version"] = np.sum(list(parts.values()), axis=0)
    for phase, seconds in parts.items():
        for number, tenth in enumerate(np.array_split(seconds, _TENTHS), start=1):
            observed.count(phase, f"tenth_{number:02d}_seconds", float(tenth.sum()))
    each = parts["version"][1:]
    few = max(1, len(each) // _TENTHS)
    parts = {"": each, "_first_tenth": each[:few], "_last_tenth": each[-few:]}
    for part, seconds in parts.items():
        observed.count("version", f"median_seconds{part}", float(np.median(seconds)))
