"""Differences in the provenance of two runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pffbench.record.run import MeasuredRun
from pffbench.text import value_text

#: Placeholder for a fact that only the other run has recorded.
ABSENT = "–"


@dataclass(frozen=True)
class Difference:
    """A fact in which two runs differ."""

    #: Its path: ``size``, ``experiment``, ``software``, ``mpi_io``, ``filesystem``, ``inputs``,
    #: ``hosts``, ``binding``, ``environment`` or ``slurm``, then the names below it, joined by
    #: dots.
    key: str
    #: Recorded values; `ABSENT` where only the other run has the fact.
    a: str
    b: str

    @property
    def area(self) -> str:
        """The first part of the key."""
        return self.key.partition(".")[0]

    def __str__(self) -> str:
        return f"{self.key}: {self.a} / {self.b}"


def differences(a: MeasuredRun, b: MeasuredRun) -> list[Difference]:
    """List the provenance in which two runs differ, in a fixed order.

    Host names, dates, paths and job variables of a launcher are not compared, nor are cases:
    their names hold a digest of all their parameters. A library is compared only where
    both runs used it.
    """
    one, other = facts(a), facts(b)
    keys = [*one, *(key for key in other if key not in one)]
    return [
        Difference(key, one.get(key, ABSENT), other.get(key, ABSENT))
        for key in keys
        if one.get(key) != other.get(key)
        and not (key.startswith(_ONLY_WHERE_BOTH) and (key not in one or key not in other))
    ]


#: Facts about libraries and input files, which depend on the cases of the experiment.
_ONLY_WHERE_BOTH = ("software.libraries.", "software.loaded.", "inputs.")


def facts(run: MeasuredRun) -> dict[str, str]:
    """Return the facts that `differences` compares: a run's provenance as text, by path."""
    record, provenance = run.record, run.record.provenance
    per_node = [{"ranks": number} for number in record.topology.ranks_per_node]
    size = {"ranks": run.ranks, "nodes": run.nodes, "ranks_per_node": _each(per_node, "ranks")}
    found: dict[str, Any] = {
        "size": size,
        "experiment": {k: v for k, v in record.experiment.items() if k in _EXPERIMENT},
        "software": _software(provenance.get("software", {})),
        "mpi_io": provenance.get("mpi_io", {}),
        "filesystem": _filesystem(provenance.get("filesystem", {})),
        "inputs": provenance.get("inputs", {}),
        "hosts": {key: _each(provenance.get("hosts", []), key) for key in _HOST},
        "binding": {key: _each(provenance.get("ranks", []), key) for key in _RANK},
        "environment": _environment(provenance.get("environment", {})),
        "slurm": {k: v for k, v in provenance.get("slurm", {}).items() if k in _SLURM},
    }
    return {key: text for key, text in _flat("", found) if text not in ("", "None")}


_EXPERIMENT = ("name", "repetitions", "warmup", "seed", "memory", "time_budget", "target_interval")
_FILESYSTEM = ("type", "device", "mount_point", "options", "block_size", "striping")
_HOST = (
    "cpu_model", "sockets", "cores", "threads", "memory", "kernel", "os", "machine", "governor",
    "turbo", "transparent_huge_pages", "vm",
)  # fmt: skip
_RANK = ("cpus", "memory_limit_bytes")
_SLURM = (
    "cluster_name", "job_partition", "job_qos", "cpus_per_task", "mpi_type", "cpu_bind",
    "distribution",
)  # fmt: skip
#: Variables that libraries, not launchers, read.
_VARIABLES = re.compile(
    r"(HDF5_|H5|NETCDF_|NC_|PNETCDF_|ZARR_|BLOSC_|TENSORSTORE_|ROMIO_|LUSTRE_|DARSHAN_|OMP_"
    r"|OPENBLAS_|MKL_|MALLOC_|FI_|UCX_|I_MPI_|MPICH_|MV2_|OMPI_MCA_|LD_PRELOAD$)"
)
#: Variables that mpiexec and srun set by job or number of ranks.
_OF_A_JOB = re.compile(
    r"OMPI_MCA_(ess|initial_|num_procs|pmix|orte_|shmem_|mpi_oversubscribe|mpi_yield|rmaps_|hwloc_|plm_)"
    r"|I_MPI_(HYDRA|INFO)|MV2_COMM|MPICH_(RANK|SIZE)"
)


def _software(software: Mapping[str, Any]) -> dict[str, Any]:
    libraries = {
        name: {k: v for k, v in told.items() if k not in ("path", "imported", "spack_hash")}
        for name, told in software.get("libraries", {}).items()
        if isinstance(told, Mapping) and told.get("imported")
    }
    loaded = {
        kind: " ".join(sorted(Path(path).name for path in paths))
        for kind, paths in software.get("loaded", {}).items()
    }
    python = {k: v for k, v in software.get("python", {}).items() if k != "executable"}
    return {
        "python": python,
        "pffbench": software.get("pffbench", {}),
        "libraries": libraries,
        "loaded": loaded,
    }


def _filesystem(told: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: told.get(key) for key in _FILESYSTEM}
    if found["striping"] and told.get("path"):  # the tool repeats the path, a new one each time
        found["striping"] = str(found["striping"]).replace(str(told["path"]), "PATH")
    return found


def _environment(variables: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in variables.items()
        if _VARIABLES.match(name) and not _OF_A_JOB.match(name)
    }


def _each(entries: Iterable[Mapping[str, Any]], key: str) -> str:
    """Return the distinct values among hosts or ranks; one text if all are equal."""
    found = (_value(entry, key) for entry in entries)
    return " | ".join(sorted({_text(value) for value in found if value is not None}))


def _value(entry: Mapping[str, Any], key: str) -> Any:
    if key == "memory":  # equal machines differ by the memory that firmware reserves
        nbytes = entry.get("memory_bytes")
        return None if nbytes is None else f"{nbytes / 2**30:.0f} GiB"
    return entry.get(key)


def _flat(place: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from _flat(f"{place}.{key}" if place else str(key), below)
    else:
        yield place, _text(value)


def _text(value: Any) -> str:
    return " ".join(value_text(value).split())
