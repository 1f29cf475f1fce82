"""The scratch directory removes what its run made, and nothing else whatever is tried."""

import json
import os
import stat
import subprocess
import sys
import tempfile

import pytest

from pffbench.errors import UserError
from pffbench.storage.ownership import OwnerProcess, find_leftovers
from pffbench.storage.scratch import Scratch


@pytest.fixture
def scratch(tmp_path):
    return Scratch.create(str(tmp_path), "run-1")


@pytest.fixture
def precious(tmp_path):
    directory = tmp_path / "precious"
    directory.mkdir()
    (directory / "data").write_text("keep")
    return directory


def test_the_directory_is_private_and_marked(scratch, tmp_path):
    assert scratch.directory == str(tmp_path.resolve() / "pffbench-run-1")
    assert stat.S_IMODE(os.stat(scratch.directory).st_mode) == 0o700
    with open(scratch.path(".pffbench-run")) as file:
        marker = json.load(file)
    assert marker["run_id"] == "run-1"
    assert marker["pid"] == os.getpid()
    assert OwnerProcess.of(marker).fate().state == "runs"
    assert marker["kept_for"] == ""


def test_it_leaves_nothing_behind(scratch, tmp_path):
    os.makedirs(scratch.path("store", "c"))
    for name in ("file", "store/c/0"):
        with open(f"{scratch.directory}/{name}", "w"):
            pass
    scratch.remove(scratch.path("store"))
    scratch.remove(scratch.path("file"))
    assert os.listdir(scratch.directory) == [".pffbench-run"]
    scratch.destroy()
    assert list(tmp_path.iterdir()) == []


def test_destroy_takes_what_is_still_there(scratch, precious):
    os.makedirs(scratch.path("store", "c"))
    os.symlink(precious, scratch.path("store", "link"))
    os.symlink(precious, scratch.path("link"))
    scratch.destroy()
    assert not os.path.exists(scratch.directory)
    assert (precious / "data").read_text() == "keep"


# Making it


def test_a_missing_parent_is_named_with_its_nearest_ancestor(tmp_path):
    with pytest.raises(UserError, match=f"does not exist .*{tmp_path}\\)"):
        Scratch.create(str(tmp_path / "a" / "b"), "run-1")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_parent_is_made_when_asked_for(tmp_path):
    scratch = Scratch.create(str(tmp_path / "a" / "b"), "run-1", create_parent=True)
    assert os.path.isdir(scratch.directory)


@pytest.mark.parametrize("create_parent", [False, True])
@pytest.mark.parametrize("below", ["", "/deeper"])
def test_a_file_is_no_parent(create_parent, below, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="file is not a directory"):
        Scratch.create(str(tmp_path / "file") + below, "run-1", create_parent=create_parent)


def test_a_directory_that_exists_is_not_taken_over(scratch, tmp_path):
    with pytest.raises(UserError, match="cannot be made: File exists"):
        Scratch.create(str(tmp_path), "run-1")


def test_a_file_system_that_takes_no_directories_is_a_user_error():
    with pytest.raises(UserError, match="proc"):
        Scratch.create("/proc", "run-1")


def create_without_rights(parent):
    """Try it in a process without root's rights, for which permissions do not bind."""
    code = """
import os, sys
from pffbench.errors import UserError
from pffbench.storage.scratch import Scratch
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
try:
    Scratch.create(sys.argv[1], "run-1")
except UserError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, parent],
        text=True,
        check=True,
        capture_output=True,
        timeout=300,
    )
    return done.stdout


@pytest.mark.parametrize(
    ("closed", "expected"), [("", "is not writable"), ("/inner", "cannot be reached")]
)
def test_a_parent_without_permission(closed, expected):
    with tempfile.TemporaryDirectory() as parent:
        os.mkdir(parent + "/inner")
        os.chmod(parent, 0o000 if closed else 0o555)
        answer = create_without_rights(parent + closed)
        os.chmod(parent, 0o700)
    assert expected in answer


@pytest.mark.parametrize("run_id", ["", "..", "a/b", ".hidden", "with blank"])
def test_a_run_id_must_make_a_plain_name(run_id, tmp_path):
    with pytest.raises(UserError, match="run id"):
        Scratch.create(str(tmp_path), run_id)


# Using it


def test_other_ranks_attach(scratch):
    assert Scratch.attach(scratch.directory, "run-1") == scratch


def test_attach_refuses_what_is_not_this_run_s(scratch, precious):
    for path, run_id in (
        (scratch.directory, "run-2"),
        (precious, "run-1"),
        (precious / "missing", "run-1"),
    ):
        with pytest.raises(UserError):
            Scratch.attach(str(path), run_id)


@pytest.mark.parametrize("names", [("..",), ("a", ".."), ("a/b",), ("",), (".",), ("/etc",)])
def test_names_must_be_plain(names, scratch):
    with pytest.raises(ValueError, match="plain file name"):
        scratch.path(*names)


# Removing only its own


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/../precious",
        "/../precious/data",
        "//etc",
        "/store/../../precious",
        "/.pffbench-run",
        "-other/x",
    ],
)
def test_nothing_outside_can_be_named(path, scratch, precious):
    os.makedirs(scratch.path("store"))
    with pytest.raises(ValueError, match=r"pffbench-run-1|plain"):
        scratch.remove(scratch.directory + path)
    assert (precious / "data").read_text() == "keep"


def test_a_link_on_the_way_is_not_followed(scratch, precious):
    os.symlink(precious, scratch.path("link"))
    with pytest.raises(OSError, match=r"[Nn]ot a directory|[Ss]ymbolic"):
        scratch.remove(scratch.path("link", "data"))
    assert (precious / "data").read_text() == "keep"


def test_of_a_link_the_link_is_removed(scratch, precious):
    os.symlink(precious, scratch.path("link"))
    scratch.remove(scratch.path("link"))
    assert not os.path.lexists(scratch.path("link"))
    assert (precious / "data").read_text() == "keep"


def test_links_deep_in_a_tree_are_not_followed(scratch, precious):
    os.makedirs(scratch.path("store", "c"))
    os.symlink(precious, scratch.path("store", "c", "link"))
    scratch.remove(scratch.path("store"))
    assert (precious / "data").read_text() == "keep"


def test_a_directory_swapped_for_a_link_is_refused(scratch, tmp_path):
    """Somebody moves the scratch directory away and links another marked one into its place."""
    other = Scratch.create(str(tmp_path), "other")
    os.makedirs(other.path("store"))
    os.rename(scratch.directory, str(tmp_path / "moved"))
    os.symlink(other.directory, scratch.directory)
    for act in (lambda: scratch.remove(scratch.path("store")), scratch.destroy):
        with pytest.raises(UserError, match="cannot be opened"):
            act()
    assert os.path.isdir(other.path("store"))


@pytest.mark.parametrize("marker", [None, "", "[]", '{"run_id": "run-2"}', "link"])
def test_without_its_marker_nothing_is_removed(marker, scratch, tmp_path):
    os.makedirs(scratch.path("store"))
    own = scratch.path(".pffbench-run")
    if marker == "link":
        os.rename(own, tmp_path / "marker")
        os.symlink(tmp_path / "marker", own)
    else:
        os.unlink(own)
    if marker is not None and marker != "link":
        with open(own, "w") as file:
            file.write(marker)
    for act in (lambda: scratch.remove(scratch.path("store")), scratch.destroy):
        with pytest.raises(UserError, match="marker"):
            act()
    assert os.path.isdir(scratch.path("store"))


def test_a_missing_file_is_an_error_unless_allowed(scratch):
    for names in (("missing",), ("missing", "deeper")):
        with pytest.raises(FileNotFoundError):
            scratch.remove(scratch.path(*names))
        scratch.remove(scratch.path(*names), missing_ok=True)


def test_no_descriptor_is_left_open(scratch):
    before = len(os.listdir("/proc/self/fd"))
    os.makedirs(scratch.path("a", "b", "c"))
    with pytest.raises(FileNotFoundError):
        scratch.remove(scratch.path("a", "b", "missing", "x"))
    scratch.remove(scratch.path("a", "b", "c"))
    scratch.destroy()
    assert len(os.listdir("/proc/self/fd")) == before


# Leftovers


def test_leftovers_are_found(scratch, tmp_path):
    Scratch.create(str(tmp_path), "run-0")
    found = find_leftovers(str(tmp_path))
    assert [leftover.run_id for leftover in found] == ["run-0", "run-1"]
    assert found[1].path == scratch.directory
    assert found[1].holder.pid == os.getpid()
    Scratch.attach(found[0].path, found[0].run_id).destroy()
    assert len(find_leftovers(str(tmp_path))) == 1


def test_what_is_not_marked_is_not_a_leftover(tmp_path, precious):
    (tmp_path / "pffbench-results").mkdir()
    (tmp_path / "pffbench-broken").mkdir()
    (tmp_path / "pffbench-broken" / ".pffbench-run").write_text('{"run_id": "x"}')
    (tmp_path / "pffbench-link").symlink_to(precious)
    (tmp_path / "pffbench-file").touch()
    assert find_leftovers(str(tmp_path)) == []
