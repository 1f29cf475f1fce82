"""The figures of a report: what they show is what the summary says."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from drawn_runs import BYTES, USUAL, a_case, a_run

pytest.importorskip("matplotlib")

from matplotlib.colors import to_hex

from pffbench_analysis.charts import MOST_DOTS, charts, dots_each
from pffbench_analysis.figures import draw, log_ticks
from pffbench_analysis.framing import Words
from pffbench_analysis.report import figures, file_names, readable, report, save
from pffbench_analysis.style import colour, plain


def drawn(run):
    """Return the figures of comparisons; that of the answer has tests of its own."""
    return {name: figure for name, figure in figures(readable(run)) if name != "answer"}


def texts(figure):
    return " ".join(" ".join(t.get_text() for t in figure.texts).split())


@pytest.fixture
def run(tmp_path):
    return a_run(tmp_path / "run", USUAL)


def collection(ax, gid):
    """Return what was drawn under a name, or nothing; what has two markers is there twice."""
    return [c for c in ax.collections if c.get_gid() == gid]


def label_at(ax, place):
    """Return the label of a row; only the first of several axes shows it."""
    return ax.yaxis.get_major_formatter()(place)


def marks_of(ax):
    """Return value and colour of each median by its label."""
    return {
        label_at(ax, place): (value, to_hex(face).upper())
        for c in collection(ax, "medians")
        for (value, place), face in zip(c.get_offsets(), c.get_facecolors(), strict=True)
    }


def lines_of(ax, gid):
    """Return the ends of the line of each label: ``intervals``, or ``ranges``."""
    segments = [segment for c in collection(ax, gid) for segment in c.get_segments()]
    return {label_at(ax, y): (low, high) for (low, y), (high, _) in segments}


@pytest.mark.parametrize(("repetitions", "kind"), [(6, "intervals"), (4, "ranges")])
def test_points_are_medians_and_lines_their_intervals(tmp_path, repetitions, kind):
    run = a_run(tmp_path / "run", USUAL, repetitions=repetitions)
    by_label = {
        " ".join((c.sample.backend, "raw" if c.raw else "matched", c.sample.transfer)): c
        for c in readable(run).cases
    }
    found = drawn(run)

    def ends(seconds):
        if kind == "intervals":
            return seconds.low, seconds.high
        return seconds.minimum, seconds.maximum

    def check(ax, convert):
        marks, lines = marks_of(ax), lines_of(ax, kind)
        assert marks.keys() == lines.keys() == by_label.keys()
        assert {"intervals": "ranges", "ranges": "intervals"}[kind] not in {
            c.get_gid() for c in ax.collections
        }
        for label, (value, _) in marks.items():
            seconds = by_label[label].phases[ax.get_gid().replace(" ", "_")].seconds
            assert value == pytest.approx(convert(seconds.median))
            assert lines[label] == pytest.approx(sorted(map(convert, ends(seconds))))

    for name in ("metadata", "totals"):
        for ax in found[f"hyperslab-shared-{name}"].axes:
            check(ax, lambda seconds: 1e3 * seconds)
    for ax in found["hyperslab-shared-data"].axes:
        check(ax, lambda seconds: BYTES / 2**20 / seconds)


def test_nothing_is_drawn_as_a_bar(run):
    for figure in drawn(run).values():
        assert [patch for ax in figure.axes for patch in ax.patches] == []
        assert [ax.get_xscale() for ax in figure.axes] == ["log"] * len(figure.axes)


def test_totals_are_sums_and_dots_are_repetitions(run):
    summary = readable(run)
    ax = drawn(run)["hyperslab-shared-totals"].axes[0]
    assert ax.get_gid() == "write total"
    first = next(c for c in summary.cases if c.sample.transfer == "collective")
    (dots,) = collection(ax, "repetitions")
    across = [x for x, y in dots.get_offsets() if y < 0.5]  # those of the uppermost case
    written = [1e3 * s for s in first.phases["write_total"].by_block.values()]
    assert across == pytest.approx(written)


@pytest.mark.parametrize("copy_rate", [1e12, 1e8])
def test_the_dashed_line_is_what_roof_compares_with(tmp_path, copy_rate):
    """The smallest median of raw bytes, but never less than it takes to copy them in memory."""
    cases = (*USUAL, a_case("mpiio", "collective"), a_case("null"))
    floor = {"own": 1e-7, "synced": 1e-7, "tick": 1e-8, "memory_copy_bytes_per_second": copy_rate}
    run = a_run(tmp_path, cases, speed={cases[-1][0]: 1e-6}, floor=floor)
    found = drawn(run)
    ax = found["hyperslab-shared-data"].axes[0]
    line = next(line for line in ax.lines if line.get_gid() == "roofline")
    summary = readable(run)
    least = min(
        case.phases["write"].seconds.median
        for case in summary.cases
        if case.sample.backend == "mpiio"  # not null, which moves nothing
    )
    limit = max(least, BYTES / copy_rate)
    assert (limit == least) == (copy_rate == 1e12)
    assert line.get_xdata()[0] == pytest.approx(BYTES / 2**20 / limit)
    for case in summary.cases:
        phase = case.phases["write"]
        if not case.raw:
            assert phase.roofline == pytest.approx(limit / phase.seconds.median)
    assert not any(
        ln.get_gid() for ax in found["hyperslab-shared-metadata"].axes for ln in ax.lines
    )


def made_invalid(run, name, reason):
    """Say of a case that it read wrong data."""
    data = json.loads((run / "run.json").read_text())
    data["cases"][name]["invalid"] = reason
    (run / "run.json").write_text(json.dumps(data))


@pytest.mark.parametrize("name", [USUAL[2][0], USUAL[3][0]])
def test_invalid_cases_are_named_and_not_drawn(run, name):
    backend = name.partition(".")[0]
    assert "roofline" in {ln.get_gid() for ln in drawn(run)["hyperslab-shared-data"].axes[0].lines}
    made_invalid(run, name, "rank 1 read <7>")
    for figure in drawn(run).values():
        for ax in figure.axes:
            assert not any(label.startswith(backend) for label in marks_of(ax))
        assert f"Not drawn, INVALID: {backend}" in texts(figure)
        assert "rank 1 read <7>" in texts(figure)
    lines = drawn(run)["hyperslab-shared-data"].axes[0].lines
    assert ("roofline" in {ln.get_gid() for ln in lines}) == (backend == "zarr")


def test_a_comparison_of_invalid_cases_alone_has_no_figure(tmp_path):
    run = a_run(tmp_path, USUAL[:1])
    made_invalid(run, USUAL[0][0], "wrong")
    assert drawn(run) == {}
    page = next(path for path in report([run]) if path.name == "report.html")
    assert 'id="figures"' not in page.read_text()


def test_axes_have_units_and_the_figure_says_what_it_shows(run):
    units = {"metadata": "ms", "data": "MiB/s", "totals": "ms"}
    for name, figure in drawn(run).items():
        last = [ax for ax in figure.axes if ax.get_xlabel()]
        assert last
        assert {ax.get_xlabel().split(",")[0] for ax in last} == {units[name.split("-")[-1]]}
        for part in ("hyperslab, layout shared: 8 MiB", "2 ranks on 2 nodes", "2026-01-01",
                     "some-20260101-120000-1", "range of fewer than five repetitions"):  # fmt: skip
            assert part in texts(figure)


def test_times_over_a_second_are_in_seconds(tmp_path):
    run = a_run(tmp_path, USUAL, speed={name: 1.0 for name, _ in USUAL})
    label = drawn(run)["hyperslab-shared-totals"].axes[0].get_xlabel()
    assert label == "seconds, logarithmic axis"


def test_datasets_are_timed_for_each(tmp_path):
    run = a_run(tmp_path, [a_case("hdf5", workload="datasets", layout="own")])
    figure = drawn(run)["datasets-own-metadata"]
    create = figure.axes[0]
    assert "ms per dataset, logarithmic axis" in {ax.get_xlabel() for ax in figure.axes}
    median = readable(run).cases[0].phases["create"].seconds.median
    ((value, _),) = marks_of(create).values()
    assert value == pytest.approx(1e3 * median / 4)


def test_a_backend_has_one_colour_in_all_figures(tmp_path):
    one = a_run(tmp_path / "one", USUAL)
    other = a_run(tmp_path / "other", [a_case("zarr", layout="own"), a_case("posix", layout="own")])
    seen: dict[str, set[str]] = {}
    for figure in [*drawn(one).values(), *drawn(other).values()]:
        for ax in figure.axes:
            for label, (_, face) in marks_of(ax).items():
                seen.setdefault(label.split()[0], set()).add(face)
    assert seen == {b: {colour(b)} for b in ("hdf5", "zarr", "mpiio", "posix")}


def test_unknown_backends_have_a_stable_colour():
    assert colour("adios2") == colour("adios2") != colour("hdf5")
    assert colour("adios2").startswith("#")


def test_collective_is_a_square_and_defaults_are_pale(tmp_path):
    run = a_run(tmp_path, [*USUAL, a_case("zarr", settings="defaults")])
    ax = drawn(run)["hyperslab-shared-totals"].axes[0]
    squares, circles = sorted(collection(ax, "medians"), key=lambda c: len(c.get_paths()[0]))
    assert len(squares.get_paths()[0]) < len(circles.get_paths()[0])
    assert [label_at(ax, y) for _, y in squares.get_offsets()] == ["hdf5 matched collective"]
    for label, (_, face) in marks_of(ax).items():
        assert (face == colour(label.split()[0])) == ("defaults" not in label)


def test_log_ticks_are_round_and_few():
    assert log_ticks(0.9, 60, 8) == [1, 2, 5, 10, 20, 50]
    assert log_ticks(9e-7, 1e5, 5) == pytest.approx([1e-6, 1e-3, 1, 1e3])


def test_log_ticks_of_a_small_range_are_multiples_of_a_step():
    assert log_ticks(0.72, 1.62, 5) == pytest.approx([0.8, 1, 1.2, 1.4, 1.6])
    assert log_ticks(40, 170, 6) == pytest.approx([50, 100, 150])
    assert log_ticks(2, 2, 5) == [2]


def test_one_repetition_has_no_interval_and_says_so(tmp_path):
    for figure in drawn(a_run(tmp_path, USUAL, repetitions=1)).values():
        for ax in (ax for ax in figure.axes if ax.get_visible()):
            assert {face for _, face in marks_of(ax).values()} == {"#FFFFFF"}  # hollow
            assert len(marks_of(ax)) == len(USUAL)
            assert {c.get_gid() for c in ax.collections} == {"medians"}
        assert "Hollow: one repetition, no interval" in texts(figure)
        assert "95 %" not in texts(figure)


def test_few_repetitions_are_named(run, tmp_path):
    few = texts(drawn(run)["hyperslab-shared-data"])
    assert "range of fewer than five repetitions" in few
    assert "95 %" not in few
    many = a_run(tmp_path / "many", USUAL[:2], repetitions=5)
    enough = texts(drawn(many)["hyperslab-shared-data"])
    assert "95 % interval of the median" in enough
    assert "fewer than five" not in enough


def test_of_many_repetitions_some_are_dots(tmp_path):
    figure = drawn(a_run(tmp_path, USUAL[:1], repetitions=300))["hyperslab-shared-data"]
    (dots,) = collection(figure.axes[0], "repetitions")
    assert len(dots.get_offsets()) <= MOST_DOTS
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
    figure = drawn(a_run(tmp_path, USUAL, floor={"own": 1e-3, "synced": 1e-3, "tick": 1e-8}))
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
    assert [median is None for median in flush.medians] == [
        label.startswith("zarr") for label in chart.labels
    ]
    ax = next(ax for ax in draw(chart, Words("t")).axes if ax.get_gid() == "flush")
    assert len(marks_of(ax)) == 3
    assert "–" in [t.get_text() for t in ax.texts]
