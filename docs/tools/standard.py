"""Keep what runs of `standard:1` counted in `docs/standard`, and write its pages again.

    setup/run python docs/tools/standard.py                       # after a change of the pages
    setup/run python docs/tools/standard.py NAME --run "mpiexec -n 2 python"   # the stack NAME
    setup/run python docs/tools/standard.py NAME COUNTS [TIMES]                # from its runs

COUNTS is the results directory of a run with ``counters: calls``, TIMES of one with times, which
are kept only if the machine was idle. `benchmarks/board.py` keeps one file for each version of a
library in `docs/standard/libraries`.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import tempfile
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
from pffbench.text import counted, without_digests
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
#: Bytes differ with the length of a version in the metadata. Less than this part of all bytes is no
#: change, of new memory neither.
_BYTES_PART = 0.01


class Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """Writing or reading: what all ranks did in one repetition."""

    #: System calls on the files, those of them that open a file, and the bytes that they moved: the
    #: fewest of a repetition.
    calls: int
    opens: int
    nbytes: int
    #: MiB of memory that had to be mapped (page faults): the least of a repetition.
    memory: float
    #: Bytes that were read while data were written.
    back: int = 0
    #: How many more there were in another repetition.
    more_calls: int = 0
    more_opens: int = 0
    #: How many MiB more there were in another repetition.
    more_memory: float = 0.0
    #: Most calls of a repetition that are not in `calls`, because their number depends on timing.
    raced: int = 0
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


def entry_of(counts: Sequence[Path], times: Path | None = None, digest: str = "") -> Entry:
    """Return what runs of the standard counted.

    Parameters
    ----------
    counts : sequence of Path
        Results of one or more runs with ``counters: calls``, on the same stack.
    times : Path, optional
        Results of a run of the same stack with times.
    digest : str
        The digest of the standard whose cases the run has, if it has only some.

    Raises
    ------
    ValueError
        A run is not one of the standard, is not valid, or has no counts.
    """
    run, *_ = runs = [_valid(directory) for directory in counts]
    if not all(one.record.traced for one in runs):
        raise ValueError(
            f"{run.directory}: no system calls were counted; run it with counters=calls"
        )
    standard = standard_of(run.record.experiment)
    version = next((n for n, known in STANDARDS.items() if known == digest), None)
    if standard is None and version is None:
        raise ValueError(f"{run.directory}: not a standard experiment, or with changed work")
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
        cases=[_case(runs, name, seconds) for name in sorted(run.by_case)],
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


def _case(
    runs: Sequence[MeasuredRun], name: str, seconds: Mapping[str, Mapping[str, float]]
) -> CaseRow:
    entry, times = runs[0].record.cases[name], seconds.get(name, {})
    each = [
        replace(run, repetitions=(one,))
        for run in runs
        for one in run.by_case[name]
        if not one.warmup
    ]
    (files,) = {case.files for run in runs for case in case_counts(run, [name])}
    write, read = (_part(each, name, total, times.get(total)) for total in TOTALS_SHOWN)
    return CaseRow(entry.parameters["workload"], _format(entry), files, write, read)


def _part(each: Sequence[MeasuredRun], name: str, total: str, seconds: float | None) -> Part:
    """Return the counts of a case in a total, from runs of one repetition each."""
    parts = [case.parts[total] for run in each for case in case_counts(run, [name])]
    calls, opens = [part.calls for part in parts], [part.opens for part in parts]
    memory = [_memory(run.by_case[name][0], total) for run in each]
    return Part(
        calls=min(calls),
        opens=min(opens),
        nbytes=min(part.nbytes for part in parts),
        memory=min(memory),
        back=min(part.read_back for part in parts),
        more_calls=max(calls) - min(calls),
        more_opens=max(opens) - min(opens),
        more_memory=round(max(memory) - min(memory), 1),
        raced=max(part.raced for part in parts),
        seconds=seconds,
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
    less, more = sorted((old, new), key=lambda part: part.memory)
    apart = more.memory - less.memory - less.more_memory
    if apart * _MIB > _BYTES_PART * new.nbytes:
        yield f"new memory to {verb} {_memory_text(old)} → {_memory_text(new)}"


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

Each stack below is a file next to this page. This makes both runs, adds a stack and writes the page
again:

    setup/run python docs/tools/standard.py NAME --run "mpiexec -n 2 python"

Instead of `--run` it accepts two results directories, of another machine too. [Versions of the
libraries](libraries.md) has the same counts by version.

{stacks}

Counts are of all ranks together in one repetition: system calls on the files, those of them that
open a file, and the bytes that they move. Bytes include the metadata. New memory is the memory
that the kernel maps meanwhile (page faults). It depends on the state of the heap, and two runs
can differ by several times the size of the array, 16 MiB a rank. A number after + is of calls that
are not in the count, because [their number depends on timing](../compare.md#counts-exactly).

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

This page lists changes in system calls, opens, bytes and memory between versions of a library.
Each row is the [standard experiment](README.md) with one rank and the wheel of that version,
counted on {dates}. Times are not measured. One command makes the environments with `setup/env`,
counts, and writes all files and this page:

    setup/run python benchmarks/board.py

Machine: {machine}.

Seven processes count each version, and the versions take turns. A range is over these processes.
Two versions differ if their ranges do not overlap. Opens and files are exact, and calls but for the
`close` of a file, which threads of TensorStore may do later. New memory
depends on the state of the heap, which all processes of an environment can share. netCDF4 1.7.3,
counted on two machines, needed 0–0.5 MiB and 7.7 MiB to read. A difference in new memory alone
needs a second count. Bytes and memory are listed from 1 % of the bytes on.

| left out | reason |
| --- | --- |
| h5py and netCDF4 in one file of all ranks | the HDF5 in their wheels is serial |
| zarr-python 2 in format 3 | it has only format 2 |
| the fused pipeline before zarr 3.3 | there is none |
| zarrs before 0.2.2 | it leaves these arrays to zarr-python |
| Icechunk | pffbench has no backend for it |

## What changed

{changes}
"""
_OTHER_SYSTEM = """\
## The same on another system

Machine: {machine}. Between {versions} there and here these counts differ:

{differences}
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


def libraries_page(systems: Mapping[str, Mapping[str, Entry]]) -> str:
    """Return the page of versions of libraries, from the entries of each system.

    The system with the most versions has the tables, and others are compared with it.
    """
    here, *others = sorted(systems.values(), key=len, reverse=True)
    by_library: dict[str, dict[str, Entry]] = {}
    for name in sorted(here, key=_order):
        library, version = name.rsplit("-", 1)
        by_library.setdefault(library, {})[version] = here[name]
    head = _LIBRARIES_HEAD.format(
        dates=" and ".join(sorted({entry.date for entry in here.values()})),
        machine=_machines(here),
        changes="\n".join(f"- {text}" for text in _all_changes(by_library)),
    )
    parts = [head, *(_other_system(here, there) for there in others)]
    tables = (_library(*one) for one in by_library.items())
    return "\n\n".join([*(part.rstrip() for part in parts), *tables]) + "\n"


def _other_system(here: Mapping[str, Entry], there: Mapping[str, Entry]) -> str:
    both = [name for name in sorted(here, key=_order) if name in there]
    texts = [f"- **{n}**: {text}" for n in both for text in differences(there[n], here[n])]
    return _OTHER_SYSTEM.format(
        machine=_machines(there),
        versions=counted(len(both), "version"),
        differences="\n".join(texts or ["- none"]),
    )


def _machines(found: Mapping[str, Entry]) -> str:
    return "; ".join(sorted({_machine(entry) for entry in found.values()}))


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
            _range(part.calls, part.more_calls) + (f" + {part.raced}" if part.raced else ""),
            _range(part.opens, part.more_opens),
            f"{Size(part.nbytes)}{back}",
            _memory_text(part),
        ]
        if timed:
            cells.append(seconds_text(part.seconds) if part.seconds else "")
    return [*cells, f"{case.files}"]


def _range(fewest: int, more: int) -> str:
    return f"{fewest:,}–{fewest + more:,}" if more else f"{fewest:,}"


def _memory_text(part: Part) -> str:
    ends = dict.fromkeys(_mib(mib) for mib in (part.memory, part.memory + part.more_memory))
    return f"{'–'.join(ends)} MiB"


def _mib(mib: float) -> str:
    return f"{mib:.0f}" if mib >= 10 else f"{mib:.2g}"


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(Table("", heading, rows).markdown())


def file_of_version(place: Path, name: str, entry: Entry) -> Path:
    """Return the file of a version of a library, in the directory of the system."""
    system = entry.system.lower().split()
    return place / "libraries" / f"{system[0]}-{system[-1]}" / f"{name}.json"


def written(place: Path = PLACE) -> dict[Path, str]:
    """Return the texts of the pages, by their files."""
    systems = {path.name: entries(path) for path in sorted((place / "libraries").iterdir())}
    return {
        place / "README.md": page(entries(place)),
        place / "libraries.md": libraries_page(systems),
    }


def write_pages(place: Path = PLACE) -> None:
    """Write the pages again."""
    for path, text in written(place).items():
        path.write_text(text, encoding="utf-8")


def run_both(command: str, place: Path) -> Iterator[Path]:
    """Run the standard with counts and with times; yield the results directories.

    Parameters
    ----------
    command : str
        The command that starts Python on the ranks.
    place : Path
        Directory of the results, on the file system to be measured.
    """
    counting = ("--set", "counters=calls", "--set", "repetitions=3")
    for name, more in (("counts", counting), ("times", ())):
        out = place / name
        ranks = [*shlex.split(command), "-m", "pffbench", "run", "standard:1", *more]
        subprocess.run([*ranks, "--out", out, "--scratch", place], check=True)
        yield out


def main() -> None:
    """Add a stack, if its runs are named or to be made, and write the pages again."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", help="name of the stack, such as debian-12-openmpi")
    parser.add_argument("counts", nargs="?", type=Path, help="results with counters=calls")
    parser.add_argument("times", nargs="?", type=Path, help="results with times")
    parser.add_argument("--run", metavar="COMMAND", help="make both runs: 'mpiexec -n 2 python'")
    given = parser.parse_args()
    if given.name and bool(given.counts) == bool(given.run):
        parser.error(f"which results has {given.name}? Name directories, or give --run")
    with tempfile.TemporaryDirectory(prefix="standard-", dir=Path.cwd()) as place:
        counts, times = given.counts, given.times
        try:
            if given.run:
                counts, times = run_both(given.run, Path(place))
            if counts:
                save(entry_of([counts], times), PLACE / f"{given.name}.json")
        except (ValueError, subprocess.CalledProcessError) as error:
            parser.error(str(error))
    write_pages()


if __name__ == "__main__":
    main()
