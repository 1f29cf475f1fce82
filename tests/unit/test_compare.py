"""`pffbench compare` on runs whose truth is known: what it shows, refuses and writes."""

from __future__ import annotations

import csv
import json
import os

import numpy as np
import pytest
from msgspec.structs import replace
from rich.console import Console

from drawn_runs import edit
from drawn_times import NOISES, drawn
from launch import sampled
from pffbench.backends.inspection import StoredAs
from pffbench.commands.compare import sides_of
from pffbench.errors import UserError
from pffbench.record.repetitions import MachineState
from pffbench.record.run import MeasuredRun
from pffbench.record.run_json import FloorEntry, LeftOut, RunRecord
from pffbench.run.resume import moved
from pffbench_analysis.compare import Gate, compare, compare_runs
from timed_runs import CASES, FORMATS, Maker, a_case, in_memory

pytestmark = pytest.mark.long
COARSE = FloorEntry(0.1, 0.1, 1e-8)


@pytest.fixture
def make(tmp_path):
    return Maker(tmp_path)


def compared(old, new, **how):
    return compare_runs([MeasuredRun.load(old)], [MeasuredRun.load(new)], **how)


def printed(old, *new, **how):
    """Run the whole command in this process; return what it printed."""
    console = Console(record=True, width=200, file=open(os.devnull, "w"))  # noqa: SIM115
    compare([[old], *([run] for run in new)], console=console, **how)
    return console.export_text()


# --- what it shows


def test_a_planted_slowdown_is_shown_with_an_interval_that_covers_it(make):
    new = make(seed=2, noise=0.005, factor=lambda _, phase: 5 if phase == "write" else 1.0)
    found = compared(make(seed=1, noise=0.005), new)
    for row in found.comparable:
        if row.heading.startswith("write"):
            assert row.verdict.word == "slower"
            assert row.verdict.ratio.low <= 1.06 / 0.26 <= row.verdict.ratio.high
            assert row.phase in ("", "write")
        else:
            assert row.verdict.word == "open"
    assert {row.phase for row in found.comparable} == {"", "write"}


def test_a_speedup_is_shown_as_one(make):
    found = compared(make(seed=1), make(seed=2, factor=0.2))
    assert {row.verdict.word for row in (*found.rows, *found.control)} == {"faster"}


def starts(noise, count, rounds, generator, between, factor=1.0, cv=0.1):
    """Return runs of one program: each start has a speed for each case and total."""
    speeds = np.exp(between * generator.normal(size=(count, 8, 1)))
    return [in_memory(factor * s * drawn(noise, 8, rounds, generator, cv)) for s in speeds]


def differs(found):
    return any(row.different for row in (*found.comparable, *found.control))


@pytest.mark.parametrize("between", sampled([0.02, 0.05, 0.06], 0.05))
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("noise", sampled(NOISES, "normal"))
def test_of_equal_programs_a_difference_is_shown_in_at_most_5_of_100(noise, count, between):
    """However many rounds each start has: they say nothing of another start."""
    generator, runs = np.random.default_rng(7), 120
    wrong = sum(
        differs(compare_runs(*(starts(noise, count, 20, generator, between) for _ in range(2))))
        for _ in range(runs)
    )
    # Of 120, 6 expected at most: 12 or more come about twice in a hundred times.
    assert wrong < 12


def test_three_starts_of_each_show_what_two_starts_cannot():
    generator, runs, found = np.random.default_rng(9), 40, {1: 0, 3: 0}
    for _ in range(runs):
        for count in found:
            old = starts("normal", count, 14, generator, 0.05)
            new = starts("normal", count, 14, generator, 0.05, factor=1.25)
            found[count] += differs(compare_runs(old, new))
    assert found[3] >= 0.8 * runs
    assert found[1] <= 0.5 * runs


@pytest.mark.parametrize("order", [1, -1])
def test_a_run_of_many_starts_is_compared_with_an_ordinary_one(order):
    generator, wrong = np.random.default_rng(9), 0
    for factor in (1.0, 2.0):
        for _ in range(20):
            ordinary = starts("normal", 1, 20, generator, 0.05)
            speeds = np.exp(0.05 * generator.normal(size=(8, 12)))
            run = in_memory(factor * speeds * drawn("normal", 8, 12, generator, 0.1))
            many = [replace(run, record=replace(run.record, environments={"here": {}}))]
            found = compare_runs(*[ordinary, many][::order])
            assert found.starts == (1, 12)[::order]
            wrong += differs(found) != (factor > 1)
    assert wrong <= 3


def test_cases_of_a_format_are_compared_together(make):
    new = make(seed=2, factor=lambda case, _: 1.6 if case.startswith("hdf5") else 1.0)
    found = compared(make(seed=1), new)
    together = {row.name: row for row in found.rows if row.heading.startswith("write")}
    assert together["HDF5, 2 cases"].verdict.word == "slower"
    assert together["HDF5, 2 cases"].verdict.ratio.low <= 1.6
    assert [row.name for row in found.control] == ["raw I/O, 1 case"] * 2
    assert not differs(replace(found, rows=()))


def test_raw_transfers_without_formats_are_what_is_compared(make):
    raw = dict([a_case("posix"), a_case("mpiio"), a_case("mpiio", transfer="collective")])
    found = compared(make(seed=1, cases=raw), make(seed=2, cases=raw, factor=1.7))
    assert not found.control
    assert {row.verdict.word for row in found.comparable} == {"slower"}
    assert len(found.comparable) == 8


def test_the_verdict_is_first_and_every_row_follows(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # its path may be too long for a line
    text = printed(make(seed=1).name, make(seed=2, factor=1.02).name).splitlines()
    assert text[0].startswith("NO DIFFERENCE SHOWN:")
    (head,) = (n for n, line in enumerate(text) if line.split()[:2] == ["old", "new"])
    assert head < 9
    assert len([line for line in text if "ms" in line.split()]) == 10
    old, new = make(seed=3, noise=0.005), make(seed=4, noise=0.005, factor=2)
    slower = printed(old.name, new.name)
    assert slower.startswith("SLOWER: ")


@pytest.mark.parametrize("length", [8, 60, 200])
def test_rows_have_80_columns_whatever_the_names(make, tmp_path, monkeypatch, length):
    monkeypatch.chdir(tmp_path)
    long = "x" * length
    cases = dict([a_case("hdf5", variable=f"{long}-{n}", chunks=f"{n}×8") for n in range(2)])
    text = printed(make(seed=1, cases=cases).name, make(seed=2, cases=cases, factor=3).name)
    head = text.index("\n\n", text.index("new: "))
    table = text[head : text.index("Change: ")].splitlines()
    assert max(map(len, table)) <= 80
    assert len([line for line in table if "ms" in line.split()]) == 6


@pytest.mark.parametrize("gate", [None, Gate(0.05)])
def test_a_difference_and_its_phase_are_read_in_one_table(make, tmp_path, monkeypatch, gate):
    monkeypatch.chdir(tmp_path)
    old, new = make(seed=1, noise=0.005), make(seed=2, noise=0.005, factor=12)
    text = printed(old.name, new.name, gate=gate)
    assert len([line for line in text.splitlines() if line.split()[:2] == ["old", "new"]]) == 1
    assert max(map(len, text.splitlines())) <= 80
    (row, *_) = [line for line in text.splitlines() if "slower in " in line]
    assert row.startswith("  write and close ")


def test_a_machine_that_others_used_is_named_in_the_words_of_the_run(make):
    old, new = make(seed=1, factor=9), make(seed=2, factor=9)
    edit(new, lambda one: replace(one, machine=MachineState(busy_others=0.5)))
    assert f"{new}: BUSY: others used 50% of the processors" in " ".join(printed(old, new).split())


def test_a_run_that_was_resumed_on_other_hosts_is_named(make):
    old, new = make(seed=1), make(seed=2)
    record = RunRecord.load(new)
    now = replace(record.topology, hosts=["other"] * len(record.topology.hosts))
    record.limits = ["zarr: not measured", moved(record, now.hosts)]
    record.save(new)
    told = " ".join(printed(old, new).split())
    assert f"{new}: the run was resumed on other hosts (other after " in told
    assert "not measured" not in told


def test_several_runs_of_each_side_are_given_around_two_dashes(make):
    olds, news = [make(seed=n) for n in range(3)], [make(seed=n, factor=1.3) for n in range(3, 6)]
    found = compare_runs(*([MeasuredRun.load(run) for run in side] for side in (olds, news)))
    assert found.starts == (3, 3)
    assert {row.verdict.word for row in found.comparable} == {"slower"}
    assert sides_of([*olds, "//", *news]) == [olds, news]
    assert sides_of(olds) == [[run] for run in olds]


def nights(make, drifts, slower=1.0):
    """Make a run a night, in which the disk is as fast as it is."""
    return [
        make(seed=n, factor=lambda case, _, d=drift: d * (slower if "posix" not in case else 1.0))
        for n, drift in enumerate(drifts, round(100 * slower))
    ]


def test_the_drift_of_a_disk_cancels_over_raw_io(make):
    olds, news = nights(make, (1.0, 1.2, 0.85)), nights(make, (0.85, 1.0, 1.2), slower=1.3)
    console = Console(record=True, width=200, file=open(os.devnull, "w"))  # noqa: SIM115
    compare([olds, news], console=console)
    text = " ".join(console.export_text().split())
    assert text.startswith(f"SLOWER: {news[0]} and 2 more runs: ")
    assert ") over raw I/O" in text
    assert "slower in write, over raw I/O" in text
    assert "the times are divided by the time of raw I/O in the same rounds" in text
    loaded = [[MeasuredRun.load(run) for run in side] for side in (olds, news)]
    rows = compare_runs(*loaded).comparable
    assert all(row.verdict.over_raw and row.verdict.word == "slower" for row in rows)
    assert all(row.verdict.ratio.value == pytest.approx(1.3, rel=0.05) for row in rows)


def test_over_raw_io_that_changed_itself_nothing_is_compared(make):
    olds, news = nights(make, (1.0, 1.02, 0.98)), nights(make, (3.0, 3.06, 2.94))
    loaded = [[MeasuredRun.load(run) for run in side] for side in (olds, news)]
    found = compare_runs(*loaded)
    assert {row.verdict.word for row in (*found.comparable, *found.control)} == {"slower"}
    assert not any(row.verdict.over_raw for row in found.comparable)


@pytest.mark.parametrize("given", [["a"], ["a", "--"], ["--", "a"], ["a", "--", "--", "b"]])
def test_a_side_without_a_run_is_refused(given):
    with pytest.raises(UserError, match="compare needs two runs or more: OLD NEW"):
        sides_of(["//" if word == "--" else word for word in given])


# --- what it refuses


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"ranks": 8}, "4 and 8 ranks"),
        ({"nodes": 2}, "1 and 2 nodes"),
        ({"status": "interrupted"}, "the new run is not finished (interrupted)"),
        ({"status": "running", "valid": None}, "the new run is not finished (running)"),
        ({"valid": False, "reasons": ["wrong bytes"]}, "the new run is not valid: wrong bytes"),
        ({"repetitions": 6}, "too few rounds: 10 and 6, 7 of each are needed"),
        ({"floor": COARSE}, "below resolution in the new run"),
        (
            {"experiment": {"counters": "calls"}},
            "the new run counted system calls, which slows them (use --counts)",
        ),
    ],
)
def test_what_is_not_comparable_says_why(make, how, reason):
    found = compared(make(seed=1), make(seed=2, **how))
    assert not found.comparable
    assert {row.reason for row in found.refused} == {reason}
    text = " ".join(printed(found.old.name, found.new.name).split())
    assert text.startswith(f"NOT COMPARABLE: {found.new.name}: nothing is comparable: {reason}")


def with_entries(cases, **fields):
    return {name: replace(entry, **fields) for name, entry in cases.items()}


def test_other_bytes_are_other_work(make):
    (entry, *_) = FORMATS.values()
    half = with_entries(FORMATS, cost=replace(entry.cost, nbytes=entry.cost.nbytes // 2))
    found = compared(make(seed=1, cases=FORMATS), make(seed=2, cases=half))
    assert {row.reason for row in found.rows} == {"8388608 and 4194304 bytes"}


def test_reads_with_a_cache_that_is_not_proved_are_not_compared(make):
    runs = [
        edit(make(seed=seed), lambda one: replace(one, read=replace(one.read, cache="unproved")))
        for seed in (1, 2)
    ]
    found = compared(*runs)
    assert {row.heading for row in found.comparable} == {"write and close"}
    assert {row.reason for row in found.refused} == {
        "state of the page cache not proved in the old and the new run"
    }


def test_a_case_that_failed_is_not_compared(make):
    name, *_ = CASES
    bad = CASES | {name: replace(CASES[name], invalid="read wrong data")}
    found = compared(make(seed=1), make(seed=2, cases=bad))
    assert {row.reason for row in found.refused} == {"failed, or read wrong data, in the new run"}
    assert len(found.refused) == 2


def test_other_settings_are_not_comparable_and_named(make):
    old = dict([a_case("hdf5", chunks="8×8"), a_case("zarr")])
    new = dict([a_case("hdf5", chunks="16×16"), a_case("zarr"), a_case("posix")])
    found = compared(make(cases=old), make(cases=new))
    assert {row.name for row in found.rows} == {"Zarr"}
    assert [(one.which, one.reason) for one in found.alone] == [
        ("old", "different settings: chunks 8×8, there 16×16"),
        ("new", "different settings: chunks 16×16, there 8×8"),
        ("new", "not in the other run"),
    ]


def test_a_case_that_was_left_out_says_why(make):
    name, _ = a_case("zarr")
    fewer = {n: e for n, e in CASES.items() if n != name}
    out = [LeftOut(name, "chunks that ranks share")]
    (lone,) = compared(make(), make(cases=fewer, left_out=out)).alone
    assert lone.reason == "left out in the other run: chunks that ranks share"


def test_across_compares_what_differs_in_one_parameter(make):
    old = make(seed=1, cases=dict([a_case("hdf5", "none"), a_case("zarr", "none")]))
    new = make(seed=2, cases=dict([a_case("hdf5", "gzip"), a_case("zarr", "gzip")]), factor=5)
    assert not compared(old, new).rows
    found = compared(old, new, across=["codec"])
    assert {row.verdict.word for row in found.rows} == {"slower"}
    assert len(found.rows) == 4
    assert not found.alone


def test_across_does_not_guess_which_case_is_meant(make):
    found = compared(make(seed=1), make(seed=2), across=["codec"])
    assert {lone.reason for lone in found.alone} == {"several cases fit when codec may differ"}
    assert {row.name.partition(",")[0] for row in found.rows} == {"Zarr"}


def test_across_nothing_is_an_error(make):
    with pytest.raises(UserError, match=r"--across colour: no case has .* codec"):
        compared(make(), make(), across=["colour"])


def test_what_else_differs_is_listed(make):
    def how(version, chunks):
        libraries = {"h5py": {"imported": True, "version": version}}
        stored = StoredAs(chunks, "none", "never")
        return {
            "provenance": {"software": {"libraries": libraries}},
            "cases": with_entries(FORMATS, stored_as=stored),
        }

    text = printed(make(seed=1, **how("3.12", (8, 8))), make(seed=2, **how("3.13", (4, 4))))
    text = " ".join(text.split())
    assert "differs: software.libraries.h5py.version: 3.12 / 3.13" in text
    assert "stored as: 8×8, none, fill never / 4×4, none, fill never" in text


# --- what it writes


def test_json_has_the_content_of_the_text(make, capsys):
    old, new = make(seed=1), make(seed=2, factor=5)
    status, _ = compare([[old], [new]], gate=Gate(0.05), as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert (told["format"], told["version"], told["status"]) == ("pffbench compare", 3, status)
    (one,) = told["comparisons"]
    text = " ".join(printed(old, new, gate=Gate(0.05)).split())
    assert text.startswith(one["sentence"])
    assert len(one["rows"]) == 8
    assert {row["word"] for row in (*one["rows"], *one["control"])} == {"slower"}


def test_files(make, tmp_path):
    old, new = make(seed=1), make(seed=2, factor=1.7, cases=dict(list(CASES.items())[1:]))
    out = tmp_path / "out"
    printed(old, new, out=out, gate=Gate(0.05))
    assert {path.name for path in out.iterdir()} == {"compare.md", "compare.csv"}
    text = (out / "compare.md").read_text()
    assert text.index("MACHINE CHANGED") < text.index("## ") < text.index("| old |")
    with (out / "compare.csv").open() as file:
        rows = list(csv.DictReader(file))
    found = compared(old, new)
    assert len(rows) == len(found.rows) + len(found.control)
    write = next(r for r in rows if r["old_case"].startswith("zarr") and "write" in r["heading"])
    ratio = float(write["new_s"]) / float(write["old_s"])
    assert float(write["change"]) == pytest.approx(ratio, rel=0.02)
    assert float(write["low"]) < float(write["alone_low"]) < float(write["change"])


def test_nothing_comparable_is_said_in_the_file(make, tmp_path):
    printed(make(), make(ranks=8), out=tmp_path / "out")
    assert "4 and 8 ranks" in (tmp_path / "out/compare.md").read_text()


def test_out_that_is_a_file(make, tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        printed(make(seed=1), make(seed=2), out=tmp_path / "out")
