"""`pffbench plan`: estimate of time, warnings of reads that cannot be cold; JSON of commands."""

from __future__ import annotations

import json

import pytest
import yaml
from msgspec.structs import replace

from launch import REPOSITORY, pffbench_cli
from pffbench.experiment.check import make_plan
from pffbench.experiment.estimate import cold_read_warnings, estimate_duration
from pffbench.experiment.load import load_experiment
from pffbench.storage.filesystem import filesystem

GIB = 2**30


def a_plan(tmp_path, ranks=4, **experiment):
    case = {"workload": "hyperslab", "backend": "hdf5", "shape_per_rank": [256, 1024, 1024]}
    case |= {key: experiment.pop(key) for key in ("cache", "shape_per_rank") if key in experiment}
    told = {"name": "x", "roofline": False, "cases": [case], "repetitions": 9} | experiment
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(told))
    return make_plan(load_experiment(str(tmp_path / "x.yaml")), ranks)


def test_the_estimate_is_that_of_the_assumed_rates(tmp_path):
    low, high = estimate_duration(a_plan(tmp_path))
    assert 10 * 4 < low < 10 * 4 + 5  # 4 GiB, ten times, at 1 GiB/s
    assert 10 * 40.96 < high < 10 * 40.96 + 20  # at 100 MiB/s


def test_a_run_that_decides_itself_takes_ten_repetitions_at_least(tmp_path):
    auto = estimate_duration(a_plan(tmp_path, repetitions="auto", max_repetitions=40))
    assert 11 * 4 < auto.low < 11 * 4 + 5
    assert auto.high > 41 * 40


def test_the_time_budget_bounds_the_estimate_but_not_below_one_block(tmp_path):
    assert estimate_duration(a_plan(tmp_path, time_budget=20)).low == pytest.approx(22)
    low, high = estimate_duration(a_plan(tmp_path, time_budget=1))
    assert 2 * 4 < low < 2 * 4 + 5
    assert 2 * 40 < high < 2 * 40 + 20


@pytest.mark.parametrize(
    ("cache", "memory", "nodes", "warned"),
    [("dropped", 3 * GIB, 1, True), ("dropped", 2 * GIB - 1, 1, False),
     ("dropped", GIB, 4, True), ("warm", 300 * GIB, 1, False)],
)  # fmt: skip
def test_data_under_twice_the_memory_are_warned_of(tmp_path, cache, memory, nodes, warned):
    there = replace(filesystem(str(tmp_path)), in_memory=False)
    found = list(cold_read_warnings(a_plan(tmp_path, cache=cache), there, memory, nodes))
    assert [("twice the memory" in text) for text in found] == [True] * warned


def test_files_in_memory_are_never_cold(tmp_path):
    there = replace(filesystem(str(tmp_path)), in_memory=True, type="tmpfs")
    (text,) = cold_read_warnings(a_plan(tmp_path, cache="dropped"), there, 1, 1)
    assert "tmpfs keeps all files in memory" in text


@pytest.mark.parametrize("columns", [80, 120])
def test_a_plan_fits_its_width(tmp_path, columns):
    told = pffbench_cli("plan", "--ranks", "64", "--set", "cache=dropped", "--scratch", "/tmp",
                        cwd=tmp_path, env={"COLUMNS": str(columns)})  # fmt: skip
    assert told.status == 0, told.said
    assert max(map(len, told.stdout.splitlines())) <= columns
    assert "takes about" in told.stdout
    assert "memory/rank" in told.stdout


def test_the_json_of_a_plan_has_its_cases_and_costs(tmp_path):
    file = REPOSITORY / "configs" / "smallest.yaml"
    told = pffbench_cli("plan", file, "--ranks", "4", "--json", cwd=tmp_path)
    data = json.loads(told.stdout)
    (plan,) = data["plans"]
    assert (data["format"], data["version"], plan["ranks"]) == ("pffbench plan", 1, 4)
    assert all(case["cost"]["nbytes"] > 0 for case in plan["cases"])
    assert plan["seconds"]["low"] <= plan["seconds"]["high"]
    assert plan["written_bytes"] == plan["blocks"] * sum(
        case["cost"]["nbytes"] for case in plan["cases"]
    )


def test_the_json_of_the_doctor_has_each_finding(tmp_path):
    told = pffbench_cli("doctor", "--no-mpi", "--json", cwd=tmp_path)
    data = json.loads(told.stdout)
    statuses = [finding["status"] for finding in data["findings"]]
    assert (data["format"], data["version"]) == ("pffbench doctor", 1)
    assert statuses.count("problem") == data["problems"]
    assert statuses.count("warning") == data["warnings"]
    assert told.status == (1 if data["problems"] else 0)
