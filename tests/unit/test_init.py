"""`pffbench init`: an experiment from the structure of a file, as the libraries write files."""

from __future__ import annotations

import os

import numpy as np
import pytest
import yaml

from launch import pffbench_cli
from pffbench.data import hdf5_file
from pffbench.draft import from_file
from pffbench.draft.from_file import FileArray, draft_experiment, structure_of
from pffbench.errors import UserError
from pffbench.experiment.check import make_plan
from pffbench.experiment.load import load_experiment

FIELD = np.arange(12 * 16 * 20, dtype="f4").reshape(12, 16, 20)


def write_hdf5(path):
    import h5py

    with h5py.File(path, "w") as file:
        how = {"chunks": (1, 16, 20), "maxshape": (None, 16, 20), "shuffle": True}
        for name in ("u", "v"):
            file.create_dataset(f"winds/{name}", data=FIELD, compression="gzip", **how)
        file["mask"] = FIELD.astype("u1")
        file["title"] = "a run"
        file["lat"] = FIELD[0, :, 0].astype("f8")[:3]


def write_netcdf(path):
    import netCDF4

    with netCDF4.Dataset(path, "w") as file:
        for name, count in (("time", None), ("y", 16), ("x", 20)):
            file.createDimension(name, count)
        how = {"zlib": True, "complevel": 2, "shuffle": False, "chunksizes": (4, 16, 20)}
        for name in ("t", "q"):
            file.createVariable(name, "f4", ("time", "y", "x"), **how)[:] = FIELD


def write_classic(path):
    import netCDF4

    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("time", None)
        file.createDimension("y", 16)
        file.createVariable("t", "f8", ("time", "y"))[:] = FIELD[:, :, 0]


def write_zarr(path):
    import zarr

    group = zarr.open_group(path, mode="w")
    blosc = zarr.codecs.BloscCodec(cname="zstd", clevel=3, shuffle="bitshuffle")
    how = {"shape": FIELD.shape, "dtype": "f4"}
    group.create_array("deep/b", chunks=(4, 16, 20), compressors=blosc, **how)[...] = FIELD
    how |= {"dtype": "i2", "compressors": None}
    group.create_array("s", chunks=(2, 16, 20), shards=(6, 16, 20), **how)[...] = 1


def write_npy(path):
    with path.open("wb") as file:
        np.save(file, FIELD.astype(">f8"))


HDF5, ZARR = (12, 16, 20), (12, 16, 20)
WRITTEN = {
    "hdf5": (
        write_hdf5,
        {
            "winds/u": FileArray(HDF5, "float32", (1, 16, 20), "gzip 4 byte", grows=True),
            "winds/v": FileArray(HDF5, "float32", (1, 16, 20), "gzip 4 byte", grows=True),
            "mask": FileArray(HDF5, "uint8"),
            "title": FileArray((), "variable length"),
            "lat": FileArray((3,), "float64"),
        },
    ),
    "netcdf": (
        write_netcdf,
        dict.fromkeys(("t", "q"), FileArray(HDF5, "float32", (4, 16, 20), "gzip 2", grows=True)),
    ),
    "classic": (write_classic, {"t": FileArray((12, 16), "float64", grows=True)}),
    "zarr": (
        write_zarr,
        {
            "deep/b": FileArray(ZARR, "float32", (4, 16, 20), "blosc-zstd 3 bit"),
            "s": FileArray(ZARR, "int16", (2, 16, 20), "none", shards=(6, 16, 20)),
        },
    ),
    "npy": (write_npy, {"": FileArray(HDF5, "float64")}),
}


@pytest.fixture(params=WRITTEN)
def written(request, tmp_path):
    write, stored = WRITTEN[request.param]
    write(tmp_path / "data.bin")  # recognised by its signature
    return tmp_path / "data.bin", stored


def test_the_structure_is_that_of_the_file(written):
    path, stored = written
    assert structure_of(path) == stored


@pytest.mark.parametrize("ranks", [1, 3])
def test_the_experiment_can_be_planned_and_has_the_arrays_of_the_file(written, ranks, monkeypatch):
    path, stored = written
    monkeypatch.chdir(path.parent)
    draft = draft_experiment(path)
    (path.parent / "x.yaml").write_text(draft.text)
    plan = make_plan(load_experiment("x.yaml"), ranks)
    formats = {c.parameters.backend for c in plan.cases if not c.roofline}
    assert formats == {"hdf5", "netcdf4", "zarr"}
    assert plan.left_out == ()
    kept = [one for one in stored.values() if not one.lacking and one.shape != (3,)]
    wanted = {(one.dtype, one.nbytes * kept.count(one)) for one in kept}
    assert {(c.parameters.dtype, plan.costs[c.id].nbytes) for c in plan.cases} == wanted


def test_what_is_not_carried_over_is_told_in_the_file_and_on_the_terminal(tmp_path):
    write_hdf5(tmp_path / "run-42.h5")
    done = pffbench_cli("init", "run-42.h5", "-o", "mine.yaml", cwd=tmp_path)
    assert done.status == 0, done.said
    text = (tmp_path / "mine.yaml").read_text()
    for note in (
        "not carried over (type variable length): title",
        "left out, smaller than the others: lat",
        "winds/u, winds/v: all have the values of winds/u",
        "winds/u, winds/v: Zarr has no shuffle before gzip, and is measured without",
        "mask: contiguous in the file; here a chunk is the part of a rank",
        "attributes, dimensions and groups are not part of an experiment",
    ):
        assert f"note: {note}\n" in done.stdout
        assert f"# {note}\n" in text
    assert "2 arrays of float32 12×16×20, chunks 1×16×20, codec gzip level 4" in done.stdout
    assert "pffbench plan mine.yaml" in done.stdout
    (first, second) = yaml.safe_load(text)["cases"]
    assert (first["steps"], first["shape"], first["arrays"]) == (12, [16, 20], 2)
    assert (second["dtype"], "codec" in second) == ("uint8", False)


def test_an_experiment_that_is_there_is_kept(tmp_path):
    write_npy(tmp_path / "a.npy")
    (tmp_path / "experiment.yaml").write_text("mine")
    done = pffbench_cli("init", "a.npy", cwd=tmp_path)
    assert done.status == 2
    assert "experiment.yaml: exists already" in done.stderr
    assert (tmp_path / "experiment.yaml").read_text() == "mine"


def test_a_large_file_is_cut_to_whole_chunks(tmp_path):
    import h5py

    with h5py.File(tmp_path / "large.h5", "w") as file:  # which takes no space
        file.create_dataset("a", (1000, 512, 512), "f4", chunks=(7, 512, 512))
        for n in range(3000):
            file.create_dataset(f"b/{n}", (512, 512), "f4", chunks=(64, 512))
    draft = draft_experiment(tmp_path / "large.h5")
    ((several, one),) = (entry["arrays"] for entry in yaml.safe_load(draft.text)["cases"])
    assert (several["count"], several["shape"]) == (64, [512, 512])
    assert one["shape"] == [63, 512, 512]
    assert any("63 MiB in place of 1000 MiB" in note for note in draft.notes)


def test_uncompressed_arrays_that_differ_are_a_list_and_run_in_one_file(tmp_path):
    import h5py

    with h5py.File(tmp_path / "run.h5", "w") as file:
        file.create_dataset("fields/9 u", data=np.zeros((6, 8, 5)), chunks=(2, 8, 5))
        for name in ("fields/v", "other/v"):
            file[name] = np.zeros((7, 4), "f4")
        file["v_000"] = np.zeros(90, "i8")
    draft = draft_experiment(tmp_path / "run.h5")
    (case,) = yaml.safe_load(draft.text)["cases"]
    assert {one["name"]: one for one in case["arrays"]} == {
        "a0_9_u": {"name": "a0_9_u", "shape": [6, 8, 5], "dtype": "float64", "chunks": [2, 8, 5],
                   "decomposition": "block"},
        "v_000": {"name": "v_000", "shape": [90], "dtype": "int64"},
        "a1_v": {"name": "a1_v", "shape": [7, 4], "dtype": "float32", "count": 2},
    }  # fmt: skip
    (tmp_path / "mine.yaml").write_text(draft.text)
    settings = [f"--set={key}={n}" for key, n in (("repetitions", 1), ("warmup", 0))]
    out = tmp_path / "out"
    done = pffbench_cli("run", "mine.yaml", *settings, "--out", out, ranks=1, cwd=tmp_path, out=out)
    assert done.status == 0, done.said
    assert done.record["valid"] is True
    assert {int(row["arrays"]) for row in done.rows if row["phase"] == "write"} == {4}


def test_axes_codecs_and_chunks_that_no_experiment_has_are_named(tmp_path):
    import h5py

    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("five", data=np.zeros((2, 2, 3, 4, 5), "f4"))
        file.create_dataset("six", data=np.zeros((1, 2, 2, 3, 4, 5), "f4"))
        file.create_dataset("packed", data=np.zeros((8, 80), "i4"), scaleoffset=0)
        file.create_dataset("grows", (8, 8), "f4", chunks=(64, 8), maxshape=(None, 8))
        file["esc\x1b[2J"] = np.zeros(80)
        h5py.h5d.create(file.id, b"time", h5py.h5t.UNIX_D32LE, h5py.h5s.create_simple((9,)))
    draft = draft_experiment(tmp_path / "a.h5")
    assert "not carried over (more than 5 axes): six" in draft.notes
    assert "not carried over (a name with control characters): esc\\x1b[2J" in draft.notes
    assert "not carried over (type unknown): time" in draft.notes
    assert "packed: no experiment has filter 6; measured without compression" in draft.notes
    (tmp_path / "x.yaml").write_text(draft.text)
    plan = make_plan(load_experiment(str(tmp_path / "x.yaml")), 2)
    assert {getattr(case.parameters, "steps", None) for case in plan.cases} >= {2}


def test_a_file_without_arrays_is_refused(tmp_path):
    import h5py

    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["title"] = "x"
    with pytest.raises(UserError, match=r"no array .*type variable length.*title"):
        draft_experiment(tmp_path / "a.h5")


def test_types_without_a_name_of_their_own_are_told_in_words(tmp_path):
    import h5py

    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["pair"] = np.zeros(10, [("x", "f4"), ("y", "i8")])
        file["row"] = np.zeros(4, "V8")
        file["name"] = np.array([b"abc"])
        file.create_dataset("list", (5,), h5py.vlen_dtype("i4"))
        file["wave"] = FIELD.astype("c8")
    with pytest.raises(UserError) as told:
        draft_experiment(tmp_path / "a.h5")
    for words in ("compound): pair", "opaque): row", "text): name", "variable length): list",
                  "complex64): wave"):  # fmt: skip
        assert f"not carried over (type {words}" in str(told.value)


def test_of_a_file_without_datasets_nothing_more_is_said(tmp_path):
    import h5py

    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_group("some/group")
    with pytest.raises(UserError) as told:
        draft_experiment(tmp_path / "a.h5")
    assert str(told.value) == f"{tmp_path / 'a.h5'}: holds no array for an experiment"


@pytest.mark.parametrize(("more", "cut"), [(0, False), (1, True), (2, True)])
def test_very_many_datasets_are_cut_and_that_is_said(tmp_path, monkeypatch, more, cut):
    import h5py

    for module in (from_file, hdf5_file):
        monkeypatch.setattr(module, "MOST_NAMES", 20)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for number in range(20 + more):
            file[f"g/{number}"] = np.zeros(4)
    notes = draft_experiment(tmp_path / "a.h5").notes
    assert ("only the first 21 arrays of the file were looked at" in notes) is cut


@pytest.mark.parametrize("head", [b"", b"text", b"\x89HDF\r\n\x1a\n", b"CDF\x01", b"\x93NUMPY"])
def test_a_spoilt_file_is_one_sentence(tmp_path, head):
    (tmp_path / "data").write_bytes(head + b"\xff" * 3000)
    done = pffbench_cli("init", "data", cwd=tmp_path)
    assert done.status == 2
    assert done.stderr.startswith("pffbench: data: ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "experiment.yaml").exists()


@pytest.mark.parametrize("name", ["zarr.json", ".zarray"])
@pytest.mark.parametrize(
    "text",
    ["[]", "{", "null", "3", '"x"', '{"zarr_format": 3}', '{"zarr_format": 3, "node_type": []}',
     '{"zarr_format": 2, "shape": [1e999], "chunks": [0], "dtype": "<f4", "fill_value": 0,'
     ' "order": "C", "filters": null, "compressor": null}'],
)  # fmt: skip
def test_spoilt_metadata_of_zarr_are_one_sentence(tmp_path, name, text):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / name).write_text(text)
    with pytest.raises(UserError, match=r"data: (cannot be read|holds no array)"):
        draft_experiment(tmp_path / "data")


def test_a_fifo_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "data.h5")
    done = pffbench_cli("init", "data.h5", cwd=tmp_path, timeout=60)
    assert done.status == 2
    assert done.stderr.count("\n") == 1
