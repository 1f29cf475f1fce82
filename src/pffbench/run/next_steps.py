"""Advice in a line or two: how to start on more ranks, and what to do after a run."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping

from pffbench.results.rerun import resuming, starter
from pffbench.results.summary import Summary
from pffbench.run.options import RunOptions

#: Number of ranks in an example is that of the processors, in these limits.
_FEWEST, _MOST = 2, 64


def more_ranks(options: RunOptions, environ: Mapping[str, str], processors: int) -> str:
    """Return how to start a run on more than its one rank.

    Parameters
    ----------
    options : RunOptions
        Options of the run.
    environ : mapping
        Environment, which tells a job of Slurm or Flux.
    processors : int
        Number of processors that the rank may use.
    """
    number = max(_FEWEST, min(_MOST, processors))
    command = [*starter(number, _scheduler(environ)), "python", "-m", "pffbench", "run"]
    if options.experiment is not None:
        command.append(options.experiment)
    return f"this run has one rank; to start more: {shlex.join(command)}"


def to_resume(directory: str, ranks: int, environ: Mapping[str, str]) -> str:
    """Return how to continue a run that has ended early."""
    command = resuming(starter(ranks, _scheduler(environ)), directory)
    return f"go on with: {shlex.join(command)}"


def _scheduler(environ: Mapping[str, str]) -> str:
    if "SLURM_JOB_ID" in environ:
        return "slurm"
    return "flux" if "FLUX_URI" in environ else ""


def available_processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


def next_steps(summary: Summary, directory: str) -> Iterator[str]:
    """Yield the next commands after a finished run.

    Parameters
    ----------
    summary : Summary
        The run.
    directory : str
        Its results directory.
    """
    run = shlex.quote(directory)
    steps = [("report", run, "tables, figures and a page")]
    if summary.answer and summary.answer.word == "USE":
        steps.append(("recommend", run, "the format to use, with a program"))
    if summary.record.valid is False and not summary.record.has_losses:
        steps.insert(0, ("doctor", "", "what works here, and remedies"))
    for command, of, purpose in steps:
        yield f"  {' '.join(filter(None, ['pffbench', command, of]))}  ({purpose})"
