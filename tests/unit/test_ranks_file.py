"""`ranks.h5` when there is no room, or when it is damaged."""

import errno
import os

import h5py
import numpy as np
import pytest

from pffbench.results.ranks import RanksFile

PHASES = ("write", "close")


def append(file, repetition, ranks=3):
    own = np.full((2, ranks), repetition + 0.5)
    file.append("case", repetition, PHASES, own, own, own.astype(np.int64), np.arange(ranks))


def repetitions(path):
    with h5py.File(path) as file:
        return file["case"]["repetition"][:].tolist()


def test_what_was_reserved_is_given_back(tmp_path):
    path = str(tmp_path / "ranks.h5")
    file = RanksFile(path, ["a"] * 3)
    for repetition in range(20):
        append(file, repetition)
    assert repetitions(path) == list(range(20))
    assert os.path.getsize(path) < 100_000


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = str(tmp_path / "ranks.h5")
    file = RanksFile(path, ["a"] * 3)
    append(file, 0)
    before = (tmp_path / "ranks.h5").read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space"):
        append(file, 1)
    assert (tmp_path / "ranks.h5").read_bytes() == before
    monkeypatch.undo()
    append(file, 1)
    assert repetitions(path) == [0, 1]


def test_a_file_system_without_reservation_is_no_hindrance(tmp_path, monkeypatch):
    def unknown(*_):
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(os, "posix_fallocate", unknown)
    file = RanksFile(str(tmp_path / "ranks.h5"), ["a"] * 3)
    append(file, 0)
    append(file, 1)
    assert repetitions(tmp_path / "ranks.h5") == [0, 1]


@pytest.mark.parametrize("content", [b"x" * 5000, None])
def test_a_damaged_file_is_put_aside(tmp_path, content):
    path = tmp_path / "ranks.h5"
    append(RanksFile(str(path), ["a"] * 3), 0)
    path.write_bytes(path.read_bytes()[:700] if content is None else content)
    file = RanksFile(str(path), ["a"] * 3)
    assert file.damaged == f"{path}.damaged"
    assert os.path.exists(file.damaged)
    append(file, 1)
    assert repetitions(path) == [1]


def test_a_place_that_takes_no_file_is_told(tmp_path):
    with pytest.raises(OSError, match="absent"):
        RanksFile(str(tmp_path / "absent" / "ranks.h5"), ["a"])
