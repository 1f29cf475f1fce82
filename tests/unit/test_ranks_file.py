"""`ranks.h5` when there is no room, when it is damaged, or when somebody made it to do harm."""

import errno
import os

import h5py
import numpy as np
import pytest

from pffbench.record.ranks import RanksFile
from pffbench.record.ranks_reader import names_of_cases, read_times, trouble_with

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


# Files of others


def hostile(path, change):
    """Make a good file and change its case."""
    file = RanksFile(str(path), ["a"] * 3)
    append(file, 0)
    with h5py.File(path, "r+") as content:
        change(content["case"], path.parent)


def replace_dataset(name, **how):
    def change(group, place):
        del group[name]
        group.create_dataset(name, **how)

    return change


def elsewhere(group, place):
    """Seconds that lie in a file of the user's."""
    del group["own"]
    group.create_dataset("own", (1, 2, 3), "f8", external=[(str(place / "mine"), 0, 48)])


HOSTILE = {
    "elements without end": replace_dataset(
        "own", shape=(10**9, 1000, 1000), dtype="f8", chunks=(1, 2, 3)
    ),
    "values in another file": elsewhere,
    "text for seconds": replace_dataset("own", data=np.full((1, 2, 3), "x", dtype="S1")),
    "a link to a file": lambda group, place: group.parent.__setitem__(
        "other", h5py.ExternalLink(str(place / "mine"), "/")
    ),
}
SECONDS = {
    "negative": lambda group, _: group["own"].write_direct(np.full((1, 2, 3), -1.0)),
    "of other phases": replace_dataset("own", data=np.zeros((1, 3, 3))),
}


@pytest.mark.parametrize("how", HOSTILE)
def test_a_file_that_is_made_to_do_harm_is_not_read(tmp_path, how):
    path = tmp_path / "ranks.h5"
    hostile(path, HOSTILE[how])
    (tmp_path / "mine").write_bytes(b"precious")
    assert trouble_with(path)
    with pytest.raises(ValueError, match=r"ranks\.h5 cannot be read"):
        for _ in read_times(path, dict.fromkeys(names_of_cases(path)))[1]:
            pass
    file = RanksFile(str(path), ["a"] * 3)  # as where a run goes on
    assert file.damaged == f"{path}.damaged"
    append(file, 1)
    assert repetitions(path) == [1]
    assert (tmp_path / "mine").read_bytes() == b"precious"


@pytest.mark.parametrize("how", SECONDS)
def test_what_are_no_seconds_is_told(tmp_path, how):
    path = tmp_path / "ranks.h5"
    hostile(path, SECONDS[how])
    with pytest.raises(ValueError, match=r"ranks\.h5 cannot be read"):
        next(read_times(path, {"case": None})[1])


def test_what_is_no_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("fifo", "zero"):
        assert "not a regular file" in trouble_with(tmp_path / name)
        append(RanksFile(str(tmp_path / name), ["a"] * 3), 1)
        assert repetitions(tmp_path / name) == [1]


def test_a_link_is_not_written_through(tmp_path):
    mine = tmp_path / "mine.h5"
    append(RanksFile(str(mine), ["a"] * 3), 0)
    before = mine.read_bytes()
    (tmp_path / "ranks.h5").symlink_to(mine)
    append(RanksFile(str(tmp_path / "ranks.h5"), ["a"] * 3), 1)
    assert mine.read_bytes() == before
    assert repetitions(tmp_path / "ranks.h5") == [1]


def test_a_stage_that_is_still_to_come_has_no_seconds(tmp_path):
    path = tmp_path / "ranks.h5"
    file = RanksFile(str(path), ["a"] * 3)
    append(file, 0)
    append(file, 1)
    own = np.ones((1, 3))
    file.append("case", 0, ["read"], own, own, own.astype(np.int64), np.arange(3))
    _, (found,) = read_times(path, {"case": None}, ("own", "bytes"))
    assert found.phases == [*PHASES, "read"]
    assert np.isnan(found.arrays["own"][1, 2]).all()
    assert found.arrays["bytes"][1, 2].tolist() == [0, 0, 0]
