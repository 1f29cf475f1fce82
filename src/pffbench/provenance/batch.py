"""The PBS or Flux job of a run; that of Slurm is described in `pffbench.provenance.slurm`.

User, account and paths are omitted unless requested, since results are passed on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pffbench.provenance.facts import Facts, job_variables
from pffbench.tools import run_tool

_PBS_VARIABLES = ("JOBID", "JOBNAME", "QUEUE", "ENVIRONMENT", "NODENUM", "O_HOST", "O_QUEUE")
_PBS_FIELDS = (
    "queue", "server", "ctime", "etime", "qtime", "stime", "exec_host", "exec_vnode", "run_count",
    "Rerunable", "Priority", "depend", "array_index", "Resource_List.select",
    "Resource_List.place", "Resource_List.walltime", "Resource_List.filesystems",
)  # fmt: skip
_PBS_PERSONAL = ("Job_Owner", "Account_Name", "project", "egroup")
# A value goes on in lines that begin with a tab.
_PBS_FIELD = re.compile(r"^ +([\w.]+) = (.*(?:\n\t.*)*)$", re.MULTILINE)
_FLUX_VARIABLES = ("JOB_ID", "JOB_SIZE", "JOB_NNODES", "JOB_CC")
_FLUX_ATTRIBUTES = ("jobid", "size", "hostlist", "instance-level", "broker.starttime")


def pbs_facts(
    environ: Mapping[str, str], timeout: float = 5.0, *, personal: bool = False
) -> Facts:
    """Describe the PBS job.

    Parameters
    ----------
    environ : mapping
        An environment, such as `os.environ`.
    timeout : float
        Maximum seconds for ``qstat``.
    personal : bool
        Whether owner and account are recorded.

    Returns
    -------
    dict
        Empty outside of a job. Otherwise the job's variables in lower case without their prefix,
        and ``qstat``: the fields of the job, or the reason for their absence.
    """
    job = environ.get("PBS_JOBID")
    if not job:
        return {}
    facts = job_variables(environ, "PBS_", _PBS_VARIABLES)
    answer = run_tool(["qstat", "-f", job], timeout).text
    wanted = _PBS_FIELDS + (_PBS_PERSONAL if personal else ())
    fields = {name: value.replace("\n\t", "") for name, value in _PBS_FIELD.findall(answer)}
    facts["qstat"] = {name: fields[name] for name in wanted if name in fields} or answer
    return facts


def flux_facts(environ: Mapping[str, str], timeout: float = 5.0) -> Facts:
    """Describe the Flux job and the instance that it runs in.

    Parameters
    ----------
    environ : mapping
        An environment, such as `os.environ`.
    timeout : float
        Maximum seconds for ``flux``.

    Returns
    -------
    dict
        Empty outside of a job. Otherwise the job's variables in lower case without their prefix,
        ``batch_job`` (the number that the job scripts found, where they started the run) and
        ``instance``: attributes of the enclosing instance, or the reason for their absence.
    """
    if not environ.get("FLUX_URI") or not environ.get("FLUX_JOB_ID"):
        return {}
    facts = job_variables(environ, "FLUX_", _FLUX_VARIABLES)
    if "PFFBENCH_FLUX_JOB" in environ:
        facts["batch_job"] = environ["PFFBENCH_FLUX_JOB"]
    answer = run_tool(["flux", "lsattr", "-v"], timeout).text
    lines = [line.split(maxsplit=1) for line in answer.splitlines()]
    attributes = {line[0]: line[1] for line in lines if len(line) == 2}
    facts["instance"] = {
        name: attributes[name] for name in _FLUX_ATTRIBUTES if name in attributes
    } or answer
    return facts
