"""What a user's quota leaves on a file system, where its tool tells."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass

from pffbench.programs import ask
from pffbench.storage.filesystem import FileSystem

#: Both tools count space in units of so many bytes.
_UNIT = 1024


@dataclass(frozen=True)
class Quota:
    """What is left of a quota.

    Parameters
    ----------
    space, files : int or None
        Bytes and files; None without a limit.
    """

    space: int | None
    files: int | None


def quota_left(there: FileSystem, timeout: float = 5.0) -> Quota | None:
    """Ask what the user may still store; None where there is no tool, or no answer.

    Only the user's own quota is seen, not that of a group, a project or a directory.

    Parameters
    ----------
    there : FileSystem
        Where.
    timeout : float
        Seconds that the tool may take.
    """
    user = str(os.getuid())
    if there.type == "lustre":
        name, options = "lfs", ["quota", "-q", "-u", user, there.mount_point]
    else:
        # As numbers only, a mount a line: without these options a missing grace time is a gap.
        name = "quota"
        options = ["--user", "--raw-grace", "--no-wrap", "--show-mntpoint", "--hide-device", user]
    program = shutil.which(name)
    if program is None:
        return None
    answer = ask([program, *options], timeout)
    return parsed(answer.text, there.mount_point) if answer.ok else None


def parsed(text: str, mount_point: str) -> Quota | None:
    """Read what ``lfs quota`` and ``quota`` print of a mount.

    Behind the mount's name stand: space used, soft limit, hard limit, grace time, and the same of
    files. An asterisk marks a limit that is passed, brackets a number that is not exact, and a
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
