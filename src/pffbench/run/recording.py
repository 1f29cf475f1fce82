"""The results directory of a run, new or resumed."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from pffbench.errors import UserError
from pffbench.parallel.clock import Floor
from pffbench.parallel.topology import Team
from pffbench.provenance.inputs import changed_inputs
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
    """Create the recorder of a run, on rank 0.

    Parameters
    ----------
    spec : RunSpec
        Specification of the run.
    record : RunRecord
        Record of a new run; for a resumed run, that of this start.
    team, floor, progress
        Passed to the recorder.
    lock : RunLock
        Acquired on the results directory; a resumed run holds it already.

    Raises
    ------
    UserError
        The directory cannot be created, locked or written, another run has begun there, or the
        software has changed. A new run leaves nothing behind.
    """
    out = Path(spec.out)
    if spec.goes_on:
        record = _gone_on_with(spec, record, progress)
    else:
        begin_results(out, lock)
        if same_filesystem(spec.out, spec.scratch_parent):
            record.remarks.append(_TOGETHER)
        record.remarks += spec.plan.idle
    warmup = spec.plan.experiment.warmup
    try:
        path = out / "samples.csv"
        known = read_samples(path) if spec.goes_on and path.exists() else []
        return Recorder(spec.out, record, team.topology, floor, warmup, progress, known)
    except Exception as error:
        if not spec.goes_on:
            undo_results(out, lock)
        if not isinstance(error, OSError):
            raise
        raise UserError(f"{out}: cannot be written to: {error.strerror or error}") from None


def begin_results(out: Path, lock: RunLock) -> None:
    """Create the directory of a run and acquire it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock.take(out, f"--out {out}")
        claim(str(out))
    except FileExistsError:
        raise UserError(f"--out {out}: another run has just begun there; name a new one") from None
    except OSError as error:
        raise UserError(f"--out {out}: cannot be made: {error.strerror}") from None


def undo_results(out: Path, lock: RunLock) -> None:
    """Remove the files of a run that could not begin."""
    for name in ("samples.csv", "ranks.h5", "run.json.new", "run.json"):
        with suppress(OSError):
            (out / name).unlink(missing_ok=True)
    lock.release()
    with suppress(OSError):
        out.rmdir()


def _gone_on_with(spec: RunSpec, now: RunRecord, progress: Progress) -> RunRecord:
    """Return the record of a resumed run, with the facts of this start."""
    out = Path(spec.out)
    before = RunRecord.load(out)
    here = f"--resume {spec.out}"
    differences = [
        *changed_software(before, now),
        *changed_inputs(before.provenance, now.provenance),
    ]
    if differences:
        raise UserError(f"{here}: not the same run: {'; '.join(differences)}")
    if spec.stage != "read" and (other := moved(before, now)):
        (before.remarks if spec.options.other_hosts else before.reasons).append(other)
        progress.message(other if spec.options.other_hosts else f"INVALID: {other}")
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
