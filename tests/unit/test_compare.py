"""`pffbench compare` on runs whose truth is known: what it tells, refuses and writes."""

from __future__ import annotations

import csv
import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("pandas")

from PIL import Image
from rich.console import Console

from pffbench.errors import UserError
from pffbench.results.record import RunRecord
from pffbench.results.samples import Sample, SamplesLog
from pffbench_analysis.compare import Verdict, compare, compare_runs
from pffbench_analysis.compare.inference import estimate
from pffbench_analysis.runs import load_run

PHASES = {"create": 0.01, "write": 0.2, "close": 0.05, "open": 0.01, "read": 0.1, "remove": 0.02}
BYTES = 8 * 2**20


def a_case(backend, codec="none", **more):
    parameters = {
        "workload": "hyperslab", "backend": backend, "layout": "shared", "transfer": "independent",
        "settings": "matched", "codec": codec, "durability": "close", "cache": "warm",
    } | more  # fmt: skip
    digest = "-".join(str(value) for value in (codec, *more.values()))
    entry = {
        "parameters": parameters, "options": {}, "group": "hyperslab.shared.0",
        "raw": backend == "posix", "verified": True, "cost": {"nbytes": BYTES},
    }  # fmt: skip
    return f"{backend}.hyperslab.shared.independent.matched.{digest}", entry


CASES = dict([a_case("hdf5"), a_case("hdf5", "gzip"), a_case("zarr"), a_case("posix")])


class Maker:
    """Writes results directories through the classes that write real ones."""

    def __init__(self, directory):
        self.directory = directory
        self.number = 0

    def __call__(
        self, *, seed=0, factor=1.0, noise=0.02, repetitions=5, cases=CASES, ranks=4, nodes=1,
        nbytes=BYTES, cache="warm", **record,
    ):  # fmt: skip
        """Make a run; `factor` is a number, or a function of case and phase."""
        self.number += 1
        directory = self.directory / f"run{self.number}"
        directory.mkdir()
        given = {
            "run_id": f"some-{self.number}", "name": "some", "question": "", "command": [],
            "ranks": ranks, "started": "2026-01-01T12:00:00+00:00", "experiment": {},
            "experiment_file": "some.yaml", "cases": dict(cases), "left_out": [], "scratch": "",
            "topology": {"nodes": list(range(nodes))}, "startup": {}, "provenance": {},
            "floor": {"own": 1e-6, "synced": 1e-6, "tick": 1e-8}, "status": "finished", "valid": True,
        }  # fmt: skip
        RunRecord(**(given | record)).save(directory)
        generator = np.random.default_rng(seed)
        rows = []
        for repetition in range(repetitions + 1):
            for name, entry in cases.items():
                for phase, usual in PHASES.items():
                    told = factor(name, phase) if callable(factor) else factor
                    seconds = usual * told * float(np.exp(noise * generator.normal()))
                    rows.append(
                        a_sample(
                            name, entry, repetition, phase, seconds, ranks, nodes, nbytes, cache
                        )
                    )
        SamplesLog(str(directory / "samples.csv")).append(rows)
        return directory


def a_sample(name, entry, repetition, phase, seconds, ranks, nodes, nbytes, cache):
    p = entry["parameters"]
    return Sample(
        case=name, repetition=repetition, warmup=repetition == 0, position=0, phase=phase,
        backend=p["backend"], workload=p["workload"], layout=p["layout"], transfer=p["transfer"],
        settings=p["settings"], group=entry["group"], ranks=ranks, nodes=nodes, arrays=4,
        operations=1, bytes=nbytes if phase in ("write", "read") else 0, own_max=seconds,
        own_median=seconds, own_min=seconds, synced_max=seconds, slowest_rank=0, slowest_host="a",
        below_resolution=False, cache=cache if phase == "read" else "",
        resident=1.0 if phase == "read" else None, verified_bytes=None, peak_memory=1,
        disk_bytes=None, disk_files=None, valid=True, started="2026-01-01T12:00:00.000+00:00",
    )  # fmt: skip


@pytest.fixture
def make(tmp_path):
    return Maker(tmp_path)


def compared(base, new, **how):
    return compare_runs(load_run(base), load_run(new), **how)


def status(base, *new, **how):
    """Run the whole command in this process; return status and what it printed."""
    console = Console(record=True, width=200, file=open(os.devnull, "w"))  # noqa: SIM115
    code, _ = compare(base, new, console=console, **how)
    return code, console.export_text()


# --- what it tells


def test_a_planted_slowdown_is_told_with_an_interval_that_covers_it(make):
    new = make(seed=2, factor=lambda _, phase: 1.1 if phase == "write" else 1.0, noise=0.005)
    found = compared(make(seed=1, noise=0.005), new)
    for pair in found.pairs:
        if pair.phase == "write":
            assert pair.verdict is Verdict.SLOWER
            assert pair.low <= 1.1 <= pair.high
        elif pair.phase == "write_total":
            assert pair.verdict is Verdict.SLOWER
            assert pair.low <= 0.28 / 0.26 <= pair.high
        else:
            assert pair.verdict is Verdict.SAME, pair


def test_a_speedup_is_no_slowdown(make):
    found = compared(make(seed=1), make(seed=2, factor=0.8))
    assert {pair.verdict for pair in found.pairs} == {Verdict.FASTER}
    assert status(found.base.directory, found.new.directory, allowed=0.05)[0] == 0


def test_no_difference_is_called_none_in_95_of_100_comparisons(make):
    quiet = sum(
        not any(pair.told for pair in found.pairs + found.overall)
        for found in (
            compared(make(seed=2 * n, noise=0.1), make(seed=2 * n + 1, noise=0.1))
            for n in range(100)
        )
    )
    assert quiet >= 95


@pytest.mark.parametrize("shape", ["normal", "skewed", "outliers"])
def test_the_interval_of_five_repetitions_holds_the_truth_in_95_percent(shape):
    generator = np.random.default_rng(5)

    def times(factor):
        size = (2000, 5)
        x = 0.1 * generator.normal(size=size)
        if shape == "skewed":
            x = 0.1 * generator.exponential(size=size)
        if shape == "outliers":
            x += generator.random(size) < 0.1
        return factor * np.exp(x)

    found = estimate(list(zip(times(1), times(1.1), strict=True)))
    held = np.mean([one.low <= 1.1 <= one.high for one in found])
    assert 0.95 <= held <= 0.985


@pytest.mark.parametrize("sizes", [(5, 5), (6, 9), (20, 8)])
def test_the_interval_is_the_bootstrap_of_scipy(sizes):
    from scipy.stats import bootstrap

    generator = np.random.default_rng(3)
    base, new = (np.exp(0.1 * generator.normal(size=n)) for n in sizes)
    (mine,) = estimate([(base, new)])
    theirs = bootstrap(
        (base, new), lambda x, y, axis: np.median(y, axis=axis) / np.median(x, axis=axis),
        vectorized=True, method="percentile", n_resamples=20000, rng=1,
    ).confidence_interval  # fmt: skip
    assert (mine.low, mine.high) == pytest.approx((theirs.low, theirs.high), rel=0.01)


def test_many_comparisons_make_no_verdict_by_chance():
    generator = np.random.default_rng(7)
    wrong = single = 0
    for _ in range(100):
        times = np.exp(0.2 * generator.normal(size=(2, 200, 5)))
        p = [one.p for one in estimate(list(zip(*times, strict=True)))]
        single += min(p) <= 0.05
        wrong += min(adjusted(p)) <= 0.05
    assert single == 100
    assert wrong <= 8


def test_a_small_difference_is_no_verdict_but_can_be_made_one(make):
    base, new = make(seed=1, noise=1e-4), make(seed=2, noise=1e-4, factor=1.01)
    assert {p.verdict for p in compared(base, new).pairs} == {Verdict.SAME}
    assert {p.reason for p in compared(base, new).pairs} == {"less than 2 %"}
    assert {p.verdict for p in compared(base, new, smallest=0.005).pairs} == {Verdict.SLOWER}


def test_times_that_never_vary_leave_no_doubt(make):
    base = make(noise=0)
    assert {p.verdict for p in compared(base, make(noise=0)).pairs} == {Verdict.SAME}
    assert {p.verdict for p in compared(base, make(noise=0, factor=1.1)).pairs} == {Verdict.SLOWER}


def test_the_same_runs_give_the_same_numbers(make):
    base, new = make(seed=1), make(seed=2)
    assert compared(base, new).pairs == compared(base, new).pairs


def test_backends_are_compared_over_their_cases(make):
    new = make(seed=2, factor=lambda case, _: 1.2 if case.startswith("hdf5") else 1.0)
    overall = {(p.case.label, p.phase): p for p in compared(make(seed=1), new).overall}
    assert set(overall) == {
        (label, f"{part}_total")
        for label in ("hdf5, 2 cases", "raw bytes, 1 case")
        for part in ("write", "read")
    }
    slower = overall["hdf5, 2 cases", "write_total"]
    assert slower.verdict is Verdict.SLOWER
    assert slower.low <= 1.2 <= slower.high
    assert overall["raw bytes, 1 case", "write_total"].verdict is Verdict.SAME


def test_raw_bytes_tell_whether_the_machine_changed(make):
    base = make(seed=1)
    assert "no change of the machine itself is shown" in status(base, make(seed=2))[1]
    text = status(base, make(seed=3, factor=1.3))[1]
    assert "the machine itself changed: raw bytes take 1.3" in text
    formats = {name: entry for name, entry in CASES.items() if not entry["raw"]}
    assert "the machine itself: not known" in status(base, make(cases=formats))[1]


# --- what it refuses


def refused(found):
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
        ({"repetitions": 4}, "too few repetitions: 5 and 4, 5 of each are needed"),
        (
            {"floor": {"own": 0.1, "synced": 0.1, "tick": 1e-8}},
            "below resolution in the new run",
        ),
    ],
)
def test_what_is_not_comparable_says_why(make, how, reason):
    assert refused(compared(make(seed=1), make(seed=2, **how))) == reason


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
    new = make(seed=2, cases=dict([a_case("hdf5", "gzip"), a_case("zarr", "gzip")]), factor=2)
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
    assert "differs: software.libraries.h5py.version: 3.12 / 3.13" in status(base, new)[1]


def test_arrays_that_are_stored_in_another_way_are_listed(make):
    def stored(chunks):
        how = {"chunks": chunks, "codec": "none", "fill": "never", "more": {}}
        return {n: e | {"stored_as": how} for n, e in CASES.items() if not e["raw"]}

    found = compared(make(cases=stored([8, 8])), make(cases=stored([4, 4])))
    assert "chunks 8×8, codec none, fill never / chunks 4×4" in str(found.stored[0])


# --- the status


def test_slower_than_allowed_is_status_1_and_names_what(make):
    new = make(seed=2, noise=0.005, factor=lambda case, _: 1.2 if "gzip" in case else 1.0)
    code, text = status(make(seed=1, noise=0.005), new, allowed=0.05)
    assert code == 1
    last = text.splitlines()[-1]
    assert last.startswith("FAILED: ")
    assert "is slower by more than 5 %" in last
    assert "codec=gzip" in last


def test_slower_by_less_than_allowed_passes(make):
    base, new = make(seed=1, noise=0.005), make(seed=2, noise=0.005, factor=1.04)
    code, text = status(base, new, allowed=0.05)
    assert code == 0
    assert text.splitlines()[-1] == (
        "PASSED: nothing is shown to be slower by more than 5 %; 4 of 4 cases of the base run "
        "were compared"
    )
    assert status(base, new, allowed=0.0)[0] == 1


def test_the_whole_interval_must_be_beyond_what_is_allowed(make):
    found = compared(make(seed=1, noise=0.02), make(seed=2, noise=0.02, factor=1.07))
    reaching = [p for p in found.pairs if p.ratio > 1.05 and p.low <= 1.05]
    assert reaching
    assert not any(pair.slower_than(0.05) for pair in reaching)


def test_nothing_comparable_is_no_success(make):
    code, text = status(make(), make(ranks=8), allowed=0.05)
    assert code == 2
    assert text.splitlines()[-1].endswith("nothing is comparable: 4 and 8 ranks")
    code, text = status(make(), make(cases=dict([a_case("netcdf4")])), allowed=0.05)
    assert code == 2
    assert "the runs have no case in common" in text


def test_without_a_limit_the_status_is_0(make):
    assert status(make(seed=1), make(seed=2, factor=2))[0] == 0
    assert status(make(), make(ranks=8))[0] == 0


def test_one_of_several_runs_fails(make):
    base, good, bad = make(seed=1), make(seed=2), make(seed=3, factor=1.5)
    assert status(base, good, allowed=0.05)[0] == 0
    code, text = status(base, good, bad, allowed=0.05)
    assert code == 1
    assert [line.split(":")[0] for line in text.splitlines()[-2:]] == ["PASSED", "FAILED"]


def test_a_run_is_not_compared_with_itself(make):
    run = make()
    with pytest.raises(UserError, match="given twice"):
        compare(run, [run / ".." / run.name])


def test_no_run(make, tmp_path):
    with pytest.raises(UserError, match="no results directory"):
        compare(make(), [tmp_path])


# --- what it writes


def test_files(make, tmp_path):
    base, new = make(seed=1), make(seed=2, factor=1.3, cases=dict(list(CASES.items())[1:]))
    out = tmp_path / "out"
    assert status(base, new, out=out, allowed=0.05)[0] == 1
    assert {path.name for path in out.iterdir()} == {
        "compare.md", "compare.csv", "compare.png", "compare.svg"
    }  # fmt: skip
    text = (out / "compare.md").read_text()
    assert text.index("FAILED") < text.index("## ") < text.index("| case |")
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
    with Image.open(out / "compare.png") as image:
        assert image.width > 1000


def test_the_figure_shows_each_ratio_with_its_interval(make):
    from pffbench_analysis.compare.forest import forest

    found = compared(make(seed=1), make(seed=2, factor=1.3))
    figure = forest(found, 0.05)
    axes = {ax.get_gid(): ax for ax in figure.axes}
    assert set(axes) == {"write total", "read total"}
    drawn = sorted(c.lines[0].get_xdata()[0] for c in axes["write total"].containers)
    pairs = [p for p in (*found.overall, *found.pairs) if p.phase == "write_total"]
    assert drawn == pytest.approx(sorted(pair.ratio for pair in pairs))
    assert axes["write total"].get_xscale() == "log"
    (band,) = [p for p in axes["write total"].patches if p.get_gid() == "band"]
    assert band.get_extents().transformed(axes["write total"].transData.inverted()).x1 == (
        pytest.approx(1.05)
    )


def test_nothing_comparable_has_no_figure(make, tmp_path):
    status(make(), make(ranks=8), out=tmp_path / "out")
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"compare.md", "compare.csv"}
    assert "4 and 8 ranks" in (tmp_path / "out/compare.md").read_text()


def test_out_that_is_a_file(make, tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        status(make(seed=1), make(seed=2), out=tmp_path / "out")


# --- the command


def command(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "pffbench", "compare", *arguments], cwd=cwd, capture_output=True,
        text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip


def test_the_command_ends_with_the_status(make, tmp_path):
    base, new = make(seed=1), make(seed=2, factor=1.5)
    done = command(base, new, "--fail-if-slower", "5%", "--out", "out", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines()[-1].startswith("FAILED: ")
    assert (tmp_path / "out" / "compare.md").exists()


@pytest.mark.parametrize("limit", ["5", "0.05", "-5%", "nan%", "5%x"])
def test_a_limit_that_is_no_percentage(make, tmp_path, limit):
    done = command("a", "b", f"--fail-if-slower={limit}", cwd=tmp_path)
    assert done.returncode == 2
    assert f"'{limit}' is not a percentage such as 5%" in done.stderr
