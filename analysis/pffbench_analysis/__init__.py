"""Comparisons of runs, scaling, recommendations, figures and the page of `pffbench`."""
