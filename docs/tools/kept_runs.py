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
#: Beginnings of paths that tell nothing about whose machine it was.
_COMMON = ("/usr/", "/dev/", "/proc/", "/sys/", "/etc/", "/lib", "/bin/", "/opt/", "/home/user/")


def keep(run: Path, kept: Path) -> None:
    """Copy the raw rows of a run, with the names of its directories and hosts masked.

    Parameters
    ----------
    run : Path
        Results directory, left unchanged.
    kept : Path
        Directory in the repository, made where it is missing.

    Raises
    ------
    ValueError
        A path would remain that names something of the machine.
    """
    text = (run / "run.json").read_text(encoding="utf-8")
    record = json.loads(text)
    provenances = [record["provenance"]]
    provenances += [entry["provenance"] for entry in record.get("environments", {}).values()]
    hosts = {fact["host"] for made in provenances for fact in made.get("hosts", [])}
    executable = record["provenance"]["software"]["python"]["executable"]
    scratch = record.get("scratch") or ""
    text = text.replace(re.sub(r"/\.v?envs?/.*", "", executable), _CHECKOUT)
    if scratch and not scratch.startswith(_CHECKOUT):
        text = text.replace(str(Path(scratch).parent), f"{_CHECKOUT}/pffbench-scratch")
    for host in hosts:
        text = text.replace(json.dumps(host), f'"{_HOST}"')
    if left := sorted(set(_own_paths(text))):
        raise ValueError(f"{run / 'run.json'} names {', '.join(left)}: mask that first")
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


def _own_paths(text: str) -> list[str]:
    paths = re.findall(r'"(/[^"/]+/[^"]*)"', text)
    return [path for path in paths if not path.startswith(_COMMON)]


def _keep_ranks(ranks: Path, kept: Path) -> None:
    """Copy the times of ranks, without room for further repetitions."""
    import h5py

    kept.unlink(missing_ok=True)
    with h5py.File(ranks) as source, h5py.File(kept, "w") as target:
        target.attrs.update(source.attrs)
        for name in source:
            source.copy(name, target)
        if "host" in target:
            target["host"][:] = [_HOST] * len(target["host"])


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
