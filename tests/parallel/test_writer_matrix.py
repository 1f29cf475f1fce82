"""Numbers of ranks × numbers of writers × shapes × formats: all data arrive, and are written."""

import pytest

from launch import run_experiment

pytestmark = pytest.mark.parallel

#: No length is a multiple of a number of ranks; the last has fewer rows than there are ranks.
SHAPES = ([37, 53], [19, 3, 11], [5])
CHUNKS = {2: [5, 7], 3: [4, 3, 5], 1: [2]}


BACKENDS = {"hdf5", "netcdf4", "zarr", "tensorstore", "posix", "npy", "mpiio"}


def cases_of(shape, writers):
    """Return cases of an array in all formats: every rearranger, slabs and blocks."""
    array = {"workload": "hyperslab", "files": "one", "shape": shape,
             "writers": [{"count": n} for n in writers]}  # fmt: skip
    chunked = array | {"chunks": [CHUNKS[len(shape)]], "rearranger": "chunk_owner"}
    blocks = {"decomposition": "block"}
    flat = array | blocks | {"rearranger": "box", "chunks": "contiguous"}
    cases = [
        chunked | blocks | {"backend": ["hdf5", "netcdf4"], "transfer": "collective"},
        array | {"rearranger": "gather", "backend": ["hdf5", "netcdf4"]},
        chunked | {"backend": ["zarr", "tensorstore"]},
        flat | {"backend": ["posix", "npy", "mpiio"]},
        flat | {"backend": "mpiio", "transfer": "collective"},
    ]
    if len(shape) == 2:
        shards = {"backend": "zarr", "zarr": {"shards": [[10, 14]]}}
        cases.append(chunked | blocks | shards)
    return cases


def all_valid(directory, ranks, writers, cases, backends, timeout=120):
    """Run the cases and see that every one of them was written, read and verified."""
    done = run_experiment(directory, ranks, timeout=timeout, cases=cases)
    assert done.status == 0, done.said
    assert done.record["valid"] is True
    assert done.record["left_out"] == []
    counted = {
        (entry["parameters"]["backend"], entry["parameters"]["writers"]["count"])
        for entry in done.record["cases"].values()
    }
    assert counted == {(backend, n) for backend in backends for n in writers}
    for case, entry in done.record["cases"].items():
        told = entry["transfer_facts"]["writers"]
        assert told.startswith(f"{entry['parameters']['writers']['count']} of {ranks} ranks"), case
        (row,) = done.phases(case)["exchange"]
        assert int(row["bytes"]) == entry["cost"]["nbytes"], case


@pytest.mark.full
def test_sixteen_ranks_write_through_sixteen_writers(tmp_path):
    """With two formats, since each has to be imported sixteen times."""
    array = {"workload": "hyperslab", "files": "one", "shape": SHAPES[0],
             "writers": {"count": 16}, "decomposition": "block"}  # fmt: skip
    some = [
        array | {"backend": "hdf5", "rearranger": "chunk_owner", "chunks": [[5, 7]]},
        array | {"backend": "posix", "rearranger": ["gather", "box"], "chunks": "contiguous"},
    ]
    all_valid(tmp_path, 16, [16], some, {"hdf5", "posix"})


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("ranks", range(1, 17))
def test_any_number_of_ranks_writes_through_any_number_of_writers(tmp_path, ranks):
    writers = range(1, ranks + 1)
    cases = [case for shape in SHAPES for case in cases_of(shape, writers)]
    all_valid(tmp_path, ranks, writers, cases, BACKENDS, timeout=1700)
