"""What reads from disk needed of the device, and what stayed in memory, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from pffbench.record.repetitions import Repetition
from pffbench.record.run import MeasuredRun
from pffbench.results.names import format_name
from pffbench.units import Size


def device_note(run: MeasuredRun) -> str:
    """Return how many reads of the device each format needed; empty if none read from disk.

    It also says whether directories and inodes stayed in memory, which evicting a file's pages does
    not drop.
    """
    cold: dict[str, list[str]] = {}
    for case in run.by_case:
        entry = run.record.cases[case]
        read = entry.parameters.get("cache") == "dropped" and _reads(run, case)
        if read and not (entry.raw or entry.excluded):
            cold.setdefault(format_name(entry.backend), []).append(case)
    if not cold:
        return ""
    requests = _requests(run, cold)
    counted = not requests.startswith("not")
    return f"Disk requests to read all data: {requests}. {_directories(run, cold, counted)}"


def _reads(run: MeasuredRun, case: str) -> list[Repetition]:
    return [one for one in run.by_case[case] if one.read and not one.warmup]


def _requests(run: MeasuredRun, cold: Mapping[str, Sequence[str]]) -> str:
    """Return the requests of each format; of several cases the fewest and the most."""
    found: dict[str, str] = {}
    for name, cases in cold.items():
        known = [n for case in cases if (n := _median_requests(run, case)) is not None]
        ends = dict.fromkeys(map(str, (min(known), max(known)) if known else ()))
        found[name] = "–".join(ends) or f"not counted ({_why_not(run, cases)})"
    first = next(iter(found.values()))
    if first.startswith("not") and set(found.values()) == {first}:
        return first
    return ", ".join(f"{name} {number}" for name, number in found.items())


def _median_requests(run: MeasuredRun, case: str) -> int | None:
    known = [one.read.device_reads for one in _reads(run, case) if one.read]
    numbers = [number for number in known if number is not None]
    return round(median(numbers)) if numbers else None


def _why_not(run: MeasuredRun, cases: Sequence[str]) -> str:
    if any(run.record.cases[case].counts_device for case in cases):
        return "shared device"
    return str((run.record.provenance.get("filesystem") or {}).get("type") or "no device")


def _directories(run: MeasuredRun, cold: Mapping[str, Sequence[str]], counted: bool) -> str:
    """Return whether requests, if they were counted, include some for directories and inodes."""
    known = {
        name: median(some)
        for name, cases in cold.items()
        if (some := [n for case in cases for n in _bytes_besides_pages(run, case)])
    }
    if not known:
        return "Directories may be cached."
    if not any(known.values()):
        if counted:
            return "Directories and inodes were in memory and needed none."
        return "Directories and inodes were in memory."
    texts = [f"{name} {Size(int(nbytes))}" for name, nbytes in known.items()]
    return f"They include directories and inodes: {', '.join(texts)}."


def _bytes_besides_pages(run: MeasuredRun, case: str) -> list[int]:
    """Return, by repetition, the bytes fetched from the device beyond the pages of the files.

    Unknown for files that are mapped or read in parts several times. Holes of a file, and contents
    so small that the file system keeps them in the inode, enter memory without blocks of data.
    """
    entry = run.record.cases[case]
    if not (entry.counts_device and entry.counts_reads):
        return []
    found = []
    for one in _reads(run, case):
        read, disk = one.read, one.disk or entry.disk
        if read and read.device_bytes is not None and read.resident_after is not None:
            pages = min(read.resident_after, disk.stored) if disk else read.resident_after
            found.append(max(0, read.device_bytes - pages))
    return found
