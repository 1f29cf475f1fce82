"""The recorder on rank 0: raw files during the run, the verdict at its end."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import asdict

from pffbench.backends.hints import beside_count, beside_plan, without_effect
from pffbench.case import Case
from pffbench.errors import INTERRUPTED, NOT_VALID, VALID
from pffbench.parallel.agreement import Failure
from pffbench.parallel.clock import Clock, Floor
from pffbench.parallel.machine import MemoryRates
from pffbench.parallel.topology import Topology
from pffbench.phases import READ_PHASES, arrivals, totals_of
from pffbench.record.counters import append_counts
from pffbench.record.gather import Count, GatheredRepetition
from pffbench.record.progress import Progress
from pffbench.record.ranks import RanksFile, RecordedTimes
from pffbench.record.run_json import RunRecord
from pffbench.record.samples import Sample, SamplesLog, read_samples
from pffbench.record.validity import clock_trouble, missing_repetitions, read_trouble
from pffbench.regular_files import SpareDescriptors
from pffbench.storage.page_cache import DROPPED_BELOW
from pffbench.summary.headline import TotalTimes
from pffbench.summary.labels import ignored_of
from pffbench.workloads.registry import workload


def floor_entry(floors: Sequence[Floor]) -> dict[str, Any]:
    """Return the floor for `run.json`: median and range of all measurements."""
    middle = Floor.median_of(floors)
    synced = [floor.synced for floor in floors]
    return {
        "own": middle.own,
        "synced": middle.synced,
        "tick": middle.tick,
        "synced_range": [min(synced), max(synced)],
        "measured": len(floors),
    }


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
    known : sequence of Sample
        Rows of a resumed run.
    """

    def __init__(
        self,
        directory: str,
        record: RunRecord,
        topology: Topology,
        floor: Floor,
        warmup: int,
        progress: Progress,
        known: Sequence[Sample] = (),
    ) -> None:
        self.directory = directory
        self.run_record = record
        self._topology = topology
        self._clock: Clock = "synced" if record.clock == "synced" else "own"
        self.warmup = warmup
        self.progress = progress
        self._samples = SamplesLog(str(Path(directory) / "samples.csv"))
        hosts_name = "read_host" if record.stage == "read" else "host"
        self._ranks = RanksFile(str(Path(directory) / "ranks.h5"), topology.hosts, hosts_name)
        if self._ranks.damaged is not None:
            record.remarks.append(f"ranks.h5 was damaged and begun anew: {self._ranks.damaged}")
        self._floors = [floor]
        self._totals: dict[str, dict[str, dict[int, float]]] = defaultdict(
            lambda: defaultdict(dict)
        )
        self._first_reads: dict[str, float] = {}
        for rows in _by_repetition(known).values():
            self._note_totals(rows)
        record.save(directory)
        #: Reserve for writing here if a case has opened all files allowed to the process.
        self.spare = SpareDescriptors(_SPARE)

    def record(self, repetition: GatheredRepetition) -> None:
        """Append a repetition to the raw files and sync them."""
        reasons = self._reasons_against(repetition)
        times = RecordedTimes(
            repetition.phases,
            repetition.own,
            repetition.synced,
            repetition.nbytes,
            repetition.peak_memory,
        )
        self.append(self._samples_of(repetition, valid=not reasons), times, repetition.counts)
        self._note_facts(repetition, reasons)
        self.progress.repetition(repetition.case, repetition.number)

    def append(
        self, samples: Sequence[Sample], times: RecordedTimes | None, counts: Sequence[Count]
    ) -> None:
        """Append a repetition to the raw files and sync them.

        Parameters
        ----------
        samples : sequence of Sample
            Its rows.
        times : RecordedTimes or None
            Times of all ranks; None where they are not known.
        counts : sequence of Count
            Its counters.
        """
        first = samples[0]
        if times is not None:
            self._ranks.append(first.case, first.repetition, *times)
        if counts:
            append_counts(self.directory, first.case, first.repetition, first.warmup, counts)
        self._samples.append(samples)  # last: with its rows the repetition counts as finished
        self._note_totals(samples)

    def _samples_of(self, r: GatheredRepetition, valid: bool) -> list[Sample]:
        p = r.case.parameters
        ranks = self._topology.size
        arrays = workload(p.workload).volume(p, ranks).arrays
        common: dict[str, Any] = {
            "case": r.case.id,
            "repetition": r.number,
            "warmup": r.number < self.warmup,
            "position": r.position,
            "backend": p.backend,
            "workload": p.workload,
            "layout": p.layout,
            "transfer": p.transfer,
            "settings": p.settings,
            "group": r.case.group,
            "environment": r.case.environment,
            "ranks": ranks,
            "nodes": self._topology.node_count,
            "arrays": arrays,
            "peak_memory": int(r.peak_memory.max()),
            **asdict(r.machine),
            "valid": valid,
            "started": r.started.isoformat(timespec="milliseconds"),
        }
        return [self._sample(r, i, phase, common) for i, phase in enumerate(r.phases)]

    def _sample(self, r: GatheredRepetition, i: int, phase: str, common: dict[str, Any]) -> Sample:
        own = r.own[i]
        slowest = int(np.argmax(own))
        reads = phase == "read"
        disk = r.disk if phase == "close" else None
        seconds = self._job_seconds(r, i)
        return Sample(
            **common,
            phase=phase,
            operations=int(r.operations[i].sum()),
            bytes=int(r.nbytes[i].sum()),
            own_max=float(r.job[i]),
            own_median=float(np.median(own)),
            own_min=float(own.min()),
            synced_max=float(r.synced[i].max()),
            slowest_rank=slowest,
            slowest_host=self._topology.hosts[slowest],
            below_resolution=bool(seconds < self.resolution),
            cache=_cache_state(r) if reads else "",
            resident=_finite(r.cache.fraction) if reads and r.cache is not None else None,
            verified_bytes=r.verified_bytes if reads else None,
            disk_bytes=None if disk is None else disk.stored,
            disk_files=None if disk is None else disk.files,
            seconds=seconds,
            reads=r.reads if phase in READ_PHASES else 1,
            cpu_seconds=float(r.cpu[i].sum()),
            minor_faults=int(r.faults[i].sum()),
            idlest_rank=int(np.argmin(r.cpu[i])),
            idle_seconds=float(np.median(r.cpu[i]) - r.cpu[i].min()),
            device_bytes=_whole(r.device_bytes) if reads else None,
            resident_after=r.resident_after if reads else None,
            disk_inodes=None if disk is None else disk.inodes,
            new_memory=r.new_memory if reads else None,
        )

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

    def _note_totals(self, samples: Sequence[Sample]) -> None:
        """Store the sums of phases of a repetition, by which the run decides when to stop."""
        first = samples[0]
        if any(sample.phase == "read" for sample in samples):
            reading = sum(s.seconds for s in samples if s.phase in READ_PHASES)
            self._first_reads.setdefault(first.case, reading)
        if first.warmup:
            return
        for total, seconds in totals_of(
            {s.phase: {s.repetition: s.seconds} for s in samples}
        ).items():
            self._totals[total][first.case] |= seconds

    @property
    def cases(self) -> Mapping[str, Mapping[str, Any]]:
        """Entries of the cases in `run.json`."""
        return self.run_record.cases

    @property
    def resolution(self) -> float:
        """Resolution of the harness in seconds, by the median of the floors so far."""
        return Floor.median_of(self._floors).resolution(self._clock)

    def note_floor(self, floor: Floor) -> None:
        """Record the floor as measured after a block."""
        self._floors.append(floor)
        self.run_record.floor |= floor_entry(self._floors)

    def note_memory_rates(self, rates: MemoryRates) -> None:
        """Record the rates of memory of all ranks together."""
        self.run_record.floor |= rates.entry

    def totals(self, last: int) -> TotalTimes:
        """Return seconds of the repetitions that count, up to a block."""
        return {
            total: {
                case: {block: s for block, s in by_block.items() if block <= last}
                for case, by_block in by_case.items()
            }
            for total, by_case in self._totals.items()
        }

    def read_seconds(self, case: str) -> float | None:
        """Return the read time of the first repetition, including warm-up."""
        return self._first_reads.get(case)

    def _reasons_against(self, r: GatheredRepetition) -> list[str]:
        """Return the reasons why the repetition is invalid."""
        found = [*r.mismatches, *clock_trouble(r)]
        reasons = [f"{r.case.id} repetition {r.number}: {m}" for m in found]
        read = int(r.nbytes[arrivals(r.phases)].sum()) * r.reads
        keeps_data = self.run_record.cases[r.case.id]["verified"]
        if keeps_data and r.verified_bytes != read:
            reasons.append(
                f"{r.case.id} repetition {r.number}: {r.verified_bytes} of {read} bytes verified"
            )
        cache = r.cache
        if cache is not None and cache.wanted == "dropped" and cache.fraction >= DROPPED_BELOW:
            reasons.append(
                f"{r.case.id} repetition {r.number}: the cache was to be dropped, but "
                f"{cache.fraction:.1%} of the pages were resident before reading"
            )
        entry = self.run_record.cases[r.case.id]
        reasons += [f"{r.case.id} repetition {r.number}: {why}" for why in read_trouble(r, entry)]
        return reasons

    def _note_facts(self, r: GatheredRepetition, reasons: list[str]) -> None:
        entry = self.run_record.cases[r.case.id]
        changed = bool(reasons)
        if reasons:
            entry.setdefault("invalid", reasons[0])
        if r.stored_as is not None:
            entry["stored_as"] = asdict(r.stored_as)
            changed = True
        if r.disk is not None and "disk" not in entry:
            entry["disk"] = r.disk._asdict()
            changed = True
        # A job that only reads adds to what the one that wrote found.
        facts = {**entry.get("transfer_facts", {}), **_facts_of(r)}
        if facts and entry.get("transfer_facts") != facts:
            entry["transfer_facts"] = facts
            changed = True
            if cause := facts.get("hdf5_no_collective_cause"):
                self.remark(f"{r.case.id}: HDF5 broke collective transfer: {cause}")
            if ignored := ignored_of(entry):
                self.remark(f"{r.case.id}: not in force: {ignored}")
        for text in r.remarks:
            if (told := f"{r.case.id}: {text}") not in self.run_record.remarks:
                self.remark(told)
                changed = True
        if len(self.run_record.reasons) < _MOST_REASONS:
            self.run_record.reasons += reasons
        if changed:
            self.run_record.save(self.directory)
        for reason in reasons:
            self.progress.message(f"INVALID: {reason}")

    def fail(self, case: Case, repetition: int, failure: Failure) -> None:
        """Record that a case failed; it is not run again."""
        self.run_record.cases[case.id]["failure"] = {"repetition": repetition, **asdict(failure)}
        self.run_record.reasons.append(f"{case.id} repetition {repetition}: {failure}")
        self.run_record.save(self.directory)
        self.progress.message(f"FAILED: {case.id}: {failure}")

    def stopping(self) -> None:
        """Record once that the run was asked to end, in case it is killed first."""
        if self.run_record.status == "running":
            self.run_record.status = "interrupted"
            with suppress(OSError):  # the next repetition reports it
                self.run_record.save(self.directory)

    def remark(self, text: str) -> None:
        """Record a remark about the run that does not make it invalid."""
        self.run_record.remarks.append(text)
        self.progress.message(text)

    def leave_out(self, cases: Sequence[str], why: str, limit: str) -> None:
        """Record which cases the time does not hold, with a reason and a line for the verdict."""
        for case in cases:
            del self.run_record.cases[case]
            self.run_record.left_out.append({"case": case, "reason": why, "limit": "time"})
        self.limit(limit)

    def limit(self, text: str) -> None:
        """Record a sentence for the verdict: what the run cannot show, and a way to show it."""
        self.run_record.limits.append(text)
        self.run_record.save(self.directory)
        self.progress.message(text)

    def stop(self, cases: Sequence[str], repetitions: int, why: str) -> None:
        """Record that cases have enough repetitions."""
        for case in cases:
            self.run_record.cases[case]["stopped_after"] = repetitions
        if why not in self.run_record.stops:
            self.run_record.stops.append(why)
        self.run_record.save(self.directory)
        plural = "s" if len(cases) > 1 else ""
        often = f"{repetitions} repetition{'s' if repetitions > 1 else ''}"
        self.progress.message(f"{len(cases)} case{plural} stopped after {often}: {why}")

    def finish(self, complete: bool) -> None:
        """Determine and record the verdict."""
        record = self.run_record
        record.status = "interrupted"
        if complete:
            record.status = "written" if record.stage == "write" else "finished"
            samples = read_samples(Path(self.directory) / "samples.csv")
            missing = list(missing_repetitions(record, samples, self.warmup))
            record.reasons += missing[:_MOST_REASONS]
        record.valid = not record.reasons
        if record.status == "written" and record.valid:
            record.valid = None  # nothing has been read and verified yet
        record.finished = datetime.now(UTC).isoformat(timespec="seconds")
        record.save(self.directory)

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
    """Return the facts of a case, with what the count of ranks that wrote says of its hints."""
    hints = getattr(r.case.options, "hints", None)
    if not hints:
        return r.facts
    idle = without_effect(r.case.options, r.case.parameters, r.own.shape[1])
    facts = beside_plan(r.facts, idle)
    if r.case.parameters.transfer != "collective":
        return facts
    counted = [c.total for c in r.counts if (c.phase, c.what) == ("write", "writing_ranks")]
    files = r.case.parameters.groups(r.own.shape[1]).files
    each, rest = divmod(int(sum(counted)), files)
    return beside_count(facts, hints, 0 if rest else each)


def _by_repetition(samples: Sequence[Sample]) -> dict[tuple[str, int], list[Sample]]:
    found: dict[tuple[str, int], list[Sample]] = defaultdict(list)
    for sample in samples:
        found[sample.case, sample.repetition].append(sample)
    return dict(found)


def _whole(value: float) -> int | None:
    return None if math.isnan(value) else int(value)


def _finite(value: float) -> float | None:
    return None if math.isnan(value) else value
