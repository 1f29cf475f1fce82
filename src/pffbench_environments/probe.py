"""The ranks' part of checking an environment: what a run would do there, and with what.

Started under the launcher in each environment, with the arguments of `pffbench run`. Everything
that a run checks before it creates a file is checked here; nothing is created.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from pffbench.errors import VALID, UserError
from pffbench.job.launcher import check_launcher, leave_last, start_ranks
from pffbench.mpi.collectives import largest, on_root
from pffbench.mpi.topology import Team
from pffbench.observe.clock import measure_floor
from pffbench.provenance.collect import collect_provenance
from pffbench.record.lock import RunLock
from pffbench.record.run_json import Startup
from pffbench.run.options import RunOptions, add_arguments
from pffbench.run.resources import available_resources, seconds_since_start
from pffbench.run.spec import RunSpec
from pffbench.storage.filesystem import nearest_existing
from pffbench.text import one_line, without_digests
from pffbench_environments.start import ANSWER

if TYPE_CHECKING:
    from mpi4py import MPI

#: Launchers by a variable that each sets, and how the MPI library that it starts names itself.
_LIBRARIES = {"OMPI_COMM_WORLD_SIZE": "Open MPI", "MPI_LOCALNRANKS": "MPICH"}


def main() -> int:
    """Print the record with which a run would begin here, on rank 0; return the exit status."""
    options = rank_options(sys.argv[1:])
    try:
        comm = start_ranks()
    except UserError as error:
        report(error)
        return error.exit_status
    try:
        check_launcher(comm.size)
        _answer(comm, options)
    except UserError as error:
        if comm.rank == 0:
            report(error)
        return leave_last(comm, error.exit_status)
    return leave_last(comm, VALID)


def rank_options(arguments: Sequence[str]) -> RunOptions:
    """Return the options of ranks, from the name of their environment and those of `run`."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    options = RunOptions.of_arguments(parser.parse_args(arguments[1:]))
    return replace(options, environment=arguments[0])


def report(error: UserError) -> None:
    """Print the sentence of an error, as `pffbench` does."""
    print(one_line(f"pffbench: {without_digests(str(error))}"), file=sys.stderr, flush=True)


def _answer(comm: MPI.Intracomm, options: RunOptions) -> None:
    """Print the record; collective.

    Raises
    ------
    UserError
        On every rank: the run is impossible in this environment.
    """
    started = seconds_since_start()
    team = Team.of(comm)
    allowance = available_resources(team)

    def prepare() -> RunSpec:
        from pffbench.run.prepare import prepare_run, read_request

        _refuse_other_mpi()
        return prepare_run(read_request(options, team, RunLock()), team, allowance)

    spec = on_root(comm, prepare)
    floor = measure_floor(comm)
    there = nearest_existing(spec.scratch_parent)
    provenance = collect_provenance(team, spec.plan, there)
    startup = Startup(largest(comm, started))
    if team.is_root:
        from pffbench.run.recording import new_record  # needed on rank 0 only

        record = new_record(spec, there, team.topology, floor, startup, provenance)
        print(ANSWER + msgspec.json.encode(record, enc_hook=str).decode(), flush=True)


def _refuse_other_mpi() -> None:
    """Reject an MPI library that the launcher does not start, also with one rank.

    Raises
    ------
    UserError
        Names both.
    """
    if "mpi4py.MPI" not in sys.modules:
        return
    from mpi4py import MPI

    library = MPI.Get_library_version().partition("\n")[0]
    for variable, name in _LIBRARIES.items():
        other = [n for n in _LIBRARIES.values() if n != name]
        if variable in os.environ and any(library.startswith(n) for n in other):
            raise UserError(f"the launcher is that of {name}, and MPI here is {library}")


if __name__ == "__main__":
    sys.exit(main())
