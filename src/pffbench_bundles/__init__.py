"""Bundles: runs packed for others, who check them by rules and repeat them.

Nothing of `pffbench` imports this package: it is tied by entry points (`pyproject.toml`).
"""
