"""Two or more runs of the same cases, compared: faster, slower, or no difference shown."""

from pffbench_analysis.compare.command import compare
from pffbench_analysis.compare.comparison import Comparison, Pair, Verdict
from pffbench_analysis.compare.judge import compare_runs
from pffbench_analysis.compare.verdict_table import RowChoice

__all__ = ["Comparison", "Pair", "RowChoice", "Verdict", "compare", "compare_runs"]
