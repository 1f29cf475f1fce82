"""The file system of a path: type, mount options, free space, quota, striping."""

from __future__ import annotations

import errno
import os
import re
import resource
import shutil
from pathlib import Path

import msgspec

from pffbench.errors import UserError, explained
from pffbench.tools import run_tool
from pffbench.units import Size

_MEMORY_TYPES = {"tmpfs", "ramfs"}
_OCTAL = r"\\([0-7]{3})"
_STRIPING_COMMANDS = {
    "lustre": [["lfs", "getstripe", "-d"]],
    "gpfs": [["mmlsattr", "-L"]],
    "beegfs": [["beegfs-ctl", "--getentryinfo"], ["beegfs", "entry", "info"]],
}
_ADMIN_DIRECTORIES = "/usr/lpp/mmfs/bin:/opt/beegfs/sbin"  # seldom on a user's PATH
_STRIPING_CHARACTERS = 2000


class FileSystem(msgspec.Struct, frozen=True):
    """The file system that holds a path."""

    #: The given path, absolute and without symbolic links.
    path: str
    #: As the kernel lists the mount; options of the mount and of the file system together.
    mount_point: str
    device: str
    #: The kernel's type, except that a FUSE mount is named after the file system that serves it.
    type: str
    kernel_type: str
    options: str
    #: Size, and the space available to the user (without the blocks reserved for root). A quota is
    #: not included.
    total_bytes: int
    free_bytes: int
    #: Files that can still be created; None where the file system does not count them.
    free_inodes: int | None
    #: Bytes of the preferred I/O unit as statvfs(3) gives it.
    block_size: int
    #: Whether the files live in memory, so that their pages cannot be evicted.
    in_memory: bool
    #: Placement of the data as the file system's own tool prints it, or why there is none; None for
    #: a type that is not known to stripe.
    striping: str | None


class Mount(msgspec.Struct, frozen=True):
    """One line of /proc/self/mountinfo."""

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
    space = os.statvfs(existing)  # first: it makes an automounter mount the file system
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
    """Query the placement of a path's data with the file system's own tool.

    Parameters
    ----------
    fs_type : str
        The type as the kernel names it, such as ``lustre``.
    path : str
        An existing file or directory.
    timeout : float
        Time limit of the tool in seconds.

    Returns
    -------
    str or None
        The tool's output (or why there is none), None for types without such a tool.
    """
    commands = _STRIPING_COMMANDS.get(fs_type)
    if commands is None:
        return None
    search = os.pathsep.join([os.environ.get("PATH", os.defpath), _ADMIN_DIRECTORIES])
    for name, *arguments in commands:
        program = shutil.which(name, path=search)
        if program is not None:
            return run_tool([program, *arguments, path], timeout).text[:_STRIPING_CHARACTERS]
    return f"unknown: {' and '.join(command[0] for command in commands)} not found"


def parse_mountinfo(text: str) -> dict[int, Mount]:
    """Read the text of /proc/self/mountinfo by numbers of mounts; later mounts come later.

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
    """Query the kernel for the mount, which is right for bind mounts and stacked mounts too."""
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
    unknown = Mount("unknown", "unknown", "unknown", "")
    # Of mounts on one point the last covers the others, hence the reversed order.
    return max(reversed(above), key=lambda mount: len(mount.mount_point), default=unknown)


def _unescape(field: str) -> str:
    return re.sub(_OCTAL, lambda match: chr(int(match[1], 8)), field)


# A program that serves a mount names itself as the subtype, `fuse.sshfs`. Otherwise the device that
# it gives may identify it, which is free text. A bare word is not enough: some give the name of a
# bucket.
_FUSE = r"fuse(blk)?(\.(?P<subtype>.+))?"
# The subtype that libfuse sets where the kernel receives only a device.
_SUBTYPE_IN_DEVICE = r"(?P<subtype>[A-Za-z][A-Za-z0-9._-]*)#"
_DEVICES = {"JuiceFS:": "juicefs", "quobyte@": "quobyte"}
_PROGRAMS = {
    name: name
    for name in ("blobfuse", "blobfuse2", "ceph-fuse", "gcsfuse", "mountpoint-s3", "rclone", "s3fs")
} | {"cvmfs2": "cvmfs", "dfuse": "daos", "pvfs2fuse": "orangefs"}
# Where the subtype is the name of a program and not that of the file system.
_KNOWN_AS = {
    "mfs": "moosefs",
    "mfsmount": "moosefs",
    "dfuse": "daos",
    "cvmfs2": "cvmfs",
    "pvfs2fuse": "orangefs",
    "glusterfs-fuse": "glusterfs",
}


def real_type(kernel_type: str, device: str) -> str:
    """Name a file system by the program or service behind it.

    Parameters
    ----------
    kernel_type, device : str
        Type and source of the mount as /proc/self/mountinfo lists them, unescaped.

    Returns
    -------
    str
        The kernel's type where this is no FUSE mount, or nothing identifies it. Else the type
        from the subtype or the device, such as ``sshfs`` for ``fuse.sshfs``, and ``moosefs`` for
        ``fuse`` with the device ``mfs#host:9421``. LizardFS, a fork of MooseFS, names itself
        like MooseFS.
    """
    fuse = re.fullmatch(_FUSE, kernel_type)
    if fuse is None:
        return kernel_type
    subtype = fuse["subtype"]
    if subtype is None and (legacy := re.match(_SUBTYPE_IN_DEVICE, device)):
        subtype = legacy["subtype"]
    if subtype is not None:
        return _KNOWN_AS.get(subtype, subtype)
    for start, name in _DEVICES.items():
        if device.startswith(start):
            return name
    return _PROGRAMS.get(device, kernel_type)


#: Unit of both tools for space, in bytes.
_UNIT = 1024


class Quota(msgspec.Struct, frozen=True):
    """The remainder of a quota."""

    #: Bytes and files; None without a limit.
    space: int | None
    files: int | None


def quota_left(there: FileSystem, timeout: float = 5.0) -> Quota | None:
    """Query the user's remaining quota; None where there is no tool, or no answer.

    Only the user's own quota is queried, not that of a group, a project or a directory.

    Parameters
    ----------
    there : FileSystem
        The file system.
    timeout : float
        Time limit of the tool in seconds.
    """
    user = str(os.getuid())
    if there.type == "lustre":
        name, options = "lfs", ["quota", "-q", "-u", user, there.mount_point]
    else:
        # Numbers only, one line per mount: without these options a missing grace time is a gap.
        name = "quota"
        options = ["--user", "--raw-grace", "--no-wrap", "--show-mntpoint", "--hide-device", user]
    answer = run_tool([name, *options], timeout)
    return parsed(answer.text, there.mount_point) if answer.ok else None


def parsed(text: str, mount_point: str) -> Quota | None:
    """Parse the output of ``lfs quota`` and ``quota`` for a mount.

    After the mount's name follow: space used, soft limit, hard limit, grace time, and the same
    for files. An asterisk marks an exceeded limit, brackets a number that is not exact, and a
    limit of 0 is none.
    """
    words = text.split()
    if mount_point not in words:
        return None
    row = words[words.index(mount_point) + 1 :][:8]
    numbers = [word.strip("*[]") for word in row]
    if len(numbers) < 8 or not all(numbers[i].isdecimal() for i in (0, 2, 4, 6)):
        return None
    space, most_space, files, most_files = (int(numbers[i]) for i in (0, 2, 4, 6))
    return Quota(
        _UNIT * max(most_space - space, 0) if most_space else None,
        max(most_files - files, 0) if most_files else None,
    )


def check_parent(parent: Path, may_be_made: bool) -> None:
    """Refuse a directory in which no directory can be created.

    Parameters
    ----------
    parent : Path
        The directory, with links resolved.
    may_be_made : bool
        Whether it may be created, and so need not exist.

    Raises
    ------
    UserError
        It cannot be reached, is missing, is no directory, or is not writable.
    """
    with explained(f"the scratch parent {parent} cannot be reached"):
        nearest = Path(nearest_existing(str(parent)))
    if not nearest.is_dir():
        raise UserError(f"the scratch parent {parent} cannot be used: {nearest} is not a directory")
    if nearest != parent and not may_be_made:
        raise UserError(
            f"the scratch parent {parent} does not exist "
            f"(the nearest directory that does is {nearest})"
        )
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise UserError(f"the scratch parent {nearest} is not writable")


_WHY = "ranks that share a file through parallel HDF5 may wait for ever when it finds no room"


def require_room(directory: str | None, space: int, longest: int) -> None:
    """Check that files can be written.

    Parameters
    ----------
    directory : str or None
        Where they will be; None where another rank queries the file system.
    space : int
        Bytes that all of them need.
    longest : int
        Bytes of the longest file.

    Raises
    ------
    OSError
        The space is insufficient, or a process may not write so long a file (``ulimit -f``).
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if limit != resource.RLIM_INFINITY and limit < longest:
        raise OSError(
            errno.EFBIG,
            f"{os.strerror(errno.EFBIG)}: the file needs about {Size(longest)}, of which "
            f"{Size(limit)} are allowed (ulimit -f); {_WHY}, so it is not begun",
        )
    if directory is None:
        return
    there = os.statvfs(directory)
    free = there.f_bavail * there.f_frsize
    if free < space:
        raise OSError(
            errno.ENOSPC,
            f"{os.strerror(errno.ENOSPC)}: the file needs about {Size(space)}, and {Size(free)} "
            f"are free in {directory}; {_WHY}, so it is not begun",
        )
