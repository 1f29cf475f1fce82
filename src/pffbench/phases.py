"""The phases of a repetition, in their order, and the totals that are compared.

A phase is a row of `PHASES`; everything else follows from the table. Light, since all ranks import
it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, NamedTuple

Part = Literal["write", "update", "read"]


class Phase(NamedTuple):
    """A phase of a repetition.

    Parameters
    ----------
    name : str
        Its name in the results.
    part : {"write", "update", "read"} or None
        The total that it belongs to.
    does : {"files", "arrays", "data", "device"}
        Its work: opens or closes files or removes them, defines or opens arrays, moves data, or
        waits until data are on the device.
    """

    name: str
    part: Part | None
    does: Literal["files", "arrays", "data", "device"]


PHASES = (
    Phase("create", "write", "files"),
    Phase("define", "write", "arrays"),
    Phase("write", "write", "data"),
    Phase("commit", "write", "files"),
    Phase("flush", "write", "device"),
    Phase("close", "write", "device"),
    Phase("sync", "write", "device"),
    Phase("reopen", "update", "files"),
    Phase("reopen_array", "update", "arrays"),
    Phase("extend", "update", "arrays"),
    Phase("update", "update", "data"),
    Phase("flush_update", "update", "device"),
    Phase("close_update", "update", "device"),
    Phase("sync_update", "update", "device"),
    Phase("open", "read", "files"),
    Phase("open_array", "read", "arrays"),
    Phase("read", "read", "data"),
    Phase("close_read", "read", "files"),
    # Ends a repetition: one without it was cut short.
    Phase("remove", None, "files"),
)


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
#: Phases that wait for devices.
WAITING = tuple(phase.name for phase in PHASES if phase.does == "device")
#: All phases, in their order.
ORDER = tuple(phase.name for phase in PHASES)


def in_order(names: Collection[str]) -> list[str]:
    """Sort names of phases; those of a workload's own come last, in the order given."""
    return [*(n for n in ORDER if n in names), *(n for n in names if n not in ORDER)]
