"""How long a case takes: whether another repetition ends in time, and when a run counts as hung."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pffbench.case import Case
from pffbench.experiment.cost import cost_of

#: Seconds that any step may take, whatever it does, before the run counts as hung.
SHORTEST_PATIENCE = 600.0
#: Beside these a case that has not run yet may take the time that a very slow file system needs:
#: a tenth of a megabyte a second for each rank, a hundred files and arrays a second for all.
_SLOWEST_BYTES = 1e5
_SLOWEST_FILES = 100.0
#: A step of a case that has run may take so many times its longest repetition.
_SLOWER = 10.0


@dataclass
class Pace:
    """The longest and the last repetition of each case so far, all off the timer included."""

    last: dict[str, float] = field(default_factory=dict)
    _longest: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def of(self, case: Case) -> Iterator[None]:
        """Note how long a repetition takes."""
        begin = time.monotonic()
        yield
        seconds = self.last[case.id] = time.monotonic() - begin
        self._longest[case.id] = max(self._longest.get(case.id, 0.0), seconds)

    def expected(self, case: Case) -> float:
        """Return the seconds that another repetition may take.

        Of a case that has not run yet it is the longest of any other case: better to stop a
        little early than to be killed in the midst of it. Before the first one it is 0.
        """
        return self._longest.get(case.id, max(self._longest.values(), default=0.0))

    def patience(self, case: Case, ranks: int, memory: int) -> float:
        """Return the seconds after which a step of a case that has not ended counts as hung.

        Parameters
        ----------
        case : Case
            The case.
        ranks : int
            Number of ranks.
        memory : int
            Bytes that the buffers of a rank may take.
        """
        if case.id in self._longest:
            return max(SHORTEST_PATIENCE, _SLOWER * self._longest[case.id])
        cost = cost_of(case, ranks, memory)
        moving = cost.nbytes / ranks / _SLOWEST_BYTES
        return SHORTEST_PATIENCE + moving + (cost.files + cost.arrays) / _SLOWEST_FILES
