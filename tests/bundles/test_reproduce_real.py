"""A real run, its bundle, and the run again: three commands, with the verdict on each sentence."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from launch import pffbench_cli, run
from planted import planted

pytestmark = pytest.mark.parallel

#: Zarr writes a file for each of many chunks, so that its place is never in doubt.
EXPERIMENT = {
    "name": "many-chunks",
    "repetitions": 10,
    "common": {"workload": "hyperslab", "shape_per_rank": [64, 64, 64], "chunks": [1, 64, 64]},
    "cases": [{"backend": ["hdf5", "zarr"], "layout": "file_per_process"}],
}


#: Two alignments that take equally long.
EQUAL = {
    "name": "equal",
    "margin": 0.3,
    "repetitions": 30,
    "roofline": False,
    "common": {"workload": "hyperslab", "shape_per_rank": [24, 512, 512], "chunks": [4, 512, 512]},
    "cases": [{"backend": "hdf5", "hdf5": {"alignment": ["4 KiB", "8 KiB"]},
               "layout": "file_per_process"}],
}  # fmt: skip


def made(place, experiment):
    """Run an experiment and bundle it; the third of the three commands checks the bundle."""
    (place / "x.yaml").write_text(yaml.safe_dump(experiment))
    done = run(["-m", "pffbench", "run", "x.yaml", "--out", "out", "--scratch", "."], ranks=2,
               cwd=place)  # fmt: skip
    assert done.status == 0, done.said
    for command in (["bundle", "out", "-o", "run.zip"], ["check", "run.zip"]):
        done = pffbench_cli(*command, cwd=place)
        assert done.status == 0, done.said
    assert "16 of 16 rules hold" in done.stdout


def reproduced(place, name, **environment):
    command = ["-m", "pffbench", "reproduce", "run.zip", "--out", name, "--scratch", "."]
    done = run(command, ranks=2, cwd=place, env=environment)
    assert (place / name / "run.json").is_file(), done.said
    (last,) = re.findall(r"^run\.zip: (.*)$", done.stdout, re.MULTILINE)
    return done, last


def test_each_sentence_of_a_run_has_a_verdict_of_the_run_again(tmp_path):
    made(tmp_path, EXPERIMENT)
    done, last = reproduced(tmp_path, "again")
    assert done.status in (0, 1, 4), done.said
    found = re.findall(r"^(CONFIRMED|REFUTED|CANNOT BE DECIDED HERE): ", done.stdout, re.MULTILINE)
    assert len(found) == sum(map(int, re.findall(r"\d+", last))) or last == "claims nothing"
    told = pffbench_cli("reproduce", "run.zip", "--with", "again", cwd=tmp_path)
    assert told.status == done.status
    assert told.stdout.endswith(f"run.zip: {last}\n")


@pytest.mark.slow  # and for a machine that does nothing else: these times are real
def test_a_real_slowdown_refutes_the_sentences_that_it_contradicts(tmp_path):
    made(tmp_path, EQUAL)
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    (first,) = [c["case"] for c in results["comparisons"] if c["total"] == "read_total"]
    slow = planted(first, factor=1.5, factor_of="read")
    done, _ = reproduced(tmp_path, "slow", **slow)
    assert done.status == 1, done.said
    assert re.search(r"^REFUTED: .*reading", done.stdout, re.MULTILINE), done.said
    assert not re.search(r"^REFUTED: .*writing", done.stdout, re.MULTILINE), done.said


#: Data in batches, data through writers, startup, changes and small datasets.
VARIED = {
    "name": "varied",
    "repetitions": 2,
    "memory": "256 KiB",
    "counters": True,
    "cases": [
        {"workload": "hyperslab", "backend": ["hdf5", "zarr"], "shape_per_rank": [8, 128, 128],
         "layout": ["shared", "own"], "durability": "sync"},
        {"workload": "hyperslab", "backend": "hdf5", "shape_per_rank": [8, 128, 128],
         "rearrange": "box", "chunks": "contiguous"},
        {"workload": "startup", "backend": "hdf5", "datasets": 4, "shape": [16, 16],
         "strategy": ["every_rank", "root_bcast"]},
        {"workload": "updates", "backend": "hdf5", "shape": [64, 64], "change": "first_half"},
        {"workload": "datasets", "backend": ["hdf5", "npy"], "datasets": 4, "shape": [16],
         "layout": "file_per_process"},
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    "starts", [(), pytest.param(("--starts", 2), marks=pytest.mark.full)], ids=str
)
def test_results_of_every_kind_hold_the_rules(tmp_path, starts):
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(VARIED))
    command = ["-m", "pffbench", "run", "x.yaml", "--out", "out", "--scratch", ".", *starts]
    done = run(command, ranks=None if starts else 2, cwd=tmp_path)
    assert done.status == 0, done.said
    told = pffbench_cli("check", "out", cwd=tmp_path)
    assert (told.status, told.stdout.startswith("out: 16 of 16 rules hold")) == (0, True), told.said
