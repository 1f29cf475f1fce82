"""How long a case takes, to know whether another repetition of it would end in time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pffbench.case import Case


@dataclass
class Pace:
    """The longest repetition of each case so far, everything off the timer included."""

    _longest: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def of(self, case: Case) -> Iterator[None]:
        """Note how long a repetition takes."""
        begin = time.monotonic()
        yield
        self._longest[case.id] = max(self._longest.get(case.id, 0.0), time.monotonic() - begin)

    def expected(self, case: Case) -> float:
        """Return the seconds that another repetition may take.

        Of a case that has not run yet it is the longest of any other case: better to stop a
        little early than to be killed in the midst of it. Before the first one it is 0.
        """
        return self._longest.get(case.id, max(self._longest.values(), default=0.0))
