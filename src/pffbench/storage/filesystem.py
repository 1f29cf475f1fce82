"""Which file system holds a path: type, mount options, free space, striping."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from pffbench.programs import ask
from pffbench.storage.fuse import real_type

_MEMORY_TYPES = {"tmpfs", "ramfs"}
_OCTAL = re.compile(r"\\([0-7]{3})")
_STRIPING_COMMANDS = {
    "lustre": [["lfs", "getstripe", "-d"]],
    "gpfs": [["mmlsattr", "-L"]],
    "beegfs": [["beegfs-ctl", "--getentryinfo"], ["beegfs", "entry", "info"]],
}
_ADMIN_DIRECTORIES = "/usr/lpp/mmfs/bin:/opt/beegfs/sbin"  # seldom on a user's PATH
_STRIPING_CHARACTERS = 2000


@dataclass(frozen=True)
class FileSystem:
    """The file system that holds a path.

    Attributes
    ----------
    path : str
        The path that was asked about, absolute and without symbolic links.
    mount_point, device, kernel_type, options : str
        As the kernel lists the mount; options of the mount and of the file system together.
    type : str
        What it is: the kernel's type, save that a FUSE mount is named by what serves it.
    total_bytes, free_bytes : int
        Size, and what the user may still take (without the blocks reserved for root). A quota is
        not seen.
    free_inodes : int or None
        Files that can still be made; None where the file system does not count them.
    block_size : int
        Bytes of the preferred I/O unit as statvfs(3) gives it.
    in_memory : bool
        The files live in memory, so their pages cannot be evicted.
    striping : str or None
        What the file system's own tool says about the placement of the data, or why it said
        nothing; None for a type that is not known to stripe.
    """

    path: str
    mount_point: str
    device: str
    type: str
    kernel_type: str
    options: str
    total_bytes: int
    free_bytes: int
    free_inodes: int | None
    block_size: int
    in_memory: bool
    striping: str | None


@dataclass(frozen=True)
class Mount:
    """One line of /proc/self/mountinfo."""

    number: int
    mount_point: str
    device: str
    type: str
    options: str


def filesystem(path: str) -> FileSystem:
    """Describe the file system that holds a path.

    Parameters
    ----------
    path : str
        A file or directory; where it does not exist yet, its nearest existing ancestor counts.

    Raises
    ------
    OSError
        The path cannot be reached.
    """
    existing = nearest_existing(path)
    space = os.statvfs(existing)  # first: it makes an automounter mount what is asked about
    mount = _mount_of(existing)
    fs_type = real_type(mount.type, mount.device)
    return FileSystem(
        path=os.path.realpath(path),
        mount_point=mount.mount_point,
        device=mount.device,
        type=fs_type,
        kernel_type=mount.type,
        options=mount.options,
        total_bytes=space.f_blocks * space.f_frsize,
        free_bytes=space.f_bavail * space.f_frsize,
        free_inodes=space.f_favail if space.f_files else None,
        block_size=space.f_bsize,
        in_memory=fs_type in _MEMORY_TYPES,
        striping=striping(fs_type, existing),
    )


def same_filesystem(a: str, b: str) -> bool:
    """Whether two paths lie on one file system (same device number).

    Paths that do not exist yet count as their nearest existing ancestor.
    """
    return Path(nearest_existing(a)).stat().st_dev == Path(nearest_existing(b)).stat().st_dev


def nearest_existing(path: str) -> str:
    """Return the path itself or the nearest of its ancestors that exists, links resolved.

    Raises
    ------
    OSError
        The path cannot be reached, such as for links that lead to each other.
    """
    real = Path(os.path.realpath(path))
    if real.is_symlink():  # which is left over where links go round in a circle
        real.stat()
    return str(next(step for step in (real, *real.parents) if step.exists()))


def striping(fs_type: str, path: str, timeout: float = 5.0) -> str | None:
    """Ask the file system's own tool how it places the data of a path.

    Parameters
    ----------
    fs_type : str
        The type as the kernel names it, such as ``lustre``.
    path : str
        An existing file or directory.
    timeout : float
        Seconds that the tool may take.

    Returns
    -------
    str or None
        What the tool printed (or why it printed nothing), None for types without such a tool.
    """
    commands = _STRIPING_COMMANDS.get(fs_type)
    if commands is None:
        return None
    search = os.pathsep.join([os.environ.get("PATH", os.defpath), _ADMIN_DIRECTORIES])
    for name, *arguments in commands:
        program = shutil.which(name, path=search)
        if program is not None:
            return ask([program, *arguments, path], timeout).text[:_STRIPING_CHARACTERS]
    return f"unknown: {' and '.join(command[0] for command in commands)} not found"


def parse_mountinfo(text: str) -> dict[int, Mount]:
    """Read the text of /proc/self/mountinfo; later mounts come later.

    The fields are those of proc(5): an optional part of unknown length ends with a lone ``-``,
    and blanks inside a field are written in octal.
    """
    mounts = {}
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        number, _, _, _, mount_point, options, *_ = before.split(" ")
        fs_type, device, super_options = [*after.split(" "), "", ""][:3]
        together = dict.fromkeys(options.split(",") + super_options.split(","))
        mounts[int(number)] = Mount(
            int(number),
            _unescape(mount_point),
            _unescape(device),
            fs_type,
            ",".join(option for option in together if option),
        )
    return mounts


def _mount_of(existing: str) -> Mount:
    mounts = parse_mountinfo(Path("/proc/self/mountinfo").read_text(errors="surrogateescape"))
    return mounts.get(_mount_number(existing)) or _longest_match(mounts, existing)


def _mount_number(existing: str) -> int:
    """Ask the kernel for the mount, which is right for bind mounts and mounts over mounts too."""
    fd = os.open(existing, os.O_PATH | os.O_CLOEXEC)
    try:
        fields = Path(f"/proc/self/fdinfo/{fd}").read_text().split()
    finally:
        os.close(fd)
    return int(fields[fields.index("mnt_id:") + 1])


def _longest_match(mounts: dict[int, Mount], existing: str) -> Mount:
    """Find the mount by its name, for a mount that is hidden from this process (a chroot)."""
    real = Path(os.path.realpath(existing))
    above = [mount for mount in mounts.values() if real.is_relative_to(mount.mount_point)]
    unknown = Mount(0, "unknown", "unknown", "unknown", "")
    # Of mounts on one point the last covers the others, hence the reversed order.
    return max(reversed(above), key=lambda mount: len(mount.mount_point), default=unknown)


def _unescape(field: str) -> str:
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), field)
