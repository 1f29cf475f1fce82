"""A run in a batch job: each start of the job continues it, and the last step judges it."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from pffbench.errors import INTERRUPTED, NOT_VALID, VALID, WRONG_INPUT, UserError, explained
from pffbench.job.batch_job import SCHEDULERS
from pffbench.record.lock import NAME, RunLock, killed
from pffbench.record.repetitions import read_repetitions
from pffbench.record.run_json import RunRecord
from pffbench.run.options import RunOptions
from pffbench.tools import run_tool

#: Starts of a job without any finished repetition after which it is not queued again.
_USELESS_STARTS = 3
#: Seconds in which the scheduler must answer.
_ANSWER = 30.0


def begun_or_resumed(options: RunOptions) -> RunOptions | int:
    """Return the options that begin the run in `--out`, or resume it; on rank 0.

    Parameters
    ----------
    options : RunOptions
        Options of a run with `--batch`.

    Returns
    -------
    RunOptions or int
        The exit status of a run that has nothing left to do, in place of options.

    Raises
    ------
    UserError
        There is no `--out`, or its run cannot be read.
    """
    if options.out is None:
        raise UserError("--batch resumes the run in a results directory: name it with --out")
    out = Path(options.out)
    with explained(f"--out {out}: cannot be reached"):
        if not (out / "run.json").exists():
            _remove_unrecorded(out)
            return options
    try:
        record = RunRecord.load(out)
    except ValueError as error:
        raise UserError(f"--out {error}") from None
    is_written = record.status == "written" or record.stage == "read"
    if record.status == "finished" or (is_written and options.stage != "read"):
        print(f"finished by an earlier start: {out}", flush=True)
        return _status_of(record)
    return replace(options, out=None, resume=str(out), experiment=None, overrides=())


def _remove_unrecorded(out: Path) -> None:
    """Remove what a start left that was killed before it had written its record."""
    from pffbench.run.recording import undo_results

    if (out / NAME).exists():
        lock = RunLock()
        lock.take(out, f"--out {out}")
        undo_results(out, lock)


def _status_of(record: RunRecord) -> int:
    return NOT_VALID if record.valid is False and not record.has_losses else VALID


def end_of_job(
    directory: str, status: int, environ: Mapping[str, str], report: Callable[[], object]
) -> int:
    """Judge the run of a batch job by its record, and queue the job again if it was interrupted.

    Parameters
    ----------
    directory : str
        The results directory.
    status : int
        Exit status of the launcher. It does not count if the run is finished, because it may be
        the status of another rank or of a signal.
    environ : mapping
        Environment of the job.
    report : callable
        Makes tables and figures. The job does not fail if it does.

    Returns
    -------
    int
        Exit status of the job.
    """
    try:
        record = RunRecord.load(directory)
    except ValueError as error:
        if status != VALID:  # the program or the launcher has printed the reason
            return status
        print(f"pffbench: the run did not begin: {error}", flush=True)
        return NOT_VALID
    if status == WRONG_INPUT and record.status != "finished":
        return status
    resume = f"to resume, submit the same job again with PFFBENCH_OUT={directory}"
    if record.status == "running" or (record.status == "interrupted" and killed(directory)):
        print(f"pffbench: the run did not come to its end; {resume}", flush=True)
        return status or NOT_VALID
    if record.status == "interrupted":
        why = _queued_again(directory, record, environ)
        if why is None:  # the next start makes the report
            return INTERRUPTED
        print(
            f"pffbench: interrupted, and the job is not queued again: {why}; {resume}", flush=True
        )
    if record.status == "written":
        return status or _status_of(record)
    try:
        report()
    except Exception as error:  # noqa: BLE001 -- whatever it is, the measurements are kept
        print(f"pffbench: tables and figures could not be made: {error}", flush=True)
    return INTERRUPTED if record.status == "interrupted" else _status_of(record)


def _queued_again(directory: str, record: RunRecord, environ: Mapping[str, str]) -> str | None:
    """Have the scheduler queue this job again, or return why it is not.

    The scheduler may end this process before its command has answered, so the log says it first.
    """
    scheduler = next((one for one in SCHEDULERS if environ.get(one.inside)), None)
    if scheduler is None or not scheduler.requeue:
        return "users cannot queue a job again here"
    starts = [datetime.fromisoformat(text) for text in (record.started, *record.resumed)]
    rows = read_repetitions(directory)
    useful = {bisect(starts, datetime.fromisoformat(row.started)) for row in rows}
    if 1 + int(environ.get(scheduler.restarts, "0")) - len(useful) >= _USELESS_STARTS:
        return f"{_USELESS_STARTS} of its starts finished no repetition"
    print("pffbench: interrupted; queueing the job again", flush=True)
    answer = run_tool([word.format(environ[scheduler.job]) for word in scheduler.requeue], _ANSWER)
    return None if answer.ok else answer.text.removeprefix("unknown: ")
