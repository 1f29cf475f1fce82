"""Limits of the processes of a run: memory, address space, open files and threads."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import msgspec

from pffbench.backends.registry import backend_class
from pffbench.case import Case
from pffbench.errors import UserError
from pffbench.experiment.plan import Plan, arrays_of
from pffbench.job.launcher import FEWEST_ADDRESSES
from pffbench.units import Size
from pffbench.workloads.writers import refuse_nodes

if TYPE_CHECKING:
    from pffbench.mpi.topology import Topology


#: Files that a case may have open beside its data: the user's own file, results, libraries.
_BESIDE = 48
#: Processes and threads that a rank starts whatever it runs: the watchdog, and those of libraries.
_TASKS = 6
#: Chunks that zarr-python has under way at a time, unless an experiment says otherwise.
_CONCURRENCY = 10


class Allowance(msgspec.Struct, frozen=True):
    """What each rank may take, on the node that allows least."""

    #: Bytes.
    memory: int
    #: Files that it may open beside those that are open at the start (``ulimit -n``).
    open_files: int
    #: Bytes of addresses beside those that it has at the start (``ulimit -v``).
    addresses: int = sys.maxsize
    #: Processes and threads that it may start (``ulimit -u``, ``pids.max`` of a control group).
    tasks: int = sys.maxsize


def open_files(case: Case, plan: Plan) -> int:
    """Return how many files a rank may have open at a time, an upper estimate."""
    at_once = case.options.files_at_once
    file_per = backend_class(case.parameters.backend).file_per
    if file_per == "chunk":
        at_once = at_once or _CONCURRENCY
    elif file_per == "array":  # all arrays of a store are open together
        groups = case.parameters.groups(plan.ranks)
        at_once = -(-plan.costs[case.id].arrays * groups.largest // groups.ranks)
    return (at_once or 1) + _BESIDE


def check_addresses(plan: Plan, allowance: Allowance) -> None:
    """Refuse a plan for which a process may not have enough addresses.

    Libraries take them for code, threads and files that are mapped, and abort where there are none.

    Raises
    ------
    UserError
        With the case that needs most, and what to do.
    """
    most = max(plan.cases, key=lambda case: plan.costs[case.id].memory)
    needed = FEWEST_ADDRESSES + 2 * plan.costs[most.id].memory
    if needed > allowance.addresses:
        raise UserError(
            f"{most.id} needs about {Size(needed)} more of virtual memory on a rank, where "
            f"{Size(allowance.addresses)} are allowed; raise the limit (ulimit -v) or choose "
            "smaller shapes"
        )


def check_nodes(plan: Plan, topology: Topology, allowance: Allowance) -> None:
    """Refuse a plan whose writer ranks do not exist, or hold more than fits on a node.

    Raises
    ------
    UserError
        With the first such case.
    """
    for case in plan.cases:
        if not case.parameters.exchanges:
            continue
        for family in arrays_of(case.parameters, topology.size).families:
            if reason := refuse_nodes(family, topology, allowance.memory):
                raise UserError(f"{case.id}: {reason}")


def check_open_files(plan: Plan, allowance: Allowance) -> None:
    """Refuse a plan that needs more open files than a process may have.

    Raises
    ------
    UserError
        With the case that needs most, and what to do.
    """
    needed = {case.id: open_files(case, plan) for case in plan.cases}
    most = max(needed, key=needed.__getitem__)
    if needed[most] > allowance.open_files:
        raise UserError(
            f"{most} may need {needed[most]} more open files on a rank, where "
            f"{allowance.open_files} are allowed; raise the limit (ulimit -n), or choose fewer "
            "arrays or a smaller concurrency"
        )


def check_tasks(plan: Plan, allowance: Allowance) -> None:
    """Refuse a plan whose ranks may not start their threads, without which libraries abort.

    Raises
    ------
    UserError
        With the case that needs most, and what to do.
    """
    needed = {case.id: _TASKS + _threads(case) for case in plan.cases}
    most = max(needed, key=needed.__getitem__)
    if needed[most] > allowance.tasks:
        raise UserError(
            f"{most} may need {needed[most]} more processes and threads on a rank, where "
            f"{allowance.tasks} are allowed; raise the limit of processes (ulimit -u, or pids.max "
            "of the container or job)"
        )


def _threads(case: Case) -> int:
    """Return how many threads a backend may start on a rank, an upper estimate."""
    if not backend_class(case.parameters.backend).capabilities.threads:
        return 0
    named = (getattr(case.options, name, None) for name in ("threads", "workers", "concurrency"))
    matched = case.parameters.settings == "matched"
    usual = 1 if matched else max(_CONCURRENCY, os.cpu_count() or 1)
    return 2 * max((number for number in named if number), default=usual)  # of two kinds
