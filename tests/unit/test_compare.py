"""`pffbench compare` on runs whose truth is known: what it tells, refuses and writes."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from msgspec.structs import replace
from pffbench.summary.answer import answer_of
from pffbench_analysis.runs import Run
from rich.console import Console
from test_answer_table import a_contest, make_busy

from drawn_times import NOISES, drawn
from launch import sampled
from pffbench.commands.compare import sides_of
from pffbench.errors import UserError
from pffbench.results.summary import summarise
from pffbench_analysis.compare import Gate, RowChoice, Verdict, compare, compare_runs
from pffbench_analysis.compare.sentences import verdict_lines
from timed_runs import BYTES, CASES, FORMATS, Maker, a_case, in_memory

pytestmark = pytest.mark.long

#: Each takes some ten seconds.
KINDS = sampled(NOISES, "dependent")


@pytest.fixture
def make(tmp_path):
    return Maker(tmp_path)


def compared(base, new, **how):
    return compare_runs([Run.load(base)], [Run.load(new)], **how)


def print_comparison(base, *new, **how):
    """Run the whole command in this process; return what it printed."""
    console = Console(record=True, width=200, file=open(os.devnull, "w"))  # noqa: SIM115
    compare([[base], *([run] for run in new)], console=console, **how)
    return console.export_text()


# --- what it tells


def test_a_planted_slowdown_is_told_with_an_interval_that_covers_it(make):
    new = make(seed=2, factor=lambda _, phase: 5 if phase == "write" else 1.0, noise=0.005)
    found = compared(make(seed=1, noise=0.005), new)
    for pair in found.pairs:
        if pair.phase == "write":
            assert pair.verdict is Verdict.SLOWER
            assert pair.low <= 5 <= pair.high
        elif pair.phase == "write_total":
            assert pair.verdict is Verdict.SLOWER
            assert pair.low <= 1.06 / 0.26 <= pair.high
        else:
            assert pair.verdict is Verdict.OPEN, pair


def test_a_speedup_is_told_as_one(make):
    found = compared(make(seed=1), make(seed=2, factor=0.2))
    assert {pair.verdict for pair in (*found.pairs, *found.overall)} == {Verdict.FASTER}
    assert all(pair.low <= 0.2 <= pair.high for pair in found.gated)


def start_runs(noise, count, repetitions, generator, between, factor=1.0, cv=0.1):
    """Return runs of one program: each start has a speed of its own in each case and total."""
    runs = []
    for _ in range(count):
        speeds = np.exp(between * generator.normal(size=(8, 1)))
        runs.append(in_memory(factor * speeds * drawn(noise, 8, repetitions, generator, cv)))
    return runs


def differences_in(found):
    """Return whether a difference is told of totals, of rows of several cases, of the control."""
    formats = [p for p in found.comparable if p.is_total and not p.case.control]
    rows = [p for p in found.overall if not p.case.control]
    return [any(p.different for p in family) for family in (formats, rows, found.controls)]


@pytest.mark.parametrize("between", sampled([0.02, 0.05, 0.08], 0.05))
@pytest.mark.parametrize(
    "repetitions", [20, *(pytest.param(n, marks=pytest.mark.slow) for n in (10, 40))]
)
def test_of_two_starts_of_one_program_nothing_is_told_in_95_of_100(between, repetitions):
    """However many repetitions each of them has: they say nothing of another start."""
    generator, wrong, runs = np.random.default_rng(7), np.zeros(3), 200
    for _ in range(runs):
        one, other = (start_runs("normal", 1, repetitions, generator, between) for _ in range(2))
        wrong += differences_in(compare_runs(one, other))
    # Of 200, 10 expected at most: 18 or more come about once in a hundred times.
    assert wrong.max() <= 0.085 * runs, wrong


@pytest.mark.parametrize("noise", KINDS)
def test_of_three_starts_of_each_nothing_is_told_in_95_of_100(noise):
    generator, wrong, runs = np.random.default_rng(8), np.zeros(3), 150
    for _ in range(runs):
        one, other = (start_runs(noise, 3, 14, generator, 0.05, cv=0.2) for _ in range(2))
        wrong += differences_in(compare_runs(one, other))
    assert wrong.max() <= 0.085 * runs, wrong


def test_three_starts_of_each_show_what_two_starts_cannot():
    generator, runs, found = np.random.default_rng(9), 40, {1: 0, 3: 0}
    for _ in range(runs):
        for count in found:
            one = start_runs("normal", count, 14, generator, 0.05)
            other = start_runs("normal", count, 14, generator, 0.05, factor=1.25)
            found[count] += differences_in(compare_runs(one, other))[0]
    assert found[3] >= 0.8 * runs
    assert found[1] <= 0.5 * runs


def restarted_run(count, generator, between, factor=1.0):
    """Return a run with `starts`: each of its repetitions is a start of its own."""
    speeds = np.exp(between * generator.normal(size=(8, count)))
    run = in_memory(factor * speeds * drawn("normal", 8, count, generator, 0.1))
    return [replace(run, record=replace(run.record, environments={"here": None}))]


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(("factor", "told"), [(1.0, 0), (2.0, 40)])
def test_a_run_of_many_starts_is_compared_with_an_ordinary_one(order, factor, told):
    generator, found = np.random.default_rng(9), 0
    for _ in range(40):
        one = start_runs("normal", 1, 20, generator, 0.05)
        other = restarted_run(12, generator, 0.05, factor)
        compared = compare_runs(*[one, other][::order])
        assert compared.starts == (1, 12)[::order]
        found += differences_in(compared)[0]
    assert abs(found - told) <= 5


def test_a_machine_that_others_used_is_named_in_the_words_of_the_run(tmp_path):
    runs = [a_contest(tmp_path / name, {"hdf5": (1, 1), "zarr": (3, 3)}, seconds=0.5)
            for name in "ab"]  # fmt: skip
    make_busy(runs[1])
    told = answer_of(summarise(runs[1])).sentence
    assert told.startswith("BUSY: ")
    found = compared(*runs)
    assert verdict_lines(found)[0] == f"{runs[1]}: {told}"


@pytest.mark.parametrize("noise", KINDS)
def test_the_interval_holds_the_truth_in_95_of_100(noise):
    generator, held = np.random.default_rng(8), []
    for _ in range(60):
        base = start_runs(noise, 2, 14, generator, 0.06)
        found = compare_runs(base, start_runs(noise, 2, 14, generator, 0.06, factor=1.1))
        alone = [pair.decision.alone for pair in found.comparable]
        held += [ratio.low <= 1.1 <= ratio.high for ratio in alone]
    assert np.mean(held) >= 0.94


def test_a_slowdown_of_which_it_is_said_that_it_would_be_shown_is_shown():
    generator, shown, told = np.random.default_rng(9), [], []
    for _ in range(40):
        base, new = (start_runs("normal", 3, 14, generator, 0.06) for _ in range(2))
        totals = [p for p in compare_runs(base, new).comparable if p.is_total]
        shown += [p.decision.shown for p in totals if not p.case.control]
    slower = float(np.median(shown))
    for _ in range(40):
        base, new = (start_runs("normal", 3, 14, generator, 0.06, factor=f) for f in (1, slower))
        totals = [p for p in compare_runs(base, new).comparable if p.is_total]
        told += [p.different for p in totals if not p.case.control]
    assert 1.1 < slower < 1.5
    assert 0.65 <= np.mean(told) <= 0.95  # 80 % is what is said


def test_two_runs_that_are_measured_precisely_are_still_two_starts(make):
    """A difference of a tenth is in the range of two starts, however little repetitions vary."""
    base, new = make(seed=1, noise=1e-4), make(seed=2, noise=1e-4, factor=1.1)
    assert {p.verdict for p in compared(base, new).pairs} == {Verdict.OPEN}
    assert "for these two starts of the program" in print_comparison(base, new)


def test_times_that_never_vary_leave_no_doubt(make):
    base = make(noise=0)
    assert {p.verdict for p in compared(base, make(noise=0)).pairs} == {Verdict.OPEN}
    assert {p.verdict for p in compared(base, make(noise=0, factor=5)).pairs} == {Verdict.SLOWER}


def test_several_runs_of_each_side_are_given_around_two_dashes(make):
    bases = [make(seed=n) for n in range(3)]
    news = [make(seed=n, factor=1.3) for n in range(3, 6)]
    given = ["--all", *map(str, bases), "--", *map(str, news)]
    done = subprocess.run(
        [sys.executable, "-m", "pffbench", "compare", *given],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert f"{news[0]} and 2 more runs compared with {bases[0]} and 2 more runs" in text
    assert "by 3 and 3 starts of the program" in text
    assert "hdf5, 2 cases, to write everything: slower, 1.3" in text


@pytest.mark.parametrize("given", [["a"], ["a", "--"], ["--", "a"], ["a", "--", "--", "b"]])
def test_a_side_without_a_run_is_refused(given):
    with pytest.raises(UserError, match="compare needs two runs or more: BASE NEW"):
        sides_of(["//" if word == "--" else word for word in given])


def test_the_same_runs_give_the_same_numbers(make):
    base, new = make(seed=1), make(seed=2)
    one, other = compared(base, new), compared(base, new)
    assert [p.decision for p in one.pairs] == [p.decision for p in other.pairs]
    assert [p.verdict for p in one.pairs] == [p.verdict for p in other.pairs]


def test_backends_are_compared_over_their_cases(make):
    new = make(seed=2, factor=lambda case, _: 1.6 if case.startswith("hdf5") else 1.0)
    overall = {(p.case.label, p.phase): p for p in compared(make(seed=1), new).overall}
    assert set(overall) == {
        (label, f"{part}_total")
        for label in ("hdf5, 2 cases", "raw bytes, 1 case")
        for part in ("write", "read")
    }
    slower = overall["hdf5, 2 cases", "write_total"]
    assert slower.verdict is Verdict.SLOWER
    assert slower.low <= 1.6 <= slower.high
    assert overall["raw bytes, 1 case", "write_total"].verdict is Verdict.OPEN


def test_raw_bytes_tell_whether_the_machine_changed(make):
    base = make(seed=1)
    assert "whether the machine itself changed is not decided" in print_comparison(
        base, make(seed=2)
    )
    text = print_comparison(base, make(seed=3, factor=1.7))
    assert "the machine itself changed: raw bytes take 1.7" in text
    assert "the machine itself: not known, since no raw bytes" in print_comparison(
        base, make(cases=FORMATS)
    )


def test_raw_bytes_without_formats_tell_nothing_of_the_machine(make):
    raw = dict([a_case("posix"), a_case("mpiio"), a_case("mpiio", transfer="collective")])
    found = compared(make(seed=1, cases=raw), make(seed=2, cases=raw, factor=1.7))
    assert not found.controls
    assert {pair.case.label for pair in found.overall} == {"mpiio, 2 cases"}
    assert {pair.verdict for pair in found.gated} == {Verdict.SLOWER}
    assert len(found.gated) == 8
    text = print_comparison(found.base.runs[0].directory, found.new.runs[0].directory)
    assert "the machine itself: not known, since raw transfers are all that is compared" in text


def test_what_moves_no_bytes_tells_nothing_of_the_speed_of_raw_bytes(make):
    cases = CASES | dict([a_case("null"), a_case("null", transfer="collective")])
    new = make(seed=2, cases=cases, factor=lambda case, _: 2 if case.startswith("null") else 1)
    found = compared(make(seed=1, cases=cases), new)
    assert {p.case.label for p in found.overall} == {"hdf5, 2 cases", "raw bytes, 1 case"}
    assert not any(pair.case.backend == "null" for pair in found.gated)


# --- what it refuses


def assert_not_compared(found):
    assert not found.comparable
    (reason,) = {pair.reason for pair in found.pairs}
    return reason


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"ranks": 8}, "4 and 8 ranks"),
        ({"nodes": 2}, "1 and 2 nodes"),
        ({"status": "interrupted"}, "the new run is not finished (interrupted)"),
        ({"status": "running", "valid": None}, "the new run is not finished (running)"),
        ({"valid": False, "reasons": ["wrong bytes"]}, "the new run is not valid: wrong bytes"),
        ({"repetitions": 6}, "too few repetitions: 10 and 6, 7 of each are needed"),
        (
            {"floor": {"own": 0.1, "synced": 0.1, "tick": 1e-8}},
            "below resolution in the new run",
        ),
    ],
)
def test_what_is_not_comparable_says_why(make, how, reason):
    assert assert_not_compared(compared(make(seed=1), make(seed=2, **how))) == reason


def test_other_bytes_are_other_work(make):
    found = compared(make(seed=1), make(seed=2, nbytes=BYTES // 2))
    told = {pair.phase: pair.reason for pair in found.pairs}
    assert told["write"] == f"{BYTES} and {BYTES // 2} bytes"
    assert told["read_total"] == f"{BYTES} and {BYTES // 2} bytes"


def test_reads_with_a_cache_that_is_not_proved_are_not_compared(make):
    found = compared(make(seed=1, cache="unproved"), make(seed=2, cache="unproved"))
    verdicts = {pair.phase: pair.verdict for pair in found.pairs}
    reading = {"open", "read", "read_total"}
    assert {phase for phase, v in verdicts.items() if v is Verdict.NOT_COMPARABLE} == reading
    assert {pair.reason for pair in found.pairs if pair.phase in reading} == {
        "state of the page cache not proved in the base and the new run"
    }


def test_other_settings_are_not_comparable_and_named(make):
    cases = dict([a_case("hdf5", chunks="8×8"), a_case("zarr")])
    others = dict([a_case("hdf5", chunks="16×16"), a_case("zarr"), a_case("posix")])
    found = compared(make(cases=cases), make(cases=others))
    assert {pair.case.backend for pair in found.pairs} == {"zarr"}
    (base,) = found.only_base
    assert base.reason == "different settings: chunks 8×8, there 16×16"
    assert [lone.reason for lone in found.only_new] == [
        "different settings: chunks 16×16, there 8×8", "not in the other run"
    ]  # fmt: skip


def test_a_case_that_was_left_out_says_why(make):
    name, _ = a_case("zarr")
    fewer = {n: e for n, e in CASES.items() if n != name}
    out = [{"case": name, "reason": "chunks that ranks share"}]
    (lone,) = compared(make(), make(cases=fewer, left_out=out)).only_base
    assert lone.reason == "left out in the other run: chunks that ranks share"


def test_across_compares_what_differs_in_one_parameter(make):
    base = make(seed=1, cases=dict([a_case("hdf5", "none"), a_case("zarr", "none")]))
    new = make(seed=2, cases=dict([a_case("hdf5", "gzip"), a_case("zarr", "gzip")]), factor=5)
    assert not compared(base, new).pairs
    found = compared(base, new, across=["codec"])
    assert {pair.verdict for pair in found.pairs} == {Verdict.SLOWER}
    assert {pair.case.backend for pair in found.pairs} == {"hdf5", "zarr"}
    assert not found.only_base


def test_across_does_not_guess_which_case_is_meant(make):
    found = compared(make(seed=1), make(seed=2), across=["codec"])
    assert {lone.reason for lone in found.only_base} == {"several cases fit when codec may differ"}
    assert {pair.case.backend for pair in found.pairs} == {"zarr", "posix"}


def test_across_nothing_is_an_error(make):
    with pytest.raises(UserError, match=r"--across colour: no case has .* codec"):
        compared(make(), make(), across=["colour"])


def test_differing_provenance_is_listed(make):
    software = {"libraries": {"h5py": {"imported": True, "version": "3.12"}}}
    newer = {"libraries": {"h5py": {"imported": True, "version": "3.13"}}}
    base = make(seed=1, provenance={"software": software})
    new = make(seed=2, provenance={"software": newer})
    assert "versions that differ: h5py 3.12 → 3.13" in print_comparison(base, new)


def test_only_rows_with_a_difference_are_shown_unless_asked(make):
    gzip = make(seed=2, noise=0.005, factor=lambda case, _: 1.7 if "gzip" in case else 1.0)
    base = make(seed=1, noise=0.005)

    def rows(**how):
        text = print_comparison(base, gzip, rows=RowChoice(**how))
        lines = (line for line in text.splitlines() if re.match(r" ?\w.* write_total ", line))
        return [line.split() for line in lines]

    different, every, faster = rows(), rows(all_rows=True), rows(only="faster")
    assert different
    assert {row[-1] for row in different} == {"slower"}
    assert len(every) > len(different)
    assert faster == []
    ratios = [float(row[row.index("ms") + 3]) for row in rows(sort="ratio")]
    assert ratios == sorted(ratios, reverse=True)


def test_the_control_is_no_case_among_others(make):
    """Raw rows say that the machine changed, first of all; they are in no count of cases."""
    slow = make(seed=2, noise=0.005, factor=lambda case, _: 1.7 if "posix" in case else 1.0)
    lines = print_comparison(make(seed=1, noise=0.005), slow).splitlines()
    assert lines[1].startswith("• the machine itself changed: raw bytes take 1.7")
    assert lines[2] == "• cases × phases: 24 not decided"


def test_json_has_the_content_of_the_text(make, capsys):
    base, new = make(seed=1), make(seed=2, factor=5)
    status, _ = compare([[base], [new]], gate=Gate(0.05), as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert (told["format"], told["version"], told["status"]) == ("pffbench compare", 2, status)
    (one,) = told["comparisons"]
    text = " ".join(print_comparison(base, new, gate=Gate(0.05)).split())
    assert all(sentence in text for sentence in (*one["sentences"], *told["gate"]))
    assert one["machine_changed"]
    found = compared(base, new)
    assert len(one["rows"]) == len(found.pairs) + len(found.overall)
    assert {row["verdict"] for row in one["rows"]} == {"slower"}
    assert {row["backend"] for row in one["rows"] if row["control"]} == {"posix"}


def test_arrays_that_are_stored_in_another_way_are_listed(make):
    def stored(chunks):
        how = {"chunks": chunks, "codec": "none", "fill": "never", "more": {}}
        return {n: e | {"stored_as": how} for n, e in CASES.items() if not e["raw"]}

    found = compared(make(cases=stored([8, 8])), make(cases=stored([4, 4])))
    assert "chunks 8×8, codec none, fill never / chunks 4×4" in str(found.stored[0])


def test_more_repetitions_are_not_asked_for_where_they_do_not_help(make):
    """What is below resolution stays so, however often it is repeated."""
    coarse = {"own": 0.1, "synced": 0.1, "tick": 1e-8}
    few = make(seed=1, repetitions=3), make(seed=2, repetitions=3, floor=coarse)
    assert assert_not_compared(compared(*few)) == "below resolution in the new run"


# --- what it writes


def test_files(make, tmp_path):
    base, new = make(seed=1), make(seed=2, factor=1.7, cases=dict(list(CASES.items())[1:]))
    out = tmp_path / "out"
    print_comparison(base, new, out=out, gate=Gate(0.05))
    assert {path.name for path in out.iterdir()} == {"compare.md", "compare.csv"}
    text = (out / "compare.md").read_text()
    assert text.index("MACHINE CHANGED") < text.index("## ") < text.index("| case |")
    with (out / "compare.csv").open() as file:
        rows = list(csv.DictReader(file))
    found = compared(base, new)
    assert len(rows) == len(found.pairs) + len(found.overall) + 1
    (lone,) = [row for row in rows if row["phase"] == ""]
    assert (lone["case"], lone["verdict"]) == (next(iter(CASES)), "not comparable")
    write = next(row for row in rows if row["phase"] == "write" and row["case"].startswith("zarr"))
    assert float(write["ratio"]) == pytest.approx(
        float(write["new_median_s"]) / float(write["base_median_s"])
    )
    assert float(write["ratio_low"]) < float(write["ratio"]) < float(write["ratio_high"])


def test_nothing_comparable_is_said_in_the_file(make, tmp_path):
    print_comparison(make(), make(ranks=8), out=tmp_path / "out")
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"compare.md", "compare.csv"}
    assert "4 and 8 ranks" in (tmp_path / "out/compare.md").read_text()


def test_out_that_is_a_file(make, tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        print_comparison(make(seed=1), make(seed=2), out=tmp_path / "out")
