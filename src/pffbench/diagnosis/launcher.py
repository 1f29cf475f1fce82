"""The launcher: whether it and the MPI library belong together."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence

from pffbench.diagnosis.finding import Finding
from pffbench.programs import ask

TOPIC = "Launcher"
_SECONDS = 10.0


def judge_launcher(claim: tuple[int, str] | None, size: int, vendor: str) -> Finding:
    """Tell whether MPI has as many ranks as the launcher started.

    Parameters
    ----------
    claim : tuple of int and str, or None
        The launcher's number and where it says so, from `launcher_size`.
    size : int
        Number of ranks that MPI knows of.
    vendor : str
        Name of the MPI library.
    """
    ranks = "1 rank" if size == 1 else f"{size} ranks"
    if claim is None:
        if size == 1:
            return Finding(TOPIC, "ok", "started alone: 1 rank")
        return Finding(TOPIC, "ok", f"{ranks}; the launcher leaves no number to compare with")
    number, variable = claim
    if number == size:
        return Finding(TOPIC, "ok", f"{ranks}, as {variable} says")
    return Finding(
        TOPIC,
        "problem",
        f"the launcher started {number} processes ({variable}={number}) but MPI knows of {size}: "
        "launcher and MPI library do not belong together",
        _remedy(variable, vendor),
    )


def judge_slurm_types(types: Sequence[str], vendor: str | None) -> Finding:
    """Tell which kinds of MPI ``srun`` can start.

    Parameters
    ----------
    types : sequence of str
        What ``srun --mpi=list`` names.
    vendor : str or None
        Name of the MPI library, when it is known.
    """
    text = f"srun --mpi knows: {', '.join(types) or 'nothing'}"
    if vendor == "Open MPI" and not any(kind.startswith("pmix") for kind in types):
        return Finding(
            TOPIC,
            "warning",
            f"{text}; Open MPI needs pmix, so srun would start separate programs of 1 rank",
            "use mpiexec inside the allocation",
        )
    return Finding(TOPIC, "ok", text)


def look_at_slurm(vendor: str | None) -> Iterator[Finding]:
    """Ask ``srun`` which kinds of MPI it can start; nothing where there is no Slurm."""
    if shutil.which("srun") is None:
        return
    # Older versions of Slurm print the list to standard error.
    answer = ask(["sh", "-c", "exec srun --mpi=list 2>&1"], _SECONDS)
    if answer.ok:
        yield judge_slurm_types(mpi_types(answer.text), vendor)
    else:
        yield Finding(TOPIC, "unknown", f"what srun --mpi=list would say: {answer.text}")


def mpi_types(text: str) -> list[str]:
    """Pick the names out of what ``srun --mpi=list`` prints."""
    names = []
    for line in text.splitlines():
        words = line.strip().removeprefix("srun:").strip()
        if re.fullmatch(r"[a-z][a-z0-9_/]*", words):
            names.append(words)
        elif words.startswith("specific pmix plugin versions available:"):
            names += words.partition(":")[2].replace(",", " ").split()
    return list(dict.fromkeys(names))


def _remedy(variable: str, vendor: str) -> str:
    if variable.startswith("SLURM_"):
        kind = "pmix" if vendor == "Open MPI" else "pmi2 or cray_shasta"
        return f"start with srun --mpi={kind}, or with the mpiexec of {vendor}"
    return f"start with the mpiexec of {vendor}, the MPI that mpi4py loads (or srun --mpi=pmix)"
