"""`pffbench workloads`: the workloads, and their parameters with defaults."""

from __future__ import annotations

import argparse

from pffbench.case import Parameters
from pffbench.commands.describe import key_lines, wrapped
from pffbench.workloads.registry import workload, workload_names


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: the command has no options."""


def main(arguments: argparse.Namespace) -> int:  # noqa: ARG001 -- it takes none
    """List the workloads. Return the exit status."""
    common = Parameters.__struct_fields__
    for name in workload_names():
        kind = workload(name)
        print("\n".join(wrapped(f"{name}: {kind.summary}", "", "  ")))
        print("\n".join(key_lines(kind.parameters_type, but=common)))
        print()
    print("keys of every case, in each workload:")
    print("\n".join(key_lines(Parameters)))
    return 0
