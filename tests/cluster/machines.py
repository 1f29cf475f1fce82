"""Process 1 of the login host and of every node."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from cluster import control, moosefs, namespaces, network
from cluster.control import Requests
from cluster.daemons import Daemons, wait_until
from cluster.settings import LOGIN, ClusterError, Settings

PROGRAM = Path(__file__).resolve().with_name("cluster")


class Machine:
    """What both kinds have in common: it waits for requests and collects its children."""

    def __init__(self, settings: Settings, name: str) -> None:
        self.settings = settings
        self.name = name
        self.daemons = Daemons(settings)
        self._stopping = False
        self._child_ended, wake = os.pipe()
        os.set_blocking(self._child_ended, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.stop())
        socket.sethostname(name)

    def stop(self) -> None:
        """Leave the loop."""
        self._stopping = True

    def answer(self, words: list[str]) -> None:
        """Do what was asked for."""
        raise ClusterError(f"{self.name} cannot {words[0]}")

    def child_ended(self) -> None:
        """Do what has to be done when a daemon may have ended."""

    def serve(self, starter: int | None = None) -> None:
        """Answer requests until told to stop.

        Parameters
        ----------
        starter : int, optional
            A pipe from who started this machine. When it is closed, the machine stops; when
            something comes through it, the machine goes on without its starter.
        """
        requests = Requests(self.settings.socket(self.name), self.answer)
        watched: list[Any] = [requests, self._child_ended]
        if starter is not None:
            watched.append(starter)
        while not self._stopping:
            ready, _, _ = select.select(watched, [], [])
            if self._child_ended in ready:
                os.read(self._child_ended, 4096)
                self.daemons.collect()
                self.child_ended()
            if starter is not None and starter in ready:
                if not os.read(starter, 1):
                    self.stop()
                watched.remove(starter)
            if requests in ready:
                requests.serve()


class Login(Machine):
    """The login host: munged and slurmctld run here, and it keeps the nodes."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, LOGIN)
        self._keep = False
        # Everything is removed through this, because our own view of it is a mount.
        self._parent = os.open(settings.path.parent, os.O_PATH)

    def run(self) -> None:
        """Start everything, serve until the end, and leave nothing."""
        settings = self.settings
        namespaces.use_hosts_file(settings)
        network.make_bridge()
        namespaces.hide_private_directories(settings)
        self._start_munge()
        if settings.moosefs:
            moosefs.serve(settings, self.daemons)
            moosefs.mount(settings, self.daemons)
        self.daemons.start("slurmctld", ["slurmctld", "-D", "-f", str(settings.slurm_conf), "-c"])
        self._boot(*settings.names)
        self.serve(starter=sys.stdin.fileno())
        self.daemons.end()
        if not self._keep:
            self._remove()

    def answer(self, words: list[str]) -> None:
        """Stop, keeping the files or not; cut the power of a node or boot it."""
        match words:
            case ["stop"]:
                self.stop()
            case ["stop", "keep"]:
                self._keep = True
                self.stop()
            case ["boot", name] if name in self.settings.names:
                if self.daemons.pid(name) is None:
                    self._boot(name)
            case ["kill", name] if name in self.settings.names:
                if (pid := self.daemons.pid(name)) is not None:
                    os.kill(pid, signal.SIGKILL)  # the kernel ends all that ran below it
                    wait_until(lambda: self._is_off(name), f"the end of {name}")
            case _:
                raise ClusterError(f"the login host cannot {' '.join(words)}")

    def _is_off(self, name: str) -> bool:
        """Whether a node has ended; its own process outlives the one that started it a little."""
        if self.daemons.pid(name) is not None:
            return False
        try:
            control.connect(self.settings.socket(name)).close()
        except ClusterError:
            return True
        return False

    def child_ended(self) -> None:
        """Stop when Slurm itself has ended, and leave its logs to be read."""
        if self.daemons.pid("slurmctld") is None:
            self._keep = True
            self.stop()

    def _start_munge(self) -> None:
        run, log = self.settings.path / "run", self.settings.log("munged")
        options = {
            "key-file": self.settings.path / "munge.key",
            "socket": self.settings.munge_socket,
            "pid-file": run / "munged.pid",
            "seed-file": run / "munged.seed",
            "log-file": log,
            "num-threads": 2,
        }
        told = [f"--{name}={value}" for name, value in options.items()]
        self.daemons.start("munged", ["munged", "--foreground", "--force", *told])
        wait_until(self.settings.munge_socket.exists, "the socket of munged")

    def _boot(self, *names: str) -> None:
        """Boot nodes side by side; each waits until its cable is there."""
        started = {name: self._start_node(name) for name in names}
        for name, process in started.items():
            assert process.stdin is not None
            assert process.stdout is not None
            if not process.stdout.readline():
                raise ClusterError(f"{name} did not start; see {self.settings.log(name)}")
            network.plug(self.settings.names.index(name) + 1, process.pid)
            with process.stdin, process.stdout:
                process.stdin.write(b"plugged in\n")

    def _start_node(self, name: str) -> subprocess.Popen[bytes]:
        program = [sys.executable, str(PROGRAM), "_node", self.settings.directory, name]
        with self.settings.log(name).open("ab") as log:
            process = subprocess.Popen(
                namespaces.apart(program), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=log, start_new_session=True,
            )  # fmt: skip
        self.daemons.add(name, process)
        return process

    def _remove(self) -> None:
        if self.settings.moosefs:
            moosefs.unmount(self.settings)
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self.settings.path.name, dir_fd=self._parent)


class Node(Machine):
    """A node: it runs slurmd and the jobs."""

    def run(self) -> None:
        """Wait for the network, start slurmd and serve until the end."""
        settings = self.settings
        namespaces.hide_private_directories(settings)
        print("started", flush=True)
        if not sys.stdin.readline():
            raise ClusterError("the login host went away")
        network.take_address(settings.names.index(self.name) + 1)
        if settings.moosefs:
            moosefs.mount(settings, self.daemons)
        if self.name not in settings.disks:
            self._clear_spool()
        slurmd = ["slurmd", "-D", "-N", self.name, "-f", str(settings.slurm_conf)]
        self.daemons.start(f"slurmd-{self.name}", slurmd)
        self.serve()
        self.daemons.end()

    def _clear_spool(self) -> None:
        """Make slurmd's directory anew, as on a node without a disk.

        A disk holds what steps left that were running when the power was cut: a step of the job
        that is queued again and gets the same node fails at the socket of its former start.
        """
        shutil.rmtree(self.settings.spool(self.name))
        self.settings.spool(self.name).mkdir()
