"""Order of the cases in a round.

The after-effects of a case (dirty pages, a warm cache, a busy device) reach the next case. In a
rotated order each case has the same predecessor in every round, and these effects would count as
its own time. The cases of a comparison therefore run in the order of a Williams square (Williams,
1949): each runs in each place, and after each other one, equally often.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import msgspec

from pffbench.backends.registry import backend_class
from pffbench.case import Case, keys_that_are, work_of


def ordered_round(cases: Sequence[Case], number: int, seed: int) -> Iterator[Case]:
    """Yield the cases of a round, those of a comparison next to each other.

    Comparisons come in a random order. It depends on the arguments alone, so that all ranks and a
    resumed run obtain the same one.

    Parameters
    ----------
    cases : sequence of Case
        Cases of this round.
    number : int
        Number of the round.
    seed : int
        Seed of the experiment.
    """
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.group, []).append(case)
    names = list(groups)
    _generator(seed, "groups", number).shuffle(names)
    for name in names:
        members = groups[name]
        for place in _places(len(members), number, seed, name):
            yield members[place]


def by_importance(cases: Sequence[Case]) -> list[list[Case]]:
    """Return the cases in the order in which a time budget spends time on them, in parts.

    First a part with the first case of each format of the first comparison, and one with the first
    case of each kind of raw transfer: without it nobody can tell if the formats or the storage are
    slow. Then the formats of each other comparison, then their raw transfers, and then each other
    case of these, which are further ways to use a format. At the end the same of comparisons that
    repeat an earlier one with data of another size. What several environments run stays together.

    Parameters
    ----------
    cases : sequence of Case
        Cases of the plan, in its order.
    """
    formats: dict[str, dict[tuple[str, str], Case]] = {}
    raw: dict[str, dict[tuple[str, str], Case]] = {}
    others: dict[str, list[Case]] = {}
    questions: dict[str, str] = {}
    for case in cases:
        backend = case.parameters.backend
        way = backend, case.environment
        questions.setdefault(_question(case), case.group)
        kind = raw if backend_class(backend).capabilities.raw else formats
        part = kind.setdefault(case.group, {})
        if way not in part:
            part[way] = case
        else:
            others.setdefault(case.id.partition("@")[0], []).append(case)
    first = set(questions.values())
    main = cases[0].group if cases else None

    def importance(part: list[Case]) -> tuple[bool, bool, int]:
        group, kind = part[0].group, 2
        for number, firsts in enumerate((formats, raw)):
            if part[0] in firsts.get(group, {}).values():
                kind = number
        return group not in first, group != main or kind == 2, kind

    firsts = [list(part.values()) for part in (*formats.values(), *raw.values())]
    return sorted([*firsts, *others.values()], key=importance)


def _question(case: Case) -> str:
    """Return what a case asks, whatever the size of its data, as text."""
    work = msgspec.to_builtins(work_of(case.parameters), enc_hook=int)
    sizes = keys_that_are(type(case.parameters), "size")
    return repr(sorted((key, value) for key, value in work.items() if key not in sizes))


def _places(count: int, number: int, seed: int, name: str) -> Sequence[int]:
    """Return the order of a round: a row of a square that is relabelled in each round."""
    square = williams_square(count)
    turn, row = divmod(number, len(square))
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
