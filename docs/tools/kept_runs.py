"""Keep the raw rows of a run in the repository with its place masked; say where it was made."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from pffbench.summary.summary import Summary

#: What a run measured; everything else in its directory is made from it.
RAW = ("run.json", "samples.csv", "counters.csv", "ranks.h5")
#: What stands in a kept run where it names the checkout, and each host.
_CHECKOUT, _HOST = "/home/user/pffbench", "vm"
#: Absolute paths in a record, but for those that are alike on many machines.
_OWN_PATH = re.compile(
    r"(?<=[\"=: ,;])/(?!(?:usr|dev|proc|sys|etc|lib|lib64|bin|opt|run|home/user)/)"
    r"[\w.+@~-]+(?:/[\w.+@~-]+)*"
)


def keep(run: Path, kept: Path) -> None:
    """Copy the raw rows of a run, with the names of its directories and hosts masked.

    Parameters
    ----------
    run : Path
        Results directory, left unchanged.
    kept : Path
        Directory in the repository, made where it is missing.
    """
    text = (run / "run.json").read_text(encoding="utf-8")
    record = json.loads(text)
    provenances = [record["provenance"]]
    provenances += [entry["provenance"] for entry in record.get("environments", {}).values()]
    hosts = {fact["host"] for made in provenances for fact in made.get("hosts", [])}
    executable = record["provenance"]["software"]["python"]["executable"]
    text = text.replace(re.sub(r"/\.v?envs?/.*", "", executable), _CHECKOUT)
    text = _OWN_PATH.sub(_masked, text)
    for host in hosts:
        text = text.replace(json.dumps(host), f'"{_HOST}"')
    kept.mkdir(parents=True, exist_ok=True)
    (kept / "run.json").write_text(text, encoding="utf-8")
    for name in ("samples.csv", "counters.csv"):
        if (run / name).exists():
            rows = (run / name).read_text(encoding="utf-8")
            for host in hosts:
                rows = rows.replace(f",{host},", f",{_HOST},")
            (kept / name).write_text(rows, encoding="utf-8")
    if (run / "ranks.h5").exists():
        _keep_ranks(run / "ranks.h5", kept / "ranks.h5")


def _masked(path: re.Match[str]) -> str:
    """Return a user's path that keeps the last name only; a directory of the root has none."""
    place = Path(path[0])
    return f"/home/user/{place.name}" if len(place.parts) > 2 else "/home/user"


def _keep_ranks(ranks: Path, kept: Path) -> None:
    """Copy the times of ranks into a new file: in a changed one the old names would remain."""
    import h5py

    with h5py.File(ranks) as source, h5py.File(kept, "w") as target:
        for name in source:
            if name != "host":
                source.copy(name, target)
        if "host" in source:
            names = source["host"]
            target.create_dataset("host", data=[_HOST] * len(names), dtype=names.dtype)


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
    mpi = software["libraries"]["mpi4py"]["mpi_library"].partition(",")[0]
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
