"""Purposes of a user: fast writing, fast reading, or both with weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Weights:
    """How often data are written and read.

    Parameters
    ----------
    write, read : float
        Not negative; not both zero.
    """

    write: float = 1.0
    read: float = 1.0

    def __str__(self) -> str:
        return f"{self.write:g} × writing + {self.read:g} × reading"


@dataclass(frozen=True)
class Purpose:
    """A quantity to minimise: a weighted sum of the totals of phases.

    Parameters
    ----------
    name : str
        Readable name.
    parts : dict of str to float
        Weight of each total; weights of zero are left out.
    """

    name: str
    parts: Mapping[str, float]

    @property
    def reads(self) -> bool:
        """Whether reading is a part of it."""
        return "read_total" in self.parts

    @property
    def writes(self) -> bool:
        """Whether writing is a part of it."""
        return "write_total" in self.parts


WRITING = Purpose("writing", {"write_total": 1.0})
READING = Purpose("reading", {"read_total": 1.0})


def purposes(weights: Weights) -> tuple[Purpose, ...]:
    """Return writing, reading and their weighted sum, the sum last."""
    told = {"write_total": weights.write, "read_total": weights.read}
    both = Purpose(str(weights), {phase: w for phase, w in told.items() if w})
    return (WRITING, READING, both)
