"""Going on with a run that was stopped, if it would be the same run."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pffbench.errors import UserError
from pffbench.parallel.topology import Team
from pffbench.results.record import RunRecord
from pffbench.results.samples import drop_unfinished, finished, read_samples


def resumed(directory: str, team: Team) -> tuple[RunRecord, frozenset[tuple[str, int]]]:
    """Read a run that is to go on, on rank 0.

    Rows of a repetition that was cut short are moved out of `samples.csv` into a file beside it.

    Returns
    -------
    tuple
        The record, and the repetitions that are finished, as case and number.

    Raises
    ------
    UserError
        There is no such run, it is finished, or ranks or software are not the same.
    """
    try:
        record = RunRecord.load(directory)
        path = Path(directory) / "samples.csv"
        done = finished(read_samples(path)) if path.exists() else set()
    except ValueError as error:
        raise UserError(f"--resume {error}") from None
    if record.status == "finished":
        raise UserError(
            f"--resume {directory}: the run is finished; there is nothing to go on with"
        )
    if differences := list(_differences(record, team)):
        raise UserError(f"--resume {directory}: not the same run: {'; '.join(differences)}")
    if path.exists():
        drop_unfinished(str(path))
    return record, frozenset(done)


def _differences(record: RunRecord, team: Team) -> Any:
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
