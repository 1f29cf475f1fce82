"""Compression ratio against the speed of writing and reading.

In a notebook::

    from pffbench.summary.summary import summarise
    from pffbench_analysis.pareto import kinds_of, pareto_frame, standings

    kinds = kinds_of(summarise("results/first"))
    standings(kinds[0], ("write",))
    pareto_frame(kinds)
"""

from pffbench_analysis.pareto.command import pareto_frame, write_pareto
from pffbench_analysis.pareto.front import FrontPosition, FrontStanding, non_dominated, standings
from pffbench_analysis.pareto.points import CompressionPoint, DataKind, Speed, kinds_of

__all__ = [
    "CompressionPoint",
    "DataKind",
    "FrontPosition",
    "FrontStanding",
    "Speed",
    "kinds_of",
    "non_dominated",
    "pareto_frame",
    "standings",
    "write_pareto",
]
