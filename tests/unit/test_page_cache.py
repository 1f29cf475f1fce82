"""Eviction and warming, proved by what the kernel says about real files on a real disk."""

import math
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from pffbench.mpi.single import SingleProcess
from pffbench.mpi.topology import Team, Topology
from pffbench.storage.filesystem import filesystem
from pffbench.storage.page_cache import Residency, bring_about, evict, residency, warm

MIB = 2**20


@pytest.fixture
def disk(tmp_path):
    """A directory whose pages can be evicted: not on tmpfs, where /tmp often lies."""
    if not filesystem(str(tmp_path)).in_memory:
        yield tmp_path
        return
    build = Path(__file__).parents[2] / ".build"
    if filesystem(str(build)).in_memory:
        pytest.skip("no directory on a disk was found")
    build.mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(dir=build))
    yield directory
    shutil.rmtree(directory)


def write_files(directory, sizes):
    paths = [str(directory / f"file{index}") for index in range(len(sizes))]
    for path, size in zip(paths, sizes, strict=True):
        Path(path).write_bytes(os.urandom(size))
    return paths


def test_what_was_written_is_resident_until_it_is_evicted_and_read_again(disk):
    paths = write_files(disk, [8 * MIB, 3 * MIB + 17, 1, 4096])
    assert residency(paths).fraction == 1

    evict(paths)
    assert residency(paths).fraction < 0.01

    warm(paths)
    assert residency(paths).fraction > 0.99


def test_a_file_larger_than_one_window_is_counted_whole(disk):
    """Sparse, so that 2.5 GiB cost nothing; only what is read becomes resident."""
    path = disk / "sparse"
    with path.open("wb") as file:
        file.truncate(5 * 2**29)
        file.seek(9 * 2**28)
        file.write(b"x" * MIB)
    pages = os.sysconf("SC_PAGE_SIZE")

    found = residency([str(path)])

    assert found.total == 5 * 2**29 // pages
    assert MIB // pages <= found.resident < 2 * MIB // pages


def test_many_small_files(disk):
    paths = write_files(disk, [20_000] * 500)
    evict(paths)
    found = residency(iter(paths))
    assert found.total == 500 * math.ceil(20_000 / os.sysconf("SC_PAGE_SIZE"))
    assert found.fraction < 0.01


def test_dirty_pages_are_written_out_before_they_are_dropped(disk):
    path = disk / "file"
    content = os.urandom(MIB)
    path.write_bytes(content)
    evict([str(path)])
    assert path.read_bytes() == content


def test_empty_files_count_no_pages(tmp_path):
    paths = write_files(tmp_path, [0])
    evict(paths)
    warm(paths)
    assert residency(paths) == Residency(0, 0)


def test_the_fraction_of_nothing_is_not_a_number():
    assert math.isnan(Residency(0, 0).fraction)
    assert math.isnan(residency([]).fraction)


def test_residencies_of_several_ranks_add_up():
    assert sum([Residency(1, 4), Residency(2, 4)], Residency(0, 0)) == Residency(3, 8)
    assert (Residency(1, 4) + Residency(2, 4)).fraction == 0.375


@pytest.mark.parametrize("function", [residency, evict, warm])
def test_a_missing_file_is_an_error(function, tmp_path):
    with pytest.raises(FileNotFoundError):
        function([str(tmp_path / "missing")])


def test_no_descriptor_is_left_open(disk):
    paths = write_files(disk, [4096] * 20)
    before = len(os.listdir("/proc/self/fd"))
    evict(paths)
    warm(paths)
    residency(paths)
    with pytest.raises(OSError, match="directory"):
        warm([str(disk)])
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("evictions", [1, 2])
def test_pages_that_the_kernel_held_for_a_moment_are_dropped_by_a_second_try(
    evictions, disk, monkeypatch
):
    paths = write_files(disk, [4 * MIB])
    alone = SingleProcess("a test")
    team = Team(alone, alone, Topology(("vm",), (0,)))
    advise, skipped = os.posix_fadvise, []

    def busy(*arguments):
        if len(skipped) < evictions:
            skipped.append(arguments)
        else:
            advise(*arguments)

    monkeypatch.setattr(os, "posix_fadvise", busy)
    proof = bring_about(team, "dropped", set(paths), set(paths))
    assert proof.proved == (evictions == 1)
    assert proof.fraction == (0 if evictions == 1 else 1)
