"""`pffbench run`: start MPI, agree on the run, execute it, and report the result."""

from __future__ import annotations

import argparse
import faulthandler
import gc
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from pffbench.commands.arguments import list_experiments
from pffbench.errors import CTRL_C, INTERRUPTED, NOT_VALID, VALID, UserError
from pffbench.job.alarm import PATIENCE, Alarm, patience_around, write_stack_at_alarm
from pffbench.job.batch_job import StopSignals
from pffbench.job.launcher import (
    FEWEST_ADDRESSES,
    check_launcher,
    is_launched,
    leave_at_once,
    leave_last,
    speaks_for_all,
    start_ranks,
)
from pffbench.mpi.single import lack_of_mpi
from pffbench.plugins import plugins
from pffbench.run.options import RunOptions, add_arguments
from pffbench.text import one_line, without_digests
from pffbench.units import Duration, Size

if TYPE_CHECKING:
    from mpi4py import MPI

    from pffbench.experiment.load import LoadedExperiment
    from pffbench.run.session import Session

__all__ = ["add_arguments", "main"]

#: Another package starts the ranks of a run through an entry point of this group, whose name is the
#: key of an experiment that asks for it.
LAUNCHERS = "pffbench.launchers"
_KEY = "environments"
#: The keys of an experiment with such a run.
_KEYS = ("environments", "starts")


def main(arguments: argparse.Namespace) -> int:
    """Run an experiment on all ranks; collective. Return the exit status."""
    if arguments.list:
        return list_experiments(as_json=arguments.json)
    return execute(RunOptions.of_arguments(arguments))


def execute(options: RunOptions) -> int:
    """Run an experiment on all ranks; collective. Return the exit status."""
    _check_addresses()
    with StopSignals() as stop:
        alone = not is_launched(os.environ)
        if options.batch and alone:
            begun = _begun_or_resumed(options)
            if isinstance(begun, int):
                return begun
            options = begun
        if alone and _may_have_environments(options):
            from pffbench.experiment.load import load_experiment
            from pffbench.run.prepare import with_time_of_job

            if options.resume:
                return _launcher(f"--resume {options.resume}").run(options, None, stop)
            loaded = load_experiment(options.experiment, options.overrides)
            if loaded.experiment.environments:
                loaded = with_time_of_job(loaded, options, os.environ)
                return _launcher(loaded.path).run(options, loaded, stop)
        return _run(options, stop)


def _begun_or_resumed(options: RunOptions) -> RunOptions | int:
    """Return the options of a run in a batch job, or the exit status of a finished one."""
    from pffbench.run.batch import begun_or_resumed  # needed on rank 0 only

    return begun_or_resumed(options)


class Launcher(Protocol):
    """A module that starts the ranks of a run itself, from one process without MPI."""

    @staticmethod
    def run(options: RunOptions, loaded: LoadedExperiment | None, stop: StopSignals) -> int:
        """Run an experiment, or go on with a run where there is none; return the exit status."""


def _launcher(what: str) -> Launcher:
    """Return what starts the ranks of several environments.

    Raises
    ------
    UserError
        No installed package does.
    """
    module = plugins(LAUNCHERS).get(_KEY)
    if module is None:
        raise UserError(
            f"{what}: a run of several environments needs the package pffbench_environments, "
            "which is not installed here"
        )
    return cast(Launcher, import_module(module))


def _may_have_environments(options: RunOptions) -> bool:
    """Return whether it is worth reading the experiment before MPI is started."""
    if options.resume:
        return _had_environments(options.resume)
    if any(override.partition("=")[0].strip() in _KEYS for override in options.overrides):
        return True
    if options.experiment is None:
        return False
    from pffbench.experiment.load import is_results
    from pffbench.experiment.shipped import shipped_file

    if is_results(options.experiment):
        return True
    path = shipped_file(options.experiment) or Path(options.experiment)
    try:
        text = path.read_bytes() if path.is_file() else b""
        return any(key.encode() in text for key in _KEYS)
    except OSError:  # which is reported where it is read
        return False


def _had_environments(directory: str) -> bool:
    """Return whether the run in a results directory is one of several environments."""
    from pffbench.record.run_json import RunRecord

    try:
        return bool(RunRecord.load(directory).environments)
    except ValueError:  # which is reported where it is resumed
        return False


def _run(options: RunOptions, stop: StopSignals) -> int:
    gc.disable()  # objects of the start stay, and would be searched repeatedly; see Runner.run
    alarm = Alarm()  # which the ranks of a job keep until their end: MPI waits there too
    if is_launched(os.environ):
        write_stack_at_alarm()
        alarm.begin(_patience(options))
    comm = start_ranks()
    stop.install()
    faulthandler.enable()  # a crash in a library reports the Python stack
    check_launcher(comm.size)
    with _abort_on_error(comm) as guard:
        from pffbench.mpi.collectives import on_root
        from pffbench.run.session import Session, import_for_rank_0

        if comm.rank == 0:
            import_for_rank_0()
        status = VALID
        try:
            if options.batch and not options.resume:
                begun = on_root(comm, partial(_begun_or_resumed, options))
                if isinstance(begun, int):
                    return leave_last(comm, begun)
                options = begun
            for one in _one_after_another(comm, options):
                guard.session = session = Session(comm, one, stop)
                ended = session.run()
                if session.abandoned:
                    leave_at_once(comm, ended)
                if ended == INTERRUPTED:
                    return leave_last(comm, ended)
                status = status or ended
        except UserError as error:
            if comm.rank == 0:
                check = how_to_check(options, comm.size)
                said = one_line(f"pffbench: {without_digests(str(error))}{check}")
                print(said, file=sys.stderr, flush=True)
            return leave_last(comm, error.exit_status)
        return leave_last(comm, status)


def _patience(options: RunOptions) -> float:
    """Return the seconds until the experiment is read, which may have another limit."""
    for text in options.overrides:
        key, _, value = text.partition("=")
        if key.strip() == "hang_timeout":
            with suppress(UserError):  # which is reported where the experiment is read
                return patience_around(Duration.parse(value.strip()))
    return PATIENCE


#: Ranks from which on a launcher takes long to end, so that an error found by `run` is dear.
_MANY_RANKS = 32


def how_to_check(options: RunOptions, ranks: int) -> str:
    """Return how input is checked without starting many ranks; empty for few of them."""
    if ranks < _MANY_RANKS or options.resume:
        return ""
    import shlex  # one rank needs it, at an error

    words = ["pffbench", "plan", "-n", str(ranks)]
    words += [] if options.experiment is None else [options.experiment]
    words += [word for change in options.overrides for word in ("--set", change)]
    words += [] if options.scratch is None else ["--scratch", options.scratch]
    return f"; check it in one process with: {shlex.join(words)}"


def _one_after_another(comm: MPI.Intracomm, options: RunOptions) -> Iterator[RunOptions]:
    """Yield the options of each run: one, or one per experiment of a folder; collective.

    Raises
    ------
    UserError
        On every rank, when an experiment of a folder is wrong; nothing has been created then.
    """
    from pffbench.mpi.collectives import on_root

    if options.experiment is None:
        yield options
        return
    runs = on_root(comm, lambda: _runs_of(options, comm))
    for number, (experiment, out) in enumerate(runs, start=1):
        if comm.rank == 0 and not (options.json or options.quiet):
            print(f"experiment {number} of {len(runs)}: {experiment}", flush=True)
        share = options.job_share * (len(runs) + 1 - number)
        yield replace(options, experiment=experiment, out=out, job_share=share)
    if not runs:
        yield options


def _runs_of(options: RunOptions, comm: MPI.Intracomm) -> list[tuple[str, str]]:
    """Return the experiments of a folder and their results directory; none where it is a file."""
    from pffbench.experiment.check import make_plan
    from pffbench.experiment.load import experiment_files, is_folder, load_experiment

    if options.experiment is None or not is_folder(options.experiment):
        return []
    from pffbench.run.prepare import unique_name

    if options.resume:
        raise UserError("--resume goes on with the experiment of the run; it takes no other")
    if options.batch:
        raise UserError(f"--batch resumes one run, and {options.experiment} is a folder")
    files = experiment_files(options.experiment)
    for file in files:
        make_plan(load_experiment(file, options.overrides), comm.size, lack_of_mpi(comm))
    name = unique_name(Path(options.experiment).resolve().name)
    out = Path(options.out or Path("pffbench-results", name))
    return [(file, str(out / Path(file).stem)) for file in files]


def _check_addresses() -> None:
    """Refuse to start MPI where the address space may be too small: libraries crash there.

    Raises
    ------
    UserError
        In the process that reports for all.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY or limit >= FEWEST_ADDRESSES:
        return
    if not speaks_for_all(os.environ):
        sys.exit(VALID)
    raise UserError(
        f"a process may have {Size(limit)} of virtual memory, and MPI with the libraries of the "
        f"formats needs {Size(FEWEST_ADDRESSES)} at least; raise the limit (ulimit -v)"
    )


class _Guarded:
    """The run that an error may end, once it has begun."""

    session: Session | None = None


@contextmanager
def _abort_on_error(comm: MPI.Intracomm) -> Iterator[_Guarded]:
    """End all ranks when one meets an unexpected error: the others would wait for it."""
    guarded = _Guarded()
    try:
        yield guarded
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 -- the ranks end with it
        import traceback

        session = guarded.session
        if session is not None:
            session.leave()
        rest = "nothing was recorded" if session is None else session.how_to_go_on
        interrupted = isinstance(error, KeyboardInterrupt)
        if interrupted:
            print(f"pffbench: interrupted; {rest}", file=sys.stderr)
        else:
            print(f"pffbench: rank {comm.rank} met an unexpected error", file=sys.stderr)
            traceback.print_exception(error)
            print(f"pffbench: {rest}", file=sys.stderr)
        sys.stderr.flush()
        sys.stdout.flush()
        status = CTRL_C if interrupted else NOT_VALID
        if comm.size == 1:  # no rank waits
            raise SystemExit(status) from None
        comm.Abort(status)
