"""Backend that moves no data, with delays and faults on request, to measure the harness itself."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from pffbench.backends.array_spec import (
    EVERY_ARRAYS,
    EVERY_TRANSFER,
    ArraySpec,
    Capabilities,
)
from pffbench.backends.base import Array, Backend, Buffer, Call, Store
from pffbench.case import Options, Settings
from pffbench.geometry.box import Box

if TYPE_CHECKING:
    from mpi4py import MPI

Verb = Literal["create", "define", "write", "flush", "close", "open", "arrays", "read", "reopen"]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
Rank = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class NullOptions(Options, frozen=True, kw_only=True):
    """Delays and faults of the `null` backend."""

    #: Seconds of a verb, such as ``{write: 0.01}``.
    delays: dict[Verb, Seconds] = {}  # noqa: RUF012 -- msgspec copies a mutable default
    #: The only rank that is delayed (default: all).
    delay_rank: Rank | None = None
    #: The verb that raises an error.
    fail: Verb | None = None
    #: The rank that raises it.
    fail_rank: Rank = 0


class Null(Backend[NullOptions]):
    """A backend that stores nothing and takes a given time."""

    name = "null"
    summary = "does nothing, with settable delays and faults: measures the harness"
    suffix = ".null"
    capabilities = Capabilities(
        codecs=frozenset({"none", "gzip", "zstd", "blosc"}),
        arrays=EVERY_ARRAYS,
        transfers=EVERY_TRANSFER,
        raw=True,
        discards=True,
    )

    def __init__(self, options: NullOptions, settings: Settings) -> None:
        super().__init__(options, settings)
        self._faults = Faults(options, _rank())

    def create(self, path: str, comm: MPI.Intracomm | None) -> Store:
        self._faults("create")
        return NullStore(self._faults)

    def open(self, path: str, comm: MPI.Intracomm | None) -> Store:
        self._faults("open")
        return NullStore(self._faults)

    def reopen(self, path: str, comm: MPI.Intracomm | None) -> Store:
        self._faults("reopen")
        return NullStore(self._faults)


def _rank() -> int:
    """Return the number of this rank; a process without MPI is the only one."""
    mpi = sys.modules.get("mpi4py.MPI")
    return 0 if mpi is None else int(mpi.COMM_WORLD.rank)


class Faults:
    """Sleeps or raises when a verb is to be slow or to fail on this rank."""

    def __init__(self, options: NullOptions, rank: int) -> None:
        slow = options.delay_rank in (None, rank)
        self._delays = dict(options.delays) if slow else {}
        self._fail = options.fail if options.fail_rank == rank else None

    def __call__(self, verb: Verb) -> None:
        if delay := self._delays.get(verb):
            time.sleep(delay)
        if verb == self._fail:
            raise OSError(f"{verb} was told to fail on this rank")


class NullStore(Store):
    """A store that holds nothing."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def definer(self, specs: Sequence[ArraySpec]) -> Call:
        return partial(self._faults, "define")

    def opener(self, specs: Sequence[ArraySpec]) -> Call:
        return partial(self._faults, "arrays")

    def wrap(self, specs: Sequence[ArraySpec], returned: Any) -> Mapping[str, Array]:
        return {spec.name: NullArray(self._faults) for spec in specs}

    def files(self) -> set[str]:
        return set()

    def flush(self) -> None:
        self._faults("flush")

    def close(self) -> None:
        self._faults("close")


class NullArray(Array):
    """An array that holds nothing."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def writer(self, box: Box, buffer: Buffer, collective: bool) -> Call:
        return lambda: self._faults("write")

    def reader(self, box: Box, out: Buffer, collective: bool) -> Call:
        return lambda: self._faults("read")
