"""The pace of a run: how long its repetitions take, and how long a step of one may take."""

from __future__ import annotations

from pffbench.case import Case
from pffbench.experiment.plan import cost_of
from pffbench.job.alarm import PATIENCE

#: In addition, a case that has not run yet is allowed the time of a very slow file system:
#: a tenth of a megabyte a second for each rank, a hundred files and arrays a second for all.
_SLOWEST_BYTES = 1e5
_SLOWEST_FILES = 100.0
#: Maximum time of a step of a case that has run, as a multiple of its longest repetition.
_SLOWER = 10.0


class Pace:
    """The longest and the last repetition of each case so far, including untimed work.

    Parameters
    ----------
    ranks : int
        Number of ranks.
    memory : int
        Maximum bytes of the buffers of a rank.
    limit : float, optional
        Seconds after which a step counts as hung, if the user gives them.
    """

    def __init__(self, ranks: int, memory: int, limit: float | None = None) -> None:
        self._ranks = ranks
        self._memory = memory
        self._limit = limit
        self.last: dict[str, float] = {}
        self._longest: dict[str, float] = {}

    def note(self, case: Case, seconds: float, once: float) -> None:
        """Record the duration of a repetition, and the part that no other of the case needs."""
        self.last[case.id] = seconds - once
        self._longest[case.id] = max(self._longest.get(case.id, 0.0), seconds)

    def expected(self, case: Case) -> float:
        """Return the expected seconds of another repetition; before the first one 0.

        For a case that has not run yet, this is the longest of any other case: stopping a little
        early is better than being killed during it.
        """
        return self._longest.get(case.id, max(self._longest.values(), default=0.0))

    def patience(self, case: Case | None = None) -> float:
        """Return the seconds after which an unfinished step counts as hung; similar on all ranks.

        Parameters
        ----------
        case : Case, optional
            The case, if it is a step of one.
        """
        if self._limit is not None:
            return self._limit
        if case is None:
            return PATIENCE
        if case.id in self._longest:
            return max(PATIENCE, _SLOWER * self._longest[case.id])
        cost = cost_of(case, self._ranks, self._memory)
        moving = cost.nbytes / self._ranks / _SLOWEST_BYTES
        return PATIENCE + moving + (cost.files + cost.arrays) / _SLOWEST_FILES
