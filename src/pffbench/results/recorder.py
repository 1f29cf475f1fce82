"""What rank 0 keeps of a run: the raw files as it goes on, the verdict at its end."""

from __future__ import annotations

import math
from collections import defaultdict
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from pffbench.case import Case
from pffbench.parallel.agreement import Failure
from pffbench.parallel.clock import Floor
from pffbench.parallel.topology import Topology
from pffbench.results.counters import append_counts
from pffbench.results.gather import Repetition
from pffbench.results.guards import clock_trouble, missing_repetitions
from pffbench.results.progress import Progress
from pffbench.results.ranks import RanksFile
from pffbench.results.record import RunRecord
from pffbench.results.samples import Sample, SamplesLog, read_samples
from pffbench.results.statistics import spread
from pffbench.storage.cachestate import DROPPED_BELOW
from pffbench.storage.regular_files import SpareDescriptors
from pffbench.workloads.registry import workload

#: Files that are kept open for nothing, to be closed where others are needed.
_SPARE = 16
#: Most reasons of one kind that are listed.
_MOST_REASONS = 20


class Recorder:
    """Writes the results directory, on rank 0.

    Parameters
    ----------
    directory : str
        The results directory; it exists.
    record : RunRecord
        What `run.json` says; the recorder keeps it up to date.
    topology : Topology
        Who runs where.
    floor : Floor
        What the harness itself costs.
    warmup : int
        Repetitions that do not count.
    progress : Progress
        Where to tell how far the run is.
    """

    def __init__(
        self,
        directory: str,
        record: RunRecord,
        topology: Topology,
        floor: Floor,
        warmup: int,
        progress: Progress,
    ) -> None:
        self.directory = directory
        self.run_record = record
        self._topology = topology
        self._floor = floor
        self._warmup = warmup
        self._progress = progress
        self._samples = SamplesLog(str(Path(directory) / "samples.csv"))
        hosts_name = "read_host" if record.stage == "read" else "host"
        self._ranks = RanksFile(str(Path(directory) / "ranks.h5"), topology.hosts, hosts_name)
        if self._ranks.damaged is not None:
            record.remarks.append(f"ranks.h5 was damaged and begun anew: {self._ranks.damaged}")
        self._seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
        record.save(directory)
        #: What writing here takes, should a case have opened all files that the process may have.
        self.spare = SpareDescriptors(_SPARE)

    def record(self, repetition: Repetition) -> None:
        """Append a repetition to the raw files and put them on the device."""
        reasons = self._reasons_against(repetition)
        samples = list(self._samples_of(repetition, valid=not reasons))
        self._ranks.append(
            repetition.case.id,
            repetition.number,
            repetition.phases,
            repetition.own,
            repetition.synced,
            repetition.nbytes,
            repetition.peak_memory,
        )
        if repetition.counts:
            append_counts(
                self.directory,
                repetition.case.id,
                repetition.number,
                repetition.number < self._warmup,
                repetition.counts,
            )
        self._samples.append(samples)  # last: with its rows the repetition counts as finished
        if repetition.number >= self._warmup:
            for sample in samples:
                self._seconds[sample.case, sample.phase].append(sample.own_max)
        self._note_facts(repetition, reasons)
        self._progress.repetition(repetition.case, repetition.number)

    def _samples_of(self, r: Repetition, valid: bool) -> list[Sample]:
        p = r.case.parameters
        ranks = self._topology.size
        arrays = workload(p.workload).volume(p, ranks).arrays
        common: dict[str, Any] = {
            "case": r.case.id,
            "repetition": r.number,
            "warmup": r.number < self._warmup,
            "position": r.position,
            "backend": p.backend,
            "workload": p.workload,
            "layout": p.layout,
            "transfer": p.transfer,
            "settings": p.settings,
            "group": r.case.group,
            "ranks": ranks,
            "nodes": self._topology.node_count,
            "arrays": arrays,
            "peak_memory": int(r.peak_memory.max()),
            "valid": valid,
            "started": r.started.isoformat(timespec="milliseconds"),
        }
        return [self._sample(r, i, phase, common) for i, phase in enumerate(r.phases)]

    def _sample(self, r: Repetition, i: int, phase: str, common: dict[str, Any]) -> Sample:
        own = r.own[i]
        slowest = int(np.argmax(own))
        reads = phase == "read"
        closed = phase == "close"
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
            below_resolution=bool(r.job[i] < self._floor.resolution),
            cache=_cache_state(r) if reads else "",
            resident=_finite(r.cache.fraction) if reads and r.cache is not None else None,
            verified_bytes=r.verified_bytes if reads else None,
            disk_bytes=r.disk.stored if closed and r.disk is not None else None,
            disk_files=r.disk.files if closed and r.disk is not None else None,
        )

    def _reasons_against(self, r: Repetition) -> list[str]:
        """Say what makes the repetition invalid."""
        found = [*r.mismatches, *clock_trouble(r)]
        reasons = [f"{r.case.id} repetition {r.number}: {m}" for m in found]
        reads = [i for i, phase in enumerate(r.phases) if phase.partition("_")[0] == "read"]
        read = int(r.nbytes[reads].sum())
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
        return reasons

    def _note_facts(self, r: Repetition, reasons: list[str]) -> None:
        entry = self.run_record.cases[r.case.id]
        changed = bool(reasons)
        if r.stored_as is not None:
            entry["stored_as"] = asdict(r.stored_as)
            changed = True
        if r.disk is not None and "disk" not in entry:
            entry["disk"] = r.disk._asdict()
            changed = True
        if r.facts and entry.get("transfer_facts") != r.facts:
            entry["transfer_facts"] = r.facts
            changed = True
            if cause := r.facts.get("hdf5_no_collective_cause"):
                self.remark(f"{r.case.id}: HDF5 broke collective transfer: {cause}")
        for text in r.remarks:
            if (told := f"{r.case.id}: {text}") not in self.run_record.remarks:
                self.remark(told)
                changed = True
        if len(self.run_record.reasons) < _MOST_REASONS:
            self.run_record.reasons += reasons
        if changed:
            self.run_record.save(self.directory)
        for reason in reasons:
            self._progress.message(f"INVALID: {reason}")

    def fail(self, case: Case, repetition: int, failure: Failure) -> None:
        """Note that a case failed; it is not run again."""
        self.run_record.cases[case.id]["failure"] = {"repetition": repetition, **asdict(failure)}
        self.run_record.reasons.append(f"{case.id} repetition {repetition}: {failure}")
        self.run_record.save(self.directory)
        self._progress.message(f"FAILED: {case.id}: {failure}")

    def stopping(self) -> None:
        """Note once that the run has been asked to end, in case that it does not come so far."""
        if self.run_record.status == "running":
            self.run_record.status = "interrupted"
            with suppress(OSError):  # the next repetition says so
                self.run_record.save(self.directory)

    def remark(self, text: str) -> None:
        """Note something about the run that does not make it invalid."""
        self.run_record.remarks.append(text)
        self._progress.message(text)

    def stopped_after(self, repetitions: int, why: str) -> None:
        """Note that a rule of the experiment stopped the run before all repetitions."""
        record = self.run_record
        record.stopped_after = repetitions
        asked = record.experiment["repetitions"]
        self.remark(f"stopped after {repetitions} of {asked} repetitions: {why}")

    def widest_interval(self) -> float:
        """Return the widest interval of a median as a part of it, over cases and phases.

        Phases below resolution are left out: their spread is the harness's.
        """
        widest = 0.0
        for seconds in self._seconds.values():
            found = spread(seconds)
            if found.median >= self._floor.resolution:
                widest = max(widest, found.relative_interval)
        return widest

    def finish(self, complete: bool) -> None:
        """Give the verdict and write it down."""
        record = self.run_record
        record.status = "interrupted"
        if complete:
            record.status = "written" if record.stage == "write" else "finished"
            samples = read_samples(Path(self.directory) / "samples.csv")
            missing = list(missing_repetitions(record, samples, self._warmup))
            record.reasons += missing[:_MOST_REASONS]
        record.valid = not record.reasons
        if record.status == "written" and record.valid:
            record.valid = None  # nothing has been read and verified yet
        record.finished = datetime.now(UTC).isoformat(timespec="seconds")
        record.save(self.directory)


def _cache_state(r: Repetition) -> str:
    """Return the state asked for when it is proved, else that it is not."""
    if r.cache is None:
        return ""
    return r.cache.wanted if r.cache.proved else "unproved"


def _finite(value: float) -> float | None:
    return None if math.isnan(value) else value
