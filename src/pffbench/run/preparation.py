"""Preparation of a repetition, off the timer: its library, data, memory and directory."""

from __future__ import annotations

import random
from importlib import import_module

from pffbench.backends.registry import backend_class
from pffbench.case import Case
from pffbench.data import Sources, seed_of_repetition
from pffbench.experiment.plan import arrays_of, copies_of_file
from pffbench.mpi.agreement import AgreedStep
from pffbench.observe.allocator import PLACES, Allocator, TransferBuffer
from pffbench.observe.clock import PhaseClock
from pffbench.observe.process_counters import Meter
from pffbench.run.agenda import Due
from pffbench.run.context import RunContext
from pffbench.run.spec import repetition_directory
from pffbench.storage.filesystem import require_room
from pffbench.workloads.map_rules import in_stored_order
from pffbench.workloads.registry import workload
from pffbench.workloads.repetition import Place, Repetition, Request, Subject


class Preparation:
    """Prepares repetitions; every method is collective.

    Parameters
    ----------
    context : RunContext
        Context of the run.
    meter : Meter
        Counters in addition to the times.
    allocator : Allocator
        Keeps freed memory where libraries are to do equal work.
    """

    def __init__(self, context: RunContext, meter: Meter, allocator: Allocator) -> None:
        self._team = context.team
        self._spec = context.spec
        self._scratch = context.scratch
        self._watchdog = context.watchdog
        self._meter = meter
        self._allocator = allocator
        self._sources = Sources()
        self._inspected: set[str] = set()
        #: Buffer of the transfers, and the group and settings of the case that last used it.
        self._buffer = (("", ""), TransferBuffer())

    def repetition(self, due: Due) -> Repetition:
        """Return a repetition that is ready to run.

        Raises
        ------
        PhaseFailedError
            On every rank, when one of them failed.
        """
        case, number = due.case, due.number
        experiment, p = self._spec.plan.experiment, case.parameters
        buffer = self._buffer_for(case, number)  # it frees memory as for the case before
        self._allocator.prepare(p.settings, arrays_of(p, self._team.size).blocks)
        place = Place(
            team=self._team,
            scratch=self._scratch,
            directory=repetition_directory(case.id, number),
            clock=PhaseClock(self._team.comm, meter=self._meter, watchdog=self._watchdog),
            memory=int(experiment.memory),
            buffer=buffer,
        )
        subject = self._subject(case, number, place)
        request = Request(
            stage=self._spec.stage,
            reads=due.reads,
            warmup=number < experiment.warmup,
            inspect=case.id not in self._inspected,
            counts_rows=experiment.unsafe,
            unsafe=case.id in self._spec.plan.unsafe,
            drop_hook=self._spec.options.drop_hook,
        )
        self._inspected.add(case.id)
        return Repetition(place, subject, request)

    def _subject(self, case: Case, number: int, place: Place) -> Subject:
        """Load the library of a case, make its data source and the directory of the repetition."""
        p, team = case.parameters, self._team
        groups = p.groups(team.size)
        for shifted in (False, p.cache == "shifted"):
            if not groups.alone:
                team.of_file(groups, shifted=shifted)  # the first call is collective
        with AgreedStep(team.comm, f"import of {p.backend}") as step:
            backend = backend_class(p.backend)(case.options, p.settings)
            for library in backend.capabilities.libraries(p.codec, case.options):
                import_module(library)  # before anything is timed
            step.name = "data source"
            seed = seed_of_repetition(self._spec.plan.experiment.seed, number)
            source = self._sources.get(p.source, p.dtype, seed, p.file, p.variable)
            pattern = workload(p.workload)
            arrays = pattern.arrays(p, team.size)
            if p.source == "file":
                source = in_stored_order(source, arrays)
            types = {family.parameters.dtype or "" for family in arrays.families} - {"", p.dtype}
            by_type = {str(t): self._sources.get(p.source, t, seed, None, None) for t in types}
            step.name = "room for the file"
            self._require_room(case)
            step.name = "scratch"
            if place.keeps_directory and self._spec.stage != "read":
                self._scratch.make_directory(place.directory)
        return Subject(case, pattern, backend, source, arrays, by_type)

    def _require_room(self, case: Case) -> None:
        """Raise OSError if the library would not recover from a lack of room for a case's file.

        The file system, or the file size limit of this process, is too small for it then.
        """
        p = case.parameters
        deadlocks = p.shares_files and backend_class(p.backend).deadlocks_when_full
        if not deadlocks or self._spec.stage == "read":
            return
        space = self._spec.plan.costs[case.id].space
        asked = self._scratch.directory if self._team.is_root else None
        groups = p.groups(self._team.size)
        longest = space // copies_of_file(case, groups.ranks) * groups.largest // groups.ranks
        require_room(asked, space, longest)

    def _buffer_for(self, case: Case, number: int) -> TransferBuffer:
        """Return the buffer of the last repetition, if this one gets such memory for its bytes.

        It begins at a random place in a page.
        """
        buffer, use = self._buffer[1], (case.group, case.parameters.settings)
        if self._buffer[0] != use:
            buffer.leave()
            self._buffer = use, buffer
        seed = f"{self._spec.plan.experiment.seed}/{case.id}/{number}/{self._team.rank}"
        buffer.begin_at(random.Random(seed).randrange(PLACES))
        return buffer
