"""`pffbench clean`: list and remove scratch directories that killed runs left."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from pffbench.errors import NOT_VALID, VALID, UserError, explained
from pffbench.record.run_json import RunRecord, readable
from pffbench.results.rerun import command_to_resume
from pffbench.storage.durability import DiskUsage, disk_usage
from pffbench.storage.ownership import Leftover, clock_of, find_leftovers, leftover_at
from pffbench.storage.scratch import Scratch, scratch_parent
from pffbench.text import one_line, without_digests
from pffbench.units import Size, duration_text

#: What a run makes in its scratch directory: a directory for each repetition, its marker and
#: probes. The names of NFS are those of removed files that a process still has open.
_OF_RUN = re.compile(r"\d{4,}-|\.pffbench-|\.nfs")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "--scratch",
        metavar="DIR",
        help="scratch directory of the runs (default: $PFFBENCH_SCRATCH, $SCRATCH or "
        "./pffbench-scratch) (example: --scratch /lustre/me)",
    )
    parser.add_argument(
        "--remove",
        action="store_true",
        help="remove the files of runs that have certainly ended",
    )
    parser.add_argument(
        "--kept",
        action="store_true",
        help="include files that a job with --stage write keeps for another job to read",
    )


def main(arguments: argparse.Namespace) -> int:
    """List leftovers, and remove unneeded ones on request. Return the exit status."""
    parent, _ = scratch_parent(arguments.scratch)
    found = list(find_stale_scratch(parent, kept=arguments.kept))
    status = VALID
    for one in found:
        # Any user may have named the directory and written its marker.
        print(one_line(_scratch_line(one)))
        why = one_line(one.why)
        if not one.removable:
            print(f"  stays: {why}")
        elif not arguments.remove:
            print(f"  can go: {why}")
        elif trouble := remove(one):
            print(f"  could not be removed: {trouble}")
            status = NOT_VALID
        else:
            print(f"  removed: {why}")
    for line in _ending(found, parent, arguments.remove):
        print(line)
    return status


def _scratch_line(one: StaleScratch) -> str:
    size = "unreadable"
    if one.usage is not None:
        size = f"{Size(one.usage.stored)} in {one.usage.files - 1} files"  # without the marker
    age = "of unknown age" if one.age is None else f"{duration_text(one.age)} old"
    return f"{one.leftover.path}: {size}, {age}, run {one.leftover.run_id}, {one.leftover.holder}"


def _ending(found: list[StaleScratch], parent: str, removed: bool) -> Iterator[str]:
    if not found:
        yield f"no run has left anything in {parent}"
        return
    going = [one for one in found if one.removable]
    size = Size(sum(one.usage.stored for one in going if one.usage is not None))
    if going and not removed:
        yield f"{len(going)} of {len(found)} can go, {size}; nothing was removed: add --remove"


class StaleScratch(msgspec.Struct, frozen=True):
    """A scratch directory, and whether it may be removed."""

    #: Contents of its marker.
    leftover: Leftover
    #: Size of its contents; None when it cannot be read.
    usage: DiskUsage | None
    #: Whether it is unneeded, as far as can be known.
    removable: bool
    #: How that is known, or why it stays.
    why: str

    @property
    def age(self) -> float | None:
        """Seconds since its marker was written; None when the marker has no time."""
        try:
            written = datetime.fromisoformat(self.leftover.holder.date)
            return (datetime.now(UTC) - written).total_seconds()
        except (TypeError, ValueError, OverflowError):
            return None


def find_stale_scratch(parent: str, *, kept: bool) -> Iterator[StaleScratch]:
    """Yield the marked directories of a scratch parent, each with a judgement.

    Parameters
    ----------
    parent : str
        The parent of the runs' directories.
    kept : bool
        Whether files that another job will read may be removed too.

    Raises
    ------
    UserError
        The parent cannot be read.
    """
    with explained(f"--scratch {parent}: cannot be read"):
        found = find_leftovers(parent)
    now = clock_of(parent) if found else 0.0
    for leftover in found:
        removable, why = _judge(leftover, kept, now)
        try:
            usage = disk_usage([leftover.path])
        except OSError:
            usage = None
        yield StaleScratch(leftover, usage, removable, why)


def _judge(leftover: Leftover, kept: bool, now: float) -> tuple[bool, str]:
    fate = leftover.holder.fate(now - leftover.touched)
    if fate.state == "runs":
        return False, f"in use: {fate.why}"
    if fate.state == "unknown":
        return False, f"may be in use: {fate.why}; clean it there, or remove it by hand"
    if leftover.kept_for and not kept and (need := _need_of(leftover.kept_for)):
        return False, need
    if name := _foreign_name(leftover):
        return False, f"no run makes {name}, which is in it; move it away, or remove it by hand"
    return True, fate.why


def _need_of(results: str) -> str:
    """Return for what a run needs its files, and the command; empty if it has ended."""
    anyway = "--kept removes it all the same"
    try:
        with readable(results):
            record = RunRecord.load(results)
            if record.status == "finished":
                return ""
            if record.status == "written" or record.stage == "read":
                command = command_to_resume(record, results, "--stage", "read")
                return f"waits to be read ({anyway}): {command}"
            again = command_to_resume(record, results)
            return f"not everything is written ({anyway}): {again}"
    except UserError:
        return f"kept for {results}, where no run can be read; {anyway}"


def _foreign_name(leftover: Leftover) -> str:
    """Return the first name in a run's directory that no run makes; empty if there is none."""
    if leftover.run_id.startswith("doctor-"):  # whose trials have names of their own
        return ""
    try:
        names = sorted(path.name for path in Path(leftover.path).iterdir())
    except OSError:  # which is reported where it is removed
        return ""
    return next((name for name in names if not _OF_RUN.match(name)), "")


def remove(judgement: StaleScratch) -> str | None:
    """Remove a directory that may be removed; return the reason if that failed.

    Its marker is checked once more: the run may have been resumed meanwhile. No symbolic link is
    followed.
    """
    assert judgement.removable
    leftover = judgement.leftover
    if leftover_at(leftover.path) != [leftover]:
        return "its marker has changed meanwhile"
    try:
        Scratch(leftover.path, leftover.run_id).destroy()
    except (OSError, UserError) as error:
        return one_line(without_digests(str(error)))
    except RecursionError:
        return "directories in it are nested too deeply"
    return None
