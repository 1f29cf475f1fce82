"""Preparation of a run on rank 0, from the command line, before any file is created.

No other rank imports this module, nor the modules that read and check an experiment.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import msgspec

from pffbench.backends.base import opens_by_mpi_io
from pffbench.backends.registry import backend_class
from pffbench.backends.shared_files import built_for_mpi
from pffbench.case import Parameters, Stage
from pffbench.errors import UserError
from pffbench.experiment.check import NO_COLD_READS, extra_cold_reads, make_plan
from pffbench.experiment.limits import (
    Allowance,
    check_addresses,
    check_nodes,
    check_open_files,
    check_tasks,
)
from pffbench.experiment.load import (
    LoadedExperiment,
    from_data,
    is_built_in,
    load_experiment,
)
from pffbench.experiment.plan import Plan, arrays_of, in_environment
from pffbench.interpreter import ask_no_processor
from pffbench.job.batch_job import seconds_left
from pffbench.mpi.single import lack_of_mpi
from pffbench.mpi.topology import Team
from pffbench.provenance.mpiio import longest_path
from pffbench.record.lock import RunLock
from pffbench.record.ranks import NEEDS_H5PY
from pffbench.run.options import RunOptions
from pffbench.run.resume import Resumed, refuse_other_cases, resumed, without_left_out
from pffbench.run.scratch_directory import check_scratch, parent_of_node, part_of_node
from pffbench.run.spec import RunSpec, repetition_directory
from pffbench.storage.filesystem import nearest_existing
from pffbench.storage.ownership import PREFIX
from pffbench.storage.page_cache import reason_against_cold_reads
from pffbench.storage.scratch import scratch_parent
from pffbench.text import has_controls, one_line
from pffbench.units import Duration

#: Part of the time left to a job that measuring may take; the rest is for what the estimates of
#: repetitions miss, and for the report.
_BUDGET_PART = 0.9
#: Bytes of the longest path within a store that is a directory.
_WITHIN_STORE = 128
#: The longest path on Linux, without the terminating zero.
_PATH_MAX = 4095


class RunRequest(NamedTuple):
    """A requested run, as far as it is known without a check."""

    #: Options of the run.
    options: RunOptions
    #: The experiment.
    loaded: LoadedExperiment
    #: Name of the run.
    run_id: str
    #: Results directory.
    out: str
    #: The part of the run that this job does.
    stage: Stage
    #: The run to be resumed, if any.
    before: Resumed | None


def read_request(options: RunOptions, team: Team, lock: RunLock) -> RunRequest:
    """Read the experiment of a run, or the run to be resumed.

    Parameters
    ----------
    options : RunOptions
        Options of the run.
    team : Team
        The ranks; nothing here is collective.
    lock : RunLock
        Acquired here on the results directory of a resumed run.

    Raises
    ------
    UserError
        It cannot be read or resumed, or the results directory cannot be made.
    """
    before = _before(options, team, lock)
    run = _new_run(options) if before is None else _same_run(before)
    return RunRequest(options, *run, before)


def prepare_run(request: RunRequest, team: Team, allowance: Allowance) -> RunSpec:
    """Check the requested run for every possible error.

    Parameters
    ----------
    request : RunRequest
        The run.
    team : Team
        The ranks; nothing here is collective.
    allowance : Allowance
        Resources available to each rank.

    Raises
    ------
    UserError
        The request has an error; nothing has been created.
    """
    options, loaded, run_id, out, stage, before = request
    no_mpi = lack_of_mpi(team.comm)
    if no_mpi is not None and built_for_mpi("h5py"):
        raise UserError(
            f"h5py, which the run is recorded with, is built with MPI, and MPI cannot be used "
            f"({no_mpi}); load the MPI that it was built with"
        )
    no_cold_reads = _no_cold_reads(loaded, options, before)
    plan = make_plan(loaded, team.size, no_mpi, no_cold_reads, team.topology)
    if options.environment is not None:
        plan = in_environment(plan, options.environment)
    if before is not None:
        plan = without_left_out(plan, before.record)
        refuse_other_cases(before.directory, before.record, plan)
    _check_stage(plan, stage)
    parent, own = _parent(options.scratch, before, plan, stage, allowance, team)
    check_paths(plan, parent, run_id)
    check_open_files(plan, allowance)
    check_tasks(plan, allowance)
    check_addresses(plan, allowance)
    check_nodes(plan, team.topology, allowance)
    _check_record()
    rounds = plan.experiment.rounds
    return RunSpec(
        plan,
        loaded.path,
        stage,
        run_id,
        parent,
        own,
        out,
        before is not None,
        frozenset() if before is None else before.done(rounds),
        frozenset() if before is None else before.kept,
        allowance.memory,
        options,
    )


def _new_run(options: RunOptions) -> tuple[LoadedExperiment, str, str, Stage]:
    """Return the experiment, name, results directory and stage of a run that begins."""
    loaded = load_experiment(options.experiment, options.overrides)
    loaded = with_time_of_job(loaded, options, os.environ)
    run_id = unique_name(loaded.experiment.name)
    if options.stage == "read":
        raise UserError("--stage read reads what another job wrote: add --resume DIR")
    return loaded, run_id, results_directory(options.out, run_id), options.stage or "all"


def _same_run(before: Resumed) -> tuple[LoadedExperiment, str, str, Stage]:
    """Return the same of a run that is resumed."""
    loaded = from_data(before.record.experiment, f"{before.directory}/run.json")
    out = str(Path(before.directory).absolute())
    return loaded, before.record.run_id, out, before.stage


def with_time_of_job(
    loaded: LoadedExperiment, options: RunOptions, environ: Mapping[str, str]
) -> LoadedExperiment:
    """Set the time budget to what is left of the batch job, unless one is given.

    A number of repetitions in an experiment without a budget is given too: a job that ends before
    is continued by its next start.

    Parameters
    ----------
    loaded : LoadedExperiment
        The experiment.
    options : RunOptions
        Options of the run.
    environ : mapping
        An environment, such as `os.environ`.
    """
    experiment = loaded.experiment
    named = any(text.partition("=")[0].strip() == "time_budget" for text in options.overrides)
    if experiment.time_budget is None:
        given = named or experiment.repetitions != "auto"
    else:
        given = named or not is_built_in(options.experiment)
    left = None if given or options.stage is not None else seconds_left(environ)
    if left is None:
        return loaded
    if options.max_time is not None:
        left = min(left, options.max_time)
    budget = Duration(max(1, math.floor(_BUDGET_PART * left / options.job_share)))
    changed = msgspec.structs.replace(experiment, time_budget=budget)
    return msgspec.structs.replace(loaded, experiment=changed)


def _before(options: RunOptions, team: Team, lock: RunLock) -> Resumed | None:
    """Return the run to resume, if any."""
    if not options.resume:
        return None
    if options.experiment or options.overrides:
        raise UserError("--resume goes on with the experiment of the run; it takes no other")
    return resumed(options.resume, team.topology, options.stage, lock, batch=options.batch)


def _check_record() -> None:
    """Reject a run that could not be recorded.

    Raises
    ------
    UserError
        The library of the record cannot be imported.
    """
    ask_no_processor()
    try:
        import h5py  # noqa: F401 -- the record imports it next
    except ImportError as error:
        absent = find_spec("h5py") is None
        why = "not installed" if absent else f"installed, but cannot be imported ({error})"
        raise UserError(NEEDS_H5PY.format(why)) from None


def _no_cold_reads(
    loaded: LoadedExperiment, options: RunOptions, before: Resumed | None
) -> str | None:
    """Return why the experiment's extra cold reads are left out; None if they are not."""
    extra = extra_cold_reads(loaded)
    if not extra:
        return None
    if before is None:
        local = loaded.experiment.node_local
        parent = (parent_of_node if local else scratch_parent)(options.scratch)[0]
        return reason_against_cold_reads(parent)
    record = before.record
    if any(case.id in record.cases for case in extra):
        return None
    known = [text for text in record.limits if text.startswith(NO_COLD_READS)]
    return known[0].removeprefix(NO_COLD_READS) if known else "the run began without them"


def _parent(
    given: str | None,
    before: Resumed | None,
    plan: Plan,
    stage: Stage,
    allowance: Allowance,
    team: Team,
) -> tuple[str, bool]:
    """Return the parent of the scratch directory, and whether it is to be created too."""
    left = None if before is None else before.record.scratch
    local = plan.experiment.node_local
    parent, own = parent_of_node(given, left) if local else scratch_parent(given, left)
    if stage == "read":
        assert left is not None
        _check_same_place(parent, left)
    else:
        here = part_of_node(plan, team) if local else plan
        check_scratch(here, parent, allowance.memory)
    return parent, own


def _check_stage(plan: Plan, stage: Stage) -> None:
    """Reject a stage that does not establish the requested cache state.

    Raises
    ------
    UserError
        Cases for two jobs are to run in one, or the reverse.
    """
    separate = [case.id for case in plan.cases if case.parameters.cache == "separate"]
    if stage == "all" and separate:
        raise UserError(
            f"{separate[0]}: with cache: separate another job reads; run this with --stage write, "
            "then with --resume DIR --stage read on other nodes (jobs/cold-read.sh does both)"
        )
    if stage != "all" and len(separate) < len(plan.cases):
        other = next(case for case in plan.cases if case.id not in separate)
        raise UserError(
            f"{other.id}: --stage needs cache: separate in all cases, here it is "
            f"cache: {other.parameters.cache}; add --set cache=separate"
        )


def _check_same_place(parent: str, left: str) -> None:
    if os.path.realpath(parent) != os.path.realpath(Path(left).parent):
        raise UserError(f"--scratch {parent}: the data to read are in {left}; leave --scratch away")


def unique_name(name: str) -> str:
    """Return a name for a run that begins now in this process."""
    return f"{name}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{os.getpid()}"


def results_directory(given: str | None, name: str) -> str:
    """Return the path of the results directory of a new run; nothing is created.

    Raises
    ------
    UserError
        Something is there, or it cannot be created.
    """
    path = Path(given) if given else Path("pffbench-results", name)
    try:
        taken = path.exists() and (not path.is_dir() or any(path.iterdir()))
        existing = nearest_existing(str(path.absolute()))
    except OSError as error:
        raise UserError(f"--out {path}: cannot be reached: {error.strerror}") from None
    if taken:
        raise UserError(f"--out {path}: already there and not an empty directory; name a new one")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UserError(f"--out {path}: {existing} is not writable")
    return str(path.absolute())


def check_paths(plan: Plan, parent: str, run_id: str) -> None:
    """Reject a scratch directory whose file paths could not be opened.

    Parameters
    ----------
    plan : Plan
        Plan of the run.
    parent : str
        Directory on the file system under test.
    run_id : str
        Identifier of the run, which names its own directory there.

    Raises
    ------
    UserError
        The path is not valid text, or is too long for the system or for MPI-IO.
    """
    if has_controls(parent):
        raise UserError(
            f"--scratch {one_line(parent)}: the path holds control characters, or bytes that are "
            "not UTF-8, which the libraries do not take; choose another directory"
        )
    above = len(os.fsencode(os.path.realpath(parent))) + len(f"/{PREFIX}{run_id}/")
    rounds = plan.experiment.rounds
    by_mpi_io = longest_path(os.environ, plan.ranks)
    for case in plan.cases:
        kind = backend_class(case.parameters.backend)
        name = f"/{_longest_name(case.parameters, plan.ranks)}{kind.suffix}"
        length = above + len(repetition_directory(case.id, rounds)) + len(name)
        if length + _WITHIN_STORE > _PATH_MAX:
            raise UserError(
                f"--scratch {parent}: too long: paths of files there would have more than the "
                f"{_PATH_MAX} bytes that the system takes; choose a shorter one"
            )
        if by_mpi_io is not None and opens_by_mpi_io(kind, case.parameters) and length > by_mpi_io:
            raise UserError(
                f"--scratch {parent}: too long by {length - by_mpi_io} bytes for {case.id}: Open "
                f"MPI crashes at paths of more than {by_mpi_io} bytes; choose a shorter directory "
                "or a shorter name of the experiment, or set OMPI_MCA_sharedfp=individual"
            )


def _longest_name(p: Parameters, ranks: int) -> str:
    """Return the longest name, without its suffix, of the stores of a case."""
    label = "-repacked" if arrays_of(p, ranks).second_store else ""
    return f"{p.file_stem(0)}{label}"
