"""Two or more runs of the same cases, compared: faster, slower, equal or not decided."""

from pffbench_analysis.compare.baseline import compare_with_baseline
from pffbench_analysis.compare.command import compare
from pffbench_analysis.compare.comparison import Comparison, Pair, Verdict
from pffbench_analysis.compare.gate import Gate
from pffbench_analysis.compare.judge import compare_runs
from pffbench_analysis.compare.verdict_table import RowChoice

__all__ = [
    "Comparison",
    "Gate",
    "Pair",
    "RowChoice",
    "Verdict",
    "compare",
    "compare_runs",
    "compare_with_baseline",
]
