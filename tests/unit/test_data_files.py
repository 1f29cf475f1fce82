"""The user's own file as a source, on files written by the libraries themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pffbench.data import make_source, verify
from pffbench.errors import UserError

VALUES = (np.arange(5 * 6 * 7).reshape(5, 6, 7) * 1.5 - 3).astype("f4")


def write_hdf5(path, dtype):
    import h5py

    with h5py.File(path, "w", userblock_size=1024) as file:
        file["group/wind"] = VALUES.astype(dtype)
    return "group/wind"


def write_chunked_hdf5(path, dtype):
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("wind", data=VALUES.astype(dtype), chunks=(2, 3, 5), compression="gzip")
    return "wind"


def write_netcdf(kind):
    def write(path, dtype):
        import netCDF4

        with netCDF4.Dataset(path, "w", format=kind) as file:
            for name, count in zip("zyx", VALUES.shape, strict=True):
                file.createDimension(name, count)
            order = dtype if kind == "NETCDF4" else dtype[1:]
            endian = {">f4": "big", "<f4": "little", "f4": "native"}[order]
            variable = file.createVariable("wind", order, ("z", "y", "x"), endian=endian)
            variable.set_auto_maskandscale(False)
            variable.scale_factor = 0.5
            variable.missing_value = VALUES[0, 0, 0]
            variable[:] = VALUES
        return "wind"

    return write


def write_zarr(version):
    def write(path, dtype):
        import zarr

        group = zarr.open_group(path, mode="w", zarr_format=version)
        array = group.create_array("deep/wind", shape=VALUES.shape, chunks=(2, 3, 5), dtype=dtype)
        array[...] = VALUES
        return "deep/wind"

    return write


def write_npy(path, dtype):
    with path.open("wb") as stream:
        np.save(stream, np.asfortranarray(VALUES.astype(dtype)))


FORMATS = {
    "hdf5": write_hdf5,
    "hdf5 in chunks": write_chunked_hdf5,
    "netCDF-4": write_netcdf("NETCDF4"),
    "netCDF classic": write_netcdf("NETCDF3_CLASSIC"),
    "netCDF 64-bit offset": write_netcdf("NETCDF3_64BIT_OFFSET"),
    "netCDF CDF-5": write_netcdf("NETCDF3_64BIT_DATA"),
    "Zarr 2": write_zarr(2),
    "Zarr 3": write_zarr(3),
    "npy": write_npy,
}


def filled(source, array, start, extent, shape):
    out = np.empty(extent, source.dtype)
    source.fill(out, array, start, shape)
    return out


@pytest.mark.parametrize("dtype", ["<f4", ">f4"])
@pytest.mark.parametrize("form", FORMATS)
def test_every_format_gives_the_stored_values(tmp_path, form, dtype):
    path = tmp_path / "data.bin"  # told by its signature
    name = FORMATS[form](path, dtype)
    source = make_source("file", file=str(path), variable=name)
    assert source.shape == VALUES.shape
    assert source.dtype == np.dtype("float32")
    assert source.dtype.isnative
    assert np.array_equal(filled(source, 0, (0, 0, 0), VALUES.shape, VALUES.shape), VALUES)
    part = filled(source, 0, (1, 2, 3), (2, 3, 4), VALUES.shape)
    assert np.array_equal(part, VALUES[1:3, 2:5, 3:7])
    # The only variable need not be named, and a leading slash does not matter.
    assert make_source("file", file=str(path)).shape == VALUES.shape
    if name:
        assert make_source("file", "float32", 9, str(path), "/" + name).shape == VALUES.shape
    source.close()


@pytest.fixture(scope="module")
def chunked(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "wind.h5"
    write_chunked_hdf5(path, "f4")
    return make_source("file", file=str(path))


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_indices_wrap_around_and_arrays_are_rolled(chunked, data):
    shape = tuple(data.draw(st.integers(1, 40)) for _ in range(3))
    start = tuple(data.draw(st.integers(0, n - 1)) for n in shape)
    extent = tuple(data.draw(st.integers(0, n - s)) for n, s in zip(shape, start, strict=True))
    array = data.draw(st.integers(0, 12))
    index = [np.arange(s, s + e) % n for s, e, n in zip(start, extent, VALUES.shape, strict=True)]
    index[0] = (np.arange(start[0], start[0] + extent[0]) + array) % 5
    expected = VALUES[np.ix_(*index)]
    got = filled(chunked, array, start, extent, shape)
    assert np.array_equal(got, expected)
    assert verify(chunked, got, array, start, shape) is None


def test_mixed_up_arrays_are_found(chunked):
    got = filled(chunked, 1, (0, 0, 0), VALUES.shape, VALUES.shape)
    assert verify(chunked, got, 0, (0, 0, 0), VALUES.shape) is not None


@pytest.mark.parametrize("limit", [8, 100, 10_000])
def test_reads_are_bounded(tmp_path, monkeypatch, limit):
    """Small windows give the same values as one large window."""
    monkeypatch.setattr("pffbench.data.files._WINDOW_BYTES", limit)
    write_chunked_hdf5(tmp_path / "a.h5", "f4")
    source = make_source("file", file=str(tmp_path / "a.h5"))
    for start in np.ndindex(5, 6, 7):
        extent = tuple(n - s for n, s in zip(VALUES.shape, start, strict=True))
        box = tuple(slice(s, None) for s in start)
        assert np.array_equal(filled(source, 0, start, extent, VALUES.shape), VALUES[box])
        one = filled(source, 0, start, (1, 1, 1), VALUES.shape)
        assert one.item() == VALUES[start]


def test_special_values_keep_their_bytes(tmp_path):
    values = np.array([np.nan, -0.0, np.inf, 9.969209968386869e36])
    np.save(tmp_path / "a.npy", values)
    source = make_source("file", file=str(tmp_path / "a.npy"))
    assert filled(source, 0, (0,), (4,), (4,)).tobytes() == values.tobytes()


def refusal_of(file, variable=None, dtype=None):
    with pytest.raises(UserError) as caught:
        make_source("file", dtype, 0, str(file), variable)
    message = str(caught.value)
    assert str(file) in message
    assert "\n" not in message
    return message


def test_missing_file_and_unknown_formats(tmp_path):
    assert "no such file" in refusal_of(tmp_path / "none.h5")
    (tmp_path / "text.h5").write_text("hello")
    assert "neither HDF5, netCDF" in refusal_of(tmp_path / "text.h5")
    (tmp_path / "empty.nc").touch()
    assert "neither HDF5, netCDF" in refusal_of(tmp_path / "empty.nc")
    assert "no Zarr group or array" in refusal_of(tmp_path)


@pytest.mark.parametrize("head", [b"\x89HDF\r\n\x1a\n", b"CDF\x01", b"CDF\x05", b"\x93NUMPY"])
def test_broken_files(tmp_path, head):
    (tmp_path / "broken").write_bytes(head + b"\xff" * 100)
    assert "cannot be read" in refusal_of(tmp_path / "broken")


def test_broken_zarr(tmp_path):
    (tmp_path / "zarr.json").write_text("{")
    assert "cannot be read" in refusal_of(tmp_path)


def test_damaged_chunk(tmp_path):
    name = write_zarr(3)(tmp_path / "a.zarr", "f4")
    source = make_source("file", file=str(tmp_path / "a.zarr"), variable=name)
    for chunk in (tmp_path / "a.zarr" / name / "c").rglob("*"):
        if chunk.is_file():
            chunk.write_bytes(b"not zstd")
    with pytest.raises(UserError, match="variable 'deep/wind': cannot be read"):
        filled(source, 0, (0, 0, 0), (1, 1, 1), VALUES.shape)


def many_hdf5(path):
    import h5py

    with h5py.File(path, "w") as file:
        file["wind"], file["group/rain"] = VALUES, VALUES


def many_netcdf(path):
    import netCDF4

    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("x", 3)
        for name in ("wind", "group_rain"):
            file.createVariable(name, "f4", ("x",))[:] = 1


def many_zarr(path):
    import zarr

    group = zarr.open_group(path, mode="w")
    for name in ("wind", "group/rain"):
        group.create_array(name, shape=(3,), dtype="f4")


@pytest.mark.parametrize("write", [many_hdf5, many_netcdf, many_zarr])
def test_missing_and_ambiguous_variables(tmp_path, write):
    write(tmp_path / "many")
    message = refusal_of(tmp_path / "many", "wimd")
    assert "no variable 'wimd' (" in message
    assert message.endswith("; did you mean 'wind'?")
    assert "rain" in message
    message = refusal_of(tmp_path / "many")
    assert "'variable'" in message
    assert "wind" in message


def test_group_is_no_variable(tmp_path):
    many_hdf5(tmp_path / "a.h5")
    assert "no variable 'group'" in refusal_of(tmp_path / "a.h5", "group")


def test_netcdf_dimension_without_values_is_no_variable(tmp_path):
    write_netcdf("NETCDF4")(tmp_path / "a.nc", "<f4")
    assert "(there are: wind)" in refusal_of(tmp_path / "a.nc", "zzz")


def test_single_arrays_have_no_name(tmp_path):
    import zarr

    np.save(tmp_path / "a.npy", VALUES)
    assert "must not be given" in refusal_of(tmp_path / "a.npy", "wind")
    zarr.create_array(tmp_path / "a.zarr", shape=(3,), dtype="f4")
    assert "must not be given" in refusal_of(tmp_path / "a.zarr", "wind")
    assert make_source("file", file=str(tmp_path / "a.zarr")).shape == (3,)


@pytest.mark.parametrize(
    "value",
    [np.array([{}]), np.zeros(3, "i4,f4"), np.array(["a"]), np.zeros(2, "c8"), np.zeros(2, bool),
     np.zeros(2, "f2"), np.zeros((3, 0)), np.zeros(())],
    ids=["object", "compound", "text", "complex", "bool", "half", "empty", "scalar"],
)  # fmt: skip
def test_refused_types_and_shapes_in_npy(tmp_path, value):
    np.save(tmp_path / "a.npy", value, allow_pickle=True)
    refusal_of(tmp_path / "a.npy")


def test_refused_types_in_hdf5(tmp_path):
    import h5py

    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["text"] = "words"
        file["texts"] = ["a", "b"]
        file["pair"] = np.zeros(3, "i4,f4")
        file["null"] = h5py.Empty("f4")
    for name in ("text", "texts", "pair"):
        assert "has the type" in refusal_of(tmp_path / "a.h5", name)
    assert "holds no array" in refusal_of(tmp_path / "a.h5", "null")


def test_enumerations_are_plain_integers(tmp_path):
    import h5py

    with h5py.File(tmp_path / "a.h5", "w") as file:
        kinds = h5py.enum_dtype({"sea": 0, "land": 1}, basetype=">i2")
        file.create_dataset("mask", data=np.array([0, 1, 1], kinds), dtype=kinds)
    source = make_source("file", file=str(tmp_path / "a.h5"))
    assert source.dtype == np.dtype("int16")
    assert source.dtype.metadata is None
    assert filled(source, 0, (0,), (3,), (3,)).tolist() == [0, 1, 1]


def test_expected_type_must_be_the_files(tmp_path):
    np.save(tmp_path / "a.npy", VALUES)
    assert "has the type float32, not the dtype int16" in refusal_of(
        tmp_path / "a.npy", None, "int16"
    )


def test_number_of_axes_must_be_the_files(chunked):
    with pytest.raises(UserError, match=r"'wind' has the shape \(5, 6, 7\).*allowed: 3 axes"):
        chunked.fill(np.empty((2, 2), "f4"), 0, (0, 0), (2, 2))
