"""What one cluster is made of, and where its files lie."""

from __future__ import annotations

import json
import os
import pwd
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
#: The directories of which every machine has its own, empty at first.
PRIVATE = ("/tmp", "/var/tmp", "/dev/shm")
LOGIN = "login"
#: Nodes count upwards from 1 in this network; the login host is the last address.
NETWORK = "10.98.0"
LOGIN_ADDRESS = f"{NETWORK}.254"
_LONGEST_SOCKET = 107  # the kernel's limit for the path of a Unix socket


class ClusterError(Exception):
    """The cluster cannot do what was asked, for the reason told."""


def _user() -> str:
    return pwd.getpwuid(os.geteuid()).pw_name


@dataclass(frozen=True)
class Settings:
    """One cluster."""

    #: Absolute path of the directory that holds everything of this cluster.
    directory: str
    #: Number of nodes: node1, node2, and so on.
    nodes: int = 4
    #: What each node claims to have: CPUs and MiB. Nothing is enforced, and the claim may exceed
    #: the machine.
    cpus: int = 32
    memory: int = 16000
    #: Paths that all nodes see although they lie below a private directory, beside the cluster's
    #: own directory, which they always see.
    shared: tuple[str, ...] = ()
    #: Names of nodes that boot with what slurmd left on their disks. The others have none.
    disks: tuple[str, ...] = ()
    #: Seconds that Slurm leaves between SIGTERM and SIGKILL.
    kill_wait: int = 5
    #: Further lines of slurm.conf.
    extra: str = ""
    #: Mount one MooseFS on all nodes, in ``directory``/moosefs.
    moosefs: bool = False
    #: Started without root, so that everything is owned by one user.
    user_namespace: bool = False
    #: Who started it, and runs every daemon and job.
    user: str = field(default_factory=_user)
    uid: int = field(default_factory=os.geteuid)
    gid: int = field(default_factory=os.getegid)

    def __post_init__(self) -> None:
        if not 1 <= self.nodes <= 200:
            raise ClusterError(f"{self.nodes} nodes: a cluster has 1 to 200")
        if len(longest := str(self.socket("node200"))) > _LONGEST_SOCKET:
            raise ClusterError(f"{longest}: too long for a socket; choose a shorter directory")

    @property
    def path(self) -> Path:
        """The cluster's directory."""
        return Path(self.directory)

    @property
    def names(self) -> list[str]:
        """The names of all nodes."""
        return [f"node{number + 1}" for number in range(self.nodes)]

    @property
    def slurm_conf(self) -> Path:
        """Slurm's configuration."""
        return self.path / "slurm.conf"

    @property
    def munge_socket(self) -> Path:
        """Where munged listens."""
        return self.path / "run" / "munge.sock"

    @property
    def moosefs_mount(self) -> Path:
        """Where every machine sees the MooseFS."""
        return self.path / "moosefs"

    def socket(self, machine: str) -> Path:
        """Return where process 1 of a machine listens for requests."""
        return self.path / "run" / f"{machine}.sock"

    def log(self, name: str) -> Path:
        """Return the log of a daemon or machine."""
        return self.path / "log" / f"{name}.log"

    def spool(self, node: str) -> Path:
        """Return the directory in which slurmd keeps what its steps need."""
        return self.path / "spool" / node

    def visible(self) -> list[str]:
        """Return every path that must show through the private directories, parents first."""
        wanted = [self.directory, *self.shared]
        both = {spelled(path) for path in wanted} | {os.path.realpath(path) for path in wanted}
        return sorted(path for path in both if is_below(path, PRIVATE) and os.path.isdir(path))

    def sees(self, path: str) -> bool:
        """Whether a path of this machine is the same one on the nodes."""
        return not is_below(path, PRIVATE) or is_below(path, self.visible())

    def save(self) -> None:
        """Write the settings into the cluster's directory."""
        (self.path / "settings.json").write_text(json.dumps(asdict(self), indent=1))

    @classmethod
    def load(cls, directory: str | Path) -> Settings:
        """Read the settings of the cluster in a directory.

        Raises
        ------
        ClusterError
            There is none.
        """
        file = Path(spelled(directory)) / "settings.json"
        try:
            found = json.loads(file.read_text())
        except OSError:
            raise ClusterError(f"no cluster in {directory}: there is no {file}") from None
        fields: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in found.items()
        }
        return cls(**fields)


def needed_by_programs() -> tuple[str, ...]:
    """Return what every node must see to run programs of this repository: it, and its Python."""
    active = filter(None, [os.environ.get("VIRTUAL_ENV")])
    return (str(REPOSITORY), sys.prefix, sys.base_prefix, *active)


def spelled(path: str | Path) -> str:
    """Return an absolute path without following links, which may lead elsewhere on a node."""
    return os.path.abspath(path)


def is_below(path: str, parents: list[str] | tuple[str, ...]) -> bool:
    """Whether a path is one of these directories or lies in one."""
    return any(path == parent or path.startswith(f"{parent}/") for parent in parents)
