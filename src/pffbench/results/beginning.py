"""The record of a run that begins, which rank 0 makes."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Any

import msgspec

from pffbench.backends.registry import backend_class
from pffbench.case import Case, Stage
from pffbench.experiment.load import to_plain
from pffbench.experiment.plan import Plan
from pffbench.parallel.clock import Floor
from pffbench.parallel.topology import Topology
from pffbench.results.record import RunRecord, digest_of
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
        cases={case.id: _case_entry(case, plan) for case in plan.cases},
        left_out=[{"case": name, "reason": reason} for name, reason in plan.left_out],
        scratch=scratch,
        topology={
            "hosts": topology.hosts,
            "nodes": topology.nodes,
            "ranks_per_node": topology.ranks_per_node,
            "shifted_reads_from": topology.partners,
        },
        floor={
            "barrier": floor.barrier,
            "tick": floor.tick,
            "memory_copy_bytes_per_second": copy_rate,
        },
        startup=startup,
        provenance=provenance or {},
        stage=stage,
        wrote_on=sorted(set(topology.hosts)) if stage == "write" else [],
    )


def reading_entry(record: RunRecord) -> dict[str, Any]:
    """Return what is kept of the job that reads, beside what is kept of the one that wrote."""
    names = ("started", "floor", "startup", "topology", "provenance")
    return {name: getattr(record, name) for name in names}


def _case_entry(case: Case, plan: Plan) -> dict[str, Any]:
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
    }
