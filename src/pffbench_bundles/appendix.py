"""The artifact description of a run, as checklists of conferences and journals ask for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pffbench.summary.conclusions import validity
from pffbench.summary.summary import Summary
from pffbench.text import escape_markdown
from pffbench.units import Size
from pffbench_bundles.claims import statements


def appendix(summary: Summary, bundle: str) -> Iterator[str]:
    """Yield the artifact description of a run in Markdown: claims, needs and commands.

    Parameters
    ----------
    summary : Summary
        The run.
    bundle : str
        Path of its bundle, for the commands.
    """
    record, made = summary.record, summary.record.provenance
    program = made.get("software", {}).get("pffbench", {})
    space = max(entry.get("cost", {}).get("space", 0) for entry in record.cases.values())
    inputs = [f"{name}: {told}" for name, told in made.get("inputs", {}).items()]
    parts = {
        "Claims": [f"{text} ({len(claims)} comparisons)" for text, claims in statements(summary)],
        "Hardware and software": [
            platform(summary, list(made["software"]["libraries"])),
            *dict.fromkeys(map(_host, made["hosts"])),
            f"file system options: {made['filesystem'].get('options')}",
            f"pffbench {program.get('version')}, commit {program.get('commit')}"
            f"{', changed' if program.get('dirty') else ''}",
        ],
        "Data": inputs or [f"made by pffbench from the seed {record.experiment.get('seed')}"],
        "Space and time": [
            f"scratch space: {Size(space)} at a time",
            f"measured from {record.started} to {record.finished}; {validity(summary)}",
        ],
    }
    yield from (f"# Artifact description: {record.name}", "", escape_markdown(record.question), "")
    for heading, lines in parts.items():
        yield from (f"## {heading}", "", *(f"- {escape_markdown(line)}" for line in lines), "")
    yield from ("## Commands", "", "Derive every number and sentence from the raw rows:", "")
    yield from (f"    pffbench check {bundle}", "", "Measure again, and judge each claim:", "")
    yield f"    mpiexec -n {record.ranks} python -m pffbench reproduce {bundle}"


def _host(host: dict[str, Any]) -> str:
    memory = Size(host.get("memory_bytes") or 0)
    return f"each node: {memory} of memory, kernel {host.get('kernel')}"


def platform(summary: Summary, libraries: Sequence[str]) -> str:
    """Return one sentence on where a run was made, and when.

    Parameters
    ----------
    summary : Summary
        The run.
    libraries : sequence of str
        Libraries whose versions belong to it; those that the run did not load are left out.
    """
    record = summary.record
    provenances = [told["provenance"] for told in record.environments.values()]
    first = (provenances or [record.provenance])[0]
    (host, *_), software = first["hosts"], first["software"]
    names = list(record.environments) or [""]
    versions = [_versions(p["software"]["libraries"], libraries) for p in provenances or [first]]
    told = "; ".join(": ".join(filter(None, pair)) for pair in zip(names, versions, strict=True))
    ranks = f"{record.ranks} rank{'s' * (record.ranks > 1)}"
    mpi = software["libraries"]["mpi4py"].get("mpi_library", "no MPI").partition(",")[0]
    return (
        f"{ranks} on {host['cores']} cores ({host['cpu_model']}), {host['os']}, Python "
        f"{software['python']['version']}, {mpi}, {first['filesystem']['type']}, "
        f"{record.started[:10]}. {told}."
    )


def _versions(found: dict[str, dict[str, str]], libraries: Sequence[str]) -> str:
    #: The libraries in C that h5py and netCDF4 call.
    wrapped = {"h5py": ("HDF5", "hdf5"), "netCDF4": ("netCDF-C", "netcdf_c")}
    told = []
    for name in libraries:
        facts = found.get(name, {})
        if version := facts.get("version"):
            told.append(f"{name} {version}")
        if name in wrapped and (version := facts.get(wrapped[name][1])):
            told.append(f"{wrapped[name][0]} {version}")
    return ", ".join(told)
