"""The results directory of a run: begun, or gone on with."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from pffbench.decided import Decided
from pffbench.errors import UserError
from pffbench.parallel.clock import Floor
from pffbench.parallel.topology import Team
from pffbench.results.beginning import reading_entry
from pffbench.results.lock import RunLock
from pffbench.results.progress import Progress
from pffbench.results.record import RunRecord
from pffbench.results.recorder import Recorder
from pffbench.results.resume import changed_software, moved, other_commit
from pffbench.results.samples import claim, read_samples
from pffbench.results.whole import drop_unfinished
from pffbench.storage.filesystem import same_filesystem

_TOGETHER = "results are written to the file system under test, off the timer"


def open_recorder(
    decided: Decided,
    record: RunRecord,
    team: Team,
    floor: Floor,
    progress: Progress,
    lock: RunLock,
) -> Recorder:
    """Make what records a run, on rank 0.

    Parameters
    ----------
    decided : Decided
        What is to be done.
    record : RunRecord
        The record of a run that begins here and now; of one that goes on it is this start.
    team, floor, progress
        For the recorder.
    lock : RunLock
        Taken on the results directory; a run that goes on has it already.

    Raises
    ------
    UserError
        The directory cannot be made, locked or written to, another run has begun there, or the
        software is not that of before. Nothing is left of a run that was to begin.
    """
    out = Path(decided.out)
    if decided.goes_on:
        record = _gone_on_with(decided, record, progress)
    else:
        _begin(out, lock)
        if same_filesystem(decided.out, decided.scratch_parent):
            record.remarks.append(_TOGETHER)
    warmup = decided.plan.experiment.warmup
    try:
        path = out / "samples.csv"
        known = read_samples(path) if decided.goes_on and path.exists() else []
        return Recorder(decided.out, record, team.topology, floor, warmup, progress, known)
    except Exception as error:
        if not decided.goes_on:
            _undo(out, lock)
        if not isinstance(error, OSError):
            raise
        raise UserError(f"{out}: cannot be written to: {error.strerror or error}") from None


def _begin(out: Path, lock: RunLock) -> None:
    """Make the directory of a run and have it to itself."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock.take(out, f"--out {out}")
        claim(str(out))
    except FileExistsError:
        raise UserError(f"--out {out}: another run has just begun there; name a new one") from None
    except OSError as error:
        raise UserError(f"--out {out}: cannot be made: {error.strerror}") from None


def _undo(out: Path, lock: RunLock) -> None:
    """Remove what was made of a run that could not begin."""
    for name in ("samples.csv", "ranks.h5", "run.json.new", "run.json"):
        with suppress(OSError):
            (out / name).unlink(missing_ok=True)
    lock.release()
    with suppress(OSError):
        out.rmdir()


def _gone_on_with(decided: Decided, now: RunRecord, progress: Progress) -> RunRecord:
    """Return the record of a run that goes on, with what is to be told of this start."""
    out = Path(decided.out)
    before = RunRecord.load(out)
    here = f"--resume {decided.out}"
    if differences := list(changed_software(before, now)):
        raise UserError(f"{here}: not the same run: {'; '.join(differences)}")
    if decided.stage != "read" and (other := moved(before, now)):
        (before.remarks if decided.other_hosts else before.reasons).append(other)
        progress.message(other if decided.other_hosts else f"INVALID: {other}")
    if other := other_commit(before, now):
        before.remarks.append(other)
    before.resumed.append(now.started)
    before.startup.setdefault("resumed", []).append(now.startup["seconds_to_main"])
    before.status, before.valid, before.finished = "running", None, None
    before.scratch = now.scratch
    before.stage = decided.stage
    before.wrote_on = sorted({*before.wrote_on, *now.wrote_on})
    if decided.stage == "read":
        before.reading = reading_entry(now)
    drop_unfinished(str(out / "samples.csv"), before.last_written)
    return before
