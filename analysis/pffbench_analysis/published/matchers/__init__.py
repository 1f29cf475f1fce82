"""Matchers of runs and studies: one module for each study that a workload can repeat.

A module has the name of the study, with underscores, and a `MATCHER`, an object with the methods
of `pffbench_analysis.published.counterparts.Matcher`, and of
`pffbench_analysis.published.curves.DrawsCurves` if the study varied a parameter. No other
registration is needed.
"""

from __future__ import annotations

from importlib import import_module

from pffbench_analysis.published.counterparts import Matcher


def matcher_of(study: str) -> Matcher:
    """Return the matcher of a study that `pffbench_analysis.published.STUDIES` names."""
    found: Matcher = import_module(f"{__name__}.{study.replace('-', '_')}").MATCHER
    return found
