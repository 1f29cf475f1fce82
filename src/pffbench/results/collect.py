"""Collecting at the start of a run what `run.json` is to say of it."""

from __future__ import annotations

import importlib
import os
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from pffbench.backends.registry import backend_class
from pffbench.case import Case, Stage
from pffbench.experiment.check import Plan
from pffbench.experiment.load import LoadedExperiment, to_plain
from pffbench.parallel.clock import Floor
from pffbench.parallel.extremes import largest, least
from pffbench.parallel.topology import Team, Topology
from pffbench.results.provenance import (
    environment_facts,
    host_facts,
    mpi_io_facts,
    rank_facts,
    slurm_facts,
    software_facts,
)
from pffbench.results.record import RunRecord, digest_of
from pffbench.results.spack import find_environment, spack_facts
from pffbench.storage.filesystem import filesystem
from pffbench.workloads.registry import workload

#: Bytes that each rank copies to find the speed of memory, and the ranks of a node at most: more
#: than caches hold, and not more than there is.
_COPIED = 32 * 2**20
_COPIED_ON_A_NODE = 2**30


def memory_copy_rate(team: Team, rounds: int = 5) -> float:
    """Time a copy in memory on all ranks at once and return bytes per second together.

    Collective; the result is the same on all ranks. It bounds every transfer from above: a page
    cache cannot take data faster than memory does.
    """
    copied = min(_COPIED, _COPIED_ON_A_NODE // int(team.node.size))
    source = np.ones(copied, dtype=np.uint8)
    target = np.empty_like(source)
    seconds = []
    for _ in range(rounds):
        team.comm.Barrier()
        begin = time.perf_counter()
        np.copyto(target, source)
        seconds.append(time.perf_counter() - begin)
    rate = copied / sorted(seconds)[rounds // 2]
    # Nodes may hold different numbers of ranks; the slowest rank stands for all, as in a phase.
    return least(team.comm, rate) * team.size


def collect_provenance(
    team: Team, plan: Plan, scratch: str, *, personal: bool
) -> dict[str, Any] | None:
    """Gather on rank 0 what a result would be worthless without; collective, None elsewhere.

    Account and user of the batch job are part of it only where ``personal`` asks for them.

    The libraries of all backends of the plan are imported here, so that no phase pays for it
    and their versions are known.
    """
    begin = time.perf_counter()
    libraries: list[str] = []
    for name in sorted({case.parameters.backend for case in plan.cases}):
        kind = backend_class(name)
        kind(kind.options_type(), "defaults")
        libraries += kind.libraries
    for case in plan.cases:
        p = case.parameters
        optional = backend_class(p.backend).optional_libraries(p, case.options)
        for library in (*optional, *workload(p.workload).libraries(p)):
            with suppress(ImportError):  # the case itself fails, and says why
                importlib.import_module(library)
            libraries.append(library)
    imported = largest(team.comm, time.perf_counter() - begin)
    ranks = team.comm.gather(rank_facts())
    hosts = team.comm.gather(host_facts() if team.is_leader else None)
    if ranks is None or hosts is None:
        return None
    from mpi4py import MPI

    used = ["mpi4py", "h5py", *libraries]  # h5py writes ranks.h5 in every run
    return {
        "import_seconds": imported,
        "software": software_facts(dict.fromkeys(used)),
        "mpi_io": mpi_io_facts(MPI.COMM_SELF, scratch),
        "filesystem": vars(filesystem(scratch)),
        "ranks": ranks,
        "hosts": [facts for facts in hosts if facts is not None],
        "environment": environment_facts(os.environ, personal=personal),
        "slurm": slurm_facts(os.environ, personal=personal),
        "spack": spack_facts(find_environment(os.environ, Path(sys.prefix))),
    }


def new_record(
    plan: Plan,
    loaded: LoadedExperiment,
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
        experiment_file=loaded.path,
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
        "cost": vars(cost),
    }
