"""What is read of users' files: the user's values or one sentence, never something that is neither.

Values that are not there must not become zeros, one bad member must not spoil the others, and links
are followed or named.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys

import h5py
import netCDF4
import numpy as np
import pytest
import yaml
import zarr

from launch import pffbench_here
from pffbench.data import file_source, hdf5_values, zarr_store
from pffbench.draft.from_file import draft_experiment, structure_of
from pffbench.errors import UserError

DATA = (np.arange(6 * 8 * 10, dtype="f4") + 1).reshape(6, 8, 10)


def read(path, variable=None):
    source = file_source(str(path), variable, None)
    out = np.empty(source.shape, source.dtype)
    source.fill(out, 0, (0,) * out.ndim, out.shape)
    source.close()
    return out


def refusal_of(path, variable=None):
    with pytest.raises(UserError) as told:
        read(path, variable)
    assert "\n" not in str(told.value)
    return str(told.value)


# Filters


def hdf5plugin_filters():
    import hdf5plugin

    return {
        "zstd": hdf5plugin.Zstd(3), "blosc": hdf5plugin.Blosc("lz4", 5, 1),
        "bitshuffle": hdf5plugin.Bitshuffle(), "lz4": hdf5plugin.LZ4(),
        "blosc2": hdf5plugin.Blosc2(), "bzip2": hdf5plugin.BZip2(),
    }  # fmt: skip


@pytest.fixture
def packed(tmp_path):
    """A file whose filters no library of the process that reads it has loaded."""
    with h5py.File(tmp_path / "packed.h5", "w") as file:
        for name, how in hdf5plugin_filters().items():
            file.create_dataset(name, data=DATA, chunks=(2, 8, 10), **how)
        layout = h5py.VirtualLayout(DATA.shape, "f4")
        layout[:] = h5py.VirtualSource(".", "zstd", shape=DATA.shape)
        file.create_virtual_dataset("virtual", layout)
    return tmp_path / "packed.h5"


READ = (
    "import sys, numpy as np\n"
    "from pffbench.data import file_source\n"
    "s = file_source('packed.h5', sys.argv[1], None); o = np.empty(s.shape, s.dtype)\n"
    "s.fill(o, 0, (0, 0, 0), o.shape); print(float(o.sum()))\n"
)


@pytest.mark.parametrize(
    "name", ["zstd", "blosc", "bitshuffle", "lz4", "blosc2", "bzip2", "virtual"]
)
def test_filters_of_hdf5plugin_are_loaded(packed, name):
    """In a new process, as the filter stays loaded once it is."""
    command = [sys.executable, "-P", "-c", READ, name]
    done = subprocess.run(command, cwd=packed.parent, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == (f"{float(DATA.sum())}\n", 0), done.stderr


@pytest.mark.parametrize("name", ["blosc2", "virtual"])
def test_a_missing_filter_is_named_with_its_package(packed, monkeypatch, name):
    monkeypatch.setattr(hdf5_values, "_is_available", lambda _: False)
    told = refusal_of(packed, name)
    number = {"blosc2": "32026 (Blosc2)", "virtual": "32015 (Zstandard)"}[name]
    assert f"variable {name!r}: cannot be read" in told
    assert f"HDF5 filter {number}, which needs the Python package hdf5plugin: pip install" in told


def test_a_filter_of_no_package_is_named(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_chunk((4,))
        creation.set_filter(32099, h5py.h5z.FLAG_OPTIONAL, ())
        h5py.h5d.create(file.id, b"x", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((8,)), creation)
    assert "filter 32099 (without a name), which is not installed: set HDF5_PLUGIN_PATH" in (
        refusal_of(tmp_path / "a.h5", "x")
    )


# netCDF's rules


def write_track(path):
    with netCDF4.Dataset(path, "w") as file:
        for name, count in (("time", 10), ("point", 60), ("corner", 4), ("record", None)):
            file.createDimension(name, count)
        file.createVariable("time", "f4", ("point", "corner"))[:] = 7.5
        file.createVariable("t", "f4", ("time", "point"))[:] = 1
        group = file.createGroup("deep")
        group.createVariable("corner", "i4", ("point",))[:] = 3
        file.createVariable("long", "f4", ("record", "corner"))[:] = np.ones((5, 4))
        file.createVariable("short", "f4", ("record", "corner"))[:2] = np.ones((2, 4))
        file.createVariable("plain", "i4", ("record",), fill_value=False)[:3] = 4
        file.createVariable("record", "f8", ("record",))[:1] = 9


@pytest.mark.parametrize(
    "variable", ["time", "t", "deep/corner", "long", "short", "plain", "record"]
)
def test_a_variable_of_netcdf_is_what_netcdf_shows(tmp_path, variable):
    write_track(tmp_path / "track.nc")
    with netCDF4.Dataset(tmp_path / "track.nc") as file:
        file.set_auto_maskandscale(False)
        shown = file[variable][...]
    got = read(tmp_path / "track.nc", variable)
    assert got.shape == shown.shape
    assert np.array_equal(got, shown)


@pytest.mark.parametrize("name", ["corner", "point", "deep/time"])
def test_a_dimension_is_no_variable(tmp_path, name):
    write_track(tmp_path / "track.nc")
    assert f"has no variable {name!r}" in refusal_of(tmp_path / "track.nc", name)


def test_a_dimension_marked_by_text_of_another_library_is_no_variable(tmp_path):
    with h5py.File(tmp_path / "a.nc", "w") as file:
        file["x"] = np.zeros(4)
        file["x"].make_scale("This is a netCDF dimension but not a netCDF variable.         4")
        file["x"].attrs["NAME"] = "This is a netCDF dimension but not a netCDF variable.         4"
        file["u"] = DATA
    assert list(structure_of(tmp_path / "a.nc")) == ["u"]
    assert "has no variable 'x'" in refusal_of(tmp_path / "a.nc", "x")


def test_a_draft_has_the_names_that_netcdf_shows(tmp_path):
    write_track(tmp_path / "track.nc")
    assert set(structure_of(tmp_path / "track.nc")) == {
        "time", "t", "deep/corner", "long", "short", "plain", "record"
    }  # fmt: skip


@pytest.mark.parametrize("form", ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"])
@pytest.mark.parametrize("records", [1, 2])
def test_classic_files_are_read_as_netcdf_does(tmp_path, form, records):
    """One record variable is not padded, several are."""
    with netCDF4.Dataset(tmp_path / "a.nc", "w", format=form) as file:
        file.title, file.numbers = "text", np.arange(3)
        for name, count in (("r", None), ("x", 3), ("y", 2)):
            file.createDimension(name, count)
        for number in range(records):
            variable = file.createVariable(f"r{number}", "i1", ("r", "x"))
            variable.units, variable[:] = "m", np.arange(12).reshape(4, 3) + number
        for kind in ("i1", "i2", "i4", "f4", "f8"):
            file.createVariable(f"fixed_{kind}", kind, ("y", "x"))[:] = np.arange(6).reshape(2, 3)
        file.createVariable("scalar", "f8", ())[...] = 1
        file.createVariable("text", "S1", ("x",))[:] = list("abc")
    with netCDF4.Dataset(tmp_path / "a.nc") as file:
        wanted = {name: variable[...] for name, variable in file.variables.items()}
    for name, values in wanted.items():
        if name in ("scalar", "text"):
            assert refusal_of(tmp_path / "a.nc", name)
        else:
            assert np.array_equal(read(tmp_path / "a.nc", name), values)


def test_a_name_of_a_classic_file_ends_at_a_nul(tmp_path):
    """As some old programs wrote it, and netCDF-C reads it."""
    with netCDF4.Dataset(tmp_path / "a.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("x", 3)
        file.createVariable("yyz", "f4", ("x",))[:] = 1
    content = (tmp_path / "a.nc").read_bytes()
    (tmp_path / "a.nc").write_bytes(content.replace(b"yyz", b"yy\0"))
    assert read(tmp_path / "a.nc", "yy").tolist() == [1, 1, 1]


# Values that are not there


def test_a_truncated_classic_file_has_only_the_variables_that_are_whole(tmp_path):
    with netCDF4.Dataset(tmp_path / "a.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("x", 1000)
        for name in "ab":
            file.createVariable(name, "f4", ("x",))[:] = 1
    os.truncate(tmp_path / "a.nc", (tmp_path / "a.nc").stat().st_size - 4)
    assert read(tmp_path / "a.nc", "a").min() == 1
    assert "variable 'b': cannot be read (the file is truncated" in (
        refusal_of(tmp_path / "a.nc", "b")
    )


@pytest.mark.parametrize("count", [9, 30, 60, 100])
def test_a_truncated_header_is_one_sentence(tmp_path, count):
    with netCDF4.Dataset(tmp_path / "a.nc", "w", format="NETCDF3_64BIT_DATA") as file:
        file.createDimension("x", 1000)
        file.createVariable("a", "f4", ("x",))[:] = 1
    os.truncate(tmp_path / "a.nc", count)
    assert "cannot be read (the header is truncated)" in refusal_of(tmp_path / "a.nc", "a")


def write_virtual(path, source, dataset, shape=DATA.shape):
    layout = h5py.VirtualLayout(shape, "f4")
    layout[:] = h5py.VirtualSource(source, dataset, shape=shape)
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("v", layout, fillvalue=0)


def write_plain(path, dataset="x", data=DATA):
    path.parent.mkdir(exist_ok=True)
    with h5py.File(path, "w") as file:
        file[dataset] = data


@pytest.mark.parametrize(
    ("source", "dataset", "shape", "why"),
    [
        ("gone.h5", "x", (6, 8, 10), "its source x in gone.h5 is missing"),
        ("there.h5", "y", (6, 8, 10), "its source y in there.h5 is missing"),
        ("there.h5", "x", (7, 8, 10), r"its source x in there.h5 has the shape (6, 8, 10), less"),
        ("v.h5", "v", (6, 8, 10), "is read for itself"),
        ("text.h5", "x", (6, 8, 10), "its source x in text.h5 is missing or damaged"),
        ("chain.h5", "v", (6, 8, 10), "its source x in gone.h5 is missing"),
    ],
)
def test_a_virtual_dataset_without_its_source_is_refused(tmp_path, source, dataset, shape, why):
    write_plain(tmp_path / "there.h5")
    (tmp_path / "text.h5").write_text("text")
    write_virtual(tmp_path / "chain.h5", "gone.h5", "x")
    write_virtual(tmp_path / "v.h5", source, dataset, shape)
    assert why in refusal_of(tmp_path / "v.h5", "v")
    with pytest.raises(UserError, match="holds no array for an experiment"):
        draft_experiment(tmp_path / "v.h5")


def test_what_plain_h5py_reads_of_virtual_datasets_is_read(tmp_path, monkeypatch):
    """Sources by links, in nested ones, by prefix, absolute, from the current directory."""
    write_plain(tmp_path / "data" / "there.h5")
    write_plain(tmp_path / "elsewhere" / "moved.h5")
    write_plain(tmp_path / "here" / "near.h5")
    main = tmp_path / "data" / "main.h5"
    with h5py.File(main, "w") as file:
        file["far"] = h5py.ExternalLink("there.h5", "x")
        file["alias"] = h5py.SoftLink("/far")
        for name, where, inside in (
            ("own", ".", "far"),
            ("soft", ".", "alias"),
            ("beside", "there.h5", "x"),
            ("absolute", str(tmp_path / "here" / "near.h5"), "x"),
            ("gone_absolute", "/no/such/directory/there.h5", "x"),
            ("prefix", "moved.h5", "x"),
            ("current", "near.h5", "x"),
            ("nested", ".", "prefix"),
            ("per%%cent", "there.h5", "x"),
        ):
            layout = h5py.VirtualLayout(DATA.shape, "f4")
            layout[:] = h5py.VirtualSource(where, inside, shape=DATA.shape)
            file.create_virtual_dataset(name, layout)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HDF5_VDS_PREFIX", str(tmp_path / "elsewhere"))
    with h5py.File(main) as file:
        shown = {name: file[name][...] for name in file if name not in ("far", "alias")}
    assert len(shown) == 9
    for name, values in shown.items():
        assert np.array_equal(values, DATA), name
        assert np.array_equal(read(main, name), values), name


def write_blocks(path, name):
    """Write a virtual dataset of as many blocks as there are files."""
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    space = h5py.h5s.create_simple((1, 10), (h5py.h5s.UNLIMITED, 10))
    space.select_hyperslab((0, 0), (h5py.h5s.UNLIMITED, 1), (2, 1), (2, 10))
    source = h5py.h5s.create_simple((2, 10))
    creation.set_virtual(space, name, b"x", source)
    creation.set_fill_value(np.array(-1, "f4"))
    with h5py.File(path, "w") as file:
        h5py.h5d.create(file.id, b"v", h5py.h5t.NATIVE_FLOAT, space, creation)


def test_a_virtual_dataset_of_numbered_files_is_read_as_h5py_does(tmp_path):
    write_blocks(tmp_path / "v.h5", b"part-%b.h5")
    assert "its source x in part-0.h5 is missing" in refusal_of(tmp_path / "v.h5", "v")
    for number in (0, 1, 2):
        write_plain(tmp_path / f"part-{number}.h5", "x", np.full((2, 10), number + 1, "f4"))
    with h5py.File(tmp_path / "v.h5") as file:
        shown = file["v"][...]
    assert shown.shape == (6, 10)
    assert np.array_equal(read(tmp_path / "v.h5", "v"), shown)
    os.mkfifo(tmp_path / "part-3.h5")
    assert "it is a FIFO" in refusal_of(tmp_path / "v.h5", "v")


def test_a_virtual_dataset_may_have_more_sources_than_a_process_can_open(tmp_path):
    layout = h5py.VirtualLayout((90, 4), "f4")
    for number in range(90):
        write_plain(tmp_path / f"{number}.h5", "x", np.full(4, number, "f4"))
        layout[number] = h5py.VirtualSource(f"{number}.h5", "x", shape=(4,))
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file.create_virtual_dataset("v", layout)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 60, limits[1]))
    try:
        assert structure_of(tmp_path / "v.h5")["v"].stored.unreadable == ""
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_percent_sign_in_the_name_of_a_growing_source_is_no_number(tmp_path):
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    space = h5py.h5s.create_simple((1, 10), (h5py.h5s.UNLIMITED, 10))
    space.select_hyperslab((0, 0), (h5py.h5s.UNLIMITED, 1), (1, 1), (1, 10))
    creation.set_virtual(space, b"100%%b.h5", b"x", space)
    with h5py.File(tmp_path / "v.h5", "w") as file:
        h5py.h5d.create(file.id, b"v", h5py.h5t.NATIVE_FLOAT, space, creation)
    with h5py.File(tmp_path / "100%b.h5", "w") as file:
        file.create_dataset("x", data=np.ones((3, 10), "f4"), maxshape=(None, 10))
    with h5py.File(tmp_path / "v.h5") as file:
        shown = file["v"][...]
    assert shown.shape == (3, 10)
    assert np.array_equal(read(tmp_path / "v.h5", "v"), shown)


def test_a_raw_file_that_is_short_or_missing_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with h5py.File("a.h5", "w") as file:
        file.create_dataset("x", (10,), "f8", external=[("one", 0, 40), ("two", 8, 40)])[:] = 1
    assert np.array_equal(read("a.h5", "x"), np.ones(10))
    os.truncate("two", 40)
    assert "its raw file two is shorter than the 48 bytes used" in refusal_of("a.h5", "x")
    (tmp_path / "one").unlink()
    assert "its raw file one is missing, which HDF5 looks for" in refusal_of("a.h5", "x")


def test_a_raw_file_is_looked_for_where_hdf5_does(tmp_path):
    """HDF5 reads the variable when it is loaded."""
    (tmp_path / "raw").mkdir()
    write = (
        "import h5py\n"
        "with h5py.File('packed.h5', 'w') as file:\n"
        "    file.create_dataset('x', (1, 2, 5), 'f8', external=[('one', 0, 80)])[:] = 1\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", write + READ, "x"],
        cwd=tmp_path, env=os.environ | {"HDF5_EXTFILE_PREFIX": "${ORIGIN}/raw"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (tmp_path / "raw" / "one").exists()
    assert (done.stdout, done.returncode) == ("10.0\n", 0), done.stderr


# Zarr: the disk counts


def new_group(path, *names, version=3):
    group = zarr.open_group(path, mode="w", zarr_format=version)
    for name in names:
        group.create_array(name, shape=DATA.shape, chunks=(2, 8, 10), dtype="f4")[...] = DATA
    return group


@pytest.mark.filterwarnings("ignore:Consolidated metadata")
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("inside", ["", "deep/"])
def test_consolidated_metadata_are_not_trusted(tmp_path, version, inside):
    place = tmp_path / "a.zarr"
    new_group(place, f"{inside}old", f"{inside}gone", f"{inside}grows", version=version)
    for group in ("", inside):  # a group within has an index of its own
        zarr.consolidate_metadata(place, path=group or None, zarr_format=version)
    shutil.rmtree(place / inside / "gone")
    grows = zarr.open_array(place / inside / "grows", mode="r+")
    grows.resize((9, 8, 10))
    grows[6:] = 5
    plain = zarr.open_group(place, mode="r+", use_consolidated=False, zarr_format=version)
    plain.create_array(f"{inside}new", shape=(4,), dtype="i4")[...] = 2
    assert set(structure_of(place)) == {f"{inside}{name}" for name in ("old", "grows", "new")}
    assert read(place, f"{inside}grows").shape == (9, 8, 10)
    assert read(place, f"{inside}new").tolist() == [2] * 4
    assert f"has no variable '{inside}gone'" in refusal_of(place, f"{inside}gone")


@pytest.mark.parametrize("written", [".", "/"])
@pytest.mark.parametrize("version", [2, 3])
def test_chunks_under_other_names_are_not_fill_values(tmp_path, version, written):
    """As nested stores of format 2 were written before their metadata could say so."""
    place, said = tmp_path / "a.zarr", {".": "/", "/": "."}[written]
    encoding = {"name": "v2" if version == 2 else "default", "separator": written}
    how = {"chunks": (2, 8, 10), "dtype": "f4", "zarr_format": version}
    zarr.create_array(place, shape=DATA.shape, chunk_key_encoding=encoding, **how)[...] = DATA
    assert np.array_equal(read(place), DATA)
    if version == 2:
        change(place / ".zarray", lambda m: m.update(dimension_separator=said))
    else:
        change(place / "zarr.json", lambda m: m["chunk_key_encoding"]["configuration"].update(
            separator=said))  # fmt: skip
    assert "cannot be read (its chunks have names such as" in refusal_of(place)


@pytest.mark.parametrize("codec", ["zfpy", "pcodec"])
def test_a_codec_without_its_package_is_named_with_it(tmp_path, monkeypatch, codec):
    monkeypatch.setattr(zarr_store, "find_spec", lambda _: None)
    new_group(tmp_path / "a.zarr", "u", "v", version=2)
    change(tmp_path / "a.zarr" / "v" / ".zarray", lambda m: m.update(compressor={"id": codec}))
    assert f"its codec {codec} needs the Python package {codec}: pip install" in (
        refusal_of(tmp_path / "a.zarr", "v")
    )
    assert np.array_equal(read(tmp_path / "a.zarr", "u"), DATA)


def test_links_in_a_store_end(tmp_path):
    new_group(tmp_path / "a.zarr", "u", "deep/v")
    (tmp_path / "a.zarr" / "deep" / "up").symlink_to("..")
    assert set(structure_of(tmp_path / "a.zarr")) == {"u", "deep/v"}


def test_a_chunk_that_is_a_fifo_is_refused(tmp_path):
    new_group(tmp_path / "a.zarr", "u")
    chunk = tmp_path / "a.zarr" / "u" / "c" / "0" / "0" / "0"
    chunk.unlink()
    os.mkfifo(chunk)
    assert "it is a FIFO" in refusal_of(tmp_path / "a.zarr", "u")


# One bad member


def change(path, how):
    metadata = json.loads(path.read_text())
    how(metadata)
    path.write_text(json.dumps(metadata))


def bad_codec(place):
    change(place / "v" / "zarr.json", lambda m: m["codecs"].insert(0, {"name": "site.fancy"}))


def bad_type(place):
    change(place / "v" / "zarr.json", lambda m: m.update(data_type="bfloat16"))


def bad_json(place):
    (place / "v" / "zarr.json").write_text("{")


def bad_node(place):
    change(place / "v" / "zarr.json", lambda m: m.update(node_type="table"))


def bad_shape(place):
    change(place / "v" / "zarr.json", lambda m: m.update(shape=[6, 8]))


def bad_file(place):
    (place / "v" / "zarr.json").unlink()
    os.mkfifo(place / "v" / "zarr.json")


@pytest.mark.parametrize("spoil", [bad_codec, bad_type, bad_json, bad_node, bad_shape, bad_file])
def test_a_bad_member_of_a_store_is_named_and_the_others_are_read(tmp_path, spoil):
    new_group(tmp_path / "a.zarr", "u", "v", "w/x")
    spoil(tmp_path / "a.zarr")
    assert np.array_equal(read(tmp_path / "a.zarr", "u"), DATA)
    assert "variable 'v': cannot be read (" in refusal_of(tmp_path / "a.zarr", "v")
    draft = draft_experiment(tmp_path / "a.zarr")
    assert any(
        note.startswith("not carried over (") and note.endswith(": v") for note in draft.notes
    )
    assert "u, w/x" in str(draft.entries)


def test_a_bad_member_of_an_hdf5_file_is_named_and_the_others_are_read(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file["u"] = DATA
        odd = file.create_dataset("attribute", data=DATA)
        h5py.h5a.create(odd.id, b"NAME", h5py.h5t.UNIX_D32LE, h5py.h5s.create_simple((1,)))
        h5py.h5a.create(odd.id, b"CLASS", h5py.h5t.UNIX_D32LE, h5py.h5s.create_simple((1,)))
        file["group/damaged"] = DATA
        begin = h5py.h5g.get_objinfo(file["group/damaged"].id).objno[0]
    with path.open("r+b") as raw:
        raw.seek(begin + 4)
        raw.write(b"\xff" * 8)
    assert np.array_equal(read(path, "u"), DATA)
    assert np.array_equal(read(path, "attribute"), DATA)
    assert "group/damaged" in refusal_of(path, "group/damaged")
    assert any(note.endswith(": group/damaged") for note in draft_experiment(path).notes)


def test_a_bit_field_that_h5py_cannot_read_is_named(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        space = h5py.h5s.create_simple((16,))
        h5py.h5d.create(file.id, b"bits", h5py.h5t.STD_B8BE, space)
        file["u"], file["v"], file["w"] = DATA, DATA.astype(">i2"), DATA > 4
        file["half"] = DATA.astype("f2")
    assert "HDF5 cannot convert its elements" in refusal_of(tmp_path / "a.h5", "bits")
    notes = draft_experiment(tmp_path / "a.h5").notes
    assert any(note.startswith("not carried over (HDF5 cannot") for note in notes)
    assert np.array_equal(read(tmp_path / "a.h5", "v"), DATA)
    assert "has the type float16" in refusal_of(tmp_path / "a.h5", "half")


def test_a_file_that_is_being_written_is_not_to_be_cleared(tmp_path):
    write = (
        "import h5py, os\n"
        "file = h5py.File('a.h5', 'w', libver='latest'); file['x'] = [1.0, 2.0]\n"
        "file.swmr_mode = True; file.flush(); os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-P", "-c", write], cwd=tmp_path, check=True)
    told = refusal_of(tmp_path / "a.h5", "x")
    assert "a program writes it, or ended without closing it" in told
    assert "h5clear" not in told


# Links


def test_links_to_other_files_are_named(tmp_path):
    for number in (1, 2):
        write_plain(tmp_path / f"data_{number}.h5", "entry/x")
    with h5py.File(tmp_path / "master.h5", "w") as file:
        for number in (1, 2):
            file[f"entry/{number}"] = h5py.ExternalLink(f"data_{number}.h5", "entry/x")
    with pytest.raises(UserError, match=r"link to another file\): entry/1 in data_1.h5, entry/2"):
        draft_experiment(tmp_path / "master.h5")
    assert "entry/1 in data_1.h5: a link to another file" in refusal_of(tmp_path / "master.h5")
    with h5py.File(tmp_path / "master.h5", "a") as file:
        file["dark"] = DATA
    assert (
        "not carried over (a link to another file): entry/1 in data_1.h5, entry/2 in data_2.h5"
        in (draft_experiment(tmp_path / "master.h5").notes)
    )


def test_no_link_leads_to_a_fifo(tmp_path):
    os.mkfifo(tmp_path / "fifo.h5")
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["x/real"] = h5py.ExternalLink("fifo.h5", "/data")
        file["absolute"] = h5py.SoftLink("/x/real")
        file["x/relative"] = h5py.SoftLink("real")
        file["x/below"] = h5py.SoftLink("real/inside")
        file["twice"] = h5py.SoftLink("x/relative")
        file["circle"] = h5py.SoftLink("circle")
        file["y"] = h5py.SoftLink("x")
        file["own"] = DATA
        file["good"] = h5py.SoftLink("./own")
    for name in ("absolute", "x/relative", "x/below", "twice", "y/real"):
        assert f"{name!r} is a link to 'fifo.h5'" in refusal_of(path, name)
    assert "has no variable 'circle'" in refusal_of(path, "circle")
    assert np.array_equal(read(path, "good"), DATA)
    assert set(structure_of(path)) == {"own", "x/real in fifo.h5"}


def test_a_file_of_very_many_kinds_of_arrays_is_drafted(tmp_path):
    """Each of them has less than the least part of the file's bytes."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for number in range(150):
            file[f"x{number}"] = np.zeros(200 + number)
    draft = draft_experiment(tmp_path / "a.h5")
    assert yaml.safe_load(draft.text)["cases"][0]["shape"] == [349]


def test_text_of_zarr_is_told_as_text(tmp_path):
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    group.create_array("names", shape=(3,), dtype=str)[...] = ["a", "bc", "d"]
    with pytest.raises(UserError, match=r"type text\): names"):
        draft_experiment(tmp_path / "a.zarr")


# Names that are not UTF-8


def test_names_that_are_not_utf8_are_shown_with_escapes(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file[b"gr\xf6\xdfe/p"] = DATA
        file["pressure"] = DATA
        file[b"far\xe9"] = h5py.ExternalLink(b"caf\xe9.h5", b"x")
    done = pffbench_here("init", "a.h5", cwd=tmp_path)
    assert done.status == 0, done.said
    assert r"gr\xf6\xdfe/p, pressure" in done.stdout
    assert r"(a link to another file): far\xe9 in caf\xe9.h5" in done.stdout
    assert np.array_equal(read(tmp_path / "a.h5", r"gr\xf6\xdfe/p"), DATA)
    assert r"there are: gr\xf6\xdfe/p, pressure" in refusal_of(tmp_path / "a.h5", "none")


def test_names_of_other_formats_that_are_not_utf8_are_shown_with_escapes(tmp_path):
    new_group(tmp_path / "a.zarr", "temp")
    os.rename(os.fsencode(tmp_path / "a.zarr" / "temp"), os.fsencode(tmp_path) + b"/a.zarr/t\xe9mp")
    assert np.array_equal(read(tmp_path / "a.zarr", r"t\xe9mp"), DATA)
    with netCDF4.Dataset(tmp_path / "a.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("x", 3)
        file.createVariable("temp", "f4", ("x",))[:] = 1
    content = (tmp_path / "a.nc").read_bytes()
    (tmp_path / "a.nc").write_bytes(content.replace(b"temp", b"t\xe9mp"))
    assert read(tmp_path / "a.nc", r"t\xe9mp").tolist() == [1, 1, 1]


@pytest.mark.parametrize("name", [b"caf\xe9.npy", b"a\x1b[2J.npy"])
def test_a_path_that_no_experiment_can_name_is_refused(tmp_path, name):
    path = tmp_path / os.fsdecode(name)
    with path.open("wb") as file:
        np.save(file, DATA)
    with pytest.raises(UserError, match=r"cannot name a path .* make a symbolic link"):
        draft_experiment(path)
