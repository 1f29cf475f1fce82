"""Which chunks a box lies in, also with a stride, against all its elements one by one."""

from __future__ import annotations

import itertools
import random

from pffbench.backends.inspection import places, touched_chunks
from pffbench.geometry.box import Box


def draw_box(rng):
    """Return a box and the shape of a chunk."""
    axes = rng.randint(1, 3)
    start, shape, stride, chunks = (
        tuple(rng.randint(low, high) for _ in range(axes))
        for low, high in [(0, 9), (0, 5), (1, 7), (1, 6)]
    )
    return Box(start, shape, rng.choice([(), stride])), chunks


def one_by_one(box, chunks):
    """Return the places of the chunks of all elements."""
    along = [
        sorted({(first + i * step) // length for i in range(n)})
        for first, n, step, length in zip(box.start, box.shape, box.steps, chunks, strict=True)
    ]
    return list(itertools.product(*along))


def test_each_chunk_that_holds_an_element_is_named_once_and_no_other():
    rng = random.Random(7)
    for _ in range(400):
        box, chunks = draw_box(rng)
        expected = one_by_one(box, chunks)
        assert list(places(box, chunks)) == expected, (box, chunks)
        found = touched_chunks(box, chunks, 8)
        assert (found.count, found.nbytes) == (len(expected), 8 * len(expected)), (box, chunks)
