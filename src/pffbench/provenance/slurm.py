"""The Slurm job of a run: its resources, binding and queue time.

User and account are omitted unless requested, since results are passed on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from pffbench.provenance.facts import Fact, Facts, job_variables
from pffbench.tools import run_tool

_VARIABLES = (
    # the job and its parents
    "JOB_ID", "ARRAY_JOB_ID", "ARRAY_TASK_ID", "ARRAY_TASK_COUNT", "HET_SIZE", "STEP_ID",
    "RESTART_COUNT", "JOB_NAME", "CLUSTER_NAME", "JOB_PARTITION", "JOB_QOS", "JOB_RESERVATION",
    # size
    "JOB_NODELIST", "JOB_NUM_NODES", "JOB_CPUS_PER_NODE", "NTASKS", "NTASKS_PER_NODE",
    "NTASKS_PER_SOCKET", "NTASKS_PER_CORE", "TASKS_PER_NODE", "CPUS_PER_TASK", "CPUS_ON_NODE",
    "MEM_PER_CPU", "MEM_PER_NODE", "STEP_NODELIST", "STEP_NUM_NODES", "STEP_NUM_TASKS",
    "STEP_TASKS_PER_NODE",
    # placement of its tasks
    "CPU_BIND", "CPU_BIND_TYPE", "CPU_BIND_LIST", "MEM_BIND", "MEM_BIND_TYPE", "MEM_BIND_LIST",
    "DISTRIBUTION", "HINT", "THREADS_PER_CORE", "OVERCOMMIT", "MPI_TYPE", "TOPOLOGY_ADDR",
    "SUBMIT_HOST",
    # times
    "JOB_START_TIME", "JOB_END_TIME",
)  # fmt: skip
_PERSONAL_VARIABLES = ("JOB_ACCOUNT", "JOB_USER", "JOB_UID", "JOB_GID", "JOB_GROUP", "SUBMIT_DIR")
_FIELDS = (
    "ArrayJobId", "ArrayTaskId", "SubmitTime", "EligibleTime", "StartTime", "EndTime", "TimeLimit",
    "Restarts", "Requeue", "Dependency", "Priority", "Scheduler", "Partition", "QOS", "NodeList",
    "BatchHost", "NumNodes", "NumCPUs", "NumTasks", "CPUs/Task", "NtasksPerN:B:S:C", "ReqB:S:C:T",
    "CoreSpec", "MinMemoryCPU", "MinMemoryNode", "TRES", "ReqTRES", "AllocTRES", "OverSubscribe",
    "Features", "Licenses", "Network", "Switches", "Reservation", "Comment",
)  # fmt: skip
# Paths usually contain the name of the user or the project.
_PERSONAL_FIELDS = ("Account", "UserId", "GroupId", "Command", "WorkDir")
_FIELD = re.compile(r"(?:^|\s)([A-Z][A-Za-z:/]*)=(.*?)(?=\s+[A-Z][A-Za-z:/]*=|\s*$)")
_NOTHING = ("", "(null)", "N/A")


def slurm_facts(
    environ: Mapping[str, str], timeout: float = 5.0, *, personal: bool = False
) -> Facts:
    """Describe the Slurm job, with the times that determine its queue time.

    Parameters
    ----------
    environ : mapping
        An environment, such as `os.environ`.
    timeout : float
        Maximum seconds for ``scontrol``.
    personal : bool
        Whether user and account are recorded, and the paths of job and script.

    Returns
    -------
    dict
        Empty outside of a job. Otherwise the job's variables in lower case without their prefix,
        ``scontrol`` (the fields of the job, or the reason for their absence) and, if the times are
        known, ``queue_wait_s``: from submission to start, including any wait for a dependency.
    """
    job_id = environ.get("SLURM_JOB_ID")
    if not job_id:
        return {}
    wanted = _VARIABLES + (_PERSONAL_VARIABLES if personal else ())
    facts = job_variables(environ, "SLURM_", wanted)
    job = _job(job_id, timeout, _FIELDS + (_PERSONAL_FIELDS if personal else ()))
    facts["scontrol"] = job
    if isinstance(job, dict):
        facts["queue_wait_s"] = _seconds_between(job.get("SubmitTime"), job.get("StartTime"))
    return facts


def _job(job_id: str, timeout: float, wanted: tuple[str, ...]) -> Fact:
    answer = run_tool(["scontrol", "show", "job", "-o", job_id], timeout)
    if not answer.ok:
        return answer.text
    fields = dict(_FIELD.findall(_line_of(job_id, answer.text)))
    return {
        name: fields[name] for name in wanted if name in fields and fields[name] not in _NOTHING
    }


def _line_of(job_id: str, text: str) -> str:
    """Select the job itself: the last task of an array has the number of the whole array."""
    lines = text.splitlines()
    own = [line for line in lines if line.startswith(f"JobId={job_id} ")]
    return (own or lines or [""])[0]


def _seconds_between(first: Fact, second: Fact) -> float | None:
    try:
        start, end = (datetime.fromisoformat(str(time)) for time in (first, second))
    except ValueError:  # "Unknown" or "None"
        return None
    return (end - start).total_seconds()
