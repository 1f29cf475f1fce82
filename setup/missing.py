"""Print the locked requirements that the running Python does not have yet.

An active environment brings its own MPI, HDF5 and netCDF bindings, and these must stay as they are:
where one of them is older than ``pyproject.toml`` allows, that is an error (status 1) and not
something to install over.
"""

from __future__ import annotations

import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

#: Bound to the site's libraries, or compiled against by what is.
PROTECTED = frozenset({"h5py", "mpi4py", "netcdf4", "numpy"})


def canonical(name: str) -> str:
    """Return the form in which names of distributions are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: enough to compare with a floor."""
    return tuple(int(part) for part in re.findall(r"\d+", re.split(r"[^\d.]", version)[0]))


def floors(pyproject: Path) -> dict[str, tuple[int, ...]]:
    """Return the lowest version of every direct dependency, extras included."""
    project = tomllib.loads(pyproject.read_text("utf-8"))["project"]
    groups = [project["dependencies"], *project.get("optional-dependencies", {}).values()]
    found = {}
    for requirement in (entry for group in groups for entry in group):
        name = canonical(re.split(r"[^\w.-]", requirement)[0])
        floor = re.search(r">=\s*([\d.]+)", requirement)
        found[name] = numbers(floor[1]) if floor else ()
    return found


def installed_version(name: str) -> str | None:
    """Return the version of an installed distribution."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def main(lock: Path, pyproject: Path) -> int:
    """Print the missing lines of the lock; report protected packages that are too old."""
    lowest = floors(pyproject)
    status = 0
    for line in lock.read_text("utf-8").splitlines():
        match = re.match(r"([\w.-]+)==", line)
        if not match:
            continue
        name = canonical(match[1])
        version = installed_version(name)
        floor = lowest.get(name, ())
        if version is not None and numbers(version) >= floor:
            continue
        if name in PROTECTED:
            wanted = ".".join(map(str, floor))
            print(f"{name} {version or 'is missing'} (needed: >= {wanted})", file=sys.stderr)
            status = 1
        else:
            print(line)
    return status


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
