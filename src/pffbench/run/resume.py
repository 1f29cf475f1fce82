"""Resuming a stopped run, or reading the files of an earlier stage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from pffbench.backends.registry import installed
from pffbench.case import FileCount, Stage
from pffbench.errors import UserError
from pffbench.experiment.plan import Plan
from pffbench.mpi.topology import Topology
from pffbench.record.lock import RunLock
from pffbench.record.repetitions import FILE, Done, Repetition, done_parts, read_repetitions
from pffbench.record.run_json import RESUMED, RunRecord, digest_of, readable
from pffbench.results.rerun import command_in_batch
from pffbench.text import abridged

#: Hosts that a message names.
_MOST_HOSTS = 4


class Resumed(msgspec.Struct, frozen=True):
    """A run to be resumed."""

    #: The results directory.
    directory: str
    #: Contents of `run.json`.
    record: RunRecord
    #: Stage to run.
    stage: Stage
    #: Repetitions that are finished, and those that are written but not read, as case and round.
    finished: Done
    written: Done

    def done(self, rounds: int) -> Done:
        """Return the repetitions, of this many of each case, that are not to be done again.

        They are finished in this stage, or their case has failed.
        """
        failed = frozenset((case, n) for case in self._failed for n in range(rounds))
        if self.stage == "write":
            return self.written | failed
        if self.stage == "all":
            return self.finished | failed
        everything = {(case, n) for case in self.record.cases for n in range(rounds)}
        return frozenset(everything - self.kept)

    @property
    def kept(self) -> Done:
        """Repetitions whose files exist and are still to be read."""
        return frozenset(key for key in self.written if key[0] not in self._failed)

    @property
    def _failed(self) -> set[str]:
        return {name for name, entry in self.record.cases.items() if entry.failure}


def resumed(
    directory: str, topology: Topology, asked: Stage | None, lock: RunLock, *, batch: bool
) -> Resumed:
    """Read a run to be resumed, on rank 0.

    Parameters
    ----------
    directory : str
        The results directory.
    topology : Topology
        The current ranks.
    asked : {"write", "read"}, optional
        The requested stage; when None, the one that was stopped.
    lock : RunLock
        Acquired on the directory before reading anything that another run could change.
    batch : bool
        Whether it may go on on other hosts; its whole rounds are kept.

    Raises
    ------
    UserError
        There is no such run, another process is running it, nothing is left to do in this stage,
        or ranks, experiment, software or hosts do not match.
    """
    path = Path(directory) / FILE
    try:
        record = RunRecord.load(directory)
        if record.environments:
            raise UserError(
                f"--resume {directory}: a run of several environments starts its ranks itself: go "
                "on with it as one process, without mpiexec or srun"
            )
        _stage(directory, record, asked)
        lock.take(directory, f"--resume {directory}")
        record = RunRecord.load(directory)
        repetitions = read_repetitions(directory) if path.exists() else []
        with readable(directory):
            differences = list(_differences(record, topology))
            if record.stage == "all" and moved(record, topology.hosts):
                repetitions = whole_rounds(record, repetitions)
            finished, written = done_parts(repetitions)
    except OSError as error:
        raise UserError(f"--resume {path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"--resume {error}") from None
    stage = _stage(directory, record, asked)
    if stage == "read":
        differences += _not_elsewhere(record, topology)
    if differences:
        raise UserError(f"--resume {directory}: not the same run: {'; '.join(differences)}")
    if stage != "read" and not batch:
        refuse_other_hosts(directory, record, topology.hosts)
    record.stage = stage
    return Resumed(directory, record, stage, finished, written)


def refuse_other_hosts(directory: str, record: RunRecord, hosts: Sequence[str]) -> None:
    """Reject resuming a run on other hosts, whose times are those of another machine.

    Raises
    ------
    UserError
        Names the hosts, and what can be done.
    """
    if moved(record, hosts):
        was, now = few_hosts(record.topology.hosts), few_hosts(hosts)
        raise UserError(
            f"--resume {directory}: the ranks of the run were on {was}, and these are on {now}: "
            "resume it on the same hosts with the same placement, begin a new run (run --out "
            "DIR2), or add whole rounds of these hosts to it with: "
            f"{command_in_batch(record, directory)}"
        )


def moved(record: RunRecord, hosts: Sequence[str]) -> str | None:
    """Return a message if ranks are on other hosts than those of a run, or placed otherwise."""
    was = record.topology.hosts
    if was == list(hosts):
        return None
    within = "ways are compared in whole rounds of one placement, and a single time is of both"
    if sorted(was) == sorted(hosts):
        return f"{RESUMED} with its ranks placed otherwise on the same hosts: {within}"
    change = f"{few_hosts(hosts)} after {few_hosts(was)}"
    return f"{RESUMED} on other hosts ({change}): {within}"


def few_hosts(hosts: Sequence[str]) -> str:
    """Return the first of some hosts, and how many more there are."""
    return abridged(list(dict.fromkeys(hosts)), _MOST_HOSTS, ", ")


def whole_rounds(record: RunRecord, repetitions: list[Repetition]) -> list[Repetition]:
    """Return the repetitions without those of a last round that lacks some of its cases.

    Ways are compared within a round, which must be of one placement.
    """
    last = max((one.round for one in repetitions), default=0)
    there = {one.case for one in repetitions if one.round == last}
    counted = last - int(record.experiment["warmup"])
    due = {
        name
        for name, entry in record.cases.items()
        if entry.failure is None and (entry.stopped_after is None or counted < entry.stopped_after)
    }
    return repetitions if due <= there else [one for one in repetitions if one.round < last]


def check_unfinished(directory: str, record: RunRecord) -> None:
    """Reject a run that is finished.

    Raises
    ------
    UserError
        There is nothing left to do.
    """
    if record.status == "finished":
        raise UserError(
            f"--resume {directory}: the run is finished; there is nothing to go on with"
        )


def _stage(directory: str, record: RunRecord, asked: Stage | None) -> Stage:
    """Return the stage to resume.

    Raises
    ------
    UserError
        The run has completed that stage, or has no such stage.
    """
    here = f"--resume {directory}"
    check_unfinished(directory, record)
    written = record.stage == "write" and record.status == "written"
    if written and asked != "read":
        raise UserError(f"{here}: everything is written; read it, from other nodes, --stage read")
    if asked == "read" and record.stage == "all":
        raise UserError(f"{here}: --stage read reads what a run with --stage write has left")
    if asked == "read" and record.stage == "write" and not written:
        raise UserError(f"{here}: not everything is written; go on without --stage read first")
    if asked == "write" and record.stage != "write":
        raise UserError(f"{here}: --stage write begins a run, or goes on with one that writes")
    stage: Stage = "read" if asked == "read" else record.stage
    return stage


def without_left_out(plan: Plan, record: RunRecord) -> Plan:
    """Return a plan without the cases that the run left out to keep to its time budget."""
    gone = {entry.case for entry in record.left_out}
    cases = tuple(case for case in plan.cases if case.id not in gone)
    return msgspec.structs.replace(plan, cases=cases)


def refuse_other_cases(directory: str, record: RunRecord, plan: Plan) -> None:
    """Reject resuming when the experiment now has other cases than before, or they other files.

    Raises
    ------
    UserError
        Names the removed, the added and the changed cases.
    """
    planned = {case.id for case in plan.cases}
    gone, new = sorted(record.cases.keys() - planned), sorted(planned - record.cases.keys())
    # Files of groups on each node: as many ranks may be on other nodes now.
    grouped = [case.id for case in plan.cases if isinstance(case.parameters.files, FileCount)]
    kept = [name for name in grouped if name not in new]
    other = [name for name in kept if plan.costs[name].files != record.cases[name].cost.files]
    told = [
        f"{len(names)} {what}, such as {names[0]}"
        for what, names in (
            ("cases are no more", gone),
            ("cases are new", new),
            ("cases have another number of files on these nodes", other),
        )
        if names
    ]
    if told:
        raise UserError(f"--resume {directory}: not the same run: {'; '.join(told)}")


def _differences(record: RunRecord, topology: Topology) -> Iterator[str]:
    if record.ranks != topology.size:
        yield f"it had {record.ranks} ranks, now there are {topology.size}"
    if record.experiment_digest != digest_of(record.experiment):
        yield "the experiment in run.json was changed"
    before = record.provenance.get("software", {})
    for name, facts in before.get("libraries", before).items():
        was = facts.get("version") if isinstance(facts, dict) else None
        now = installed(name)
        if was is not None and now is not None and was != now:
            yield f"{name} was {was}, now it is {now}"


def _not_elsewhere(record: RunRecord, topology: Topology) -> Iterator[str]:
    """Yield messages about nodes that may have the data to be read in memory."""
    both = sorted(set(record.wrote_on) & set(topology.hosts))
    if both:
        yield (
            f"{', '.join(both)} wrote these data and may hold them in memory; read them on other "
            "nodes (sbatch --exclude), or take cache: dropped"
        )
