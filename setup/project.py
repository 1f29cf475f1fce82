"""Install pffbench in the running virtual environment, from the sources of a checkout.

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
    """Write the metadata of an installation: name, version, entry points, origin."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    sys.path.append(str(root / "src"))
    from pffbench.version import origin

    version = origin(root / "src" / "pffbench").for_builds
    folder = root / "src" / "pffbench.egg-info"
    folder.mkdir(exist_ok=True)
    head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version}\n"
    (folder / "PKG-INFO").write_text(head, "utf-8")
    lines = []
    for group, entries in project.get("entry-points", {}).items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items()), ""]
    (folder / "entry_points.txt").write_text("\n".join(lines), "utf-8")
    # pip writes this file, and pffbench reads it to advise how to install more packages.
    url = {"url": root.resolve().as_uri(), "dir_info": {"editable": True}}
    (folder / "direct_url.json").write_text(json.dumps(url), "utf-8")


def main(root: Path, launcher: str) -> None:
    """Write the path file, the metadata and the programs."""
    paths = Path(sysconfig.get_path("purelib")) / "pffbench.pth"
    paths.write_text(f"{root}/src\n{root}/analysis\n", "utf-8")
    write_metadata(root)
    # -P: a yaml.py in the current directory must not be imported.
    write_script("pffbench", sys.executable, "-P", "-m", "pffbench")
    # An `mpiexec` next to mpiexec.mpich may belong to another MPI.
    (Path(sys.prefix) / "bin" / "mpiexec").unlink(missing_ok=True)
    if re.match(r"mpi.*\.", Path(launcher).name):
        write_script("mpiexec", launcher)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
