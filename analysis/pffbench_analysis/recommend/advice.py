"""The recommendation of a run: an answer for each work and purpose, or a reason for its absence."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pffbench.errors import UserError
from pffbench.summary.answer import answer_of, obstacle, why_none
from pffbench.summary.conclusions import command_to_decide
from pffbench.summary.headline import Design
from pffbench.summary.summary import Summary
from pffbench_analysis.recommend.bounds import objection
from pffbench_analysis.recommend.candidates import (
    Candidate,
    Filters,
    Weights,
    Work,
    purposes,
    works,
)
from pffbench_analysis.recommend.judge import Recommendation, WayStanding, judge
from pffbench_analysis.runs import readable


@dataclass(frozen=True)
class WorkAdvice:
    """The answers for one work.

    Parameters
    ----------
    work : Work
        The work.
    answers : tuple of Recommendation
        For writing, for reading and for their weighted sum.
    obstacle : str, optional
        Why nothing can be concluded from the run, so that nothing is taken.
    """

    work: Work
    answers: tuple[Recommendation, ...]
    obstacle: str | None = None

    @property
    def choice(self) -> Candidate | None:
        """The recommended way; None where nothing is decided."""
        taken = None if self.answer is None or self.obstacle else self.answer.taken
        return None if taken is None else taken.candidate

    @property
    def answer(self) -> Recommendation | None:
        """The answer for the sum, else for writing, else for reading, if there is one."""
        writing, reading, both = self.answers
        return next((answer for answer in (both, writing, reading) if answer.placed), None)


@dataclass(frozen=True)
class Advice:
    """The answers of a run.

    Parameters
    ----------
    directory : Path
        The results directory.
    summary : Summary
        Summary of the run.
    works : tuple of WorkAdvice
        One per work; empty where the run can be used for none.
    """

    directory: Path
    summary: Summary
    works: tuple[WorkAdvice, ...]

    def command_for(self, one: WorkAdvice) -> tuple[str, str]:
        """Return what to do about a work of which nothing is taken: in words, and a command.

        Both are empty where a way is taken that has been compared, or no command helps.
        """
        own = answer_of(self.summary)
        if own and (one.obstacle or self.why_none):
            return own.open, own.command
        if one.answer is None or one.answer.taken is None:
            needed = one.answer.needed if one.answer else 0
            return "To decide it:", command_to_decide(self.summary, needed)
        alone = one.answer.taken.standing is WayStanding.ONLY
        if alone and own and own.word == "MEASURED":
            return own.open, own.command
        return "", ""

    @property
    def why_none(self) -> str | None:
        """Why nothing is taken, in the words of the run's own answer; None where something is."""
        return None if any(one.choice for one in self.works) else why_none(self.summary)


def advise(
    directory: str | Path, weights: Weights | None = None, filters: Filters | None = None
) -> Advice:
    """Read a run and return its recommendation.

    Parameters
    ----------
    directory : str or Path
        Results directory.
    weights : Weights, optional
        How often data are written and read; by default once each.
    filters : Filters, optional
        The ways to choose from; by default all of each layout.

    Raises
    ------
    UserError
        The directory holds no run of this version, or one that allows no conclusion, or none of
        these ways.
    """
    path = Path(directory)
    return advice_of(readable(path), path, weights, filters)


def advice_of(
    summary: Summary, path: Path, weights: Weights | None = None, filters: Filters | None = None
) -> Advice:
    """Return the recommendation of a run that has been read; see `advise`."""
    if why := objection(summary.record):
        raise UserError(f"{path} recommends nothing: {why}")
    wanted = purposes(weights or Weights())
    there = works(summary, filters or Filters())
    # All questions about a run at once, so that its claims are one family.
    questions = [(work.candidates, purpose) for work in there for purpose in wanted]
    answers = judge(questions, Design.of_experiment(summary.record.experiment))
    hindrance = obstacle(summary)
    hindered = hindrance.reason if hindrance else None
    found = tuple(
        WorkAdvice(work, tuple(answers[i * len(wanted) : (i + 1) * len(wanted)]), hindered)
        for i, work in enumerate(there)
    )
    if not any(one.answer or one.obstacle for one in found):
        reasons = {a.why_not for one in found for a in one.answers if a.why_not}
        why = "; ".join(sorted(reasons)) or "it holds no case of a format that counts"
        raise UserError(f"{path} recommends nothing: {why}")
    return Advice(path, summary, found)
