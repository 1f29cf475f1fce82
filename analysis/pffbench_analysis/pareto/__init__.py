"""How much smaller data become, against how fast they are written and read.

In a notebook::

    from pffbench.results.summary import summarise
    from pffbench_analysis.pareto import kinds_of, pareto_frame, standings

    kinds = kinds_of(summarise("results/first"))
    standings(kinds[0].points, ("write",))
    pareto_frame(kinds)
"""

from pffbench_analysis.pareto.front import Placed, Standing, non_dominated, standings
from pffbench_analysis.pareto.output import pareto_frame, write_pareto
from pffbench_analysis.pareto.points import Kind, Point, Speed, kinds_of

__all__ = [
    "Kind",
    "Placed",
    "Point",
    "Speed",
    "Standing",
    "kinds_of",
    "non_dominated",
    "pareto_frame",
    "standings",
    "write_pareto",
]
