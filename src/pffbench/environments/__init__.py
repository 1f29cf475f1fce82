"""Runs of several environments: one coordinator starts the ranks of each in turn."""
