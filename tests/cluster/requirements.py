"""What a cluster needs from this machine, found out by trying."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from functools import cache

from cluster import moosefs
from cluster.namespaces import apart
from cluster.settings import ClusterError

_PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "unshare", "nsenter", "ip", "timeout")
_PACKAGES = "apt-get install slurmctld slurmd slurm-client munge iproute2 mount util-linux"
_MOOSEFS_PACKAGES = "apt-get install moosefs-master moosefs-chunkserver moosefs-client moosefs-cli"
# Everything that starting a node will do, in one go.
_TRIAL = (
    "mount -t tmpfs trial /tmp && ip link set lo up && ip link add trial0 type bridge "
    "&& ip link add trial1 type veth peer name trial2"
)


def search_path() -> str:
    """Return PATH with the directories of daemons, which the PATH of a user may leave out."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def missing_programs(*, with_moosefs: bool = False) -> str | None:
    """Say which programs are missing and how to install them; None when all are there."""
    needed = (*_PROGRAMS, *moosefs.PROGRAMS) if with_moosefs else _PROGRAMS
    absent = [name for name in needed if shutil.which(name, path=search_path()) is None]
    if not absent:
        return None
    remedy = _MOOSEFS_PACKAGES if set(absent) <= set(moosefs.PROGRAMS) else _PACKAGES
    return f"not installed: {', '.join(absent)}; on Debian and Ubuntu: {remedy}"


@cache
def no_namespaces() -> str | None:
    """Say why this machine cannot hold virtual nodes; None when it can."""
    try:
        needs_user_namespace()
    except ClusterError as error:
        return str(error)
    return None


@cache
def needs_user_namespace() -> bool:
    """Whether namespaces are to be made without root.

    Raises
    ------
    ClusterError
        They can be made neither way.
    """
    refusal = _try(user_namespace=False)
    if refusal is None:
        return False
    if os.geteuid() == 0:  # Slurm cannot run as a root that is not the real one
        raise ClusterError(f"no namespaces although root (a container without rights?): {refusal}")
    if (refusal := _try(user_namespace=True)) is not None:
        raise ClusterError(f"neither root nor user namespaces: {refusal}")
    return True


def _try(*, user_namespace: bool) -> str | None:
    command = apart(["sh", "-c", _TRIAL], user_namespace=user_namespace)
    environment = {**os.environ, "PATH": search_path()}
    try:
        tried = subprocess.run(command, capture_output=True, text=True, timeout=30, env=environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if tried.returncode == 0:
        return None
    return f"`{shlex.join(command[:4])} …` said: {tried.stderr.strip() or tried.returncode}"
