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

from pffbench.backends.registry import backend_class
from pffbench.case import Case
from pffbench.data import Sources, seed_of_repetition
from pffbench.environments.start import ANSWER
from pffbench.errors import VALID, UserError
from pffbench.experiment.plan import Plan
from pffbench.parallel.agreement import AgreedStep, PhaseFailedError, sleeping_barrier
from pffbench.parallel.clock import PhaseClock
from pffbench.parallel.collectives import on_root
from pffbench.parallel.launcher import check_launcher, leave_last, start_ranks
from pffbench.parallel.single import lack_of_mpi
from pffbench.parallel.topology import Team
from pffbench.phases import ARRIVING
from pffbench.storage.scratch import Scratch
from pffbench.text import one_line, without_digests
from pffbench.workloads.registry import workload
from pffbench.workloads.repetition import Repetition

if TYPE_CHECKING:
    from mpi4py import MPI


def main() -> int:
    """Do the work that the file in the command line names; return the exit status."""
    comm = start_ranks()
    try:
        check_launcher(comm.size)
        good = _work(comm, sys.argv[1])
    except UserError as error:
        if comm.rank == 0:
            said = one_line(f"pffbench: {without_digests(str(error))}")
            print(said, file=sys.stderr, flush=True)
        return leave_last(comm, error.exit_status)
    if good:
        return leave_last(comm, VALID)
    sys.stdout.flush()
    sleeping_barrier(comm)
    # Stores that could not be read may be open, and libraries fail at them when MPI is finalised.
    os._exit(VALID)


def _work(comm: MPI.Intracomm, path: str) -> bool:
    """Do all pieces of work; return whether every one was done."""
    job = on_root(comm, lambda: json.loads(Path(path).read_text(encoding="utf-8")))

    def make() -> Plan:
        from pffbench.experiment.check import make_plan  # needed on rank 0 only
        from pffbench.experiment.load import from_data

        return make_plan(from_data(job["experiment"], path), comm.size, lack_of_mpi(comm))

    plan = on_root(comm, make)
    cases = {case.id: case for case in plan.cases}
    scratch = Scratch.attach(job["scratch"], job["run_id"])
    team, sources = Team.of(comm), Sources()
    kept: list[Repetition] = []  # a store that failed is never released
    good = True
    for name, directory, copied_from in job["work"]:
        repetition: Repetition | None = None
        try:
            one = _Work(team, plan, cases[name], scratch, directory, sources, job["stage"])
            repetition = one.prepared(copied_from)
            trouble = one.done(repetition)
        except PhaseFailedError as error:
            trouble = f"{error.failure.phase}: {error.failure.error}"
        if trouble and repetition is not None:
            kept.append(repetition)
        good &= not trouble
        if comm.rank == 0:
            told = one_line(without_digests(trouble), 400)
            print(ANSWER + json.dumps([name, directory, told]), flush=True)
    return good


class _Work:
    """One case, to be written or to be read."""

    def __init__(
        self,
        team: Team,
        plan: Plan,
        case: Case,
        scratch: Scratch,
        directory: str,
        sources: Sources,
        stage: Any,
    ) -> None:
        self._team, self._plan, self._case, self._stage = team, plan, case, stage
        self._scratch, self._directory, self._sources = scratch, directory, sources

    def prepared(self, copied_from: str) -> Repetition:
        """Make the directory; for reading, with a copy of the files of another environment."""
        p, experiment = self._case.parameters, self._plan.experiment
        with AgreedStep(self._team.comm, f"import of {p.backend}") as step:
            backend = backend_class(p.backend)(self._case.options, p.settings)
            backend.load(p.codec)
            step.name = "data source"
            seed = seed_of_repetition(experiment.seed, 0)
            source = self._sources.get(p.source, p.dtype, seed, p.file, p.variable)
            step.name = "scratch"
            if self._team.is_root:
                made = self._scratch.make_directory(self._directory)
                if copied_from:
                    before = self._scratch.path(copied_from)
                    shutil.copytree(before, made, dirs_exist_ok=True, symlinks=True)
        return Repetition(
            team=self._team,
            case=self._case,
            workload=workload(p.workload),
            backend=backend,
            source=source,
            scratch=self._scratch,
            directory=self._directory,
            clock=PhaseClock(self._team.comm),
            memory=int(experiment.memory),
            inspect=False,
            stage=self._stage,
        )

    def done(self, repetition: Repetition) -> str:
        """Write or read; return how data read were wrong, or nothing."""
        repetition.workload.run(repetition)
        if self._stage == "write":
            return ""
        with AgreedStep(self._team.comm, "cleaning"):
            if self._team.is_root:
                self._scratch.remove(self._scratch.path(self._directory))
        observed = repetition.observed
        read = sum(
            time.nbytes
            for time in repetition.clock.times
            if time.phase.partition("_")[0] in ARRIVING
        )
        here = (
            [f"array {m.array} at {list(m.index)}: {m.got} instead of {m.expected}"
             for m in observed.mismatches],
            observed.verified_bytes,
            read,
        )  # fmt: skip
        everywhere = self._team.comm.allgather(here)
        wrong = [text for texts, _, _ in everywhere for text in texts]
        if wrong:
            more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
            return f"wrong data: {wrong[0]}{more}"
        verified, moved = (sum(one[i] for one in everywhere) for i in (1, 2))
        return "" if verified == moved else f"{verified} of {moved} bytes verified"


if __name__ == "__main__":
    sys.exit(main())
