"""From a run to an answer: which format and settings, by how much, how sure, and the code."""

from pffbench_analysis.recommend.advice import Advice, advise
from pffbench_analysis.recommend.output import recommend
from pffbench_analysis.recommend.purposes import Weights

__all__ = ["Advice", "Weights", "advise", "recommend"]
