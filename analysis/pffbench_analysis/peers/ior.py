"""IOR's JSON (``-O summaryFormat=JSON``), whose times are in steps of 0.1 ms.

IOR takes the first start and the last end of all ranks for each of open, transfer and close. With
``-e`` the sync is part of the transfer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from pffbench.errors import UserError
from pffbench.regular_files import read_regular
from pffbench_analysis.peers.measurement import LARGEST, Imported, PeerRepetition, Test

_TICK = 1e-4
#: API of IOR → backend, and whether it moves raw bytes.
_APIS = {"POSIX": True, "MPIIO": True, "MMAP": True, "HDF5": False, "NCMPI": False}
_WRITING = {"openTime": "create", "wrRdTime": "write", "closeTime": "close"}
_READING = {"openTime": "open", "wrRdTime": "read", "closeTime": "close_read"}
#: Parameters in which tests of the same work agree.
_SAME_WORK = (
    "workload", "layout", "block_size", "segments", "random_offset", "synced", "cache",
)  # fmt: skip
#: Factor by which sums of phases may exceed IOR's total without a remark.
_OVERLAP = 1.05


def read_ior(path: Path) -> Imported:
    """Read a file.

    Raises
    ------
    UserError
        It is not JSON of IOR, or has times that cannot be assigned to phases.
    """
    data = _load(path)
    try:
        tests = tuple(_test(path, test, data) for test in data["tests"])
        remarks = tuple(_remarks(path, data))
        return Imported(
            f"IOR {data['Version']}", _TICK, tests, remarks, str(data.get("Command line", ""))
        )
    except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError) as error:
        what = (
            f"has no {error}"
            if isinstance(error, KeyError)
            else f"is not as IOR 4 writes it: {error}"
        )
        raise UserError(f"{path} {what}") from None


def _load(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(read_regular(path, LARGEST))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{path} is not JSON as IOR 4 writes it with -O summaryFormat=JSON: {error}"
        ) from None
    if not isinstance(data, dict) or not isinstance(data.get("tests"), list) or not data["tests"]:
        raise UserError(f"{path} holds no tests of IOR (-O summaryFormat=JSON)")
    return data


def _test(path: Path, test: Mapping[str, Any], data: Mapping[str, Any]) -> Test:
    told, options = test["Parameters"], test["Options"]
    if told["deadlineForStonewall"]:
        raise UserError(
            f"{path}: a test was ended by time (-D), so its repetitions moved different numbers "
            "of bytes, which JSON of IOR does not tell"
        )
    api = _api(told)
    alone = bool(told["filePerProc"])
    tasks = int(options["tasks"])
    nbytes = int(told["blockSize"]) * int(told["segmentCount"]) * tasks
    transfers = nbytes // int(told["transferSize"])
    calls = {"write": transfers, "read": transfers}
    return Test(
        parameters=_parameters(told, api),
        same_work=_SAME_WORK,
        raw=_APIS.get(api, False),
        ranks=tasks,
        nodes=int(options["nodes"]),
        arrays=tasks if alone else 1,
        nbytes=nbytes,
        repetitions=tuple(_repetitions(test["Results"], calls)),
        started=_started(test.get("StartTime", data.get("Began", ""))),
        notes=("with -e the sync is part of `write`",) if told["fsync"] else (),
    )


def _api(told: Mapping[str, Any]) -> str:
    return str(told["api"]).split("-")[0].upper()


def _parameters(told: Mapping[str, Any], api: str) -> dict[str, Any]:
    """Return parameters of IOR in the terms of pffbench cases."""
    return {
        "workload": "ior",
        "backend": f"ior-{api.lower()}",
        "layout": "file_per_process" if told["filePerProc"] else "shared",
        "transfer": "collective" if told["collective"] else "independent",
        "settings": "ior",
        "dtype": "bytes",
        "source": f"packet type {told['data packet type']}",
        "durability": _durability(told, api),
        "cache": _cache(told),
        "block_size": int(told["blockSize"]),
        "transfer_size": int(told["transferSize"]),
        "segments": int(told["segmentCount"]),
        "random_offset": int(told["randomOffset"]),
        "synced": int(told["fsync"]),
    }


def _durability(told: Mapping[str, Any], api: str) -> str:
    """Return the durability of writing: HDF5's sync is a flush of the library."""
    if not told["fsync"] and not told["fsyncperwrite"]:
        return "close"
    return "flush" if api in ("HDF5", "NCMPI") else "fsync"


def _cache(told: Mapping[str, Any]) -> str:
    """Return the state of the cache for reading, which IOR does not verify."""
    if told["reorderTasksRandom"]:
        return "shifted at random"
    if told["reorderTasks"]:
        return "shifted"
    return "warm" if told["writeFile"] else "unknown"


def _repetitions(results: list[Any], calls: Mapping[str, int]) -> Iterator[PeerRepetition]:
    """Split the flat list of accesses: a repeated phase begins a new repetition."""
    seconds: dict[str, float] = {}
    for result in _flat(results):
        found = _phases(result)
        if seconds.keys() & found.keys():
            yield PeerRepetition(seconds, calls)
            seconds = {}
        seconds |= found
    if seconds:
        yield PeerRepetition(seconds, calls)


def _flat(results: list[Any]) -> Iterator[Mapping[str, Any]]:
    """Yield accesses; some versions of IOR nest them by repetition."""
    for result in results:
        if isinstance(result, list):
            yield from _flat(result)
        else:
            yield result


def _phases(result: Mapping[str, Any]) -> dict[str, float]:
    access = result["access"]
    if access == "remove":
        return {"remove": float(result["totalTime"])}
    if access not in ("write", "read"):
        raise ValueError(f"access {access!r} is none of write, read, remove")
    names = _WRITING if access == "write" else _READING
    return {phase: float(result[key]) for key, phase in names.items()}


def _started(text: str) -> str:
    """Return IOR's time of day, which has no time zone, as ISO 8601."""
    try:
        return datetime.strptime(text, "%a %b %d %H:%M:%S %Y").isoformat()
    except ValueError:
        return ""


def _remarks(path: Path, data: Mapping[str, Any]) -> Iterator[str]:
    rows = [r for t in data["tests"] for r in _flat(t["Results"]) if r["access"] != "remove"]
    parts = ("openTime", "wrRdTime", "closeTime")
    worst = max(
        (sum(r[p] for p in parts) / r["totalTime"] for r in rows if r["totalTime"] >= 100 * _TICK),
        default=1.0,
    )
    if worst > _OVERLAP:
        yield (
            f"{path.name}: phases of ranks overlap, so their sums, the totals here, are up to "
            f"{worst:.2f} times IOR's own total time; run IOR with -g"
        )
    if any(t["Parameters"]["checkRead"] or t["Parameters"]["checkWrite"] for t in data["tests"]):
        yield f"{path.name}: IOR's checking of data (-R, -W) is part of its times"
