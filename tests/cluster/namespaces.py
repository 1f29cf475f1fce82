"""Namespaces: setting a machine apart from this one, and entering it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from cluster.settings import PRIVATE, Settings

_APART = ("--mount", "--uts", "--ipc", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
_AS_ROOT_OF_ITS_OWN = ("--user", "--map-root-user")


def apart(command: list[str], *, user_namespace: bool = False) -> list[str]:
    """Return the command that runs another as process 1 of a machine of its own."""
    mapped = _AS_ROOT_OF_ITS_OWN if user_namespace else ()
    return ["unshare", *mapped, *_APART, "--", *command]


def inside(settings: Settings, pid: int, directory: str, command: list[str]) -> list[str]:
    """Return the command that runs another on the machine whose process 1 is `pid`.

    Parameters
    ----------
    settings : Settings
        Of the cluster.
    pid : int
        The process as it is numbered here.
    directory : str
        Where to run it; the cluster's directory when the machine does not see that one.
    command : list of str
        What to run.
    """
    there = directory if settings.sees(directory) else settings.directory
    kept = ["--user", "--preserve-credentials"] if settings.user_namespace else []
    entered = ["nsenter", f"--target={pid}", "--mount", "--uts", "--ipc", "--net", "--pid", *kept]
    return [*entered, "--", *as_user(settings), "env", f"--chdir={there}", *command]


def as_user(settings: Settings) -> list[str]:
    """Return what to put before a daemon or a command, so that it runs as the user.

    Without root, the machines are made by the root of a user namespace. Slurm takes that one for
    the real root and dies, because it may not change its groups; so it gets the user back.
    """
    if not settings.user_namespace:
        return []
    return ["unshare", "--user", f"--map-user={settings.uid}", f"--map-group={settings.gid}", "--"]


def hide_private_directories(settings: Settings) -> None:
    """Give this machine its own, empty /tmp and so on, through which the shared paths show."""
    seen = [(path, os.open(path, os.O_PATH)) for path in settings.visible()]
    for directory in PRIVATE:
        _mount("-t", "tmpfs", "-o", "mode=1777", "private", directory)
    for path, descriptor in seen:
        Path(path).mkdir(parents=True, exist_ok=True)
        # The path itself is hidden by now; the descriptor still leads there.
        source = f"/proc/self/fd/{descriptor}"
        how = "--bind" if path == settings.directory else "--rbind"
        _mount("--no-canonicalize", how, source, path, keep=descriptor)
        os.close(descriptor)
    os.chdir(settings.directory)


def use_hosts_file(settings: Settings) -> None:
    """Let names be looked up in the cluster's own list."""
    _mount("--bind", str(settings.path / "hosts"), "/etc/hosts")


def _mount(*arguments: str, keep: int | None = None) -> None:
    passed = () if keep is None else (keep,)
    subprocess.run(["mount", *arguments], check=True, pass_fds=passed, timeout=30)
