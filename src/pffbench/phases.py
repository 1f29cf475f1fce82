"""The phases of a repetition: their names, their order, and the sums that are compared.

Light, since all ranks import it.
"""

from __future__ import annotations

#: The phases until data are written, in their order.
WRITE_PHASES = ("create", "define", "write", "commit", "flush", "close", "sync")
#: The phases of changing written data, in their order.
UPDATE_PHASES = (
    "reopen", "reopen_array", "extend", "update", "flush_update", "close_update", "sync_update",
)  # fmt: skip
#: The phases of reading, in their order.
READ_PHASES = ("open", "open_array", "read", "close_read")
#: The phase that ends a repetition: a repetition without it was cut short.
LAST_PHASE = "remove"
#: Sums of phases: the time until data are written or changed, as durably as requested, or read.
TOTALS = {
    "write_total": WRITE_PHASES,
    "update_total": UPDATE_PHASES,
    "read_total": READ_PHASES,
}
#: Phases in which data move: these have rates and a roofline.
MOVING = ("write", "update", "read", *TOTALS)
