"""Put pffbench into the running virtual environment, from the sources of a checkout.

    project.py ROOT LAUNCHER

A path file makes the sources importable without a build, as an editable installation does.
`importlib.metadata` finds the entry points in ``src/pffbench.egg-info``.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
import sysconfig
import tomllib
from pathlib import Path


def write_script(name: str, *command: str) -> None:
    """Write a program of the environment that starts another one."""
    file = Path(sys.prefix) / "bin" / name
    file.unlink(missing_ok=True)
    file.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', "utf-8")
    file.chmod(0o755)


def write_metadata(root: Path) -> None:
    """Write what an installation has beside its modules: name, version, entry points, origin."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    version = re.search(r'__version__ = "(.+)"', (root / "src/pffbench/__init__.py").read_text())
    assert version
    place = root / "src" / "pffbench.egg-info"
    place.mkdir(exist_ok=True)
    head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version[1]}\n"
    (place / "PKG-INFO").write_text(head, "utf-8")
    lines = []
    for group, entries in project.get("entry-points", {}).items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items()), ""]
    (place / "entry_points.txt").write_text("\n".join(lines), "utf-8")
    # pip writes this, and our advice on installing more packages reads it.
    url = {"url": root.resolve().as_uri(), "dir_info": {"editable": True}}
    (place / "direct_url.json").write_text(json.dumps(url), "utf-8")


def main(root: Path, launcher: str) -> None:
    """Write the path file, the metadata and the programs."""
    paths = Path(sysconfig.get_path("purelib")) / "pffbench.pth"
    paths.write_text(f"{root}/src\n{root}/analysis\n", "utf-8")
    write_metadata(root)
    # -P: a yaml.py in the current directory is not to be imported.
    write_script("pffbench", sys.executable, "-P", "-m", "pffbench")
    # `mpiexec` beside mpiexec.mpich may be another MPI's.
    (Path(sys.prefix) / "bin" / "mpiexec").unlink(missing_ok=True)
    if re.match(r"mpi.*\.", Path(launcher).name):
        write_script("mpiexec", launcher)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
