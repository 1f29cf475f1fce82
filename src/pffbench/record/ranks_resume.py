"""The `ranks.h5` of a resumed run: a new file with all that can be read of the old one.

HDF5 crashes when it appends to a damaged file, so the old file is never opened here. It is read in
a separate process, and kept under another name unless all of it could be read.
"""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

from pffbench.record.ranks import METADATA, allocate, make_dataset, put_hosts
from pffbench.record.ranks_reader import RanksContents, UnreadableCase, read_ranks_file
from pffbench.regular_files import KeptFile
from pffbench.text import one_line


def carry_over(path: str, cases: Collection[str]) -> str | None:
    """Replace the file of an earlier start by a new one, or by none if there is nothing to copy.

    Parameters
    ----------
    path : str
        The file.
    cases : collection of str
        The cases that may be in it.

    Returns
    -------
    str or None
        What could not be read, and where the old file is kept; None if all was copied.

    Raises
    ------
    OSError
        The new file cannot be written; the old one stays.
    """
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode):  # a link would lead to another file
        return _begun_anew(path, "it is not a regular file")
    if not status.st_size:
        Path(path).unlink()  # of a start that ended before it wrote anything
        return None
    try:
        contents = read_ranks_file(path)
    except ValueError as error:
        return _begun_anew(path, str(error).removeprefix(f"{path} cannot be read: "))
    new = f"{path}.new"
    try:
        copied, lost = _write(new, status.st_size, contents, frozenset(cases))
        told = _loss(path, copied, lost) if lost else None
        Path(new).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(new).unlink()
        raise
    return told


def _begun_anew(path: str, why: str) -> str:
    """Put a file aside of which nothing is copied, and say so."""
    return f"ranks.h5 cannot be read ({why}): it is kept as {_put_aside(path)}, and begun anew"


def _loss(path: str, copied: int, lost: list[UnreadableCase]) -> str:
    """Put a file aside of which some cases could not be copied, and say so."""
    more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
    return (
        f"ranks.h5 is damaged: it is kept as {_put_aside(path)}, and the times of ranks of "
        f"{copied} of {copied + len(lost)} cases were copied from it, without {lost[0].case} "
        f"({lost[0].why}){more}"
    )


def _write(
    path: str, size: int, contents: RanksContents, cases: frozenset[str]
) -> tuple[int, list[UnreadableCase]]:
    """Write what can be read; return how many cases, and which cannot be read."""
    import h5py

    copied, lost = 0, []
    _make_room(path, size + METADATA)
    with h5py.File(path, "w") as file:
        for name, hosts in contents.hosts.items():
            put_hosts(file, name, hosts)
        for one in contents.cases:
            if one.case not in cases:  # damaged, too
                one = UnreadableCase(one_line(one.case, 200), "the run has no such case")
            if isinstance(one, UnreadableCase):
                lost.append(one)
                continue
            copied += 1
            group = file.create_group(one.case)
            group.attrs["phases"] = one.phases
            for name, values in one.arrays.items():
                _put_all(group, name, values)
    KeptFile(path).sync()
    return copied, lost


def _put_all(group: Any, name: str, values: Any) -> None:
    dataset = make_dataset(group, name, values.shape[1:], values.dtype)
    dataset.resize(values.shape)
    dataset[...] = values


def _put_aside(path: str) -> str:
    """Rename a file; return its new name, which no file had before."""
    aside = f"{path}.damaged"
    for number in itertools.count(2):
        if not os.path.lexists(aside):
            break
        aside = f"{path}.damaged-{number}"
    Path(path).rename(aside)
    return Path(aside).name


def _make_room(path: str, nbytes: int) -> None:
    """Make an empty file where so many bytes fit, or fail before HDF5 has begun to write it."""
    with suppress(FileNotFoundError):
        Path(path).unlink()
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o666)
    try:
        allocate(descriptor, 0, nbytes)
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)
