"""`pffbench compare --fail-if-slower`: which runs pass, which fail, and where it cannot tell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

pytest.importorskip("pandas")

from rich.console import Console

from drawn_times import drawn
from pffbench.errors import INCONCLUSIVE, MACHINE_CHANGED, NOT_VALID, VALID, WRONG_INPUT, UserError
from pffbench_analysis.compare import compare, compare_runs
from pffbench_analysis.compare.sentences import gate, verdict_lines
from pffbench_analysis.runs import Run
from timed_runs import CASES, FORMATS, Maker, a_case, in_memory


@pytest.fixture
def make(tmp_path):
    return Maker(tmp_path)


def status(base, *new, **how):
    """Run the whole command in this process; return its status and its last line."""
    console = Console(record=True, width=200, file=open(os.devnull, "w"))  # noqa: SIM115
    code, _ = compare(base, new, console=console, **how)
    return code, console.export_text().splitlines()[-1]


# --- passed and failed


def test_slower_than_allowed_fails_and_names_what(make):
    new = make(seed=2, noise=0.005, factor=lambda case, _: 1.2 if "gzip" in case else 1.0)
    code, line = status(make(seed=1, noise=0.005), new, allowed=0.05)
    assert code == NOT_VALID
    assert line.startswith("FAILED: ")
    assert "is slower by more than 5 %" in line
    assert re.search(r"gzip: (write|read)_total takes 1\.[12]\d times as long", line)


def test_slower_by_less_than_allowed_passes(make):
    base, new = make(seed=1, noise=0.005), make(seed=2, noise=0.005, factor=1.03)
    code, line = status(base, new, allowed=0.05)
    assert code == VALID
    assert line == (
        f"PASSED: {new}: each of 8 totals is shown not to be slower by more than 5 %; 3 of 3 cases "
        "of the base run were compared"
    )
    formats = make(seed=1, noise=0.005, cases=FORMATS)
    slower = make(seed=2, noise=0.005, cases=FORMATS, factor=1.03)
    assert status(formats, slower, allowed=0.0)[0] == NOT_VALID


def test_a_speedup_passes(make):
    base, new = make(seed=1, cases=FORMATS), make(seed=2, cases=FORMATS, factor=0.8)
    assert status(base, new, allowed=0.05)[0] == VALID


def test_single_phases_fail_nothing(make):
    """They tell where a difference comes from; what is moved from one to the other is not lost."""
    usual = {"close": 3.0, "write": 0.5}
    new = make(seed=2, noise=0.005, factor=lambda _, phase: usual.get(phase, 1.0))
    assert status(make(seed=1, noise=0.005), new, allowed=0.05)[0] == VALID


def test_the_whole_interval_must_be_beyond_what_is_allowed(make):
    base = make(seed=1, noise=0.04, cases=FORMATS)
    new = make(seed=2, noise=0.04, cases=FORMATS, factor=1.07)
    found = compare_runs(Run.load(base), Run.load(new))
    reaching = [p for p in found.gated if p.ratio > 1.05 and p.low <= 1.05]
    assert reaching
    assert not any(pair.slower_than(0.05) for pair in reaching)


def gates(runs, noise, factor, cases=FORMATS, limit=0.05, repetitions=14, cv=0.2):
    """Return how often which status comes out, where all new runs are slower by one factor."""
    generator, found, ways = np.random.default_rng(11), Counter(), 2 * len(cases)
    for _ in range(runs):
        base, new = (drawn(noise, ways, repetitions, generator, cv) for _ in range(2))
        pair = in_memory(base, cases), in_memory(factor * new, cases)
        found[gate([compare_runs(*pair)], limit)[0]] += 1
    return found


def test_what_is_slower_by_just_the_limit_fails_in_five_of_100():
    assert gates(150, "normal", 1.05)[NOT_VALID] <= 12


@pytest.mark.parametrize(
    "noise",
    ["two modes", *(pytest.param(n, marks=pytest.mark.slow) for n in ("normal", "outliers"))],
)
def test_equal_runs_fail_in_five_of_100_even_where_nothing_is_allowed(noise):
    assert gates(150, noise, 1.0, limit=0.0)[NOT_VALID] <= 12


def test_equal_runs_with_dependent_repetitions_fail_in_ten_of_100():
    assert gates(150, "dependent", 1.0, limit=0.0)[NOT_VALID] <= 15


def test_what_is_slower_by_just_the_limit_passes_in_five_of_100():
    one = dict([a_case("hdf5")])
    found = gates(150, "normal", 1.05, one, cv=0.05)
    assert found[VALID] <= 12
    # And it is not that nothing ever passes.
    assert gates(50, "normal", 1.0, one, cv=0.03)[VALID] >= 40


# --- too few to tell


def test_what_may_be_slower_does_not_pass_and_says_what_would_decide(make):
    base, new = make(seed=1, noise=0.15), make(seed=2, noise=0.15)
    code, line = status(base, new, allowed=0.05)
    assert code == INCONCLUSIVE
    found = re.search(
        r"INCONCLUSIVE: .*: \d of 8 totals may be slower by more than 5 %, such as .* times as "
        r"long \(95 % interval .*\)\. These repetitions show a slowdown of (\d+) % or more; "
        r"(?:about|more than) (\d+) of each run would decide$",
        line,
    )
    assert found, line
    assert 15 <= int(found[1]) <= 60
    assert int(found[2]) > 10


def test_the_repetitions_that_would_decide_do():
    """About 130 by the spread that is planted; few repetitions tell that spread only roughly."""
    generator, one, needed = np.random.default_rng(12), dict([a_case("hdf5")]), []
    for _ in range(30):
        base, new = (drawn("normal", 2, 20, generator, cv=0.3) for _ in range(2))
        new *= (np.median(base, axis=1) / np.median(new, axis=1))[:, None]  # the ratio seen is 1
        code, (line,) = gate([compare_runs(in_memory(base, one), in_memory(new, one))], 0.1)
        assert code == INCONCLUSIVE
        needed.append(int(re.search(r"about (\d+) of each run would decide", line)[1]))
    usual = int(np.median(needed))
    assert 90 < usual < 300
    how = {"limit": 0.1, "cv": 0.3}
    assert gates(40, "normal", 1.0, one, repetitions=usual, **how)[VALID] >= 20
    assert gates(40, "normal", 1.0, one, repetitions=20, **how)[VALID] <= 8


def test_too_few_repetitions_neither_pass_nor_fail(make):
    code, line = status(make(seed=1, repetitions=5), make(seed=2, repetitions=5), allowed=0.05)
    assert code == INCONCLUSIVE
    assert "6 totals have too few repetitions to show anything" in line
    assert line.endswith("write_total (5 and 5); at least 7 of each run are needed")
    assert status(make(seed=1, repetitions=3), make(factor=9, repetitions=3), allowed=0.05)[0] == 4


def test_seven_repetitions_are_enough_for_what_is_plain(make):
    base, new = make(seed=1, repetitions=7), make(seed=2, repetitions=7)
    slow = make(seed=3, repetitions=7, factor=lambda case, _: 1 if "posix" in case else 1.5)
    assert status(base, new, allowed=0.1)[0] == VALID
    assert status(base, slow, allowed=0.1)[0] == NOT_VALID


def test_one_case_with_too_few_repetitions_is_enough_not_to_pass(make):
    base, new = make(seed=1), make(seed=2)
    path = new / "samples.csv"
    rows = path.read_text().splitlines(keepends=True)
    first = {"zarr": range(1, 6)}
    kept = [r for r in rows if not r.startswith("zarr") or int(r.split(",")[1]) in first["zarr"]]
    path.write_text("".join(kept))
    code, line = status(base, new, allowed=0.1)
    assert code == INCONCLUSIVE
    assert "2 totals have too few repetitions" in line
    assert "zarr" in line


# --- the machine


def test_raw_transfers_fail_nothing_and_tell_that_the_machine_changed(make):
    slow = make(seed=2, factor=lambda case, _: 1.5 if "posix" in case else 1.0)
    fast = make(seed=3, factor=lambda case, _: 0.6 if "posix" in case else 1.0)
    base = make(seed=1)
    for new in (slow, fast):
        code, line = status(base, new, allowed=0.05)
        assert code == MACHINE_CHANGED
        assert line.startswith(f"MACHINE CHANGED: raw bytes of {new} differ by more than 5 %")
        assert "nothing is said of the software" in line


def test_a_machine_that_changed_says_nothing_of_formats_that_are_slower(make):
    base, changed = make(seed=1), make(seed=2, factor=1.5)
    assert status(base, changed, allowed=0.05)[0] == MACHINE_CHANGED
    # A run on a machine that did not change fails, whatever the machine did in another one.
    slower = make(seed=3, factor=lambda case, _: 1.0 if "posix" in case else 1.5)
    assert status(base, changed, slower, allowed=0.05)[0] == NOT_VALID


def test_raw_transfers_alone_are_what_is_judged(make):
    raw = dict([a_case("posix"), a_case("null")])
    base, same, slow = (make(seed=n, cases=raw, factor=f) for n, f in ((1, 1), (2, 1), (3, 1.5)))
    code, line = status(base, same, allowed=0.1)
    assert code == VALID
    assert "each of 4 totals" in line
    assert "2 of 2 cases" in line
    assert status(base, slow, allowed=0.1)[0] == NOT_VALID


def test_raw_transfers_beside_formats_of_one_run_alone_are_no_success(make):
    """The format that was to be judged is gone; that the raw transfers are well is no answer."""
    raw = dict([a_case("posix")])
    code, line = status(make(seed=1), make(seed=2, cases=raw), allowed=0.05)
    assert code == WRONG_INPUT
    assert line.endswith("the runs have only raw bytes in common, and no case of a format")
    told = verdict_lines(compare_runs(Run.load(make(seed=3)), Run.load(make(seed=4, cases=raw))))
    assert "cases × phases: no case of a format is in both runs" in told


# --- nothing comparable


def test_nothing_comparable_is_no_success(make):
    code, line = status(make(), make(ranks=8), allowed=0.05)
    assert code == WRONG_INPUT
    assert line.startswith("NOT COMPARABLE: ")
    assert line.endswith("nothing is comparable: 4 and 8 ranks")
    code, line = status(make(), make(cases=dict([a_case("netcdf4")])), allowed=0.05)
    assert code == WRONG_INPUT
    assert line.endswith("the runs have no case in common")


def test_the_reason_is_that_of_the_totals(make):
    """Four of six phases are below resolution here, which is not why nothing can be judged."""
    coarse = {"own": 1e-3, "synced": 1e-3, "tick": 1e-8}
    how = {"cases": FORMATS, "floor": coarse, "valid": True}
    base, new = make(seed=1, **how), make(seed=2, nbytes=1, **how)
    code, line = status(base, new, allowed=0.05)
    assert code == WRONG_INPUT
    assert line.endswith("nothing is comparable: 8388608 and 1 bytes")


def test_totals_that_are_left_out_are_named_where_a_run_passes(make):
    base, new = (make(seed=n, noise=0.005, cache="unproved") for n in (1, 2))
    code, line = status(base, new, allowed=0.05)
    assert code == VALID
    assert line.endswith(
        "3 of 3 cases of the base run were compared; 3 totals are not comparable: state of the "
        "page cache not proved in the base and the new run"
    )


def test_without_a_limit_the_status_is_0(make):
    assert status(make(seed=1), make(seed=2, factor=2))[0] == 0
    assert status(make(), make(ranks=8))[0] == 0


def test_the_worst_of_several_runs_decides(make):
    how = {"cases": FORMATS, "noise": 0.005}
    base, good, bad = make(seed=1, **how), make(seed=2, **how), make(seed=3, factor=1.5, **how)
    few = make(seed=4, repetitions=3, **how)
    assert status(base, good, allowed=0.05)[0] == VALID
    assert status(base, good, few, allowed=0.05)[0] == INCONCLUSIVE
    assert status(base, few, bad, good, allowed=0.05)[0] == NOT_VALID
    found = [compare_runs(Run.load(base), Run.load(new)) for new in (good, bad, few)]
    said = [line.split(":")[0] for line in gate(found, 0.05)[1]]
    assert said == ["PASSED", "FAILED", "INCONCLUSIVE"]


def test_a_run_is_not_compared_with_itself(make):
    run = make()
    with pytest.raises(UserError, match="given twice"):
        compare(run, [run / ".." / run.name])


def test_no_run(make, tmp_path):
    with pytest.raises(UserError, match="no results directory"):
        compare(make(), [tmp_path])


# --- the command


def command(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "pffbench", "compare", *arguments], cwd=cwd, capture_output=True,
        text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip


def test_the_command_ends_with_the_status(make, tmp_path):
    slower = {name: 1.0 if entry["raw"] else 1.5 for name, entry in CASES.items()}
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
