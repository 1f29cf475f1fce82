"""`pffbench workloads`: the workloads, and their parameters with defaults."""

from __future__ import annotations

import argparse

from pffbench.case import Parameters
from pffbench.commands.describe import add_names, key_lines, wrapped
from pffbench.workloads.registry import workload, workload_names


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_names(parser, "workload", workload_names())


def main(arguments: argparse.Namespace) -> int:
    """List the workloads. Return the exit status."""
    common = Parameters.__struct_fields__
    for name in arguments.names or workload_names():
        kind = workload(name)
        print("\n".join(wrapped(f"{name}: {kind.summary}", "", "  ")))
        print("\n".join(key_lines(kind.parameters_type, but=common)))
        print()
    print("keys of every case, in each workload:")
    print("\n".join(key_lines(Parameters)))
    return 0
