"""The recorder on rank 0: raw files during the run, the verdict at its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import asdict

from pffbench.backends.hints import hint_facts, idle_hints, uncounted_writers
from pffbench.case import Case
from pffbench.mpi.agreement import Failure
from pffbench.mpi.topology import Topology
from pffbench.observe.clock import Floor
from pffbench.observe.machine import MemoryRates
from pffbench.record.gather import GatheredRepetition
from pffbench.record.progress import Progress
from pffbench.record.ranks import RanksFile, RecordedTimes
from pffbench.record.reduction import reduce_repetition
from pffbench.record.repetitions import (
    Repetition,
    RepetitionsLog,
    read_repetitions,
)
from pffbench.record.run_json import CaseEntry, FailureEntry, LeftOut, RunRecord
from pffbench.record.validity import missing_repetitions, reasons_against
from pffbench.regular_files import SpareDescriptors
from pffbench.results.cells import not_in_force
from pffbench.results.names import gathered, names_apart
from pffbench.run.timings import Timings

#: Spare open files, closed when others are needed.
_SPARE = 16
#: Maximum number of listed reasons of one kind.
_MOST_REASONS = 20


class Recorder:
    """Writes the results directory, on rank 0.

    Parameters
    ----------
    directory : str
        The results directory; it exists.
    record : RunRecord
        Contents of `run.json`; the recorder keeps it up to date.
    topology : Topology
        Placement of the ranks.
    floor : Floor
        Overhead of the harness.
    warmup : int
        Number of warm-up repetitions, which do not count.
    progress : Progress
        Receives progress reports.
    known : sequence of Repetition
        Repetitions of a resumed run.
    """

    def __init__(
        self,
        directory: str,
        record: RunRecord,
        topology: Topology,
        floor: Floor,
        warmup: int,
        progress: Progress,
        known: Sequence[Repetition] = (),
    ) -> None:
        self.directory = directory
        self.run_record = record
        self._topology = topology
        self.warmup = warmup
        self.progress = progress
        self._log = RepetitionsLog(directory)
        hosts_name = "read_host" if record.stage == "read" else "host"
        cases = {*record.cases, *(one.case for one in record.left_out)}
        path = str(Path(directory) / "ranks.h5")
        self._ranks = RanksFile(path, topology.hosts, hosts_name, cases)
        if self._ranks.loss is not None:
            self.remark(self._ranks.loss)
        #: By which the run decides how it continues.
        self.timings = Timings(record.clock, floor, known)
        record.save(directory)
        #: Reserve for writing here if a case has opened all files allowed to the process.
        self.spare = SpareDescriptors(_SPARE)

    def check(self) -> None:
        """Check that the results directory is still the one of this run.

        Raises
        ------
        OSError
            It was removed, renamed or replaced, or another program has changed its records.
        """
        self._log.check()

    def save(self) -> None:
        """Replace `run.json`, unless the directory is another one by now."""
        self.check()
        self.run_record.save(self.directory)

    def record(self, gathered: GatheredRepetition) -> None:
        """Append a repetition to the raw files and sync them."""
        entry = self.cases[gathered.case.id]
        repetition = f"{gathered.case.id} repetition {gathered.number}"
        reasons = [f"{repetition}: {why}" for why in reasons_against(gathered, entry)]
        times = RecordedTimes(
            gathered.phases,
            gathered.own,
            gathered.synced,
            gathered.nbytes,
            gathered.peak_memory,
        )
        reduced = reduce_repetition(
            gathered,
            clock=self.timings.clock,
            empty_phase=self.timings.empty_phase,
            warmup=gathered.number < self.warmup,
            valid=not reasons,
            stage=self.run_record.stage,
        )
        self.append(reduced, times)
        self._note_facts(gathered, reasons)
        self.progress.repetition(gathered.case, gathered.number, gathered.once)

    def append(self, repetition: Repetition, times: RecordedTimes | None) -> None:
        """Append a repetition to the raw files and sync them.

        Parameters
        ----------
        repetition : Repetition
            The repetition, or the part of it that this job did.
        times : RecordedTimes or None
            Times of all ranks; None if they are not known.
        """
        self.check()
        if times is not None:
            self._ranks.append(repetition.case, repetition.round, *times)
        self._log.append(repetition)  # last: with its line the repetition counts as finished
        self.timings.note(repetition)

    def keep(self, repetitions: Iterable[Repetition]) -> None:
        """Keep only these repetitions of those that are recorded."""
        self._log.keep(repetitions)

    @property
    def cases(self) -> Mapping[str, CaseEntry]:
        """Entries of the cases in `run.json`."""
        return self.run_record.cases

    def note_floor(self, floor: Floor, rates: MemoryRates | None = None) -> None:
        """Record the floor as measured after a round, and the rates of memory of all ranks."""
        self.run_record.floor = self.timings.note_floor(floor, rates)

    def _note_facts(self, r: GatheredRepetition, reasons: list[str]) -> None:
        entry = self.cases[r.case.id]
        changed = bool(reasons)
        if reasons and not entry.invalid:
            entry.invalid = reasons[0]
        if r.stored_as is not None and entry.stored_as != r.stored_as:
            entry.stored_as = r.stored_as
            changed = True
        if r.disk is not None and entry.disk is None:
            entry.disk = r.disk
            changed = True
        # A job that only reads adds to what the one that wrote found.
        facts = {**entry.transfer_facts, **_facts_of(r)}
        if entry.transfer_facts != facts:
            entry.transfer_facts = facts
            changed = True
            if cause := facts.get("hdf5_no_collective_cause"):
                self.remark(f"{r.case.id}: HDF5 broke collective transfer: {cause}")
            if ignored := not_in_force(entry):
                self.remark(f"{r.case.id}: not in force: {ignored}")
        for text in r.remarks:
            if (told := f"{r.case.id}: {text}") not in self.run_record.remarks:
                self.remark(told)
                changed = True
        if len(self.run_record.reasons) < _MOST_REASONS:
            self.run_record.reasons += reasons
        if changed:
            self.save()
        for reason in reasons:
            self.progress.message(f"INVALID: {reason}")

    def fail(self, case: Case, repetition: int, failure: Failure) -> None:
        """Record that a case failed; it is not run again."""
        entry = self.cases[case.id]
        entry.failure = FailureEntry(**asdict(failure), repetition=repetition)
        if not entry.unsafe:
            self.run_record.reasons.append(f"{case.id} repetition {repetition}: {failure}")
        self.save()
        self.progress.message(f"FAILED: {case.id}: {failure}")

    def stopping(self) -> None:
        """Record once that the run was asked to end, in case it is killed first."""
        if self.run_record.status == "running":
            self.run_record.status = "interrupted"
            with suppress(OSError):  # the next repetition reports it
                self.save()

    def remark(self, text: str) -> None:
        """Record a remark about the run that does not make it invalid."""
        self.run_record.remarks.append(text)
        self.progress.message(text)

    def leave_out(self, cases: Sequence[str], why: str) -> None:
        """Record which cases the time does not hold, with the reason; the answer names them."""
        record = self.run_record
        names = names_apart(record.cases, cases)
        planned = len(record.cases)
        for case in cases:
            del record.cases[case]
            record.left_out.append(LeftOut(case, why, "time", names[case]))
        self.save()
        told = gathered(names.values())
        self.progress.message(f"{len(cases)} of {planned} cases left out, {told}: {why}")

    def need_time(self, seconds: float) -> None:
        """Record the seconds that would hold the rounds which all cases need."""
        self.run_record.time_needed = max(self.run_record.time_needed, seconds)
        self.save()

    def stop(self, cases: Sequence[str], repetitions: int, why: str) -> None:
        """Record that cases have enough repetitions."""
        for case in cases:
            self.cases[case].stopped_after = repetitions
        if why not in self.run_record.stops:
            self.run_record.stops.append(why)
        self.save()

    def finish(self, complete: bool) -> None:
        """Determine and record the verdict."""
        self.check()
        record = self.run_record
        record.status = "interrupted"
        if complete:
            record.status = "written" if record.stage == "write" else "finished"
            repetitions = read_repetitions(self.directory)
            missing = list(missing_repetitions(record, repetitions, self.warmup))
            record.reasons += missing[:_MOST_REASONS]
        record.valid = not record.reasons and not record.unsafe
        if record.status == "written" and not record.reasons:
            record.valid = None  # nothing has been read and verified yet
        record.finished = datetime.now(UTC).isoformat(timespec="seconds")
        self.save()


def _facts_of(r: GatheredRepetition) -> dict[str, str]:
    """Return the facts of a case, with what became of its hints."""
    options, p, ranks = r.case.options, r.case.parameters, r.own.shape[1]
    more = idle_hints(options, p, ranks)
    if p.transfer == "collective":
        wrote = [c.total for c in r.counts if (c.phase, c.name) == ("write", "writing_ranks")]
        each, rest = divmod(int(sum(wrote)), p.groups(ranks).files)
        more += uncounted_writers(options, 0 if rest else each)
    return r.facts | hint_facts(r.hints, r.hints_of_reading, more)
