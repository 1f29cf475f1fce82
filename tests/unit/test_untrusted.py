"""Files and text from elsewhere: nothing in them runs, nothing they name lies outside."""

import json
import os
import pickle
import stat
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import yaml
import zarr

from launch import pffbench_cli
from pffbench.data import make_source
from pffbench.errors import UserError
from pffbench.experiment.check import make_plan
from pffbench.experiment.load import load_experiment, parse
from pffbench.regular_files import append_regular, make_own_directory, replacing, write_replacing
from pffbench.storage.scratch import Scratch
from pffbench.text import (
    escape_controls,
    escape_markdown,
    escaped,
    has_controls,
    json_needs_escaping,
)

pytestmark = pytest.mark.long


class Evil:
    """Leaves a file where it is unpickled."""

    def __init__(self, proof):
        self.proof = str(proof)

    def __reduce__(self):
        return (os.mkdir, (self.proof,))


def read(path, variable=None):
    source = make_source("file", None, 0, str(path), variable)
    out = np.empty(source.shape, source.dtype)
    source.fill(out, 0, (0,) * out.ndim, out.shape)
    source.close()
    return out


# No pickle in any format


def test_a_numpy_file_with_objects_is_refused(tmp_path):
    np.save(tmp_path / "evil.npy", np.array([Evil(tmp_path / "proof")], dtype=object))
    with pytest.raises(UserError, match=r"evil\.npy"):
        read(tmp_path / "evil.npy")
    assert not (tmp_path / "proof").exists()


def zarr_array(path, **metadata):
    """Make an array of format 2 whose only chunk is a pickle, and put this into its metadata."""
    zarr.create_array(str(path), shape=(4,), chunks=(4,), dtype="f4", zarr_format=2,
                      compressors=None)  # fmt: skip
    described = json.loads((path / ".zarray").read_text()) | metadata
    (path / ".zarray").write_text(json.dumps(described))
    (path / "0").write_bytes(pickle.dumps(Evil(path.parent / "proof")))


@pytest.mark.parametrize(
    "metadata",
    [
        {"filters": [{"id": "delta", "dtype": "<f4"}, {"id": "pickle"}]},
        {"dtype": "|O", "filters": [{"id": "json2"}], "fill_value": None},
        {"compressor": {"id": "never-heard-of"}},
    ],
)
def test_a_zarr_array_with_an_object_codec_is_refused(tmp_path, metadata):
    zarr_array(tmp_path / "evil.zarr", **metadata)
    with pytest.raises(UserError, match=r"evil\.zarr"):
        read(tmp_path / "evil.zarr")
    assert not (tmp_path / "proof").exists()


def test_an_hdf5_file_with_objects_is_refused(tmp_path):
    with h5py.File(tmp_path / "evil.h5", "w") as file:
        file.create_dataset("x", data=np.void(pickle.dumps(Evil(tmp_path / "proof"))))
    with pytest.raises(UserError):
        read(tmp_path / "evil.h5", "x")
    assert not (tmp_path / "proof").exists()


# The user's files


@pytest.mark.parametrize("name", ["mine.h5", "mine.npy", "mine.zarr"])
def test_the_users_file_is_not_changed(tmp_path, name):
    path = tmp_path / name
    data = np.arange(12, dtype="f4").reshape(3, 4)
    if name.endswith("h5"):
        with h5py.File(path, "w") as file:
            file["x"] = data
    elif name.endswith("npy"):
        np.save(path, data)
    else:
        zarr.create_array(str(path), data=data)
    before = {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in [path, *path.rglob("*")]}
    for file in before:
        file.chmod(stat.S_IMODE(file.stat().st_mode) & 0o555)
    assert (read(path) == data).all()
    assert {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in [path, *path.rglob("*")]} == before


# YAML


GROWING = {
    "aliases": "a: &a [" + ",".join(["x"] * 10) + "]\n" + "".join(
        f"{b}: &{b} [{','.join([f'*{a}'] * 10)}]\n"
        for a, b in zip("abcdefghi", "bcdefghij", strict=True)),
    "merge keys": "a: &a {x: 1}\n" + "".join(
        f"{b}: &{b} {{<<: [{','.join([f'*{a}'] * 10)}]}}\n"
        for a, b in zip("abcdefghi", "bcdefghij", strict=True)),
    "itself": "a: &a [*a]\n",
    "depth": "a: " + "[" * 100_000,
    "a long number": "a: " + "9" * 100_000,
    "size": "a: " + "x" * 2**21,
}  # fmt: skip


@pytest.mark.parametrize("how", GROWING)
def test_text_that_grows_is_refused(how):
    """Not after it has grown: that would take hours, or all memory."""
    with pytest.raises(UserError):
        parse(GROWING[how], "x.yaml")


@pytest.mark.parametrize(
    "text",
    [
        "a: !!python/object/apply:os.mkdir [proof]", "a: !x 1", "? [a]\n: 1", "a: 1\na: 2", "\0",
    ],
)  # fmt: skip
def test_only_plain_data_pass(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"x\.yaml: .*not valid YAML"):
        parse(text, "x.yaml")
    assert not list(tmp_path.iterdir())


# Names


@pytest.mark.parametrize("name", ["", "..", "a/b", "/etc"])
def test_no_name_leads_out_of_the_scratch_directory(tmp_path, name):
    scratch = Scratch.create(str(tmp_path), "run-1")
    with pytest.raises(ValueError, match="not a plain file name"):
        scratch.path(name)
    with pytest.raises((ValueError, OSError)):
        scratch.make_directory(name)


@pytest.mark.parametrize("run_id", ["../x", "", "..", "a b"])
def test_no_run_id_leads_out_of_the_scratch_parent(tmp_path, run_id):
    parent = tmp_path / "scratch"
    parent.mkdir()
    for make in (Scratch.create, Scratch.take_over):
        with pytest.raises(UserError, match="has other characters"):
            make(str(parent), run_id)
    assert [path.name for path in tmp_path.rglob("*")] == ["scratch"]


@pytest.mark.parametrize("name", ["../x", "/x", "", "x" * 65])
def test_no_name_of_an_experiment_leads_out_of_the_results(tmp_path, name):
    path = tmp_path / "x.yaml"
    path.write_text(json.dumps({"name": name, "cases": [
        {"workload": "hyperslab", "backend": "hdf5", "shape": [4]}]}))  # fmt: skip
    with pytest.raises(UserError, match=r"x\.yaml: name"):
        load_experiment(str(path))
    assert Path(path).exists()


# Files of installed packages


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """A directory to work in, with a package that leaves a proof where it is imported."""
    evil = tmp_path / "evil"
    evil.mkdir()
    proof = tmp_path / "proof"
    (evil / "__init__.py").write_text(f"open({str(proof)!r}, 'w').close()\n")
    np.save(evil / "y.npy", np.arange(4.0))
    site = tmp_path / "site"
    (site / "good").mkdir(parents=True)
    (site / "good" / "__init__.py").write_text(f"open({str(proof)!r}, 'w').close()\n")
    np.save(site / "good" / "y.npy", np.arange(4.0))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.syspath_prepend("")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield proof
    assert not proof.exists()
    assert not {"evil", "good"} & set(sys.modules)


def test_a_file_of_a_package_is_found_without_importing_it(packages):
    assert read("package:good/y.npy").tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("package:evil/y.npy", "is not installed"),
        ("package:good.x/y.npy", "'good.x' is not the name of a Python package"),
        ("package:good/../evil/y.npy", "must lead to a file within the package"),
    ],
)
def test_no_name_in_an_experiment_imports_a_package(packages, tmp_path, file, why):
    path = tmp_path / "x.yaml"
    path.write_text(yaml.safe_dump({"name": "x", "cases": [
        {"workload": "hyperslab", "backend": "posix", "files": "per_rank",
         "source": "file", "file": file}]}))  # fmt: skip
    with pytest.raises(UserError, match=r"x\.yaml: cases\[0\]\.file: ") as told:
        make_plan(load_experiment(str(path)), 1)
    assert why in str(told.value)


@pytest.mark.parametrize("command", [["plan", "x.yaml"], ["report", "."]], ids=" ".join)
def test_a_module_in_the_current_directory_is_not_run(tmp_path, command):
    for name in ("yaml", "msgspec", "json", "socket", "numpy", "h5py"):
        (tmp_path / f"{name}.py").write_text(f"open('{name}-was-run', 'w')\n")
    case = {
        "workload": "hyperslab",
        "backend": "posix",
        "files": "one",
        "arrays": "per_rank",
        "shape_per_rank": [8],
    }
    (tmp_path / "x.yaml").write_text(yaml.safe_dump({"name": "x", "cases": [case]}))
    pffbench_cli(*command, cwd=tmp_path)
    assert not list(tmp_path.glob("*-was-run"))


# What is no file


def test_an_experiment_that_is_no_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "x.yaml")
    with pytest.raises(UserError, match=r"x\.yaml: cannot be read: it is "):
        load_experiment(str(tmp_path / "x.yaml"))


def test_data_that_are_no_file_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "x.npy")
    with pytest.raises(UserError, match=r"x\.npy: cannot be read .*not a regular file"):
        read(tmp_path / "x.npy")


def test_hdf5_data_that_lie_in_a_fifo_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with h5py.File(tmp_path / "mine.h5", "w") as file:
        file.create_dataset("raw", (4,), "f4", external=[(str(tmp_path / "pipe"), 0, 16)])
        layout = h5py.VirtualLayout((4,), "f4")
        layout[:] = h5py.VirtualSource(str(tmp_path / "pipe"), "x", shape=(4,))
        file.create_virtual_dataset("virtual", layout)
        file["link"] = h5py.ExternalLink(str(tmp_path / "pipe"), "x")
    for name in ("raw", "virtual"):
        with pytest.raises(UserError, match="it is a FIFO, not a regular file"):
            read(tmp_path / "mine.h5", name)
    with pytest.raises(UserError, match=r"'link' is a link to '.*pipe'; name that file instead"):
        read(tmp_path / "mine.h5", "link")


# Files that are written


def test_a_file_is_replaced_and_no_link_is_followed(tmp_path):
    (tmp_path / "mine").write_text("precious")
    (tmp_path / "link").symlink_to("mine")
    write_replacing(tmp_path / "link", "new")
    assert (tmp_path / "mine").read_text() == "precious"
    assert (tmp_path / "link").read_text() == "new"
    assert not (tmp_path / "link").is_symlink()
    (tmp_path / "other").symlink_to("mine")
    with pytest.raises(OSError, match="a symbolic link, not a regular file"):
        append_regular(tmp_path / "other")
    (tmp_path / "away").mkdir()
    (tmp_path / "plots").symlink_to("away")
    with pytest.raises(OSError, match="it is a symbolic link, not a directory"):
        make_own_directory(tmp_path / "plots")
    in_link = replacing(tmp_path / "plots" / "x", links=False)
    with pytest.raises(OSError, match="Not a directory"), in_link:
        pass
    assert not list((tmp_path / "away").iterdir())


def test_a_file_stays_as_it_was_where_writing_it_fails(tmp_path):
    (tmp_path / "mine").write_text("old")
    with pytest.raises(TypeError), replacing(tmp_path / "mine") as file:
        file.writelines(["new", 1])
    assert (tmp_path / "mine").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_file_is_made_with_the_rights_that_the_user_gives_to_files(tmp_path):
    before = os.umask(0o027)
    try:
        write_replacing(tmp_path / "mine", "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "mine").stat().st_mode) == 0o640


# Text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ü × …", "plain ü × …"),
        ("a\tb\nc", "a\tb\nc"),
        ("\x1b[31mred\x1b]0;title\x07", "\\x1b[31mred\\x1b]0;title\\x07"),
        ("a\rb\x00\x7f\x9b", "a\\rb\\x00\\x7f\\x9b".replace("\\r", "\\x0d")),
        ("\u202eabc\u2066", "\\u202eabc\\u2066"),
        (os.fsdecode(b"a\xff"), "a\\xff"),
        ("\ud800", "\\ud800"),
    ],
)
def test_nothing_in_a_text_acts_on_a_terminal(text, shown):
    assert escape_controls(text) == shown
    assert has_controls(text) == (text != shown)
    assert escape_controls(shown) == shown
    assert escaped({text: [text, 1, None]}) == {shown: [shown, 1, None]}
    data = json.dumps(text).encode()
    assert json_needs_escaping(data) or text == shown
    shown.encode()


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("plain text, 5 % of it", "plain text, 5 % of it"),
        ("chunks [4, 5] (matched)", "chunks [4, 5] (matched)"),
        ("<script>x</script>", "&lt;script>x&lt;/script>"),
        ("a | b\nc", "a \\| b c"),
        ("[x](javascript:y) ![z](http://w)", "[x]\\(javascript:y) ![z]\\(http://w)"),
        ("# no heading", "\\# no heading"),
        ("`code` and *stress*", "\\`code\\` and \\*stress\\*"),
        ("\x1b[1m", "\\x1b[1m"),
        ("_so_ &lt; R&D write_total", "\\_so\\_ &amp;lt; R&D write_total"),
    ],
)
def test_nothing_in_a_text_acts_in_markdown(text, written):
    assert escape_markdown(text) == written
