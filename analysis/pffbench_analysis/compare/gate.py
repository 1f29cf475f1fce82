"""A gate for regressions: whether new runs may pass, by the decisions of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pffbench.errors import INCONCLUSIVE, MACHINE_CHANGED, NOT_VALID, VALID, WRONG_INPUT
from pffbench.phases import TOTALS
from pffbench.text import abridged, counted
from pffbench.units import percent
from pffbench_analysis.compare.comparison import RAW, Comparison, Pair
from pffbench_analysis.compare.sentences import NAMED, causes, in_words, nothing


@dataclass(frozen=True)
class Gate:
    """What a gate allows.

    Parameters
    ----------
    limit : float
        The largest allowed relative slowdown.
    strict : bool
        Whether a side where nothing is shown does not pass.
    allow_missing : bool
        Whether a side passes where a total of the base could not be compared.
    """

    limit: float
    strict: bool = False
    allow_missing: bool = False


def judge(found: Sequence[Comparison], gate: Gate) -> tuple[int, list[str]]:
    """Decide whether the new runs pass.

    A side fails if a sum of phases of a format is shown to be slower, and measured to be so by
    more than the limit. It passes if each is shown not to be slower by more than the limit.
    Between the two nothing is shown: the line says which slowdown would have been. Where no run
    has a format, raw transfers are judged alike; next to formats these are the control of the
    machine, in each total by itself. Where it is not decided whether that control has changed, a
    format fails only if it is slower than the control, too, by more than the limit.

    Parameters
    ----------
    found : sequence of Comparison
        One for each new side.
    gate : Gate
        What is allowed.

    Returns
    -------
    status : int
        `VALID`, `NOT_VALID` (slower), `WRONG_INPUT` (something is not comparable), `INCONCLUSIVE`
        (strict alone) or `MACHINE_CHANGED` (also if only perhaps); of several the worst, in the
        order of `_WORST`.
    lines : list of str
        Reasons.
    """
    decided = [_judge(comparison, gate) for comparison in found]
    statuses = {status for status, _ in decided}
    return next(s for s in _WORST if s in statuses), [line for _, line in decided]


#: Statuses of a gate, the worst first. Each run is judged by its own control: one that fails has a
#: machine that did not change, so a changed machine of another run takes nothing from it.
_WORST = (NOT_VALID, MACHINE_CHANGED, WRONG_INPUT, INCONCLUSIVE, VALID)

_ADVICE = "Compare runs of one allocation, or of a quiet machine"


def _judge(found: Comparison, gate: Gate) -> tuple[int, str]:
    run, limit, gated = found.new.name, gate.limit, found.gated
    part = percent(limit)
    if not gated:
        return WRONG_INPUT, f"NOT COMPARABLE: {run}: {nothing(found)}"
    changed = [pair for pair in found.controls if pair.changed(limit)]
    # Each total has a control of its own: a machine that reads faster says nothing of writing. One
    # without a control, such as updates, which raw transfers do not have, goes by all of them.
    controlled = {pair.phase for pair in found.controls}
    void = {pair.phase for pair in changed}
    if changed:
        void |= {pair.phase for pair in gated} - controlled
    unjudged = " and ".join(total for total in TOTALS if total in void)
    machine = f"{RAW} of {run} differ by more than {part}"
    named = abridged([in_words(pair) for pair in changed], NAMED)
    slower = [pair for pair in gated if pair.phase not in void and pair.slower_than(limit)]
    slower.sort(key=lambda pair: -pair.low)
    if alone := [pair for pair in slower if not _as_slow(pair, found, limit)]:
        worst = abridged([in_words(pair) for pair in alone], NAMED)
        left = f". Nothing is said of {unjudged}: {machine}: {named}" if changed else ""
        return NOT_VALID, f"FAILED: {run} is slower by more than {part}: {worst}{left}"
    if changed:
        return MACHINE_CHANGED, (
            f"MACHINE CHANGED: {machine}, so nothing is said of {unjudged}: {named}. {_ADVICE}"
        )
    if slower:
        raw = {pair.phase: pair for one in slower for pair in _as_slow(one, found, limit)}
        return MACHINE_CHANGED, (
            f"MACHINE PERHAPS CHANGED: {run} is slower by more than {part}: "
            f"{abridged([in_words(pair) for pair in slower], NAMED)}. Whether the machine is, too, "
            f"is not decided: {abridged([in_words(pair) for pair in raw.values()], NAMED)}. "
            f"{_ADVICE}"
        )
    if (lost := _missing(found)) and not gate.allow_missing:
        return WRONG_INPUT, (
            f"NOT COMPARABLE: {run}: {lost}; nothing is shown to be slower by more than {part} "
            "(--allow-missing lets that pass)"
        )
    if open_ := [pair for pair in gated if not pair.within(limit)]:
        text = f"{run}: {_open(found, open_, limit)}"
        if gate.strict:
            return INCONCLUSIVE, f"INCONCLUSIVE: {text}"
        some = any(pair.decision.longer for pair in open_)
        head = "SLOWER WITHIN THE LIMIT" if some else "NO SLOWDOWN SHOWN"
        return VALID, f"{head}: {text}; {_extent(found)}"
    return VALID, (
        f"PASSED: {run}: each of {len(gated)} totals is shown not to be slower by more than "
        f"{part}; {_extent(found)}"
    )


def _as_slow(pair: Pair, found: Comparison, limit: float) -> list[Pair]:
    """Return the raw transfers that may be slower for the same reason as a format.

    These are not shown to be within the limit, and were measured to be so slow that no more than
    the limit remains for the format. A machine that is slower by less than its noise is no error
    of a format: a few transfers of raw bytes show less than many cases of one.
    """
    raw = [p for p in found.machine if p.phase == pair.phase] or found.machine
    return [p for p in raw if not p.within(limit) and pair.ratio <= (1 + limit) * p.ratio]


def _missing(found: Comparison) -> str:
    """Name what the base has and the gate cannot judge; empty if it judges everything."""
    texts = []
    if lost := [pair for pair in found.not_gated if pair.missing]:
        such = f"such as {lost[0].case.label}: {lost[0].phase} ({causes(lost)})"
        texts.append(f"{_are(len(lost), 'total')} not comparable, {such}")
    cases = found.base.record.cases
    gone = [c for c in found.only_base if found.only_raw or not cases[c.case].get("raw")]
    if gone:
        such = f"such as {gone[0].label} ({gone[0].reason})"
        texts.append(f"{_are(len(gone), 'case', ' of the base run')} missing, {such}")
    return "; ".join(texts)


def _are(number: int, noun: str, of: str = "") -> str:
    """Return the beginning of a statement on some things."""
    return f"{counted(number, noun)}{of} {'is' if number == 1 else 'are'}"


def _extent(found: Comparison) -> str:
    """State the extent of the base run that a gate has judged."""
    cases = found.base.record.cases
    judged = len({pair.case.base for pair in found.gated if pair.case.base})
    all_ = sum(1 for entry in cases.values() if found.only_raw or not entry.get("raw"))
    text = f"{judged} of {all_} cases of the base run were compared"
    if left := found.not_gated:
        text += f"; {_are(len(left), 'total')} not comparable: {causes(left)}"
    return text


def _open(found: Comparison, open_: Sequence[Pair], limit: float) -> str:
    """State what was seen, the power, and the number of runs that would show the rest."""
    worst = max(open_, key=lambda pair: (pair.decision.alone.high, pair.ratio))
    shown = percent(max(pair.decision.shown for pair in open_) - 1)
    slower = [pair for pair in open_ if pair.decision.longer]
    seen = (
        f"{_are(len(slower), 'total')} shown to be slower, by no more than {percent(limit)}, and "
        if slower
        else "no total is shown to be slower, and "
    )
    return (
        f"{seen}a slowdown of {shown} or more would have been; "
        f"{len(open_)} of {len(found.gated)} totals may be slower by more than {percent(limit)}, "
        f"such as {in_words(worst)}. More runs of each side show less "
        "(pffbench compare OLD … -- NEW …)"
    )
