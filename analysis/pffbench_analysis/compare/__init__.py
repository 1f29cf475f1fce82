"""Two or more runs of the same cases, compared: faster, slower, or no difference shown."""

from pffbench_analysis.compare.judge import compare_runs
from pffbench_analysis.compare.model import Comparison, Pair, Verdict
from pffbench_analysis.compare.output import compare

__all__ = ["Comparison", "Pair", "Verdict", "compare", "compare_runs"]
