"""`pffbench scaling` on runs that were really made, with times that are known."""

import json

import pytest

from launch import pffbench_cli, run_experiment
from pffbench_analysis.scaling import load_series

pytestmark = pytest.mark.parallel

#: Long against what an overloaded machine adds.
DELAY = {"null": {"delays": {"write": 0.25, "read": 0.25}}, "backend": "null"}


@pytest.mark.parametrize(
    ("kind", "shape", "efficiency"),
    [
        pytest.param("weak", {"shape_per_rank": [64, 64]}, (1.0, 1.0), marks=pytest.mark.slow),
        ("strong", {"shape": [64, 64]}, (0.5, 0.25)),
    ],
)
def test_a_call_of_constant_time_scales_as_it_must(tmp_path, kind, shape, efficiency):
    """All ranks sleep at once: with more data in the same time all is well, with the same not."""
    runs = []
    for ranks in (1, 2, 4):
        (tmp_path / f"{ranks}").mkdir()
        done = run_experiment(
            tmp_path / f"{ranks}", ranks, common={"workload": "hyperslab", **shape}, cases=[DELAY],
            repetitions=3,
        )  # fmt: skip
        assert done.status == 0, done.said
        runs.append(done.out)
    out = tmp_path / "scaling"
    said = pffbench_cli("scaling", *runs, "--out", out)
    assert said.status == 0, said.said
    assert "1→4 ranks" in said.stdout
    told = json.loads((out / "scaling.json").read_text())
    assert told["kinds"] == [kind]
    (curve,) = [c for c in load_series(runs).curves if c.phase == "write"]
    found = [curve.efficiency(point).value for point in curve.points[1:]]
    assert found == pytest.approx(efficiency, rel=0.15)
