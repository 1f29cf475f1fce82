"""`pffbench workloads`: the workloads, and their parameters with defaults."""

from __future__ import annotations

import argparse

from pffbench.commands.describe import fields_of
from pffbench.workloads.registry import workload, workload_names


def main(arguments: argparse.Namespace) -> int:  # noqa: ARG001 -- it takes none
    """List the workloads. Return the exit status."""
    for name in workload_names():
        found = workload(name)
        print(f"{name}: {found.summary}")
        print("\n".join(f"  {line}" for line in fields_of(found.parameters_type)))
        print()
    return 0
