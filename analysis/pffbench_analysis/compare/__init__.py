"""Two or more runs of the same cases, compared: slower, faster, same or not decided."""

from pffbench_analysis.compare.baseline import compare_with_baseline
from pffbench_analysis.compare.command import compare
from pffbench_analysis.compare.comparison import Comparison, Row, compare_runs
from pffbench_analysis.compare.gate import Gate, judge

__all__ = ["Comparison", "Gate", "Row", "compare", "compare_runs", "compare_with_baseline", "judge"]
