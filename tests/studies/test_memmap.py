"""The backend `memmap` of study 3: files in both orders, and the worst axis of a map."""

from math import prod

import numpy as np
import pytest

from launch import PROGRAMS, run, run_experiment, write_experiment
from pffbench.backends.file_layout import ArrayInFile
from pffbench.data import make_source
from pffbench.errors import UserError
from pffbench.experiment.check import make_plan
from pffbench.experiment.load import from_data
from pffbench.geometry.box import Box
from pffbench_studies.backends.memmap import ReversedPlace

SHAPE = (21, 33, 26)
COMMON = {"workload": "slices", "backend": "memmap", "shape": list(SHAPE), "dtype": "uint8"}


def reads_of(done):
    """Return what was counted while reading, by case and counter."""
    counted = (count for count in done.counts if count["phase"] == "read")
    return {(count["case"], count["counter"]): float(count["total"]) for count in counted}


def test_the_published_worst_axis_touches_every_page_and_the_best_one_its_own():
    """Study 3: 3072 bytes of header, first index fastest, 1.97 million pages of 4 KiB."""
    place = ReversedPlace(ArrayInFile((621, 4991, 2600), 1, 3072))
    worst = place.touched(Box((0, 0, 0), (1, 4991, 2600)))
    best = place.touched(Box((0, 0, 0), (621, 4991, 1)))
    assert worst.count == 4991 * 2600
    assert worst.nbytes // 4096 == -(-(3072 + 621 * 4991 * 2600) // 4096)
    assert best.count == 1
    assert best.nbytes / (621 * 4991) == pytest.approx(1, abs=0.002)


@pytest.mark.parametrize(
    ("case", "reason"),
    [({"memmap": {"madvise": "never"}}, "madvise.*normal, random"),
     ({"memmap": {"order": "Z"}}, "order.*C, F"),
     ({"workload": "updates", "axis": None}, "no files that change")],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_with_the_reason(case, reason):
    entry = {k: v for k, v in (COMMON | {"axis": 0} | case).items() if v is not None}
    with pytest.raises(UserError, match=reason):
        make_plan(from_data({"name": "e", "cases": [entry]}, "e.yaml"), 2)


@pytest.mark.parallel
def test_every_axis_order_and_layout_is_read_and_verified(tmp_path):
    cases = [
        {"axis": [0, 1, 2], "memmap": {"order": ["C", "F"], "destination": ["C", "F"]}},
        {"axis": 2, "files": ["one", "per_rank"], "arrays": "per_rank", "cache": "dropped",
         "memmap": {"order": "F", "madvise": "random"}},
        {"box": [2, 3, 26], "count": 3, "position": "random", "memmap": {"order": "F"}},
        {"workload": "hyperslab", "memmap": {"order": ["C", "F"]}},
    ]  # fmt: skip
    done = run_experiment(tmp_path, 3, common=COMMON, cases=cases, counters=True)
    assert done.status == 0, done.said
    assert done.record["left_out"] == []
    mapped = done.case(axis=0, order="F", destination="C", files="one", arrays="shared")
    reads = reads_of(done)
    assert reads[mapped, "read_calls"] == 0
    assert reads[mapped, "touched_bytes"] >= prod(SHAPE) // 4096 * 4096


@pytest.mark.parallel
def test_the_worst_axis_of_a_map_moves_600_times_what_is_wanted(tmp_path):
    """A thin piece of the published volume, with its first axis."""
    done = run_experiment(
        tmp_path, 1, counters=True, common=COMMON | {"shape": [621, 64, 66], "axis": [2, 0]},
        cases=[{"files": "per_rank", "cache": "dropped", "settings": "defaults",
                "memmap": {"order": "F"}}],
    )  # fmt: skip
    assert done.status == 0, done.said
    reads = reads_of(done)
    wanted = {0: 64 * 66, 2: 621 * 64}

    def times(counter, axis):
        return reads[done.case(axis=axis), counter] / wanted[axis]

    assert times("touched_bytes", 0) >= 600
    assert times("touched_bytes", 2) < 1.3  # 10 pages, two of them in part
    device = times("device_read_bytes", 0)
    assert device == 0 or device >= 600  # 0: a file system without a device


@pytest.mark.parallel
def test_files_hold_the_volume_in_their_order(tmp_path):
    names = {"c": "C", "f": "F"}
    experiment = write_experiment(
        tmp_path, unsupported="refuse", question=" ".join(names),
        cases=[COMMON | {"axis": 0, "memmap": {"order": order}} for order in names.values()],
    )  # fmt: skip
    done = run([PROGRAMS / "write_store.py", "pffbench", tmp_path, experiment], ranks=3)
    assert done.status == 0, done.said
    values = np.empty(SHAPE, "uint8")
    make_source("uniform", "uint8", seed=1).fill(values, 0, (0, 0, 0), SHAPE)
    for name, order in names.items():
        stored = np.fromfile(tmp_path / name / "shared.raw", "uint8")
        np.testing.assert_array_equal(stored.reshape(SHAPE, order=order), values)
