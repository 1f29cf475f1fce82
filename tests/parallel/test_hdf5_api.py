"""The ways of reaching an HDF5 dataset: all move the same data, also where ranks have none."""

import pytest

from launch import run_experiment, sampled

pytestmark = pytest.mark.parallel


@pytest.mark.parametrize("ranks", sampled([1, 3, 4], 4))
def test_slices_and_low_level_move_the_same_data_in_every_layout(tmp_path, ranks):
    """Nine rows over four ranks in blocks of three leave the last one without any."""
    shared = {"layout": ["shared", "own"], "transfer": ["independent", "collective"]}
    run = run_experiment(
        tmp_path, ranks, repetitions=1, warmup=0, roofline=False,
        common={"workload": "hyperslab", "backend": "hdf5", "shape": [9, 5], "dtype": "int32",
                "hdf5": {"api": ["low_level", "high_level"]}},
        cases=[shared, {"layout": "file_per_process"}],
    )  # fmt: skip
    assert run.status == 0, run.said
    assert run.record["valid"] is True
    assert len(run.record["cases"]) == 10


@pytest.mark.parametrize("ranks", sampled([1, 3], 3))
def test_bytes_read_past_the_library_are_those_that_were_written(tmp_path, ranks):
    """Also those of columns, which lie in many pieces."""
    columns = {"layout": "shared", "read_decomposition": "pencil", "shape": [6, 8]}
    run = run_experiment(
        tmp_path, ranks, repetitions=1, warmup=0, roofline=False,
        common={"backend": "hdf5", "chunks": "contiguous", "hdf5": {"api": "pread"}},
        cases=[
            {"workload": "hyperslab", **columns},
            {"workload": "datasets", "datasets": 5, "shape": [7, 3], "layout": "file_per_process"},
            {"workload": "datasets", "datasets": 5, "shape": [7, 3], "layout": "own"},
        ],
    )  # fmt: skip
    assert run.status == 0, run.said
    assert run.record["valid"] is True


@pytest.mark.parametrize(
    ("case", "told"),
    [
        ({"chunks": "block"}, "name chunks: contiguous"),
        ({"chunks": "contiguous", "layout": "own", "transfer": "collective"}, "independent"),
    ],
)
def test_pread_is_refused_where_the_bytes_cannot_be_found(tmp_path, case, told):
    run = run_experiment(
        tmp_path, 1, roofline=False,
        cases=[{"workload": "datasets", "datasets": 2, "shape": [4], "backend": "hdf5",
                "layout": "file_per_process", "hdf5": {"api": "pread"}} | case],
    )  # fmt: skip
    assert run.status == 2
    assert "hdf5.api: pread" in run.stderr
    assert told in run.stderr
    assert not run.out.exists()
