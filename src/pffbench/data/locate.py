"""Where the user's file is: a path, or a file that an installed Python package brings."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from pffbench.errors import UserError

#: ``package:NAME/PATH`` names a file inside an installed package, wherever that is.
PREFIX = "package:"


def locate(file: str) -> str:
    """Return the path that a name in an experiment stands for.

    An experiment can come from anybody, so nothing is imported to find a package, and none is
    looked for in the current directory.

    Parameters
    ----------
    file : str
        A path, relative to the current directory, or ``package:NAME/PATH``.

    Raises
    ------
    UserError
        What is named is no package, the package is not installed, or the path leads out of it.
    """
    if not file.startswith(PREFIX):
        return file
    name, _, inside = file.removeprefix(PREFIX).partition("/")
    if not (name.isascii() and name.isidentifier()):  # a dot would import the package before it
        raise UserError(
            f"{file!r}: {name!r} is not the name of a Python package (write package:NAME/PATH, "
            "where NAME has letters, digits and underscores)"
        )
    parts = Path(inside).parts
    if not parts or ".." in parts or Path(inside).is_absolute():
        raise UserError(f"{file!r}: the path must lead to a file within the package {name}")
    found = next((spec for spec in _specs(name) if spec.submodule_search_locations), None)
    if found is None or not found.submodule_search_locations:
        raise UserError(f"{file!r}: the Python package {name} is not installed")
    return str(Path(found.submodule_search_locations[0], inside))


def _specs(name: str) -> Iterator[ModuleSpec]:
    """Yield what finders know of a top-level package, without importing anything."""
    here = os.path.realpath(".")
    elsewhere = [place for place in sys.path if place and os.path.realpath(place) != here]
    if (found := PathFinder.find_spec(name, elsewhere)) is not None:
        yield found
    for finder in sys.meta_path:  # packages that are installed so that they can be edited
        if getattr(finder, "__module__", "").startswith("__editable__"):
            found = finder.find_spec(name, None)
            if found is not None:
                yield found
