"""The results directory of a run, new or resumed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pffbench.case import Stage
from pffbench.errors import UserError
from pffbench.parallel.clock import Floor
from pffbench.parallel.topology import Team
from pffbench.provenance.inputs import changed_inputs
from pffbench.record.lock import RunLock
from pffbench.record.progress import Progress
from pffbench.record.run_json import RunRecord
from pffbench.record.samples import claim, drop_unfinished, read_samples
from pffbench.run.options import RunOptions
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
    out, warmup = Path(spec.out), spec.plan.experiment.warmup
    if spec.goes_on:
        record = _gone_on_with(spec, record, progress)
        with writing_results(out):
            path = out / "samples.csv"
            known = read_samples(path) if path.exists() else []
            return Recorder(spec.out, record, team.topology, floor, warmup, progress, known)
    begin_results(out, lock, record, spec.options, spec.scratch_parent)
    record.remarks += spec.plan.idle
    with writing_results(out, lock):
        return Recorder(spec.out, record, team.topology, floor, warmup, progress)


@contextmanager
def writing_results(out: Path, begun: RunLock | None = None) -> Iterator[None]:
    """Report that results cannot be written; of a new run, whose lock is given, nothing stays.

    Raises
    ------
    UserError
        In place of an OSError.
    """
    try:
        yield
    except Exception as error:
        if begun is not None:
            undo_results(out, begun)
        if not isinstance(error, OSError):
            raise
        raise UserError(f"{out}: cannot be written to: {error.strerror or error}") from None


def begin_results(
    out: Path, lock: RunLock, record: RunRecord, options: RunOptions, scratch_parent: str
) -> None:
    """Create the directory of a new run, acquire it, and complete the record by the options.

    Runs of one environment and of several begin here.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock.take(out, f"--out {out}")
        claim(str(out))
    except FileExistsError:
        raise UserError(f"--out {out}: another run has just begun there; name a new one") from None
    except OSError as error:
        raise UserError(f"--out {out}: cannot be made: {error.strerror}") from None
    if same_filesystem(str(out), scratch_parent):
        record.remarks.append(_TOGETHER)
    enter_options(record, options)


def enter_options(record: RunRecord, options: RunOptions) -> None:
    """Enter into the record of a new run what its options say; of a resumed run `go_on` does."""
    _enter_stage(record, options.stage or "all", record.topology["hosts"])


def _enter_stage(record: RunRecord, stage: Stage, hosts: Iterable[str]) -> None:
    """Enter the stage that this job does, and the hosts that write."""
    record.stage = stage
    if stage == "write":
        record.wrote_on = sorted({*record.wrote_on, *hosts})


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
    differences = [
        *changed_software(before, now),
        *changed_inputs(before.provenance, now.provenance),
    ]
    if differences:
        raise UserError(f"--resume {spec.out}: not the same run: {'; '.join(differences)}")
    elsewhere = None if spec.stage == "read" else moved(before, now)
    for text in go_on(before, now, elsewhere, spec.options):
        progress.message(text)
    _enter_stage(before, spec.stage, now.topology["hosts"])
    if spec.stage == "read":
        before.reading = reading_entry(now)
    drop_unfinished(str(out / "samples.csv"), before.last_written)
    return before


def go_on(
    before: RunRecord, now: RunRecord, elsewhere: str | None, options: RunOptions
) -> list[str]:
    """Update the record of a resumed run for this start; return messages for the user.

    Runs of one environment and of several go on here.

    Parameters
    ----------
    before : RunRecord
        The record, which is changed.
    now : RunRecord
        Record of this start.
    elsewhere : str or None
        That it runs on other hosts than before, in words, where it does.
    options : RunOptions
        The options of this start, such as whether it may.
    """
    said = []
    if elsewhere is not None:
        (before.remarks if options.other_hosts else before.reasons).append(elsewhere)
        said.append(elsewhere if options.other_hosts else f"INVALID: {elsewhere}")
    if other := other_commit(before, now):
        before.remarks.append(other)
    before.resumed.append(now.started)
    before.startup.setdefault("resumed", []).append(now.startup["seconds_to_main"])
    before.status, before.valid, before.finished = "running", None, None
    before.scratch = now.scratch
    return said
