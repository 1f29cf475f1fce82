"""The recommendation of a run: its answer for a purpose, the program, and the time it needs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

import pffbench
from pffbench.errors import UserError
from pffbench.experiment.schema import MOST_SCALE
from pffbench.results.answer import WIDTH, Answer, answer_of, lines_of, wrap
from pffbench.results.cells import Cell, summed
from pffbench.results.comparisons import compare_work
from pffbench.results.decision import Weights
from pffbench.results.names import value_name
from pffbench.results.purposes import usable
from pffbench.results.rerun import command_again, wrapped
from pffbench.results.summary import Summary
from pffbench.text import counted, one_line
from pffbench.units import Size, duration_text
from pffbench_analysis.recommend.code import NoCodeError, code_for, notes_for

#: Times are given for at most so many times the largest amount of data that was measured.
_FARTHEST = 10


class Advice(NamedTuple):
    """The recommendation of a run."""

    #: The results directory.
    directory: Path
    #: The answer for the purpose.
    answer: Answer
    #: A program that uses the recommended way; empty if there is none.
    program: str = ""
    #: Why there is none.
    why_none: str = ""
    #: What is to be known about the program.
    notes: Sequence[str] = ()
    #: How long the user's data need, in a sentence; empty if that was not asked.
    time: str = ""
    #: The command that measures more data, if too few for a time were measured; else empty.
    measure: str = ""

    def lines(self) -> Iterator[str]:
        """Yield the recommendation as text."""
        yield from lines_of(self.answer)
        if self.time:
            yield from ("", *wrap(self.time))
        if self.measure:
            yield from wrapped(one_line(self.measure), WIDTH)
        if self.program:
            yield from ("", "In a program of your own (run it with mpiexec or srun):", "")
            yield from self.program.rstrip("\n").split("\n")
            for note in self.notes:
                yield from ("", *wrap(note))
        elif self.why_none:
            yield from ("", *wrap(f"No program is printed: {self.why_none}."))

    def data(self) -> dict[str, Any]:
        """Return the same as plain data, for `--json`."""
        return {
            **self._asdict(),
            "directory": str(self.directory),
            "answer": msgspec.to_builtins(self.answer),
        }


def advise(
    directory: str | Path,
    weights: Weights,
    only: Mapping[str, Sequence[str]],
    highest_price: float,
    nbytes: int = 0,
    steps: int = 1,
) -> Advice:
    """Read a run and recommend a way.

    Parameters
    ----------
    directory : str or Path
        Results directory.
    weights : dict of str to float
        How often data are written and read.
    only : dict of str to sequence of str
        Allowed values of some keys, such as ``{"backend": ["hdf5"]}``.
    highest_price : float
        The price, as a part, above which nothing is recommended.
    nbytes, steps : int
        Bytes that the user's program writes in a step, and its steps; 0 if no time is asked for.

    Raises
    ------
    UserError
        The directory holds no run of this version, or no way with these values.
    """
    summary = pffbench.load(directory)
    cells = _allowed(summary, only)
    found = compare_work(usable(cells, summary.run.resolution), weights)
    answer = answer_of(summary.run, cells, summary.load, found, highest_price)
    assert answer is not None  # a run that is loaded has a round that counts
    place = Path(directory)
    if found is not None and answer.word == "USE":
        cell = found.decided.decision.largest
    elif (alone := _only_case(cells)) and answer.word == "MEASURED":
        cell = alone
        if only:  # what it was compared with in the run is left out here
            chosen = f"{_options(only)} leaves one way, which is compared with nothing."
            answer = replace(answer, headline=chosen, command="", why_command="")
    else:
        return Advice(place, answer)
    time, measure = _time(summary, cell, weights, nbytes, steps) if nbytes else ("", "")
    entry = summary.record.cases[cell.case]
    try:
        program = code_for(entry, summary.run.ranks)
    except NoCodeError as error:
        return Advice(place, answer, why_none=str(error), time=time, measure=measure)
    return Advice(place, answer, program, notes=notes_for(entry), time=time, measure=measure)


def _only_case(cells: Sequence[Cell]) -> Cell | None:
    """Return a cell of the only case of a format; None if there are several."""
    formats = {cell.case: cell for cell in cells if not cell.raw}
    return formats.popitem()[1] if len(formats) == 1 else None


def _allowed(summary: Summary, only: Mapping[str, Sequence[str]]) -> list[Cell]:
    """Return the cells with the allowed values; raw transfers need not have them.

    Raises
    ------
    UserError
        No case has a value.
    """
    formats = [cell for cell in summary.cells if not cell.raw]
    allowed: dict[str, set[str]] = {}
    for key, values in only.items():
        known = sorted({cell.keys[key] for cell in formats if key in cell.keys})
        for value in values:
            meant = {one for one in known if _means(value, key, one)}
            if not meant:
                has = ", ".join(known) or "no such key"
                raise UserError(f"--only {key}={value}: the run has {has}")
            allowed.setdefault(key, set()).update(meant)
    kept = [
        cell
        for cell in summary.cells
        if cell.raw or all(cell.keys.get(key) in values for key, values in allowed.items())
    ]
    if formats and all(cell.raw for cell in kept):
        raise UserError(f"{_options(only)}: no way of the run is left; give fewer of these")
    return kept


def _means(text: str, key: str, value: str) -> bool:
    """Return whether a user's text means a value: it, its name in an answer, or a codec by name.

    ``gzip`` means every codec with gzip, such as ``gzip 4 byte``.
    """
    by_name = key == "codec" and value.startswith(f"{text} ")
    return by_name or text in (value, value_name(key, value))


def _options(only: Mapping[str, Sequence[str]]) -> str:
    return " ".join(f"--only {key}={','.join(values)}" for key, values in only.items())


def _time(
    summary: Summary, cell: Cell, weights: Weights, nbytes: int, steps: int
) -> tuple[str, str]:
    """Return how long the user's data need, by the rate of the largest comparison.

    If the data measured are too small for that, return the command that measures more of them too.
    """
    data = f"{counted(steps, 'step')} of {Size(nbytes).decimal()}"
    if nbytes > _FARTHEST * cell.nbytes:
        before = float(summary.record.experiment.get("scale", 1))
        scale = math.ceil(before * nbytes / _FARTHEST / cell.nbytes)
        fits = scale <= MOST_SCALE
        told = (
            f"No time is given for {data}: the largest data measured are {Size(cell.nbytes)}, and "
            f"times of more than {_FARTHEST} times as much do not follow from them. Measure at "
            f"least a tenth of a step{':' if fits else '.'}"
        )
        return told, command_again(summary.record, {"scale": f"{scale}"}) if fits else ""
    own = [one for one in summary.cells if one.case == cell.case]
    totals = {one.keys["total"] for one in own}
    (whole,) = summed(own, {t: n for t, n in weights.items() if n and t in totals})
    seconds = steps * nbytes / cell.nbytes * whole.median
    return f"{data} need about {duration_text(seconds)}, if time grows as the bytes do.", ""
