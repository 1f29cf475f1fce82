"""Base class of the workloads, and the columns that they add to tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import msgspec

from pffbench.backends.base import Backend
from pffbench.case import Parameters
from pffbench.workloads.arrays import CaseArrays

if TYPE_CHECKING:
    from pffbench.workloads.repetition import Repetition


class PhaseColumn(msgspec.Struct, frozen=True):
    """A column that a workload adds to the tables of a summary: the time of a phase."""

    #: Heading; the unit of the column is added to it.
    heading: str
    #: The part of a repetition that it belongs to.
    part: Literal["write", "update", "read"]
    #: The phase.
    phase: str
    #: What the time is divided by: nothing, the arrays or the library calls of all ranks.
    per: Literal["case", "array", "call"] = "case"
    #: Explanation below the tables; empty where the heading says it.
    legend: str = ""

    def unit(self, of_totals: str) -> str:
        """Return the unit of the times: that of the totals, or µs for parts of a case."""
        return of_totals if self.per == "case" else "µs"


class CountColumn(msgspec.Struct, frozen=True):
    """A column that a workload adds to the tables of a summary: a counter of a phase."""

    #: Heading, with the unit.
    heading: str
    #: The part of a repetition that it belongs to.
    part: Literal["write", "update", "read"]
    #: Where it is counted, and its name.
    phase: str
    counter: str
    #: What the number is divided by.
    unit: float = 1
    #: Explanation below the tables; empty where the heading says it.
    legend: str = ""


class Impossible(str):
    """Reason of `Workload.refuse`: a combination that an experiment may leave out of its sweep."""

    __slots__ = ()


class Workload(ABC):
    """An access pattern.

    Its methods but `run` are pure functions of the parameters and the number of ranks, so that a
    run can be planned, checked and costed without MPI. Only `refuse` may depend on the data
    (``source``, ``file``, ``variable``) and on ``durability`` and ``cache``: the arrays are planned
    once for all of these.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    parameters_type: ClassVar[type[Parameters]]
    #: Columns of its tables in addition to those that every workload has.
    columns: ClassVar[tuple[PhaseColumn | CountColumn, ...]] = ()
    #: Whether no rank reads an element twice: the kernel then delivers at least what is read.
    reads_once: ClassVar[bool] = False

    @abstractmethod
    def arrays(self, parameters: Any, ranks: int) -> CaseArrays:
        """Return the arrays of a case that is not refused, and the calls that move them."""

    def refuse(self, parameters: Any, ranks: int, backend: type[Backend]) -> str | None:
        """Return why a case cannot run, or None.

        A reason is a mistake of the user, such as keys that contradict each other, and ends the
        run. An `Impossible` says that the backend, or so many ranks, cannot do the case: with
        ``unsupported: skip`` it is left out, and the run goes on. Unless a workload has its own
        reasons, chunks must fit the arrays.
        """
        from pffbench.workloads.refusals import unfit_chunks  # which needs this module

        return next(filter(None, map(unfit_chunks, self.arrays(parameters, ranks).families)), None)

    def run(self, repetition: Repetition) -> None:
        """Run one repetition of a case: write everything and read it back; collective."""
        from pffbench.workloads.write_read import write_read_cycle  # a plan needs no flow

        write_read_cycle(repetition)
