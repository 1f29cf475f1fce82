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
from pffbench.errors import VALID, UserError
from pffbench.experiment.load import LoadedExperiment
from pffbench.experiment.schema import EnvironmentEntry, Experiment, this_environment
from pffbench.job.batch_job import StopSignals
from pffbench.run.next_steps import available_processors
from pffbench.run.options import RunOptions
from pffbench.text import one_line
from pffbench_environments.processes import Finished, last_line, run_bounded, stop_before_start

#: Seconds in which the Python of an environment must start; a container may be fetched first.
_START_SECONDS = 120.0
#: Seconds that the ranks of an environment may take to start and to check the experiment.
START_SECONDS = 600.0
#: Environments are there together: srun gives all of them the same cores, and Open MPI starts no
#: daemon for a process that was started without a launcher, which takes as long as the process.
_TOGETHER = {"SLURM_OVERLAP": "1", "OMPI_MCA_ess_singleton_isolated": "1"}
#: Beginning of the line by which a program of ours answers: others may print before it.
ANSWER = "pffbench-environment: "
#: Prints the version of pffbench in an environment and a digest of the source of all packages whose
#: code runs there; null without it. Any Python runs this.
_OWN = f"""
import sys
del sys.path[0]  # the current directory; an older Python knows no option -P
import hashlib, importlib.util, json, pathlib
own, digest = None, hashlib.sha256()
for name in "pffbench", "pffbench_environments", "pffbench_studies":
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.origin:
        folder = pathlib.Path(spec.origin).parent
        for path in sorted(folder.rglob("*.py"), key=lambda path: path.relative_to(folder).parts):
            digest.update(path.read_bytes())
        if own is None:
            import pffbench
            own = [pffbench.__version__, "", str(folder)]
        own[1] = digest.hexdigest()
print("{ANSWER}" + json.dumps([own, list(sys.version_info[:2])]))
"""
#: Its answer.
_Own = tuple[tuple[str, str, str] | None, tuple[int, int]]
#: Oldest Python that pffbench runs with.
_OLDEST = (3, 11)
#: Folders that hold installed packages.
_SITE = frozenset({"site-packages", "dist-packages"})


class StartedEnvironment(msgspec.Struct, frozen=True):
    """An environment, and how to start its Python."""

    name: str
    #: Command that is Python when arguments follow.
    command: tuple[str, ...]
    #: Changes of the process environment.
    variables: Mapping[str, str] = msgspec.field(default_factory=dict)

    @property
    def process_environment(self) -> dict[str, str]:
        """Environment variables of its processes."""
        return {**os.environ, **_TOGETHER, **self.variables}


class Launch(msgspec.Struct, frozen=True):
    """How a run starts the ranks of its environments."""

    #: Command that starts ranks; empty for one process without a launcher.
    launcher: tuple[str, ...]
    options: RunOptions
    #: Tells that the run is to end.
    stop: StopSignals
    #: Called while ranks run; may raise, which ends them.
    keep_going: Callable[[], None]
    #: Directory for files of the ranks, which is removed with them.
    directory: Path
    #: Seconds that ranks may take to start, to leave, or for a step that is not measured.
    limit: float

    def arguments(self, environment: StartedEnvironment) -> list[str]:
        """Return the arguments for all ranks of an environment: `probe.rank_options` reads them."""
        return [environment.name, *self.options.of_ranks()]

    def is_stopped(self) -> bool:
        """Return whether the run is to end."""
        return self.stop.asked

    def command(self, environment: StartedEnvironment, *arguments: str) -> list[str]:
        """Return the command that starts ranks of an environment."""
        return [*self.launcher, *environment.command, *arguments]

    def run(
        self, environment: StartedEnvironment, module: str, arguments: Sequence[str], seconds: float
    ) -> Finished:
        """Run a module of this package on the ranks of an environment, and hear its answers."""
        command = self.command(environment, "-P", "-m", module, *arguments)
        variables = environment.process_environment
        return run_bounded(command, seconds, self.keep_going, ANSWER, variables)


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
        return ("bash", "-c", '. "$0" </dev/null && exec python "$@"', str(script))
    return _program_of(environment.command or "", f"{where}.command")


def launch_of(
    loaded: LoadedExperiment, options: RunOptions, stop: StopSignals, directory: Path
) -> Launch:
    """Return how ranks are started before a run begins.

    Raises
    ------
    UserError
        There is no such launcher.
    """
    launcher = _launcher(loaded.experiment, loaded.path)
    given = loaded.experiment.hang_timeout
    limit = START_SECONDS if given is None else given
    return Launch(launcher, options, stop, stop_before_start(stop), directory, limit)


def _launcher(experiment: Experiment, path: str) -> tuple[str, ...]:
    if experiment.launcher is not None:
        return _program_of(experiment.launcher, f"{path}: launcher")
    cores = str(available_processors())
    if "SLURM_JOB_ID" in os.environ:
        return ("srun",)  # the tasks that the job was given
    if "FLUX_URI" in os.environ:
        return ("flux", "run", "-n", cores)
    mpiexec = os.environ.get("PFFBENCH_MPIEXEC") or shutil.which("mpiexec")
    return (mpiexec, "-n", cores) if mpiexec else ()


def commands_of(experiment: Experiment) -> list[str]:
    """Return what a run of an experiment starts beside this Python: ``KEY: COMMAND``."""
    told = [] if experiment.launcher is None else [f"launcher: {experiment.launcher}"]
    for entry in experiment.environments:
        if entry != this_environment():
            ways = {key: getattr(entry, key) for key in ("python", "activate", "command")}
            told += [f"{entry.name}: {key} {value}" for key, value in ways.items() if value]
    return told


def refuse_commands(experiment: Experiment, where: str, *, trust: bool) -> None:
    """Reject an experiment that names commands, unless the user trusts them.

    A file or a results directory may come from anybody.

    Raises
    ------
    UserError
        Names the commands.
    """
    commands = commands_of(experiment)
    if commands and not trust:
        raise UserError(
            f"{where}: it would start: {'; '.join(commands)}; give --trust if they may be started"
        )


def _program_of(command: str, where: str) -> tuple[str, ...]:
    words = shlex.split(command)
    return (_program(words[0], where), *words[1:])


def _program(name: str, where: str) -> str:
    found = shutil.which(os.path.expanduser(name))  # noqa: PTH111 -- of text, as shells do
    if found is None:
        raise UserError(f"{where}: {one_line(name)}: there is no such program")
    # Not resolved: a virtual environment's Python is a link.
    return str(Path(found).absolute())


def start_environments(
    experiment: Experiment, path: str, keep_going: Callable[[], None]
) -> list[StartedEnvironment]:
    """Start the Python of each environment once, and see that its pffbench is this one.

    An environment without pffbench takes that of a checkout, by ``PYTHONPATH``.

    Parameters
    ----------
    experiment : Experiment
        The experiment, which names them.
    path : str
        Its file, for messages.
    keep_going : callable
        Called while they start; may raise, which ends it.

    Raises
    ------
    UserError
        One of them cannot be started, or its pffbench is another one or missing.
    """
    return [
        _started(environment, f"{path}: environments[{number}]", keep_going)
        for number, environment in enumerate(experiment.environments)
    ]


def _started(
    environment: EnvironmentEntry, where: str, keep_going: Callable[[], None]
) -> StartedEnvironment:
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
    why = ""
    try:
        done = run_bounded(command, _START_SECONDS, keep_going, ANSWER)
        answer = done.messages[-1] if done.status == VALID else ""
        found: _Own = msgspec.json.decode(answer, type=_Own)
        return found
    except OSError as error:
        why = str(error.strerror)
    except (IndexError, msgspec.MsgspecError):
        why = last_line(done.text)
        if done.status is None:
            why = f"it gave no answer within {_START_SECONDS:g} s"
    raise UserError(f"{where}: no Python starts there: {why}")


def _by_path(where: str) -> dict[str, str]:
    """Return the variable that adds the pffbench of this checkout to an environment."""
    source = Path(pffbench.__file__).parents[1]
    if source.name in _SITE:  # other packages of this environment would come with it
        raise UserError(
            f"{where}: it has no pffbench; install pffbench {pffbench.__version__} there"
        )
    paths = [str(source), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(paths)}
