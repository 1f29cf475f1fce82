"""Print the locked requirements that the running Python does not have: missing.py LOCK PYPROJECT.

An active environment keeps its bindings of MPI, HDF5 and netCDF. If one of them is missing or older
than ``pyproject.toml`` allows, that is an error (status 1), and nothing is installed over it.
"""

from __future__ import annotations

import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

#: Packages that are linked to the site's libraries, and NumPy, which these are compiled against.
PROTECTED = frozenset({"h5py", "mpi4py", "netcdf4", "numpy"})


def numbers(version: str) -> list[int]:
    """Return the leading numbers of a version, to compare it with the lowest one."""
    return [int(part) for part in re.findall(r"\d+", re.split(r"[^\d.]", version)[0])]


def main(lock: Path, pyproject: Path) -> int:
    """Print the missing lines of the lock; report protected packages that are too old."""
    project = tomllib.loads(pyproject.read_text("utf-8"))["project"]
    groups = [project["dependencies"], *project.get("optional-dependencies", {}).values()]
    allowed = " ".join(entry for group in groups for entry in group).lower()
    status = 0
    for line in lock.read_text("utf-8").splitlines():
        name = line.partition("==")[0]
        lowest = re.search(rf"(?:^| ){re.escape(name)}(?:\[.*?\])?>=([\d.]+)", allowed)
        wanted = lowest[1] if lowest else "0"
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            version = "none"
        if version != "none" and numbers(version) >= numbers(wanted):
            continue
        if name in PROTECTED:
            print(f"{name} {version} (needed: >= {wanted})", file=sys.stderr)
            status = 1
        else:
            print(line)
    return status


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
