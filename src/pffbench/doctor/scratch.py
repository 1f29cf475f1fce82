"""The scratch directory: its file system, and a test directory of the doctor."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pffbench.doctor.finding import Finding, Findings, ok, problem, unknown, warning
from pffbench.doctor.subject import Subject
from pffbench.errors import UserError
from pffbench.provenance.mpiio import longest_path
from pffbench.storage.filesystem import FileSystem, filesystem
from pffbench.storage.scratch import Scratch, scratch_parent
from pffbench.units import Size

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


def check_file_system(subject: Subject) -> Findings:
    """Kind and room of the file system under test."""
    yield from judge_file_system(filesystem(subject.scratch), len(set(subject.nodes)))


def judge_file_system(there: FileSystem, nodes: int) -> Findings:
    """Report the kind of a file system and whether it has enough space for a job of some nodes."""
    kind = kind_of(there)
    text = f"{there.path} is on {there.type} ({kind}), mounted at {there.mount_point}"
    yield _judge_kind(kind, text, nodes)
    yield from _judge_room(there)
    if there.striping is not None:
        made = unknown if there.striping.startswith("unknown") else ok
        yield made(f"striping: {' '.join(there.striping.split())}")


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


def check_directory(subject: Subject) -> Findings:
    """Whether all nodes see the same directory, and the page cache can be dropped there."""
    if subject.blind:
        yield problem(
            f"not the same directory on {', '.join(subject.blind)} as on rank 0",
            "choose a directory that all nodes share with --scratch",
        )
    kept = subject.kept_in_cache
    if kept is None:
        return
    in_memory = filesystem(subject.scratch).in_memory
    if in_memory or kept > 0:
        reason = "the files live in memory" if in_memory else f"{kept:.0%} of a file stayed"
        yield warning(
            f"the page cache cannot be dropped here: {reason}",
            "leave cache: dropped out, name a --drop-hook, or choose another directory",
        )
    else:
        yield ok("the page cache of a file can be dropped (cache: dropped works)")


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
