"""`pffbench init`: an experiment from the structure of a file, as the libraries write files."""

from __future__ import annotations

import os
import re

import numpy as np
import pytest
import yaml

from launch import pffbench_cli, pffbench_here
from pffbench.data import hdf5_file
from pffbench.draft import from_file
from pffbench.draft.from_file import draft_experiment
from pffbench.draft.structure import FileArray, structure_of
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
        file.createDimension("y", 320)
        file.createVariable("t", "f8", ("time", "y"))[:] = FIELD.reshape(12, 320)


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
    "classic": (write_classic, {"t": FileArray((12, 320), "float64", grows=True)}),
    "zarr": (
        write_zarr,
        {
            "deep/b": FileArray(ZARR, "float32", (4, 16, 20), "blosc-zstd 3 bit"),
            "s": FileArray(ZARR, "int16", (2, 16, 20), "none", shards=(6, 16, 20)),
        },
    ),
    "npy": (write_npy, {"": FileArray(HDF5, "float64")}),
}


@pytest.fixture(params=WRITTEN, scope="module")
def written(request, tmp_path_factory):
    write, stored = WRITTEN[request.param]
    path = tmp_path_factory.mktemp("written") / "data.bin"  # recognised by its signature
    write(path)
    return path, stored


@pytest.fixture(scope="module")
def draft(written):
    return draft_experiment(written[0])


def test_the_structure_is_that_of_the_file(written):
    path, stored = written
    assert {name: found.stored for name, found in structure_of(path).items()} == stored


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


def swept(draft):
    """Return the keys of the entry with most bytes."""
    return yaml.safe_load(draft.text)["cases"][0]


def test_the_experiment_asks_for_formats_chunks_codec_and_number_of_files(draft):
    first = [c.parameters for c in draft.plan.cases if not c.roofline]
    first = [p for p in first if p.dtype == first[0].dtype]
    assert {p.backend for p in first} == {"hdf5", "netcdf4", "zarr"}
    assert {p.files_word for p in first} == {"one-shared", "per_rank"}
    assert len({p.codec for p in first}) == 2
    assert "none" in {p.codec for p in first}
    assert len({p.chunks for p in first}) == 2
    assert len(first) == 3 * 2 * 2 * 2
    assert {p.source for p in first} == {"file"}


def test_what_is_not_carried_over_is_told_in_the_file_and_on_the_terminal(tmp_path):
    write_hdf5(tmp_path / "run-42.h5")
    done = pffbench_cli("init", "run-42.h5", "-o", "mine.yaml", cwd=tmp_path)
    assert done.status == 0, done.said
    text = (tmp_path / "mine.yaml").read_text()
    for note in (
        "not carried over (type variable length): title",
        "left out, under 1% of the bytes of the largest: lat",
        "winds/u, winds/v: all have the values of winds/u",
        "winds/u, winds/v: unlimited in the file along axis 1, of fixed length in the experiment",
        "winds/u, winds/v: all steps are written at once, because a chunk holds whole steps",
        "mask: contiguous in the file, in chunks of one rank each in the experiment",
        "attributes, dimensions and groups are not part of an experiment",
    ):
        assert f"note: {note}\n" in done.stdout
        assert f"# {note}\n" in text
    assert "2 arrays of float32 12×16×20, chunks 1×16×20, codec gzip level 4" in done.stdout
    assert "pffbench plan mine.yaml" in done.stdout
    (first, second) = yaml.safe_load(text)["cases"]
    assert (first["shape"], first["datasets"], first["decomposition"]) == ([12, 16, 20], 2, "slab")
    assert (first["codec"], first["level"], first["shuffle"]) == (["gzip", "none"], 4, "byte")
    assert (second["dtype"], "codec" in second) == ("uint8", False)
    assert "compared: chunks 1×16×20 and 1×8×10, codec gzip and none, one file" in done.stdout
    assert re.search(r"^planned on \d+ ranks: \d+ cases, each of at most 30 KiB and \d+ files$",
                     done.stdout, re.MULTILINE)  # fmt: skip


def test_an_experiment_that_is_there_is_kept(tmp_path):
    write_npy(tmp_path / "a.npy")
    (tmp_path / "experiment.yaml").write_text("mine")
    done = pffbench_here("init", "a.npy", cwd=tmp_path)
    assert done.status == 2
    assert "experiment.yaml: exists already" in done.stderr
    assert (tmp_path / "experiment.yaml").read_text() == "mine"


def test_a_large_file_is_cut_to_whole_chunks(tmp_path):
    import h5py

    with h5py.File(tmp_path / "large.h5", "w") as file:  # which takes no space
        file.create_dataset("a", (1000, 512, 512), "f4", chunks=(7, 512, 512))
        for n in range(1100):
            file.create_dataset(f"b/{n}", (512, 512), "f4", chunks=(64, 512))
    draft = draft_experiment(tmp_path / "large.h5")
    several, one = yaml.safe_load(draft.text)["cases"]
    assert (several["datasets"], several["shape"]) == (8, [512, 512])
    assert one["shape"] == [7, 512, 512]
    assert any("7 MiB in place of 1000 MiB" in note for note in draft.notes)


#: Arrays whose chunks, steps or number would make a run of hours, or of millions of files.
LARGE = {
    "a logger": {"t": ((2_000_000, 5), (1, 5))},
    "a series": {"t": ((16_000_000,), (1,))},
    "single elements": {"t": ((3000, 4000), (1, 1))},
    "steps of small chunks": {"t": ((50_000, 64, 64), (1, 2, 2))},
    "many small arrays": {f"t{n}": ((10,), (10,)) for n in range(700)},
    "many arrays of small chunks": {f"t{n}": ((500, 4), (1, 4)) for n in range(50)},
    "five axes": {"t": ((9000, 3, 8, 8, 8), (1, 1, 1, 1, 8))},
    "a chunk larger than the run": {"t": ((40, 4096, 4096), (20, 4096, 4096))},
    "contiguous steps of five axes": {"t": ((90_000, 2, 3, 4, 5), None)},
    "three hundred kinds": {f"t{n}": ((n + 7, 40), (7, 40)) for n in range(300)},
}


@pytest.mark.parametrize("arrays", LARGE.values(), ids=LARGE)
def test_files_calls_and_bytes_of_a_case_are_bounded(tmp_path, arrays):
    import h5py

    with h5py.File(tmp_path / "a.h5", "w") as file:  # which takes little space
        for name, (shape, chunks) in arrays.items():
            growing = chunks and {"chunks": chunks, "maxshape": (None, *shape[1:])}
            file.create_dataset(name, shape, "f4", **(growing or {}))
    draft = draft_experiment(tmp_path / "a.h5", 3)
    assert_several_ranks_have_parts(draft)
    plan = draft.plan
    costs = plan.costs.values()
    assert max(cost.files for cost in costs) <= 10_000
    assert max(cost.nbytes for cost in costs) <= 8 * 2**20
    each = [case.parameters for case in plan.cases]
    assert max((p.steps or 1) * p.datasets for p in each) <= 500
    assert {p.backend for p in each} >= {"hdf5", "netcdf4", "zarr"}


def zarr_array(path, zarr_format=3, **how):
    import zarr

    group = zarr.open_group(path, mode="w", zarr_format=zarr_format)
    told = {"shape": FIELD.shape, "chunks": (3, 16, 20), "dtype": "f4"} | how
    group.create_array("u", **told)[...] = FIELD


def hdf5_array(path, **how):
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("u", data=how.pop("data", FIELD), **{"chunks": (3, 16, 20)} | how)


def column_major(path):
    with path.open("wb") as file:
        np.save(file, np.asfortranarray(FIELD))


def compact(path):
    import h5py

    with h5py.File(path, "w") as file:
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple((12, 20))
        h5py.h5d.create(file.id, b"u", h5py.h5t.NATIVE_FLOAT, space, creation)


def virtual(path):
    import h5py

    hdf5_array(path.with_name("source.h5"))
    layout = h5py.VirtualLayout(FIELD.shape, "f4")
    layout[...] = h5py.VirtualSource(path.with_name("source.h5"), "u", FIELD.shape)
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("u", layout)


def filters_of_zarr(path, zarr_format, **how):
    import numcodecs

    made = {
        key: value and [getattr(numcodecs, name)(*rest) for name, *rest in value]
        for key, value in how.items()
    }
    zarr_array(path, zarr_format, **made)


def transposed(path):
    from zarr.codecs import TransposeCodec

    zarr_array(path, filters=[TransposeCodec(order=(2, 1, 0))])


def big_endian_zarr(path):
    from zarr.codecs import BytesCodec

    zarr_array(path, serializer=BytesCodec(endian="big"))


def packed_hdf5(path):
    import h5py

    hdf5_array(path, data=FIELD.astype("i2"))
    with h5py.File(path, "r+") as file:
        file["u"].attrs["scale_factor"] = 0.01


def packed_netcdf(path, form):
    import netCDF4

    with netCDF4.Dataset(path, "w", format=form) as file:
        file.createDimension("n", 3000)
        file.createVariable("u", "i2", ("n",)).setncatts(
            {"scale_factor": 0.01, "add_offset": 273.0}
        )


def packed_zarr(path, zarr_format):
    zarr_array(path, zarr_format, dtype="i2", attributes={"add_offset": 273.0})


#: Properties that no key has, a file that has them, and what is said.
PROPERTIES = {
    "byte order": (lambda path: hdf5_array(path, data=FIELD.astype(">f4")), "big-endian"),
    "byte order of .npy": (write_npy, "big-endian"),
    "byte order of zarr": (big_endian_zarr, "big-endian"),
    "byte order of zarr 2": (lambda path: zarr_array(path, 2, dtype=">f4"), "big-endian"),
    "checksum": (lambda path: hdf5_array(path, fletcher32=True), r"checksum .*\(fletcher32\)"),
    "checksum of zarr": (
        lambda path: filters_of_zarr(path, 2, filters=[["Fletcher32"]], compressors=None),
        r"checksum .*\(fletcher32\)",
    ),
    "fill value": (lambda path: hdf5_array(path, fillvalue=-9.0), "a fill value in the file"),
    "fill value of zarr": (lambda path: zarr_array(path, fill_value=-9.0), "a fill value"),
    "packed": (packed_hdf5, r"^u: packed in the file \(scale_factor\), its packed values in the"),
    "packed netcdf": (lambda p: packed_netcdf(p, "NETCDF4"), "factor and add_offset"),
    "packed classic": (lambda p: packed_netcdf(p, "NETCDF3_CLASSIC"), "factor and add_offset"),
    "packed zarr": (lambda p: packed_zarr(p, 3), r"packed in the file \(add_offset\)"),
    "packed zarr 2": (lambda p: packed_zarr(p, 2), r"packed in the file \(add_offset\)"),
    "second axis": (
        lambda path: hdf5_array(path, maxshape=(12, None, 20)), "unlimited in the file along axis 2"
    ),
    "several axes": (
        lambda path: hdf5_array(path, maxshape=(None, None, 20)), "unlimited .* along axis 1, 2"
    ),
    "transposed": (transposed, "transposed chunks"),
    "transposed zarr 2": (lambda path: zarr_array(path, 2, order="F"), "transposed chunks"),
    "column-major": (column_major, "column-major"),
    "shuffle": (lambda path: hdf5_array(path, shuffle=True), "byte shuffle without .* no format"),
    "shuffle of zarr": (
        lambda path: filters_of_zarr(path, 2, filters=[["Shuffle", 4]], compressors=None),
        "shuffle without a codec .* no format",
    ),
    "compressor": (
        lambda path: hdf5_array(path, compression=32001, compression_opts=(0, 0, 0, 0, 5, 1)),
        "does not name Blosc's compressor, which is then blosclz",
    ),
    "automatic shuffle": (
        lambda path: filters_of_zarr(path, 2, compressors=[["Blosc", "lz4", 5, -1]]),
        "automatic shuffle, which is by bytes",
    ),
    "bitshuffle": (
        lambda path: hdf5_array(path, compression=32008, compression_opts=(0, 2)),
        r"no key for filter 32008 \(bitshuffle\), so measured without compression and with gzip",
    ),
    "negative level": (
        lambda path: hdf5_array(path, compression=32015, compression_opts=(2**32 - 5,)),
        "level -5 is outside of 1 to 22, so measured with 1",
    ),
    "compact": (compact, r"within the metadata \(compact\)"),
    "virtual": (virtual, "a virtual dataset in the file"),
    "larger chunks": (
        lambda path: hdf5_array(path, chunks=(99, 99, 99), maxshape=(None,) * 3),
        "chunks of 99×99×99 reach beyond the array, so a chunk is the part of a rank",
    ),
    "chunks that are larger along two axes": (
        lambda path: hdf5_array(path, chunks=(5, 99, 99), maxshape=(None,) * 3),
        "chunks of 5×99×99 reach beyond the array and are cut to 5×16×20",
    ),
    "one chunk": (
        lambda path: hdf5_array(path, chunks=(12, 16, 20)),
        "chunks of 12×16×20 hold the whole array of the experiment, so a chunk is the part of a "
        "rank",
    ),
    "codec of one format": (
        lambda path: hdf5_array(path, compression="lzf"), "4 cases left out: .*netcdf4 cannot do"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("write", "told"), PROPERTIES.values(), ids=PROPERTIES)
def test_a_property_that_no_key_has_is_named(tmp_path, write, told):
    pytest.importorskip("hdf5plugin")
    write(tmp_path / "data")
    draft = draft_experiment(tmp_path / "data")
    assert any(re.search(told, note) for note in draft.notes), draft.notes
    assert "several" not in draft.text


def test_arrays_with_and_without_a_property_are_one_kind(tmp_path):
    import h5py

    with h5py.File(tmp_path / "a.h5", "w") as file:
        for number in range(6):
            file.create_dataset(
                f"u{number}", data=FIELD, chunks=(3, 16, 20), fillvalue=number or None
            )
    draft = draft_experiment(tmp_path / "a.h5")
    assert swept(draft)["datasets"] == 6
    note = "u1, u2, u3, u4, and 1 more: a fill value in the file, none in the experiment"
    assert note in draft.notes


def test_equal_kinds_that_are_too_many_are_not_called_smaller(tmp_path):
    import h5py

    with h5py.File(tmp_path / "a.h5", "w") as file:
        for level in range(1, 5):
            file.create_dataset(f"u{level}", data=FIELD, compression="gzip", compression_opts=level)
    draft = draft_experiment(tmp_path / "a.h5")
    assert "left out, since 3 kinds of arrays are measured: u4" in draft.notes


def test_values_that_cannot_be_read_are_replaced_and_that_is_said(tmp_path):
    import h5py

    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("u", data=FIELD, chunks=(3, 16, 20), compression="gzip")
        begin = file["u"].id.get_chunk_info(0).byte_offset
    with (tmp_path / "a.h5").open("r+b") as file:
        file.seek(begin)
        file.write(b"\xff" * 100)
    draft = draft_experiment(tmp_path / "a.h5")
    assert any(note.startswith("u: generated values in place") for note in draft.notes)
    assert (swept(draft)["source"], "file" in swept(draft)) == ("smooth", False)


@pytest.mark.parametrize(
    "change", ["codec=[none, gzip]", "codec=none", "backend=hdf5", "files=one", "chunks=rank_part",
               "codec=[zstd, blosc, none]", "compressor=zstd", "shuffle=none"],
)  # fmt: skip
def test_the_questions_of_a_draft_can_be_changed(draft, change, tmp_path):
    (tmp_path / "x.yaml").write_text(draft.text)
    loaded = load_experiment(str(tmp_path / "x.yaml"), [change])
    if change == "compressor=zstd":  # of Blosc only, and said so
        return
    plan = make_plan(loaded, 2)
    assert len({c.parameters.backend for c in plan.cases if not c.roofline}) >= 1
    assert not [why for _, why in plan.left_out if "level" in why or "comes before" in why]


def test_several_ranks_have_parts_of_each_array(draft):
    assert_several_ranks_have_parts(draft)


def assert_several_ranks_have_parts(draft):
    for case in yaml.safe_load(draft.text)["cases"]:
        unit = case.get("cut_unit", [1] * len(case["shape"]))
        lengths = zip(case["shape"], unit, strict=True)
        assert any(n > u for n, u in lengths), case


def test_a_path_that_no_experiment_can_name_is_refused(tmp_path):
    write_npy(tmp_path / "a\x1b[2J.npy")
    with pytest.raises(UserError, match="control characters"):
        draft_experiment(tmp_path / "a\x1b[2J.npy")


def test_axes_codecs_and_chunks_that_no_experiment_has_are_named(tmp_path):
    import h5py

    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("five", data=np.zeros((2, 2, 3, 4, 5), "f4"))
        file.create_dataset("six", data=np.zeros((1, 2, 2, 3, 4, 5), "f4"))
        file.create_dataset("packed", data=np.zeros((8, 8000), "i4"), scaleoffset=0)
        file.create_dataset("grows", (8, 8), "f4", chunks=(64, 8), maxshape=(None, 8))
        file["esc\x1b[2J"] = np.zeros(80)
        h5py.h5d.create(file.id, b"time", h5py.h5t.UNIX_D32LE, h5py.h5s.create_simple((9,)))
    draft = draft_experiment(tmp_path / "a.h5")
    assert "not carried over (more than 5 axes): six" in draft.notes
    assert "not carried over (a name with control characters): esc\\x1b[2J" in draft.notes
    assert "not carried over (type unknown): time" in draft.notes
    (packed,) = (note for note in draft.notes if note.startswith("packed: no key"))
    assert "filter 6" in packed
    draft = draft_experiment(only(tmp_path, "five", np.zeros((2, 2, 3, 4, 5), "f4")))
    assert {case.parameters.steps for case in draft.plan.cases} == {2}


def only(directory, name, values):
    """Write a file with one array."""
    import h5py

    with h5py.File(directory / f"{name}.h5", "w") as file:
        file[name] = values
    return directory / f"{name}.h5"


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
        file["link"] = np.array([file["row"].ref], h5py.ref_dtype)
    with pytest.raises(UserError) as told:
        draft_experiment(tmp_path / "a.h5")
    for words in ("compound): pair", "opaque): row", "text): name", "variable length): list",
                  "complex64): wave", "reference): link"):  # fmt: skip
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
    done = pffbench_here("init", "data", cwd=tmp_path)
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
