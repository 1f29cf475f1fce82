"""Order of the cases in a block.

The after-effects of a case (dirty pages, a warm cache, a busy device) reach the next case. In a
rotated order each case has the same predecessor in every block, and these effects would count as
its own time. The cases of a comparison therefore run in the order of a Williams square (Williams,
1949): each runs in each place, and after each other one, equally often.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from pffbench.backends.registry import backend_class
from pffbench.case import Case


def ordered_block(cases: Sequence[Case], block: int, seed: int) -> Iterator[Case]:
    """Yield the cases of a block, those of a comparison next to each other.

    Comparisons come in a random order. It depends on the arguments alone, so that all ranks and a
    resumed run obtain the same one.

    Parameters
    ----------
    cases : sequence of Case
        Cases of this block.
    block : int
        Number of the block.
    seed : int
        Seed of the experiment.
    """
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.group, []).append(case)
    names = list(groups)
    _generator(seed, "groups", block).shuffle(names)
    for name in names:
        members = groups[name]
        for place in _places(len(members), block, seed, name):
            yield members[place]


def by_importance(cases: Sequence[Case]) -> list[list[Case]]:
    """Return the cases in the order in which a time budget spends time on them, in parts.

    First a part for each comparison, with the first case of each format; then each other case:
    raw transfers, and further ways to use a format.

    Parameters
    ----------
    cases : sequence of Case
        Cases of the plan, in its order.
    """
    parts: dict[str, dict[str, Case]] = {}
    others: list[Case] = []
    for case in cases:
        backend = case.parameters.backend
        formatted = backend_class(backend).capabilities.formatted
        part = parts.setdefault(case.group, {})
        if formatted and backend not in part:
            part[backend] = case
        else:
            others.append(case)
    return [*(list(part.values()) for part in parts.values() if part), *([c] for c in others)]


def _places(count: int, block: int, seed: int, name: str) -> Sequence[int]:
    """Return the order of a block: a row of a square that is relabelled in each round."""
    square = williams_square(count)
    turn, row = divmod(block, len(square))
    generator = _generator(seed, name, turn)
    rows, labels = list(range(len(square))), list(range(count))
    generator.shuffle(rows)
    generator.shuffle(labels)
    return [labels[place] for place in square[rows[row]]]


def williams_square(count: int) -> list[list[int]]:
    """Return orders of `count` items in which each item follows each other one equally often.

    There are `count` orders if that is even, twice as many if it is odd.
    """
    first = [(place + 1) // 2 if place % 2 else -(place // 2) % count for place in range(count)]
    square = [[(item + row) % count for item in first] for row in range(count)]
    if count % 2:
        square += [order[::-1] for order in square]
    return square


def _generator(*parts: object) -> random.Random:
    """Return a random generator that depends on the parts alone; equal in all processes."""
    return random.Random("/".join(map(str, parts)))
