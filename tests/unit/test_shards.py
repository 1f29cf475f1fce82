"""What shards cost, in words: only a difference that is shown is a cost."""

from __future__ import annotations

import csv
import re

import pytest
from rich.console import Console

from pffbench.summary.export import print_summary, write_summary
from pffbench.summary.shards import shard_costs, shard_lines
from pffbench.summary.summary import summarise
from timed_runs import Maker, a_case

SHARDED, CHUNKED = "a shards", "a chunks"


def cases():
    """Return a case with shards, the same without, and others that differ in more."""
    found = {}
    for name, options in {
        SHARDED: {"format": 3, "shards": [64, 64], "pipeline": "fused"},
        CHUNKED: {"format": 3, "shards": None, "pipeline": "fused"},
        "other pipeline": {"format": 3, "shards": None, "pipeline": "library"},
        "no partner": {"format": 3, "shards": [64, 64], "pipeline": "zarrs"},
    }.items():
        _, entry = a_case("zarr", dtype="float32", source="uniform")
        found[name] = {**entry, "options": options}
    return found


#: Columns of `samples.csv` that are times of a phase.
TIMES = ("own_max", "own_median", "own_min", "synced_max", "seconds")


def make_run(tmp_path, *, write=1.0, read=1.0, noise=0.02, drift=0.0, **how):
    """Return a run in which shards take so many times as long.

    `drift` is how much longer everything takes in the slowest block than in the fastest one.
    """

    def factor(name, phase):
        if name != SHARDED:
            return 1.0
        return read if phase in ("open", "read") else write

    directory = Maker(tmp_path)(cases=cases(), factor=factor, noise=noise, **how)
    path = directory / "samples.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        slower = 1 + drift * (int(row["repetition"]) % 5) / 4
        row |= {name: repr(slower * float(row[name])) for name in TIMES if row[name]}
        if row["phase"] == "close":
            files = "6" if "shards" in row["case"] else "258"
            row |= {"disk_bytes": "8388608", "disk_files": files}
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return directory


def sentence(directory):
    summary = summarise(directory)
    (cost,) = shard_costs(summary)
    assert (cost.sharded.sample.case, cost.chunked.sample.case) == (SHARDED, CHUNKED)
    (line,) = shard_lines([cost], cost.sharded.sample.group)
    return line


def test_a_cost_and_a_saving_are_stated_with_their_intervals(tmp_path):
    told = sentence(make_run(tmp_path, write=1.25, read=0.6, repetitions=14))
    found = re.fullmatch(
        r"shards of 64×64 in zarr matched pipeline=fused: writing takes (\d+) % more time "
        r"\((\d+) to (\d+) %\), reading takes (\d+) % less time \((\d+) to (\d+) %\); "
        r"they save 252 of 258 files",
        told,
    )
    assert found, told
    cost, low, high, saved, least, most = map(int, found.groups())
    assert low <= cost <= high
    assert low <= 25 <= high
    assert least <= saved <= most
    assert least <= 40 <= most


def test_no_difference_is_no_cost(tmp_path):
    told = sentence(make_run(tmp_path, repetitions=14))
    assert "writing takes equally long (" in told
    assert "reading takes equally long (" in told


def test_a_wide_interval_is_no_cost(tmp_path):
    told = sentence(make_run(tmp_path, repetitions=14, noise=0.5))
    assert "no difference was shown in writing (" in told
    assert "% more time" not in told
    assert "% less time" not in told


def test_few_repetitions_decide_nothing(tmp_path):
    told = sentence(make_run(tmp_path, write=1.5, repetitions=3))
    assert "no difference was shown in writing (too few repetitions" in told


@pytest.mark.parametrize("seed", range(6))
def test_a_difference_within_the_scatter_is_not_claimed(tmp_path, seed):
    told = sentence(make_run(tmp_path, write=1.02, read=0.98, noise=0.3, repetitions=10, seed=seed))
    assert "% more time" not in told
    assert "% less time" not in told


def test_in_a_run_of_environments_a_case_is_compared_with_the_other_one_of_its_block(tmp_path):
    """The machine becomes twice as slow from block to block, which meets both of them."""
    changes = {"write": 1.1, "drift": 1.0, "noise": 0.01, "repetitions": 14}
    told = sentence(make_run(tmp_path, **changes))
    assert "no difference was shown in writing" in told
    (other := tmp_path / "environments").mkdir()
    environments = {"environments": [{"name": "a", "python": "x"}], "repetitions": 14}
    paired = sentence(make_run(other, experiment=environments, **changes))
    (cost,) = re.findall(r"writing takes ([\d.]+) % more time", paired)
    assert 8 <= float(cost) <= 12


def test_terminal_and_summary_have_the_sentence(tmp_path):
    directory = make_run(tmp_path, write=1.25, repetitions=14)
    summary = summarise(directory)
    console = Console(width=250, record=True, file=(tmp_path / "told").open("w"))
    print_summary(summary, console)
    told = " ".join(console.export_text().split())
    assert "they save 252 of 258 files" in told
    write_summary(summary, directory)
    assert "they save 252 of 258 files" in (directory / "summary.md").read_text()


def test_the_page_has_the_sentence(tmp_path):
    from pffbench_analysis.page.build import render

    summary = summarise(make_run(tmp_path, write=1.25, repetitions=14))
    assert "they save 252 of 258 files" in render(summary, tmp_path, {})
