"""Write what an installation knows of pffbench beside its sources: name, version, entry points.

    setup/metadata.py ROOT

A path file makes the sources of a checkout importable, and `importlib.metadata` finds the entry
points of a package in a directory ``*.egg-info`` on the same path, as an editable installation by
setuptools leaves one.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path


def main(root: Path) -> None:
    """Write `src/pffbench.egg-info`."""
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
    # pip notes so where a package came from; our own advice on installing more reads it.
    url = {"url": root.resolve().as_uri(), "dir_info": {"editable": True}}
    (place / "direct_url.json").write_text(json.dumps(url), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
