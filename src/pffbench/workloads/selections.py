"""Selections of an array: which of its elements are changed or read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from pffbench.data import random
from pffbench.geometry.box import Box, Shape

Selection = Literal[
    "all", "first_half", "second_half", "every_second_row", "every_second_element", "random_rows"
]
Mask = npt.NDArray[np.bool_]


def selected_boxes(
    selection: Selection, part: Box, origin: Shape, rows: int, count: int
) -> list[Box]:
    """Return the boxes that a selection takes of one rank's part, one a call.

    Parameters
    ----------
    selection : str
        The selection; for elements, those with an even index along the last axis of the whole
        array.
    part : Box
        The rank's part, in indices of the stored array; it has all rows and may be empty.
    origin : tuple of int
        Where the stored array's first element lies in the whole array.
    rows : int
        Number of rows.
    count : int
        Number of random rows, each a separate box.

    Returns
    -------
    list of Box
        As many on each rank; those of a rank with an empty part are empty.
    """
    if selection == "every_second_element":
        return [part.every_second(origin[-1])]
    found = rows_of(selection, rows, count)
    if isinstance(found, range):
        return [_rows(part, found.start, len(found), found.step)]
    return [_rows(part, row, 1 if part.size else 0, 1) for row in found]


def rows_of(selection: Selection, rows: int, count: int) -> Sequence[int]:
    """Return the rows that have elements of a selection.

    Parameters
    ----------
    selection, rows, count
        As of `selected_boxes`.
    """
    if selection == "random_rows":
        return slice_indices(rows, "random", count)
    first = rows // 2 if selection == "second_half" else 0
    last = rows // 2 if selection == "first_half" else rows
    return range(first, last, 2 if selection == "every_second_row" else 1)


def selected(selection: Selection, start: Shape, shape: Shape, rows: int, count: int) -> Mask:
    """Return which elements of a box a selection takes, by their indices in the whole array.

    Parameters
    ----------
    selection, rows, count
        As of `selected_boxes`.
    start, shape : tuple of int
        First index and shape of the box.

    Returns
    -------
    array of bool
        As many axes as the box; axes that do not matter have length 1.
    """
    axes = len(shape)
    if selection == "every_second_element":
        even: Mask = np.arange(start[-1], start[-1] + shape[-1]) % 2 == 0
        return even.reshape(*(1,) * (axes - 1), -1)
    index = np.arange(start[0], start[0] + shape[0])
    taken: Mask
    if selection == "random_rows":
        taken = np.isin(index, slice_indices(rows, "random", count))
    elif selection == "every_second_row":
        taken = index % 2 == 0
    else:
        first = rows // 2 if selection == "second_half" else 0
        taken = (index >= first) & (index < (rows // 2 if selection == "first_half" else rows))
    return taken.reshape(-1, *(1,) * (axes - 1))


def _rows(part: Box, first: int, count: int, step: int) -> Box:
    start, shape = (first, *part.start[1:]), (count, *part.shape[1:])
    return Box(start, shape, () if step == 1 else (step, *(1,) * (len(shape) - 1)))


Position = Literal["first", "middle", "random"]
#: Of random positions: all ranks, and all runs that are compared, read the same ones.
_SEED = 1


def slice_indices(n: int, position: Position, count: int) -> list[int]:
    """Return the distinct indices along an axis at which slices are taken.

    Parameters
    ----------
    n : int
        Length of the axis.
    position : {"first", "middle", "random"}
        ``first`` and ``middle``: neighbours, at the beginning or around the middle.
    count : int
        Number of slices, `n` at most.
    """
    if position == "random":
        drawn = random.counters(random.stream(_SEED, n), n).argsort(kind="stable")
        return [int(index) for index in drawn[:count]]
    first = 0 if position == "first" else (n - count) // 2
    return list(range(first, first + count))


def box_starts(shape: Shape, box: Shape, position: Position, count: int) -> list[Shape]:
    """Return where sub-boxes begin.

    Parameters
    ----------
    shape, box : tuple of int
        Shapes of the volume and of a box, which fits into it.
    position : {"first", "middle", "random"}
        ``first`` and ``middle`` are one place each, so they take a `count` of 1. Random boxes
        are drawn one by one and may overlap.
    count : int
        Number of boxes.
    """
    room = [n - length for n, length in zip(shape, box, strict=True)]
    if position == "first":
        return [(0,) * len(shape)]
    if position == "middle":
        return [tuple(free // 2 for free in room)]
    return [
        tuple(random.stream(_SEED, number, axis) % (free + 1) for axis, free in enumerate(room))
        for number in range(count)
    ]
