"""The clock: what can be told apart from nothing."""

from __future__ import annotations

from pffbench.diagnosis.finding import Finding
from pffbench.parallel.clock import Floor

TOPIC = "Clock"
#: An empty phase that costs more than this hides most of what small experiments do.
_SLOW_BARRIER = 0.01


def judge_floor(floor: Floor, ranks: int) -> Finding:
    """Tell what an empty phase costs.

    Parameters
    ----------
    floor : Floor
        As `measure_floor` found it.
    ranks : int
        Number of ranks.
    """
    text = (
        f"an empty phase costs {_seconds(floor.synced)} on {ranks} rank{'s' * (ranks > 1)}, the "
        f"clock ticks every {_seconds(floor.tick)}: phases under "
        f"{_seconds(floor.resolution('synced'))} are marked as below resolution"
    )
    if floor.synced <= _SLOW_BARRIER:
        return Finding(TOPIC, "ok", text)
    remedy = "give each rank a core, keep others off the nodes, and move more data per phase"
    return Finding(TOPIC, "warning", text, remedy)


def _seconds(value: float) -> str:
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"
