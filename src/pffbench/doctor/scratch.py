"""The scratch directory: its file system, and a test directory of the doctor."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pffbench.doctor.finding import Finding, Findings, ok, problem, unknown, warning
from pffbench.errors import UserError
from pffbench.parallel.watchdog import Watchdog
from pffbench.provenance.mpiio import longest_path
from pffbench.storage.filesystem import FileSystem
from pffbench.storage.scratch import Scratch, scratch_parent
from pffbench.units import Size

TOPIC = "Scratch"

_PARALLEL = {
    "lustre", "gpfs", "beegfs", "ceph", "wekafs", "panfs", "pvfs2", "orangefs", "daos", "dvs",
    "moosefs", "glusterfs", "ceph-fuse", "juicefs", "quobyte",
}  # fmt: skip
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "9p", "afs", "sshfs"}
_NETWORK |= {"s3fs", "mountpoint-s3", "gcsfuse", "rclone", "blobfuse", "blobfuse2"}
_LITTLE_SPACE = Size(2**30)
_FEW_FILES = 10_000


def kind_of(there: FileSystem) -> str:
    """Return the kind of a file system in one word."""
    if there.in_memory:
        return "in memory"
    if there.type in _PARALLEL:
        return "parallel"
    if there.kernel_type.startswith("fuse") and there.type not in _NETWORK:
        return "FUSE, of a kind that is not known here"
    return "network" if there.type in _NETWORK else "local"


def judge_filesystem(there: FileSystem, nodes: int) -> Findings:
    """Report the kind of the file system under test and whether it has enough space.

    Parameters
    ----------
    there : FileSystem
        The file system of the scratch directory.
    nodes : int
        Number of nodes of the job.
    """
    kind = kind_of(there)
    text = f"{there.path} is on {there.type} ({kind}), mounted at {there.mount_point}"
    yield _judge_kind(kind, text, nodes)
    yield from _judge_room(there)
    if there.striping is not None:
        made = unknown if there.striping.startswith("unknown") else ok
        yield made(f"striping: {' '.join(there.striping.split())}")


def judge_results(same: bool) -> Findings:
    """Note when results, which go below the working directory, share the file system."""
    if same:
        text = "results below the working directory go to the file system under test, off the timer"
        yield ok(f"{text}; --out puts them elsewhere")


def judge_sight(blind: list[str], first: str) -> Findings:
    """Report whether all nodes see the same directory.

    Parameters
    ----------
    blind : list of str
        Hosts that do not see the directory.
    first : str
        The host that created it.
    """
    if blind:
        yield problem(
            f"not the same directory on {', '.join(blind)} as on {first}",
            "choose a directory that all nodes share with --scratch",
        )


def judge_refusal(error: Exception) -> Finding:
    """Report why no file can be created there."""
    remedy = "name a directory that exists and is writable with --scratch"
    return problem(str(error), remedy)


def judge_eviction(fraction: float, in_memory: bool) -> Finding:
    """Report whether the page cache can be dropped, so that a read comes from the device.

    Parameters
    ----------
    fraction : float
        Part of a small file that stayed in the page cache after it was evicted.
    in_memory : bool
        Whether the file system lives in memory.
    """
    if in_memory or fraction > 0:
        reason = "the files live in memory" if in_memory else f"{fraction:.0%} of a file stayed"
        return warning(
            f"the page cache cannot be dropped here: {reason}",
            "leave cache: dropped out, name a --drop-hook, or choose another directory",
        )
    return ok("the page cache of a file can be dropped (cache: dropped works)")


def _judge_kind(kind: str, text: str, nodes: int) -> Finding:
    choose = "name a directory on the file system that you want to measure with --scratch"
    if kind == "in memory":
        return warning(f"{text}: this measures memory, not storage", choose)
    if kind == "network":
        text += ": nodes may see each other's writes late, and shared files are slow"
        return warning(text, choose)
    if kind == "local" and nodes > 1:
        return warning(f"{text}, but the job has {nodes} nodes", choose)
    return ok(text)


def _judge_room(there: FileSystem) -> Findings:
    free, total = Size(there.free_bytes), Size(there.total_bytes)
    text = f"{free} of {total} free"
    little = free < _LITTLE_SPACE
    if there.free_inodes is not None:
        text += f", room for {there.free_inodes} files"
        little = little or there.free_inodes < _FEW_FILES
    if little:
        remedy = "make room, or choose another directory with --scratch"
        yield warning(f"only {text}", remedy)
    else:
        yield ok(f"{text} (a quota is not seen)")


#: Bytes of the longest path of a file in such a directory, and ranks that may open one.
_LONGEST_NAME = 64
_MOST_RANKS = 10**6


@contextmanager
def own_directory(given: str | None) -> Iterator[Scratch]:
    """Create a scratch directory for one process or rank 0, and remove it in any case.

    The default parent is created too and, when it did not exist before, removed again.

    Raises
    ------
    UserError
        The directory cannot be created, or has been replaced.
    OSError
        Something in it cannot be removed.
    """
    parent, ours = scratch_parent(given)
    there_before = Path(parent).exists()
    run_id = f"doctor-{os.getpid()}-{time.time_ns():x}"
    longest = longest_path(os.environ, _MOST_RANKS)
    length = len(os.fsencode(os.path.realpath(parent))) + len(run_id) + _LONGEST_NAME
    if longest is not None and length > longest:
        raise UserError(
            f"{parent} is too long by {length - longest} bytes: Open MPI crashes at paths of more "
            f"than {longest} bytes; choose a shorter directory or set OMPI_MCA_sharedfp=individual"
        )
    scratch = Scratch.create(parent, run_id, create_parent=ours)
    try:
        yield scratch
    finally:
        scratch.destroy()
        if ours and not there_before:
            with suppress(OSError):  # another run has put something into it meanwhile
                Path(parent).rmdir()


#: File in which rank 0 leaves the findings so far for the case that a check never returns.
_UNFINISHED = "unfinished.txt"


@contextmanager
def limited(
    watchdog: Watchdog, scratch: Scratch, seconds: float, findings: str | None
) -> Iterator[None]:
    """Limit the time of the ``with`` block, in which libraries make collective calls.

    When one rank does not take part in such a call, the others wait in it for ever.

    Parameters
    ----------
    watchdog : Watchdog
        Ends the ranks after that time; its command is `last_command`.
    scratch : Scratch
        The directory of the doctor.
    seconds : float
        The time limit.
    findings : str, optional
        What is printed then; given on rank 0.
    """
    if findings is not None:
        Path(scratch.path(_UNFINISHED)).write_text(findings, encoding="utf-8")
    watchdog.begin("pffbench doctor", seconds)
    yield
    watchdog.begin("", math.inf)


def last_command(scratch: Scratch) -> list[str]:
    """Return the command that prints the findings so far and removes the scratch directory."""
    return [sys.executable, "-P", "-m", __name__, scratch.directory, scratch.run_id]


if __name__ == "__main__":  # rank 0 hangs; see `last_command`
    left = Scratch(sys.argv[1], sys.argv[2])
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    print(Path(left.path(_UNFINISHED)).read_text(encoding="utf-8"))
    left.destroy()
