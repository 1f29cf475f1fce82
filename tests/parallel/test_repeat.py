"""`run DIRECTORY`: the experiment of a run is repeated, from its results directory."""

from __future__ import annotations

import json
import os

import pytest

from launch import pffbench_cli, pffbench_here, run_experiment

pytestmark = pytest.mark.parallel

CASE = {"workload": "hyperslab", "backend": ["npy", "hdf5"], "files": "per_rank",
        "shape_per_rank": [[16, 16]]}  # fmt: skip


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    return run_experiment(tmp_path_factory.mktemp("first"), 2, cases=[CASE], repetitions=3)


def repeated(run, place, *arguments, ranks=None):
    return pffbench_cli(
        "run", run.out, "--out", place / "again", "--scratch", place, *arguments, ranks=ranks,
        cwd=place, out=place / "again",
    )  # fmt: skip


def test_a_run_is_repeated_and_compared(first, tmp_path):
    again = repeated(first, tmp_path, ranks=2)
    assert again.status == 0, again.said
    assert again.record["experiment"] == first.record["experiment"]
    assert again.record["cases"].keys() == first.record["cases"].keys()
    assert not [text for text in again.record["remarks"] if "this run of" in text]
    compared = pffbench_here("compare", first.out, again.out, cwd=tmp_path)
    assert compared.status == 0, compared.said
    assert str(again.out) in compared.stdout


def test_another_number_of_ranks_is_a_remark(first, tmp_path):
    again = repeated(first, tmp_path, "--set", "repetitions=1")
    assert again.status == 0, again.said
    assert f"{first.out} is of 2 ranks, and this run of 1" in again.record["remarks"]
    assert again.record["experiment"]["repetitions"] == 1
    planned = pffbench_here("plan", first.out)
    assert planned.status == 0
    assert f"warning: {first.out} is of 2 ranks, and this run of 1" in planned.stdout


@pytest.fixture
def received(first, tmp_path):
    """Return what writes a record into a results directory, and the directory."""

    def write(text):
        out = tmp_path / "received"
        out.mkdir()
        (out / "run.json").write_text(text)
        return out

    return write


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not the record of a run"),
        (f'{{"ranks": 1, "experiment": {{"cases": {DEEP}}}}}', "not the record of a run"),
        ('{"ranks": 1, "experiment": {"name": "x", "nosuch": 1}}', "nosuch: unknown key"),
        ('{"ranks": 1, "experiment": {"cases": [%s0]}}' % ("0," * 200_000), "more than 100000"),
    ],
)  # fmt: skip
def test_what_is_no_record_is_refused(received, tmp_path, text, said):
    run = pffbench_cli("run", received(text), "--out", tmp_path / "out", cwd=tmp_path)
    assert run.status == 2, run.said
    assert said in run.stderr
    assert run.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_record_that_is_no_file_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "run.json")
    run = pffbench_cli("run", tmp_path, "--out", tmp_path / "out", cwd=tmp_path, timeout=60)
    assert run.status == 2, run.said
    assert "a FIFO" in run.stderr


def test_commands_in_the_command_line_of_a_record_are_not_started(first, received, tmp_path):
    record = json.loads((first.out / "run.json").read_text())
    record["command"] += ["--drop-hook", f"touch {tmp_path}/PWN", "--set", "cache=dropped"]
    run = pffbench_cli(
        "run", received(json.dumps(record)), "--set", "repetitions=1", "--scratch", tmp_path,
        "--out", tmp_path / "out", cwd=tmp_path,
    )  # fmt: skip
    assert run.status == 0, run.said
    assert not (tmp_path / "PWN").exists()
