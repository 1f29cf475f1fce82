"""One repetition of a case in this process, as the runner makes it, for pairs within a process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec.yaml
from mpi4py import MPI

from pffbench.backends.registry import backend_class
from pffbench.case import Case
from pffbench.data import make_source
from pffbench.experiment.check import make_plan
from pffbench.experiment.load import from_data
from pffbench.parallel.clock import PhaseClock, collector_off
from pffbench.parallel.topology import Team
from pffbench.storage.scratch import Scratch
from pffbench.workloads.registry import workload
from pffbench.workloads.repetition import Repetition


def the_case(keys: str) -> Case:
    """Return the case of these keys, checked for the ranks that there are."""
    data = {"name": "one", "roofline": False, "cases": [msgspec.yaml.decode(f"{{{keys}}}")]}
    return make_plan(from_data(data, "one"), MPI.COMM_WORLD.size).cases[0]


class Repetitions:
    """Runs repetitions of one case.

    Parameters
    ----------
    case : Case
        The case.
    scratch : Scratch
        Where its files go.
    clock : callable
        Makes the clock of a repetition, of a communicator.
    """

    def __init__(self, case: Case, scratch: Scratch, clock: Any = PhaseClock) -> None:
        p = case.parameters
        self._case = case
        self._scratch = scratch
        self._clock = clock
        self._team = Team.of(MPI.COMM_WORLD)
        self._backend = backend_class(p.backend)(case.options, p.settings)
        for library in self._backend.capabilities.libraries(p.codec, case.options):
            import_module(library)
        self._source = make_source(p.source, p.dtype, 1, p.file, p.variable)
        self._count = 0

    def one(self) -> Mapping[str, float]:
        """Run a repetition and return this rank's own seconds in each phase."""
        directory = f"{self._count:04d}-{self._case.id}"
        self._count += 1
        if self._team.is_root:
            self._scratch.make_directory(directory)
        self._team.comm.Barrier()
        repetition = Repetition(
            team=self._team,
            case=self._case,
            workload=workload(self._case.parameters.workload),
            backend=self._backend,
            source=self._source,
            scratch=self._scratch,
            directory=directory,
            clock=self._clock(self._team.comm),
            memory=2**26,
            inspect=False,
        )
        with collector_off():
            repetition.workload.run(repetition)
        if self._team.is_root:
            self._scratch.remove(self._scratch.path(directory))
        if repetition.observed.mismatches:
            raise RuntimeError(f"{self._case.id}: {repetition.observed.mismatches[0]}")
        return {time.phase: time.own for time in repetition.clock.times}


@contextmanager
def scratch_below(place: Path) -> Iterator[Scratch]:
    """Make a scratch directory, and remove it."""
    scratch = Scratch.create(str(place), "one")
    try:
        yield scratch
    finally:
        scratch.destroy()
