"""The ranks' part of reading across environments: write files, or read those of another one.

Started under the launcher in each environment, with a file that lists the work. Nothing here is
measured. Rank 0 prints a line for each piece of work, so that a crash loses only the one at hand.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pffbench.case import Case
from pffbench.data import Sources
from pffbench.errors import VALID
from pffbench.experiment.plan import Plan
from pffbench.parallel.agreement import AgreedStep, PhaseFailedError, sleeping_barrier
from pffbench.parallel.clock import PhaseClock
from pffbench.parallel.collectives import on_root
from pffbench.parallel.single import lack_of_mpi
from pffbench.parallel.topology import Team
from pffbench.phases import arrivals
from pffbench.run.runner import prepare_repetition
from pffbench.storage.scratch import Scratch
from pffbench.text import one_line, without_digests
from pffbench.workloads.repetition import Repetition
from pffbench_environments.probe import on_ranks
from pffbench_environments.start import ANSWER

if TYPE_CHECKING:
    from mpi4py import MPI


def main() -> int:
    """Do the work that the file in the command line names; return the exit status."""

    def work(comm: MPI.Intracomm) -> None:
        if _work(comm, sys.argv[1]):
            return
        sys.stdout.flush()
        sleeping_barrier(comm)
        # Stores that could not be read may be open: libraries fail at them when MPI is finalised.
        os._exit(VALID)

    return on_ranks(work)


def _work(comm: MPI.Intracomm, path: str) -> bool:
    """Do all pieces of work; return whether every one was done."""
    job = on_root(comm, lambda: json.loads(Path(path).read_text(encoding="utf-8")))

    def make() -> Plan:
        from pffbench.experiment.check import make_plan  # needed on rank 0 only
        from pffbench.experiment.load import from_data

        loaded, no_mpi = from_data(job["experiment"], path), lack_of_mpi(comm)
        return make_plan(loaded, comm.size, no_mpi, topology=team.topology)

    team = Team.of(comm)
    plan = on_root(comm, make)
    cases = {case.id: case for case in plan.cases}
    worker = _Worker(team, plan, Scratch.attach(job["scratch"], job["run_id"]))
    good = True
    for piece in job["work"]:
        name, writer, reader = piece
        try:
            trouble = worker.trouble_with(cases[name], writer, reader)
        except PhaseFailedError as error:
            trouble = f"{error.failure.phase}: {error.failure.error}"
        good &= not trouble
        if comm.rank == 0:
            told = one_line(without_digests(trouble), 400)
            print(ANSWER + json.dumps([piece, told]), flush=True)
    return good


class _Worker:
    """Writes or reads cases; every method is collective."""

    def __init__(self, team: Team, plan: Plan, scratch: Scratch) -> None:
        self._team, self._plan, self._scratch, self._sources = team, plan, scratch, Sources()
        #: Stores that failed, which are never released: that would close them.
        self._kept: list[Repetition] = []

    def trouble_with(self, case: Case, writer: str, reader: str) -> str:
        """Write a case, or read its files; return how data read were wrong, or nothing."""
        repetition = self._prepared(case, writer, reader)
        self._kept.append(repetition)
        repetition.workload.run(repetition)
        trouble = self._checked(repetition) if reader else ""
        if not trouble:
            self._kept.pop()
        return trouble

    def _prepared(self, case: Case, writer: str, reader: str) -> Repetition:
        """Make the directory; for a reader, with a copy of the files of the writer."""
        written = f"{case.id.rpartition('.')[2]}-{writer}"  # a short path
        directory = f"{written}-by-{reader}" if reader else written

        def make_directory(step: AgreedStep) -> None:
            step.name = "scratch"
            if self._team.is_root:
                # Ranks that crashed may have left it.
                self._scratch.remove(self._scratch.path(directory), missing_ok=True)
                made = self._scratch.make_directory(directory)
                if reader:
                    before = self._scratch.path(written)
                    shutil.copytree(before, made, dirs_exist_ok=True, symlinks=True)

        return prepare_repetition(
            self._plan.experiment,
            case,
            0,
            self._sources,
            make_directory,
            team=self._team,
            scratch=self._scratch,
            directory=directory,
            clock=PhaseClock(self._team.comm),
            inspect=False,
            stage="read" if reader else "write",
        )

    def _checked(self, repetition: Repetition) -> str:
        """Remove the files that were read; return how the data were wrong, or nothing."""
        with AgreedStep(self._team.comm, "cleaning"):
            if self._team.is_root:
                self._scratch.remove(self._scratch.path(repetition.directory))
        observed, times = repetition.observed, repetition.clock.times
        read = sum(times[i].nbytes for i in arrivals([time.phase for time in times]))
        here = [str(mismatch) for mismatch in observed.mismatches], observed.verified_bytes, read
        everywhere = self._team.comm.allgather(here)
        wrong = [text for texts, _, _ in everywhere for text in texts]
        if wrong:
            more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
            return f"wrong data: {wrong[0]}{more}"
        verified, moved = (sum(one[i] for one in everywhere) for i in (1, 2))
        return "" if verified == moved else f"{verified} of {moved} bytes verified"


if __name__ == "__main__":
    sys.exit(main())
