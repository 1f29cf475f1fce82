"""Why nothing can be concluded from the times of a valid run, and what to run instead."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from pffbench.record.run import MeasuredRun
from pffbench.record.run_json import RunRecord
from pffbench.results.cells import Cell
from pffbench.results.judge import FEWEST
from pffbench.results.load import LoadSummary, busy
from pffbench.results.rerun import budget_for, command_again, command_to_resume, larger

#: How much longer than needed times are made.
_SPARE = 1.5
#: How many times as long a round of more data is expected to take at most.
_MOST_LONGER = 4


class Obstacle(NamedTuple):
    """Why there is no answer."""

    #: In one sentence.
    reason: str
    #: The command to run instead; empty where none helps.
    command: str = ""
    #: About how long it takes; 0 where that is not known.
    seconds: float = 0.0


def obstacle(run: MeasuredRun, cells: Sequence[Cell], load: LoadSummary) -> Obstacle | None:
    """Return why nothing can be concluded from the times of a run; None if it can.

    Parameters
    ----------
    run : MeasuredRun
        The run.
    cells : sequence of Cell
        Its totals, those below the resolution of the clock among them.
    load : LoadSummary
        The use of the machine by others.
    """
    record = run.record
    rounds = max((len(cell.seconds) for cell in cells), default=0)
    disturbed = next(iter(busy(load)), None)
    if disturbed and not record.accept_busy:
        why = f"{disturbed}, or add --accept-busy if there is none"
        return Obstacle(why, command_again(record), seconds_again(record))
    formats = [cell for cell in cells if not cell.raw]
    if formats and all(cell.median < run.resolution for cell in formats):
        return _too_short(run, formats)
    if rounds < FEWEST:
        reason = f"at least {FEWEST} rounds are needed, and no case has more than {rounds}"
        again = record.time_needed or seconds_again(record, (FEWEST + 1) / (rounds + 1))
        if record.status == "interrupted":
            return Obstacle(reason, command_to_resume(record, run.directory))
        if record.time_needed:
            reason += f": the time budget of {record.experiment['time_budget']:g} s ended first"
        return Obstacle(reason, command_to_repeat(record, FEWEST, again), again)
    return None


def _too_short(run: MeasuredRun, cells: Sequence[Cell]) -> Obstacle:
    shortest = min(cell.median for cell in cells)
    needed = _SPARE * run.resolution / shortest if shortest else 2.0
    factor = 2 ** math.ceil(math.log2(max(2.0, needed)))
    words, changes = larger(run.record, [cell.case for cell in cells], factor)
    record, seconds = run.record, seconds_again(run.record)
    budget = record.experiment.get("time_budget")
    if changes and budget and any("time budget" in why for why in record.stops):
        seconds *= min(factor, _MOST_LONGER)  # rounds of more data; the rest of them stays
        changes["time_budget"] = f"{budget_for(seconds)}"
    command = command_again(record, changes) if changes else ""
    reason = f"the times are too short to be measured (under 100 times the floor); {words}"
    return Obstacle(reason, command, seconds)


def command_to_repeat(record: RunRecord, rounds: int, seconds: float = 0.0) -> str:
    """Return the command of the run with so many rounds, and a budget that holds them."""
    changes: dict[str, str] = {"repetitions": f"{rounds}"}
    if budget := record.experiment.get("time_budget"):
        changes["time_budget"] = f"{max(math.ceil(budget), budget_for(seconds))}"
    return command_again(record, changes)


def seconds_again(record: RunRecord, factor: float = 1.0) -> float:
    """Estimate the seconds of a run measured again; 0 where its own duration is not known.

    Parameters
    ----------
    record : RunRecord
        The run.
    factor : float
        How many times as many rounds.
    """
    return max(1.0, factor) * duration_of(record)


def duration_of(record: RunRecord) -> float:
    """Return the seconds that a finished run took; 0 where they are not known."""
    if record.finished is None or record.resumed or record.status != "finished":
        return 0.0
    try:
        begin, end = (datetime.fromisoformat(text) for text in (record.started, record.finished))
        return max(0.0, (end - begin).total_seconds())
    except (TypeError, ValueError):
        return 0.0
