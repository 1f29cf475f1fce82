"""Count the standard experiment with versions of the libraries, and write their page again.

    setup/run python benchmarks/board.py                   # the versions of the list below
    setup/run python benchmarks/board.py zarr-3.1.7 …      # these versions
    setup/run python benchmarks/board.py --into DIR        # elsewhere, for a comparison

`setup/env` makes an environment of each version from wheels. Seven processes of it count the cases
of that library, in turns with those of the other versions. Their counts become a file in
docs/standard/libraries, and the page docs/standard/libraries.md is made from these files.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs" / "tools"))

import standard  # noqa: E402 -- a module of the documents

from pffbench.experiment.standard import STANDARDS  # noqa: E402


class Library(NamedTuple):
    """Versions of a library."""

    #: Its name on the page.
    name: str
    #: The backend that uses it.
    backend: str
    #: Those with a wheel.
    versions: tuple[str, ...]
    #: The package that has these versions, if it is not the name.
    package: str = ""
    #: A requirement in addition to the version.
    more: str = ""
    #: Options of the backend.
    options: Mapping[str, str] = {}
    #: The first Python with wheels of all these versions.
    python: tuple[int, int] = (3, 11)

    @property
    def names(self) -> list[str]:
        """The names of its versions, such as ``zarr-3.1.4``."""
        return [f"{self.name}-{version}" for version in self.versions]

    def requirements(self, version: str) -> list[str]:
        """Return what an environment with a version is made of."""
        return [f"{self.package or self.name}=={version}", *([self.more] if self.more else [])]


#: Versions that have something in common follow each other.
LIBRARIES = (
    Library("h5py", "hdf5", ("3.12.1", "3.13.0", "3.14.0", "3.15.1", "3.16.0")),
    Library("netCDF4", "netcdf4", ("1.7.2", "1.7.3", "1.7.4", "1.7.5")),
    Library("zarr", "zarr", ("2.18.4", "2.18.5", "2.18.6", "2.18.7"), more="numcodecs<0.16"),
    Library("zarr", "zarr", ("3.1.1", "3.1.2", "3.1.3", "3.1.4", "3.1.5", "3.1.6")),
    Library("zarr", "zarr", ("3.2.1", "3.3.0", "3.4.0", "3.4.1", "3.4.2"), python=(3, 12)),
    Library(
        "zarr-fused", "zarr", ("3.3.0", "3.4.0", "3.4.1", "3.4.2"),
        package="zarr", options={"pipeline": "fused"}, python=(3, 12),
    ),
    Library(
        "zarrs", "zarr", ("0.2.2", "0.2.3"),
        more="zarr==3.1.6", options={"pipeline": "zarrs"},
    ),
    Library("tensorstore", "tensorstore", ("0.1.83", "0.1.84", "0.1.85", "0.1.86")),
    Library("blosc2", "blosc2", ("4.11.0", "4.12.0", "4.13.1", "4.14.1")),
)  # fmt: skip
_VERSION = 1
#: Processes that count a version, so that a page shows the range of its new memory.
PROCESSES = 7


def listed() -> Iterator[str]:
    """Yield all versions, such as ``zarr-3.1.4``."""
    for library in LIBRARIES:
        yield from library.names


def library_of(name: str) -> Library:
    """Return the library of a version, which need not be in the list.

    Raises
    ------
    ValueError
        The list has no such library.
    """
    for library in LIBRARIES:
        if name in library.names:
            return library
    for library in LIBRARIES:  # another version of the same major one
        if name.partition(".")[0] == library.names[0].partition(".")[0]:
            return library
    known = ", ".join(dict.fromkeys(library.name for library in LIBRARIES))
    raise ValueError(f"{name}: not a version of {known}")


def cases_of(library: Library) -> dict[str, Any]:
    """Return the standard experiment with the cases of one backend, to be counted."""
    path = ROOT / "configs" / "standard" / f"{_VERSION}.yaml"
    experiment: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    backend, backends = library.backend, {one.backend for one in LIBRARIES}
    experiment["cases"] = [
        {key: value for key, value in entry.items() if key not in backends}
        | {"backend": backend}
        | ({backend: options} if (options := {**entry.get(backend, {}), **library.options}) else {})
        for entry in experiment["cases"]
        if backend in entry["backend"]
    ]
    counted = {"counters": "calls", "repetitions": 1, "roofline": False}
    return experiment | counted | {"time_budget": None}


def environment_of(name: str) -> Path:
    """Make the environment of a version, unless it is there; return its interpreter.

    Raises
    ------
    RuntimeError
        It cannot be made.
    """
    library = library_of(name)
    if sys.version_info < library.python:
        raise RuntimeError(f"it needs Python {'.'.join(map(str, library.python))} or newer")
    version = name.rpartition("-")[2]
    _run([ROOT / "setup" / "env", f"board-{name}", *library.requirements(version)])
    return ROOT / ".envs" / f"board-{name}" / "bin" / "python"


def count(name: str, python: Path, place: Path, number: int) -> Path:
    """Count a version in a process of its own; return its results.

    Raises
    ------
    RuntimeError
        The run failed.
    """
    file, out = place / f"{name}.yaml", place / f"{name}-{number}"
    file.write_text(yaml.safe_dump(cases_of(library_of(name))), encoding="utf-8")
    _run([python, "-m", "pffbench", "run", file, "--out", out, "--scratch", place])
    return out


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
    failed: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="pffbench-board-") as made:
        results = counted(given.versions or list(listed()), Path(made), failed)
        for name, directories in results.items():
            entry = standard.entry_of(directories, digest=STANDARDS[_VERSION])
            path = standard.file_of_version(given.into, name, entry)
            old = standard.load(path) if path.exists() else None
            standard.save(entry, path)
            changed = "; ".join(standard.differences(old, entry)) if old else "new"
            print(f"{name}: {changed or 'the same counts as before'}", flush=True)
    standard.write_pages(given.into)
    if failed:
        lines = [f"{name}: {why}" for name, why in failed.items()]
        raise SystemExit("\n".join(["not counted:", *lines]))


def counted(names: Sequence[str], place: Path, failed: dict[str, str]) -> dict[str, list[Path]]:
    """Return the results of the versions, and add to `failed` why others have none.

    The processes of all versions take turns, so that a change of the machine concerns all.
    """
    pythons: dict[str, Path] = {}
    results: dict[str, list[Path]] = {}
    for number in range(PROCESSES):
        for name in [name for name in names if name not in failed]:
            try:
                if name not in pythons:
                    pythons[name] = environment_of(name)
                results.setdefault(name, []).append(count(name, pythons[name], place, number))
            except (RuntimeError, ValueError) as error:
                failed[name] = str(error)
                results.pop(name, None)
    return results


if __name__ == "__main__":
    main()
