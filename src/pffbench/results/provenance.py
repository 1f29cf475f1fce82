"""Everything about a run that a result would be worthless without (rule 10 of the method).

Each function returns plain values that can be written as JSON, and never raises because a fact
cannot be found: it records None, or the reason as text. The facts of ranks and hosts, of the
software and of MPI-IO have modules of their own; here is what the environment tells.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from datetime import datetime

from pffbench.programs import ask
from pffbench.results.facts import Fact, Facts
from pffbench.results.hosts import host_facts, rank_facts
from pffbench.results.mpiio import hints_of, io_component, mpi_io_facts
from pffbench.results.software import software_facts

__all__ = [
    "environment_facts",
    "hints_of",
    "host_facts",
    "io_component",
    "mpi_io_facts",
    "rank_facts",
    "slurm_facts",
    "software_facts",
]

_PREFIXES = (
    "SLURM_",
    "SLURMD_",
    "PBS_",
    "FLUX_",  # batch systems
    "OMPI_",
    "OPAL_",
    "PMIX_",
    "PMI_",
    "PRTE_",
    "MPICH_",
    "MPIR_CVAR_",
    "HYDRA_",
    "I_MPI_",
    "MV2_",
    "PALS_",
    "FI_",
    "UCX_",
    "ROMIO_",
    "CRAY_",  # MPI and its networks
    "HDF5_",
    "H5",
    "NETCDF_",
    "NC_",
    "PNETCDF_",
    "ZARR_",
    "BLOSC_",
    "TENSORSTORE_",  # formats
    "LUSTRE_",
    "LLAPI_",
    "LIBLUSTREAPI_",
    "GPFS_",
    "BEEGFS_",
    "DARSHAN_",  # storage
    "OMP_",
    "OPENBLAS_",
    "MKL_",
    "KMP_",
    "GOMP_",  # threads
    "PFFBENCH_",
    "SPACK_",
    "PYTHON",
    "MALLOC_",
)
_NAMES = {"LOADEDMODULES", "VIRTUAL_ENV", "CONDA_PREFIX", "LD_PRELOAD", "LD_LIBRARY_PATH"}
# What launchers tell their ranks about sockets, sessions and job numbers matters to nobody later.
_NOISE = re.compile(
    "OMPI_MCA_orte_|OMPI_FILE_|PMIX_(SERVER|DSTORE|NAMESPACE|ID$|SECURITY|SYSTEM|BFROP|GDS)"
)
_SECRET = re.compile("TOKEN|KEY|PASSW|SECRET|COOKIE|CREDENTIAL|JWT", re.IGNORECASE)
_HIDDEN = "<hidden>"

_SLURM_VARIABLES = (
    "JOB_ID",
    "ARRAY_JOB_ID",
    "ARRAY_TASK_ID",
    "STEP_ID",
    "CLUSTER_NAME",
    "JOB_PARTITION",
    "JOB_QOS",
    "JOB_ACCOUNT",
    "JOB_NAME",
    "JOB_USER",
    "JOB_NODELIST",
    "JOB_NUM_NODES",
    "NTASKS",
    "NTASKS_PER_NODE",
    "TASKS_PER_NODE",
    "CPUS_PER_TASK",
    "CPUS_ON_NODE",
    "JOB_CPUS_PER_NODE",
    "MEM_PER_CPU",
    "MEM_PER_NODE",
    "TOPOLOGY_ADDR",
    "RESTART_COUNT",
    "SUBMIT_HOST",
    "SUBMIT_DIR",
    "MPI_TYPE",
    "CPU_BIND",
    "DISTRIBUTION",
    "STEP_NODELIST",
    "STEP_NUM_TASKS",
    "STEP_TASKS_PER_NODE",
)
_SCONTROL_FIELDS = (
    "SubmitTime",
    "EligibleTime",
    "StartTime",
    "EndTime",
    "TimeLimit",
    "Restarts",
    "Partition",
    "Account",
    "QOS",
    "NodeList",
    "BatchHost",
    "NumNodes",
    "NumCPUs",
    "NumTasks",
    "TRES",
    "AllocTRES",
    "OverSubscribe",
    "Features",
    "Reservation",
    "Comment",
    "Command",
    "WorkDir",
)
_SCONTROL_FIELD = re.compile(r"(?:^|\s)([A-Z][A-Za-z:/]*)=(.*?)(?=\s+[A-Z][A-Za-z:/]*=|\s*$)")


def environment_facts(environ: Mapping[str, str]) -> Facts:
    """Pick the environment variables that change how I/O, MPI or Python behave.

    Values of variables whose name looks like a secret are replaced by ``<hidden>``.

    Parameters
    ----------
    environ : mapping
        An environment, such as `os.environ`.
    """
    return {
        name: _HIDDEN if _SECRET.search(name) else value
        for name, value in sorted(environ.items())
        if (name.startswith(_PREFIXES) and not _NOISE.match(name)) or name in _NAMES
    }


def slurm_facts(environ: Mapping[str, str], timeout: float = 5.0) -> Facts:
    """Describe the Slurm job, with the times that tell how long it waited.

    Parameters
    ----------
    environ : mapping
        An environment, such as `os.environ`.
    timeout : float
        Seconds that ``scontrol`` may take.

    Returns
    -------
    dict
        Empty outside of a job. Else the job's variables in lower case without their prefix,
        ``scontrol`` (the fields of the job, or as text why there are none) and, where the times
        are known, ``queue_wait_s``: from submission to start, so with any wait for a dependency.
    """
    if not environ.get("SLURM_JOB_ID"):
        return {}
    facts: Facts = {
        name.lower(): environ["SLURM_" + name]
        for name in _SLURM_VARIABLES
        if "SLURM_" + name in environ
    }
    job = _scontrol_job(environ["SLURM_JOB_ID"], timeout)
    facts["scontrol"] = job
    if isinstance(job, dict):
        facts["queue_wait_s"] = _seconds_between(job.get("SubmitTime"), job.get("StartTime"))
    return facts


def _scontrol_job(job_id: str, timeout: float) -> Fact:
    program = shutil.which("scontrol")
    if program is None:
        return "unknown: scontrol not found"
    answer = ask([program, "show", "job", "-o", job_id], timeout)
    if not answer.ok:
        return answer.text
    fields = dict(_SCONTROL_FIELD.findall(answer.text))
    return {name: fields[name] for name in _SCONTROL_FIELDS if name in fields}


def _seconds_between(first: Fact, second: Fact) -> float | None:
    try:
        start, end = (datetime.fromisoformat(str(time)) for time in (first, second))
    except ValueError:  # "Unknown" or "None"
        return None
    return (end - start).total_seconds()
