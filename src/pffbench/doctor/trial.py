"""What runs here, by the planner of every run and by one run of the smallest experiment."""

from __future__ import annotations

import argparse
import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

import msgspec

from pffbench.backends.base import Backend
from pffbench.backends.registry import backend_class
from pffbench.case import files_word
from pffbench.doctor.finding import Findings, ok, problem
from pffbench.doctor.libraries import loadable_backends
from pffbench.experiment.check import make_plan
from pffbench.experiment.load import load_experiment
from pffbench.experiment.shipped import FOLDER
from pffbench.job.batch_job import StopSignals
from pffbench.mpi.topology import Topology
from pffbench.record.run_json import RunRecord
from pffbench.run.options import RunOptions, add_arguments
from pffbench.run.session import Session
from pffbench.text import counted, without_digests

if TYPE_CHECKING:
    from mpi4py import MPI

#: The experiment that is run, and a step of which ends within some time.
SMALLEST = str(FOLDER / "smallest.yaml")
HANG_TIMEOUT = "2 min"
FILES = ("one-shared", "one-per_rank", "per_rank")


def run_smallest(comm: MPI.Intracomm, scratch: str | None, out: str) -> Session:
    """Run the smallest experiment on all ranks, without output; collective.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        All ranks.
    scratch : str, optional
        The scratch parent that the user named.
    out : str
        The results directory.

    Raises
    ------
    UserError
        On every rank, when no run can begin here.
    """
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    given = [SMALLEST, "--out", out, "--quiet", "--set", f"hang_timeout={HANG_TIMEOUT}"]
    given += ["--scratch", scratch] if scratch else []
    options = RunOptions.of_arguments(parser.parse_args(given))
    session = Session(comm, options, StopSignals())
    with redirect_stdout(io.StringIO()):
        session.run()
    return session


#: Backend, files and arrays, and transfer of a case.
Way = tuple[str, str, str]


def ways_of(record: RunRecord) -> dict[Way, str]:
    """Return the ways in which a run wrote and read, and why they failed; empty if they work."""
    ways: dict[Way, str] = {}
    for entry in record.cases.values():
        p, why = entry.parameters, str(entry.failure or entry.invalid)
        way = p["backend"], files_word(p["files"], p["arrays"]), p["transfer"]
        ways[way] = ways.get(way) or without_digests(why)
    return ways


def judge_trial(record: RunRecord) -> Findings:
    """Report which ways of a run of the smallest experiment work, and why others do not."""
    groups: dict[tuple[str, str], list[str]] = {}
    for (backend, files, transfer), why in ways_of(record).items():
        groups.setdefault((backend, why), []).append(f"{files} {transfer}")
    for (backend, why), ways in groups.items():
        kind, names = backend_class(backend), ", ".join(ways)
        if why:
            yield problem(f"{kind.summary}: {names}: {why}", _remedy(kind))
        else:
            ranks = counted(record.ranks, "rank")
            yield ok(f"{kind.summary}: {ranks} wrote and read, all bytes verified: {names}")
    if record.status != "finished":
        yield problem("the run ended early", "see the message of the run")
    elif not any(why for _, why in groups):
        yield from map(problem, record.reasons)


def _remedy(kind: type[Backend]) -> str:
    remedy = "try another --scratch"
    if kind.mpi_io == "none":
        return remedy
    return (
        f"{remedy}, or another MPI-IO (Open MPI: OMPI_MCA_io=ompio, or romio321, which is romio341 "
        "in Open MPI 5)"
    )


class Ability(msgspec.Struct):
    """What a backend can do here with some files and arrays."""

    backend: str
    files: str
    #: Transfers that work; empty if none does.
    transfers: list[str]
    #: Why the last other transfer does not.
    reason: str = ""


def abilities(
    topology: Topology, no_mpi: str | None, tried: Mapping[Way, str], refusal: str
) -> list[Ability]:
    """Return what each backend that keeps data can do here, with each kind of files and arrays.

    Parameters
    ----------
    topology : Topology
        The nodes of the ranks.
    no_mpi : str, optional
        Why runs have no MPI.
    tried : mapping
        The ways that were tried, as `ways_of` returns them.
    refusal : str
        Why no run can begin here; empty if one can.
    """
    names = ", ".join(kind.name for kind in loadable_backends())
    changes = [
        f"backend=[{names}]",
        "files=[one, per_rank]",
        "arrays=[shared, per_rank]",
        "transfer=[independent, collective]",
        "roofline=false",
    ]
    loaded = load_experiment(SMALLEST, changes)
    reasons = dict(make_plan(loaded, topology.size, no_mpi, topology=topology).left_out)
    broken = {(backend, files): why for (backend, files, _), why in tried.items() if why}
    found: dict[tuple[str, str], Ability] = {}
    for _, case in loaded.cases:
        p = case.parameters
        if backend_class(p.backend).capabilities.discards:
            continue
        ability = found.setdefault((p.backend, p.files_word), Ability(p.backend, p.files_word, []))
        # Of a transfer that was not tried, the other one with these files shows whether it works.
        failure = tried.get(
            (p.backend, p.files_word, p.transfer), broken.get((p.backend, p.files_word))
        )
        why = refusal or reasons.get(case.id) or failure
        if why:
            ability.reason = why
        elif p.transfer not in ability.transfers:
            ability.transfers.append(p.transfer)
    return list(found.values())


def table_of(found: Iterable[Ability]) -> Iterator[str]:
    """Yield the lines of a table: a row for each backend, a column for each kind of files."""
    rows: dict[str, list[str]] = {"": list(FILES)}
    for one in found:
        whole = len(one.transfers) == 2 or one.files == "per_rank"
        cell = "yes" if one.transfers and whole else "".join(one.transfers) or "no"
        rows.setdefault(one.backend, []).append(cell)
    for name, cells in rows.items():
        yield f"  {name:13} {''.join(f'{cell:14}' for cell in cells)}".rstrip()
    yield "  yes: independent and collective transfer in files that ranks share"
