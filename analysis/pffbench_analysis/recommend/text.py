"""Text of a recommendation: the answers, their confidence and their limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from pffbench.errors import UserError
from pffbench.summary.answer import settings_lines
from pffbench.summary.columns import title
from pffbench.summary.conclusions import interval, number
from pffbench.summary.rank_test import Ratio
from pffbench.summary.results import RatioResult
from pffbench.text import abridged, counted, one_line
from pffbench.units import Size, duration_text, seconds_text
from pffbench_analysis.charts import differences
from pffbench_analysis.recommend.advice import Advice, WorkAdvice, advise
from pffbench_analysis.recommend.bounds import doubts, untested
from pffbench_analysis.recommend.candidates import Candidate, Filters, Weights, Work
from pffbench_analysis.recommend.code import NoCodeError, code_for
from pffbench_analysis.recommend.judge import RankedWay, Recommendation, WayStanding

#: Largest number of ways listed individually; the table of a large sweep would hide the answer.
_MOST_WAYS = 8
#: Largest number of ways in one of the first three lines.
_MOST_NAMED = 3
#: Seconds from which on a time is told in whole seconds or larger units.
_LONG = 10
#: First words of the line on what would decide the choice.
REMEDY = "What would decide it:"
#: Largest number of further works that are named.
_MOST_OTHERS = 5


@dataclass(frozen=True)
class OwnData:
    """What a user's program writes and reads.

    Parameters
    ----------
    nbytes : int
        Bytes of all ranks together in each step.
    steps : int
        Number of steps.
    """

    nbytes: int
    steps: int = 1


def lines_of(advice: Advice, own: OwnData | None = None, *, every: bool = False) -> Iterator[str]:
    """Yield the lines of a recommendation as Markdown: the choice comes first.

    Parameters
    ----------
    advice : Advice
        The recommendation.
    own : OwnData, optional
        What the user's program writes and reads, of which the time is estimated.
    every : bool
        Whether to answer every work; else the first one, and in a line what is taken in others.
    """
    record = advice.summary.record
    shown = advice.works if every else advice.works[:1]
    yield f"# {record.name}: {advice.directory} ({counted(record.ranks, 'rank')})"
    why = advice.why_none
    if why and not advice.works[0].obstacle:
        yield from ("", f"**NO ANSWER** {why}.")
    for one in shown:
        yield from ("", f"## {work_title(advice, one)}", "")
        for head, text in choice_lines(one, own):
            if not (why and head == REMEDY):  # which NO ANSWER says
                yield f"- **{head}** {text}"
    yield from (f"- **Settings:** {text}" for text in settings_lines(advice.summary))
    if not every and (others := other_works(advice)):
        yield f"- **Also in this run** (all with --all): {others}."
    for one in shown:
        what, command = advice.command_for(one)
        if command:
            yield from ("", *([what, ""] if what else []), f"    {one_line(command)}")
    for one in shown:
        if len(shown) > 1:
            yield from ("", f"## {work_title(advice, one)}")
        if not one.obstacle:  # which makes these times worth nothing
            yield from ("", "### Because", "")
            for answer in one.answers:
                yield from _answer(answer, one.work)
        yield from _listed("What makes this doubtful", doubts(advice.summary, one.work))
        yield from _listed("Not tested", untested(advice.summary, one.work))
        yield from _code(one, record.ranks)


def other_works(advice: Advice) -> str:
    """Say in a line what is taken in the other works of a run; nothing where none can be."""
    if advice.works[0].obstacle:
        return ""
    told = [f"{work_label(advice, one)}: {_in_short(one)}" for one in advice.works[1:]]
    return abridged(told, _MOST_OTHERS)


def choice_lines(one: WorkAdvice, own: OwnData | None = None) -> list[tuple[str, str]]:
    """Return the answer for a work in a few lines, each with its first word.

    These are the way to take, those that are as good here, and those to avoid, with their times
    over that of the first. Where the fastest way is not decided, the first two are the ways that
    it may be, and what would decide it. The last is the time of the user's program.
    """
    answer = one.answer
    if one.obstacle:
        return [("NO ANSWER", f"{one.obstacle}.")]
    if answer is None:
        reasons = dict.fromkeys(a.why_not for a in one.answers if a.why_not)
        return [("No recommendation:", f"{'; '.join(reasons)}.")]
    first, *others = answer.best
    time = [] if own is None else [("Your program:", f"{_time_of(own, answer, one.work)}.")]
    if first.standing is WayStanding.ONLY:
        text = f"{first.candidate.label}. There is nothing to compare it with."
        return [("Only measured:", text), *time]
    if answer.taken is None:
        named = _named(answer.best, one.work)
        lines = [
            ("Not decided,", f"for {answer.purpose.name}: {named}."),
            (REMEDY, f"{answer.remedy}."),
        ]
    else:
        lines = [
            ("Take", f"{first.candidate.label}, for {answer.purpose.name}."),
            ("As good here:", f"{_named(others, one.work) or 'none is shown to be'}."),
        ]
    slower = sorted(answer.slower, key=lambda placed: -placed.median)
    avoid = ("Avoid:", f"{_named(slower, one.work) or 'none is shown to be slower'}.")
    return [*lines, avoid, *time]


def _time_of(own: OwnData, answer: Recommendation, work: Work) -> str:
    """Estimate the time of a user's program by the best ways, and what slower ones add to it."""
    first = answer.placed[0]
    scale = own.steps * own.nbytes / first.candidate.case.nbytes
    seconds = scale * first.median
    # Names of ways have commas of their own.
    best = " or ".join(work.short(placed.candidate) for placed in answer.best[:_MOST_NAMED])
    more = [
        f"{work.short(placed.candidate)} {_long(seconds * (ratio.low - 1))} to "
        f"{_long(seconds * (ratio.high - 1))} more"
        for placed in answer.slower
        if (ratio := placed.ratio)
    ]
    told = [f"{_long(seconds)} with {best}", *more[:_MOST_NAMED]]
    steps = f"{counted(own.steps, 'step')} of {Size(own.nbytes).decimal()}"
    verb = "takes" if own.steps == 1 else "take"
    return f"{steps} {verb} in all, if time grows as bytes, {'; '.join(told)}"


def _long(seconds: float) -> str:
    return duration_text(seconds) if seconds >= _LONG else seconds_text(seconds)


def work_label(advice: Advice, one: WorkAdvice) -> str:
    """Name a work by its layouts, if it is the first; else by what sets it apart from that one."""
    told = differences({str(i): other.work.parameters for i, other in enumerate(advice.works)})
    first, own = told["0"], told[str(advice.works.index(one))]
    words = [f"{key} {value}" for key, value in own.items() if first.get(key) != value]
    layouts = work_layouts(one)
    if not words or layouts != work_layouts(advice.works[0]):
        words.insert(0, f"layout {layouts}")
    return ", ".join(words)


def _in_short(one: WorkAdvice) -> str:
    return "not decided" if one.choice is None else one.work.short(one.choice)


def _named(placed: Sequence[RankedWay], work: Work) -> str:
    """Name ways with their times over that of the first one, a few of them in full."""
    texts = [
        work.short(p.candidate) + ("" if p.ratio is None else f" ({_ratio(p.ratio)})")
        for p in placed
    ]
    return abridged(texts, _MOST_NAMED)


def _ratio(ratio: Ratio) -> str:
    if not ratio.n:
        return "no repetition can be compared"
    bounds = f" {interval(ratio)}" if ratio.is_bounded else ", too few repetitions for an interval"
    return f"{number(ratio.value)} times as long{bounds}"


def work_title(advice: Advice, one: WorkAdvice) -> str:
    """Name the work as in the title of a table, with the layouts that are compared."""
    case = one.work.candidates[0].case
    named = f"layout {case.sample.layout}"
    return title([case], advice.summary).replace(named, f"layout {work_layouts(one)}", 1)


def work_layouts(one: WorkAdvice) -> str:
    """Name the layouts that are compared."""
    return " or ".join(dict.fromkeys(c.parameters["layout"] for c in one.work.candidates))


def _answer(answer: Recommendation, work: Work) -> Iterator[str]:
    name = answer.purpose.name
    name = name[0].upper() + name[1:]
    if not answer.placed:
        yield f"- {name}: no answer, {answer.why_not}."
        return
    first, *others = answer.best
    if answer.taken is None:
        yield f"- {name}: not decided."
        others = answer.best
    else:
        claim = "is among the fastest" if others else f"is {first.standing}"
        yield f"- {name}: {work.short(first.candidate)} {claim}, {_time(first, answer)}."
    for placed in (*others[:_MOST_WAYS], *answer.slower[:_MOST_WAYS]):
        text = _time(placed, answer) if placed.ratio is None else _ratio(placed.ratio)
        yield f"  - {placed.standing}: {work.short(placed.candidate)}: {text}"
    rest = max(0, len(others) - _MOST_WAYS) + max(0, len(answer.slower) - _MOST_WAYS)
    if rest:
        yield f"  - and {rest} more ways; all are in summary.csv"


def _time(placed: RankedWay, answer: Recommendation) -> str:
    seconds = seconds_text(placed.median)
    parts = answer.purpose.parts
    if list(parts.values()) != [1.0] or not placed.median:
        return f"{seconds} in all"
    case = placed.candidate.case
    nbytes = case.read_bytes if "read_total" in parts else case.nbytes  # often only a part is read
    return f"{seconds} for {Size(nbytes)}, {Size(int(nbytes / placed.median))}/s"


def _listed(heading: str, texts: Iterator[str]) -> Iterator[str]:
    found = list(texts)
    if found:
        yield from ("", f"### {heading}", "")
        yield from (f"- {text}" for text in found)


def program_of(one: WorkAdvice, ranks: int) -> tuple[str | None, str]:
    """Return the program of the recommended way, or the reason why there is none."""
    if one.choice is None:
        return None, "nothing is decided"
    try:
        return code_for(one.choice, ranks), ""
    except NoCodeError as error:
        return None, str(error)


def _code(one: WorkAdvice, ranks: int) -> Iterator[str]:
    if one.choice is None:
        return
    program, reason = program_of(one, ranks)
    yield from ("", "### The program", "")
    if program is None:
        yield f"No lines of code: {reason}."
        return
    yield from ("In a program of your own (run it with mpiexec or srun):", "")
    yield from ("```python", *program.rstrip("\n").split("\n"), "```")
    for text in _beyond(one, one.choice):
        yield f"\n{text}"


def _beyond(one: WorkAdvice, choice: Candidate) -> Iterator[str]:
    """Yield what is to be known of the lines: where they differ from the measured case, and how."""
    collective = choice.options.get("collective_metadata")
    shared = choice.parameters["layout"] != "file_per_process"
    if choice.backend == "hdf5" and shared:
        on = choice.parameters["settings"] == "matched" if collective is None else collective
        if on:
            yield (
                "Measured with collective metadata, as netCDF has it; h5py offers no call for it, "
                "and with many datasets opening may take longer without."
            )
    listed = choice.parameters.get("arrays")
    if isinstance(listed, list) and len(listed) > 1:
        first, *others = (one_line(kind["name"]) for kind in listed)
        yield (
            f"These lines are for the array {first}. The measured times are those of all arrays: "
            f"{abridged(others, _MOST_NAMED, ', ')} take the same calls on the same open file."
        )
    sliced = {**choice.options, "api": "high_level"}
    for placed in one.answer.placed if one.answer else ():
        way = placed.candidate
        if placed.ratio and (way.parameters, way.options) == (choice.parameters, sliced):
            yield f"With slices of h5py it takes {_ratio(placed.ratio)}."


def agreement(all_: Sequence[Advice]) -> Iterator[str]:
    """Yield the agreement of several runs on each work."""
    if len(all_) < 2:
        return
    found: dict[str, dict[str, list[str]]] = {}
    for advice in all_:
        for one in advice.works:
            label = "nothing, not decided" if one.choice is None else one.choice.label
            labels = found.setdefault(work_layouts(one), {})
            labels.setdefault(label, []).append(str(advice.directory))
    for layouts, labels in found.items():
        yield ""
        where = f"layout {layouts}: " if len(found) > 1 else ""
        if len(labels) == 1:
            yield f"{where}All runs recommend the same: {next(iter(labels))}."
            continue
        yield from (f"{where}The runs do not recommend the same:", "")
        for label, runs in labels.items():
            yield f"- {label}: {', '.join(dict.fromkeys(runs))}"


@dataclass(frozen=True)
class Recommended:
    """The recommendations of some runs.

    Parameters
    ----------
    advices : tuple of Advice
        One for each run that can be used.
    refused : tuple of str
        Reasons why the others cannot.
    own : OwnData, optional
        What the user's program writes and reads.
    """

    advices: tuple[Advice, ...]
    refused: tuple[str, ...] = ()
    own: OwnData | None = None

    def lines(self, *, every: bool = False) -> list[str]:
        """Return text and code as Markdown, of the first work or of every one."""
        lines = [f"Left out: {text}." for text in self.refused]
        for advice in self.advices:
            lines += ([""] if lines else []) + list(lines_of(advice, self.own, every=every))
        return [*lines, *agreement(self.advices)]

    def data(self) -> dict[str, Any]:
        """Return the same as plain data, for `--json`; `docs/reference/derived.md` has its keys."""
        return {
            "left_out": list(self.refused),
            "runs": [_data(advice, self.own) for advice in self.advices],
            "agreement": [line for line in agreement(self.advices) if line],
        }


def recommend(
    runs: Sequence[str | Path],
    weights: Weights | None = None,
    filters: Filters | None = None,
    own: OwnData | None = None,
) -> Recommended:
    """Return the recommendations of some runs.

    Parameters
    ----------
    runs : sequence of str or Path
        Results directories. Each is answered separately: times of several jobs have no common
        block.
    weights : Weights, optional
        How often data are written and read; by default once each.
    filters : Filters, optional
        The ways to choose from; by default all, each layout by itself.
    own : OwnData, optional
        What the user's program writes and reads, of which the time is estimated.

    Raises
    ------
    UserError
        No run can be used; the message gives the reason for each.
    """
    found: list[Advice] = []
    refused: list[str] = []
    for run in runs:
        try:
            found.append(advise(run, weights, filters))
        except UserError as error:
            refused.append(str(error))
    if not found:
        raise UserError("; ".join(refused))
    return Recommended(tuple(found), tuple(refused), own)


def _data(advice: Advice, own: OwnData | None) -> dict[str, Any]:
    record = advice.summary.record
    return {
        "directory": str(advice.directory),
        "run_id": record.run_id,
        "name": record.name,
        "ranks": record.ranks,
        "no_answer": advice.why_none,
        "settings": settings_lines(advice.summary),
        "works": [_work_data(advice, one, own) for one in advice.works],
    }


def _work_data(advice: Advice, one: WorkAdvice, own: OwnData | None) -> dict[str, Any]:
    program, reason = program_of(one, advice.summary.record.ranks)
    return {
        "title": work_title(advice, one),
        "parameters": dict(one.work.parameters),
        "take": None if one.choice is None else one.choice.case.sample.case,
        "sentences": [f"{head} {text}" for head, text in choice_lines(one, own)],
        "command": advice.command_for(one)[1],
        "answers": [
            {
                "purpose": answer.purpose.name,
                "weights": dict(answer.purpose.parts),
                "reason": answer.why_not,
                "ways": [_way_data(placed) for placed in answer.placed],
            }
            for answer in one.answers
        ],
        "doubts": list(doubts(advice.summary, one.work)),
        "not_tested": list(untested(advice.summary, one.work)),
        "program": program,
        "no_program": reason,
    }


def _way_data(placed: RankedWay) -> dict[str, Any]:
    ratio = placed.ratio
    return {
        "case": placed.candidate.case.sample.case,
        "label": placed.candidate.label,
        "median_s": placed.median,
        "standing": str(placed.standing),
        "times_as_long": None if ratio is None else msgspec.to_builtins(RatioResult.of(ratio)),
    }
