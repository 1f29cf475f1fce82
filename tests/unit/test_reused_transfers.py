"""Transfers that share a buffer: their windows, and where a buffer cannot be shared."""

from __future__ import annotations

import mmap

import numpy as np
import pytest

from pffbench.data import make_source
from pffbench.errors import UserError
from pffbench.experiment.check import make_plan
from pffbench.experiment.load import from_data
from pffbench.parallel.single import SingleProcess
from pffbench.workloads.buffers import WINDOWS, calls_of, in_windows, reused_room
from pffbench.workloads.registry import workload


def pieces_of(rank=0, *, limit=None, steps=40):
    one = workload("hyperslab")
    p = one.parameters_type(backend="posix", shape_per_rank=(512,), steps=steps, dtype="float32",
                            layout="file_per_process", buffer="reuse")  # fmt: skip
    accesses = one.writes(p, 2, rank)
    room = np.empty(reused_room(accesses, limit), np.uint8)
    calls = calls_of(SingleProcess("a test"), accesses, limit, False)
    return room, list(in_windows(calls, room, rank))


def test_the_buffer_is_one_transfer_and_its_windows():
    room, pieces = pieces_of()
    assert room.nbytes == 2048 + (WINDOWS - 1) * mmap.PAGESIZE
    places = [piece.memory.ctypes.data - room.ctypes.data for piece in pieces]
    assert places == [number % WINDOWS * mmap.PAGESIZE for number in range(40)]


@pytest.mark.parametrize("source", ["uniform", "integers"])
def test_neighbours_and_ranks_have_contents_of_their_own(source):
    seeded, contents = make_source(source, "float32" if source == "uniform" else "int32"), []
    for rank in range(2):
        for piece in pieces_of(rank)[1][:WINDOWS]:
            memory = np.empty(piece.memory.shape, seeded.dtype)
            piece = type(piece)(piece.spec, piece.box, memory, piece.first)
            piece.fill(seeded)
            contents.append(memory.tobytes())
            assert piece.verify(seeded, memory) is None
    assert len(set(contents)) == 2 * WINDOWS


def test_a_wrong_element_is_named_by_its_place_in_the_array():
    source = make_source("uniform", "float32")
    piece = pieces_of(1)[1][5]
    piece.fill(source)
    got = piece.memory.copy()
    got[0, 17] += 1
    assert piece.verify(source, got).index == (5, 17)


def test_all_windows_lie_in_one_content():
    """The windows overlap in memory, so what they hold in common must be the same."""
    source = make_source("uniform", "float32")
    _, pieces = pieces_of(steps=WINDOWS)
    for piece in pieces:
        piece.fill(source)
    assert all(piece.verify(source, piece.memory) is None for piece in pieces)


def test_a_transfer_longer_than_a_call_is_cut():
    room, pieces = pieces_of(limit=1000, steps=2)
    assert room.nbytes == 1000 + (WINDOWS - 1) * mmap.PAGESIZE
    assert [piece.memory.nbytes for piece in pieces] == [1000, 1000, 48] * 2


REFUSED = {
    "new arrays": ({"backend": "netcdf4"}, "buffer: reuse has no meaning in netcdf4"),
    "maps": ({"backend": "memmap"}, "reads that the kernel counts, and memmap reads through"),
    "slices": ({"backend": "hdf5", "hdf5": {"api": "high_level"}}, "high_level reads into new arr"),
    "shapes": ({"backend": "posix", "source": "smooth"}, "takes source uniform, integers, const"),
    "elsewhere": ({"backend": "posix", "read_ranks": 1}, "allows no other read decomposition"),
    "writers": ({"backend": "mpiio", "rearrange": "gather", "writers": {"count": 1}},
                "no data that could be exchanged"),
    "no word": ({"backend": "posix", "buffer": "hot"}, "buffer: .*'hot'.*block, reuse"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_buffer_that_cannot_be_reused_is_refused(name):
    own, says = REFUSED[name]
    case = {"workload": "hyperslab", "shape_per_rank": [4], "buffer": "reuse", **own}
    data = {"name": "x", "roofline": False, "cases": [case]}
    with pytest.raises(UserError, match=says):
        make_plan(from_data(data, "exp.yaml"), ranks=2)
