"""Safe reading, appending and replacing of regular files in untrusted directories.

A results directory, a marker in a shared scratch directory or an experiment may be untrusted. A
FIFO would block, a device could be read without end, and a link could redirect a write to a file of
the user's. So only regular files are opened, without blocking; data are written to a new file,
which then replaces the old one.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO

from pffbench.text import similar_word
from pffbench.units import Size

#: Maximum bytes of a `run.json`; one with as many cases as a run may have has a tenth of them.
LARGEST_RECORD = 2**29
#: Does not wait for the other end of a FIFO, and does not set a controlling terminal.
_CAREFULLY = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a directory",
    stat.S_IFSOCK: "a socket",
    stat.S_IFLNK: "a symbolic link",
}


def open_regular(
    path: str | Path, *, most: int | None = None, links: bool = True, dir_fd: int | None = None
) -> BinaryIO:
    """Open a file to read it.

    Parameters
    ----------
    path : str or Path
        The file.
    most : int, optional
        Most bytes that it may hold.
    links : bool
        Whether the name may be a symbolic link.
    dir_fd : int, optional
        An open directory that a relative path is in.

    Raises
    ------
    OSError
        It cannot be opened, is no regular file, or is too long; `strerror` states which.
    """
    # This check keeps a device from being opened at all, which may already act on it.
    _check_kind(os.stat(path, dir_fd=dir_fd, follow_symlinks=links), path)
    flags = os.O_RDONLY | _CAREFULLY | (0 if links else os.O_NOFOLLOW)
    return os.fdopen(_opened(path, flags, dir_fd, most), "rb")


def read_regular(
    path: str | Path, most: int, *, links: bool = True, dir_fd: int | None = None
) -> bytes:
    """Return the contents of a file.

    Parameters
    ----------
    path, most, links, dir_fd
        As of `open_regular`.

    Raises
    ------
    OSError
        As of `open_regular`.
    """
    with open_regular(path, most=most, links=links, dir_fd=dir_fd) as file:
        return file.read(os.fstat(file.fileno()).st_size)  # a larger size would be reserved at once


def check_regular(path: str | Path) -> None:
    """Check that `open_regular` would open a file, for a library that opens it by its name.

    Raises
    ------
    OSError
        As of `open_regular`.
    """
    open_regular(path).close()


def append_regular(path: str | Path) -> BinaryIO:
    """Open a file to append to it, creating it if missing; a symbolic link is refused.

    Raises
    ------
    OSError
        It cannot be opened, or is no regular file.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | _CAREFULLY
    with suppress(FileNotFoundError):
        _check_kind(os.lstat(path), path)
    return os.fdopen(_opened(path, flags, None, None), "ab")


class KeptFile:
    """A file that is written to several times, in a directory that anybody may replace meanwhile.

    Parameters
    ----------
    path : str or Path
        The file, which exists.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = path
        #: Open, so that no other file has the number of this one.
        self._descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | _CAREFULLY)

    def __del__(self) -> None:
        with suppress(AttributeError, OSError):  # it was not opened
            os.close(self._descriptor)

    @property
    def size(self) -> int:
        """Bytes of the file now, whatever has its name."""
        return os.fstat(self._descriptor).st_size

    def sync(self) -> None:
        """Wait until its data are on the device."""
        os.fsync(self._descriptor)

    def check(self) -> None:
        """Check that the file is still the one of its name.

        Raises
        ------
        OSError
            It is not, and the message says so.
        """
        try:
            kept = os.path.samestat(os.fstat(self._descriptor), os.lstat(self._path))
        except OSError:
            kept = False
        if not kept:
            raise OSError(f"{self._path} was removed, renamed or replaced")


@contextmanager
def replacing(
    path: str | Path, mode: str = "w", *, durable: bool = False, links: bool = True
) -> Iterator[IO[Any]]:
    """Write a file that replaces the one of its name when it is complete.

    A symbolic link is replaced and its target left alone. If writing fails, the old file stays.

    Parameters
    ----------
    path : str or Path
        The file.
    mode : {"w", "wb"}
        Text, as UTF-8 with line ends as they are written, or bytes.
    durable : bool
        Whether the data are on the device before the file is replaced.
    links : bool
        Whether the directory that it is in may be a symbolic link.

    Raises
    ------
    OSError
        It cannot be written.
    """
    place = Path(path)
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (0 if links else os.O_NOFOLLOW)
    directory = os.open(place.parent, flags)
    try:
        # A unique name, so that concurrent writers each replace a whole file.
        new = f".{place.name[:200]}.{os.urandom(6).hex()}"
        fresh = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(new, fresh, 0o666, dir_fd=directory)
        text = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
        try:
            with os.fdopen(descriptor, mode, **text) as file:  # type: ignore[call-overload]
                yield file
                if durable:
                    file.flush()
                    os.fsync(descriptor)
            os.replace(new, place.name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            with suppress(OSError):
                os.unlink(new, dir_fd=directory)
            raise
    except OSError as error:
        error.filename, error.filename2 = str(place), None
        raise
    finally:
        os.close(directory)


def write_replacing(path: str | Path, text: str, *, durable: bool = False) -> None:
    """Write a text as `replacing` does."""
    with replacing(path, durable=durable) as file:
        file.write(text)


def make_own_directory(path: str | Path) -> None:
    """Make a directory, or check that it exists and is no symbolic link to another place.

    Raises
    ------
    OSError
        It cannot be made, or its name is taken.
    """
    try:
        os.mkdir(path)  # noqa: PTH102 -- Path.mkdir takes a link to a directory for one
    except FileExistsError:
        kind = stat.S_IFMT(os.lstat(path).st_mode)
        if kind != stat.S_IFDIR:
            told = f"it is {_KINDS.get(kind, 'a file')}, not a directory"
            raise NotADirectoryError(errno.ENOTDIR, told, str(path)) from None


class SpareDescriptors:
    """File descriptors held in reserve for when the process may open no more files.

    Parameters
    ----------
    count : int
        Number of descriptors.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._held: list[int] = []
        self._hold()

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Release the descriptors while the block runs."""
        self._let_go()
        try:
            yield
        finally:
            self._hold()

    def _hold(self) -> None:
        with suppress(OSError):  # fewer are available
            while len(self._held) < self._count:
                self._held.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))

    def _let_go(self) -> None:
        while self._held:
            os.close(self._held.pop())


def _opened(path: str | Path, flags: int, dir_fd: int | None, most: int | None) -> int:
    try:
        descriptor = os.open(path, flags, 0o666, dir_fd=dir_fd)
    except OSError as error:
        if error.errno == errno.ELOOP and flags & os.O_NOFOLLOW:
            raise _refused("it is a symbolic link, not a regular file", path) from None
        if error.errno == errno.ENXIO:  # a FIFO without a reader, or a socket
            raise _refused("it is not a regular file", path) from None
        raise
    try:
        status = os.fstat(descriptor)
        _check_kind(status, path)
        if most is not None and status.st_size > most:
            told = f"it is {Size(status.st_size)} long, where at most {Size(most)} make sense"
            raise OSError(errno.EFBIG, told, str(path))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _check_kind(status: os.stat_result, path: str | Path) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        raise _refused(f"it is {_KINDS.get(kind, 'something else')}, not a regular file", path)


def _refused(why: str, path: str | Path) -> OSError:
    # Not IsADirectoryError, say: callers that handle a missing name do not mean files of that kind.
    return OSError(errno.EINVAL, why, str(path))


def similar_path(path: str | Path, *, directory: bool = False) -> str:
    """Return the question whether another path was meant that exists; empty without a similar one.

    Parameters
    ----------
    path : str or Path
        A path that does not exist.
    directory : bool
        Whether a directory was meant, and not a file.
    """
    wanted = Path(path)
    try:
        names = [p.name for p in wanted.parent.iterdir() if p.is_dir() == directory]
    except OSError:
        return ""
    near = similar_word(wanted.name, names)
    return f"; did you mean {str(wanted.parent / near)!r}?" if near else ""
