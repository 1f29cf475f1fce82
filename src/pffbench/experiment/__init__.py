"""Experiments: schema, expansion into cases, checks, and estimates of their cost."""
