"""What killed runs left in scratch directories: found, judged, and removed if nothing needs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pffbench.errors import UserError
from pffbench.results.record import RunRecord
from pffbench.storage.durable import DiskUsage, disk_usage
from pffbench.storage.marker import JOB_PREFIX, Leftover, find_leftovers, leftover_at
from pffbench.storage.scratch import Scratch
from pffbench.text import one_line


@dataclass(frozen=True)
class Judged:
    """A scratch directory, and whether it may be removed.

    Parameters
    ----------
    leftover : Leftover
        What its marker says.
    usage : DiskUsage or None
        What is in it; None when it cannot be read.
    removable : bool
        Whether nothing needs it any more, as far as can be known.
    why : str
        How that is known, or why it stays.
    """

    leftover: Leftover
    usage: DiskUsage | None
    removable: bool
    why: str

    @property
    def age(self) -> float | None:
        """Seconds since its marker was written; None when the marker does not tell."""
        try:
            written = datetime.fromisoformat(self.leftover.holder.date)
            return (datetime.now(UTC) - written).total_seconds()
        except (TypeError, ValueError, OverflowError):
            return None


def judged(parent: str, *, kept: bool) -> Iterator[Judged]:
    """Yield the marked directories of a scratch parent, each with a judgement.

    Parameters
    ----------
    parent : str
        The directory that runs make theirs in.
    kept : bool
        Whether files that another job is still to read may go too.

    Raises
    ------
    UserError
        The parent cannot be read.
    """
    try:
        found = find_leftovers(parent)
    except OSError as error:
        raise UserError(f"--scratch {parent}: cannot be read: {error.strerror}") from None
    for leftover in found:
        removable, why = _judge(leftover, kept)
        try:
            usage = disk_usage([leftover.path])
        except OSError:
            usage = None
        yield Judged(leftover, usage, removable, why)


def _judge(leftover: Leftover, kept: bool) -> tuple[bool, str]:
    fate = leftover.holder.fate()
    if fate.state == "runs":
        return False, f"in use: {fate.why}"
    if fate.state == "unknown":
        return False, f"may be in use: {fate.why}; clean it there, or remove it by hand"
    if leftover.kept_for and not kept and not _is_read(leftover.kept_for):
        return False, (
            f"waits to be read: pffbench run --resume {leftover.kept_for} --stage read; "
            "--kept removes it all the same"
        )
    return True, fate.why


def _is_read(results: str) -> bool:
    """Whether the run that the files were kept for has come to its end."""
    try:
        return RunRecord.load(results).status == "finished"
    except ValueError:
        return False


def remove(judgement: Judged) -> str | None:
    """Remove a directory that may be removed; say why if that failed.

    Its marker is looked at once more: the run may have been gone on with meanwhile. No symbolic
    link is followed. The directory of a job around it goes too when nothing else is in it.
    """
    assert judgement.removable
    leftover = judgement.leftover
    if leftover_at(leftover.path) != [leftover]:
        return "its marker has changed meanwhile"
    try:
        Scratch(leftover.path, leftover.run_id).destroy()
    except (OSError, UserError) as error:
        return one_line(str(error))
    except RecursionError:
        return "directories in it are nested too deeply"
    around = Path(leftover.path).parent
    if around.name.startswith(JOB_PREFIX):
        with suppress(OSError):
            around.rmdir()
    return None
