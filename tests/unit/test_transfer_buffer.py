"""Memory that is kept for what is moved: the same again, hardly more than asked for."""

import mmap
import subprocess
import sys

import numpy as np
import pytest

from pffbench.observe.allocator import PLACES, TransferBuffer


@pytest.mark.parametrize("nbytes", [1, 4095, 3 * mmap.PAGESIZE + 5])
@pytest.mark.parametrize("place", [0, 1, PLACES - 1])
def test_it_begins_where_it_is_told_and_is_as_long_as_asked_for(nbytes, place):
    room = TransferBuffer()
    room.begin_at(place)
    memory = room.take(nbytes)
    assert (memory.nbytes, memory.dtype, memory.ndim) == (nbytes, np.uint8, 1)
    assert memory.ctypes.data % mmap.PAGESIZE == 16 * place == room.begin


def test_another_place_needs_no_other_memory():
    room = TransferBuffer()
    first = room.take(100_000).ctypes.data
    room.begin_at(3)
    assert room.take(100_000).ctypes.data == first + 48


def test_what_held_data_is_overwritten_wherever_they_were():
    room = TransferBuffer()
    room.begin_at(PLACES - 1)
    room.take(1000).fill(7)
    room.begin_at(0)
    room.fill(1)
    room.begin_at(PLACES - 1)
    assert set(room.take(1000).tolist()) == {1}


SHIFTED = """
import ctypes, random, sys
from pffbench.observe.allocator import PLACES, SLACK, STEP, Allocator, Spacers

Allocator().prepare("matched", [])
libc = ctypes.CDLL(None)
libc.malloc.argtypes, libc.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
size, draw, spacers, found = 3 * 2**20, random.Random(1), Spacers(), set()
holes = [libc.malloc(n) for n in (5000, 2**16, 2**20) for _ in range(40)]
[libc.free(hole) for hole in holes[::2]]
for _ in range(20):
    block = libc.malloc(size + SLACK)
    libc.free(block)
    spacers.release()
    spacers.put(size, STEP * draw.randrange(PLACES))
    again = libc.malloc(size)
    found.add(again % 4096)
    libc.free(again)
assert len(found) > 15, found
"""


def test_a_spacer_shifts_the_next_large_block():
    done = subprocess.run([sys.executable, "-c", SHIFTED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_same_memory_comes_again():
    room = TransferBuffer()
    first = room.take(100_000).ctypes.data
    assert room.take(100_000).ctypes.data == first


def test_nothing_is_kept_of_what_was_longer():
    room = TransferBuffer()
    room.take(100_000)
    short = room.take(1000)
    assert short.base.nbytes == 1000 + 2 * mmap.PAGESIZE


def test_what_has_been_left_is_not_held():
    room = TransferBuffer()
    room.take(100_000)
    room.leave()
    assert room.take(0).base.nbytes <= 2 * mmap.PAGESIZE
