"""Many more ranks than cores: everything that is collective is so on all of them, and ends."""

import h5py
import pytest

from launch import REPOSITORY, run_experiment, start

pytestmark = [pytest.mark.parallel, pytest.mark.slow, pytest.mark.timeout(2400)]

NULL = {"workload": "hyperslab", "backend": "null", "shape_per_rank": [16], "durability": "sync"}


@pytest.mark.parametrize("ranks", [64, 256])
def test_all_ranks_are_recorded_and_the_slow_one_is_found(ranks, tmp_path):
    slow = ranks - 2
    told = {"delays": {"close": 2.0}, "delay_rank": slow}
    run = run_experiment(
        tmp_path, ranks, timeout=1200, cases=[NULL | {"layout": "own", "null": told}], repetitions=2
    )
    assert run.status == 0, run.said
    assert run.record["valid"] is True
    assert run.record["ranks"] == ranks
    (case,) = run.record["cases"]
    closing = run.phases(case)["close"]
    assert [int(row["slowest_rank"]) for row in closing] == [slow, slow]
    assert all(int(row["operations"]) == ranks for row in closing)
    with h5py.File(run.out / "ranks.h5") as file:
        own = file[case]["own"][:]
        assert own.shape[2] == len(file["host"]) == ranks
        assert (own > 0).all()


@pytest.mark.parametrize("ranks", [64, 256])
def test_the_smallest_preset_of_the_default_experiment_ends_valid(ranks, tmp_path):
    scratch, out = tmp_path / "scratch", tmp_path / "results"
    scratch.mkdir()
    config = REPOSITORY / "configs" / "smallest.yaml"
    run = start(
        ["-m", "pffbench", "run", config, "--out", out, "--scratch", scratch, "--progress", "none"],
        ranks=ranks, out=out,
    ).finish(2400)  # fmt: skip
    assert run.status == 0, run.said
    assert run.record["valid"] is True
    assert len({row["case"] for row in run.rows}) == len(run.record["cases"]) == 21
