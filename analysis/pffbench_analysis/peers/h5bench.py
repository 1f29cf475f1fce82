"""h5bench's CSV (``CSV_FILE`` in its configuration), whose times are in steps of 1 ms.

The format follows `h5bench_patterns/*.c` of version 1.5: rows of metric, value, unit. Sizes are
in units of 1024, rounded to three decimals.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path

from pffbench.errors import UserError
from pffbench.regular_files import read_regular
from pffbench_analysis.peers.measurement import LARGEST, Imported, PeerRepetition, Test

_TICK = 1e-3
_HEADER = ["metric", "value", "unit"]
_UNITS = {"B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
_PHASES = {
    "write": ("define", "write", "close"),
    "read": ("open_array", "read", "close_read"),
}


def read_h5bench(path: Path) -> Imported:
    """Read a file: one operation, done once.

    Raises
    ------
    UserError
        It is not such a CSV, or its operation is neither ``write`` nor ``read``.
    """
    rows = _rows(path)
    operation, _ = rows.get("operation", ("", ""))
    if operation not in _PHASES:
        raise UserError(f"{path}: operation {operation!r} is neither write nor read")
    try:
        ranks = int(rows["ranks"][0])
        nbytes = _size(*rows["total size"])
        names = ("observed time", "total compute time", "raw time", "metadata time")
        observed, compute, raw, metadata = (_seconds(*rows[name]) for name in names)
        parameters = _parameters(rows)
    except KeyError as error:
        raise UserError(f"{path} has no row {error}") from None
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None
    inner, moving, rest = _PHASES[operation]
    left = max(0.0, observed - compute - raw - metadata)
    test = Test(
        parameters=parameters,
        same_work=("workload", "layout", "total_size"),
        raw=False,
        ranks=ranks,
        nodes=0,
        arrays=1,
        nbytes=nbytes,
        repetitions=(PeerRepetition({inner: metadata, moving: raw, rest: left}),),
        notes=(
            "`close` and `close_read` are what h5bench's observed time has beyond raw, metadata "
            "and compute time: making or opening, flushing and closing the file",
        ),
    )
    return Imported("h5bench", _TICK, (test,))


def _parameters(rows: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Return the parameters of a file in the terms of pffbench cases."""
    return {
        "workload": "h5bench",
        "backend": "h5bench-hdf5",
        "layout": "shared",
        "transfer": "collective" if rows["collective data"][0] == "YES" else "independent",
        "settings": "h5bench",
        "dtype": "particles",
        "source": "h5bench",
        "durability": "close",
        "cache": "unknown",
        "collective_metadata": rows["collective meta"][0],
        "subfiling": rows.get("subfiling", ("NO", ""))[0],
        "total_size": " ".join(rows["total size"]),
    }


def _rows(path: Path) -> Mapping[str, tuple[str, str]]:
    try:
        text = read_regular(path, LARGEST).decode("utf-8")
        lines = csv.reader(io.StringIO(text, newline=""))
        rows = [[cell.strip() for cell in row] for row in lines if row]
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not CSV as h5bench writes it: {error}") from None
    if _HEADER not in rows:  # facts about the environment may stand before it
        raise UserError(f"{path} is not CSV as h5bench writes it: no line 'metric, value, unit'")
    found = rows[rows.index(_HEADER) + 1 :]
    return {row[0]: (row[1], row[2]) for row in found if len(row) == len(_HEADER)}


def _size(value: str, unit: str) -> int:
    if unit not in _UNITS:
        raise ValueError(f"unit {unit!r} of the total size is none of {', '.join(_UNITS)}")
    return round(_positive(value) * _UNITS[unit])


def _seconds(value: str, unit: str) -> float:
    if unit != "seconds":
        raise ValueError(f"unit {unit!r} of a time is not seconds")
    return _positive(value)


def _positive(text: str) -> float:
    number = float(text)
    if not 0 <= number < float("inf"):
        raise ValueError(f"{text} is negative or no number")
    return number
