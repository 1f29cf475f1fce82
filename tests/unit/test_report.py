"""`pffbench report`: what the figures show is what the summary says."""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from statistics import mean, stdev

import pytest

from drawn_runs import BYTES, PHASES, RANKS, USUAL, a_case, a_run, append_ranks

pytest.importorskip("matplotlib")

from matplotlib.colors import to_hex
from matplotlib.image import imread

from pffbench.commands import report as command
from pffbench.errors import UserError
from pffbench.results.exports import write_summary
from pffbench.results.ranks import RanksFile
from pffbench.results.summary import summarise
from pffbench_analysis import saving
from pffbench_analysis.charts import charts
from pffbench_analysis.figures import LARGE_RANGE, draw, log_ticks
from pffbench_analysis.report import drawings, figures, file_names, readable, report, save
from pffbench_analysis.style import colour, plain
from pffbench_analysis.thinning import MOST_DOTS, dots_each

#: What `pffbench report RUN` is told beside the runs.
AS_USUAL = {"fom": False, "published": False, "published_csv": False, "join": False, "out": None}


def drawn(run):
    return dict(figures(readable(run)))


def texts(figure):
    return " ".join(" ".join(t.get_text() for t in figure.texts).split())


@pytest.fixture
def run(tmp_path):
    return a_run(tmp_path / "run", USUAL)


def test_files_are_made_and_valid(run, capsys):
    (run / "summary.md").write_text("old")
    assert command.main(argparse.Namespace(**AS_USUAL, runs=[str(run)])) == 0
    printed = [Path(line) for line in capsys.readouterr().out.split()]
    names = {f"hyperslab-shared-{what}" for what in ("metadata", "data", "totals")}
    wanted = {run / "plots" / (name + suffix) for name in names for suffix in (".png", ".svg")}
    derived = {run / name for name in ("summary.csv", "summary.md", "fom.txt", "report.html")}
    assert set(printed) == wanted | derived
    assert (run / "summary.md").read_text().startswith("# some")
    for path in wanted:
        if path.suffix == ".png":
            assert imread(path).shape[1] == 1800
        else:
            assert ET.parse(path).getroot().tag.endswith("svg")


def test_the_table_for_programs_has_mean_and_standard_deviation_too(run):
    """Drawn repetitions of the first case's first phase take 1.1 to 1.4 ms; one alone has none."""
    lone = a_run(run.parent / "lone", USUAL[:1], repetitions=1)
    found = {}
    for place in (run, lone):
        write_summary(summarise(place), place)
        with (place / "summary.csv").open(newline="") as file:
            row = next(csv.DictReader(file))
        assert row["phase"] == PHASES[0]
        found[place] = float(row["mean_s"]), float(row["sd_s"])
    seconds = [1.3e-3, 1.1e-3, 1.4e-3, 1.2e-3]
    assert found[run] == pytest.approx((mean(seconds), stdev(seconds)))
    assert found[lone] == pytest.approx((1.3e-3, float("nan")), nan_ok=True)


def test_svg_is_the_same_each_time(run, tmp_path):
    contents = []
    for where in ("a", "b"):
        _, figure = next(figures(readable(run)))
        _, svg = save(figure, tmp_path / where)
        contents.append(svg.read_bytes())
    assert contents[0] == contents[1]
    assert b"dc:date" not in contents[0]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor draws alone")
def test_several_processes_draw_the_same(run, tmp_path, monkeypatch):
    found = []
    for many in (0, 10**9):
        monkeypatch.setattr(saving, "_MANY_BARS", many)
        place = tmp_path / str(many)
        place.mkdir()
        files = list(saving.save_all(list(drawings(readable(run))), place))
        found.append({path.name: path.read_bytes() for path in files})
    assert len(found[0]) == 6
    assert found[0] == found[1]


def bars_of(ax):
    """Return bars as (width, colour) and the ends of their whiskers."""
    bars = [(p.get_width(), to_hex(p.get_facecolor()).upper()) for p in ax.patches]
    whiskers = [
        (segment[0][0], segment[1][0]) for c in ax.collections for segment in c.get_segments()
    ]
    return bars, whiskers


def test_bars_are_medians_and_whiskers_intervals(run):
    summary = readable(run)
    by_label = {
        " ".join((c.sample.backend, "raw" if c.raw else "matched", c.sample.transfer)): c
        for c in summary.cases
    }
    found = drawn(run)
    for ax in found["hyperslab-shared-metadata"].axes:
        bars, whiskers = bars_of(ax)
        order = [bar.get_label() for bar in ax.patches]
        assert len(bars) == len(whiskers) == len(order) == 4
        for label, (width, _), ends in zip(order, bars, whiskers, strict=True):
            seconds = by_label[label].phases[ax.get_gid()].seconds
            assert width == pytest.approx(1e3 * seconds.median)
            assert ends == pytest.approx((1e3 * seconds.low, 1e3 * seconds.high))
    for ax in found["hyperslab-shared-data"].axes:
        bars, whiskers = bars_of(ax)
        order = [bar.get_label() for bar in ax.patches]
        for label, (width, _), ends in zip(order, bars, whiskers, strict=True):
            phase = by_label[label].phases[ax.get_gid()]
            assert width == pytest.approx(BYTES / 2**20 / phase.seconds.median)
            low, high = (BYTES / 2**20 / s for s in (phase.seconds.high, phase.seconds.low))
            assert ends == pytest.approx((low, high))


def test_totals_are_sums_and_dots_are_repetitions(run):
    summary = readable(run)
    ax = drawn(run)["hyperslab-shared-totals"].axes[0]
    assert ax.get_gid() == "write total"
    first = next(c for c in summary.cases if c.sample.transfer == "collective")
    dots = next(line for line in ax.lines if line.get_marker() == "o")
    across, down = dots.get_data()
    across = across[down < 0.5]  # those of the uppermost bar
    written = [1e3 * s for s in first.phases["write_total"].by_block.values()]
    assert list(across) == pytest.approx(written)


def test_roofline_is_the_best_repetition_of_any_raw_transfer(tmp_path):
    cases = (*USUAL, a_case("mpiio", "collective"), a_case("null"))
    speed = {cases[-1][0]: 1e-6}
    run = a_run(tmp_path, cases, speed=speed)
    found = drawn(run)
    ax = found["hyperslab-shared-data"].axes[0]
    line = next(line for line in ax.lines if line.get_gid() == "roofline")
    summary = readable(run)
    least = min(
        seconds
        for case in summary.cases
        if case.sample.backend == "mpiio"  # not null, which moves nothing
        for seconds in case.phases["write"].by_block.values()
    )
    assert line.get_xdata()[0] == pytest.approx(BYTES / 2**20 / least)
    for case in summary.cases:
        phase = case.phases["write"]
        if not case.raw:
            assert phase.roofline == pytest.approx(least / phase.seconds.median)
    assert not any(
        ln.get_gid() for ax in found["hyperslab-shared-metadata"].axes for ln in ax.lines
    )


def test_axes_have_units_and_the_figure_says_what_it_shows(run):
    units = {"metadata": "ms", "data": "MiB/s", "totals": "ms"}
    for name, figure in drawn(run).items():
        last = [ax for ax in figure.axes if ax.get_xlabel()]
        assert last
        assert {ax.get_xlabel().split(",")[0] for ax in last} == {units[name.split("-")[-1]]}
        for part in ("hyperslab, layout shared: 8 MiB", "2 ranks on 2 nodes", "2026-01-01",
                     "some-20260101-120000-1", "95 % bootstrap interval"):  # fmt: skip
            assert part in texts(figure)


def test_times_over_a_second_are_in_seconds(tmp_path):
    run = a_run(tmp_path, USUAL, speed={name: 1.0 for name, _ in USUAL})
    assert drawn(run)["hyperslab-shared-totals"].axes[0].get_xlabel() == "seconds"


def test_datasets_are_timed_for_each(tmp_path):
    run = a_run(tmp_path, [a_case("hdf5", workload="datasets", layout="own")])
    figure = drawn(run)["datasets-own-metadata"]
    create = figure.axes[0]
    assert "ms per dataset" in {ax.get_xlabel() for ax in figure.axes}
    median = readable(run).cases[0].phases["create"].seconds.median
    assert create.patches[0].get_width() == pytest.approx(1e3 * median / 4)


def test_a_backend_has_one_colour_in_all_figures(tmp_path):
    one = a_run(tmp_path / "one", USUAL)
    other = a_run(tmp_path / "other", [a_case("zarr", layout="own"), a_case("posix", layout="own")])
    seen: dict[str, set[str]] = {}
    for figure in [*drawn(one).values(), *drawn(other).values()]:
        for ax in figure.axes:
            for bar, (_, face) in zip(ax.patches, bars_of(ax)[0], strict=True):
                seen.setdefault(bar.get_label().split()[0], set()).add(face)
    assert seen == {b: {colour(b)} for b in ("hdf5", "zarr", "mpiio", "posix")}


def test_unknown_backends_have_a_stable_colour():
    assert colour("adios2") == colour("adios2") != colour("hdf5")
    assert colour("adios2").startswith("#")


def test_collective_is_hatched_and_defaults_are_pale(tmp_path):
    run = a_run(tmp_path, [*USUAL, a_case("zarr", settings="defaults")])
    ax = drawn(run)["hyperslab-shared-totals"].axes[0]
    for patch in ax.patches:
        text = patch.get_label()
        assert bool(patch.get_hatch()) == ("collective" in text)
        full = to_hex(patch.get_facecolor()).upper() == colour(text.split()[0])
        assert full == ("defaults" not in text)


@pytest.mark.parametrize(("factor", "scale"), [(2, "linear"), (LARGE_RANGE * 2, "log")])
def test_axis_is_logarithmic_where_the_range_demands(tmp_path, factor, scale):
    cases = USUAL[:1] + USUAL[2:3]
    run = a_run(tmp_path, cases, speed={cases[0][0]: 1e-3, cases[1][0]: 1e-3 * factor})
    ax = drawn(run)["hyperslab-shared-data"].axes[0]
    assert ax.get_xscale() == scale
    assert ("logarithmic" in ax.get_xlabel()) == (scale == "log")


def test_log_ticks_are_round_and_few():
    assert log_ticks(0.9, 60, 8) == [1, 2, 5, 10, 20, 50]
    assert log_ticks(9e-7, 1e5, 5) == pytest.approx([1e-6, 1e-3, 1, 1e3])


def test_one_repetition_has_no_interval_and_says_so(tmp_path):
    for figure in drawn(a_run(tmp_path, USUAL, repetitions=1)).values():
        assert all(bars_of(ax) == ([], []) for ax in figure.axes)
        shown = [ax for ax in figure.axes if ax.get_visible()]
        assert all(sum(ln.get_gid() == "ring" for ln in ax.lines) == len(USUAL) for ax in shown)
        assert "Rings in their place: one repetition, no interval" in texts(figure)
        assert "95 %" not in texts(figure)


def test_few_repetitions_are_named(run, tmp_path):
    assert "their range" in texts(drawn(run)["hyperslab-shared-data"])
    many = a_run(tmp_path / "many", USUAL[:2], repetitions=6)
    assert "their range" not in texts(drawn(many)["hyperslab-shared-data"])


def test_of_many_repetitions_some_are_dots(tmp_path):
    figure = drawn(a_run(tmp_path, USUAL[:1], repetitions=300))["hyperslab-shared-data"]
    dots = next(line for line in figure.axes[0].lines if line.get_marker() == "o")
    assert len(dots.get_xdata()) <= MOST_DOTS
    assert f"Dots: {MOST_DOTS} of 300 repetitions" in texts(figure)
    assert dots_each(400) < dots_each(100) < dots_each(1) == MOST_DOTS


def test_invalid_runs_are_stamped(tmp_path):
    run = a_run(tmp_path, USUAL, valid=False, reasons=["read $3_1$, wrote <4> & more"])
    for figure in drawn(run).values():
        assert any(t.get_gid() == "stamp" and t.get_text() == "INVALID" for t in figure.texts)
        assert "INVALID: read $3_1$, wrote <4> & more" in texts(figure)
    _, svg = save(figure, tmp_path / "figure")
    ET.parse(svg)


@pytest.mark.parametrize("status", ["running", "interrupted"])
def test_unfinished_runs_are_reported_and_named(tmp_path, status):
    run = a_run(tmp_path, USUAL, status=status, valid=None)
    text = texts(drawn(run)["hyperslab-shared-data"])
    assert "repetitions are missing" in text
    assert "INVALID" not in text


def test_failed_cases_are_named(tmp_path):
    run = a_run(tmp_path, USUAL)
    data = json.loads((run / "run.json").read_text())
    name, entry = a_case("netcdf4")
    data["cases"][name] = entry
    (run / "run.json").write_text(json.dumps(data))
    assert f"No result: {name}" in texts(drawn(run)["hyperslab-shared-data"])


def test_equal_cases_are_told_apart(tmp_path):
    run = a_run(tmp_path, [a_case("zarr", codec="gzip"), a_case("zarr", codec="none")])
    summary = readable(run)
    (cases,) = summary.groups.values()
    labels = next(iter(charts(cases, summary))).labels
    assert labels == (
        "zarr matched independent codec=gzip",
        "zarr matched independent codec=none",
    )


def test_comparisons_of_one_workload_have_names_of_their_own(tmp_path):
    cases = [a_case("zarr", cache=c) for c in ("warm", "dropped")]
    summary = readable(a_run(tmp_path, cases))
    assert set(file_names(summary).values()) == {
        "hyperslab-shared-cache-warm",
        "hyperslab-shared-cache-dropped",
    }


def test_phases_too_short_to_trust_are_marked(tmp_path):
    figure = drawn(a_run(tmp_path, USUAL, floor={"barrier": 1e-3, "tick": 1e-8}))
    ax = figure["hyperslab-shared-data"].axes[0]
    assert all(t.get_text().endswith("†") for t in ax.texts)
    assert "†: under 100 times" in texts(figure["hyperslab-shared-data"])


def test_unprintable_text_is_replaced():
    assert plain("a\x01b\nc") == "a\ufffdb\ufffdc"


def test_figures_do_not_depend_on_the_order_of_cases(tmp_path):
    def order(cases, where):
        summary = readable(a_run(tmp_path / where, cases))
        (group,) = summary.groups.values()
        return [chart.labels for chart in charts(group, summary)]

    assert order(USUAL, "a") == order(USUAL[::-1], "b")


def test_an_empty_chart_is_left_out(tmp_path):
    run = a_run(tmp_path, USUAL[:1])
    text = (run / "samples.csv").read_text().replace(str(BYTES), "0")
    (run / "samples.csv").write_text(text)
    assert set(drawn(run)) == {"hyperslab-shared-metadata", "hyperslab-shared-totals"}


def test_a_case_without_a_phase_keeps_its_place(tmp_path):
    run = a_run(tmp_path, USUAL)
    lines = (run / "samples.csv").read_text().splitlines(keepends=True)
    lines = [line for line in lines if not (line.startswith("zarr") and ",flush," in line)]
    (run / "samples.csv").write_text("".join(lines))
    summary = readable(run)
    (cases,) = summary.groups.values()
    chart = next(iter(charts(cases, summary)))
    flush = next(p for p in chart.panels if p.heading == "flush")
    assert [bar is None for bar in flush.bars] == [
        label.startswith("zarr") for label in chart.labels
    ]
    from pffbench_analysis.framing import Words

    ax = next(ax for ax in draw(chart, Words("t")).axes if ax.get_gid() == "flush")
    assert len(ax.patches) == 3
    assert "–" in [t.get_text() for t in ax.texts]


# Errors


def refused(path):
    with pytest.raises(UserError) as caught:
        list(report([path]))
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


def test_no_such_directory(tmp_path):
    assert "no results directory" in refused(tmp_path / "none")


def test_not_a_run(tmp_path):
    (tmp_path / "run.json").write_text("{")
    assert "not valid JSON" in refused(tmp_path)


@pytest.mark.parametrize(("version", "age"), [(0, "an older"), (99, "a newer")])
def test_other_schema(run, version, age):
    data = json.loads((run / "run.json").read_text()) | {"schema_version": version}
    (run / "run.json").write_text(json.dumps(data))
    assert f"layout version {version}, of {age} pffbench" in refused(run)


def test_no_schema(run):
    (run / "run.json").write_text("[]")
    assert "schema_version" in refused(run)


def test_empty_directory(tmp_path):
    assert "holds no run.json" in refused(tmp_path)


def test_broken_record(run):
    data = json.loads((run / "run.json").read_text())
    del data["ranks"]
    (run / "run.json").write_text(json.dumps(data))
    refused(run)


def test_broken_samples(run):
    path = run / "samples.csv"
    path.write_text(path.read_text().replace(",false,", ",perhaps,", 1))
    refused(run)


def test_no_samples(run):
    (run / "samples.csv").unlink()
    assert "samples.csv" in refused(run)


def test_no_counted_repetition(tmp_path):
    assert "no repetition that counts" in refused(a_run(tmp_path, USUAL, repetitions=0))


def test_nothing_is_written_when_one_run_cannot_be_read(run, tmp_path):
    with pytest.raises(UserError):
        list(report([run, tmp_path / "none"]))
    assert not (run / "plots").exists()


def test_plots_in_the_way(run):
    (run / "plots").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        list(report([run]))


def test_missing_matplotlib_is_one_sentence(run, monkeypatch):
    for name in ("report", "saving"):
        monkeypatch.delitem(sys.modules, f"pffbench_analysis.{name}")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UserError, match=r"needs matplotlib.*pip install"):
        command.main(argparse.Namespace(**AS_USUAL, runs=[str(run)]))


# The command as a process, and a real run


def python(*arguments, cwd):
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}, check=False,
    )  # fmt: skip


def test_report_starts_no_mpi(run):
    code = (
        "import sys, pffbench.cli\n"
        "try: pffbench.cli.main(['report', 'run'])\n"
        "finally: print([m for m in sys.modules if m.split('.')[0] in "
        "('netCDF4', 'zarr', 'pandas')] + ['matplotlib.pyplot'] * "
        "('matplotlib.pyplot' in sys.modules) + ['MPI is initialised'] * "
        "('mpi4py.MPI' in sys.modules and sys.modules['mpi4py.MPI'].Is_initialized()))"
    )
    done = python("-c", code, cwd=run.parent)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


def test_errors_end_with_status_2(tmp_path):
    done = python("-m", "pffbench", "report", "none", cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_a_real_run(tmp_path):
    (tmp_path / "exp.yaml").write_text(
        "name: real\nrepetitions: 3\nroofline: false\ncases:\n"
        "- {workload: hyperslab, backend: ['null', posix], layout: file_per_process,"
        " shape_per_rank: [64, 64]}\n"
    )
    done = python(
        "-m", "pffbench", "run", "exp.yaml", "--out", "r", "--progress", "none",
        "--scratch", str(tmp_path), cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    written = list(report([tmp_path / "r"]))
    assert tmp_path / "r/plots/hyperslab-file_per_process-data.png" in written
    assert "pffbench " in texts(drawn(tmp_path / "r")["hyperslab-file_per_process-data"])


# Frames for notebooks


def test_load_samples(run):
    pd = pytest.importorskip("pandas")
    from pffbench_analysis import load_samples

    frame = load_samples(run)
    assert len(frame) == len(USUAL) * 5 * len(PHASES)
    assert frame.warmup.dtype == bool
    assert frame.started.dt.tz is not None
    assert frame.disk_files.dtype == pd.Int64Dtype()
    assert frame.disk_files.notna().sum() == len(USUAL) * 5
    counted = frame[~frame.warmup & (frame.phase == "write") & (frame.case == USUAL[0][0])]
    median = readable(run).cases[0].phases["write"].seconds.median
    assert counted.own_max.median() == pytest.approx(median)


def test_load_ranks(run):
    pytest.importorskip("pandas")
    from pffbench_analysis import load_ranks, load_samples

    frame = load_ranks(run, USUAL[0][0])
    assert len(frame) == 5 * len(PHASES) * RANKS
    by_rank = frame.groupby("rank")
    assert by_rank.host.first().tolist() == ["a", "b"]
    assert by_rank.peak_memory.first().tolist() == [10, 20]
    job = frame.groupby(["repetition", "phase"]).own.max()
    samples = load_samples(run)
    same = samples[samples.case == USUAL[0][0]].set_index(["repetition", "phase"]).own_max
    assert (job.sort_index() == same.sort_index()).all()
    with pytest.raises(ValueError, match="no case 'nothing'"):
        load_ranks(run, "nothing")


def test_load_ranks_keeps_the_last_of_a_repetition_done_again(run):
    pytest.importorskip("pandas")
    from pffbench_analysis import load_ranks

    name = USUAL[0][0]
    append_ranks(RanksFile(str(run / "ranks.h5"), []), name, 4, [9.0] * len(PHASES))
    frame = load_ranks(run, name)
    assert len(frame) == 5 * len(PHASES) * RANKS
    assert set(frame[(frame.repetition == 4) & (frame["rank"] == 0)].own) == {9.0}


def test_loading_nothing_is_an_error(tmp_path):
    pytest.importorskip("pandas")
    from pffbench_analysis import load_ranks, load_samples

    with pytest.raises(ValueError, match="no results directory"):
        load_samples(tmp_path)
    with pytest.raises(ValueError, match=r"ranks\.h5 cannot be read"):
        load_ranks(tmp_path, "some")
