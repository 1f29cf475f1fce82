"""Going on with a run that was stopped, or reading what it wrote, if it would be the same run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pffbench.case import Stage
from pffbench.errors import UserError
from pffbench.parallel.topology import Team
from pffbench.results.record import RunRecord
from pffbench.results.samples import Repetitions, Whole, drop_unfinished, read_samples, whole


@dataclass(frozen=True)
class Resumed:
    """A run that is to go on.

    Parameters
    ----------
    record : RunRecord
        What `run.json` says.
    stage : {"all", "write", "read"}
        What is to be done.
    whole : Whole
        The repetitions that are complete.
    """

    record: RunRecord
    stage: Stage
    whole: Whole

    def done(self, blocks: int) -> Repetitions:
        """Return the repetitions, of this many of each case, that need nothing more."""
        if self.stage == "write":
            return self.whole.written
        if self.stage == "all":
            return self.whole.finished
        everything = {(case, n) for case in self.record.cases for n in range(blocks)}
        return frozenset(everything - self.kept)

    @property
    def kept(self) -> Repetitions:
        """The repetitions whose files are there, and are still to be read."""
        failed = {name for name, entry in self.record.cases.items() if "failure" in entry}
        left = self.whole.written - self.whole.finished
        return frozenset(key for key in left if key[0] not in failed)


def resumed(directory: str, team: Team, asked: Stage | None) -> Resumed:
    """Read a run that is to go on, on rank 0.

    Rows of a repetition that was cut short are moved out of `samples.csv` into a file beside it.

    Parameters
    ----------
    directory : str
        The results directory.
    team : Team
        The ranks of now; nothing here is collective.
    asked : {"write", "read"}, optional
        The stage that the user asks for; when None, the one that was stopped.

    Raises
    ------
    UserError
        There is no such run, nothing is left to do in this stage, or ranks, software or, for
        reading, nodes do not fit.
    """
    path = Path(directory) / "samples.csv"
    try:
        record = RunRecord.load(directory)
        samples = read_samples(path) if path.exists() else []
    except ValueError as error:
        raise UserError(f"--resume {error}") from None
    stage = _stage(directory, record, asked)
    differences = list(_differences(record, team))
    if stage == "read":
        differences += _not_elsewhere(record, team)
    if differences:
        raise UserError(f"--resume {directory}: not the same run: {'; '.join(differences)}")
    record.stage = stage
    if path.exists():
        drop_unfinished(str(path), record.last_written)
    return Resumed(record, stage, whole(samples, record.last_written))


def _stage(directory: str, record: RunRecord, asked: Stage | None) -> Stage:
    """Return the stage to go on with.

    Raises
    ------
    UserError
        The run has come to the end of that stage, or has no such stage.
    """
    here = f"--resume {directory}"
    if record.status == "finished":
        raise UserError(f"{here}: the run is finished; there is nothing to go on with")
    written = record.stage == "write" and record.status == "written"
    if written and asked != "read":
        raise UserError(f"{here}: everything is written; read it, from other nodes, --stage read")
    if asked == "read" and record.stage == "all":
        raise UserError(f"{here}: --stage read reads what a run with --stage write has left")
    if asked == "read" and record.stage == "write" and not written:
        raise UserError(f"{here}: not everything is written; go on without --stage read first")
    if asked == "write" and record.stage != "write":
        raise UserError(f"{here}: --stage write begins a run, or goes on with one that writes")
    stage: Stage = "read" if asked == "read" else record.stage  # type: ignore[assignment]
    return stage


def _differences(record: RunRecord, team: Team) -> Iterator[str]:
    if record.ranks != team.size:
        yield f"it had {record.ranks} ranks, now there are {team.size}"
    before = record.provenance.get("software", {})
    for name, facts in before.get("libraries", before).items():
        was = facts.get("version") if isinstance(facts, dict) else None
        try:
            now = version(name)
        except PackageNotFoundError:
            continue
        if was is not None and was != now:
            yield f"{name} was {was}, now it is {now}"


def _not_elsewhere(record: RunRecord, team: Team) -> Iterator[str]:
    """Complain of nodes that may hold in memory what they are to read."""
    both = sorted(set(record.wrote_on) & set(team.topology.hosts))
    if both:
        yield (
            f"{', '.join(both)} wrote these data and may hold them in memory; read them on other "
            "nodes (sbatch --exclude), or take cache: dropped"
        )
