"""Experiments of a few cases, and their plans."""

from pffbench.experiment.check import make_plan
from pffbench.experiment.load import from_data


def load_cases(*cases, **top):
    """Return an experiment of these entries, without raw cases unless `roofline` asks for them."""
    return from_data({"name": "x", "cases": list(cases), "roofline": False, **top}, "x.yaml")


def plan_cases(*cases, ranks=4, topology=None, **top):
    """Return the plan of such an experiment for a number of ranks."""
    return make_plan(load_cases(*cases, **top), ranks, topology=topology)
