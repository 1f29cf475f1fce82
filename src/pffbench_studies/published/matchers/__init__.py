"""Matchers of runs and studies: one module for each study that a workload can repeat.

A module has a `MATCHER`, an object of a subclass of `Matcher`, and is an entry point of the group
`pffbench.studies`, whose names are those that experiments may name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import ClassVar, cast

from pffbench.results.summary import Summary
from pffbench_studies.published.counterparts import Match
from pffbench_studies.published.curves import Curves
from pffbench_studies.published.reasons import Fields
from pffbench_studies.published.values import PublishedValue


class Matcher(ABC):
    """A study that runs can be compared with."""

    #: Libraries whose versions matter; all if there are none.
    libraries: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def matches(self, summary: Summary, values: Sequence[PublishedValue]) -> list[Match]:
        """Return the numbers of a study that have a counterpart in a run."""

    @abstractmethod
    def facts(self, summary: Summary, matches: Sequence[Match]) -> Mapping[str, Sequence[Fields]]:
        """Return the rows of the differences between study and run, as `reasons_of` takes them."""

    def curves(self, matches: Sequence[Match], values: Sequence[PublishedValue]) -> list[Curves]:
        """Return the data of figures over what the study varied; without measurements none."""
        return []


def matcher_of(study: str) -> Matcher:
    """Return the matcher of a study that `pffbench_studies.published.STUDIES` names."""
    return cast(Matcher, import_module(f"{__name__}.{study.replace('-', '_')}").MATCHER)
