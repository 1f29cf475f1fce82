"""The load of the machine during a run, by processes that are not of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec
import numpy as np

from pffbench.median import median_of
from pffbench.record.repetitions import Repetition
from pffbench.storage.durability import QUIET

#: Fraction of a node's processors that others, or its host, may take.
BUSY = 0.15
#: Seconds from which on the load of a round is judged: the kernel counts ticks of 10 ms.
_JUDGED = 0.2


class LoadSummary(msgspec.Struct, frozen=True):
    """The state of the machine over the rounds that count."""

    #: Number of rounds that were long enough to judge the load in them.
    rounds: int = 0
    #: Number of rounds in which other processes took more than `BUSY` of the processors, and in
    #: which the host of a virtual machine did.
    busy: int = 0
    stolen: int = 0
    #: Median fraction of the processors taken by them, over these rounds.
    busy_others: float = 0.0
    steal: float = 0.0
    #: Number of repetitions, and of those that began while earlier writes were not on their device.
    repetitions: int = 0
    unsettled: int = 0


def summarise_load(repetitions: Iterable[Repetition]) -> LoadSummary:
    """Summarise the state of the machine.

    The processor time of this job's own ranks is not in it. In a round, repetitions count by their
    duration: in a short one the kernel's ticks say little.
    """
    counted = [one for one in repetitions if not one.warmup]
    rounds: dict[int, list[tuple[float, float, float]]] = defaultdict(list)
    for one in counted:
        times = one.read.times if one.read else 1
        seconds = times * sum(phase.seconds for phase in one.phases)
        rounds[one.round].append((seconds, one.machine.busy_others, one.machine.steal))
    tables = [np.array(some) for some in rounds.values()]
    judged = [table for table in tables if table[:, 0].sum() >= _JUDGED]
    means = [np.average(table[:, 1:], axis=0, weights=table[:, 0]) for table in judged]
    busy, stolen = ([float(mean[i]) for mean in means if mean[i] > BUSY] for i in (0, 1))
    return LoadSummary(
        rounds=len(judged),
        busy=len(busy),
        stolen=len(stolen),
        busy_others=median_of(busy) if busy else 0.0,
        steal=median_of(stolen) if stolen else 0.0,
        repetitions=len(counted),
        unsettled=sum(one.machine.dirty_bytes > QUIET for one in counted),
    )


#: Part of the rounds that may be disturbed.
_OFTEN = 0.2


def busy(load: LoadSummary) -> Iterator[str]:
    """Yield that others used the processors in many rounds, with a remedy."""
    for disturbed, part, who, remedy in (
        (load.busy, load.busy_others, "others", "on an idle machine"),
        (load.stolen, load.steal, "the host of this machine", "later"),
    ):
        if disturbed > _OFTEN * load.rounds:
            when = f"in {disturbed} of {load.rounds} rounds" if load.rounds > 1 else "while it ran"
            yield f"BUSY: {who} used {part:.0%} of the processors {when}; measure again {remedy}"


def unsettled(load: LoadSummary) -> Iterator[str]:
    """Yield that earlier writes were often not on their device, with a remedy."""
    if load.repetitions and load.unsettled > _OFTEN * load.repetitions:
        yield (
            f"over {QUIET >> 20} MiB of earlier writes were not on their device when "
            f"{load.unsettled} of {load.repetitions} repetitions began; measure while nothing else "
            "writes"
        )
