"""The nodes: cores, memory, kernel, load, clock, and environment variables that change I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from pffbench.doctor.finding import Finding, Findings, ok, warning
from pffbench.doctor.subject import Subject
from pffbench.proc import from_ranges
from pffbench.provenance.binding import shared_quota
from pffbench.provenance.facts import Fact, Facts, environment_facts
from pffbench.text import abridged, counted
from pffbench.units import Size

#: Part of the cores that may be busy before the node counts as used by others.
_BUSY = 0.5
_YIELD = "OMPI_MCA_mpi_yield_when_idle"


def check_nodes(subject: Subject) -> Findings:
    """Hardware, load, and a core for each rank, on every node."""
    per_node: list[tuple[str, Finding]] = []
    for number, node in sorted(subject.hosts.items()):
        placed = zip(subject.ranks, subject.nodes, strict=True)
        ranks = [rank for rank, place in placed if place == number]
        threads = _number(node.get("threads"))
        judged = [
            ok(_hardware(node, threads)),
            _judge_memory(_number(node.get("memory_bytes")), ranks[0].get("memory_limit_bytes")),
            _judge_settings(node),
        ]
        load = node.get("load_average")
        if isinstance(load, list) and load:
            judged.append(_judge_load(float(str(load[0])), threads, len(ranks)))
        judged += _judge_cores(ranks, subject)
        per_node += [(str(node["host"]), finding) for finding in judged]
    return by_node(per_node)


def _judge_cores(ranks: Sequence[Facts], subject: Subject) -> Findings:
    """Warn of ranks of a node that do not have a core each."""
    cores = len(set().union(*(from_ranges(str(rank["affinity"])) for rank in ranks)))
    remedy = "start no more ranks than cores, or use the times as a test of function only"
    if text := shared_quota(ranks):
        remedy = f"raise the quota of the container or job (docker --cpus), or {remedy}"
    elif len(ranks) > cores:
        text = f"{len(ranks)} ranks share {counted(cores, 'core')}: times say little"
    else:
        return
    if subject.vendor == "Open MPI":
        value = subject.environ.get(_YIELD)
        text += f"; {_YIELD} is {'not set' if value is None else value}"
        if value != "1":
            remedy += f"; export {_YIELD}=1, so that waiting ranks give up their core"
    yield warning(text, remedy)


def by_node(findings: Iterable[tuple[str, Finding]]) -> Findings:
    """Merge findings that are equal on several nodes, and name the nodes where they differ.

    Parameters
    ----------
    findings : iterable of (str, Finding)
        Host and its finding.
    """
    hosts: dict[Finding, list[str]] = {}
    everywhere: set[str] = set()
    for host, finding in findings:
        hosts.setdefault(finding, []).append(host)
        everywhere.add(host)
    for finding, where in hosts.items():
        if len(everywhere) == 1:
            yield finding
        else:
            every = len(where) == len(everywhere)
            named = f"all {len(where)} nodes" if every else abridged(where, 4, ", ")
            yield replace(finding, text=f"{named}: {finding.text}")


def _hardware(node: Facts, threads: int) -> str:
    cores = node.get("cores") or threads
    return f"{node.get('cpu_model') or node.get('machine')}: {cores} cores, {threads} threads"


def _judge_memory(total: int, limit: Fact) -> Finding:
    text = f"{Size(total)} of memory"
    if isinstance(limit, int) and limit < total:
        text += f", of which the control group allows {Size(limit)}"
    return ok(f"{text}; data smaller than this may never leave the page cache")


def _judge_settings(node: Facts) -> Finding:
    governor = node.get("governor")
    text = f"transparent huge pages: {node.get('transparent_huge_pages') or 'not told'}; "
    text += f"clock governor: {governor or 'not told'}"
    if governor in ("powersave", "conservative"):
        remedy = "ask for the governor performance; the first phases may run at a low clock"
        return warning(text, remedy)
    return ok(text)


def _judge_load(load: float, threads: int, ranks: int) -> Finding:
    most = _BUSY * threads + ranks
    if load > most:
        text = f"load over the last minute: {load:.1f} on {threads} threads"
        remedy = "wait, or take nodes for yourself (Slurm: --exclusive); times will scatter"
        return warning(f"{text}: others are using this machine", remedy)
    # Without the number, which differs between nodes, so that they are told in one line.
    text = f"load over the last minute: at most {most:g} on {threads} threads, which is little"
    return ok(text)


def _number(fact: Fact) -> int:
    return int(fact) if isinstance(fact, int | float) else 0


#: An empty phase that costs more than this hides most of the time of small experiments.
_SLOW_BARRIER = 0.01


def check_clock(subject: Subject) -> Findings:
    """How much time an empty phase costs."""
    floor = subject.floor
    if floor is None:
        return
    text = (
        f"an empty phase costs {_seconds(floor.synced)} on {counted(len(subject.ranks), 'rank')}, "
        f"the clock ticks every {_seconds(floor.tick)}: phases under "
        f"{_seconds(floor.resolution('synced'))} are marked as below resolution"
    )
    if floor.synced <= _SLOW_BARRIER:
        yield ok(text)
    else:
        remedy = "give each rank a core, keep others off the nodes, and move more data per phase"
        yield warning(text, remedy)


def _seconds(value: float) -> str:
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


#: Not where a library lies, which modules tell in variables such as HDF5_DIR.
_CHANGES_IO = re.compile(
    r"(?![A-Z]+5?_(?:\w+_)?(?:DIR|ROOT|HOME|PREFIX|BASE|VERSION|BIN|INC\w*|LIB\w*|MPI)$)(?:"
    r"HDF5_|NETCDF_|NC_|PNETCDF_|ZARR_|BLOSC_|DARSHAN_|ROMIO_)|"
    r"H5FD_|MPICH_MPIIO_|I_MPI_EXTRA_FILESYSTEM|"
    r"OMPI_MCA_(?:io|fs|fcoll|fbtl|sharedfp|common_ompio)(?:_|$)|LD_PRELOAD$|PFFBENCH_SCRATCH$"
)


def check_environment(subject: Subject) -> Findings:
    """Which variables are set that change I/O, and a library that intercepts calls."""
    found = {
        name: str(value)
        for name, value in environment_facts(subject.environ).items()
        if _CHANGES_IO.match(name)
    }
    if not found:
        yield ok("no variable is set that changes I/O")
    for name, value in found.items():
        if name == "LD_PRELOAD" and value.strip():
            yield _judge_preload(value)
        elif why := _ineffective(name, value):
            yield warning(f"set, and without effect: {name}={value} ({why[0]})", why[1])
        else:
            yield ok(f"set, and changes I/O: {name}={value}")


#: Words that HDF5 accepts, in capitals only (H5F__parse_file_lock_env_var); it ignores all others.
_WORDS = {"HDF5_USE_FILE_LOCKING": ("FALSE", "0", "TRUE", "1", "BEST_EFFORT")}
#: Variables that name a file or directories, which the libraries ignore if they do not exist.
_PATHS = {"ROMIO_HINTS": "file", "HDF5_PLUGIN_PATH": "directory"}


def _ineffective(name: str, value: str) -> tuple[str, str] | None:
    """Return why a library ignores the value of a variable, and a remedy; None if it does not."""
    words = _WORDS.get(name)
    if words is not None and value not in words:
        meant = value.strip().upper()
        use = f"export {name}={meant}" if meant in words else f"unset {name}, or use one of these"
        return f"HDF5 accepts {', '.join(words)}, in capitals only", use
    kind = _PATHS.get(name)
    if kind is None or any(Path(path).exists() for path in value.split(":") if path):
        return None
    return f"there is no such {kind}", f"unset {name}, or correct the path"


def _judge_preload(value: str) -> Finding:
    what = "Darshan stands" if "darshan" in value else "another library may stand"
    return warning(
        f"LD_PRELOAD={value}: {what} between the program and its I/O",
        "unset LD_PRELOAD to measure without it, or compare with a run without it",
    )
