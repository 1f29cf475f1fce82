"""The backends that tests of the contract run: those of the registry that are installed.

A backend in another package runs the same tests as those here, by what its class says it can do.
``PFFBENCH_TEST_BACKENDS=NAME,NAME`` restricts them to some, while one of them is developed.
"""

from __future__ import annotations

import os

from pffbench.backends.registry import backend_class, backend_names, missing_library


def _usable():
    only = os.environ.get("PFFBENCH_TEST_BACKENDS")
    names = only.split(",") if only else backend_names()
    kinds = {name: backend_class(name) for name in names}
    return {
        name: kind
        for name, kind in kinds.items()
        if not kind.capabilities.discards and missing_library(kind) is None
    }


#: Classes of the backends by name.
KINDS = _usable()
#: Names of those that can be read back, of those that store described arrays, and of those whose
#: ranks can move data of a shared file by one call of all.
ALL = list(KINDS)
FORMATS = [name for name, kind in KINDS.items() if not kind.capabilities.raw]
COLLECTIVE = [name for name, kind in KINDS.items() if "collective" in kind.capabilities.transfers]
#: All but raw bytes that each rank moves for itself.
FORMATS_AND_COLLECTIVE = [name for name in ALL if name in FORMATS or name in COLLECTIVE]


def among(*names):
    """Return those of some backends that the tests run."""
    return [name for name in names if name in KINDS]


def runnable(cases):
    """Return the cases of an experiment that have a backend."""
    return [case for case in cases if case["backend"]]
