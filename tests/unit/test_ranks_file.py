"""`ranks.h5` when there is no room, when it is damaged, or when somebody made it to do harm."""

import errno
import os
import random
import shutil
import signal
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from launch import sampled
from pffbench.record import ranks_reader
from pffbench.record.ranks import RanksFile
from pffbench.record.ranks_reader import UnreadableCase, read_ranks, read_ranks_file

PHASES = ("write", "close")
CASES = ("case", "hdf5", "zarr")


def resumed(path):
    """Return a file as where a run goes on with it."""
    return RanksFile(str(path), ["a"] * 3, cases=CASES)


def append(file, repetition, ranks=3, case="case"):
    own = np.full((2, ranks), repetition + 0.5)
    file.append(case, repetition, PHASES, own, own, own.astype(np.int64), np.arange(ranks))


def repetitions(path, case="case"):
    with h5py.File(path) as file:
        return file[case]["repetition"][:].tolist()


def unreadable(path):
    """Return why cases of a file cannot be read."""
    cases = read_ranks_file(path, plausible=True).cases
    return [one.why for one in cases if isinstance(one, UnreadableCase)]


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


# Files of an earlier start


REPETITIONS = range(12)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The file of a run that was stopped."""
    path = tmp_path_factory.mktemp("written") / "ranks.h5"
    file = RanksFile(str(path), ["a"] * 3)
    for repetition in REPETITIONS:
        for case in CASES:
            append(file, repetition, case=case)
    return path


@pytest.fixture
def path(written, tmp_path):
    return Path(shutil.copy(written, tmp_path))


def test_all_of_a_file_is_there_after_a_resume(path):
    file = resumed(path)
    assert file.loss is None
    append(file, len(REPETITIONS))
    assert repetitions(path) == [*REPETITIONS, len(REPETITIONS)]
    assert repetitions(path, "zarr") == [*REPETITIONS]
    for case, by_repetition in read_ranks(path, CASES).items():
        for number, times in by_repetition.items():
            assert times.phases == [*PHASES], case
            assert (times.own == number + 0.5).all()
            assert (times.synced == number + 0.5).all()
            assert (times.nbytes == number).all()
            assert times.peak_memory.tolist() == [0, 1, 2]
    assert os.listdir(path.parent) == ["ranks.h5"]


def plant(path, seed):
    """Put 20 random bytes in place of others."""
    draw = random.Random(seed)
    data = bytearray(path.read_bytes())
    for _ in range(20):
        data[draw.randrange(len(data))] = draw.randrange(256)
    path.write_bytes(data)


DAMAGE = {
    "cut short": lambda path: os.truncate(path, 700),
    "cut in the middle": lambda path: os.truncate(path, path.stat().st_size // 2),
    "other bytes": lambda path: path.write_bytes(b"x" * 5000),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"x" * 5000),
    "zeros at its end": lambda path: path.write_bytes(path.read_bytes()[:-9000] + bytes(9000)),
    "empty": lambda path: os.truncate(path, 0),
}


#: Bytes at which HDF5 1.10.8 crashes when it reads the file or appends to it, or hangs (112).
CRASH = (44, 83, 97, 112, 141, 144, 155, 285, 295)


@pytest.mark.parametrize("seed", sampled([*CRASH, *range(40)], *CRASH[:3]))
def test_random_bytes_lose_nothing_and_end_nothing(path, seed):
    plant(path, seed)
    resumes(path)


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_file_loses_nothing_and_ends_nothing(path, how):
    DAMAGE[how](path)
    resumes(path)


def resumes(path):
    """See that a run goes on with a damaged file, and that its bytes are kept if it lost some."""
    damaged = path.read_bytes()
    file = resumed(path)
    aside = path.with_name("ranks.h5.damaged")
    if file.loss is not None:
        assert aside.read_bytes() == damaged
        assert "it is kept as ranks.h5.damaged" in file.loss
        assert "\n" not in file.loss
    append(file, 99)
    assert 99 in repetitions(path)
    found = list(read_ranks_file(path, plausible=True).cases)
    assert not [one for one in found if isinstance(one, UnreadableCase)]
    there = {one.case: one.repetition for one in found}
    for case in CASES if file.loss is None and damaged else ():
        assert [number for number in there[case] if number != 99] == [*REPETITIONS]
    assert {*os.listdir(path.parent)} <= {"ranks.h5", aside.name}


def test_cases_that_can_be_read_are_kept_where_others_cannot(path):
    with h5py.File(path, "r+") as file:
        chunk = file["hdf5"]["own"].id.get_chunk_info(3)
    with path.open("r+b") as file:
        file.seek(chunk.byte_offset)
        file.write(b"\x01")
    file = resumed(path)
    assert file.loss.startswith(
        "ranks.h5 is damaged: it is kept as ranks.h5.damaged, and the times of ranks of 2 of 3 "
        "cases were copied from it, without hdf5 ("
    )
    assert read_ranks(path, CASES).keys() == {"case", "zarr"}


CRASHING = """
import os, signal, sys
from pffbench.record import ranks_process
good = ranks_process._read_case
def read(file, case, *more):
    if case == "hdf5":
        os.kill(os.getpid(), signal.{})
    return good(file, case, *more)
ranks_process._read_case = read
ranks_process.main()
"""


@pytest.mark.parametrize("how", ["SIGSEGV", "SIGSTOP"])
def test_a_crash_or_a_hang_at_one_case_loses_that_case(path, how, tmp_path, monkeypatch):
    """As a library that follows a damaged pointer."""
    crashing = tmp_path / "crashing.py"
    crashing.write_text(CRASHING.format(signal.Signals[how].name))
    monkeypatch.setattr(ranks_reader, "COMMAND", (sys.executable, str(crashing)))
    monkeypatch.setattr(ranks_reader, "_PATIENCE", 8.0)
    file = resumed(path)
    assert "2 of 3 cases were copied from it, without hdf5 (the HDF5 library cr" in file.loss
    monkeypatch.undo()
    assert read_ranks(path, CASES).keys() == {"case", "zarr"}


def test_a_second_damaged_file_leaves_the_first_one(path):
    for name in ("ranks.h5.damaged", "ranks.h5.damaged-2"):
        path.write_bytes(name.encode())
        assert f"it is kept as {name}, and begun anew" in resumed(path).loss
    for name in ("ranks.h5.damaged", "ranks.h5.damaged-2"):
        assert path.with_name(name).read_bytes() == name.encode()


def test_a_full_disk_leaves_the_file_of_an_earlier_start(path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    before = path.read_bytes()
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space"):
        resumed(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["ranks.h5"]


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
    assert len(unreadable(path)) == 1
    file = resumed(path)
    assert "it is kept as ranks.h5.damaged" in file.loss
    append(file, 1)
    assert 1 in repetitions(path)
    assert (tmp_path / "mine").read_bytes() == b"precious"


@pytest.mark.parametrize("how", SECONDS)
def test_what_are_no_seconds_is_told(tmp_path, how):
    path = tmp_path / "ranks.h5"
    hostile(path, SECONDS[how])
    assert len(unreadable(path)) == 1


def test_what_is_no_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("fifo", "zero"):
        with pytest.raises(ValueError, match="not a regular file"):
            read_ranks_file(tmp_path / name)
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
    (found,) = read_ranks_file(path, {"case": None}, ("own", "bytes"), plausible=True).cases
    assert found.phases == [*PHASES, "read"]
    assert np.isnan(found.arrays["own"][1, 2]).all()
    assert found.arrays["bytes"][1, 2].tolist() == [0, 0, 0]
