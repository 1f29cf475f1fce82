"""The results directory of a run, new or resumed."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from pffbench.errors import UserError
from pffbench.parallel.clock import Floor
from pffbench.parallel.topology import Team
from pffbench.record.lock import RunLock
from pffbench.record.progress import Progress
from pffbench.record.run_json import RunRecord
from pffbench.record.samples import claim, drop_unfinished, read_samples
from pffbench.run.recorder import Recorder, reading_entry
from pffbench.run.resume import changed_software, moved, other_commit
from pffbench.run.spec import RunSpec
from pffbench.storage.filesystem import same_filesystem

_TOGETHER = "results are written to the file system under test, off the timer"


def open_recorder(
    spec: RunSpec,
    record: RunRecord,
    team: Team,
    floor: Floor,
    progress: Progress,
    lock: RunLock,
) -> Recorder:
    """Make what records a run, on rank 0.

    Parameters
    ----------
    spec : RunSpec
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
    out = Path(spec.out)
    if spec.goes_on:
        record = _gone_on_with(spec, record, progress)
    else:
        _begin(out, lock)
        if same_filesystem(spec.out, spec.scratch_parent):
            record.remarks.append(_TOGETHER)
    warmup = spec.plan.experiment.warmup
    try:
        path = out / "samples.csv"
        known = read_samples(path) if spec.goes_on and path.exists() else []
        return Recorder(spec.out, record, team.topology, floor, warmup, progress, known)
    except Exception as error:
        if not spec.goes_on:
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


def _gone_on_with(spec: RunSpec, now: RunRecord, progress: Progress) -> RunRecord:
    """Return the record of a run that goes on, with what is to be told of this start."""
    out = Path(spec.out)
    before = RunRecord.load(out)
    here = f"--resume {spec.out}"
    if differences := list(changed_software(before, now)):
        raise UserError(f"{here}: not the same run: {'; '.join(differences)}")
    if spec.stage != "read" and (other := moved(before, now)):
        (before.remarks if spec.other_hosts else before.reasons).append(other)
        progress.message(other if spec.other_hosts else f"INVALID: {other}")
    if other := other_commit(before, now):
        before.remarks.append(other)
    before.resumed.append(now.started)
    before.startup.setdefault("resumed", []).append(now.startup["seconds_to_main"])
    before.status, before.valid, before.finished = "running", None, None
    before.scratch = now.scratch
    before.stage = spec.stage
    before.wrote_on = sorted({*before.wrote_on, *now.wrote_on})
    if spec.stage == "read":
        before.reading = reading_entry(now)
    drop_unfinished(str(out / "samples.csv"), before.last_written)
    return before
