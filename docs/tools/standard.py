"""Keep what runs of `standard:1` counted in `docs/standard`, and write its pages again.

    setup/run python docs/tools/standard.py                       # after a change of the pages
    setup/run python docs/tools/standard.py NAME COUNTS [TIMES]   # the stack NAME, from its runs

COUNTS is the results directory of a run with ``counters: calls``, and TIMES of one with times,
which are kept only if the machine was idle. `benchmarks/board.py` keeps one file for each version
of a library in `docs/standard/libraries`.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from msgspec.structs import replace

from pffbench.experiment.standard import STANDARDS, standard_of
from pffbench.phases import TOTALS
from pffbench.record.repetitions import Repetition
from pffbench.record.run import MeasuredRun
from pffbench.record.run_json import CaseEntry, RunRecord
from pffbench.results.counts import case_counts
from pffbench.results.load import busy, summarise_load
from pffbench.results.names import format_name
from pffbench.results.table import Table
from pffbench.text import without_digests
from pffbench.units import Size, seconds_text

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "docs" / "standard"
#: What a case does, by its workload, as the heading of its tables.
WORK = {
    "hyperslab": "One array, written and read as a whole",
    "slices": "A file for each rank, written as a whole, and eight boxes read",
}
TOTALS_SHOWN = ("write_total", "read_total")
#: The same in a sentence.
ACCESS = {"hyperslab": "read as a whole", "slices": "boxes read"}
_PAGE = 4096
_MIB = 2**20
#: New memory depends on the state of the heap: it has changed if it is so many times as much and
#: so many MiB more, the array of a rank.
_MEMORY_TIMES, _MEMORY_MIB = 2, 16
#: Bytes differ with the length of a version in the metadata. Less than this part is no change.
_BYTES_PART = 0.01


class Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """Writing or reading: what all ranks did in one repetition."""

    #: System calls on the files, those of them that open a file, and the bytes that they moved: the
    #: fewest of a repetition.
    calls: int
    opens: int
    nbytes: int
    #: MiB of memory that had to be mapped (page faults).
    memory: float
    #: Bytes that were read while data were written.
    back: int = 0
    #: How many more there were in another repetition, since threads race to make directories.
    more_calls: int = 0
    more_opens: int = 0
    #: Median time; None if it was not measured on an idle machine.
    seconds: float | None = None


class CaseRow(msgspec.Struct, frozen=True):
    """A case."""

    #: Its workload.
    work: str
    #: Its format, with the options in which cases of the standard differ.
    format: str
    #: Number of files.
    files: int
    #: Its counts.
    write: Part
    read: Part


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What the standard counted on a stack, or with a version of a library."""

    #: Version of the standard.
    standard: int
    #: Digest of its work.
    digest: str
    #: Day of the counts.
    date: str
    #: Number of ranks.
    ranks: int
    #: Operating system, processors, and type of the file system.
    system: str
    machine: str
    filesystem: str
    #: Versions of the libraries that the cases use.
    software: dict[str, str]
    #: The cases.
    cases: list[CaseRow]
    #: Reasons why cases were left out, by reason the formats.
    left_out: dict[str, list[str]] = {}
    #: Why it has no times; empty if it has.
    times: str = "not measured"


def entry_of(counts: Path, times: Path | None = None, digest: str = "") -> Entry:
    """Return what a run of the standard counted.

    Parameters
    ----------
    counts : Path
        Results of a run with ``counters: calls``.
    times : Path, optional
        Results of a run of the same stack with times.
    digest : str
        The digest of the standard whose cases the run has, if it has only some.

    Raises
    ------
    ValueError
        A run is not one of the standard, is not valid, or has no counts.
    """
    run = _valid(counts)
    if not run.record.traced:
        raise ValueError(f"{counts}: no system calls were counted; run it with counters=calls")
    standard = standard_of(run.record.experiment)
    version = next((n for n, known in STANDARDS.items() if known == digest), None)
    if standard is None and version is None:
        raise ValueError(f"{counts}: not a standard experiment, or with changed work")
    seconds, why = _seconds(times) if times else ({}, "not measured")
    (host, *_) = run.record.provenance["hosts"]
    return Entry(
        standard=standard.version if standard else version or 0,
        digest=standard.digest if standard else digest,
        date=run.record.started[:10],
        ranks=run.ranks,
        system=str(host["os"]).partition(" (")[0],
        machine=f"{host['cores']} cores, {host['cpu_model']}",
        filesystem=run.record.provenance["filesystem"]["type"],
        software=_software(run.record),
        cases=[_case(run, name, seconds) for name in sorted(run.by_case)],
        left_out=_left_out(run.record),
        times=why,
    )


def _valid(directory: Path) -> MeasuredRun:
    run = MeasuredRun.load(directory)
    if run.record.valid is not True:
        raise ValueError(
            f"{directory}: the run is not valid: {run.record.objection or 'not ended'}"
        )
    return run


def _seconds(directory: Path) -> tuple[Mapping[str, Mapping[str, float]], str]:
    """Return the median of each total by case; none, with the reason, of a busy machine."""
    run = _valid(directory)
    if standard_of(run.record.experiment) is None or run.record.traced:
        raise ValueError(f"{directory}: it has no times of a standard experiment")
    if why := next(busy(summarise_load(run.repetitions)), None):
        return {}, f"left out, {why.partition(';')[0]}"
    medians = {
        name: {total: median(by_round.values()) for total, by_round in found.items()}
        for name, found in run.seconds.items()
    }
    return medians, ""


def _case(run: MeasuredRun, name: str, seconds: Mapping[str, Mapping[str, float]]) -> CaseRow:
    entry, some = run.record.cases[name], run.by_case[name]
    times = seconds.get(name, {})
    each = [replace(run, repetitions=(one,)) for one in some if not one.warmup]
    (files,) = {case.files for case in case_counts(run, [name])}
    write, read = (_part(each, name, total, times.get(total)) for total in TOTALS_SHOWN)
    return CaseRow(entry.parameters["workload"], _format(entry), files, write, read)


def _part(each: Sequence[MeasuredRun], name: str, total: str, seconds: float | None) -> Part:
    """Return the counts of a case in a total, from runs of one repetition each."""
    parts = [case.parts[total] for run in each for case in case_counts(run, [name])]
    calls, opens = [part.calls for part in parts], [part.opens for part in parts]
    return Part(
        min(calls),
        min(opens),
        min(part.nbytes for part in parts),
        median(_memory(run.by_case[name][0], total) for run in each),
        min(part.read_back for part in parts),
        max(calls) - min(calls),
        max(opens) - min(opens),
        seconds,
    )


def _memory(repetition: Repetition, total: str) -> float:
    """Return the MiB of pages that were mapped in a total."""
    phases = [phase for phase in repetition.phases if phase.phase in TOTALS[total]]
    return round(sum(phase.minor_faults for phase in phases) * _PAGE / _MIB, 1)


def _format(entry: CaseEntry) -> str:
    """Return the name of a format, with the options in which cases of the standard differ."""
    words = [format_name(entry.backend)]
    if entry.backend == "zarr" and entry.options.get("format") == 2:
        words.append("format 2")
    if entry.options.get("shards"):
        words.append("shards")
    return ", ".join(words)


def _left_out(record: RunRecord) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in record.left_out:
        backend, workload, *_ = without_digests(one.case).split(".")
        why = one.reason.partition(";")[0]  # the remedies follow
        found.setdefault(why, []).append(f"{format_name(backend)} ({workload})")
    return found


def _software(record: RunRecord) -> dict[str, str]:
    """Return the versions of the libraries, of those in C in the order in which they are called."""
    software: dict[str, Any] = record.provenance["software"]
    libraries = software["libraries"]
    found = {"Python": software["python"]["version"]}
    mpi = record.provenance.get("mpi_io") or {}
    found["MPI"] = (
        " ".join(filter(None, [mpi.get("library"), mpi.get("library_version")])) or "none"
    )
    for name, inner in (("h5py", "hdf5"), ("netCDF4", "netcdf_c"), ("zarr", ""), ("numcodecs", ""),
                        ("tensorstore", ""), ("blosc2", "")):  # fmt: skip
        if about := libraries.get(name):
            within = f" ({_INNER[inner]} {about[inner]})" if about.get(inner) else ""
            found[name] = f"{about['version']}{within}"
    return found


_INNER = {"hdf5": "HDF5", "netcdf_c": "netCDF-C"}


def load(path: Path) -> Entry:
    """Read the file of an entry."""
    return msgspec.json.decode(path.read_bytes(), type=Entry)


def save(entry: Entry, path: Path) -> None:
    """Write the file of an entry."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(entry), indent=1) + b"\n")


def entries(place: Path) -> dict[str, Entry]:
    """Return the entries of a directory, by the names of their files."""
    return {path.stem: load(path) for path in sorted(place.glob("*.json"))}


def differences(old: Entry, new: Entry) -> Iterator[str]:
    """Yield what differs between the counts of two entries, in words.

    Of a count that differs between repetitions only ranges that do not overlap are a difference.
    """
    before = {(case.work, case.format): case for case in old.cases}
    for case in new.cases:
        was = before.get((case.work, case.format), case)
        words = [
            *_changes("write", was.write, case.write),
            *_changes("read", was.read, case.read),
            *([f"files {was.files} → {case.files}"] if was.files != case.files else []),
        ]
        if words:
            yield f"{case.format}, {ACCESS[case.work]}: {', '.join(words)}"


def _changes(verb: str, old: Part, new: Part) -> Iterator[str]:
    for name, title in _COUNTS.items():
        low, now = getattr(old, name), getattr(new, name)
        most = low + getattr(old, f"more_{name}"), now + getattr(new, f"more_{name}")
        if most[0] < now or most[1] < low:
            yield f"{title} to {verb} {low:,} → {now:,}"
    for name, title in _BYTES.items():
        low, now = getattr(old, name), getattr(new, name)
        if abs(now - low) > _BYTES_PART * new.nbytes:
            yield f"{title} to {verb} {Size(low)} → {Size(now)}"
    less, more = sorted((old.memory, new.memory))
    if more > max(_MEMORY_TIMES * less, less + _MEMORY_MIB):
        yield f"new memory to {verb} {old.memory:.0f} → {new.memory:.0f} MiB"


_COUNTS = {"calls": "calls", "opens": "opens"}
_BYTES = {"nbytes": "bytes", "back": "bytes read back"}


_HEAD = """\
# The standard experiment

`standard:1` is one experiment that never changes, so its counts compare between machines, stacks
and years. Its nine cases run on any number of ranks:
[configs/standard/1.yaml](../../configs/standard/1.yaml).

    mpiexec -n 2 python -m pffbench run standard:1 --set counters=calls --set repetitions=3
    mpiexec -n 2 python -m pffbench run standard:1

The first command counts in half a minute, on a busy machine too. The second measures times, in a
minute with 2 ranks on 2 cores and in five minutes at most. The last line of the answer and
`standard` of `results.json` contain the digest `{digest}`. A run with other cases has none.
Changed work is `standard:2`.

Each stack below is a file next to this page. `setup/run python docs/tools/standard.py NAME COUNTS
TIMES` adds one from two results directories and writes this page. [Versions of the
libraries](libraries.md) has the same counts by version.

{stacks}

Counts are of all ranks together in one repetition: system calls on the files, those of them that
open a file, and the bytes that they move. Bytes include the metadata. New memory is the memory
that the kernel maps meanwhile (page faults). It depends on the state of the heap, and two runs
can differ by several times the size of the array, 16 MiB a rank.

{times}
"""
#: If a stack has no times, since counts do not depend on other programs and times do.
_NO_TIMES = """\
Other programs used the machine while {which} was counted, so it has no times.
"""
_TIMES = """\
Times are medians of all rounds on an idle machine.
"""
_LIBRARIES_HEAD = """\
# Counts by version of a library

What changed in system calls, opens, bytes and memory from one version of a library to the next?
Each row is the [standard experiment](README.md) with one rank and the wheel of that version,
counted on {dates}. Times are not measured. One command makes the environments with `setup/env`,
counts, and writes all files and this page:

    setup/run python benchmarks/board.py

Machine: {machine}.

The HDF5 in the wheels of h5py and netCDF4 is serial, so they have only the
cases with a file for each rank. zarr-python 2 has only format 2. Icechunk is missing, because
pffbench has no backend for it. Versions that need a newer Python than the one of the machine are
missing, too.

Two runs of the command had the same calls, opens, bytes and files. A range shows calls that
differ between repetitions, because threads race. New memory is not the same each time, because it
depends on the state of the heap. It is listed below only if it is twice as much and 16 MiB more.
These limits were chosen after the counts were seen, so a change of new memory is a hint and no
proof. Bytes are listed from 1 % on.

## What changed

{changes}
"""


def page(stacks: Mapping[str, Entry]) -> str:
    """Return the page of the stacks."""
    timed = any(case.write.seconds for entry in stacks.values() for case in entry.cases)
    rows = [
        [
            name,
            f"{entry.system}, {entry.machine}, {entry.filesystem}",
            f"{entry.ranks}",
            ", ".join(f"{key} {value}" for key, value in entry.software.items()),
            "; ".join(f"{', '.join(which)}: {why}" for why, which in entry.left_out.items()),
            entry.date,
        ]
        for name, entry in stacks.items()
    ]
    about = _table(["stack", "machine", "ranks", "software", "left out", "counted"], rows)
    without = [
        name
        for name, entry in stacks.items()
        if not any(case.write.seconds for case in entry.cases)
    ]
    times = _TIMES * timed + "".join(_NO_TIMES.format(which=name) for name in without)
    head = _HEAD.format(digest=STANDARDS[1], stacks=about, times=times)
    parts = [head.rstrip()]
    for work, title in WORK.items():
        cells = [
            [case.format, name, *_cells(case, timed=timed)]
            for name, entry in stacks.items()
            for case in entry.cases
            if case.work == work
        ]
        ordered = sorted(cells, key=lambda row: row[0])
        parts.append(
            f"## {title}\n\n{_table(['format', 'stack', *_headings(timed=timed)], ordered)}"
        )
    return "\n\n".join(parts) + "\n"


def libraries_page(found: Mapping[str, Entry]) -> str:
    """Return the page of versions of libraries."""
    by_library: dict[str, dict[str, Entry]] = {}
    for name in sorted(found, key=_order):
        library, version = name.rsplit("-", 1)
        by_library.setdefault(library, {})[version] = found[name]
    head = _LIBRARIES_HEAD.format(
        dates=" and ".join(sorted({entry.date for entry in found.values()})),
        machine="; ".join(sorted({_machine(entry) for entry in found.values()})),
        changes="\n".join(f"- {text}" for text in _all_changes(by_library)),
    )
    return "\n\n".join([head.rstrip(), *(_library(*one) for one in by_library.items())]) + "\n"


def _machine(entry: Entry) -> str:
    return f"{entry.system}, Python {entry.software['Python']}, {entry.machine}, {entry.filesystem}"


def _order(name: str) -> tuple[str, list[int]]:
    """Return the place of a version of a library."""
    library, version = name.rsplit("-", 1)
    return library.lower(), [int(part) for part in re.findall(r"\d+", version)]


def _all_changes(by_library: Mapping[str, Mapping[str, Entry]]) -> Iterator[str]:
    for library, versions in by_library.items():
        quiet = []
        for (_, old), (version, new) in pairwise(versions.items()):
            found = list(differences(old, new))
            yield from (f"**{library} {version}**: {text}" for text in found)
            quiet += [] if found else [version]
        if quiet:
            yield f"{library} {', '.join(quiet)}: no count changed"


def _library(library: str, versions: Mapping[str, Entry]) -> str:
    parts = [f"## {library}"]
    for work, title in WORK.items():
        rows = [
            [f"{version}{_inside(library, entry)}", case.format, *_cells(case)]
            for version, entry in versions.items()
            for case in entry.cases
            if case.work == work
        ]
        if rows:
            parts += [f"{title}:", _table(["version", "format", *_headings()], rows)]
    return "\n\n".join(parts)


def _inside(library: str, entry: Entry) -> str:
    """Return the library in C that a wheel contains."""
    return "".join(f" {text}" for text in entry.software.get(library, "").split(" ", 1)[1:])


def _headings(*, timed: bool = False) -> list[str]:
    names = ["calls", "opens", "bytes", "new memory", *(["time"] if timed else [])]
    return [f"{verb}: {name}" for verb in ("write", "read") for name in names] + ["files"]


def _cells(case: CaseRow, *, timed: bool = False) -> list[str]:
    cells = []
    for part in (case.write, case.read):
        back = f", {Size(part.back)} read" if part.back > 0.05 * part.nbytes else ""
        cells += [
            _range(part.calls, part.more_calls),
            _range(part.opens, part.more_opens),
            f"{Size(part.nbytes)}{back}",
            f"{part.memory:.0f} MiB",
        ]
        if timed:
            cells.append(seconds_text(part.seconds) if part.seconds else "")
    return [*cells, f"{case.files}"]


def _range(fewest: int, more: int) -> str:
    return f"{fewest:,}–{fewest + more:,}" if more else f"{fewest:,}"


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(Table("", heading, rows).markdown())


def written(place: Path = PLACE) -> dict[Path, str]:
    """Return the texts of the pages, by their files."""
    return {
        place / "README.md": page(entries(place)),
        place / "libraries.md": libraries_page(entries(place / "libraries")),
    }


def write_pages(place: Path = PLACE) -> None:
    """Write the pages again."""
    for path, text in written(place).items():
        path.write_text(text, encoding="utf-8")


def main() -> None:
    """Add a stack, if its runs are named, and write the pages again."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", help="name of the stack, such as debian-12-openmpi")
    parser.add_argument("counts", nargs="?", type=Path, help="results with counters=calls")
    parser.add_argument("times", nargs="?", type=Path, help="results with times")
    given = parser.parse_args()
    if given.name and not given.counts:
        parser.error(f"which results has {given.name}? Name a directory")
    if given.counts:
        try:
            save(entry_of(given.counts, given.times), PLACE / f"{given.name}.json")
        except ValueError as error:
            parser.error(str(error))
    write_pages()


if __name__ == "__main__":
    main()
