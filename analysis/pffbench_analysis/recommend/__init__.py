"""Recommendation of format and settings from a run, with effect, confidence and code."""

from pffbench_analysis.recommend.advice import Advice, advise
from pffbench_analysis.recommend.candidates import Filters, Weights
from pffbench_analysis.recommend.text import OwnData, Recommended, recommend

__all__ = ["Advice", "Filters", "OwnData", "Recommended", "Weights", "advise", "recommend"]
