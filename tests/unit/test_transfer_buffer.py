"""Memory that is kept for what is moved: the same again, never more than asked for, at a page."""

import mmap

import numpy as np
import pytest

from pffbench.parallel.allocator import TransferBuffer


@pytest.mark.parametrize("nbytes", [1, 4095, 3 * mmap.PAGESIZE + 5])
def test_it_begins_at_a_page_and_is_as_long_as_asked_for(nbytes):
    memory = TransferBuffer().take(nbytes)
    assert (memory.nbytes, memory.dtype, memory.ndim) == (nbytes, np.uint8, 1)
    assert memory.ctypes.data % mmap.PAGESIZE == 0


def test_the_same_memory_comes_again():
    room = TransferBuffer()
    first = room.take(100_000).ctypes.data
    assert room.take(100_000).ctypes.data == first


def test_nothing_is_kept_of_what_was_longer():
    room = TransferBuffer()
    room.take(100_000)
    short = room.take(1000)
    assert short.base.nbytes == 1000 + mmap.PAGESIZE


def test_what_has_been_left_is_not_held():
    room = TransferBuffer()
    room.take(100_000)
    room.leave()
    assert room.take(0).base.nbytes == mmap.PAGESIZE
