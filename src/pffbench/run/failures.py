"""Failures in a run: a case ends on all ranks, or the run does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from pffbench.backends.base import Store
from pffbench.backends.traits import Abandons
from pffbench.case import Case
from pffbench.errors import ResultsLostError, UserError
from pffbench.mpi.agreement import AgreedStep, Failure, PhaseFailedError, sleeping_barrier
from pffbench.run.context import RunContext
from pffbench.run.spec import repetition_directory
from pffbench.workloads.repetition import Repetition

if TYPE_CHECKING:
    from mpi4py import MPI

#: The phases in which stores are closed.
_CLOSING = ("close", "close_read")


@contextmanager
def ends_if_lost(comm: MPI.Intracomm) -> Iterator[None]:
    """End the run on all ranks, by ResultsLostError, if rank 0 cannot write results."""
    try:
        with AgreedStep(comm, "recording"):
            yield
    except PhaseFailedError as error:
        raise ResultsLostError(str(error)) from error


class Failures:
    """Ends the cases that fail; every method is collective.

    Parameters
    ----------
    context : RunContext
        Context of the run.

    Attributes
    ----------
    abandoned : list of Store
        Stores left open by a failure. They are kept and not closed: a library that fails during a
        collective close leaves the other ranks waiting forever, and releasing a store closes it
        too.
    """

    def __init__(self, context: RunContext) -> None:
        self._team = context.team
        self._spec = context.spec
        self._scratch = context.scratch
        self._recorder = context.recorder
        self.abandoned: list[Store] = []

    def end(self, case: Case, number: int, failure: Failure, repetition: Repetition | None) -> None:
        """End a case: note why, close what can be closed, remove its files.

        Parameters
        ----------
        case : Case
            The case.
        number : int
            Number of the repetition.
        failure : Failure
            What failed.
        repetition : Repetition or None
            The repetition; None if it was not prepared yet.
        """
        # The case may have opened all files allowed to the process.
        with nullcontext() if self._recorder is None else self._recorder.spare.lent():
            with ends_if_lost(self._team.comm):
                if self._recorder is not None:
                    self._recorder.fail(case, number, failure)
            if repetition is not None:
                self._close(repetition, failure)
                repetition.place.buffer.leave()  # a library may still use the memory
            sleeping_barrier(self._team.comm)
            # Files written by another job stay if this one fails before reading them.
            if repetition is not None or self._spec.stage != "read":
                self._remove_files(case, number)
            sleeping_barrier(self._team.comm)

    def _close(self, repetition: Repetition, failure: Failure) -> None:
        """Close the stores left open by a failure, if each rank can do so alone.

        A store whose close failed stays open: HDF5 crashes on a second attempt. Ranks on which a
        library refused an unsafe call can close together, because all of them were refused.
        """
        was_closing = failure.phase in _CLOSING
        refused = repetition.request.unsafe and failure.ranks_failed == self._team.size
        for store in repetition.place.open_stores:
            together = repetition.comm is not None and store.collective_close and not refused
            if not together and not was_closing:
                try:
                    store.close()
                except Exception:  # noqa: BLE001 -- the original failure is already recorded
                    pass
                else:
                    continue
            self.abandoned.append(store)
            if isinstance(store, Abandons) and (was_closing or not together):
                store.abandon()

    def _remove_files(self, case: Case, number: int) -> None:
        """Remove the files of a failed case; the scratch directory itself may have failed."""
        if not self._team.keeps(node_local=self._scratch.node_local):
            return
        try:
            left = self._scratch.path(repetition_directory(case.id, number))
            self._scratch.remove(left, missing_ok=True)
        except (OSError, UserError) as error:
            if self._recorder is not None:
                self._recorder.remark(f"files of {case.id} could not be removed: {error}")
