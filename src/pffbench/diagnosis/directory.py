"""The file system of the scratch directory."""

from __future__ import annotations

from collections.abc import Iterator

from pffbench.diagnosis.finding import Finding
from pffbench.storage.filesystem import FileSystem
from pffbench.units import Size

TOPIC = "Scratch"

_PARALLEL = {
    "lustre",
    "gpfs",
    "beegfs",
    "ceph",
    "wekafs",
    "panfs",
    "pvfs2",
    "orangefs",
    "daos",
    "dvs",
}
_PARALLEL |= {"moosefs", "glusterfs", "ceph-fuse", "juicefs", "quobyte"}
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "9p", "afs", "sshfs"}
_NETWORK |= {"s3fs", "mountpoint-s3", "gcsfuse", "rclone", "blobfuse", "blobfuse2"}
_LITTLE_SPACE = Size(2**30)
_FEW_FILES = 10_000


def kind_of(there: FileSystem) -> str:
    """Say in one word what kind of file system this is."""
    if there.in_memory:
        return "in memory"
    if there.type in _PARALLEL:
        return "parallel"
    if there.kernel_type.startswith("fuse") and there.type not in _NETWORK:
        return "FUSE, of a kind that is not known here"
    return "network" if there.type in _NETWORK else "local"


def judge_filesystem(there: FileSystem, nodes: int) -> Iterator[Finding]:
    """Tell what kind of file system is under test and whether there is room on it.

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
        unknown = there.striping.startswith("unknown")
        words = " ".join(there.striping.split())
        yield Finding(TOPIC, "unknown" if unknown else "ok", f"striping: {words}")


def judge_results(same: bool) -> Iterator[Finding]:
    """Note when results, which go below the working directory, share the file system."""
    if same:
        text = "results below the working directory go to the file system under test, off the timer"
        yield Finding(TOPIC, "ok", f"{text}; --out puts them elsewhere")


def judge_sight(blind: list[str], first: str) -> Iterator[Finding]:
    """Tell whether all nodes see the same directory.

    Parameters
    ----------
    blind : list of str
        Hosts that do not see what the first one made.
    first : str
        The host that made it.
    """
    if blind:
        yield Finding(
            TOPIC,
            "problem",
            f"not the same directory on {', '.join(blind)} as on {first}",
            "choose a directory that all nodes share with --scratch",
        )


def judge_refusal(error: Exception) -> Finding:
    """Tell why no file can be made there."""
    remedy = "name a directory that exists and is writable with --scratch"
    return Finding(TOPIC, "problem", str(error), remedy)


def judge_eviction(fraction: float, in_memory: bool) -> Finding:
    """Tell whether the page cache can be dropped, so that a read comes from the device.

    Parameters
    ----------
    fraction : float
        Part of a small file that stayed in the page cache after it was evicted.
    in_memory : bool
        Whether the file system lives in memory.
    """
    if in_memory or fraction > 0:
        reason = "the files live in memory" if in_memory else f"{fraction:.0%} of a file stayed"
        return Finding(
            TOPIC,
            "warning",
            f"the page cache cannot be dropped here: {reason}",
            "leave cache: dropped out, name a --drop-hook, or choose another directory",
        )
    return Finding(TOPIC, "ok", "the page cache of a file can be dropped (cache: dropped works)")


def _judge_kind(kind: str, text: str, nodes: int) -> Finding:
    choose = "name a directory on the file system that you want to measure with --scratch"
    if kind == "in memory":
        return Finding(TOPIC, "warning", f"{text}: this measures memory, not storage", choose)
    if kind == "network":
        text += ": nodes may see each other's writes late, and shared files are slow"
        return Finding(TOPIC, "warning", text, choose)
    if kind == "local" and nodes > 1:
        return Finding(TOPIC, "warning", f"{text}, but the job has {nodes} nodes", choose)
    return Finding(TOPIC, "ok", text)


def _judge_room(there: FileSystem) -> Iterator[Finding]:
    free, total = Size(there.free_bytes), Size(there.total_bytes)
    text = f"{free} of {total} free"
    little = free < _LITTLE_SPACE
    if there.free_inodes is not None:
        text += f", room for {there.free_inodes} files"
        little = little or there.free_inodes < _FEW_FILES
    if little:
        remedy = "make room, or choose another directory with --scratch"
        yield Finding(TOPIC, "warning", f"only {text}", remedy)
    else:
        yield Finding(TOPIC, "ok", f"{text} (a quota is not seen)")
