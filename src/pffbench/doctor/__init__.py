"""The checks of `pffbench doctor`: each returns findings from plain facts."""
