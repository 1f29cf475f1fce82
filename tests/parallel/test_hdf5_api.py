"""The ways of reaching an HDF5 dataset: all move the same data, also where ranks have none."""

import pytest

from launch import run_experiment, sampled

pytestmark = pytest.mark.parallel


@pytest.mark.parametrize("ranks", sampled([1, 3, 4], 3))
def test_slices_and_low_level_move_the_same_data_in_every_layout(tmp_path, ranks):
    """Four rows over three ranks in blocks of two leave the last one without any."""
    shared = {
        "files": "one",
        "arrays": ["shared", "per_rank"],
        "transfer": ["independent", "collective"],
    }
    run = run_experiment(
        tmp_path, ranks, repetitions=1, warmup=0, roofline=False,
        common={"workload": "hyperslab", "backend": "hdf5", "shape": [4, 5], "dtype": "int32",
                "hdf5": {"api": ["low_level", "high_level"]}},
        cases=[shared, {"files": "per_rank"}],
    )  # fmt: skip
    assert run.status == 0, run.said
    assert run.record["valid"] is True
    assert len(run.record["cases"]) == 10
