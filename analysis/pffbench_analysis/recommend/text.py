"""Text of a recommendation: the answers, their confidence and their limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pffbench.errors import UserError
from pffbench.summary.columns import title
from pffbench.summary.conclusions import interval, number
from pffbench.summary.rank_test import Ratio
from pffbench.units import Size
from pffbench_analysis.recommend.advice import Advice, WorkAdvice, advise
from pffbench_analysis.recommend.bounds import doubts, untested
from pffbench_analysis.recommend.candidates import Candidate, Weights, Work
from pffbench_analysis.recommend.code import NoCodeError, code_for
from pffbench_analysis.recommend.judge import RankedWay, Recommendation

#: Largest number of ways listed individually; the table of a large sweep would hide the answer.
_MOST_WAYS = 8


def lines_of(advice: Advice) -> Iterator[str]:
    """Yield the lines of a recommendation, as Markdown."""
    record = advice.summary.record
    ranks = f"{record.ranks} rank{'' if record.ranks == 1 else 's'}"
    yield f"# {record.name}: {advice.directory} ({ranks})"
    for one in advice.works:
        yield ""
        yield f"## {_title(advice, one)}"
        yield ""
        yield from _choice(one)
        for answer in one.answers:
            yield from _answer(answer, one.work)
        yield from _listed("What makes this doubtful", doubts(advice, one))
        yield from _listed("Not tested, so nothing is said of", untested(advice, one))
        yield from _code(one, record.ranks)


def _title(advice: Advice, one: WorkAdvice) -> str:
    """Name the work, as in the title of a table, without the layout."""
    case = one.work.candidates[0].case
    told = title([case], advice.summary)
    return told.replace(f", layout {case.sample.layout}", "", 1)


def _choice(one: WorkAdvice) -> Iterator[str]:
    choice = one.choice
    if choice is None:
        yield "**No recommendation**: see below."
        return
    writing, reading, both = one.answers
    answer = next(a for a in (both, writing, reading) if a.placed)
    equal = f"; {len(answer.ties)} other way(s) are not told from it" if answer.ties else ""
    if answer.why_not:
        equal = f"; {answer.why_not}"
    yield f"**Take {choice.label}** (for {answer.purpose.name}){equal}."


def _answer(answer: Recommendation, work: Work) -> Iterator[str]:
    name = answer.purpose.name
    name = name[0].upper() + name[1:]
    yield ""
    if not answer.placed:
        yield f"- {name}: no answer, {answer.why_not}."
        return
    first = answer.first
    unproven = bool(answer.why_not or answer.ties) or len(answer.placed) == 1
    claim = "has the smallest median" if unproven else "is fastest"
    yield f"- {name}: {work.short(first.candidate)} {claim}, {_time(first, answer)}."
    if len(answer.placed) == 1:
        yield "  - No other way was measured, so nothing can be said of how good this is."
    for placed in answer.ties[:_MOST_WAYS]:
        short = work.short(placed.candidate)
        yield f"  - {placed.standing.value}: {short}: {_ratio(placed.ratio)}"
    for placed in answer.slower[:_MOST_WAYS]:
        yield f"  - slower: {work.short(placed.candidate)}: {_ratio(placed.ratio)}"
    rest = max(0, len(answer.ties) - _MOST_WAYS) + max(0, len(answer.slower) - _MOST_WAYS)
    if rest:
        yield f"  - and {rest} more ways; all are in summary.csv"


def _time(placed: RankedWay, answer: Recommendation) -> str:
    seconds = f"{placed.median:.3g} s"
    parts = answer.purpose.parts
    if list(parts.values()) != [1.0] or not placed.median:
        return f"{seconds} in all"
    case = placed.candidate.case
    nbytes = case.read_bytes if "read_total" in parts else case.nbytes  # often only a part is read
    return f"{seconds} for {Size(nbytes)}, {Size(int(nbytes / placed.median))}/s"


def _ratio(ratio: Ratio | None) -> str:
    if ratio is None or not ratio.n:
        return "no repetition can be compared"
    return f"takes {number(ratio.value)} times as long (95 % interval {interval(ratio)})"


def _listed(heading: str, texts: Iterator[str]) -> Iterator[str]:
    found = list(texts)
    if found:
        yield from ("", f"{heading}:", "")
        yield from (f"- {text}" for text in found)


def _code(one: WorkAdvice, ranks: int) -> Iterator[str]:
    choice = one.choice
    if choice is None:
        return
    yield ""
    try:
        program = code_for(choice, ranks)
    except NoCodeError as error:
        yield f"No lines of code: {error}."
        return
    yield from ("In a program of your own (run it with mpiexec or srun):", "")
    yield from ("```python", *program.rstrip("\n").split("\n"), "```")
    for text in _beyond(choice):
        yield f"\n{text}"


def _beyond(choice: Candidate) -> Iterator[str]:
    """Yield actions of the measured case that the lines cannot express."""
    collective = choice.options.get("collective_metadata")
    shared = choice.parameters["layout"] != "file_per_process"
    if choice.backend == "hdf5" and shared:
        on = choice.parameters["settings"] == "matched" if collective is None else collective
        if on:
            yield (
                "Measured with collective metadata, as netCDF has it; h5py offers no call for it, "
                "and with many datasets opening may take longer without."
            )


def agreement(all_: Sequence[Advice]) -> Iterator[str]:
    """Yield the agreement of several runs."""
    found: dict[str, list[str]] = {}
    for advice in all_:
        for one in advice.works:
            if one.choice is not None:
                found.setdefault(one.choice.label, []).append(str(advice.directory))
    if len(all_) < 2:
        return
    yield ""
    if len(found) == 1:
        yield f"All runs recommend the same: {next(iter(found))}."
        return
    yield "The runs do not recommend the same:"
    yield ""
    for label, runs in found.items():
        yield f"- {label}: {', '.join(dict.fromkeys(runs))}"


def recommend(runs: Sequence[str | Path], weights: Weights | None = None) -> list[str]:
    """Return the recommendations of some runs, as text and code.

    Parameters
    ----------
    runs : sequence of str or Path
        Results directories. Each is answered separately: times of several jobs have no common
        block.
    weights : Weights, optional
        How often data are written and read; by default once each.

    Raises
    ------
    UserError
        No run can be used; the message gives the reason for each.
    """
    found: list[Advice] = []
    refused: list[str] = []
    for run in runs:
        try:
            found.append(advise(run, weights))
        except UserError as error:
            refused.append(str(error))
    if not found:
        raise UserError("; ".join(refused))
    lines = [f"Left out: {text}." for text in refused]
    for advice in found:
        lines += ([""] if lines else []) + list(lines_of(advice))
    return [*lines, *agreement(found)]
