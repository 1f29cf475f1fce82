"""The phases of a repetition, in their order, and the totals that are compared.

A phase is a row of `PHASES`; everything else follows from the table. Light, since all ranks import
it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

Part = Literal["write", "update", "read"]


class Phase(NamedTuple):
    """A phase of a repetition."""

    #: Its name in the results.
    name: str
    #: The total that it belongs to.
    part: Part | None
    #: Its work: opens or closes files or removes them, defines or opens arrays, moves data to or
    #: from files, moves data between ranks, or waits until data are on the device, as closing a
    #: file that was written does.
    does: Literal["files", "arrays", "data", "ranks", "device"]
    #: What is timed; the reference of the documentation has it.
    meaning: str


PHASES = (
    Phase("create", "write", "files",
          "making the store: the file, or the root of the Zarr hierarchy"),
    Phase("define", "write", "arrays",
          "making the arrays in it, with their metadata. Workload `survival`: also making them "
          "longer"),
    Phase("set_attributes", "write", "arrays",
          "workloads `datasets` and `startup` with `attributes`: setting them, one call each"),
    Phase("exchange", "write", "ranks",
          "with `rearranger`: sending each rank's data to the writer ranks"),
    Phase("write", "write", "data", "moving the array data into the library"),
    Phase("commit", "write", "files",
          "in libraries with transactions: making the staged changes a version"),
    Phase("flush", "write", "device",
          "the library's flush, with durability `flush` or `sync`, after each `commit`, and after "
          "each step with `flush: step`"),
    Phase("close", "write", "device", "closing the store. HDF5 and netCDF still write here"),
    Phase("sync", "write", "device",
          "files and directories to the device, only with durability `sync`"),
    Phase("reopen", "update", "files", "workload `updates`: opening the closed store to change it"),
    Phase("reopen_array", "update", "arrays",
          "workload `updates`: opening its arrays to change them"),
    Phase("extend", "update", "arrays", "workload `updates`: making arrays longer"),
    Phase("update", "update", "data", "workload `updates`: writing the changes, or appending"),
    Phase("flush_update", "update", "device", "workload `updates`: as `flush`, after the changes"),
    Phase("close_update", "update", "device", "workload `updates`: as `close`, after the changes"),
    Phase("sync_update", "update", "device", "workload `updates`: as `sync`, after the changes"),
    Phase("open", "read", "files", "opening the store to read"),
    Phase("open_array", "read", "arrays", "opening its arrays"),
    Phase("inquire", "read", "arrays",
          "workload `startup`: finding the names, shapes and types of all arrays"),
    Phase("get_attributes", "read", "arrays",
          "workloads `datasets` and `startup` with `attributes`: reading them, one call each"),
    Phase("read", "read", "data", "moving the data into memory"),
    Phase("exchange_read", "read", "ranks",
          "with `rearranger`: sending the data read by writer ranks to the ranks that need them"),
    Phase("distribute", "read", "ranks",
          "workload `startup`: passing on the data that rank 0, or one rank per node, has read"),
    Phase("close_read", "read", "files", "closing the store after reading"),
    # Ends a repetition: one without it was cut short.
    Phase("remove", None, "files", "deleting the files"),
)  # fmt: skip


def _names(part: Part) -> tuple[str, ...]:
    return tuple(phase.name for phase in PHASES if phase.part == part)


#: The phases until data are written, of changing written data, and of reading, in their order.
WRITE_PHASES, UPDATE_PHASES, READ_PHASES = _names("write"), _names("update"), _names("read")
LAST_PHASE = PHASES[-1].name
#: Sums of phases: the time until data are written or changed, as durably as requested, or read.
TOTALS = {
    "write_total": WRITE_PHASES,
    "update_total": UPDATE_PHASES,
    "read_total": READ_PHASES,
}
#: Phases in which data move: these have rates and a roofline.
MOVING = (*(phase.name for phase in PHASES if phase.does == "data"), *TOTALS)
#: Phases after which data are in the memory of ranks that need them, each byte of a rank once.
ARRIVING = ("read", "distribute")
#: Phases that wait for devices.
WAITING = tuple(phase.name for phase in PHASES if phase.does == "device")


def in_common(times: Sequence[Mapping[int, float]]) -> dict[int, list[float]]:
    """Return the values of several mappings for each repetition that all of them have."""
    numbers = set.intersection(*map(set, times)) if times else set()
    return {number: [of[number] for of in times] for number in sorted(numbers)}


def arrivals(phases: Sequence[str]) -> list[int]:
    """Return the places of the phases whose bytes every rank has verified.

    Where writers read for others, what they read may include elements that no rank has.
    """
    last = ("exchange_read",) if "exchange_read" in phases else ARRIVING
    return [i for i, p in enumerate(phases) if {p, p.partition("_")[0]} & {*last}]
