"""Version and commit of the code that runs.

A release is a tag of git, such as ``v0.1.0``. A checkout asks git, an archive that git made holds
the answer in ``commit.txt``, and a built package has it in the version of its metadata.
setuptools-scm would do for builds, but the set-up builds nothing, and works without network.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from pffbench import __version__
from pffbench.tools import run_tool

HERE = Path(__file__).parent
_GIT_SECONDS = 5.0
_RELEASES = "v[0-9]*"
_DESCRIBED = re.compile(r"v(\d[\w.]*?)(?:-(\d+)-g[0-9a-f]+)?")
#: What `git archive` makes of the lines in ``commit.txt``: the commit, and where it is after a tag.
_ARCHIVED = re.compile(r"([0-9a-f]{40})\n(.*)")


class Origin(NamedTuple):
    """Where the code comes from."""

    #: That of the last release; with ``.postN`` after N further commits, where tags are known.
    version: str
    #: None where nothing names it. A built package has twelve digits of it.
    commit: str | None = None
    #: Whether tracked files differ from the commit; None outside of a checkout.
    dirty: bool | None = None
    #: Whether the commit is known to be that of the release.
    released: bool = False

    def __str__(self) -> str:
        """Return what ``--version`` prints."""
        if self.commit is None:
            return self.version
        return f"{self.version} (commit {self.commit}{', with changes' if self.dirty else ''})"

    @property
    def for_builds(self) -> str:
        """The version of a package that is built of this code, as PEP 440 has it."""
        node = None if self.released else self.commit
        return f"{self.version}+g{node[:12]}" if node else self.version


def origin(directory: Path = HERE) -> Origin:
    """Find out where the code in a directory comes from.

    Parameters
    ----------
    directory : Path
        The package: ``…/pffbench``.
    """
    return _of_checkout(directory) or _of_archive(directory) or _of_metadata(directory)


def _of_checkout(directory: Path) -> Origin | None:
    """Ask git; None without it, or where no repository tracks the directory (an installation)."""
    if not _git(directory, "ls-files", "--", "."):
        return None
    status = _git(directory, "status", "--porcelain=v2", "--branch", "--untracked-files=no")
    lines = (status or "").splitlines()
    commit = next((line.split()[-1] for line in lines if line.startswith("# branch.oid")), None)
    if commit is None:
        return None
    dirty = any(not line.startswith("#") for line in lines)
    described = _git(directory, "describe", "--tags", "--match", _RELEASES)
    return _described(described or "", commit, dirty)


def _of_archive(directory: Path) -> Origin | None:
    try:
        found = _ARCHIVED.search((directory / "commit.txt").read_text(encoding="utf-8"))
    except OSError:
        return None
    return _described(found[2], found[1], None) if found else None


def _of_metadata(directory: Path) -> Origin:
    """Take the version of the metadata beside the package (a wheel), or above it (an sdist)."""
    from importlib.metadata import distributions

    places = [str(folder) for folder in directory.parents[:2]]
    found = distributions(name="pffbench", path=places)
    version = next((one.version for one in found if one.version), __version__)
    version, _, node = version.partition("+g")
    return Origin(version, node or None)


def _described(described: str, commit: str, dirty: bool | None) -> Origin:
    """Read the output of ``git describe``; without a tag it is the version in the source."""
    found = _DESCRIBED.fullmatch(described)
    if found is None:
        return Origin(__version__, commit, dirty)
    if found[2] is None:
        return Origin(found[1], commit, dirty, released=not dirty)
    return Origin(f"{found[1]}.post{found[2]}", commit, dirty)


def _git(directory: Path, *arguments: str) -> str | None:
    """Return the output of git; None without git or if it fails."""
    answer = run_tool(["git", "-C", str(directory), *arguments], _GIT_SECONDS)
    return answer.text if answer.ok else None
