"""The scratch directory: created, filled and removed by one run, and by no other.

Everything that a run writes to the file system under test lies in one directory that carries a
marker with the run's id. Nothing is removed unless the marker is there and names the run, and no
symbolic link on the way is followed: paths are walked one name at a time from the open directory.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from pffbench.errors import UserError, explained
from pffbench.storage.filesystem import check_parent
from pffbench.storage.ownership import MARKER, OPEN_DIRECTORY, PREFIX, mark, mark_again, read_marker

#: Created below the working directory when no parent is given, and removed when it is empty.
_DEFAULT_PARENT = "pffbench-scratch"
_PLAIN_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"


class Scratch(msgspec.Struct, frozen=True):
    """The scratch directory of one run."""

    #: Its absolute path.
    directory: str
    #: The id that its marker must carry.
    run_id: str
    #: Whether each node has a directory of its own.
    node_local: bool = False

    @classmethod
    def create(
        cls, parent: str, run_id: str, *, create_parent: bool = False, kept_for: str = ""
    ) -> Scratch:
        """Create the directory and its marker; one rank does this, the others `attach`.

        Parameters
        ----------
        parent : str
            The directory to create it in, on the file system under test.
        run_id : str
            Letters, digits, ``.``, ``_`` and ``-``; becomes part of the name.
        create_parent : bool
            Create a missing parent too; meant for the default place only.
        kept_for : str
            The results directory, where the files are for another job to read.

        Raises
        ------
        UserError
            The parent is missing, is no directory or is not writable; or the directory exists.
        """
        _check_name(run_id)
        real_parent = Path(os.path.realpath(parent))
        directory = real_parent / (PREFIX + run_id)
        check_parent(real_parent, create_parent)
        with explained(f"the scratch directory {directory} cannot be made"):
            if create_parent:
                real_parent.mkdir(parents=True, exist_ok=True)
            directory.mkdir(mode=0o700)
            mark(directory, run_id, kept_for)
        return cls(str(directory), run_id)

    @classmethod
    def attach(cls, path: str, run_id: str) -> Scratch:
        """Use a directory that another rank created.

        Raises
        ------
        UserError
            It does not exist or does not carry the marker of this run.
        """
        scratch = cls(str(Path(path).absolute()), run_id)
        with scratch._opened():
            return scratch

    @classmethod
    def take_over(
        cls,
        parent: str,
        run_id: str,
        *,
        create_parent: bool = False,
        keep: Collection[str] = (),
        kept_for: str = "",
    ) -> Scratch:
        """Create the directory for a resumed run, or empty the one that it left when killed.

        Parameters
        ----------
        parent, run_id, create_parent, kept_for
            As for `create`.
        keep : collection of str
            Names in the directory that stay.

        Raises
        ------
        UserError
            As for `create`; or the existing directory does not carry this run's marker, or
            something to be kept is gone.
        """
        _check_name(run_id)
        left = Path(os.path.realpath(parent), PREFIX + run_id)
        for name in keep:
            if not (left / name).is_dir():
                raise UserError(f"{left / name} is gone, which the run wrote and still needs")
        if not left.exists():
            return cls.create(parent, run_id, create_parent=create_parent, kept_for=kept_for)
        scratch = cls.attach(str(left), run_id)
        for entry in Path(scratch.directory).iterdir():
            if entry.name != MARKER and entry.name not in keep:
                scratch.remove(str(entry))
        mark_again(left, run_id, kept_for)
        return scratch

    def path(self, *names: str) -> str:
        """Return the path of a file or directory below the scratch directory.

        Raises
        ------
        ValueError
            A name is empty, ``.``, ``..`` or contains a slash.
        """
        for name in names:
            if name in {"", ".", ".."} or "/" in name or "\0" in name:
                raise ValueError(f"{name!r} is not a plain file name")
        return "/".join([self.directory, *names])

    def make_directory(self, name: str) -> str:
        """Create a directory for one repetition in the scratch directory and return its path.

        Raises
        ------
        ValueError
            The name is not a plain one.
        FileExistsError
            It exists; nothing is ever overwritten.
        """
        path = self.path(name)
        os.mkdir(path, 0o700)  # noqa: PTH102 -- the one call whose mode the umask may only narrow
        return path

    def remove(self, path: str, *, missing_ok: bool = False) -> None:
        """Remove one file, or one directory with all below it.

        A symbolic link is removed itself, not its target.

        Parameters
        ----------
        path : str
            Strictly inside the scratch directory.
        missing_ok : bool
            Do nothing when the path does not exist.

        Raises
        ------
        ValueError
            The path lies outside, or is the directory itself or its marker.
        UserError
            The scratch directory does not carry the marker of this run.
        OSError
            Something on the way is missing, a symbolic link, or cannot be removed.
        """
        *parents, name = self._names_of(path)
        with self._opened() as top:
            try:
                with _descended(top, parents) as fd:
                    _remove_entry(name, fd)
            except FileNotFoundError:
                if not missing_ok:
                    raise

    def destroy(self) -> None:
        """Remove the whole directory; the marker goes last, so that remains can still be found.

        Raises
        ------
        UserError
            It is missing or does not carry the marker of this run.
        OSError
            Something in it cannot be removed.
        """
        with self._opened() as top:
            with os.scandir(top) as entries:
                names = [entry.name for entry in entries if entry.name != MARKER]
            for name in names:
                _remove_entry(name, top)
            os.unlink(MARKER, dir_fd=top)
            Path(self.directory).rmdir()

    def _names_of(self, path: str) -> list[str]:
        names = path.removeprefix(self.directory + "/").split("/")
        if self.path(*names) != path or names == [MARKER]:
            raise ValueError(f"{path!r} is not a file or directory of {self.directory}")
        return names

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """Open the directory and verify that it is this run's own."""
        with explained(f"the scratch directory {self.directory} cannot be opened"):
            fd = os.open(self.directory, OPEN_DIRECTORY)
        try:
            if read_marker(fd).get("run_id") != self.run_id:
                raise UserError(
                    f"{self.directory} does not carry the marker of the run "
                    f"{self.run_id}, so nothing in it is touched"
                )
            yield fd
        finally:
            os.close(fd)


def _check_name(run_id: str) -> None:
    if not re.fullmatch(_PLAIN_NAME, run_id):
        raise UserError(
            f"the run id {run_id!r} has other characters than letters, digits, '.', '_' and '-'"
        )


def scratch_parent(given: str | None, before: str | None = None) -> tuple[str, bool]:
    """Return the directory for the scratch directory, and whether it may be created.

    Parameters
    ----------
    given : str, optional
        The directory that the command line names.
    before : str, optional
        The previous scratch directory of a resumed run.
    """
    named = given or os.environ.get("PFFBENCH_SCRATCH") or os.environ.get("SCRATCH")
    if before is not None and not given:
        named = str(Path(before).parent)
    if named:
        return named, Path(named).name == _DEFAULT_PARENT
    return str(Path(_DEFAULT_PARENT).absolute()), True


@contextmanager
def _descended(top: int, names: list[str]) -> Iterator[int]:
    """Open a directory below `top` name by name; a symbolic link on the way is an error."""
    fd = os.dup(top)
    try:
        for name in names:
            deeper = os.open(name, OPEN_DIRECTORY, dir_fd=fd)
            os.close(fd)
            fd = deeper
        yield fd
    finally:
        os.close(fd)


def _remove_entry(name: str, directory_fd: int) -> None:
    mode = os.stat(name, dir_fd=directory_fd, follow_symlinks=False).st_mode
    if stat.S_ISDIR(mode):
        shutil.rmtree(name, dir_fd=directory_fd)  # walks by descriptors, follows no link
    else:
        os.unlink(name, dir_fd=directory_fd)
