"""What makes a run not valid although all was read back right: clocks and missing repetitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from pffbench.results.gather import Repetition
from pffbench.results.record import RunRecord
from pffbench.results.samples import Sample
from pffbench.results.whole import whole


def clock_trouble(repetition: Repetition) -> Iterator[str]:
    """Yield the phases in which a clock cannot be believed: it ran backwards, or told no number.

    A phase that ended before it began is one such sign; that all ranks had ended it before this
    one is another.
    """
    own, synced = repetition.own, repetition.synced
    good = np.isfinite(own) & np.isfinite(synced) & (own >= 0) & (synced >= own)
    for phase, ranks in zip(repetition.phases, good, strict=True):
        if not ranks.all():
            yield f"the clock of rank {int(np.argmin(ranks))} ran backwards in {phase}"


def missing_repetitions(record: RunRecord, samples: Iterable[Sample], warmup: int) -> Iterator[str]:
    """Yield the cases of which fewer repetitions are recorded than the experiment asks for.

    Fewer are right where the experiment itself said when to stop. After a failure nothing is
    said: the run is not valid anyway, and one that stops at the first failure has not run the rest.

    Parameters
    ----------
    record : RunRecord
        The run, which has come to its end.
    samples : iterable of Sample
        All of its rows.
    warmup : int
        Repetitions that do not count.
    """
    if any("failure" in entry for entry in record.cases.values()):
        return
    complete = whole(samples, record.last_written)
    there = complete.written if record.stage == "write" else complete.finished
    counted = Counter(case for case, number in there if number >= warmup)
    asked = int(record.stopped_after or record.experiment["repetitions"])
    for case in record.cases:
        if counted[case] < asked:
            yield f"{case}: {counted[case]} of {asked} repetitions are recorded"
