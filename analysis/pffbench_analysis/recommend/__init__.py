"""The way to use, for a purpose of the user, with a program that uses it."""

from pffbench_analysis.recommend.advice import Advice, advise

__all__ = ["Advice", "advise"]
