"""The commands and options that messages print as a remedy do what the message says of them."""

import json
import re
import shlex

import pytest
from msgspec.structs import replace
from test_printed_commands_of_runs import below, comes_to_its_end, printed, typed

from drawn_runs import edit
from faults import SLAB
from launch import run_experiment
from pffbench.record.repetitions import MachineState

pytestmark = pytest.mark.parallel


def again(done, *options):
    """Return the command of a run, with options that it told to add, into another directory."""
    words = [
        "python", "-m", "pffbench", "run", "experiment.yaml",
        "--scratch", "scratch", "--out", "again", *options,
    ]  # fmt: skip
    return typed(shlex.join(words), done.out.parent, done.out.parent / "again")


@pytest.mark.full  # as a run says, in test_printed_commands_of_runs.py
def test_files_that_wait_to_be_read_are_read_as_clean_says(tmp_path):
    place = tmp_path / "a place"
    place.mkdir()
    cases = [SLAB | {"backend": "npy", "cache": "separate"}]
    wrote = run_experiment(place, None, "--stage", "write", cases=cases)
    record = wrote.record | {"wrote_on": ["another-host"]}  # as if this were another one
    (wrote.out / "run.json").write_text(json.dumps(record))
    listed = typed("pffbench clean --scratch scratch", place)
    (command,) = printed(r"waits to be read \(.*\): (.*)$", listed.stdout)
    comes_to_its_end(command, wrote)


def test_a_stage_that_needs_another_cache_gets_it(tmp_path):
    cases = [SLAB | {"backend": "npy"}]
    refused = run_experiment(tmp_path, None, "--stage", "write", cases=cases)
    (option,) = printed(r"; add (--set \S+)$", refused.stderr)
    wrote = again(refused, "--stage", "write", *option.split())
    assert (wrote.status, wrote.record["status"]) == (0, "written"), wrote.said


def test_counts_are_compared_after_the_runs_that_the_refusals_ask_for(tmp_path):
    cases = [SLAB | {"backend": "npy"}]
    timed = run_experiment(tmp_path, None, cases=cases, repetitions=9)
    refused = typed("pffbench compare --counts results results", tmp_path)
    assert refused.status == 2
    (option,) = printed(r"has no counts: run it with (--set \S+)$", refused.stderr)
    refused = again(timed, *option.split())
    assert refused.status == 2
    (fewer,) = printed(r"\(.*; (--set \S+)\)", refused.stderr)
    counted = again(timed, *option.split(), *fewer.split())
    assert counted.status == 0, counted.said
    typed("cp -r again other", tmp_path)
    compared = typed("pffbench compare --counts again other", tmp_path)
    assert compared.status == 0, compared.said


@pytest.mark.full
def test_a_time_budget_that_is_said_to_hold_all_cases_does(tmp_path):
    slow = [SLAB | {"backend": "null", "null": {"delays": {"write": d}}} for d in (0.1, 0.2, 0.3)]
    short = run_experiment(tmp_path, None, cases=slow, repetitions="auto", time_budget="3 s")
    (option,) = set(printed(r"(--set time_budget=\d+)\s+holds\s+all", short.stdout))
    done = again(short, *option.split())
    assert done.status == 0, done.said
    assert "holds" not in done.stdout
    assert not done.record["left_out"]


@pytest.mark.full
def test_variables_that_the_doctor_asks_for_end_its_warnings(tmp_path):
    before = "unset OMPI_MCA_mpi_yield_when_idle; export HDF5_USE_FILE_LOCKING=false"
    asked = variables_asked_for(before, tmp_path)
    assert "export HDF5_USE_FILE_LOCKING=FALSE" in asked
    assert not variables_asked_for("; ".join([before, *asked]), tmp_path)


def variables_asked_for(before, place):
    """Return the commands that set variables, of the remedies of a doctor on 3 ranks."""
    doctor = "mpiexec -n 3 --oversubscribe python -m pffbench doctor --scratch ."
    _, _, told = typed(f"{before}; {doctor}", place).stdout.partition("\n")
    assert "What runs here" in told
    return set(re.findall(r"export \w+=\w+", " ".join(told.split())))


def test_a_run_of_one_rank_in_a_place_with_a_space_is_started_on_more(tmp_path):
    place = tmp_path / "a place"
    place.mkdir()
    alone = run_experiment(place, 1, cases=[SLAB | {"backend": "npy"}])
    (command,) = printed(r"to start more: (.*)$", alone.stdout + alone.stderr)
    done = typed(f"{command} --out more --scratch scratch", place, place / "more")
    assert done.status == 0, done.said
    assert done.record["ranks"] >= 2


def test_ways_that_lose_nothing_are_measured_after_a_run_of_those_that_lose_rows(tmp_path):
    common = {"workload": "hyperslab", "shape_per_rank": [4, 64], "chunks": [8, 64]}
    cases = [{"backend": "zarr"}, {"backend": "zarr", "chunks": [4, 64]}]
    lost = run_experiment(tmp_path, 2, cases=cases, common=common, unsafe=True)
    command = below("To measure the ways that lose nothing:", lost.stdout)
    done = typed(f"{command} --out safe", tmp_path, tmp_path / "safe")
    assert (done.status, done.record["valid"]) == (0, True), done.said
    assert len(done.record["cases"]) == 1
    assert {phase["phase"] for one in done.repetitions for phase in one["phases"]} >= {"write"}


@pytest.mark.full  # what it says: tests/unit/test_recommend.py
def test_more_data_are_measured_as_recommend_says(tmp_path):
    cases = [SLAB | {"backend": "npy", "files": "per_rank"}]
    first = run_experiment(tmp_path, 1, cases=cases, scale=2, repetitions=7)
    let_times_be_long_enough(first.out)
    told = typed("pffbench recommend results --bytes 100KB", tmp_path)
    assert "Measure at least a tenth of a step:" in " ".join(told.stdout.split()), told.said
    done = typed(f"{below('step:', told.stdout)} --out more", tmp_path, tmp_path / "more")
    assert done.status == 0, done.said
    let_times_be_long_enough(done.out)
    told = typed("pffbench recommend more --bytes 100KB", tmp_path)
    assert "1 step of 100 kB need" in " ".join(told.stdout.split()), told.said


def let_times_be_long_enough(out):
    """Let a run have a clock that resolves its times, and a machine of its own."""
    record = json.loads((out / "run.json").read_text())
    record["floor"] |= dict.fromkeys(("own", "synced"), 1e-9)
    (out / "run.json").write_text(json.dumps(record))
    edit(out, lambda one: replace(one, machine=MachineState()))
