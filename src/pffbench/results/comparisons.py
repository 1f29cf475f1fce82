"""The comparisons of a document: every other way with the one to use, all in one family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pffbench.results.cells import Cell
from pffbench.results.compare import Comparison, Question, compare
from pffbench.results.decision import Decision, Weights, way_keys
from pffbench.results.purposes import Decided, decide_work

#: Part of the formats in the family of the document; each other key has a part of 1.
_OF_FORMATS = 4.0
#: Keys over whose values formats are compared on average; of the others each has its best value.
AVERAGED = ("work", "files")


class Compared(NamedTuple):
    """The decision of a document, and the comparisons that show what another way costs."""

    #: The way to use, and its prices.
    decided: Decided
    #: The other formats, compared with the one to use. Their cells have the key ``column``.
    formats: Sequence[Comparison]
    #: Other values of each other key, compared with the one to use, of the format to use. A key
    #: that follows from this one changes with it, such as the transfer with the files.
    changes: Sequence[Comparison]


def compare_work(cells: Sequence[Cell], weights: Weights | None = None) -> Compared | None:
    """Choose a way for a work and compare the others with it; None if nothing is compared.

    Parameters
    ----------
    cells : sequence of Cell
        Of totals, as `pffbench.results.purposes.usable` returns them.
    weights : dict of str to float, optional
        How often data are written and read; once each if not given.
    """
    decided = decide_work(cells, weights)
    if decided is None:
        return None
    decision, backend = decided.decision, decided.backend
    formatted = [
        cell.with_keys(column=purpose.heading)
        for purpose in decided.purposes
        for cell in purpose.cells
        if not cell.raw
    ]
    best = [cell for cell in formatted if at_its_best(cell, decision)]
    own = [cell for cell in formatted if cell.keys["backend"] == backend]
    keys = [key for key in way_keys([own]) if key in decision.used]
    questions = [(best, Question("backend", ["column"], AVERAGED, backend, _OF_FORMATS))]
    for key, others in _separate(keys, own).items():
        questions.append((own, Question(key, ["column"], ["work", *others], decision.used[key])))
    formats, *changes = compare(questions)
    return Compared(decided, formats, [one for some in changes for one in some])


def _separate(keys: Sequence[str], cells: Sequence[Cell]) -> dict[str, list[str]]:
    """Return the keys that are compared, each with those that are equal in its comparisons.

    A key that follows from another one, such as the transfer from the files, cannot be equal. If
    two follow from each other, the first is compared.
    """
    found: dict[str, list[str]] = {}
    for key in keys:
        following = [other for other in keys if other != key and _follows(cells, other, key)]
        if not any(other in found and _follows(cells, key, other) for other in following):
            found[key] = [other for other in keys if other != key and other not in following]
    return found


def _follows(cells: Sequence[Cell], key: str, other: str) -> bool:
    """Return whether the value of a key follows from the value of another one."""
    known: dict[str | None, str | None] = {}
    return all(
        known.setdefault(cell.keys.get(other), cell.keys.get(key)) == cell.keys.get(key)
        for cell in cells
    )


def at_its_best(cell: Cell, decision: Decision) -> bool:
    """Return whether a cell has the values of its format's best way, but for averaged keys."""
    best = decision.way
    if "backend" in decision.keys:
        best = decision.best_of("backend", cell.keys["backend"]) or best
    wanted = decision.named(best)
    return all(cell.keys.get(k, "") == v for k, v in wanted.items() if k not in AVERAGED)
