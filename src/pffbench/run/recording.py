"""The results directory and the record of a run, new or resumed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from pffbench.backends.registry import backend_class
from pffbench.case import Case, Stage
from pffbench.errors import UserError
from pffbench.experiment.load import to_plain
from pffbench.experiment.plan import Plan
from pffbench.mpi.topology import Topology
from pffbench.observe.clock import Floor
from pffbench.provenance.binding import job_clock, shared_quota
from pffbench.provenance.inputs import changed_inputs
from pffbench.record.lock import RunLock
from pffbench.record.progress import Progress
from pffbench.record.repetitions import FILE, claim, cut_torn, keep, read_repetitions
from pffbench.record.run_json import (
    CaseEntry,
    LeftOut,
    Reading,
    RunRecord,
    Startup,
    TopologyEntry,
    digest_of,
)
from pffbench.run.options import RunOptions
from pffbench.run.recorder import Recorder
from pffbench.run.resume import moved, whole_rounds
from pffbench.run.spec import RunSpec
from pffbench.run.timings import floor_entry
from pffbench.storage.filesystem import FileSystem, filesystem, same_filesystem
from pffbench.workloads.registry import workload

_TOGETHER = "results are written to the file system under test, off the timer"
_PROGRAMS = ("python", "pffbench")
#: Facts about the location of a library, not its version or build.
_PLACES = frozenset({"imported", "path", "error", "spack_hash", "blosc_threads"})


def new_record(
    spec: RunSpec,
    scratch: str,
    topology: Topology,
    floor: Floor,
    startup: Startup,
    provenance: dict[str, Any] | None,
) -> RunRecord:
    """Create the record of a new run; `enter_options` adds what its options say."""
    plan, experiment = spec.plan, spec.plan.experiment
    plain = to_plain(experiment)
    there = filesystem(scratch)
    facts = (provenance or {}).get("ranks", [])
    return RunRecord(
        run_id=spec.run_id,
        name=experiment.name,
        question=experiment.question,
        command=sys.orig_argv,
        ranks=plan.ranks,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        experiment=plain,
        experiment_digest=digest_of(plain),
        experiment_file=spec.experiment_file,
        cases={case.id: case_entry(case, plan, there) for case in plan.cases},
        left_out=[LeftOut(name, reason) for name, reason in plan.left_out],
        limits=[*plan.limits, *_shared_quotas(topology, facts)],
        scratch=scratch,
        topology=TopologyEntry(
            list(topology.hosts),
            list(topology.nodes),
            list(topology.ranks_per_node),
            list(topology.partners),
        ),
        floor=floor_entry([floor]),
        clock=job_clock(topology.nodes, facts),
        startup=startup,
        provenance=provenance or {},
    )


def _shared_quotas(topology: Topology, facts: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Yield the nodes whose ranks have less than a processor each by a quota."""
    for node in dict.fromkeys(topology.nodes):
        placed = zip(topology.nodes, facts, strict=False)
        if text := shared_quota([fact for place, fact in placed if place == node]):
            yield text if topology.node_count == 1 else f"node {node}: {text}"


def case_entry(case: Case, plan: Plan, there: FileSystem) -> CaseEntry:
    """Return the entry of a case in `run.json` when the run begins."""
    kind = backend_class(case.parameters.backend)
    own = {"environment": case.environment} if case.environment else {}
    several = bool(case.environment) and len(plan.experiment.environments) > 1
    parameters = msgspec.to_builtins(case.parameters.as_asked)
    return CaseEntry(
        parameters={"workload": case.parameters.workload, **parameters, **own},
        options=msgspec.to_builtins(case.options, enc_hook=int),
        group=case.group,
        roofline=case.roofline,
        raw=kind.capabilities.raw,
        verified=not kind.capabilities.discards,
        notes=[*_notes(case), *case.parameters.notes],
        cost=plan.costs[case.id],
        counts_reads=_counts_reads(case, there),
        # File systems without a block device of their own have the major number 0; their
        # fetches are counted for no process.
        counts_device=os.major(Path(there.path).stat().st_dev) != 0,
        unsafe=plan.unsafe.get(case.id, ""),
        # What several environments of a run have in common.
        same_case=case.id.partition("@")[0] if several else "",
    )


def _notes(case: Case) -> tuple[str, ...]:
    """Return the notes of a backend; none if its library is broken, with which the case fails."""
    with suppress(Exception):
        return backend_class(case.parameters.backend)(case.options, case.parameters.settings).notes
    return ()


def _counts_reads(case: Case, there: FileSystem) -> bool:
    """Return whether the kernel delivers each byte of a read once, and counts it.

    A file system in user space may be read past the kernel.
    """
    p = case.parameters
    kind = backend_class(p.backend)
    counted = not (kind.capabilities.discards or kind.capabilities.reads_by_mmap)
    return counted and workload(p.workload).reads_once and there.kernel_type != "fuse"


def open_recorder(
    spec: RunSpec,
    record: RunRecord,
    topology: Topology,
    floor: Floor,
    progress: Progress,
    lock: RunLock,
) -> Recorder:
    """Create the recorder of a run, on rank 0.

    Parameters
    ----------
    spec : RunSpec
        Specification of the run.
    record : RunRecord
        Record of a new run; for a resumed run, that of this start.
    topology, floor, progress
        Passed to the recorder.
    lock : RunLock
        Acquired on the results directory; a resumed run holds it already.

    Raises
    ------
    UserError
        The directory cannot be created, locked or written, another run has begun there, or the
        software has changed. A new run leaves nothing behind.
    """
    out, warmup = Path(spec.out), spec.plan.experiment.warmup
    if spec.goes_on:
        record = _gone_on_with(spec, record, progress)
        with writing_results(out):
            known = read_repetitions(out) if (out / FILE).exists() else []
            return Recorder(spec.out, record, topology, floor, warmup, progress, known)
    if spec.plan.experiment.node_local:
        types = sorted({str(host["scratch"]["type"]) for host in record.provenance["hosts"]})
        told = f"each node had files of its own, on {', '.join(types)} (node_local)"
        record.remarks.append(told)
    begin_results(out, lock, record, spec.options, spec.scratch_parent)
    record.remarks += spec.plan.remarks
    with writing_results(out, lock):
        return Recorder(spec.out, record, topology, floor, warmup, progress)


@contextmanager
def writing_results(out: Path, begun: RunLock | None = None) -> Iterator[None]:
    """Report that results cannot be written; of a new run, whose lock is given, nothing stays.

    Raises
    ------
    UserError
        In place of an OSError.
    """
    try:
        yield
    except Exception as error:
        if begun is not None:
            undo_results(out, begun)
        if not isinstance(error, OSError):
            raise
        raise UserError(f"{out}: cannot be written to: {error.strerror or error}") from None


def begin_results(
    out: Path, lock: RunLock, record: RunRecord, options: RunOptions, scratch_parent: str
) -> None:
    """Create the directory of a new run, acquire it, and complete the record by the options.

    Runs of one environment and of several begin here.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock.take(out, f"--out {out}")
        claim(str(out))
    except FileExistsError:
        raise UserError(f"--out {out}: another run has just begun there; name a new one") from None
    except OSError as error:
        raise UserError(f"--out {out}: cannot be made: {error.strerror}") from None
    if same_filesystem(str(out), scratch_parent):
        record.remarks.append(_TOGETHER)
    enter_options(record, options)


def enter_options(record: RunRecord, options: RunOptions) -> None:
    """Enter into the record of a new run what its options say; of a resumed run `go_on` does."""
    record.accept_busy = options.accept_busy
    _enter_stage(record, options.stage or "all", record.topology.hosts)


def _enter_stage(record: RunRecord, stage: Stage, hosts: Iterable[str]) -> None:
    """Enter the stage that this job does, and the hosts that write."""
    record.stage = stage
    if stage == "write":
        record.wrote_on = sorted({*record.wrote_on, *hosts})


def undo_results(out: Path, lock: RunLock) -> None:
    """Remove the files of a run that could not begin."""
    for name in (FILE, "ranks.h5", "run.json.new", "run.json"):
        with suppress(OSError):
            (out / name).unlink(missing_ok=True)
    lock.release()
    with suppress(OSError):
        out.rmdir()


def _gone_on_with(spec: RunSpec, now: RunRecord, progress: Progress) -> RunRecord:
    """Return the record of a resumed run, with the facts of this start."""
    out = Path(spec.out)
    before = RunRecord.load(out)
    differences = [
        *changed_software(before, now),
        *changed_inputs(before.provenance, now.provenance),
    ]
    if differences:
        raise UserError(f"--resume {spec.out}: not the same run: {'; '.join(differences)}")
    elsewhere = None if spec.stage == "read" else moved(before, now.topology.hosts)
    for text in go_on(before, now, elsewhere, spec.options):
        progress.message(text)
    _enter_stage(before, spec.stage, now.topology.hosts)
    if spec.stage == "read":
        names = ("started", "floor", "startup", "topology", "provenance")
        before.reading = Reading(**{name: getattr(now, name) for name in names})
    cut_torn(out)
    if elsewhere is not None and spec.stage == "all":
        keep(out, whole_rounds(before, read_repetitions(out)))
    return before


def go_on(
    before: RunRecord, now: RunRecord, elsewhere: str | None, options: RunOptions
) -> list[str]:
    """Update the record of a resumed run for this start; return messages for the user.

    Runs of one environment and of several go on here.

    Parameters
    ----------
    before : RunRecord
        The record, which is changed.
    now : RunRecord
        Record of this start.
    elsewhere : str or None
        That it runs on other hosts than before, in words, where it does and may.
    options : RunOptions
        The options of this start.
    """
    said = []
    if elsewhere is not None:
        before.limits.append(elsewhere)
        before.topology = now.topology
        said.append(elsewhere)
    if other := other_commit(before, now):
        before.remarks.append(other)
    before.resumed.append(now.started)
    before.startup.resumed.append(now.startup.seconds_to_main)
    before.status, before.valid, before.finished = "running", None, None
    before.scratch = now.scratch
    before.accept_busy |= options.accept_busy
    return said


def changed_software(before: RunRecord, now: RunRecord) -> Iterator[str]:
    """Yield the differences of Python, pffbench, and the libraries and their builds.

    Paths are ignored: a job may copy files to each node.
    """
    was, is_ = _software(before), _software(now)
    for name in sorted(was.keys() & is_.keys()):
        if was[name] != is_[name]:
            yield f"{name} was {was[name]}, now it is {is_[name]}"


def _software(record: RunRecord) -> dict[str, str]:
    """Return the software facts that must not change, by name."""
    told = record.provenance.get("software", {})
    found = {f"{name} version": told.get(name, {}).get("version") for name in _PROGRAMS}
    for library, facts in told.get("libraries", {}).items():
        if facts.get("imported"):
            found |= {f"{library} {k}": v for k, v in facts.items() if k not in _PLACES}
    return {name: str(value) for name, value in found.items() if value is not None}


def other_commit(before: RunRecord, now: RunRecord) -> str | None:
    """Return a message if the code is another commit of the same version; else None."""
    commits = [
        r.provenance.get("software", {}).get("pffbench", {}).get("commit") for r in (before, now)
    ]
    if None in commits or commits[0] == commits[1]:
        return None
    return f"the run began with pffbench at commit {commits[0]} and went on with {commits[1]}"
