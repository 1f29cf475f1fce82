"""The text of slurm.conf and of the files beside it."""

from __future__ import annotations

import os
import re
import subprocess

from cluster.settings import LOGIN, LOGIN_ADDRESS, NETWORK, Settings

# Short waits, so that a test of requeue or of a lost node takes seconds. A credential must
# outlive a slow launch on a loaded machine, and a requeued job waits for one to expire.
_CLUSTER = """\
ClusterName=virtual
SlurmctldHost={login}({address})
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={munge},cred_expire=10
CredType=cred/munge
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool/%n
SlurmctldPidFile={directory}/run/slurmctld.pid
SlurmdPidFile={directory}/run/slurmd-%n.pid
SlurmctldLogFile={directory}/log/slurmctld.log
SlurmdLogFile={directory}/log/slurmd-%n.log
JobCompType=jobcomp/filetxt
JobCompLoc={directory}/log/jobs.txt
TmpFS=/tmp
MpiDefault=pmix
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,bf_interval=1,sched_interval=2,sched_min_interval=0
PrologFlags=Alloc
ReturnToService=2
SlurmdTimeout=6
KillOnBadExit=1
KillWait={kill_wait}
JobRequeue=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
MinJobAge=3600
EnforcePartLimits=ALL
DefMemPerCPU=64
{extra}
"""


def slurm_conf(settings: Settings) -> str:
    """Return the whole slurm.conf."""
    text = _CLUSTER.format(
        login=LOGIN,
        address=LOGIN_ADDRESS,
        user=settings.user,
        munge=settings.munge_socket,
        directory=settings.directory,
        kill_wait=settings.kill_wait,
        extra=settings.extra,
    )
    nodes = [
        f"NodeName={name} NodeAddr={NETWORK}.{number} CPUs={settings.cpus} "
        f"RealMemory={settings.memory} State=UNKNOWN"
        for number, name in enumerate(settings.names, 1)
    ]
    limits = "Nodes=ALL DefaultTime=10 MaxTime=INFINITE State=UP"
    partitions = [
        f"PartitionName=main Default=YES {limits}",
        f"PartitionName=batch OverSubscribe=EXCLUSIVE {limits}",
        f"PartitionName=urgent PriorityTier=2 {limits}",
    ]
    return text + "\n".join([*nodes, *partitions, ""])


def hosts(settings: Settings) -> str:
    """Return the /etc/hosts of all machines."""
    known = [("127.0.0.1", "localhost"), (LOGIN_ADDRESS, LOGIN)]
    known += [(f"{NETWORK}.{number}", name) for number, name in enumerate(settings.names, 1)]
    return "".join(f"{address} {name}\n" for address, name in known)


def write(settings: Settings) -> None:
    """Write everything that the daemons read."""
    for name in ("log", "run", "shared", "spool", "state"):
        (settings.path / name).mkdir()
    for node in settings.names:
        settings.spool(node).mkdir()
    settings.slurm_conf.write_text(slurm_conf(settings))
    if _slurm_version() >= (23, 11):  # slurmd would look for a cgroup that is not ours
        (settings.path / "cgroup.conf").write_text("CgroupPlugin=disabled\n")
    (settings.path / "hosts").write_text(hosts(settings))
    key = settings.path / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(128))
    settings.save()


def _slurm_version() -> tuple[int, ...]:
    told = subprocess.run(["sinfo", "--version"], capture_output=True, text=True, timeout=10)
    return tuple(int(part) for part in re.findall(r"[0-9]+", told.stdout)[:2])
