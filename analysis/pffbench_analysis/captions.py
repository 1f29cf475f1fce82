"""Text of figures and of the page: what was measured where, with which software, and problems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pffbench.record.run_json import RunRecord
from pffbench.results.summary import Summary
from pffbench.text import abridged, counted

#: Libraries whose versions are named below a figure, by import name, with the C library that
#: each wraps, by the key in `run.json`.
_LIBRARIES = {
    "h5py": "hdf5",
    "netCDF4": "netcdf_c",
    "zarr": "",
    "tensorstore": "",
    "mpi4py": "mpi_library",
}
_MOST_NAMED = 3


def place_of(record: RunRecord) -> str:
    """Return where and when a run was measured: processor or host, file system, ranks, date."""
    made = record.provenance
    host = (made.get("hosts") or [{}])[0]
    machine = host.get("cpu_model") or host.get("host") or next(iter(record.topology.hosts), "")
    filesystem = (made.get("filesystem") or {}).get("type")
    facts = [machine, filesystem, job_size(record), record.started[:10]]
    return ", ".join(" ".join(str(fact).split()) for fact in facts if fact)


def job_size(record: RunRecord) -> str:
    """Return the number of ranks, and of nodes if there are several."""
    nodes = len(set(record.topology.nodes))
    on = f" on {counted(nodes, 'node')}" if nodes > 1 else ""
    return counted(record.ranks, "rank") + on


def footnote(summary: Summary) -> str:
    """Name the run, where and when it was measured, and the versions."""
    record = summary.record
    return "; ".join([f"run {record.run_id}", place_of(record), *software_versions(record)])


def alarms(record: RunRecord) -> list[str]:
    """List the problems of a run."""
    texts = [f"INVALID: {record.objection}"] if record.objection else []
    if record.status != "finished":
        state = "has not ended" if record.status == "running" else "was interrupted"
        texts.append(f"The run {state}: rounds are missing.")
    return texts


def gaps(summary: Summary) -> list[str]:
    """List what a report lacks: lines that were cut short, and cases without a number."""
    record = summary.record
    texts = list(summary.gaps)
    if nothing := sorted(record.cases.keys() - summary.by_name.keys()):
        named = abridged(nothing, _MOST_NAMED, ", ")
        texts.append(f"{len(nothing)} of {len(record.cases)} cases gave no number: {named}")
    if impossible := len(record.left_out) - record.without_time:
        texts.append(f"{counted(impossible, 'case')} cannot run and are left out: see run.json")
    return texts


def software_versions(record: RunRecord) -> list[str]:
    """Name pffbench and the libraries that a run used, with their versions."""
    software = record.provenance.get("software", {})
    own = software.get("pffbench", {}).get("version")
    texts = [f"pffbench {own}"] if own else []
    libraries = software.get("libraries", {})
    for name, wrapped in _LIBRARIES.items():
        facts = libraries.get(name)
        if isinstance(facts, Mapping) and facts.get("version"):
            texts.append(_version(name, facts, wrapped))
    return list(dict.fromkeys(texts))


def _version(name: str, facts: Mapping[str, Any], wrapped: str) -> str:
    below = facts.get(wrapped)
    if wrapped == "mpi_library" and below:
        return str(below).split(",")[0].replace(" v", " ")
    inner = {"hdf5": "HDF5", "netcdf_c": "netCDF-C"}.get(wrapped, wrapped)
    return f"{name} {facts['version']}" + (f" with {inner} {below}" if below else "")
