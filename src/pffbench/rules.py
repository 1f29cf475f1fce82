"""How a run is to go on, as the command line says it."""

from __future__ import annotations

from dataclasses import dataclass

from pffbench.case import Stage


@dataclass(frozen=True)
class Rules:
    """How to run, beside what to run.

    Parameters
    ----------
    fail_fast : bool
        Stop at the first case that fails, instead of going on with the others.
    drop_hook : str, optional
        The site's command that drops the page cache of a node.
    stage : {"all", "write", "read"}
        Which part of every repetition this job does.
    seconds : float, optional
        How long the run may go on from now; None without a limit.
    hang_timeout : float, optional
        How long a step may take before the run counts as hung; by what the case does when None.
    """

    fail_fast: bool = False
    drop_hook: str | None = None
    stage: Stage = "all"
    seconds: float | None = None
    hang_timeout: float | None = None
