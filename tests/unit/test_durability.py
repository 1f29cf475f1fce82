"""Syncing and measuring real files."""

import os

import pytest

from pffbench.storage.durability import (
    DiskUsage,
    directories_of,
    disk_usage,
    files_below,
    sync_directories,
    sync_files,
)


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "store" / "a" / "b").mkdir(parents=True)
    (tmp_path / "store" / "zarr.json").write_bytes(b"x" * 10)
    (tmp_path / "store" / "a" / "b" / "0").write_bytes(b"y" * 10_000)
    return tmp_path


def synced_by(monkeypatch, function, paths):
    seen = []
    monkeypatch.setattr(os, "fsync", lambda fd: seen.append(os.readlink(f"/proc/self/fd/{fd}")))
    function(paths)
    return seen


def test_every_file_is_synced(tree, monkeypatch):
    paths = sorted(files_below([str(tree)]))
    assert len(paths) == 2
    assert synced_by(monkeypatch, sync_files, paths) == paths


def test_every_directory_between_file_and_root_is_synced_deepest_first(tree, monkeypatch):
    root = str(tree / "store")
    paths = directories_of(files_below([str(tree)]), root)
    assert paths == [root + "/a/b", root + "/a", root]
    assert synced_by(monkeypatch, sync_directories, paths) == paths


def test_real_syncs_pass(tree):
    sync_files(files_below([str(tree)]))
    sync_directories([str(tree)])


def test_a_file_is_no_directory(tree):
    with pytest.raises(NotADirectoryError):
        sync_directories([str(tree / "store" / "zarr.json")])


def test_directories_of_many_files_come_once():
    files = [f"/s/x.zarr/c/{i}/{j}" for i in range(3) for j in range(3)] + ["/s/x.zarr/zarr.json"]
    assert directories_of(files, "/s/x.zarr") == [
        "/s/x.zarr/c/0",
        "/s/x.zarr/c/1",
        "/s/x.zarr/c/2",
        "/s/x.zarr/c",
        "/s/x.zarr",
    ]


def test_directories_of_a_file_right_in_the_root():
    assert directories_of(["/s/data.h5"], "/s") == ["/s"]
    assert directories_of([], "/s") == []


def test_a_file_outside_of_the_root_is_an_error():
    with pytest.raises(ValueError, match="/elsewhere"):
        directories_of(["/elsewhere/file"], "/s")


def test_disk_usage_of_files_and_trees(tree):
    usage = disk_usage([str(tree / "store")])
    sync_files(files_below([str(tree)]))
    assert usage.apparent == 10_010
    assert usage.files == 2
    assert disk_usage([str(tree / "store")]).stored >= 10_000
    assert disk_usage([str(tree / "store" / "zarr.json")]).apparent == 10


def test_holes_are_not_stored(tmp_path):
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(2**30)
    usage = disk_usage([str(path)])
    assert usage.apparent == 2**30
    assert usage.stored < 2**20


def test_symbolic_links_are_not_followed(tree, tmp_path):
    (tree / "store" / "link").symlink_to("/etc")
    (tree / "store" / "file link").symlink_to("/etc/passwd")
    assert disk_usage([str(tree / "store")]).files == 2
    assert disk_usage([str(tree / "store" / "link")]) == DiskUsage(0, 0, 0)


def test_pages_that_nothing_writes_out_are_not_waited_for(tmp_path, monkeypatch):
    from pffbench.storage import durability

    monkeypatch.setattr(durability, "dirty_bytes", lambda: 2**30)
    settled = durability.Settler(str(tmp_path), 10_000.0).settle()  # it ends long before
    assert settled.dirty_bytes == 2**30


def test_pages_that_are_being_written_out_are_waited_for(tmp_path, monkeypatch):
    from pffbench.storage import durability

    left = iter(range(40, 0, -1))
    monkeypatch.setattr(durability, "dirty_bytes", lambda: next(left) * 2**20)
    settled = durability.Settler(str(tmp_path), 10_000.0).settle()
    assert settled.dirty_bytes <= durability.QUIET


def test_a_file_system_in_memory_is_not_waited_for(monkeypatch):
    from pffbench.storage import durability

    monkeypatch.setattr(durability, "dirty_bytes", lambda: 2**30)
    assert durability.Settler("/dev/shm", 30.0).settle() == durability.Settled()
