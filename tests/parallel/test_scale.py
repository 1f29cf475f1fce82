"""Many more ranks than cores: everything that is collective is so on all of them, and ends."""

import h5py
import pytest

from launch import PROGRAMS, REPOSITORY, run, run_experiment, start

pytestmark = pytest.mark.parallel
#: Ranks that are started for minutes.
many = [pytest.mark.slow, pytest.mark.timeout(2400)]

NULL = {"workload": "hyperslab", "backend": "null", "shape_per_rank": [16], "durability": "sync"}


@pytest.mark.parametrize("ranks", [pytest.param(n, marks=many) for n in (64, 256)])
def test_all_ranks_are_recorded_and_the_slow_one_is_found(ranks, tmp_path):
    slow = ranks - 2
    told = {"delays": {"close": 2.0}, "delay_rank": slow}
    done = run_experiment(
        tmp_path,
        ranks,
        timeout=1200,
        cases=[NULL | {"files": "one", "arrays": "per_rank", "null": told}],
        repetitions=2,
    )
    assert done.status == 0, done.said
    assert done.record["valid"] is True
    assert done.record["ranks"] == ranks
    (case,) = done.record["cases"]
    closing = done.phases(case)["close"]
    assert [int(row["slowest_rank"]) for row in closing] == [slow, slow]
    assert all(int(row["operations"]) == ranks for row in closing)
    with h5py.File(done.out / "ranks.h5") as file:
        own = file[case]["own"][:]
        assert own.shape[2] == len(file["host"]) == ranks
        assert (own > 0).all()


@pytest.mark.parametrize("ranks", [pytest.param(n, marks=many) for n in (64, 256)])
def test_the_smallest_preset_of_the_default_experiment_ends_valid(ranks, tmp_path):
    scratch, out = tmp_path / "scratch", tmp_path / "results"
    scratch.mkdir()
    config = REPOSITORY / "configs" / "smallest.yaml"
    done = start(
        ["-m", "pffbench", "run", config, "--out", out, "--scratch", scratch],
        ranks=ranks, out=out,
    ).finish(2400)  # fmt: skip
    assert done.status == 0, done.said
    assert done.record["valid"] is True
    assert len({row["case"] for row in done.rows}) == len(done.record["cases"]) == 18


def test_a_process_ends_quietly_although_zarrs_thread_is_slow_to_end():
    done = run([PROGRAMS / "zarr_exit.py"])
    assert (done.status, done.stdout, done.stderr) == (0, "", "")
