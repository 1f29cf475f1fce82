"""The answer of a run: a small table of what is decided, or NO ANSWER with what to do next."""

from __future__ import annotations

import io
import json
import re
import shlex
from html import escape, unescape

import numpy as np
import pytest
from msgspec.structs import replace
from rich.console import Console

from drawn_runs import AUTO, a_case, timed_run
from pages import page_of
from pffbench.record.samples import SamplesLog, read_samples
from pffbench.summary.answer import answer_of
from pffbench.summary.conclusions import seconds_again
from pffbench.summary.export import print_summary, write_summary
from pffbench.summary.results import as_data
from pffbench.summary.summary import summarise
from pffbench_analysis.recommend import recommend

pytestmark = pytest.mark.long

N = 20


def a_contest(directory, factors, repetitions=N, layouts=("shared",), seconds=0.1, spread=0.02):
    """Write a run in which formats take so many times as long to write, and to read."""
    generator = np.random.default_rng(1)
    more = {"durability": "sync", "shape_per_rank": [4, 64]}
    cases = [a_case(b, layout=layout, **more) for layout in layouts for b in factors]

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
        assert cell == f"{ratio.value:.2f} slower [{ratio.low:.2f}–{ratio.high:.2f}]"


def test_equal_open_and_slower_have_words_of_their_own(tmp_path):
    factors = {"hdf5": (1, 1), "netcdf4": (1.02, 1.05), "zarr": (2, 9)}
    run = a_contest(tmp_path / "run", factors, spread=(0.02, 0.3))
    cells = rows_of(run)
    assert cells["netCDF-4"][0] == "same"
    assert re.fullmatch(r"1\.\d\d \? \[.*\]", cells["netCDF-4"][1])
    assert cells["HDF5"][1] == "1.00 ?"
    assert "slower" in cells["Zarr"][0]
    answer = answer_of(summarise(run))
    open_ = "Zarr is shown slower. Whether HDF5 or netCDF-4 is faster is open (?)."
    assert answer.sentence == open_
    assert re.fullmatch(r"Open \(\?\): 1 of 4 comparisons; about \d+ .*decide:", answer.open)
    assert "is fastest" not in print_run(run)


def test_formats_that_are_open_are_not_called_never_slower(tmp_path):
    """The makers' spelling stays at the beginning of a sentence."""
    factors = {"hdf5": (1, 1), "netcdf4": (9, 9), "zarr": (1.05, 1.05)}
    run = a_contest(tmp_path / "run", factors, spread=(0.3, 0.3))
    open_ = "Whether HDF5 or Zarr is faster is open (?)."
    assert answer_of(summarise(run)).sentence == f"netCDF-4 is shown slower. {open_}"


def test_of_several_comparisons_a_cell_says_how_many_are_slower_and_how_many_are_open(tmp_path):
    """HDF5 is faster in one layout, and in two others nothing is decided."""
    layouts = ("shared", "own", "file_per_process")
    cases = [a_case(b, layout=layout) for layout in layouts for b in ("hdf5", "netcdf4")]
    rng, times = np.random.default_rng(2), {}
    for name, entry in cases:
        p = entry["parameters"]
        slow = 2 if (p["backend"], p["layout"]) == ("netcdf4", "shared") else 1
        noise = np.exp(rng.normal(0, 0.02 if p["layout"] == "shared" else 0.5, (2, N)))
        times[name] = tuple(0.1 * slow * noise)
    run = timed_run(tmp_path / "run", times, cases, experiment=AUTO)
    cells = rows_of(run)
    assert cells["netCDF-4"] == ("1 of 3 slower, 2 open ?",) * 2
    assert cells["HDF5"] == ("1.00, 2 open ?",) * 2


def test_different_winners_are_named_with_what_they_win(tmp_path):
    run = a_contest(tmp_path / "run", {"hdf5": (1, 2), "zarr": (2, 1)})
    assert answer_of(summarise(run)).sentence == (
        "Fastest: HDF5 to write to disk, Zarr to read from the page cache."
    )


def test_several_comparisons_share_a_column_and_are_counted(tmp_path):
    run = a_contest(tmp_path / "run", {"hdf5": (1, 1), "zarr": (2, 2)}, layouts=("shared", "own"))
    answer = answer_of(summarise(run))
    assert answer.legend == "Times as long as the fastest (a to b: 2 comparisons)"
    ratios = [a.others[0].ratio.value for a in summarise(run).answers if a.total == "write_total"]
    assert rows_of(run)["Zarr"][0] == f"{min(ratios):.2f} to {max(ratios):.2f} slower"


def make_busy(directory):
    """Let others use most of the processors in each block of a run."""
    path = directory / "samples.csv"
    rows = [replace(row, busy_others=0.85, steal=0.0) for row in read_samples(path)]
    path.unlink()
    SamplesLog(str(path)).append(rows)


def drawn(run):
    """Return the marks of the figure of the answer on the page of a run."""
    text = page_of(run).read_text()
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text)[1]
    return json.loads(data)["answer"]["numbers"] if json.loads(data)["answer"] else []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"repetitions": 3}, "at least 7 repetitions are needed, and no case has more than 3"),
        ({"repetitions": 1}, "at least 7 repetitions are needed, and no case has more than 1"),
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
    command = data["answer"]["command"]
    assert command.startswith("mpiexec -n 2 python -m pffbench run some.yaml")
    assert data["answer"]["open"] == "To measure again:"  # how long the run took is not known
    assert "…" not in command
    lines = recommend([run]).lines()
    assert f"    {command}" in lines
    texts.append(" ".join(" ".join(lines).replace("*", "").split()))
    assert recommend([run]).data()["runs"][0]["no_answer"] == sentence
    for text in texts:
        assert f"NO ANSWER {sentence}" in text
        assert command in text.replace("\\ ", "")
        assert not re.search(r"(?<!IN)VALID", text)
    assert f'<span class="badge">NO ANSWER</span> <span class="meaning">{escape(sentence)}' in (
        page_of(run).read_text()
    )
    assert all(r["standing"] in ("ahead", "undecided") for r in drawn(run))
    if "busy" in change:  # the times are those of others too
        assert drawn(run) == []


FIVE = ("hdf5", "netcdf4", "zarr", "tensorstore", "blosc2")


@pytest.mark.parametrize(("formats", "noise"), [(3, 0.02), (3, 0.3), (5, 0.02), (5, 0.3)])
@pytest.mark.parametrize("crossed", [False, True])
def test_the_answer_is_the_last_ten_lines_of_a_narrow_terminal(tmp_path, formats, noise, crossed):
    """The default run: layouts, sizes, writing, reads from the page cache and from disk."""
    rng, times = np.random.default_rng(3), {}
    places = [{"layout": w} for w in ("shared", "own", "file_per_process")]
    places.append({"layout": "file_per_process", "cache": "dropped"})
    cases = [a_case(b, **place) for place in places for b in FIVE[:formats]]
    for name, entry in cases:
        rank = FIVE.index(entry["parameters"]["backend"])
        slow = 1 + 0.3 * np.array([rank, formats - 1 - rank if crossed else rank])
        times[name] = tuple(0.1 * slow[:, None] * np.exp(rng.normal(0, noise, (2, N))))
    more = {"cold_reads": "extra", "time_budget": 120.0}
    run = timed_run(
        tmp_path / "run", times, cases, experiment=AUTO | more,
        command=["python", "-m", "pffbench", "run", "some.yaml", "--scratch", "/lustre/project/me"],
        finished="2026-01-01T12:02:00+00:00",
    )  # fmt: skip
    lines = print_run(run).splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 24  # with what a run prints before, 40 at most
    (start,) = [i for i, line in enumerate(lines) if line.startswith(("ANSWER  ", "NO ANSWER"))]
    own = lines[start:]
    assert len(own) <= 10
    answer = answer_of(summarise(run))
    assert own[-1].startswith("Every byte read was verified; ")
    for name, *cells in answer.rows:
        # Of five formats the last one may be above, where the command takes two lines.
        (line,) = [line for line in lines if re.match(rf"{re.escape(name)}(  |:)", line)]
        assert line in own or (formats == 5 and name == answer.rows[-1][0])
        assert line.count("?") == sum(cell.count("?") for cell in cells) or line not in own
    if noise == 0.3:
        (typed,) = [i for i, line in enumerate(own) if line.startswith("  mpiexec ")]
        typed = "\n".join(own[typed:-1]).replace("\\\n", " ")  # as a shell joins them
        assert shlex.split(typed) == shlex.split(answer.command)
        assert "--scratch /lustre/project/me" in answer.command
    assert "×best" not in print_run(run)
    assert "×best" in print_run(run, 120)


def test_a_run_that_is_not_valid_or_compares_nothing_has_no_answer(tmp_path):
    run = a_contest(tmp_path / "run", {"hdf5": (1, 1), "zarr": (3, 3)})
    data = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(data | {"valid": False, "reasons": ["rank 3 read 7"]}))
    assert answer_of(summarise(run)) is None
    assert "INVALID: rank 3 read 7" in print_run(run).splitlines()[-1]


def test_a_run_that_compares_nothing_says_what_was_measured_and_how_to_compare(tmp_path):
    run = a_contest(tmp_path / "run", {"hdf5": (1, 1)})
    *texts, data = texts_of(run)
    answer = data["answer"]
    assert answer["word"] == "MEASURED"
    assert re.fullmatch(
        r"HDF5 takes \S+ ms to write to disk and \S+ ms to read from the page cache; there is "
        r"nothing to compare it with\.",
        answer["sentence"],
    )
    ((name, write, _),) = answer["rows"]
    assert name == "HDF5"
    assert re.fullmatch(r"\S+ ms \[\S+ ms–\S+ ms\], \S+ GB/s", write)
    for text in texts:
        assert f"MEASURED {answer['sentence']}" in text
        assert "To compare with Zarr:" in text
        assert answer["command"] in text.replace("\\ ", "")
    assert answer["command"].endswith("run some.yaml --set 'backend=[hdf5, zarr]'")
    assert f"    {answer['command']}" in recommend([run]).lines()
    make_busy(again := a_contest(tmp_path / "busy", {"hdf5": (1, 1)}, seconds=0.5))
    assert answer_of(summarise(again)).word == "NO ANSWER"


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


@pytest.mark.parametrize(
    ("workload", "amount", "words", "change"),
    [
        ("hyperslab", {"shape_per_rank": [4, 64]}, "use a larger shape_per_rank", [512, 64]),
        ("codecs", {"shape": [3, 5], "shape_per_rank": None}, "use a larger shape", [384, 5]),
        ("datasets", {"shape": [9], "datasets_per_rank": 2}, "use more datasets_per_rank", 256),
        ("chunk_cache", {"shape": [9], "granules": 1}, "use more granules", 128),
        ("versions", {}, "use larger arrays", None),
    ],
)
def test_times_that_are_too_short_name_the_key_that_the_cases_have(
    tmp_path, workload, amount, words, change
):
    """They must take 128 times as long: 10 µs and a half more, in place of 0.15 µs."""
    cases = [a_case(b, workload=workload, **amount) for b in ("hdf5", "zarr")]
    times = {name: (np.linspace(1e-7, 2e-7, N),) * 2 for name, _ in cases}
    answer = answer_of(summarise(timed_run(tmp_path / "run", times, cases, experiment=AUTO)))
    assert answer.sentence.endswith(f"(under 100 × the overhead of measuring); {words}")
    last = [f"{words.split()[-1]}={change}"] if change else []
    assert shlex.split(answer.command)[-1:] == last


def test_arrays_of_several_sizes_are_not_all_set_to_one(tmp_path):
    cases = [a_case(b, shape=[n, n]) for n in (4, 8) for b in ("hdf5", "zarr")]
    times = {name: (np.linspace(1e-7, 2e-7, N),) * 2 for name, _ in cases}
    answer = answer_of(summarise(timed_run(tmp_path / "run", times, cases, experiment=AUTO)))
    assert (answer.sentence.endswith("use a larger shape"), answer.command) == (True, "")


def test_a_command_from_a_foreign_record_starts_nothing_else(tmp_path):
    """A `run.json` may come from anybody."""
    run = a_contest(tmp_path / "run", {"hdf5": (1, 1), "zarr": (3, 3)}, repetitions=3)
    record = json.loads((run / "run.json").read_text())
    record["command"] = [
        "rm", "-rf", "/", "--set", "cache=warm; rm -rf /", "--drop-hook", "rm -rf /",
        "--set", "environments=[{name: a, python: rm}]", "--set=dtype=float64", "--out", "x",
    ]  # fmt: skip
    record["experiment_file"] = "$(rm -rf /).yaml"
    (run / "run.json").write_text(json.dumps(record))
    assert shlex.split(answer_of(summarise(run)).command) == [
        "mpiexec", "-n", "2", "python", "-m", "pffbench", "run", "$(rm -rf /).yaml",
        "--set", "cache=warm; rm -rf /", "--set", "dtype=float64", "--set", "repetitions=7",
    ]  # fmt: skip
    (run / "run.json").write_text(json.dumps(record | {"experiment_file": "-x"}))
    assert answer_of(summarise(run)).command == ""


@pytest.mark.parametrize(
    ("repetitions", "busy", "minutes"), [(3, False, 8), (20, True, 4)], ids=["few", "busy"]
)
def test_no_answer_says_how_long_measuring_again_takes(tmp_path, repetitions, busy, minutes):
    """Of 4 minutes for a warm-up and 3 repetitions, 7 repetitions take twice as long."""
    factors = {"hdf5": (1, 1), "zarr": (3, 3)}
    run = a_contest(tmp_path / "run", factors, repetitions=repetitions)
    told = json.loads((run / "run.json").read_text())
    told["finished"] = told["started"].replace("12:00", "12:04")
    (run / "run.json").write_text(json.dumps(told))
    if busy:
        make_busy(run)
    summary = summarise(run)
    assert answer_of(summary).open == f"To measure again (about {minutes} min):"
    assert f"(about {minutes} min):" in " ".join(recommend([run]).lines())
    # Longer operations make nothing else longer.
    operations = (repetitions + 1) * 2 * (0.1 + 0.3)
    assert seconds_again(summary, factor=4) == pytest.approx(240 + 3 * operations, rel=0.01)
    # Of 16 KiB 2048 times as many bytes, 32 MiB, take what they take at 100 MiB/s.
    small = replace(summary, groups={"g": [replace(c, nbytes=2**14) for c in summary.cases]})
    longer = (repetitions + 1) * len(summary.cases) * 2 * 0.32
    assert seconds_again(small, factor=2048) == pytest.approx(240 + longer, rel=0.01)
    # Of a run that was stopped nobody knows how long all of it takes.
    (run / "run.json").write_text(json.dumps(told | {"status": "interrupted"}))
    assert answer_of(summarise(run)).open == "To measure again:"
