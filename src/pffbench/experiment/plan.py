"""A plan: the cases that will run; only rank 0 makes it, all ranks follow it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from pffbench.case import Case
from pffbench.experiment.schema import Experiment

if TYPE_CHECKING:
    from pffbench.experiment.cost import Cost


class Plan(msgspec.Struct, frozen=True):
    """The cases that will run.

    Parameters
    ----------
    experiment : Experiment
        What was asked for.
    ranks : int
        For how many ranks it was checked.
    cases : tuple of Case
        What will run, in the order of the first block.
    left_out : tuple of (str, str)
        Names of the cases that are impossible and may be skipped, each with the reason.
    costs : dict of str to Cost
        What one repetition of each case takes, by its name.
    """

    experiment: Experiment
    ranks: int
    cases: tuple[Case, ...]
    left_out: tuple[tuple[str, str], ...]
    costs: Mapping[str, Cost]
