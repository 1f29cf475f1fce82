"""Commands that start an environment, alone or as ranks under a launcher, and its pffbench."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

import pffbench
from pffbench.environments.processes import last_line, run_bounded
from pffbench.errors import VALID, UserError
from pffbench.experiment.schema import EnvironmentEntry, Experiment
from pffbench.run.next_steps import available_processors
from pffbench.text import one_line

#: Seconds in which the Python of an environment must start; a container may be fetched first.
_START_SECONDS = 120.0
#: Environments are there together: srun gives all of them the same cores, and Open MPI starts no
#: daemon for a process that was started without a launcher, which takes as long as the process.
_TOGETHER = {"SLURM_OVERLAP": "1", "OMPI_MCA_ess_singleton_isolated": "1"}
#: Beginning of the line by which a program of ours answers: others may print before it.
ANSWER = "pffbench-environment: "
#: Prints the version of pffbench in an environment and a digest of its source; null without it.
#: Any Python runs this, also with another pffbench.
_OWN = f"""
import sys
del sys.path[0]  # the current directory; an older Python knows no option -P
import hashlib, importlib.util, json, pathlib
spec, own = importlib.util.find_spec("pffbench"), None
if spec is not None and spec.origin:
    import pffbench
    folder, digest = pathlib.Path(pffbench.__file__).parent, hashlib.sha256()
    for path in sorted(folder.rglob("*.py"), key=lambda path: path.relative_to(folder).parts):
        digest.update(path.read_bytes())
    own = [pffbench.__version__, digest.hexdigest(), str(folder)]
print("{ANSWER}" + json.dumps([own, list(sys.version_info[:2])]))
"""
#: Its answer.
_Own = tuple[tuple[str, str, str] | None, tuple[int, int]]
#: Oldest Python that pffbench runs with.
_OLDEST = (3, 11)
#: Folders that hold installed packages.
_SITE = frozenset({"site-packages", "dist-packages"})


class StartedEnvironment(msgspec.Struct, frozen=True):
    """An environment, and how to start its Python.

    Parameters
    ----------
    name : str
        Its name.
    command : tuple of str
        Command that is Python when arguments follow.
    variables : dict of str to str
        Changes of the process environment.
    """

    name: str
    command: tuple[str, ...]
    variables: Mapping[str, str] = msgspec.field(default_factory=dict)

    @property
    def process_environment(self) -> dict[str, str]:
        """Environment variables of its processes."""
        return {**os.environ, **_TOGETHER, **self.variables}


def command_of(environment: EnvironmentEntry, where: str) -> tuple[str, ...]:
    """Return the command that starts the Python of an environment.

    Raises
    ------
    UserError
        The Python, the script or the program does not exist.
    """
    if environment.python:
        return (_program(environment.python, f"{where}.python"),)
    if environment.activate:
        script = Path(environment.activate).expanduser().absolute()
        if not script.is_file():
            raise UserError(f"{where}.activate: {environment.activate}: there is no such file")
        if shutil.which("bash") is None:
            raise UserError(f"{where}.activate: scripts are sourced by bash, which is not here")
        return ("bash", "-c", '. "$0" </dev/null && exec python "$@"', str(script))
    words = shlex.split(environment.command or "")
    return (_program(words[0], f"{where}.command"), *words[1:])


def launcher_of(experiment: Experiment, path: str) -> tuple[str, ...]:
    """Return the command that starts the ranks; empty for one process without a launcher.

    Parameters
    ----------
    experiment : Experiment
        The experiment, which may name it.
    path : str
        Its file, for messages.

    Raises
    ------
    UserError
        There is no such program.
    """
    if experiment.launcher is not None:
        words = shlex.split(experiment.launcher)
        return (_program(words[0], f"{path}: launcher"), *words[1:])
    cores = str(available_processors())
    if "SLURM_JOB_ID" in os.environ:
        return ("srun",)  # the tasks that the job was given
    if "FLUX_URI" in os.environ:
        return ("flux", "run", "-n", cores)
    mpiexec = os.environ.get("PFFBENCH_MPIEXEC") or shutil.which("mpiexec")
    return (mpiexec, "-n", cores) if mpiexec else ()


def commands_of(experiment: Experiment) -> list[str]:
    """Return what a run of an experiment starts, as its file names it: ``KEY: COMMAND``."""
    told = [] if experiment.launcher is None else [f"launcher: {experiment.launcher}"]
    for entry in experiment.environments:
        ways = {key: getattr(entry, key) for key in ("python", "activate", "command")}
        told += [f"{entry.name}: {key} {value}" for key, value in ways.items() if value]
    return told


def _program(name: str, where: str) -> str:
    found = shutil.which(os.path.expanduser(name))  # noqa: PTH111 -- of text, as shells do
    if found is None:
        raise UserError(f"{where}: {one_line(name)}: there is no such program")
    # Not resolved: a virtual environment's Python is a link.
    return str(Path(found).absolute())


def start_environment(
    environment: EnvironmentEntry, where: str, keep_going: Callable[[], None]
) -> StartedEnvironment:
    """Start the Python of an environment once, and see that its pffbench is this one.

    An environment without pffbench takes that of a checkout, by ``PYTHONPATH``.

    Parameters
    ----------
    environment : EnvironmentEntry
        The environment.
    where : str
        Its place in the experiment, for messages.
    keep_going : callable
        Called while it starts; may raise, which ends it.

    Raises
    ------
    UserError
        It cannot be started, or its pffbench is another one or missing.
    """
    command = command_of(environment, where)
    own, python = _versions((*command, "-c", _OWN), where, keep_going)
    if python < _OLDEST:
        version = ".".join(map(str, python))
        raise UserError(f"{where}: it has Python {version}, and pffbench needs 3.11 or newer")
    here, _ = _versions((sys.executable, "-c", _OWN), where, keep_going)
    assert here is not None
    if own is None:
        return StartedEnvironment(environment.name, command, _by_path(where))
    if own[:2] != here[:2]:
        source = " of another source" if own[0] == here[0] else ""
        raise UserError(
            f"{where}: {environment.name} has pffbench {own[0]}{source} ({own[2]}), and this is "
            f"pffbench {here[0]} ({here[2]}); install this one there"
        )
    return StartedEnvironment(environment.name, command)


def _versions(command: Sequence[str], where: str, keep_going: Callable[[], None]) -> _Own:
    """Return version, digest and folder of an environment's pffbench, and the Python's version."""
    try:
        done = run_bounded(command, dict(os.environ), _START_SECONDS, keep_going, ANSWER)
    except OSError as error:
        raise UserError(f"{where}: no Python starts there: {error.strerror}") from None
    try:
        answer = done.messages[-1] if done.status == VALID else ""
        found: _Own = msgspec.json.decode(answer, type=_Own)
        return found
    except (IndexError, msgspec.MsgspecError):
        why = last_line(done.text)
        if done.status is None:
            why = f"it gave no answer within {_START_SECONDS:g} s"
        raise UserError(f"{where}: no Python starts there: {why}") from None


def _by_path(where: str) -> dict[str, str]:
    """Return the variable that adds the pffbench of this checkout to an environment."""
    source = Path(pffbench.__file__).parents[1]
    if source.name in _SITE:  # other packages of this environment would come with it
        raise UserError(
            f"{where}: it has no pffbench; install pffbench {pffbench.__version__} there"
        )
    paths = [str(source), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(paths)}
