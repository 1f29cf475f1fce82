"""Entry points, by which other installed packages add to the program.

The groups are `pffbench.backends`, `pffbench.workloads`, `pffbench.sources`, `pffbench.commands`,
`pffbench.launchers`, `pffbench.footprint`, `pffbench.studies`, `pffbench.experiments` and
`pffbench.reports`. docs/architecture.md explains them, and pyproject.toml has examples.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from pffbench.errors import UserError
from pffbench.interpreter import restore_clocks


@cache
def _entry_points() -> Any:  # of another type in Python 3.11
    """Return those of all groups: searching all installed packages takes 30 ms."""
    from importlib.metadata import entry_points

    return entry_points()


def plugins(group: str) -> dict[str, str]:
    """Return what other packages have in a group of entry points: name → location."""
    return {
        entry.name: entry.value
        for entry in _entry_points().select(group=group)
        # Our own metadata name packages that may have been removed from a checkout.
        if find_spec(entry.module.partition(".")[0]) is not None
    }


def load(location: str) -> Any:
    """Import what a location such as ``package.module:name`` names; without a name the module."""
    module, _, attribute = location.partition(":")
    found = import_module(module)
    if replaced := restore_clocks():
        raise ImportError(f"it replaces {', '.join(replaced)} for all others")
    return getattr(found, attribute) if attribute else found


def load_class(location: str, kind: Any, *attributes: str) -> Any:
    """Import a class, which another package may add.

    Parameters
    ----------
    location : str
        As for `load`.
    kind : type
        The class that it extends.
    *attributes : str
        What it must have in addition to all methods.

    Raises
    ------
    UserError
        The class of another package cannot be loaded, or is not such a class.
    """
    package = location.partition(":")[0].partition(".")[0]
    if package == __name__.partition(".")[0]:
        return load(location)
    where = f"{location} of {package}, another package, cannot be used"
    remedy = "update that package or uninstall it"
    try:
        found = load(location)
    except MemoryError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 -- it may raise anything
        why = f"{type(error).__name__}: {error}"
        raise UserError(f"{where} ({why}); {remedy}") from None
    if not (isinstance(found, type) and issubclass(found, kind)):
        raise UserError(f"{where}: it is not a subclass of {kind.__name__}; {remedy}")
    abstract = sorted(getattr(found, "__abstractmethods__", ()))
    lacking = [*abstract, *(name for name in attributes if not hasattr(found, name))]
    if lacking:
        raise UserError(f"{where}: it lacks {', '.join(lacking)}; {remedy}")
    return found


@cache
def loaded(group: str, *attributes: str) -> dict[str, Any]:
    """Return what other packages have in a group, imported; name → object.

    One that cannot be loaded, or lacks an attribute, is named on standard error and left out: it
    keeps nobody from the rest of the program.
    """
    found = {}
    for name, location in plugins(group).items():
        try:
            found[name] = load(location)
            for attribute in attributes:
                getattr(found[name], attribute)
        except (Exception, SystemExit) as error:  # noqa: BLE001 -- it may raise anything
            found.pop(name, None)
            print(
                f"pffbench: {name} of {location.partition('.')[0].partition(':')[0]}, another "
                f"package, is left out, because it cannot be loaded ({type(error).__name__}: "
                f"{error}); update that package or uninstall it",
                file=sys.stderr,
            )
    return found
