"""Count the standard experiment with versions of the libraries, and write their page again.

    setup/run python benchmarks/board.py                   # the versions of the list below
    setup/run python benchmarks/board.py zarr-3.1.7 …      # these versions
    setup/run python benchmarks/board.py --into DIR        # elsewhere, for a comparison

`setup/env` makes an environment of each version from wheels. One process of it counts the cases of
that library, three times. Its counts become a file in docs/standard/libraries, and the page
docs/standard/libraries.md is made from these files.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs" / "tools"))

import standard  # noqa: E402 -- a module of the documents

from pffbench.experiment.standard import STANDARDS  # noqa: E402


class Library(NamedTuple):
    """A library."""

    #: The backend that uses it.
    backend: str
    #: Its last versions with a wheel for the Python of Debian 12.
    versions: tuple[str, ...]
    #: A requirement in addition to the version.
    more: str = ""


#: By the name of the package and, where it has two, the major version.
LIBRARIES = {
    "h5py": Library("hdf5", ("3.12.1", "3.13.0", "3.14.0", "3.15.1", "3.16.0")),
    "netCDF4": Library("netcdf4", ("1.7.2", "1.7.3", "1.7.4", "1.7.5")),
    "zarr-2": Library("zarr", ("2.18.4", "2.18.5", "2.18.6", "2.18.7"), "numcodecs<0.16"),
    "zarr-3": Library("zarr", ("3.1.1", "3.1.2", "3.1.3", "3.1.4", "3.1.5", "3.1.6")),
    "tensorstore": Library("tensorstore", ("0.1.83", "0.1.84", "0.1.85", "0.1.86")),
    "blosc2": Library("blosc2", ("4.11.0", "4.12.0", "4.13.1", "4.14.1")),
}
_VERSION = 1
_REPETITIONS = 3


def listed() -> Iterator[str]:
    """Yield all versions, such as ``zarr-3.1.4``."""
    for name, library in LIBRARIES.items():
        yield from (f"{name.partition('-')[0]}-{version}" for version in library.versions)


def library_of(package: str, version: str) -> Library:
    """Return the library of a version.

    Raises
    ------
    ValueError
        The list has no such library.
    """
    major = f"{package}-{version.partition('.')[0]}"
    if found := LIBRARIES.get(package) or LIBRARIES.get(major):
        return found
    raise ValueError(f"{package} {version}: the libraries are {', '.join(LIBRARIES)}")


def cases_of(backend: str) -> dict[str, Any]:
    """Return the standard experiment with the cases of one backend, to be counted."""
    path = ROOT / "configs" / "standard" / f"{_VERSION}.yaml"
    experiment: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    backends = {library.backend for library in LIBRARIES.values()}
    experiment["cases"] = [
        {key: value for key, value in entry.items() if key not in backends - {backend}}
        | {"backend": backend}
        for entry in experiment["cases"]
        if backend in entry["backend"]
    ]
    counted = {"counters": "calls", "repetitions": _REPETITIONS, "roofline": False}
    return experiment | counted | {"time_budget": None}


def count(package: str, version: str) -> standard.Entry:
    """Make the environment of a version, and count.

    Raises
    ------
    RuntimeError
        The environment cannot be made, or the run failed.
    """
    library, name = library_of(package, version), f"{package}-{version}"
    more = [library.more] if library.more else []
    _run([ROOT / "setup" / "env", f"board-{name}", f"{package}=={version}", *more])
    with tempfile.TemporaryDirectory(prefix="pffbench-board-") as made:
        place = Path(made)
        file = place / "cases.yaml"
        file.write_text(yaml.safe_dump(cases_of(library.backend)), encoding="utf-8")
        python = ROOT / ".envs" / f"board-{name}" / "bin" / "python"
        _run([python, "-m", "pffbench", "run", file, "--out", place / "out", "--scratch", place])
        return standard.entry_of(place / "out", digest=STANDARDS[_VERSION])


def _run(command: Iterable[str | Path]) -> None:
    words = list(map(str, command))
    with tempfile.TemporaryFile("w+") as output:  # a pipe would also wait for processes left behind
        done = subprocess.run(words, stdout=output, stderr=subprocess.STDOUT, check=False)
        output.seek(0)
        last = " ".join(output.read().strip().splitlines()[-3:])
    if done.returncode:
        raise RuntimeError(f"{' '.join(words[:6])} ended with {done.returncode}: {last}")


def main() -> None:
    """Count the versions, and write the page again."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="such as zarr-3.1.4")
    parser.add_argument(
        "--into", type=Path, default=standard.PLACE, metavar="DIR",
        help="directory of the files and pages (default: docs/standard)",
    )  # fmt: skip
    given = parser.parse_args()
    failed = []
    for name in given.versions or list(listed()):
        package, _, version = name.rpartition("-")
        try:
            entry = count(package, version)
        except (RuntimeError, ValueError) as error:
            failed.append(f"{name}: {error}")
            continue
        path = given.into / "libraries" / f"{name}.json"
        old = standard.load(path) if path.exists() else None
        standard.save(entry, path)
        changed = "; ".join(standard.differences(old, entry)) if old else "new"
        print(f"{name}: {changed or 'the same counts as before'}", flush=True)
    standard.write_pages(given.into)
    if failed:
        raise SystemExit("\n".join(["not counted:", *failed]))


if __name__ == "__main__":
    main()
