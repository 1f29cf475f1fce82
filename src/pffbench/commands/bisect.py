"""`pffbench bisect`: find the version of a package in which a time or a count changed."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from pffbench.environments.bisect import Search, bisect
from pffbench.parallel.batch_job import StopSignals
from pffbench.text import one_line


def main(arguments: argparse.Namespace) -> int:
    """Search, and print a line for each version that is tried. Return the exit status."""
    name = f"pffbench-results/bisect-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    search = Search(
        experiment=arguments.case,
        good=arguments.good,
        bad=arguments.bad,
        total=f"{arguments.total}_total",
        count=arguments.count,
        margin=arguments.margin,
        versions=tuple(arguments.versions),
        out=arguments.resume or arguments.out or name,
        resume=arguments.resume is not None,
        progress=arguments.progress,
        launcher=arguments.launcher,
        scratch=arguments.scratch,
    )
    with StopSignals() as stop:
        return bisect(search, stop, lambda text: print(one_line(text), flush=True))
