"""`pffbench scaling` on runs that were really made, with times that are known."""

import json
import re

import pytest

from launch import pffbench_here, run_experiment, sampled
from pffbench.results.judge import FEWEST
from pffbench_analysis.scaling import load_series

pytestmark = pytest.mark.parallel

#: Far above the resolution of the clock.
DELAY = {"null": {"delays": {"write": 0.1, "read": 0.1}}, "backend": "null"}


@pytest.mark.parametrize(
    ("kind", "shape"),
    sampled(
        [("weak", {"shape_per_rank": [64, 64]}), ("strong", {"shape": [64, 64]})],
        ("strong", {"shape": [64, 64]}),
    ),
)
def test_efficiency_is_the_rate_of_each_rank_against_that_of_the_first_size(tmp_path, kind, shape):
    """It follows from the recorded seconds, whatever else the machine did."""
    runs, seconds = [], []
    for ranks in (1, 2, 3):
        (tmp_path / f"{ranks}").mkdir()
        done = run_experiment(
            tmp_path / f"{ranks}", ranks, common={"workload": "hyperslab", **shape}, cases=[DELAY],
            repetitions=FEWEST,
        )  # fmt: skip
        assert done.status == 0, done.said
        runs.append(done.out)
        took = [one["totals"]["write_total"] for one in done.repetitions]
        seconds.append((min(took), max(took)))
    out = tmp_path / "scaling"
    said = pffbench_here("scaling", *runs, "--out", out)
    assert said.status == 0, said.said
    assert re.search(r"^ +1 rank +2 +3 +efficiency$", said.stdout, re.MULTILINE), said.stdout
    told = json.loads((out / "scaling.json").read_text())
    assert told["kinds"] == [kind]
    (curve,) = [c for c in load_series(runs).curves if c.heading.startswith("write")]
    (fastest, slowest), *larger = seconds
    for point, more, (least, most) in zip(curve.points[1:], (2, 3), larger, strict=True):
        work = 1 if kind == "weak" else 1 / more  # of each rank, against that of the only one
        efficiency = point.efficiency.value
        assert 0.999 * work * fastest / most <= efficiency <= 1.001 * work * slowest / least
