"""Environment variables that change I/O without anybody noticing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pffbench.diagnosis.finding import Finding
from pffbench.results.provenance import environment_facts

TOPIC = "Environment"

_CHANGES_IO = re.compile(
    r"HDF5_|ROMIO_|MPICH_MPIIO_|I_MPI_EXTRA_FILESYSTEM|"
    r"OMPI_MCA_(?:io|fs|fcoll|fbtl|sharedfp|common_ompio)(?:_|$)|"
    r"NETCDF_|NC_|PNETCDF_|ZARR_|BLOSC_|DARSHAN_|LD_PRELOAD$|PFFBENCH_"
)


def judge_environment(environ: Mapping[str, str]) -> Iterator[Finding]:
    """List the variables that change I/O; a library that sits between is warned of.

    Parameters
    ----------
    environ : mapping
        The environment of a rank.
    """
    found = {
        name: str(value)
        for name, value in environment_facts(environ).items()
        if _CHANGES_IO.match(name)
    }
    if not found:
        yield Finding(TOPIC, "ok", "no variable is set that changes I/O")
    for name, value in found.items():
        if name == "LD_PRELOAD" and value.strip():
            yield _judge_preload(value)
        else:
            yield Finding(TOPIC, "ok", f"set, and changes I/O: {name}={value}")


def _judge_preload(value: str) -> Finding:
    what = "Darshan" if "darshan" in value else "another library"
    return Finding(
        TOPIC,
        "warning",
        f"LD_PRELOAD={value}: {what} stands between the program and its I/O",
        "unset LD_PRELOAD to measure without it, or compare with a run without it",
    )
