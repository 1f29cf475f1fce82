"""Where the user's file is: a path, or a file that an installed Python package brings."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from pffbench.errors import UserError

#: ``package:NAME/PATH`` names a file inside an installed package, wherever that is.
PREFIX = "package:"


def locate(file: str) -> str:
    """Return the path that a name in an experiment stands for.

    Parameters
    ----------
    file : str
        A path, relative to the current directory, or ``package:NAME/PATH``.

    Raises
    ------
    UserError
        The package is not installed.
    """
    if not file.startswith(PREFIX):
        return file
    name, _, inside = file.removeprefix(PREFIX).partition("/")
    try:
        found = find_spec(name)
    except ValueError:
        found = None
    if found is None or not found.submodule_search_locations:
        raise UserError(f"{file!r}: the Python package {name} is not installed")
    return str(Path(found.submodule_search_locations[0], inside))
