"""The verdict of a comparison, by a limit on how much slower new runs may be."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pffbench.errors import INCONCLUSIVE, MACHINE_CHANGED, NOT_VALID, VALID, WRONG_INPUT
from pffbench.results import words
from pffbench.text import abridged, counted
from pffbench.units import percent
from pffbench_analysis.compare.comparison import Comparison, Row

#: Largest number of items of a kind in a sentence.
_NAMED = 5
#: The worst first. Each run is judged by its own control: one that fails has a machine that did not
#: change.
_WORST = (NOT_VALID, MACHINE_CHANGED, WRONG_INPUT, INCONCLUSIVE, VALID)
MORE_STARTS = "three runs of each side show smaller differences (pffbench compare OLD … -- NEW …)"


class Gate(NamedTuple):
    """What a gate allows."""

    #: The largest allowed relative slowdown.
    limit: float
    #: Whether a side passes where a total of the old one could not be compared.
    allow_missing: bool = False


class Outcome(NamedTuple):
    """What a comparison ends with."""

    #: The exit status.
    status: int
    #: The verdict.
    sentence: str
    #: What was allowed.
    gate: Gate | None = None


def worst(outcomes: Sequence[Outcome]) -> int:
    """Return the exit status of several comparisons."""
    return min((outcome.status for outcome in outcomes), key=_WORST.index)


def judge(found: Comparison, gate: Gate | None) -> Outcome:
    """Judge a comparison.

    Without a gate the status is `VALID`, and the sentence names the differences. With one a side
    fails if a total is shown to be slower, and measured so by more than the limit. It passes if the
    upper bound of each total is within the limit. Otherwise it is undecided.

    Raw transfers next to formats are the control of the machine, in each total by itself. Where
    these are shown to differ by more than the limit, nothing is said of the formats in this total.
    Where that is not decided, a format that is as slow as they are is undecided, too, unless its
    times are divided by theirs.

    Parameters
    ----------
    found : Comparison
        The comparison.
    gate : Gate, optional
        What is allowed.
    """
    status, word, text = _judge(found, gate) if gate else (VALID, *_described(found))
    return Outcome(status, f"{word}: {found.new.name}: {text}", gate)


def _judge(found: Comparison, gate: Gate) -> tuple[int, str, str]:
    if not found.comparable:
        return WRONG_INPUT, "NOT COMPARABLE", _nothing(found)
    limit, part = gate.limit, percent(gate.limit)
    changed = [row for row in found.control if row.different and _size(row) > math.log1p(limit)]
    void = {row.heading for row in changed}
    if changed:  # A total without a control goes by all of them.
        void |= {row.heading for row in found.comparable} - {row.heading for row in found.control}
    unjudged = f"nothing is said of {' and '.join(sorted(void))}"
    machine = f"raw I/O differs by more than {part} ({_list(changed)})"
    rows = [row for row in found.comparable if row.heading not in void]
    slower = [r for r in rows if r.verdict.word == "slower" and r.verdict.ratio.value > 1 + limit]
    excused = [r for r in slower if not r.verdict.over_raw and _as_slow(r, found, limit)]
    if failed := [row for row in slower if row not in excused]:
        left = f"; {unjudged}: {machine}" if changed else ""
        return NOT_VALID, "FAILED", f"slower by more than {part}: {_list(failed)}{left}"
    if changed:
        advice = "compare runs of one allocation, or of a quiet machine"
        return MACHINE_CHANGED, "MACHINE CHANGED", f"{machine}, so {unjudged}; {advice}"
    if (lost := "; ".join(_missing(found))) and not gate.allow_missing:
        return WRONG_INPUT, "NOT COMPARABLE", f"{lost} (--allow-missing lets that pass)"
    if excused:
        text = f"slower by more than {part}, as raw I/O may be: {_list(excused)}"
        return INCONCLUSIVE, "UNDECIDED", text
    many = counted(len(rows), "total")
    if beyond := [row for row in rows if row.verdict.alone.high > 1 + limit]:
        most = max(beyond, key=lambda row: row.verdict.alone.high)
        bound = words.times(most.verdict.alone.high)
        return (
            INCONCLUSIVE,
            "UNDECIDED",
            (
                f"{len(beyond)} of {many} may be slower by more than {part}, the most {most.name}, "
                f"{most.heading}: {words.times(most.verdict.ratio.value)}, at most {bound} (95 %); "
                f"{MORE_STARTS}"
            ),
        )
    return VALID, "PASSED", f"none of {many} is slower by more than {part}; {_extent(found)}"


def _list(rows: Sequence[Row]) -> str:
    ordered = sorted(rows, key=lambda row: -_size(row))
    return abridged([str(row) for row in ordered], _NAMED)


def _size(row: Row) -> float:
    return abs(math.log(row.verdict.ratio.value))


def _described(found: Comparison) -> tuple[str, str]:
    """Return what is shown: a word, and the rest of the sentence."""
    if not found.comparable:
        return "NOT COMPARABLE", _nothing(found)
    rows = found.comparable
    slower, faster = ([r for r in rows if r.verdict.word == word] for word in ("slower", "faster"))
    if slower or faster:
        also = f". Faster: {_list(faster)}" if slower and faster else ""
        return "SLOWER" if slower else "FASTER", f"{_list(slower or faster)}{also}"
    many = counted(len(rows), "total")
    same = sum(row.verdict.word == "same" for row in rows)
    if same == len(rows):
        return "SAME", f"{many} within 10 %"
    return "NO DIFFERENCE SHOWN", f"{same} of {many} the same within 10 %; {MORE_STARTS}"


def _as_slow(row: Row, found: Comparison, limit: float) -> bool:
    """Return whether raw transfers may be slower for the same reason as a format.

    They are not shown to be within the limit, and were measured to be so slow that no more than
    the limit remains for the format.
    """
    raw = [one for one in found.control if one.heading == row.heading] or found.control
    return any(
        one.verdict.alone.high > 1 + limit
        and row.verdict.ratio.value <= (1 + limit) * one.verdict.ratio.value
        for one in raw
    )


def _nothing(found: Comparison) -> str:
    if found.refused:
        return f"nothing is comparable: {_causes(found.refused)}"
    if found.control:
        return "the runs have only raw I/O in common, and no case of a format"
    return "the runs have no case in common"


def _causes(rows: Sequence[Row]) -> str:
    return abridged(list(dict.fromkeys(row.reason for row in rows)), _NAMED)


def _missing(found: Comparison) -> Iterator[str]:
    """Yield what the old side has and the gate cannot judge."""
    if lost := [row for row in found.refused if row.hides]:
        yield (
            f"{counted(len(lost), 'total')} not comparable, such as {lost[0].name}: {_causes(lost)}"
        )
    cases = found.old.record.cases
    gone = [one for one in found.alone if one.which == "old" and not cases[one.case].raw]
    if gone:
        yield (
            f"{counted(len(gone), 'case')} of the old run missing, such as {gone[0].label} "
            f"({gone[0].reason})"
        )


def _extent(found: Comparison) -> str:
    """State how much of the old run was judged."""
    judged = {old.case for row in found.comparable for _, old in row.cells}
    text = f"{len(judged)} of {counted(found.cases, 'case')} compared"
    if found.refused:
        text += f", {counted(len(found.refused), 'total')} not: {_causes(found.refused)}"
    return text
