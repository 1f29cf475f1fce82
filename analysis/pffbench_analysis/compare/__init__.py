"""Two or more runs of the same cases, compared: faster, slower, or no difference shown."""

from pffbench_analysis.compare.command import compare
from pffbench_analysis.compare.comparison import Comparison, Pair, Verdict
from pffbench_analysis.compare.judge import compare_runs

__all__ = ["Comparison", "Pair", "Verdict", "compare", "compare_runs"]
