"""What a run answers: a decision with its price, or why there is none, the same at every place."""

from __future__ import annotations

import json
import re
import shlex

import numpy as np
import pytest
from msgspec.structs import replace

from drawn_runs import a_case, a_repetition, edit, timed_run
from pffbench.record.repetitions import MachineState
from pffbench.results.answer import lines_of
from pffbench.results.document import as_data
from pffbench.results.export import tables_of, write_summary
from pffbench.results.obstacles import seconds_again
from pffbench.results.summary import summarise

ROUNDS = 20
FACTORS = {"hdf5": (1, 1), "zarr": (3, 3)}


def a_contest(
    directory, factors=FACTORS, rounds=ROUNDS, seconds=0.1, spread=0.02, seed=1, **record
):
    """Write a run whose formats take these times to write and to read."""
    rng = np.random.default_rng(seed)
    cases = [a_case(backend) for backend in factors]
    times = {
        name: [seconds * f * np.exp(spread * rng.standard_normal(rounds)) for f in both]
        for (name, _), both in zip(cases, factors.values(), strict=True)
    }
    return timed_run(directory, times, cases, **record)


def make_busy(run):
    """Let others use most of the processors in each round of a run."""
    return edit(run, lambda one: replace(one, machine=MachineState(busy_others=0.85)))


def change_record(run, **more):
    record = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(record | more))
    return run


def answer(run):
    return summarise(run).answer


def test_the_answer_is_a_decision_with_its_price(tmp_path):
    found = answer(a_contest(tmp_path))
    assert next(lines_of(found)) == "USE HDF5: no way measured is faster (95 %)."
    assert (found.word, found.way, found.price) == ("USE", {"backend": "hdf5"}, 1.0)
    assert found.prices == {"write to disk": 1.0, "read, page cache": 1.0}
    rows = {row[0]: row[1:] for row in found.rows}
    assert list(rows) == ["HDF5", "Zarr"]
    assert all(re.match(r"(2\.9|3\.0)\d× \(2\.\d\d–3\.\d\d\)$", cell) for cell in rows["Zarr"])
    assert found.evidence.startswith("VALID: every byte verified, 2 cases, 20 rounds, 2 ranks")


def test_a_way_that_may_be_slower_has_its_price_in_the_sentence(tmp_path):
    found = answer(a_contest(tmp_path, {"hdf5": (1, 1), "zarr": (1, 1)}))
    (price,) = re.findall(r"at most (\d+) % slower than any way measured", found.sentence)
    assert found.word == "USE"
    assert int(price) == pytest.approx(100 * (found.price - 1), abs=1)
    assert "same: within 10 %" in " ".join(found.notes)
    assert {row[0]: row[1] for row in found.rows}.popitem()[1].endswith(" same")


def test_a_price_that_is_too_high_is_no_decision_and_names_the_command(tmp_path):
    found = answer(a_contest(tmp_path, {"hdf5": (1, 1), "zarr": (1, 1)}, spread=0.8, seed=2))
    assert found.word == "NO DECISION"
    assert "a decision needs 25 %" in found.headline
    assert found.command.endswith(f"--set repetitions={4 * ROUNDS}")
    assert found.rows  # what was measured is shown


def test_the_grid_shows_raw_transfers_and_other_ways(tmp_path):
    layouts = (("file_per_process", 1.0), ("shared", 2.0))
    cases = [a_case(b, layout=layout) for layout, _ in layouts for b in ("hdf5", "zarr", "posix")]
    slow = dict(layouts)
    speed = {"hdf5": 1.0, "zarr": 3.0, "posix": 0.5}
    rng = np.random.default_rng(1)
    times = {
        name: [
            0.1 * slow[e.parameters["layout"]] * speed[e.backend]
            * np.exp(0.02 * rng.standard_normal(ROUNDS))
            for _ in range(2)
        ]
        for name, e in cases
    }  # fmt: skip
    run = timed_run(tmp_path, times, cases)
    found = answer(run)
    assert found.sentence.startswith("USE HDF5, one file per rank: ")
    assert {row[0]: row[1] for row in found.rows}["raw I/O"] == "0.50×"
    (files,) = [note for note in found.notes if note.startswith("One shared file instead: ")]
    assert re.search(r"(1\.9|2\.0)\d×", files)
    ways = next(iter(tables_of(summarise(run))))
    assert ways.rows[0][0] == "HDF5, one file per rank"
    assert len(ways.rows) == 4


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rounds": 3}, "at least 7 rounds are needed, and no case has more than 3"),
        ({"rounds": 1}, "at least 7 rounds are needed, and no case has more than 1"),
        ({"seconds": 1e-7}, "the times are too short to be measured"),
        ({"busy": True, "seconds": 0.5}, "BUSY: others used 85% of the processors in 20 of 20"),
    ],
    ids=["three", "one", "short", "busy"],
)
def test_no_answer_says_why_and_what_to_run(tmp_path, change, words):
    more = {key: value for key, value in change.items() if key != "busy"}
    run = a_contest(tmp_path, **more)
    if "busy" in change:
        make_busy(run)
    found = answer(run)
    assert found.word == "NO ANSWER"
    assert words in found.headline
    assert (found.rows, found.price) == ((), None)
    if "seconds" not in change or "busy" in change:  # no key makes the times of this one longer
        assert found.command.startswith("mpiexec -n 2 python -m pffbench run some.yaml")
    assert summarise(run).compared is None


def test_a_busy_machine_that_is_accepted_is_named_in_the_answer(tmp_path):
    found = answer(make_busy(a_contest(tmp_path, seconds=0.5, accept_busy=True)))
    assert found.word == "USE"
    assert any(note.startswith("Accepted, as asked: BUSY: others used 85%") for note in found.notes)


def test_a_run_measured_again_on_a_busy_machine_accepts_that_too(tmp_path):
    equal = {"hdf5": (1, 1), "zarr": (1, 1)}
    run = a_contest(tmp_path, equal, seconds=0.5, spread=0.8, seed=2, accept_busy=True)
    found = answer(make_busy(run))
    assert found.word == "NO DECISION"
    assert found.command.endswith(" --accept-busy")


@pytest.mark.parametrize(
    ("unverified", "words"),
    [((), "every byte verified"), (("zarr",), "every byte verified but those of Zarr"),
     (("hdf5", "zarr"), "nothing verified")],
)  # fmt: skip
def test_the_evidence_names_whose_bytes_were_verified(tmp_path, unverified, words):
    run = a_contest(tmp_path)
    record = json.loads((run / "run.json").read_text())
    for entry in record["cases"].values():
        entry["verified"] = entry["parameters"]["backend"] not in unverified
    (run / "run.json").write_text(json.dumps(record))
    assert answer(run).evidence.startswith(f"VALID: {words}, 2 cases, ")


def test_an_invalid_run_has_no_answer(tmp_path):
    run = change_record(a_contest(tmp_path), valid=False, reasons=["rank 3 read 7", "more"])
    found = answer(run)
    assert found.word == "INVALID"
    assert found.sentence == "INVALID: rank 3 read 7 (and 1 more reason)."
    assert not found.rows
    assert list(lines_of(found)) == [found.sentence]


def test_a_run_that_has_not_ended_says_how_to_continue(tmp_path):
    run = change_record(a_contest(tmp_path), valid=None, status="interrupted")
    assert "pffbench run --resume" in answer(run).sentence


def test_a_run_that_compares_nothing_says_what_was_measured_and_how_to_compare(tmp_path):
    found = answer(a_contest(tmp_path, {"hdf5": (1, 1)}))
    assert found.word == "MEASURED"
    ((name, write, _),) = found.rows
    assert name == "HDF5"
    assert re.fullmatch(r"\d+ ms, \d+ MB/s", write)
    assert found.command.endswith("run some.yaml --set 'backend=[hdf5, zarr]'")
    assert found.why_command == "To compare with Zarr:"


def test_every_line_fits_80_columns_and_a_default_run_thirty_lines(tmp_path):
    """Three formats, three layouts and cold reads, of which nothing is decided."""
    rng = np.random.default_rng(3)
    places = [{"layout": w} for w in ("shared", "own", "file_per_process")]
    places.append({"layout": "file_per_process", "cache": "dropped"})
    cases = [a_case(b, **place) for place in places for b in ("hdf5", "netcdf4", "zarr")]
    times = {name: 0.1 * np.exp(rng.normal(0, 1.0, (2, ROUNDS))) for name, _ in cases}
    command = ["python", "-m", "pffbench", "run", "some.yaml", "--scratch", "/lustre/project/me"]
    run = timed_run(
        tmp_path, times, cases, experiment={"time_budget": 120.0}, command=command,
        finished="2026-01-01T12:02:00+00:00",
    )  # fmt: skip
    found = answer(run)
    lines = list(lines_of(found))
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 24  # a run prints six lines before them
    (start,) = [i for i, line in enumerate(lines) if line.startswith("  mpiexec ")]
    typed = "\n".join(lines[start:]).replace("\\\n", " ")  # as a shell joins them
    assert shlex.split(typed) == shlex.split(found.command)
    assert "--scratch /lustre/project/me" in found.command


def test_sums_that_say_something_else_than_medians_are_reported(tmp_path):
    """In one of its rounds the format to use takes twenty times as long."""
    run = a_contest(tmp_path, {"hdf5": (1, 1), "zarr": (1.3, 1.3)})
    slow = a_case("hdf5")[0]

    def slow_down(one):
        if one.case != slow or one.round != 5:
            return one
        took = {p.phase: 20 * p.seconds for p in one.phases}
        return a_repetition(slow, a_case("hdf5")[1], one.round, took)

    notes = " ".join(answer(edit(run, slow_down)).notes)
    assert re.search(r"By the sum of the times HDF5 is 1\.\d+ times as slow as Zarr", notes)
    assert "1 of 20 rounds took" in notes


def test_a_format_that_failed_is_named(tmp_path):
    run = a_contest(tmp_path, {"hdf5": (1, 1), "zarr": (3, 3), "netcdf4": (2, 2)})
    record = json.loads((run / "run.json").read_text())
    entry = next(e for e in record["cases"].values() if e["parameters"]["backend"] == "netcdf4")
    entry["invalid"] = "it read something else"
    (run / "run.json").write_text(json.dumps(record))
    found = answer(run)
    assert [row[0] for row in found.rows] == ["HDF5", "Zarr"]
    assert "netCDF-4 is missing: it read something else." in found.notes


def test_what_is_too_short_is_reported_beside_the_answer(tmp_path):
    cases = [a_case(b, layout=layout) for layout in ("shared", "own") for b in ("hdf5", "zarr")]
    ten = np.linspace(1, 1.05, ROUNDS)
    times = {}
    for name, entry in cases:
        seconds = 1e-7 if entry.parameters["layout"] == "own" else 0.1
        times[name] = ((3 if entry.backend == "zarr" else 1) * seconds * ten,) * 2
    notes = answer(timed_run(tmp_path, times, cases)).notes
    assert any(note.startswith("4 of 8 times are too short to be measured") for note in notes)


@pytest.mark.parametrize(
    ("workload", "amount", "words", "change"),
    [
        ("hyperslab", {"shape_per_rank": [4, 64]}, "use a larger shape_per_rank", [512, 64]),
        ("hyperslab", {"shape": [3, 5], "shape_per_rank": None}, "use a larger shape", [384, 5]),
        ("datasets", {"shape": [9], "datasets_per_rank": 2}, "use more datasets_per_rank", 256),
        ("versions", {}, "use larger arrays", None),
    ],
)
def test_times_that_are_too_short_name_the_key_that_the_cases_have(
    tmp_path, workload, amount, words, change
):
    """They must take 128 times as long: 20 µs and a half more, in place of 0.15 µs."""
    cases = [a_case(b, workload=workload, **amount) for b in ("hdf5", "zarr")]
    times = {name: (np.linspace(1e-7, 2e-7, ROUNDS),) * 2 for name, _ in cases}
    found = answer(timed_run(tmp_path, times, cases))
    assert words in found.headline
    last = [f"{words.split()[-1]}={change}"] if change else []
    assert shlex.split(found.command)[-1:] == last


def test_arrays_of_several_sizes_are_not_all_set_to_one(tmp_path):
    cases = [a_case(b, shape=[n, n]) for n in (4, 8) for b in ("hdf5", "zarr")]
    times = {name: (np.linspace(1e-7, 2e-7, ROUNDS),) * 2 for name, _ in cases}
    found = answer(timed_run(tmp_path, times, cases))
    assert "use a larger shape" in found.headline
    assert found.command == ""


def test_a_command_from_a_foreign_record_starts_nothing_else(tmp_path):
    """A `run.json` may come from anybody."""
    run = a_contest(tmp_path, rounds=3)
    command = [
        "rm", "-rf", "/", "--set", "cache=warm; rm -rf /", "--drop-hook", "rm -rf /",
        "--set", "environments=[{name: a, python: rm}]", "--set=dtype=float64", "--out", "x",
    ]  # fmt: skip
    change_record(run, command=command, experiment_file="$(rm -rf /).yaml")
    assert shlex.split(answer(run).command) == [
        "mpiexec", "-n", "2", "python", "-m", "pffbench", "run", "$(rm -rf /).yaml",
        "--set", "cache=warm; rm -rf /", "--set", "dtype=float64", "--set", "repetitions=7",
    ]  # fmt: skip
    assert answer(change_record(run, experiment_file="-x")).command == ""


@pytest.mark.parametrize(
    ("rounds", "busy", "minutes"), [(3, False, 8), (20, True, 4)], ids=["few", "busy"]
)
def test_no_answer_says_how_long_measuring_again_takes(tmp_path, rounds, busy, minutes):
    """Of 4 minutes for a warm-up and 3 rounds, 7 rounds take twice as long."""
    run = a_contest(tmp_path, rounds=rounds, seconds=0.5)
    change_record(run, finished="2026-01-01T12:04:00+00:00")
    if busy:
        make_busy(run)
    assert answer(run).why_command == f"To measure again (about {minutes} min):"
    assert seconds_again(summarise(run).record, 4.0) == 960
    # Of a run that was stopped nobody knows how long all of it takes.
    change_record(run, status="interrupted")
    assert answer(run).why_command == "To measure again:"


def test_every_place_has_the_same_numbers(tmp_path):
    run = a_contest(tmp_path, {"hdf5": (1, 1), "zarr": (3, 3), "netcdf4": (1.02, 1.2)})
    summary = summarise(run)
    write_summary(summary, run)
    found, data = summary.answer, json.loads(json.dumps(as_data(summary)))
    assert data["answer"]["rows"] == [list(row) for row in found.rows]
    assert data["answer"]["price"] == found.price
    markdown = (run / "summary.md").read_text()
    cells = [cell for row in found.rows for cell in row]
    assert all(cell in markdown and cell in "\n".join(lines_of(found)) for cell in cells)
    for one in data["comparisons"]:
        if one["by"] == "backend":
            text = f"{one['ratio']:.2f}× ({one['low']:.2f}–{one['high']:.2f})"
            assert any(cell.startswith(text) for cell in cells)
