"""What the watchdog's process writes into `run.json` in place of rank 0, which cannot any more.

A case in which the job hung, or in which ranks died twice, is recorded as failed: a resumed run
does not try it again and continues with the others. The process has no other modules than these of
Python, so the record is changed as plain data.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pffbench.job.heartbeat import Lease
from pffbench.regular_files import LARGEST_RECORD, read_regular, write_replacing

#: Steps that end a repetition and move no data of a case.
_NOT_OF_THE_CASE = frozenset({"recording"})
#: Deaths in a case after which it is not tried again: the first may have come from outside.
_MOST_DEATHS = 2


def note_interrupted(results: str) -> None:
    """Change the status of a run whose ranks are gone from running to interrupted."""

    def interrupt(record: dict[str, Any]) -> bool:
        running = record.get("status") == "running"
        if running:
            record["status"] = "interrupted"
        return running

    _change(results, interrupt)


def note_hang(results: str, late: list[Lease], waited: str, stack: str) -> bool:
    """Record that a case failed because a step of it did not end; return whether it is recorded.

    Parameters
    ----------
    results : str
        The results directory.
    late : list of Lease
        The ranks whose step has not ended; if one of them failed in it, the others wait for it.
    waited : str
        How long they have waited.
    stack : str
        Where the first of them is.
    """
    failed = [lease for lease in late if lease.failed]
    first = (failed or late)[0]
    error = f"TimeoutError: not ended after {waited}"
    if failed:
        error = f"{first.failed}; the other ranks waited for it in the library for {waited}"

    def fail(record: dict[str, Any]) -> bool:
        return _fail(record, first, error, stack, len(failed or late))

    return bool(first.case) and first.step not in _NOT_OF_THE_CASE and _change(results, fail)


def note_death(results: str, gone: Lease) -> None:
    """Record that a rank died in a case; the second time the case has failed."""

    def die(record: dict[str, Any]) -> bool:
        if gone.case not in record["cases"]:
            return False
        record.setdefault("died_in", []).append(gone.case)
        times = record["died_in"].count(gone.case)
        if times >= _MOST_DEATHS:
            error = f"ProcessLookupError: the job died in this case {times} times"
            _fail(record, gone, error, "", 1)
        return True

    if gone.case:
        _change(results, die)


def _fail(record: dict[str, Any], lease: Lease, error: str, stack: str, ranks: int) -> bool:
    entry = record["cases"].get(lease.case)
    if entry is None or entry.get("failure"):
        return entry is not None
    host = socket.gethostname()
    entry["failure"] = {
        "phase": lease.step, "rank": lease.rank, "host": host, "error": error, "traceback": stack,
        "ranks_failed": ranks, "repetition": lease.repetition,
    }  # fmt: skip
    others = f" and {ranks - 1} more" if ranks > 1 else ""
    record["reasons"].append(
        f"{lease.case} repetition {lease.repetition}: {lease.step} failed on rank {lease.rank} "
        f"({host}){others}: {error}"
    )
    return True


def _change(results: str, change: Callable[[dict[str, Any]], bool]) -> bool:
    """Change the record of a run; return whether that was possible and something changed."""
    path = Path(results, "run.json")
    try:
        record = json.loads(read_regular(path, LARGEST_RECORD, links=False))
        if not change(record):
            return False
        write_replacing(path, json.dumps(record, indent=1) + "\n", durable=True)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return False
    return True
