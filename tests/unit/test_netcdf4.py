"""What of pffbench runs while netCDF-4 variables are defined and opened: next to nothing."""

from __future__ import annotations

import netCDF4
import numpy as np
import pytest
from msgspec.structs import replace

from calls import calls_of_ours
from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import define_arrays, open_arrays
from pffbench.backends.inspection import MATCHED_CHUNK_CACHE
from pffbench.backends.netcdf4 import NetCdf4Options
from pffbench.backends.netcdf4_store import NetCdf4Store


def specs(count):
    return [
        ArraySpec(
            f"dataset_{n}", (8,), "float32", n, (0,), (8,), 0, 0, "library", "library", 0, "library"
        )
        for n in range(count)
    ]


def store_of(dataset, path, settings="defaults", **options):
    return NetCdf4Store(dataset, str(path), None, NetCdf4Options(**options), settings)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "variables.nc"
    with netCDF4.Dataset(path, "w") as dataset:
        dataset.createDimension("x", 8)
        for spec in specs(5):
            dataset.createVariable(spec.name, "f4", ("x",))[:] = spec.number
    return path


@pytest.mark.parametrize("count", [1, 5])
def test_opening_is_looking_variables_up_and_nothing_else(path, count):
    with netCDF4.Dataset(path) as dataset:
        store, wanted = store_of(dataset, path), specs(5)[:count]
        open_wanted = store.opener(wanted)
        with calls_of_ours() as called:
            returned = open_wanted()
        assert called == ["<lambda>"]
        arrays = store.wrap(wanted, returned)
        assert list(arrays) == [spec.name for spec in wanted]
        for spec in wanted:
            got = arrays[spec.name].reader(spec.whole, np.empty(8, "f4"), False)()
            assert set(got) == {spec.number}


def test_no_variables_are_opened_where_none_is_wanted(path):
    with netCDF4.Dataset(path) as dataset:
        store = store_of(dataset, path)
        assert dict(open_arrays(store, [])) == {}


@pytest.mark.parametrize("count", [1, 5])
def test_a_chunk_cache_is_set_while_a_variable_is_opened(tmp_path, count):
    path = tmp_path / "chunked.nc"
    with netCDF4.Dataset(path, "w") as dataset:
        dataset.createDimension("x", 8)
        for spec in specs(5):
            dataset.createVariable(spec.name, "f4", ("x",), chunksizes=(4,))
    with netCDF4.Dataset(path) as dataset:
        store, wanted = store_of(dataset, path, chunk_cache=12345), specs(5)[:count]
        arrays = open_arrays(store, wanted)
        sizes = {arrays[spec.name].layout(False).cache.nbytes for spec in wanted}
        assert sizes == {12345}


def test_what_variables_are_told_is_worked_out_before_they_are_defined(tmp_path):
    path = tmp_path / "new.nc"
    with netCDF4.Dataset(path, "w") as dataset:
        options = {"dimensions": "unlimited_shared", "enddef": "implicit"}
        store, wanted = store_of(dataset, path, **options), specs(3)
        define = store.definer(wanted)
        with calls_of_ours() as called:
            returned = define()
        arrays = store.wrap(wanted, returned)
        assert called.count("create") == 3
        assert set(called) - {"<listcomp>"} == {"define", "create"}  # no call from Python 3.12 on
        for spec in wanted:
            arrays[spec.name].writer(spec.whole, np.full(8, spec.number, "f4"), False)()
    with netCDF4.Dataset(path) as dataset:
        assert [v.shape for v in dataset.variables.values()] == [(8,)] * 3
        assert [set(np.asarray(v[:])) for v in dataset.variables.values()] == [{0.0}, {1.0}, {2.0}]


def test_matched_files_of_one_process_keep_large_chunks_out_of_the_cache(tmp_path):
    """NetCDF-C enlarges the cache of a variable with such chunks, here on our behalf."""
    path, length = tmp_path / "large.nc", 2**19
    one = replace(specs(1)[0], shape=(2 * length,), logical_shape=(2 * length,), chunks=(length,))
    own, slots, preemption = netCDF4.get_chunk_cache()
    netCDF4.set_chunk_cache(2**26, slots, preemption)
    try:
        with netCDF4.Dataset(path, "w") as dataset:
            made = define_arrays(store_of(dataset, path, "matched"), [one])
            assert made[one.name].layout(False).cache == MATCHED_CHUNK_CACHE
        for settings, wanted in (("matched", MATCHED_CHUNK_CACHE.nbytes), ("defaults", 2**26)):
            with netCDF4.Dataset(path) as dataset:
                store = store_of(dataset, path, settings)
                opened = open_arrays(store, [one])
                assert opened[one.name].layout(False).cache.nbytes == wanted
    finally:
        netCDF4.set_chunk_cache(own, slots, preemption)
