"""From a run to an answer: which format and settings, by how much, how sure, and the code."""

from pffbench_analysis.recommend.advice import Advice, advise
from pffbench_analysis.recommend.purposes import Weights
from pffbench_analysis.recommend.text import recommend

__all__ = ["Advice", "Weights", "advise", "recommend"]
