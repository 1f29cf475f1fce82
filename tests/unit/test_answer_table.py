"""The answer of a run: a small table of what is decided, or NO ANSWER with what to do next."""

from __future__ import annotations

import io
import json
import re
from html import unescape

import numpy as np
import pytest
from msgspec.structs import replace
from rich.console import Console

from drawn_runs import AUTO, a_case, timed_run
from pages import page_of
from pffbench.record.samples import SamplesLog, read_samples
from pffbench.summary.answer import answer_of
from pffbench.summary.export import print_summary, write_summary
from pffbench.summary.results import as_data
from pffbench.summary.summary import summarise

N = 20


def a_contest(directory, factors, repetitions=N, layouts=("shared",), seconds=0.1, spread=0.02):
    """Write a run in which formats take so many times as long to write, and to read."""
    generator = np.random.default_rng(1)
    cases = [a_case(b, layout=layout, durability="sync") for layout in layouts for b in factors]

    spreads = spread if isinstance(spread, tuple) else (spread, spread)

    def drawn(factor, spread):
        return list(seconds * factor * np.exp(generator.normal(0, spread, repetitions)))

    times = {
        name: tuple(map(drawn, factors[entry["parameters"]["backend"]], spreads))
        for name, entry in cases
    }
    timed_run(directory, times, cases, experiment=AUTO)
    return directory


def rows_of(directory):
    return {row[0]: row[1:] for row in answer_of(summarise(directory)).rows}


def print_run(directory, width=80, **more):
    file = io.StringIO()
    print_summary(summarise(directory), Console(file=file, width=width), **more)
    return file.getvalue()


def texts_of(directory):
    """Return what the terminal, `summary.md`, `results.json` and the page say, on one line each."""
    summary = summarise(directory)
    write_summary(summary, directory)
    page = unescape(re.sub("<[^>]+>", " ", page_of(directory).read_text()))
    texts = (print_run(directory), (directory / "summary.md").read_text(), page)
    return [" ".join(re.sub(r"[\\*]", "", text).split()) for text in texts] + [as_data(summary)]


def test_the_fastest_of_everything_is_named_with_the_intervals_of_the_others(tmp_path):
    run = a_contest(tmp_path / "run", {"hdf5": (1, 1), "zarr": (3, 1.5)})
    answer = answer_of(summarise(run))
    assert (answer.word, answer.columns) == ("ANSWER", ("write to disk", "read, page cache"))
    assert answer.sentence == "HDF5 is fastest in everything that was compared."
    assert rows_of(run)["HDF5"] == ("1.00", "1.00")
    write, read = rows_of(run)["Zarr"]
    found = {a.total: a.others[0].ratio for a in summarise(run).answers}
    for cell, total in ((write, "write_total"), (read, "read_total")):
        ratio = found[total]
        assert cell == f"{ratio.value:.2f} slower ({ratio.low:.2f}–{ratio.high:.2f})"


def test_equal_open_and_slower_have_words_of_their_own(tmp_path):
    factors = {"hdf5": (1, 1), "netcdf4": (1.02, 1.05), "zarr": (2, 9)}
    run = a_contest(tmp_path / "run", factors, spread=(0.02, 0.3))
    cells = rows_of(run)
    assert cells["netCDF-4"][0] == "same"
    assert cells["netCDF-4"][1].startswith("same? ")
    assert "slower" in cells["Zarr"][0]
    answer = answer_of(summarise(run))
    assert answer.sentence == "HDF5 and netCDF-4 are never shown slower."
    assert any(text.startswith("Not decided: 1 of 4 comparisons; about ") for text in answer.notes)
    assert "is fastest" not in print_run(run)


def test_different_winners_are_named_with_what_they_win(tmp_path):
    run = a_contest(tmp_path / "run", {"hdf5": (1, 2), "zarr": (2, 1)})
    assert answer_of(summarise(run)).sentence == (
        "No format is fastest in everything; fastest are HDF5 to write to disk, Zarr to read from "
        "the page cache."
    )


def test_several_comparisons_share_a_column_and_are_counted(tmp_path):
    run = a_contest(tmp_path / "run", {"hdf5": (1, 1), "zarr": (2, 2)}, layouts=("shared", "own"))
    answer = answer_of(summarise(run))
    assert "2 comparisons in a column" in answer.notes[0]
    ratios = [a.others[0].ratio for a in summarise(run).answers if a.total == "write_total"]
    low, high = min(r.low for r in ratios), max(r.high for r in ratios)
    assert rows_of(run)["Zarr"][0] == f"{low:.2f}–{high:.2f} slower"


def make_busy(directory):
    """Let others use most of the processors in each block of a run."""
    path = directory / "samples.csv"
    rows = [replace(row, busy_others=0.85, steal=0.0) for row in read_samples(path)]
    path.unlink()
    SamplesLog(str(path)).append(rows)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"repetitions": 3}, "fewer than 7 repetitions show nothing, and there are 3 at most"),
        ({"repetitions": 1}, "fewer than 7 repetitions show nothing, and there are 1 at most"),
        ({"seconds": 1e-7}, "the times are too short to measure"),
        ({"factors": {"hdf5": (1, 1), "zarr": (1.02, 1.02)}, "spread": 0.5}, "nothing is decided"),
        ({"busy": True, "seconds": 0.5}, "BUSY: others used 85% of the processors in 20 of 20"),
    ],
    ids=["three", "one", "short", "open", "busy"],
)
def test_no_answer_says_why_in_the_same_words_everywhere(tmp_path, change, words):
    more = {key: value for key, value in change.items() if key != "busy"}
    run = a_contest(tmp_path / "run", more.pop("factors", {"hdf5": (1, 1), "zarr": (3, 3)}), **more)
    if "busy" in change:
        make_busy(run)
    *texts, data = texts_of(run)
    sentence = data["answer"]["sentence"]
    assert words in sentence
    assert data["answer"]["word"] == "NO ANSWER"
    assert not data["answer"]["rows"]
    for text in texts:
        assert f"NO ANSWER {sentence}" in text
    assert "--set" in sentence or "run again" in sentence or "larger arrays" in sentence


def test_the_answer_is_the_last_of_a_narrow_terminal_and_short(tmp_path):
    factors = {"hdf5": (1, 1), "netcdf4": (1.05, 1.3), "zarr": (2, 2)}
    run = a_contest(tmp_path / "run", factors, layouts=("shared", "own", "file_per_process"))
    lines = print_run(run).splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) < 25
    (start,) = [i for i, line in enumerate(lines) if line.startswith("ANSWER  ")]
    assert len(lines) - start <= 12
    assert "×best" not in print_run(run)
    assert "×best" in print_run(run, 120)


def test_a_run_that_is_not_valid_or_compares_nothing_has_no_answer(tmp_path):
    run = a_contest(tmp_path / "run", {"hdf5": (1, 1), "zarr": (3, 3)})
    data = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(data | {"valid": False, "reasons": ["rank 3 read 7"]}))
    assert answer_of(summarise(run)) is None
    assert "INVALID: rank 3 read 7" in print_run(run).splitlines()[-1]
    alone = a_contest(tmp_path / "alone", {"hdf5": (1, 1)})
    assert answer_of(summarise(alone)) is None
    assert "ANSWER" not in print_run(alone)


def test_a_format_that_takes_no_part_somewhere_is_not_called_never_slower(tmp_path):
    """HDF5 is alone with Zarr in one layout; of the other one only Zarr and netCDF-4 have times."""
    cases = [a_case("hdf5"), a_case("zarr"), a_case("zarr", layout="own")]
    cases.append(a_case("netcdf4", layout="own"))
    ten = np.linspace(1, 1.05, N)
    factors = {"hdf5": 1.0, "netcdf4": 1.0, "zarr": 3.0}
    times = {n: (factors[e["parameters"]["backend"]] * ten,) * 2 for n, e in cases}
    run = timed_run(tmp_path / "run", times, cases, experiment=AUTO)
    assert "HDF5 is never" not in answer_of(summarise(run)).sentence
    assert "everything" not in answer_of(summarise(run)).sentence


def test_what_is_too_short_is_told_beside_the_answer(tmp_path):
    cases = [a_case(b, layout=layout) for layout in ("shared", "own") for b in ("hdf5", "zarr")]
    ten = np.linspace(1, 1.05, N)
    times = {}
    for name, entry in cases:
        p = entry["parameters"]
        seconds = 1e-7 if p["layout"] == "own" else 0.1
        times[name] = ((3 if p["backend"] == "zarr" else 1) * seconds * ten,) * 2
    run = timed_run(tmp_path / "run", times, cases, experiment=AUTO)
    answer = answer_of(summarise(run))
    assert any(text.startswith("2 comparisons are too short") for text in answer.notes)
