"""Workload `startup`: what is refused, and how data are delivered on one process."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from pffbench.errors import ImpossibleCaseError, UserError
from pffbench.experiment.check import check_case
from pffbench.mpi.delivery import Broadcast, Delivery, SharedMemory
from pffbench.mpi.single import SingleProcess
from pffbench.proc import open_descriptors
from plans import load_cases

CASE = {"workload": "startup", "backend": "hdf5", "shape": [4]}


@pytest.mark.parametrize(
    ("more", "why"),
    [({"shape": None}, "shape is missing"),
     ({"files": "one", "arrays": "per_rank"},
      "all ranks need the arrays of one store; use files: one and arrays: shared"),
     ({"cache": "shifted"}, "here all ranks need everything"),
     ({"transfer": "collective"}, "transfer: collective needs strategy: collective, not every"),
     ({"chunks": [5]}, "chunks [5] are larger than the array [4]"),
     ({"strategy": "nobody"}, "strategy"),
     ({"backend": "zarr", "strategy": "collective"}, "zarr opens no store collectively"),
     ({"backend": "npy", "attributes": 1}, "npy stores no attributes; leave attributes out")],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(more, why):
    case = {key: value for key, value in (CASE | more).items() if value is not None}
    with pytest.raises(UserError, match=re.escape(why)):
        check(case)


def check(case):
    check_case(load_cases(case).cases[0][1], 3, "cases[0]")


def test_metadata_in_one_place_are_refused_for_arrays_that_grow():
    case = {"workload": "updates", "backend": "zarr", "shape": [4, 4], "change": "append",
            "zarr": {"consolidated": True}}  # fmt: skip
    with pytest.raises(ImpossibleCaseError, match="arrays that grow"):
        check(case)


@pytest.mark.parametrize("kind", [Broadcast, SharedMemory])
def test_one_process_keeps_what_it_has(kind):
    way = kind(SingleProcess("none here"))
    assert way.reads
    assert way.delivers
    data = way.share(4, 4) if way.shares else np.empty(4, np.uint8)
    data[:] = 7
    assert way.deliver(b"text", data) == b"text"
    assert data.tolist() == [7, 7, 7, 7]
    way.end()


class TwoRanks(SingleProcess):
    """The first of two ranks of a node."""

    size = 2


@pytest.mark.parametrize(("free", "fits"), [(2**20 + 4, True), (2**20 + 3, False)])
def test_a_window_larger_than_what_is_left_of_shared_memory_is_refused(monkeypatch, free, fits):
    there = SimpleNamespace(f_bavail=free, f_frsize=1)
    monkeypatch.setattr("os.statvfs", lambda _: there)
    way = SharedMemory(TwoRanks("none here"))
    if fits:
        way.require(4)
    else:
        with pytest.raises(OSError, match="/dev/shm has 1 MiB left for a window of 4 B; make it"):
            way.require(4)


def test_without_a_delivery_each_rank_has_what_it_read():
    assert Delivery().deliver(b"mine", np.empty(0, np.uint8)) == b"mine"
    assert not Delivery().delivers


def test_descriptors_of_a_file_and_of_a_directory_are_counted(tmp_path):
    path = tmp_path / "some"
    path.write_text("x")
    before = open_descriptors(str(path))
    with path.open(), path.open():
        assert (before, open_descriptors(str(path)), open_descriptors(str(tmp_path))) == (0, 2, 2)
    assert open_descriptors(str(path)) == 0
