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
from pffbench.record.run_json import LeftOut
from pffbench.results.answer import lines_of
from pffbench.results.document import as_data
from pffbench.results.export import tables_of, write_summary
from pffbench.results.names import format_name
from pffbench.results.obstacles import seconds_again
from pffbench.results.purposes import Purpose
from pffbench.results.summary import summarise
from pffbench.storage.durability import DiskUsage
from sharing import keys_of, word_of

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
    assert next(lines_of(found)) == "USE HDF5: no measured way is faster (95 % confidence)."
    assert (found.word, found.way, found.price) == ("USE", {"backend": "hdf5"}, 1.0)
    assert found.prices == {"write to disk": 1.0, "read, page cache": 1.0}
    rows = {row[0]: row[1:] for row in found.rows}
    assert list(rows) == ["HDF5", "Zarr"]
    assert all(re.match(r"(2\.9|3\.0)\d× \(2\.\d\d–3\.\d\d\)$", cell) for cell in rows["Zarr"])
    assert found.evidence.startswith("VALID: every byte verified, 2 cases, 20 rounds, 2 ranks")


def test_a_way_that_may_be_slower_has_its_price_in_the_sentence(tmp_path):
    found = answer(a_contest(tmp_path, {"hdf5": (1, 1), "zarr": (1, 1)}))
    (price,) = re.findall(r"at most (\d+) % slower than the fastest way measured", found.sentence)
    assert found.word == "USE"
    assert int(price) == pytest.approx(100 * (found.price - 1), abs=1)
    assert "same: within 10 %" in " ".join(found.notes)
    assert {row[0]: row[1] for row in found.rows}.popitem()[1].endswith(" same")


def test_a_price_that_is_too_high_is_no_decision_and_names_the_command(tmp_path):
    found = answer(a_contest(tmp_path, {"hdf5": (1, 1), "zarr": (1, 1)}, spread=1.5, seed=2))
    assert found.word == "NO DECISION"
    so_far = r"the best choice so far is \w+\. It may be \d+ % slower than another"
    assert re.match(so_far, found.headline)
    assert "The limit is 25 %." in found.headline
    assert found.command.endswith(f"--set repetitions={4 * ROUNDS}")
    assert found.rows  # what was measured is shown


def test_the_grid_shows_raw_transfers_and_other_ways(tmp_path):
    layouts = (("per_rank", 1.0), ("one-shared", 2.0))
    cases = [
        a_case(b, **keys_of(layout)) for layout, _ in layouts for b in ("hdf5", "zarr", "posix")
    ]
    slow = dict(layouts)
    speed = {"hdf5": 1.0, "zarr": 3.0, "posix": 0.5}
    rng = np.random.default_rng(1)
    times = {
        name: [
            0.1 * slow[word_of(e.parameters)] * speed[e.backend]
            * np.exp(0.02 * rng.standard_normal(ROUNDS))
            for _ in range(2)
        ]
        for name, e in cases
    }  # fmt: skip
    run = timed_run(tmp_path, times, cases)
    found = answer(run)
    assert found.sentence.startswith("USE HDF5, one file per rank: ")
    assert {row[0]: row[1] for row in found.rows}["raw I/O"] == "0.50×"
    (files,) = [note for note in found.notes if note.startswith("One shared file instead of ")]
    assert re.search(r"(1\.9|2\.0)\d×", files)
    ways = next(iter(tables_of(summarise(run))))
    assert ways.rows[0][0] == "HDF5, one file per rank"
    assert len(ways.rows) == 4


def test_raw_transfers_are_compared_with_the_settings_to_use_alone(tmp_path):
    """Compression, which raw transfers do not have, says nothing of the file system."""
    seconds = {("hdf5", "none"): 0.1, ("hdf5", "gzip"): 1.0, ("posix", "none"): 0.05}
    cases = [a_case(backend, codec=codec) for backend, codec in seconds]
    times = {
        name: [np.full(ROUNDS, one)] * 2
        for (name, _), one in zip(cases, seconds.values(), strict=True)
    }
    found = answer(timed_run(tmp_path, times, cases))
    assert {row[0]: row[1] for row in found.rows}["raw I/O"] == "0.50×"


def test_a_key_that_follows_from_the_files_changes_with_them(tmp_path):
    """As in experiments from a file: compressed data in a shared file are moved collectively."""
    layouts = {"per_rank": ("independent", 1.0), "one-shared": ("collective", 2.0)}
    cases = [
        a_case("hdf5", **keys_of(layout), transfer=transfer)
        for layout, (transfer, _) in layouts.items()
    ]
    times = {
        name: [[factor * (1 + 0.01 * (r % 3)) for r in range(ROUNDS)] for _ in range(2)]
        for (name, _), (_, factor) in zip(cases, layouts.values(), strict=True)
    }
    found = answer(timed_run(tmp_path, times, cases))
    named = [note for note in found.notes if " instead of " in note]
    assert len(named) == 1
    assert re.match(
        r"One shared file, collective transfer instead of one file per rank: write 2\.0\d×",
        named[0],
    )


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
    run = a_contest(tmp_path, equal, seconds=0.5, spread=1.5, seed=2, accept_busy=True)
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
    assert next(lines_of(found)) == found.sentence
    assert "pffbench doctor tests what works here" in found.notes[0]


def test_a_run_that_has_not_ended_says_how_to_continue(tmp_path):
    run = change_record(a_contest(tmp_path), valid=None, status="interrupted")
    found = answer(run)
    assert found.sentence == "INTERRUPTED: rounds are missing."
    assert found.command == f"mpiexec -n 2 python -m pffbench run --resume {run}"


def test_an_interrupted_run_with_too_few_rounds_is_to_be_resumed(tmp_path):
    run = change_record(a_contest(tmp_path, rounds=3), status="interrupted")
    found = answer(run)
    assert found.command == f"mpiexec -n 2 python -m pffbench run --resume {run}"
    assert found.why_command == "To continue:"


def test_a_run_that_compares_nothing_says_what_was_measured_and_how_to_compare(tmp_path):
    found = answer(a_contest(tmp_path, {"hdf5": (1, 1)}))
    assert found.word == "MEASURED"
    ((name, write, _),) = found.rows
    assert name == "HDF5"
    assert re.fullmatch(r"\d+ ms, \d+ MB/s", write)
    assert found.command.endswith("run some.yaml --set 'backend=[hdf5, zarr]'")
    assert found.why_command == "To compare with Zarr:"


@pytest.mark.parametrize(
    ("cases", "reason"),
    [
        ([("hdf5", [64, 64])], "one way was measured, so nothing is compared."),
        ([("posix", [64, 64])], "only raw I/O ran, so no formats are compared."),
        (
            [("hdf5", [64, 64]), ("zarr", [128, 64])],
            "no two cases with usable times did the same work, so nothing is compared.",
        ),
    ],
)
def test_a_run_that_compares_nothing_says_why(tmp_path, cases, reason):
    entries = [a_case(backend, shape_per_rank=shape) for backend, shape in cases]
    times = {name: [np.full(ROUNDS, 0.1)] * 2 for name, _ in entries}
    assert answer(timed_run(tmp_path, times, entries)).headline == reason


def test_nothing_is_said_of_a_column_in_which_the_way_was_not_measured(tmp_path):
    """Only the other file layout was read from disk: there another way may be faster."""
    shared, own = {**keys_of("one-shared")}, {"files": "per_rank"}
    places = [shared, own, own | {"cache": "dropped"}]
    cases = [a_case(b, **place) for place in places for b in ("hdf5", "zarr")]
    times = {
        name: [
            [0.1 * (1 if e.backend == "hdf5" and e.parameters["files"] == "one" else 3)] * ROUNDS
        ]
        * 2
        for name, e in cases
    }
    found = answer(timed_run(tmp_path, times, cases))
    assert found.sentence.startswith("USE HDF5, one shared file: no measured way is faster")
    assert "read from disk" not in found.prices
    assert "In no column is another way faster." not in found.notes


def test_every_line_fits_80_columns(tmp_path):
    """Three formats, three layouts and cold reads, of which nothing is decided."""
    rng = np.random.default_rng(3)
    places = [{**keys_of(w)} for w in ("one-shared", "one-per_rank", "per_rank")]
    places.append({"files": "per_rank", "cache": "dropped"})
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
    assert re.search(r"By the sum of the times HDF5 is 1\.\d+ times as slow as Zarr \(", notes)
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
    cases = [
        a_case(b, **keys_of(layout))
        for layout in ("one-shared", "one-per_rank")
        for b in ("hdf5", "zarr")
    ]
    ten = np.linspace(1, 1.05, ROUNDS)
    times = {}
    for name, entry in cases:
        seconds = 1e-7 if word_of(entry.parameters) == "one-per_rank" else 0.1
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
    assert answer(run).why_command == ("To continue:" if rounds < 7 else "To measure again:")


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
            text = f"{one['ratio']:.2f}×"
            text += " same" if one["word"] == "same" else f" ({one['low']:.2f}–{one['high']:.2f})"
            assert any(cell.startswith(text) for cell in cells)


# --- sweeps, and what was not measured


def a_sweep(directory, seconds, rounds=ROUNDS, seed=1, spread=0.02, **record):
    """Write a run of ways: a format, its chunks and codec, with seconds and bytes on disk.

    Parameters
    ----------
    seconds : dict of (str, str, str) to (float, float)
        By format, chunks and codec the seconds of a round, and the bytes on disk over those of the
        array.
    rounds : int or dict of (str, str, str) to int
        Rounds, of all ways or of some.
    """
    rng, cases, times = np.random.default_rng(seed), [], {}
    for way, (each, stored) in seconds.items():
        backend, chunks, codec = way
        level = {"level": 4} if codec != "none" else {}
        shape = [int(n) for n in chunks.split("×")]
        name, entry = a_case(backend, chunks=shape, codec=codec, **level)
        size = int(stored * entry.cost.nbytes)
        cases.append((name, replace(entry, disk=DiskUsage(size, size, 1))))
        n = rounds if isinstance(rounds, int) else rounds.get(way, ROUNDS)
        times[name] = [each * np.exp(spread * rng.standard_normal(n)) for _ in range(2)]
    return timed_run(directory, times, cases, **record)


SWEEP = {
    ("hdf5", "1×64", "none"): (0.1, 1.0),
    ("hdf5", "8×8", "none"): (0.2, 1.0),
    ("hdf5", "1×64", "gzip"): (0.5, 0.4),
    ("hdf5", "8×8", "gzip"): (0.6, 0.42),
    ("zarr", "1×64", "none"): (0.25, 1.0),
    ("zarr", "8×8", "none"): (0.3, 1.0),
}


def test_the_first_line_of_a_sweep_names_chunks_and_codec_and_what_disk_costs(tmp_path):
    found = answer(a_sweep(tmp_path, SWEEP))
    assert found.sentence.startswith(
        "USE HDF5, no compression, chunks 1×64: no measured way is faster (95 % confidence). "
        "Least disk: gzip 4, 0.40× the bytes in "
    )
    assert re.search(r"in (4\.9|5\.0)\d× the time\.$", found.sentence)
    assert all(row[0] for row in found.rows)
    assert [row[0] for row in found.rows] == ["HDF5", "Zarr"]
    text = " ".join(found.notes)
    assert re.search(
        r"Chunks 8×8 instead of chunks 1×64: write 1\.\d\d× \(.*\), read 1\.\d\d×", text
    )
    assert re.search(
        r"Gzip 4 instead of no compression: write \d.*, read \d.*, disk 0\.4\d×\.", text
    )
    assert max(map(len, lines_of(found))) <= 80


def test_a_way_that_is_the_smallest_says_so(tmp_path):
    fast = {way: (s if way[2] == "gzip" else 2.0, disk) for way, (s, disk) in SWEEP.items()}
    sentence = answer(a_sweep(tmp_path, fast)).sentence
    assert sentence.startswith("USE HDF5, gzip 4, chunks 1×64: ")
    assert sentence.endswith("It needs the least disk, 0.40× of the most.")


def test_formats_of_equal_size_have_no_word_of_disk(tmp_path):
    assert "disk" not in answer(a_contest(tmp_path)).headline


def test_ways_with_too_few_rounds_take_no_part_and_are_named_with_the_time_they_need(tmp_path):
    """The time budget has ended them; the others are decided all the same."""
    few = {("hdf5", "8×8", "gzip"): 2, ("zarr", "8×8", "none"): 4, ("zarr", "1×64", "none"): 6}
    run = a_sweep(tmp_path, SWEEP, few, experiment={"time_budget": 60.0}, time_needed=97.0)
    found = answer(run)
    assert found.word == "USE"
    assert found.price == 1.0
    (note,) = [note for note in found.notes if note.startswith("In fewer than 7 rounds: ")]
    assert note == (
        "In fewer than 7 rounds: HDF5 (chunks 8×8, gzip 4) and Zarr (chunks 1×64, no compression; "
        "chunks 8×8, no compression), because the time budget of 60 s is too short. --set "
        "time_budget=130 holds all."
    )


def test_cases_with_too_few_rounds_are_named_by_one_key_if_it_sets_them_apart(tmp_path):
    ways = [("one-shared", 8), ("one-per_rank", 8), ("one-shared", 64), ("one-per_rank", 64)]
    cases = [
        a_case(b, **keys_of(layout), shape_per_rank=[n, 64], chunks=[n // 8, 64])
        for layout, n in ways
        for b in ("hdf5", "zarr", "mpiio")
    ]
    times = {}
    for name, entry in cases:
        rounds = ROUNDS if entry.parameters["shape_per_rank"][0] == 64 else 3
        times[name] = (np.linspace(0.1, 0.11, rounds),) * 2
    notes = answer(timed_run(tmp_path, times, cases)).notes
    assert "In fewer than 7 rounds: HDF5 and Zarr (shape per rank 8×64)." in notes


def test_a_format_of_which_nothing_is_left_is_in_no_row(tmp_path):
    few = {way: 3 for way in SWEEP if way[0] == "zarr"}
    found = answer(a_sweep(tmp_path, SWEEP, few))
    assert [row[0] for row in found.rows] == ["HDF5"]
    assert any("Zarr" in note and note.startswith("In fewer than 7") for note in found.notes)


def test_cases_that_were_left_out_are_named_in_one_line_with_the_reason(tmp_path):
    late = [
        LeftOut(f"{b}.x", "no time", "time", f"{format_name(b)}, one shared file")
        for b in ("hdf5", "netcdf4", "zarr")
    ]
    never = [LeftOut(f"zarr.codecs.own.independent.matched.{n:012}", "no szip") for n in range(2)]
    run = a_contest(
        tmp_path, left_out=[*late, *never], experiment={"time_budget": 120.0}, time_needed=110.0
    )
    notes = answer(run).notes
    assert (
        "Not measured: HDF5, netCDF-4 and Zarr (one shared file), because the time budget of 120 s "
        "is too short. --set time_budget=140 holds all."
    ) in notes
    (impossible,) = [note for note in notes if note.endswith("because no szip.")]
    assert impossible == "Not measured: 2 cases of Zarr, because no szip."
    markdown = (write_summary(summarise(run), run)[2]).read_text()
    assert markdown.count("left out: ") == 5


def test_many_settings_that_were_left_out_are_counted_and_listed_in_the_summary_alone(tmp_path):
    late = [LeftOut(f"hdf5.{n}", "no time", "time", f"HDF5, chunks {n}") for n in range(1, 25)]
    late.append(LeftOut("npy.x", "no time", "time", f"npy, {'a key, ' * 30}"))
    late.append(LeftOut("zarr.x", "no time", "time", "Zarr, chunks 99"))
    more = {"left_out": late, "experiment": {"time_budget": 9.0}, "time_needed": 30.0}
    run = a_contest(tmp_path, **more)
    (note,) = [note for note in answer(run).notes if note.startswith("Not measured: ")]
    assert note.startswith(
        "Not measured: HDF5 (24 settings), npy (1 setting) and Zarr (chunks 99), because the time"
    )
    markdown = (write_summary(summarise(run), run)[2]).read_text()
    assert "left out: HDF5, chunks 24: no time" in markdown


@pytest.mark.parametrize(
    ("heading", "said"),
    [
        ("write to disk", "only writes to disk"),
        ("write and close", "only writes and closes"),
        ("change to disk", "only changes data on disk"),
        ("change and close", "only changes data and closes"),
        ("read, page cache", "only reads from the page cache"),
        ("read from disk", "only reads from disk"),
    ],
)
def test_a_price_names_the_program_that_it_is_for(heading, said):
    assert Purpose(heading.split()[0], heading, ()).alone == said


def test_what_the_libraries_cannot_do_is_named_once(tmp_path):
    why = "h5py is built without MPI"
    out = [LeftOut("hdf5.x", why)]
    notes = answer(a_contest(tmp_path, left_out=out, limits=[f"1 case of hdf5 left out: {why}"]))
    assert sum(why in note for note in notes.notes) == 1


def test_a_run_of_one_case_is_no_decision_and_still_says_what_was_left_out(tmp_path):
    out = [LeftOut("zarr.x", "no time", "time", "Zarr")]
    more = {"left_out": out, "experiment": {"time_budget": 9.0}, "time_needed": 30.0}
    found = answer(a_contest(tmp_path, {"hdf5": (1, 1)}, **more))
    assert found.word == "MEASURED"
    assert found.notes[0].startswith("Not measured: Zarr, because the time budget of 9 s")


def test_a_run_whose_time_was_too_short_names_the_budget_that_holds_it(tmp_path):
    run = a_contest(tmp_path, rounds=3, experiment={"time_budget": 20.0}, time_needed=100.0)
    found = answer(run)
    assert found.headline == (
        "at least 7 rounds are needed, and no case has more than 3: the time budget of 20 s ended "
        "first."
    )
    assert found.command.endswith("--set repetitions=7 --set time_budget=130")
    assert found.why_command == "To measure again (about 2 min):"


def test_times_too_short_in_a_full_budget_get_a_longer_one_with_the_larger_arrays(tmp_path):
    cases = [a_case(b, shape_per_rank=[4, 64]) for b in ("hdf5", "zarr")]
    times = {name: (np.linspace(1e-6, 2e-6, ROUNDS),) * 2 for name, _ in cases}
    run = timed_run(
        tmp_path, times, cases, experiment={"time_budget": 20.0},
        stops=["the time budget of 20 s would have been passed"],
        finished="2026-01-01T12:00:20+00:00",
    )  # fmt: skip
    assert "--set time_budget=100" in answer(run).command


@pytest.mark.parametrize("length", [30, 90])
def test_names_of_any_length_leave_the_table_in_80_columns(tmp_path, length):
    ways = [("hdf5", "none"), ("zarr", "none"), ("hdf5", "x" * length), ("zarr", "x" * length)]
    cases = [a_case(b, codec=codec, durability="sync") for b, codec in ways]
    ten = np.linspace(1.0, 1.02, ROUNDS)
    times = {name: (n * ten,) * 2 for n, (name, _) in enumerate(cases, start=1)}
    found = answer(timed_run(tmp_path, times, cases))
    assert max(map(len, found.table.lines(80))) <= 80
