"""`pffbench compare --fail-if-slower`: which runs pass, which fail, and what is undecided."""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import pytest
from msgspec.structs import replace
from rich.console import Console

from drawn_runs import edit, rewrite
from drawn_times import drawn
from launch import pffbench_cli, pffbench_here, sampled
from pffbench.errors import INCONCLUSIVE, MACHINE_CHANGED, NOT_VALID, VALID, WRONG_INPUT, UserError
from pffbench.phases import READ_PHASES
from pffbench.record.repetitions import read_repetitions
from pffbench.record.run import MeasuredRun
from pffbench.record.run_json import FloorEntry
from pffbench_analysis.compare import Gate, compare, compare_runs, judge
from timed_runs import CASES, FORMATS, Maker, a_case, in_memory

pytestmark = pytest.mark.long


@pytest.fixture
def make(tmp_path):
    return Maker(tmp_path)


def gated(old, *new, limit=0.05, **how):
    """Run the whole command in this process; return its status and its first sentence."""
    console = Console(record=True, width=200, file=open(os.devnull, "w"))  # noqa: SIM115
    sides = [[old], *([run] for run in new)]
    status, _ = compare(sides, console=console, gate=Gate(limit, **how))
    lines = console.export_text().splitlines()
    return status, " ".join(lines[: lines.index("")])


# --- passed, failed and undecided


def test_slower_than_allowed_fails_and_names_what(make):
    new = make(seed=2, noise=0.005, factor=lambda case, _: 1.7 if "gzip" in case else 1.0)
    status, line = gated(make(seed=1, noise=0.005), new)
    assert status == NOT_VALID
    assert line.startswith(f"FAILED: {new}: slower by more than 5 %: HDF5, gzip, ")
    assert ": 1.7" in line


def test_what_is_shown_to_be_slower_by_less_than_allowed_does_not_fail(make):
    old = make(seed=1, noise=0.005)
    new = make(seed=2, noise=0.005, factor=lambda case, _: 1.0 if case.startswith("posix") else 1.6)
    assert gated(old, new, limit=0.55)[0] == NOT_VALID
    status, line = gated(old, new, limit=0.7)
    assert (status, line.split(":")[0]) == (INCONCLUSIVE, "UNDECIDED")
    assert gated(old, new, limit=1.2)[0] == VALID


def test_each_total_shown_to_be_within_what_is_allowed_passes(make):
    old, new = make(seed=1, noise=0.005), make(seed=2, noise=0.005, factor=1.03)
    status, line = gated(old, new, limit=0.5)
    assert status == VALID
    assert line == (
        f"PASSED: {new}: none of 8 totals is slower by more than 50 %; 3 of 3 cases compared"
    )


def test_a_speedup_passes(make):
    old, new = make(seed=1, cases=FORMATS), make(seed=2, cases=FORMATS, factor=0.5)
    assert gated(old, new)[1].startswith("PASSED")


def test_a_total_of_which_the_interval_reaches_beyond_the_limit_is_undecided(make):
    """Writes that take 4.7 times as long, with a wide interval, do not pass in silence."""
    generator = np.random.default_rng(5)
    wide = {}

    def slow(case, phase):
        factor = 4.7 * float(np.exp(2.5 * generator.normal())) if phase == "write" else 1.0
        return wide.setdefault((case, phase, generator.random()), factor)

    cases = dict([a_case("hdf5")])
    status, line = gated(make(seed=1, cases=cases), make(seed=2, cases=cases, factor=slow))
    assert (status, line.split(":")[0]) == (INCONCLUSIVE, "UNDECIDED")
    assert "the most HDF5, write and close: " in line


def test_what_may_be_slower_says_by_how_much_and_what_would_show_less(make):
    status, line = gated(make(seed=1), make(seed=2))
    assert status == INCONCLUSIVE
    assert "8 of 8 totals may be slower by more than 5 %, the most " in line
    more = "three runs of each side show smaller differences (pffbench compare OLD … -- NEW …)"
    assert line.endswith(more)


def gates(runs, factor, limit, starts=1, between=0.05, cases=FORMATS):
    """Return how often which line begins how, where all new runs are slower by one factor."""
    generator, found, ways = np.random.default_rng(11), Counter(), 2 * len(cases)

    def side(slower):
        speeds = np.exp(between * generator.normal(size=(starts, ways, 1)))
        return [
            in_memory(slower * speed * drawn("normal", ways, 14, generator, 0.1), cases)
            for speed in speeds
        ]

    for _ in range(runs):
        sentence = judge(compare_runs(side(1.0), side(factor)), Gate(limit)).sentence
        found[sentence.split(":")[0]] += 1
    return found


def test_an_unchanged_program_does_not_fail_and_passes_with_three_starts():
    assert gates(100, 1.0, 0.2)["FAILED"] <= 3
    found = gates(40, 1.0, 0.2, starts=3)
    assert found["FAILED"] <= 1
    assert found["PASSED"] >= 24


def test_a_slowdown_of_a_half_fails_with_three_starts():
    assert gates(40, 1.5, 0.2, starts=3)["FAILED"] >= 39


@pytest.mark.parametrize("between", [0.02, 0.05])
def test_what_is_slower_by_the_limit_passes_in_five_of_100(between):
    one = dict([a_case("hdf5")])
    assert gates(100, 1.2, 0.2, cases=one, between=between)["PASSED"] <= 10


# --- what is not comparable


def test_too_few_rounds_are_not_compared(make):
    status, line = gated(make(seed=1, repetitions=5), make(seed=2, repetitions=5))
    assert status == WRONG_INPUT
    assert line.endswith("too few rounds: 5 and 5, 7 of each are needed")


def test_one_case_with_too_few_rounds_is_enough_not_to_pass(make):
    old, new = make(seed=1), make(seed=2)
    few = [one for one in read_repetitions(new) if one.round < 6 or "zarr" not in one.case]
    rewrite(new, few)
    status, line = gated(old, new, limit=0.5)
    assert status == WRONG_INPUT
    assert "2 totals not comparable, such as Zarr" in line
    assert gated(old, new, limit=0.5, allow_missing=True)[0] == VALID


def test_a_case_of_the_old_run_that_is_gone_does_not_pass(make):
    fewer = {name: entry for name, entry in CASES.items() if not name.startswith("zarr")}
    old, new = make(seed=1), make(seed=2, cases=fewer)
    status, line = gated(old, new, limit=0.5)
    assert status == WRONG_INPUT
    assert "1 case of the old run missing, such as Zarr" in line
    assert gated(old, new, limit=0.5, allow_missing=True)[0] == VALID
    slower = make(seed=3, cases=fewer, factor=lambda case, _: 1 if "posix" in case else 2)
    assert gated(old, slower)[0] == NOT_VALID


def test_what_is_too_short_to_measure_hides_no_slowdown(make):
    old, new = make(seed=1), make(seed=2, floor=FloorEntry(2e-3, 2e-3, 1e-8))
    status, line = gated(old, new, limit=0.5)
    assert status == VALID
    assert "below resolution in the new run" in line


def test_nothing_comparable_is_no_success(make):
    status, line = gated(make(), make(ranks=8))
    assert status == WRONG_INPUT
    assert line.endswith("nothing is comparable: 4 and 8 ranks")
    status, line = gated(make(), make(cases=dict([a_case("netcdf4")])))
    assert status == WRONG_INPUT
    assert line.endswith("the runs have no case in common")


def test_raw_transfers_next_to_formats_of_one_run_alone_are_no_success(make):
    status, line = gated(make(seed=1), make(seed=2, cases=dict([a_case("posix")])))
    assert status == WRONG_INPUT
    assert line.endswith("the runs have only raw I/O in common, and no case of a format")


# --- the machine


def test_raw_transfers_fail_nothing_and_show_that_the_machine_changed(make):
    slow = make(seed=2, factor=lambda case, _: 1.7 if "posix" in case else 1.0)
    fast = make(seed=3, factor=lambda case, _: 0.5 if "posix" in case else 1.0)
    old = make(seed=1)
    for new in (slow, fast):
        status, line = gated(old, new)
        assert status == MACHINE_CHANGED
        assert line.startswith(f"MACHINE CHANGED: {new}: raw I/O differs by more than 5 %")
        assert "nothing is said of read, page cache and write and close" in line


def test_a_machine_that_changed_says_nothing_of_formats_that_are_slower(make):
    old, changed = make(seed=1), make(seed=2, factor=1.7)
    assert gated(old, changed)[0] == MACHINE_CHANGED
    # A run on a machine that did not change fails, whatever the machine did in another one.
    slower = make(seed=3, factor=lambda case, _: 1.0 if "posix" in case else 1.7)
    assert gated(old, changed, slower)[0] == NOT_VALID


@pytest.mark.parametrize(
    ("raw", "word", "ends"), [(1.35, "UNDECIDED", INCONCLUSIVE), (1.0, "FAILED", NOT_VALID)]
)
def test_a_format_as_slow_as_raw_bytes_that_show_nothing_does_not_fail(make, raw, word, ends):
    """The raw transfers vary too much to show that the machine is slower, and it may be."""
    generator = np.random.default_rng(0)

    def noisy(raw, formats):
        def factor(case, _):
            return raw * float(np.exp(0.3 * generator.normal())) if "posix" in case else formats

        return factor

    old = make(seed=1, factor=noisy(1.0, 1.0))
    status, line = gated(old, make(seed=2, factor=noisy(raw, 1.5)), limit=0.2)
    assert (status, line.split(":")[0]) == (ends, word)
    assert ("as raw I/O may be" in line) == (word == "UNDECIDED")


@pytest.mark.parametrize("drift", sampled([0.05, 0.2], 0.05))
def test_a_disk_that_is_slower_some_nights_fails_no_format_and_hides_no_slow_one(drift):
    """Seven nights, then one: what drifts is common to a format and to raw transfers."""
    generator = np.random.default_rng(3)
    cases = dict([a_case("hdf5"), a_case("posix"), a_case("mpiio")])

    def night(slower):
        disk = np.tile(np.exp(drift * generator.normal(size=(2, 1))), (3, 1))
        each = np.exp(0.03 * generator.normal(size=(6, 1)))
        planted = np.array([[slower]] * 2 + [[1.0]] * 4)
        return in_memory(planted * disk * each * drawn("normal", 6, 20, generator, 0.15), cases)

    def red(slower, nights):
        olds = ([night(1.0) for _ in range(7)] for _ in range(nights))
        found = [judge(compare_runs(old, [night(slower)]), Gate(0.2)) for old in olds]
        return [outcome.status for outcome in found].count(NOT_VALID)

    assert red(1.0, 100) <= 1
    if drift < 0.1:
        assert red(1.5, 40) >= 36


def test_each_total_has_a_control_of_its_own(make):
    """A machine that reads faster than before hides no slower writing, and shows no reading."""

    def planted(name, phase):
        raw = "posix" in name
        return {"write": 1.0 if raw else 1.7, "read": 0.5 if raw else 1.7}.get(phase, 1.0)

    status, line = gated(make(seed=1), make(seed=2, factor=planted), limit=0.2)
    assert status == NOT_VALID
    head, _, tail = line.partition("nothing is said of read, page cache: ")
    assert "write and close" in head
    assert "read, page cache" not in head
    assert "raw I/O, 1 case" in tail


def test_a_total_without_a_control_goes_by_all_of_them(make):
    """Raw transfers here do not read: the machine whose writing changed says nothing of reading."""

    def unread(one):
        if "posix" not in one.case:
            return one
        phases = tuple(times for times in one.phases if times.phase not in READ_PHASES)
        totals = {name: s for name, s in one.totals.items() if name != "read_total"}
        return replace(one, phases=phases, totals=totals, read=None)

    old, new = (edit(make(seed=n, factor=f), unread) for n, f in ((1, 1.0), (2, 1.7)))
    status, line = gated(old, new, limit=0.2)
    assert status == MACHINE_CHANGED, line
    assert "nothing is said of read, page cache and write and close" in line


def test_raw_transfers_alone_are_what_is_judged(make):
    raw = dict([a_case("posix"), a_case("null")])
    old, same, slow = (make(seed=n, cases=raw, factor=f) for n, f in ((1, 1), (2, 1), (3, 1.7)))
    status, line = gated(old, same, limit=0.5)
    assert status == VALID
    assert "of 4 totals" in line
    assert "2 of 2 cases" in line
    assert gated(old, slow, limit=0.1)[0] == NOT_VALID


# --- the command


def test_without_a_gate_the_status_is_0(make):
    assert compare([[make(seed=1)], [make(seed=2, factor=2)]])[0] == 0
    assert compare([[make()], [make(ranks=8)]])[0] == 0


def test_the_worst_of_several_runs_decides(make):
    how = {"cases": FORMATS, "noise": 0.005}
    old, good, bad = make(seed=1, **how), make(seed=2, **how), make(seed=3, factor=1.9, **how)
    few = make(seed=4, repetitions=3, **how)
    assert gated(old, good, limit=0.4)[0] == VALID
    assert gated(old, good, few, limit=0.4)[0] == WRONG_INPUT
    assert gated(old, few, bad, good, limit=0.4)[0] == NOT_VALID
    one = [MeasuredRun.load(old)]
    found = [judge(compare_runs(one, [MeasuredRun.load(n)]), Gate(0.4)) for n in (good, bad, few)]
    said = [outcome.sentence.split(":")[0] for outcome in found]
    assert said == ["PASSED", "FAILED", "NOT COMPARABLE"]


def test_a_run_is_not_compared_with_itself(make):
    run = make()
    with pytest.raises(UserError, match="given twice"):
        compare([[run], [run / ".." / run.name]])


def test_no_run(make, tmp_path):
    with pytest.raises(UserError, match="is not a results directory"):
        compare([[make()], [tmp_path]])


def test_the_command_ends_with_the_status(make, tmp_path):
    slower = {name: 1.0 if entry.raw else 1.7 for name, entry in CASES.items()}
    old, new = make(seed=1), make(seed=2, factor=lambda case, _: slower[case])
    gate = ("--fail-if-slower", "5%", "--out", "out")
    done = pffbench_cli("compare", old.name, new.name, *gate, cwd=tmp_path)
    assert done.status == 1, done.stderr
    assert done.stdout.startswith("FAILED: ")
    text = (tmp_path / "out" / "compare.md").read_text()
    assert text.index("FAILED") < text.index("## ")


@pytest.mark.parametrize("limit", ["5", "0.05", "-5%", "nan%", "5%x"])
def test_a_limit_that_is_no_percentage(make, tmp_path, limit):
    done = pffbench_here("compare", "a", "b", f"--fail-if-slower={limit}", cwd=tmp_path)
    assert done.status == 2
    assert f"'{limit}' is not a percentage such as 5%" in done.stderr
