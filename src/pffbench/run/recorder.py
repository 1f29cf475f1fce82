"""The recorder on rank 0: raw files during the run, the verdict at its end."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from msgspec.structs import asdict

from pffbench.backends.hints import hint_facts, idle_hints, uncounted_writers
from pffbench.case import Case
from pffbench.errors import INTERRUPTED, NOT_VALID, VALID
from pffbench.mpi.agreement import Failure
from pffbench.mpi.topology import Topology
from pffbench.observe.clock import Clock, Floor
from pffbench.observe.machine import MemoryRates
from pffbench.phases import TOTALS, arrivals
from pffbench.record.gather import GatheredRepetition
from pffbench.record.progress import Progress
from pffbench.record.ranks import RanksFile, RecordedTimes
from pffbench.record.repetitions import (
    PhaseTimes,
    ReadState,
    Repetition,
    RepetitionsLog,
    read_repetitions,
)
from pffbench.record.run_json import CaseEntry, FailureEntry, FloorEntry, LeftOut, RunRecord
from pffbench.record.validity import clock_trouble, missing_repetitions, read_trouble
from pffbench.regular_files import SpareDescriptors
from pffbench.results.cells import not_in_force
from pffbench.results.names import gathered, names_apart
from pffbench.storage.page_cache import DROPPED_BELOW


def floor_entry(floors: Sequence[Floor], rates: MemoryRates | None = None) -> FloorEntry:
    """Return the floor for `run.json`: median and range of all measurements."""
    middle = Floor.median_of(floors)
    synced = [floor.synced for floor in floors]
    return FloorEntry(
        middle.own,
        middle.synced,
        middle.tick,
        (min(synced), max(synced)),
        len(floors),
        **({} if rates is None else rates.entry),
    )


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
        self._clock: Clock = "synced" if record.clock == "synced" else "own"
        self.warmup = warmup
        self.progress = progress
        self._log = RepetitionsLog(directory)
        hosts_name = "read_host" if record.stage == "read" else "host"
        self._ranks = RanksFile(str(Path(directory) / "ranks.h5"), topology.hosts, hosts_name)
        if self._ranks.damaged is not None:
            record.remarks.append(f"ranks.h5 was damaged and begun anew: {self._ranks.damaged}")
        self._floors = [floor]
        self._rates: MemoryRates | None = None
        self._totals: dict[str, dict[str, dict[int, float]]] = defaultdict(
            lambda: defaultdict(dict)
        )
        self._first_reads: dict[str, float] = {}
        for repetition in known:
            self._note_totals(repetition)
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
        reasons = self._reasons_against(gathered)
        times = RecordedTimes(
            gathered.phases,
            gathered.own,
            gathered.synced,
            gathered.nbytes,
            gathered.peak_memory,
        )
        self.append(self._repetition_of(gathered, valid=not reasons), times)
        self._note_facts(gathered, reasons)
        self.progress.repetition(gathered.case, gathered.number)

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
        self._note_totals(repetition)

    def _repetition_of(self, r: GatheredRepetition, valid: bool) -> Repetition:
        seconds = [self._job_seconds(r, i) for i in range(len(r.phases))]
        stage = self.run_record.stage
        return Repetition(
            case=r.case.id,
            round=r.number,
            position=r.position,
            started=r.started.isoformat(timespec="milliseconds"),
            phases=tuple(self._times_of(r, i, seconds[i]) for i in range(len(r.phases))),
            totals=self._totals_of(r, seconds),
            warmup=r.number < self.warmup,
            valid=valid,
            part=stage,
            peak_memory=int(r.peak_memory.max()),
            machine=r.machine,
            read=_read_state(r) if "read" in r.phases else None,
            disk=r.disk if "close" in r.phases else None,
            counts=r.counts,
        )

    def _times_of(self, r: GatheredRepetition, i: int, seconds: float) -> PhaseTimes:
        own = r.own[i]
        return PhaseTimes(
            phase=r.phases[i],
            seconds=_number(seconds),
            own_max=_number(float(r.job[i])),
            own_median=_number(float(np.median(own))),
            own_min=_number(float(own.min())),
            synced_max=_number(float(r.synced[i].max())),
            bytes=int(r.nbytes[i].sum()),
            operations=int(r.operations[i].sum()),
            slowest_rank=int(np.argmax(own)),
            cpu_seconds=float(r.cpu[i].sum()),
            minor_faults=int(r.faults[i].sum()),
            idlest_rank=int(np.argmin(r.cpu[i])),
            idle_seconds=float(np.median(r.cpu[i]) - r.cpu[i].min()),
        )

    def _totals_of(self, r: GatheredRepetition, seconds: Sequence[float]) -> dict[str, float]:
        """Return the seconds of each total (rule 1 of the method).

        A rank's own times are added up first: a sum of the slowest ranks of each phase would be
        that of a program which waits for all ranks between the calls. Where ranks share
        processors, own times are not those of the job, and the phases are added up.
        """
        found = {}
        for total, parts in TOTALS.items():
            there = [i for i, phase in enumerate(r.phases) if phase in parts]
            if there and self._clock == "own":
                found[total] = _number(float(r.own[there].sum(axis=0).max()))
            elif there:
                found[total] = _number(sum(seconds[i] for i in there))
        return found

    def _job_seconds(self, r: GatheredRepetition, i: int) -> float:
        """Return the time of the job in a phase, by the clock of the run (rule 1 of the method).

        If ranks share processors, their own times begin one after the other, so the job's time is
        the time until all have ended, less that of an empty phase. Otherwise it is the slowest
        rank's own time.
        """
        own = float(r.job[i])
        if self._clock == "own":
            return own
        floor = float(r.entries[i]) * self._floors[-1].synced
        return max(own, float(r.synced[i].max()) - floor)

    def _note_totals(self, repetition: Repetition) -> None:
        """Store the totals of a repetition, by which the run decides when to stop."""
        if repetition.read is not None and (reading := repetition.totals.get("read_total")):
            self._first_reads.setdefault(repetition.case, reading)
        if repetition.warmup:
            return
        for total, seconds in repetition.totals.items():
            self._totals[repetition.case][total][repetition.round] = seconds

    @property
    def cases(self) -> Mapping[str, CaseEntry]:
        """Entries of the cases in `run.json`."""
        return self.run_record.cases

    @property
    def resolution(self) -> float:
        """Resolution of the harness in seconds, by the median of the floors so far."""
        return Floor.median_of(self._floors).resolution(self._clock)

    def note_floor(self, floor: Floor) -> None:
        """Record the floor as measured after a round."""
        self._floors.append(floor)
        self.run_record.floor = floor_entry(self._floors, self._rates)

    def note_memory_rates(self, rates: MemoryRates) -> None:
        """Record the rates of memory of all ranks together."""
        self._rates = rates
        self.run_record.floor = floor_entry(self._floors, rates)

    def seconds(self, last: int) -> dict[str, dict[str, dict[int, float]]]:
        """Return, by case and total, the seconds of the repetitions that count, up to a round."""
        return {
            case: {
                total: {number: s for number, s in by_round.items() if number <= last}
                for total, by_round in by_total.items()
            }
            for case, by_total in self._totals.items()
        }

    def read_seconds(self, case: str) -> float | None:
        """Return the read time of the first repetition, including warm-up."""
        return self._first_reads.get(case)

    def _reasons_against(self, r: GatheredRepetition) -> list[str]:
        """Return the reasons why the repetition is invalid."""
        found = [*r.mismatches, *clock_trouble(r)]
        reasons = [f"{r.case.id} repetition {r.number}: {m}" for m in found]
        read = int(r.nbytes[arrivals(r.phases)].sum()) * r.reads
        if self.cases[r.case.id].verified and r.verified_bytes != read:
            reasons.append(
                f"{r.case.id} repetition {r.number}: {r.verified_bytes} of {read} bytes verified"
            )
        cache = r.cache
        if cache is not None and cache.wanted == "dropped" and cache.fraction >= DROPPED_BELOW:
            reasons.append(
                f"{r.case.id} repetition {r.number}: the cache was to be dropped, but "
                f"{cache.fraction:.1%} of the pages were resident before reading"
            )
        entry = self.cases[r.case.id]
        reasons += [f"{r.case.id} repetition {r.number}: {why}" for why in read_trouble(r, entry)]
        return reasons

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

    @property
    def exit_status(self) -> int:
        """Exit status of the run by its verdict."""
        if self.run_record.status == "interrupted":
            return INTERRUPTED
        return NOT_VALID if self.run_record.reasons else VALID


def _cache_state(r: GatheredRepetition) -> str:
    """Return the requested cache state if proved, else that it is unproved."""
    if r.cache is None:
        return ""
    return r.cache.wanted if r.cache.proved else "unproved"


def _facts_of(r: GatheredRepetition) -> dict[str, str]:
    """Return the facts of a case, with what became of its hints."""
    options, p, ranks = r.case.options, r.case.parameters, r.own.shape[1]
    more = idle_hints(options, p, ranks)
    if p.transfer == "collective":
        wrote = [c.total for c in r.counts if (c.phase, c.name) == ("write", "writing_ranks")]
        each, rest = divmod(int(sum(wrote)), p.groups(ranks).files)
        more += uncounted_writers(options, 0 if rest else each)
    return r.facts | hint_facts(r.hints, r.hints_of_reading, more)


def _read_state(r: GatheredRepetition) -> ReadState:
    fraction = math.nan if r.cache is None else r.cache.fraction
    return ReadState(
        cache=_cache_state(r),
        resident=None if math.isnan(fraction) else fraction,
        verified_bytes=r.verified_bytes,
        times=r.reads,
        device_bytes=None if math.isnan(r.device_bytes) else int(r.device_bytes),
        resident_after=r.resident_after,
        device_reads=r.own_device_reads,
        new_memory=r.new_memory,
    )


def _number(seconds: float) -> float:
    """Return seconds; -1 for what is no number, from a clock that failed."""
    return seconds if math.isfinite(seconds) else -1.0
