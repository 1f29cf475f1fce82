"""The job of Slurm, PBS or Flux that a run is in: its resources, binding and queue time.

User, account and paths are omitted, since results are passed on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import NamedTuple

from pffbench.job.batch_job import SCHEDULERS
from pffbench.provenance.facts import HIDDEN, Fact, Facts, environment_facts
from pffbench.tools import run_tool

# A value of PBS goes on in lines that begin with a tab.
_PBS_FIELD = re.compile(r"^ +([\w.]+) = (.*(?:\n\t.*)*)$", re.MULTILINE)
_SLURM_FIELD = re.compile(r"(?:^|\s)([A-Z][A-Za-z:/]*)=(.*?)(?=\s+[A-Z][A-Za-z:/]*=|\s*$)")
_NOTHING = ("", "(null)", "N/A")


def _slurm_fields(text: str, job: str) -> dict[str, str]:
    # Of an array the last task has the number of the whole, and scontrol tells of all tasks.
    lines = text.splitlines()
    own = [line for line in lines if line.startswith(f"JobId={job} ")]
    return dict(_SLURM_FIELD.findall((own or lines or [""])[0]))


def _pbs_fields(text: str, job: str) -> dict[str, str]:  # noqa: ARG001 -- one job is asked for
    return {name: value.replace("\n\t", "") for name, value in _PBS_FIELD.findall(text)}


def _flux_fields(text: str, job: str) -> dict[str, str]:  # noqa: ARG001 -- as above
    lines = [line.split(maxsplit=1) for line in text.splitlines()]
    return {line[0]: line[1] for line in lines if len(line) == 2}


class _Description(NamedTuple):
    """What a scheduler tells of a job."""

    #: Prefix of the variables of a job.
    prefix: str
    #: Name of the fact, its command (with ``{}`` for the number of the job), and what reads it.
    fact: str
    command: tuple[str, ...]
    read: Callable[[str, str], dict[str, str]]
    #: Those that are recorded, without who ran the job and paths, which usually contain the name of
    #: the user or the project.
    fields: tuple[str, ...]


DESCRIPTIONS = {
    "slurm": _Description(
        "SLURM_", "scontrol", ("scontrol", "show", "job", "-o", "{}"), _slurm_fields,
        ("ArrayJobId", "ArrayTaskId", "SubmitTime", "EligibleTime", "StartTime", "EndTime",
         "TimeLimit", "Restarts", "Requeue", "Dependency", "Priority", "Scheduler", "Partition",
         "QOS", "NodeList", "BatchHost", "NumNodes", "NumCPUs", "NumTasks", "CPUs/Task",
         "NtasksPerN:B:S:C", "ReqB:S:C:T", "CoreSpec", "MinMemoryCPU", "MinMemoryNode", "TRES",
         "ReqTRES", "AllocTRES", "OverSubscribe", "Features", "Licenses", "Network", "Switches",
         "Reservation", "Comment"),
    ),
    "pbs": _Description(
        "PBS_", "qstat", ("qstat", "-f", "{}"), _pbs_fields,
        ("queue", "server", "ctime", "etime", "qtime", "stime", "exec_host", "exec_vnode",
         "run_count", "Rerunable", "Priority", "depend", "array_index", "Resource_List.select",
         "Resource_List.place", "Resource_List.walltime", "Resource_List.filesystems"),
    ),
    "flux": _Description(
        "FLUX_", "instance", ("flux", "lsattr", "-v"), _flux_fields,
        ("jobid", "size", "hostlist", "instance-level", "broker.starttime"),
    ),
}  # fmt: skip


def scheduler_facts(scheduler: str, environ: Mapping[str, str], timeout: float = 5.0) -> Facts:
    """Describe the job of a scheduler.

    Parameters
    ----------
    scheduler : {"slurm", "pbs", "flux"}
        The scheduler.
    environ : mapping
        An environment, such as `os.environ`.
    timeout : float
        Maximum seconds for the scheduler's command.

    Returns
    -------
    dict
        Empty outside of a job. Otherwise the job's variables in lower case without their prefix,
        ``scontrol``, ``qstat`` or ``instance`` (the fields of the job, of Flux attributes of the
        enclosing instance, or the reason for their absence), for Flux ``batch_job`` (the number
        that the job script found) and for Slurm ``queue_wait_s``:
        from submission to start, including any wait for a dependency.
    """
    known = next(one for one in SCHEDULERS if one.name == scheduler)
    if not environ.get(known.inside):
        return {}
    about, number = DESCRIPTIONS[scheduler], environ.get(known.job, "")
    facts: Facts = {
        name.removeprefix(about.prefix).lower(): value
        for name, value in environment_facts(environ).items()
        if name.startswith(about.prefix) and value != HIDDEN
    }
    if known.job != known.inside and number:
        facts["batch_job"] = number
    answer = run_tool([word.format(number) for word in about.command], timeout)
    fields = about.read(answer.text, number) if answer.ok else {}
    told: Facts = {
        name: fields[name] for name in about.fields if fields.get(name, "") not in _NOTHING
    }
    facts[about.fact] = told if answer.ok and (told or scheduler == "slurm") else answer.text
    if scheduler == "slurm" and answer.ok:
        facts["queue_wait_s"] = _seconds_between(told.get("SubmitTime"), told.get("StartTime"))
    return facts


def _seconds_between(first: Fact, second: Fact) -> float | None:
    try:
        start, end = (datetime.fromisoformat(str(time)) for time in (first, second))
    except ValueError:  # "Unknown" or "None"
        return None
    return (end - start).total_seconds()
