"""The cases of the first round: those that the time budget does not hold are left out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pffbench.case import Case
from pffbench.experiment.estimate import slow_seconds
from pffbench.experiment.plan import Plan
from pffbench.results.judge import FEWEST
from pffbench.run.order import by_importance

#: The rate of a case says little about another one with this many times its bytes.
_OF_ANOTHER_SIZE = 8


def fewest_rounds(plan: Plan) -> int:
    """Return the rounds that each case has before any has more, without the warm-up."""
    return min(FEWEST, plan.experiment.rounds - plan.experiment.warmup)


class FirstRound:
    """Decides case by case, in the order of importance, which ones the time budget holds.

    Parameters
    ----------
    plan : Plan
        Plan of the run.
    begun : collection of str
        Cases with repetitions of an earlier start, which are never left out.
    """

    def __init__(self, plan: Plan, begun: Collection[str] = ()) -> None:
        self._plan = plan
        self._rounds = plan.experiment.warmup + fewest_rounds(plan)
        self.parts = by_importance(plan.cases)
        self._nbytes = {name: cost.nbytes for name, cost in plan.costs.items()}
        self._slow = slow_seconds(plan)
        #: Whether each case that has been asked about is left out.
        self._without = {
            case.id: False
            for part in self.parts
            for case in part
            if any(member.id in begun for member in part)
        }
        #: Comparisons that have been asked about, and whether their main part is left out.
        self._groups = {case.group: False for case in plan.cases if case.id in begun}

    def leaves_out(self, case: Case, passed: float, seconds: Mapping[str, float]) -> bool:
        """Return whether a case does not run, to keep to the time budget.

        Decided for each part of `by_importance` when its first case is due. The first part always
        runs, and a case only if the main part of its comparison does, which is its first.

        Parameters
        ----------
        case : Case
            The case that is due.
        passed : float
            Seconds since the first round of this start began.
        seconds : dict of str to float
            Seconds of the repetition of each case that has run.
        """
        budget = self._plan.experiment.time_budget
        if case.id not in self._without:
            part = next(part for part in self.parts if case in part)
            out = self._groups.get(case.group, False)
            if budget is not None and seconds and not out:
                more = self.estimate(part, seconds)
                again = (self._rounds - 1) * (sum(seconds.values()) + more)
                out = passed + more + again > budget
            self._groups.setdefault(case.group, out)
            self._without |= dict.fromkeys((c.id for c in part), out)
        return self._without[case.id]

    def left_out(self, cases: Sequence[Case]) -> list[Case]:
        """Return which of these cases have been left out."""
        return [case for case in cases if self._without.get(case.id)]

    def estimate(self, cases: Sequence[Case], seconds: Mapping[str, float]) -> float:
        """Estimate a repetition of cases that have not run from those that have.

        The bytes and times of the larger ones count, since small arrays take their time for calls.
        They say little about a case of many times their bytes: for it, the estimate that a plan
        makes for a slow machine is the limit.
        """
        nbytes = self._nbytes
        most = max(nbytes[name] for name in seconds)
        usual = sum(seconds.values()) / len(seconds)
        if not most:
            return len(cases) * usual
        large = [name for name in seconds if nbytes[name] * _OF_ANOTHER_SIZE > most]
        each_byte = sum(seconds[name] for name in large) / sum(nbytes[name] for name in large)

        def expected(case: str) -> float:
            by_bytes = nbytes[case] * each_byte
            known = nbytes[case] <= most * _OF_ANOTHER_SIZE
            return by_bytes if known else min(by_bytes, usual + self._slow[case])

        return sum(expected(case.id) for case in cases)


def left_out_at(plan: Plan, seconds: Mapping[str, float]) -> list[Case]:
    """Return the cases that a run leaves out if each one needs so many seconds.

    Parameters
    ----------
    plan : Plan
        The plan.
    seconds : dict of str to float
        Seconds of a repetition of each case.
    """
    first = FirstRound(plan)
    ran: dict[str, float] = {}
    for part in first.parts:
        for case in part:
            if not first.leaves_out(case, sum(ran.values()), ran):
                ran[case.id] = seconds[case.id]
    return first.left_out(plan.cases)
