"""`pffbench compare --fail-if-slower`: which runs pass, which fail, and where it cannot tell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from pffbench_analysis.runs import Run
from rich.console import Console

from drawn_times import drawn
from launch import sampled
from pffbench.errors import INCONCLUSIVE, MACHINE_CHANGED, NOT_VALID, VALID, WRONG_INPUT, UserError
from pffbench.phases import READ_PHASES
from pffbench_analysis.compare import Gate, compare, compare_runs
from pffbench_analysis.compare.gate import judge
from pffbench_analysis.compare.sentences import verdict_lines
from timed_runs import CASES, FORMATS, Maker, a_case, in_memory

pytestmark = pytest.mark.long


@pytest.fixture
def make(tmp_path):
    return Maker(tmp_path)


def status(base, *new, limit=0.05, **how):
    """Run the whole command in this process; return its status and its last line."""
    console = Console(record=True, width=200, file=open(os.devnull, "w"))  # noqa: SIM115
    sides = [[base], *([run] for run in new)]
    code, _ = compare(sides, console=console, gate=Gate(limit, **how))
    return code, console.export_text().splitlines()[-1]


# --- passed and failed


def test_slower_than_allowed_fails_and_names_what(make):
    new = make(seed=2, noise=0.005, factor=lambda case, _: 1.7 if "gzip" in case else 1.0)
    code, line = status(make(seed=1, noise=0.005), new)
    assert code == NOT_VALID
    assert line.startswith("FAILED: ")
    assert "is slower by more than 5 %" in line
    assert re.search(r"gzip: (write|read)_total takes 1\.[67]\d times as long", line)


def test_what_is_shown_to_be_slower_by_less_than_allowed_does_not_fail(make):
    slower = {name: 1.0 if entry["raw"] else 1.6 for name, entry in CASES.items()}
    base = make(seed=1, noise=0.005)
    new = make(seed=2, noise=0.005, factor=lambda case, _: slower[case])
    assert status(base, new, limit=0.55)[0] == NOT_VALID
    code, line = status(base, new, limit=0.7)
    assert code == VALID
    assert line.startswith("SLOWER WITHIN THE LIMIT: ")
    assert "8 totals are shown to be slower, by no more than 70 %" in line
    assert "no total is shown to be slower" not in line


def test_each_total_shown_to_be_within_what_is_allowed_passes(make):
    base, new = make(seed=1, noise=0.005), make(seed=2, noise=0.005, factor=1.03)
    code, line = status(base, new, limit=0.5)
    assert code == VALID
    assert line == (
        f"PASSED: {new}: each of 8 totals is shown not to be slower by more than 50 %; 3 of 3 "
        "cases of the base run were compared"
    )
    assert status(base, new, limit=0.5, strict=True)[0] == VALID


def test_a_speedup_passes(make):
    base, new = make(seed=1, cases=FORMATS), make(seed=2, cases=FORMATS, factor=0.5)
    assert status(base, new)[1].startswith("PASSED")


def test_single_phases_fail_nothing(make):
    """They tell where a difference comes from; what is moved from one to the other is not lost."""
    usual = {"close": 3.0, "write": 0.5}
    new = make(seed=2, noise=0.005, factor=lambda _, phase: usual.get(phase, 1.0))
    assert status(make(seed=1, noise=0.005), new)[0] == VALID


def gates(runs, factor, gate, starts=1, between=0.05, cases=FORMATS, cv=0.1):
    """Return how often which line begins how, where all new runs are slower by one factor."""
    generator, found, ways = np.random.default_rng(11), Counter(), 2 * len(cases)

    def side(slower):
        speeds = np.exp(between * generator.normal(size=(starts, ways, 1)))
        return [
            in_memory(slower * speed * drawn("normal", ways, 14, generator, cv), cases)
            for speed in speeds
        ]

    for _ in range(runs):
        _, (line,) = judge([compare_runs(side(1.0), side(factor))], gate)
        found[line.split(":")[0]] += 1
    return found


def test_an_unchanged_program_is_green_night_after_night():
    found = gates(100, 1.0, Gate(0.2))
    assert found["FAILED"] <= 3
    assert found["PASSED"] + found["NO SLOWDOWN SHOWN"] >= 97


def test_a_slowdown_of_a_half_is_red_against_several_nights():
    assert gates(40, 1.5, Gate(0.2), starts=3)["FAILED"] >= 39


@pytest.mark.parametrize("between", [0.02, 0.05, 0.08])
def test_what_is_slower_by_the_limit_passes_in_five_of_100(between):
    one = dict([a_case("hdf5")])
    assert gates(100, 1.2, Gate(0.2), cases=one, between=between)["PASSED"] <= 10
    # And it is not that nothing ever passes.
    assert gates(40, 1.0, Gate(0.4), cases=one, starts=3, between=between)["PASSED"] >= 30


# --- nothing shown


def test_what_may_be_slower_says_what_would_have_been_seen(make):
    base, new = make(seed=1, noise=0.15), make(seed=2, noise=0.15)
    code, line = status(base, new)
    assert code == VALID
    found = re.search(
        r"NO SLOWDOWN SHOWN: .*: no total is shown to be slower, and a slowdown of (\d+) % or more "
        r"would have been; \d of 8 totals may be slower by more than 5 %, such as .* times as long "
        r"\(interval .*\)\. More runs of each side show less .*; 3 of 3 cases",
        line,
    )
    assert found, line
    assert 25 <= int(found[1]) <= 80
    code, line = status(base, new, strict=True)
    assert code == INCONCLUSIVE
    assert line.startswith("INCONCLUSIVE: ")


def test_too_few_repetitions_are_not_compared(make):
    code, line = status(make(seed=1, repetitions=5), make(seed=2, repetitions=5))
    assert code == WRONG_INPUT
    assert line.endswith("too few repetitions: 5 and 5, 7 of each are needed")


def test_one_case_with_too_few_repetitions_is_enough_not_to_pass(make):
    base, new = make(seed=1), make(seed=2)
    path = new / "samples.csv"
    rows = path.read_text().splitlines(keepends=True)
    kept = [r for r in rows if not r.startswith("zarr") or int(r.split(",")[1]) in range(1, 6)]
    path.write_text("".join(kept))
    code, line = status(base, new)
    assert code == WRONG_INPUT
    assert "2 totals are not comparable, such as zarr" in line
    assert "(too few repetitions: 10 and 5, 7 of each are needed)" in line
    assert status(base, new, allow_missing=True)[0] == VALID


def test_a_case_of_the_base_that_is_gone_does_not_pass(make):
    fewer = {name: entry for name, entry in CASES.items() if not name.startswith("zarr")}
    base, new = make(seed=1), make(seed=2, cases=fewer)
    code, line = status(base, new)
    assert code == WRONG_INPUT
    assert "1 case of the base run is missing, such as zarr" in line
    assert status(base, new, allow_missing=True)[0] == VALID
    slower = make(seed=3, cases=fewer, factor=lambda case, _: 1 if "posix" in case else 2)
    assert status(base, slower)[0] == NOT_VALID


def test_what_is_too_short_to_measure_hides_no_slowdown(make):
    floor = {"own": 1e-3, "synced": 1e-3, "tick": 1e-8}
    base, new = make(seed=1), make(seed=2, floor={**floor, "own": 2e-3})
    code, line = status(base, new)
    assert code == VALID
    assert "are not comparable: below resolution in the base and the new run" in line or (
        "not comparable: below resolution in the new run" in line
    )


# --- the machine


def test_raw_transfers_fail_nothing_and_tell_that_the_machine_changed(make):
    slow = make(seed=2, factor=lambda case, _: 1.7 if "posix" in case else 1.0)
    fast = make(seed=3, factor=lambda case, _: 0.5 if "posix" in case else 1.0)
    base = make(seed=1)
    for new in (slow, fast):
        code, line = status(base, new, limit=0.05)
        assert code == MACHINE_CHANGED
        assert line.startswith(f"MACHINE CHANGED: raw bytes of {new} differ by more than 5 %")
        assert "nothing is said of write_total and read_total: " in line


def test_a_machine_that_changed_says_nothing_of_formats_that_are_slower(make):
    base, changed = make(seed=1), make(seed=2, factor=1.7)
    assert status(base, changed, limit=0.05)[0] == MACHINE_CHANGED
    # A run on a machine that did not change fails, whatever the machine did in another one.
    slower = make(seed=3, factor=lambda case, _: 1.0 if "posix" in case else 1.7)
    assert status(base, changed, slower, limit=0.05)[0] == NOT_VALID


@pytest.mark.parametrize(
    ("raw", "head", "ends"), [(1.25, "MACHINE PERHAPS CHANGED", MACHINE_CHANGED),
                              (1.0, "FAILED", NOT_VALID)],
)  # fmt: skip
def test_a_format_as_slow_as_raw_bytes_that_show_nothing_does_not_fail(make, raw, head, ends):
    """The raw transfers vary too much to show that the machine is slower, and it may be."""
    generator = np.random.default_rng(0)

    def noisy(raw, formats):
        def factor(case, _):
            return raw * float(np.exp(0.3 * generator.normal())) if "posix" in case else formats

        return factor

    base = make(seed=1, factor=noisy(1.0, 1.0))
    code, line = status(base, make(seed=2, factor=noisy(raw, 1.4)), limit=0.2)
    assert (code, line.split(":")[0]) == (ends, head)
    undecided = "Whether the machine is, too, is not decided: raw bytes, 1 case: "
    assert (undecided in line) == (head != "FAILED")


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
        bases = ([night(1.0) for _ in range(7)] for _ in range(nights))
        found = [judge([compare_runs(base, [night(slower)])], Gate(0.2)) for base in bases]
        return [status for status, _ in found].count(NOT_VALID)

    assert red(1.0, 100) <= 1
    if drift < 0.1:
        assert red(1.5, 40) >= 38


def test_each_total_has_a_control_of_its_own(make):
    """A machine that reads faster than before hides no slower writing, and shows no reading."""

    def planted(name, phase):
        raw = "posix" in name
        return {"write": 1.0 if raw else 1.7, "read": 0.5 if raw else 1.7}.get(phase, 1.0)

    code, line = status(make(seed=1), make(seed=2, factor=planted), limit=0.2)
    assert code == NOT_VALID
    head, _, tail = line.partition("Nothing is said of read_total: ")
    assert "write_total takes" in head
    assert "read_total takes" not in head
    assert "raw bytes of" in tail


def test_a_total_without_a_control_goes_by_all_of_them(make):
    """Raw transfers here do not read: the machine whose writing changed says nothing of reading."""
    base, new = make(seed=1), make(seed=2, factor=1.7)
    for run in (base, new):
        path = run / "samples.csv"
        rows = path.read_text().splitlines(keepends=True)
        reads = set(READ_PHASES)
        kept = [r for r in rows if not (r.startswith("posix") and reads & set(r.split(",")))]
        assert len(kept) < len(rows)
        path.write_text("".join(kept))
    code, line = status(base, new, limit=0.2)
    assert code == MACHINE_CHANGED, line
    assert "nothing is said of write_total and read_total: " in line


def test_raw_transfers_alone_are_what_is_judged(make):
    raw = dict([a_case("posix"), a_case("null")])
    base, same, slow = (make(seed=n, cases=raw, factor=f) for n, f in ((1, 1), (2, 1), (3, 1.7)))
    code, line = status(base, same, limit=0.1)
    assert code == VALID
    assert "of 4 totals" in line
    assert "2 of 2 cases" in line
    assert status(base, slow, limit=0.1)[0] == NOT_VALID


def test_raw_transfers_beside_formats_of_one_run_alone_are_no_success(make):
    """The format that was to be judged is gone; that the raw transfers are well is no answer."""
    raw = dict([a_case("posix")])
    code, line = status(make(seed=1), make(seed=2, cases=raw), limit=0.05)
    assert code == WRONG_INPUT
    assert line.endswith("the runs have only raw bytes in common, and no case of a format")
    one, other = Run.load(make(seed=3)), Run.load(make(seed=4, cases=raw))
    told = verdict_lines(compare_runs([one], [other]))
    assert "cases × phases: no case of a format is in both runs" in told


# --- nothing comparable


def test_nothing_comparable_is_no_success(make):
    code, line = status(make(), make(ranks=8), limit=0.05)
    assert code == WRONG_INPUT
    assert line.startswith("NOT COMPARABLE: ")
    assert line.endswith("nothing is comparable: 4 and 8 ranks")
    code, line = status(make(), make(cases=dict([a_case("netcdf4")])), limit=0.05)
    assert code == WRONG_INPUT
    assert line.endswith("the runs have no case in common")


def test_the_reason_is_that_of_the_totals(make):
    """Four of six phases are below resolution here, which is not why nothing can be judged."""
    coarse = {"own": 1e-3, "synced": 1e-3, "tick": 1e-8}
    how = {"cases": FORMATS, "floor": coarse, "valid": True}
    base, new = make(seed=1, **how), make(seed=2, nbytes=1, **how)
    code, line = status(base, new, limit=0.05)
    assert code == WRONG_INPUT
    assert line.endswith("nothing is comparable: 8388608 and 1 bytes")


def test_reads_of_an_unknown_cache_do_not_pass(make):
    base, new = (make(seed=n, noise=0.005, cache="unproved") for n in (1, 2))
    code, line = status(base, new)
    assert code == WRONG_INPUT
    assert "3 totals are not comparable" in line
    assert "state of the page cache not proved in the base and the new run" in line
    code, line = status(base, new, limit=0.5, allow_missing=True)
    assert code == VALID
    assert line.endswith(
        "3 of 3 cases of the base run were compared; 3 totals are not comparable: state of the "
        "page cache not proved in the base and the new run"
    )


def test_without_a_gate_the_status_is_0(make):
    assert compare([[make(seed=1)], [make(seed=2, factor=2)]])[0] == 0
    assert compare([[make()], [make(ranks=8)]])[0] == 0


def test_the_worst_of_several_runs_decides(make):
    how = {"cases": FORMATS, "noise": 0.005}
    base, good, bad = make(seed=1, **how), make(seed=2, **how), make(seed=3, factor=1.7, **how)
    few = make(seed=4, repetitions=3, **how)
    assert status(base, good)[0] == VALID
    assert status(base, good, few)[0] == WRONG_INPUT
    assert status(base, few, bad, good)[0] == NOT_VALID
    one = [Run.load(base)]
    found = [compare_runs(one, [Run.load(new)]) for new in (good, bad, few)]
    said = [line.split(":")[0] for line in judge(found, Gate(0.4))[1]]
    assert said == ["PASSED", "FAILED", "NOT COMPARABLE"]


def test_a_run_is_not_compared_with_itself(make):
    run = make()
    with pytest.raises(UserError, match="given twice"):
        compare([[run], [run / ".." / run.name]])


def test_no_run(make, tmp_path):
    with pytest.raises(UserError, match="no results directory"):
        compare([[make()], [tmp_path]])


# --- the command


def command(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "pffbench", "compare", *arguments], cwd=cwd, capture_output=True,
        text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip


def test_the_command_ends_with_the_status(make, tmp_path):
    slower = {name: 1.0 if entry["raw"] else 1.7 for name, entry in CASES.items()}
    base, new = make(seed=1), make(seed=2, factor=lambda case, _: slower[case])
    done = command(base, new, "--fail-if-slower", "5%", "--out", "out", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines()[-1].startswith("FAILED: ")
    text = (tmp_path / "out" / "compare.md").read_text()
    assert text.index("FAILED") < text.index("## ")


@pytest.mark.parametrize("limit", ["5", "0.05", "-5%", "nan%", "5%x"])
def test_a_limit_that_is_no_percentage(make, tmp_path, limit):
    done = command("a", "b", f"--fail-if-slower={limit}", cwd=tmp_path)
    assert done.returncode == 2
    assert f"'{limit}' is not a percentage such as 5%" in done.stderr
