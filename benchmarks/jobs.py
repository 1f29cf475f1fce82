"""MPI jobs and runs of pffbench for a measurement, and the machine that they ran on."""

from __future__ import annotations

import csv
import os
import platform
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

#: Seconds after which a job counts as hung.
_PATIENCE = 900
_LIBRARIES = ("numpy", "mpi4py", "h5py", "netCDF4", "zarr", "tensorstore", "pffbench")
#: The job's seconds in each repetition of a case, as the tables have them (``seconds``): phase →
#: one number a repetition.
Times = Mapping[str, list[float]]


def run_ranks(ranks: int, command: Sequence[str], **more: str) -> str:
    """Run a command on this many ranks and return what it printed.

    Parameters
    ----------
    ranks : int
        Number of ranks.
    command : sequence of str
        The program and its arguments; the same MPI launcher and settings for all.
    **more
        Variables of the environment beside those that there are.

    Raises
    ------
    RuntimeError
        It failed; the message holds the end of what it said.
    """
    launcher = os.environ.get("PFFBENCH_MPIEXEC") or shutil.which("mpiexec") or "mpiexec"
    done = subprocess.run(
        [launcher, "-n", str(ranks), *command],
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=False,
        env={**os.environ, **more},
    )
    if done.returncode:
        said = (done.stdout + done.stderr)[-2000:]
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {said}")
    return done.stdout


def python(*arguments: str) -> list[str]:
    """Return the command that runs this Python."""
    return [sys.executable, *arguments]


def run_pffbench(ranks: int, experiment: str, place: Path) -> list[Times]:
    """Run an experiment and return the seconds of its cases, in the order of the experiment.

    Warm-up repetitions are left out. The files lie below `place`, results too.

    Raises
    ------
    RuntimeError
        The run failed or was not valid.
    """
    from pffbench.experiment.load import load_experiment

    out, scratch, file = place / "results", place / "scratch", place / "experiment.yaml"
    shutil.rmtree(out, ignore_errors=True)
    scratch.mkdir(exist_ok=True)
    file.write_text(experiment, encoding="utf-8")
    told = ["run", str(file), "--out", str(out), "--scratch", str(scratch)]
    run_ranks(ranks, python("-m", "pffbench", *told))
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with (out / "samples.csv").open(newline="", encoding="utf-8") as samples:
        for row in csv.DictReader(samples):
            if row["warmup"] == "false":
                found[row["case"]][row["phase"]].append(float(row["seconds"]))
    return [found[case.id] for _, case in load_experiment(str(file)).cases]


def summed(times: Times, phases: Sequence[str]) -> list[float]:
    """Return the seconds of these phases together, of each repetition."""
    return [sum(parts) for parts in zip(*(times[phase] for phase in phases), strict=True)]


def load() -> str:
    """Return the load averages of the machine as text."""
    return " ".join(f"{n:.2f}" for n in os.getloadavg())


def machine() -> dict[str, Any]:
    """Return what figures depend on."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "load average": load(),
        "cores": len(os.sched_getaffinity(0)),
        "processor": _processor(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        **{name: found for name in _LIBRARIES if (found := _version(name))},
        "ior": _ior_version(),
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _processor() -> str:
    with Path("/proc/cpuinfo").open(encoding="utf-8") as lines:
        return next((line.split(":")[1].strip() for line in lines if "model name" in line), "")


def _ior_version() -> str:
    """Return what IOR calls itself, which it only does when it runs."""
    if shutil.which("ior") is None:
        return "not on PATH"
    nothing = ["ior", "-a", "DUMMY", "-w", "-b", "1k", "-t", "1k"]
    said = subprocess.run(nothing, capture_output=True, text=True, check=False).stdout
    return next((line.split(":")[0] for line in said.splitlines() if "IOR-" in line), "unknown")
