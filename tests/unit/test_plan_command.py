"""`pffbench plan`: estimate of time, warnings of reads that cannot be cold; JSON of commands."""

from __future__ import annotations

import json

import pytest
import yaml
from msgspec.structs import replace

from launch import REPOSITORY, pffbench_cli, pffbench_here
from pffbench.cli import make_parser
from pffbench.commands.run import how_to_check
from pffbench.experiment.check import make_plan
from pffbench.experiment.estimate import cold_read_warnings, estimate_duration
from pffbench.experiment.load import load_experiment
from pffbench.run.options import RunOptions
from pffbench.storage.filesystem import filesystem
from pffbench.storage.page_cache import reason_against_cold_reads

pytestmark = pytest.mark.long

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


def test_the_time_budget_bounds_the_estimate_but_not_below_one_round(tmp_path):
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


def test_the_default_experiment_reads_cold_on_a_disk_only(tmp_path):
    def planned(*arguments):
        finished = pffbench_here("plan", "--json", "--ranks", "4", *arguments, cwd=tmp_path)
        (plan,) = json.loads(finished.stdout)["plans"]
        return [c["parameters"]["cache"] for c in plan["cases"]], plan["limits"]

    in_memory, limits = planned("--scratch", "/dev/shm")
    assert set(in_memory) == {"warm"}
    assert limits == [
        "reads from the device left out: /dev/shm is tmpfs, which keeps files in memory"
    ]
    if reason_against_cold_reads(str(tmp_path)) is None:
        on_disk, limits = planned("--scratch", str(tmp_path))
        assert sorted(on_disk) == ["dropped"] * 4 + in_memory
        assert limits == []
    assert set(planned("--set", "cache=dropped")[0]) == {"dropped"}
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("chunk", "raw"), [([1, 90, 180], 64800), ([2, 64, 64], 32768)])
def test_raw_calls_of_cold_reads_have_the_bytes_of_a_chunk(chunk, raw, tmp_path):
    case = {
        "workload": "hyperslab",
        "backend": "hdf5",
        "files": "per_rank",
        "shape": [24, 90, 180],
        "dtype": "float32",
        "chunks": chunk,
        "cache": "dropped",
    }
    (tmp_path / "x.yaml").write_text(json.dumps({"name": "x", "cases": [case]}))
    done = pffbench_here("plan", "x.yaml", "--json", cwd=tmp_path)
    assert done.status == 0, done.said
    (plan,) = json.loads(done.stdout)["plans"]
    assert [c["options"]["call"] for c in plan["cases"] if "call" in c["options"]] == [raw]


def test_files_in_memory_are_never_cold(tmp_path):
    there = replace(filesystem(str(tmp_path)), in_memory=True, type="tmpfs")
    (text,) = cold_read_warnings(a_plan(tmp_path, cache="dropped"), there, 1, 1)
    assert "tmpfs keeps all files in memory" in text


@pytest.mark.parametrize("columns", [80, 120])
def test_a_plan_fits_its_width(tmp_path, columns):
    told = pffbench_here("plan", "--ranks", "64", "--set", "cache=dropped", "--scratch", "/tmp",
                        cwd=tmp_path, env={"COLUMNS": str(columns)})  # fmt: skip
    assert told.status == 0, told.said
    assert max(map(len, told.stdout.splitlines())) <= columns
    assert "takes about" in told.stdout
    assert "memory/rank" in told.stdout


def test_the_json_of_a_plan_has_its_cases_and_costs(tmp_path):
    file = REPOSITORY / "configs" / "smallest.yaml"
    told = pffbench_here("plan", file, "--ranks", "4", "--json", cwd=tmp_path)
    data = json.loads(told.stdout)
    (plan,) = data["plans"]
    assert (data["format"], data["version"], plan["ranks"]) == ("pffbench plan", 1, 4)
    assert all(case["cost"]["nbytes"] > 0 for case in plan["cases"])
    assert plan["seconds"]["low"] <= plan["seconds"]["high"]
    assert plan["written_bytes"] == plan["rounds"] * sum(
        case["cost"]["nbytes"] for case in plan["cases"]
    )


@pytest.mark.parametrize("cache", ["warm", "separate"])
def test_the_files_of_all_repetitions_exist_at_a_time_if_another_job_reads_them(tmp_path, cache):
    file = REPOSITORY / "configs" / "smallest.yaml"
    told = pffbench_here("plan", file, "--set", f"cache={cache}", "--json", cwd=tmp_path)
    (plan,) = json.loads(told.stdout)["plans"]
    spaces = [case["cost"]["space"] for case in plan["cases"]]
    at_a_time = plan["rounds"] * sum(spaces) if cache == "separate" else max(spaces)
    assert plan["peak_bytes"] == at_a_time > 0


def test_the_json_of_the_doctor_has_each_finding(tmp_path):
    told = pffbench_cli("doctor", "--no-mpi", "--json", cwd=tmp_path)
    data = json.loads(told.stdout)
    statuses = [finding["status"] for finding in data["findings"]]
    assert (data["format"], data["version"]) == ("pffbench doctor", 2)
    assert statuses.count("problem") == data["problems"]
    assert statuses.count("warning") == data["warnings"]
    assert told.status == (1 if data["problems"] else 0)


def test_cases_of_one_name_are_listed_by_what_sets_them_apart(tmp_path):
    entry = {"workload": "hyperslab", "backend": "zarr", "shape": [8, 8],
             "cache": ["warm", "shifted"], "zarr": {"format": [2, 3]}}  # fmt: skip
    told = {"name": "x", "roofline": False, "cases": [entry]}
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(told))
    shown = pffbench_here("plan", "x.yaml", cwd=tmp_path, env={"COLUMNS": "160"}).stdout
    names = [line.split("  ")[0].strip() for line in shown.splitlines() if "zarr." in line]
    assert sorted(names) == [
        f"zarr.hyperslab.one-shared.independent.matched cache={cache} format={number}"
        for cache in ("shifted", "warm") for number in (2, 3)
    ]  # fmt: skip


def planned(tmp_path, cases, *arguments, env=None, **more):
    """Plan cases for 4096 ranks; return what the command says."""
    told = {"name": "x", "roofline": False, "cases": cases, **more}
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(told))
    return pffbench_here("plan", "x.yaml", "-n", "4096", *arguments, cwd=tmp_path, env=env)


def test_a_plan_knows_the_memory_of_writer_ranks(tmp_path):
    case = {"workload": "hyperslab", "backend": "hdf5", "rearranger": "box",
            "shape_per_rank": [256, 256, 256]}  # fmt: skip
    one, each = {**case, "writers": {"count": 1}}, {**case, "writers": {"per_node": 2}}
    shown = planned(tmp_path, [one, each], env={"COLUMNS": "300"})
    assert shown.status == 0, shown.said
    assert "memory/writer" in shown.stdout
    assert "64 MiB + 32 MiB × ranks/node" in shown.stdout
    assert "a writer rank holds 256.1 GiB, and a node has" in shown.stdout
    refused = planned(tmp_path, [one, each], "--node-memory", "200GiB")
    assert refused.status == 2, refused.said
    assert "a writer rank holds 256.1 GiB, and a node has 200 GiB" in refused.stderr
    assert planned(tmp_path, [one, each], "--node-memory", "300GiB").status == 0
    in_a_job = planned(tmp_path, [each], "--node-memory", "1GiB", env={"SLURM_JOB_NUM_NODES": "32"})
    assert "a writer rank holds 4.062 GiB" in in_a_job.stderr


def test_calls_that_grow_with_the_square_of_the_ranks_are_refused_above_a_limit(tmp_path):
    case = {"workload": "datasets", "backend": "hdf5", "files": "one", "arrays": "per_rank",
            "transfer": "collective",
            "datasets_per_rank": 10, "shape": [8]}  # fmt: skip
    refused = planned(tmp_path, [case])
    assert refused.status == 2, refused.said
    assert f"makes {10 * 4096**2} calls to write" in refused.stderr
    assert "(at most 100000000)" in refused.stderr
    allowed = planned(tmp_path, [{**case, "datasets_per_rank": 5}], "--json")
    assert allowed.status == 0, allowed.said
    (plan,) = json.loads(allowed.stdout)["plans"]
    assert plan["cases"][0]["cost"]["calls"] == 5 * 4096**2
    assert plan["seconds"]["low"] > 10 * 20480 * 2e-5  # of ten repetitions or more
    skipped = planned(tmp_path, [case, {**case, "transfer": "independent"}], unsupported="skip")
    assert skipped.status == 0, skipped.said


def test_an_estimate_of_time_knows_the_number_of_files(tmp_path):
    case = {
        "workload": "datasets",
        "backend": "zarr",
        "files": "one",
        "arrays": "per_rank",
        "shape": [8],
    }
    seconds = []
    for count in (1, 100):
        shown = planned(tmp_path, [{**case, "datasets_per_rank": count}], "--json", repetitions=1)
        (plan,) = json.loads(shown.stdout)["plans"]
        seconds.append(plan["seconds"]["low"])
    assert seconds[1] > seconds[0] + 99 * 4096 * 1e-4


def test_bad_input_on_many_ranks_is_told_with_the_way_to_check_it_first():
    def told(ranks, *words):
        given = make_parser().parse_args(["run", *words])
        return how_to_check(RunOptions.of_arguments(given), ranks)

    assert told(4, "quick") == ""
    assert told(256, "--resume", "results") == ""
    assert told(256) == "; check it in one process with: pffbench plan -n 256"
    words = ["a b.yaml", "--set", "cases=[1, 2]", "--scratch", "my files"]
    command = "pffbench plan -n 64 'a b.yaml' --set 'cases=[1, 2]' --scratch 'my files'"
    assert told(64, *words) == f"; check it in one process with: {command}"


@pytest.mark.parametrize("ranks", ["0", "-3", "٣", "10000001", "9" * 20, "9" * 5000])
def test_a_number_of_ranks_that_no_machine_has_is_refused_at_once(tmp_path, ranks):
    told = pffbench_here("plan", "quick", "-n", ranks, cwd=tmp_path)
    assert told.status == 2
    assert f"{ranks!r} is not a number of ranks (1 to 10000000)" in told.stderr


@pytest.mark.parametrize(
    ("budget", "out"),
    [
        (1, ["posix", "hdf5", "mpiio", "zarr"]),
        (80, ["hdf5", "mpiio", "zarr"]),
        (120, ["mpiio"]),
        (6000, []),
    ],
)
def test_a_plan_marks_what_the_time_budget_does_not_hold_on_a_slow_machine(tmp_path, budget, out):
    case = {"workload": "hyperslab", "backend": ["hdf5", "zarr"], "shape": [64, 1024, 1024],
            "files": ["per_rank", "one"], "arrays": "per_rank"}  # fmt: skip
    told = {"name": "x", "cases": [case], "time_budget": budget}
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(told))
    arguments = ["plan", tmp_path / "x.yaml", "--scratch", tmp_path]
    text = pffbench_here(*arguments, env={"COLUMNS": "200"}).stdout
    marked = [line.strip() for line in text.splitlines() if "no time if slow)  " in line]
    plan = json.loads(pffbench_here(*arguments, "--json").stdout)["plans"][0]
    assert [line.partition(".")[0] for line in marked] == out
    assert {case.partition(".")[0] for case in plan["left_out_if_slow"]} == set(out)
    assert f"holds {6 - len(out)} of 6 cases" in text or not out
