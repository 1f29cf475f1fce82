"""The versions of a package: their names and order, and environments made of them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pffbench
from pffbench.errors import VALID, UserError
from pffbench.job.batch_job import StopSignals
from pffbench_environments.processes import last_line, run_bounded, stop_before_start

_VERSION = r"[0-9]{1,18}(?:\.[0-9]{1,18}){0,20}"
_REQUIREMENT = re.compile(rf"(?P<package>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>{_VERSION})")
#: The checkout that this code is in, if it is in one.
CHECKOUT = Path(pffbench.__file__).parents[2]
#: Seconds in which pip lists versions, and in which an environment is made.
_LISTING_SECONDS, _MAKING_SECONDS = 120.0, 3600.0


def requirement(text: str, option: str) -> tuple[str, str]:
    """Return the package and the version that a requirement such as ``h5py==3.13.0`` names.

    Raises
    ------
    UserError
        It does not name one version.
    """
    match = _REQUIREMENT.fullmatch(text)
    if match is None:
        raise UserError(f"{option} {text}: name one version of a package, such as h5py==3.13.0")
    return match["package"], match["version"]


def versions_between(
    package: str, first: str, last: str, given: Sequence[str], stop: StopSignals
) -> list[str]:
    """Return the versions to search, the good and the bad one at the ends.

    Parameters
    ----------
    package : str
        The package.
    first, last : str
        The good and the bad version.
    given : sequence of str
        Versions between them; those of the package index if empty.
    stop : StopSignals
        Tells that the search is to end.

    Raises
    ------
    UserError
        One is not a version, the good one is not the earlier one, or there is no list of them.
    """
    if wrong := [version for version in given if not re.fullmatch(_VERSION, version)]:
        raise UserError(f"--versions: {wrong[0]} is not a version. Separate versions by commas")
    if _order(first) >= _order(last):
        raise UserError(f"--good {first} must be an earlier version than --bad {last}")
    known = sorted({*(given or _published(package, stop)), first, last}, key=_order)
    return known[known.index(first) : known.index(last) + 1]


def _order(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _published(package: str, stop: StopSignals) -> list[str]:
    """Return the released versions of a package, as pip lists them."""
    python = CHECKOUT / ".build" / "tools" / "bin" / "python"
    command = [str(python if python.exists() else sys.executable), "-P", "-m", "pip"]
    done = run_bounded(
        [*command, "index", "versions", package],
        _LISTING_SECONDS,
        stop_before_start(stop),
        "Available versions: ",
    )
    if not done.messages:
        raise UserError(
            f"pip cannot list the versions of {package} ({last_line(done.text)}); name those "
            "between with --versions"
        )
    return [word for word in done.messages[0].split(", ") if re.fullmatch(_VERSION, word)]


def check_maker() -> None:
    """Check that environments can be made here.

    Raises
    ------
    UserError
        This pffbench is in no checkout.
    """
    if not (CHECKOUT / "setup" / "env").is_file():
        raise UserError("bisect makes environments with setup/env, which only a checkout has")


def make_environment(package: str, version: str, keep_going: Callable[[], None]) -> str:
    """Make the environment of a version, unless it is there; return its Python.

    Raises
    ------
    UserError
        It cannot be made.
    """
    name = f"{package}-{version}"
    command = [str(CHECKOUT / "setup" / "env"), name, f"{package}=={version}"]
    done = run_bounded(command, _MAKING_SECONDS, keep_going)
    if done.status != VALID:
        raise UserError(last_line(done.text).removeprefix("setup/env: "))
    return str(CHECKOUT / ".envs" / name / "bin" / "python")
