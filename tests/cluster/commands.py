"""A running cluster as its users see it: started, asked to run commands and stopped."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from cluster import configuration, control
from cluster.daemons import wait_until
from cluster.machines import PROGRAM
from cluster.namespaces import apart, inside
from cluster.requirements import missing_programs, needs_user_namespace, search_path
from cluster.settings import LOGIN, ClusterError, Settings, needed_by_programs, spelled

# Of a job or of an MPI program that this process may itself be part of.
_FOREIGN = ("SLURM", "SBATCH", "SALLOC", "SRUN", "PMI", "OMPI_COMM", "OMPI_MCA_orte", "PRTE")
_MPI = {
    "OMPI_MCA_mpi_yield_when_idle": "1",  # many more ranks than cores
    "OMPI_MCA_pml": "ob1",  # a network of a cluster would be looked for at each start
    "PMIX_MCA_psec": "native",  # munge would be looked for at the system's socket
}
#: States of a job that has come to its end.
ENDED = frozenset(
    ("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
     "PREEMPTED", "TIMEOUT")
)  # fmt: skip


class Cluster:
    """A cluster that runs.

    Parameters
    ----------
    settings : Settings
        Of the cluster.
    process : subprocess.Popen, optional
        The process that holds it, where this one started it.
    """

    def __init__(self, settings: Settings, process: subprocess.Popen[bytes] | None = None) -> None:
        self.settings = settings
        self._process = process

    @classmethod
    def start(cls, settings: Settings, patience: float = 240) -> Cluster:
        """Start a cluster and wait until all nodes are idle.

        It ends, and its directory is removed, when this process ends, however that happens; see
        `release`.

        Parameters
        ----------
        settings : Settings
            Its directory must be absent or empty.
        patience : float
            Seconds to wait.

        Raises
        ------
        ClusterError
            It did not start; nothing of it is left.
        """
        if missing := missing_programs(with_moosefs=settings.moosefs):
            raise ClusterError(missing)
        settings = replace(
            settings,
            directory=spelled(settings.directory),
            user_namespace=needs_user_namespace(),
            shared=(*needed_by_programs(), *settings.shared),
        )
        if settings.moosefs and settings.user_namespace:
            raise ClusterError("MooseFS needs root, because only root may use /dev/fuse")
        settings.path.mkdir(parents=True, exist_ok=True)
        if any(settings.path.iterdir()):
            raise ClusterError(f"{settings.path} is not empty")
        configuration.write(settings)
        cluster = cls(settings, _start_login(settings))
        try:
            wait_until(cluster._is_ready, "all nodes idle", patience)
        except BaseException as error:
            logs = cluster.logs()
            cluster.stop()
            if isinstance(error, ClusterError):
                raise ClusterError(f"{error}\n{logs}") from None
            raise
        return cluster

    @classmethod
    def attach(cls, directory: str | Path) -> Cluster:
        """Return the cluster that runs in a directory, started by anyone of this user."""
        cluster = cls(Settings.load(directory))
        control.listener(cluster.settings.socket(LOGIN))
        return cluster

    @property
    def path(self) -> Path:
        """The cluster's directory, which all machines see."""
        return self.settings.path

    def stop(self, *, keep: bool = False) -> None:
        """End every process; remove the directory unless it is to be kept."""
        with contextlib.suppress(ClusterError):  # it may have ended already
            control.end(self.settings.socket(LOGIN), "stop", *(["keep"] if keep else []))
        if self._process is not None:
            if self._process.stdin:
                self._process.stdin.close()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if not keep:
            shutil.rmtree(self.path, ignore_errors=True)

    def release(self) -> None:
        """Let the cluster outlive this process."""
        assert self._process is not None
        assert self._process.stdin is not None
        with self._process.stdin as pipe:
            pipe.write(b"!")

    def environment(self, **changes: str) -> dict[str, str]:
        """Return the environment of a command on the cluster."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(_FOREIGN)}
        ours = {"SLURM_CONF": str(self.settings.slurm_conf), "PATH": search_path()}
        return {**kept, **_MPI, **ours, **changes}

    def command(self, *words: str | Path, on: str = LOGIN, cwd: str | Path = ".") -> list[str]:
        """Return the command line that runs `words` on a machine; give it `environment`."""
        pid = control.listener(self.settings.socket(on))
        return inside(self.settings, pid, spelled(cwd), [str(word) for word in words])

    def run(
        self, *words: str | Path, timeout: float = 180, check: bool = True, on: str = LOGIN,
        cwd: str | Path | None = None, **changes: str,
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """Run a command to its end and return what it said.

        Parameters
        ----------
        *words : str or Path
            The command.
        timeout : float
            Seconds after which it is ended, with status 124; a wrong MPI launch rarely fails, it
            hangs.
        check : bool
            Raise when it fails.
        on : str
            The machine.
        cwd : str or Path, optional
            Where; the cluster's ``shared`` directory when not given.
        **changes : str
            Variables of its environment.

        Raises
        ------
        ClusterError
            It failed, and `check` is set.
        """
        where = self.path / "shared" if cwd is None else cwd
        limited = [
            "timeout",
            "--kill-after=5",
            f"{timeout}",
            *self.command(*words, on=on, cwd=where),
        ]
        done = subprocess.run(
            limited, env=self.environment(**changes), text=True, capture_output=True,
            stdin=subprocess.DEVNULL, timeout=timeout + 30,
        )  # fmt: skip
        if check and done.returncode:
            shown = " ".join(map(str, words))
            raise ClusterError(
                f"`{shown}` ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
            )
        return done

    def submit(self, *words: str | Path, **how: Any) -> str:
        """Submit a job with sbatch and return its id."""
        return self.run("sbatch", "--parsable", *words, **how).stdout.strip().partition(";")[0]

    def facts(self, job: str) -> dict[str, str]:
        """Return what Slurm knows of a job, such as JobState, ExitCode, Restarts and NodeList."""
        told = self.run("scontrol", "show", "job", "-o", job).stdout
        return dict(pair.split("=", 1) for pair in told.split() if "=" in pair)

    def wait(
        self, job: str, states: Collection[str] = ENDED, timeout: float = 300
    ) -> dict[str, str]:
        """Wait until a job is in one of these states and return its facts.

        Raises
        ------
        ClusterError
            It did not come to one, or it came to another end.
        """
        end = time.monotonic() + timeout
        while (facts := self.facts(job))["JobState"] not in states:
            if facts["JobState"] in ENDED or time.monotonic() > end:
                raise ClusterError(f"job {job} is not {', '.join(sorted(states))}: {facts}")
            time.sleep(0.3)  # asking takes a part of the machine that the job needs
        return facts

    def kill(self, node: str) -> None:
        """Cut the power of a node: all that runs there is gone at once."""
        control.ask(self.settings.socket(LOGIN), "kill", node)

    def boot(self, node: str) -> None:
        """Boot a node; does nothing when it is up."""
        control.ask(self.settings.socket(LOGIN), "boot", node)

    def settle(self, timeout: float = 180) -> None:
        """Cancel all jobs, boot all nodes that are off, and wait until all nodes are idle."""
        self.run("scancel", "--user", self.settings.user)
        for node in self.settings.names:
            self.boot(node)
        wait_until(self._all_idle, "all nodes idle", timeout)

    def logs(self, lines: int = 15) -> str:
        """Return the last lines of every log."""
        # A daemon that did not come as far as its log has only its output to tell.
        files = [*(self.path / "log").glob("*.out"), *(self.path / "log").glob("*.log")]
        chosen = sorted({file.stem: file for file in files}.values())
        tails = {f.name: f.read_text(errors="replace").splitlines()[-lines:] for f in chosen}
        return "\n".join(f"--- {name}\n" + "\n".join(t) for name, t in tails.items() if t)

    def _is_ready(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise ClusterError("the login host ended while it was starting")
        try:
            return self._all_idle()
        except ClusterError:
            return False

    def _all_idle(self) -> bool:
        told = self.run("sinfo", "-h", "-p", "main", "-N", "-o", "%T", check=False, timeout=20)
        return told.stdout.split() == ["idle"] * self.settings.nodes


def _start_login(settings: Settings) -> subprocess.Popen[bytes]:
    program = [sys.executable, str(PROGRAM), "_login", settings.directory]
    with settings.log(LOGIN).open("ab") as log:
        return subprocess.Popen(
            apart(program, user_namespace=settings.user_namespace),
            # The pipe's other end is closed when this process ends, however it ends.
            stdin=subprocess.PIPE,
            stdout=log, stderr=log, start_new_session=True, cwd="/",
            env={**os.environ, "PATH": search_path()},
        )  # fmt: skip
