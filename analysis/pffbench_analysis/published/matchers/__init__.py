"""What puts a run beside a study: one module for each study that a workload can redo.

A module is called as the study, with underscores, and has a `MATCHER`, an object with the three
methods of `pffbench_analysis.published.model.Matcher`. Nothing else has to know of it.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from pffbench_analysis.published.model import Matcher


def matcher_of(study: str) -> Matcher | None:
    """Return the matcher of a study, or None while no workload of pffbench redoes the study."""
    name = f"{__name__}.{study.replace('-', '_')}"
    if find_spec(name) is None:
        return None
    found: Matcher = import_module(name).MATCHER
    return found
