"""The record of a run that begins, which rank 0 makes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from pffbench.backends.registry import backend_class
from pffbench.case import Case, Stage
from pffbench.experiment.load import to_plain
from pffbench.experiment.plan import Plan
from pffbench.parallel.clock import Floor
from pffbench.parallel.topology import Topology
from pffbench.results.rankfacts import job_clock
from pffbench.results.record import RunRecord, digest_of
from pffbench.storage.filesystem import FileSystem, filesystem
from pffbench.workloads.registry import workload


def new_record(
    plan: Plan,
    experiment_file: str,
    run_id: str,
    scratch: str,
    topology: Topology,
    floor: Floor,
    copy_rate: float,
    startup: dict[str, Any],
    provenance: dict[str, Any] | None,
    stage: Stage,
) -> RunRecord:
    """Make the record of a run that begins."""
    experiment = plan.experiment
    plain = to_plain(experiment)
    there = filesystem(scratch)
    return RunRecord(
        run_id=run_id,
        name=experiment.name,
        question=experiment.question,
        command=sys.orig_argv,
        ranks=plan.ranks,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        experiment=plain,
        experiment_digest=digest_of(plain),
        experiment_file=experiment_file,
        cases={case.id: _case_entry(case, plan, there) for case in plan.cases},
        left_out=[{"case": name, "reason": reason} for name, reason in plan.left_out],
        scratch=scratch,
        topology={
            "hosts": topology.hosts,
            "nodes": topology.nodes,
            "ranks_per_node": topology.ranks_per_node,
            "shifted_reads_from": topology.partners,
        },
        floor={**floor_entry([floor]), "memory_copy_bytes_per_second": copy_rate},
        clock=job_clock(topology.nodes, (provenance or {}).get("ranks", [])),
        startup=startup,
        provenance=provenance or {},
        stage=stage,
        wrote_on=sorted(set(topology.hosts)) if stage == "write" else [],
    )


def floor_entry(floors: Sequence[Floor]) -> dict[str, Any]:
    """Return what `run.json` says of the floor: the median of all measurements, and their range."""
    middle = Floor.median_of(floors)
    synced = [floor.synced for floor in floors]
    return {
        "own": middle.own,
        "synced": middle.synced,
        "tick": middle.tick,
        "synced_range": [min(synced), max(synced)],
        "measured": len(floors),
    }


def reading_entry(record: RunRecord) -> dict[str, Any]:
    """Return what is kept of the job that reads, beside what is kept of the one that wrote."""
    names = ("started", "floor", "startup", "topology", "provenance")
    return {name: getattr(record, name) for name in names}


def _case_entry(case: Case, plan: Plan, there: FileSystem) -> dict[str, Any]:
    kind = backend_class(case.parameters.backend)
    cost = plan.costs[case.id]
    return {
        "parameters": {
            "workload": case.parameters.workload,
            **msgspec.to_builtins(case.parameters),
        },
        "options": msgspec.to_builtins(case.options, enc_hook=int),
        "group": case.group,
        "roofline": case.roofline,
        "raw": not kind.capabilities.formatted,
        "verified": kind.capabilities.keeps_data,
        "caller_buffer": kind.capabilities.caller_buffer,
        "notes": (
            *kind(case.options, case.parameters.settings).notes(),
            *workload(case.parameters.workload).notes(case.parameters),
        ),
        "cost": msgspec.structs.asdict(cost),
        "counts_reads": _counts_reads(case, there),
        # File systems without a block device of their own have the major number 0; what they
        # fetch is counted for nobody.
        "counts_device": os.major(Path(there.path).stat().st_dev) != 0,
    }


def _counts_reads(case: Case, there: FileSystem) -> bool:
    """Whether the kernel delivers each byte of a read once, and counts it.

    A file system that is served in user space may be read past the kernel.
    """
    p = case.parameters
    kind = backend_class(p.backend)
    counted = kind.capabilities.keeps_data and not kind.capabilities.maps_files
    return counted and workload(p.workload).reads_once and there.kernel_type != "fuse"
