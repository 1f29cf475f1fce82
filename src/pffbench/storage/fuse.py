"""What a FUSE mount really is: the kernel calls every one of them `fuse`."""

from __future__ import annotations

import re

# A program that serves a mount names itself as the subtype, `fuse.sshfs`. One that does not can be
# known by the device that it gives, which is free text. A bare word is not enough: some give the
# name of a bucket.
_FUSE = re.compile(r"fuse(blk)?(\.(?P<subtype>.+))?")
# What libfuse makes of a subtype where the kernel is told only a device.
_SUBTYPE_IN_DEVICE = re.compile(r"(?P<subtype>[A-Za-z][A-Za-z0-9._-]*)#")
_DEVICES = {
    "JuiceFS:": "juicefs",
    "quobyte@": "quobyte",
}
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
    """Name a file system by what serves it.

    Parameters
    ----------
    kernel_type, device : str
        Type and source of the mount as /proc/self/mountinfo lists them, unescaped.

    Returns
    -------
    str
        The kernel's type where this is no FUSE mount, or nothing tells what it is. Else what
        the subtype or the device tells, such as ``sshfs`` for ``fuse.sshfs``, and ``moosefs`` for
        ``fuse`` with the device ``mfs#host:9421``. LizardFS names itself like MooseFS, of which
        it is a copy.
    """
    fuse = _FUSE.fullmatch(kernel_type)
    if fuse is None:
        return kernel_type
    subtype = fuse["subtype"]
    if subtype is None and (legacy := _SUBTYPE_IN_DEVICE.match(device)):
        subtype = legacy["subtype"]
    if subtype is not None:
        return _KNOWN_AS.get(subtype, subtype)
    for start, name in _DEVICES.items():
        if device.startswith(start):
            return name
    return _PROGRAMS.get(device, kernel_type)
