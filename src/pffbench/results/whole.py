"""What of `samples.csv` is complete, and cutting off what a run that was killed left unfinished."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pffbench.phases import LAST_PHASE, UPDATE_PHASES, WRITE_PHASES
from pffbench.results.samples import COLUMNS, Sample, read_samples
from pffbench.storage.regular_files import append_regular, open_regular, write_replacing

Repetitions = frozenset[tuple[str, int]]


@dataclass(frozen=True)
class Whole:
    """What of a table of samples is complete.

    Parameters
    ----------
    finished : frozenset of (str, int)
        The repetitions, as case and number, of which all phases are recorded.
    written : frozenset of (str, int)
        Of a run in two stages: those of which all phases until the data are written are.
    """

    finished: Repetitions
    written: Repetitions = frozenset()

    def holds(self, case: str, repetition: int, phase: str) -> bool:
        """Whether a row belongs to what is complete."""
        key = (case, repetition)
        of_writing = phase in WRITE_PHASES or phase in UPDATE_PHASES
        return key in self.finished or (key in self.written and of_writing)


def whole(samples: Iterable[Sample], last_written: Mapping[str, str] | None = None) -> Whole:
    """Find what is complete.

    Parameters
    ----------
    samples : iterable of Sample
        The rows of a run.
    last_written : mapping of str to str, optional
        Of a run in two stages, for each case the phase with which its data are written.
    """
    last = last_written or {}
    rows = list(samples)
    return Whole(
        frozenset((s.case, s.repetition) for s in rows if s.phase == LAST_PHASE),
        frozenset((s.case, s.repetition) for s in rows if last and s.phase == last.get(s.case)),
    )


def drop_unfinished(path: str, last_written: Mapping[str, str] | None = None) -> str | None:
    """Cut the rows of a repetition that was not finished off the end, keeping them beside.

    Parameters
    ----------
    path : str
        The file.
    last_written : mapping, optional
        As of `whole`.

    Returns
    -------
    str or None
        The file that the cut text was put into, None when there was nothing to cut.
    """
    complete = whole(read_samples(path), last_written)
    with open_regular(path) as data:
        text = data.read().decode("utf-8")
    kept: list[str] = []
    cut: list[str] = []
    for line in text.splitlines(keepends=True):
        (kept if _stays(line, complete) else cut).append(line)
    if not cut:
        return None
    aside = path + ".unfinished"
    with append_regular(aside) as file:
        file.write(("".join(cut).rstrip("\n") + "\n").encode())
    write_replacing(path, "".join(kept))
    return aside


def _stays(line: str, complete: Whole) -> bool:
    cells = next(csv.reader([line]))
    if tuple(cells) == COLUMNS:
        return True
    if len(cells) != len(COLUMNS) or not line.endswith("\n"):
        return False
    row = dict(zip(COLUMNS, cells, strict=True))
    return complete.holds(row["case"], int(row["repetition"]), row["phase"])
