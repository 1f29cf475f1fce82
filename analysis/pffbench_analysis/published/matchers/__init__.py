"""What puts a run beside a study: one module for each study that a workload can redo.

A module is called as the study, with underscores, and has a `MATCHER`, an object with the
methods of `published.counterparts.Matcher`; where the study varied a parameter, with
that of `pffbench_analysis.published.curves.DrawsCurves` too. Nothing else has to know of it.
"""

from __future__ import annotations

from importlib import import_module

from pffbench_analysis.published.counterparts import Matcher


def matcher_of(study: str) -> Matcher:
    """Return the matcher of a study that `pffbench_analysis.published.STUDIES` names."""
    found: Matcher = import_module(f"{__name__}.{study.replace('-', '_')}").MATCHER
    return found
