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
from typing import TYPE_CHECKING, Any

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

        return make_plan(from_data(job["experiment"], path), comm.size, lack_of_mpi(comm))

    plan = on_root(comm, make)
    cases = {case.id: case for case in plan.cases}
    worker = _Worker(comm, plan, Scratch.attach(job["scratch"], job["run_id"]), job["stage"])
    good = True
    for name, directory, copied_from in job["work"]:
        try:
            trouble = worker.trouble_with(cases[name], directory, copied_from)
        except PhaseFailedError as error:
            trouble = f"{error.failure.phase}: {error.failure.error}"
        good &= not trouble
        if comm.rank == 0:
            told = one_line(without_digests(trouble), 400)
            print(ANSWER + json.dumps([directory, told]), flush=True)
    return good


class _Worker:
    """Writes or reads cases; every method is collective."""

    def __init__(self, comm: MPI.Intracomm, plan: Plan, scratch: Scratch, stage: Any) -> None:
        self._team, self._plan, self._scratch, self._stage = Team.of(comm), plan, scratch, stage
        self._sources = Sources()
        #: Stores that failed, which are never released: that would close them.
        self._kept: list[Repetition] = []

    def trouble_with(self, case: Case, directory: str, copied_from: str) -> str:
        """Write a case, or read its files; return how data read were wrong, or nothing."""
        repetition = self._prepared(case, directory, copied_from)
        self._kept.append(repetition)
        repetition.workload.run(repetition)
        trouble = "" if self._stage == "write" else self._checked(repetition)
        if not trouble:
            self._kept.pop()
        return trouble

    def _prepared(self, case: Case, directory: str, copied_from: str) -> Repetition:
        """Make the directory; for reading, with a copy of the files of another environment."""

        def make_directory(step: AgreedStep) -> None:
            step.name = "scratch"
            if self._team.is_root:
                made = self._scratch.make_directory(directory)
                if copied_from:
                    before = self._scratch.path(copied_from)
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
            stage=self._stage,
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
