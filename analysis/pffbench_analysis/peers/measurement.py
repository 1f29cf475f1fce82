"""Measurements of another program in the terms of pffbench, before they are written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: Largest size of a results file of another program, in bytes.
LARGEST = 2**28


@dataclass(frozen=True)
class PeerRepetition:
    """One repetition of a test.

    Parameters
    ----------
    seconds : dict of str to float
        Job time of each phase that was timed.
    operations : dict of str to int
        Calls of all ranks, for phases where the program reports them.
    """

    seconds: Mapping[str, float]
    operations: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Test:
    """A test of another program, which becomes a case.

    Parameters
    ----------
    parameters : dict
        Parameters of pffbench (workload, backend, layout, transfer, settings, dtype, source,
        durability, cache) and those of the program that change the work.
    same_work : tuple of str
        Parameters in which tests of one comparison do not differ.
    raw : bool
        Whether it moves raw bytes.
    ranks, nodes : int
        Size of the job; nodes is 0 if not reported.
    arrays, nbytes : int
        Arrays or files, and bytes of data, of all ranks together.
    repetitions : tuple of PeerRepetition
        In their order.
    started : str
        Start time, as ISO 8601 without a time zone; empty if not reported.
    notes : tuple of str
        Remarks on the content of its phases.
    """

    parameters: Mapping[str, Any]
    same_work: tuple[str, ...]
    raw: bool
    ranks: int
    nodes: int
    arrays: int
    nbytes: int
    repetitions: tuple[PeerRepetition, ...]
    started: str = ""
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the case, which ends in a digest of all its parameters."""
        p = self.parameters
        words = (str(p[k]) for k in ("backend", "workload", "layout", "transfer", "settings"))
        return ".".join([*words, _digest(dict(p))])

    @property
    def group(self) -> str:
        """Name of the comparison that it belongs to."""
        p = self.parameters
        work = {key: p[key] for key in self.same_work} | {"ranks": self.ranks}
        return f"{p['workload']}.{p['layout']}.{_digest(work)}"


@dataclass(frozen=True)
class Imported:
    """Content of one file.

    Parameters
    ----------
    program : str
        Name and version of the program.
    tick : float
        Resolution of the times, in seconds.
    tests : tuple of Test
        The tests.
    remarks : tuple of str
        Remarks on the numbers.
    command : str
        The command line; empty if not reported.
    """

    program: str
    tick: float
    tests: tuple[Test, ...]
    remarks: tuple[str, ...] = ()
    command: str = ""


def _digest(value: Mapping[str, Any]) -> str:
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
