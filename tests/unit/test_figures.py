"""The figures of a report: what they show is what the summary says."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest
from pffbench_analysis.specs import INK, PAPER, log_scale

from drawn_runs import BYTES, USUAL, a_case, a_run
from pages import page_of
from pffbench_analysis.charts import MOST_DOTS, charts, dots_each
from pffbench_analysis.figures import draw
from pffbench_analysis.picture import Words, save
from pffbench_analysis.report import figures, file_names, readable
from pffbench_analysis.style import colour, plain

pytestmark = pytest.mark.long


def draw_figures(run):
    """Return the figures of comparisons; that of the answer has tests of its own."""
    return {name: figure for name, figure in figures(readable(run)) if name != "answer"}


def texts(figure):
    return figure.words.lines


def name_of(row):
    """Return the name of a row, which begins with its number."""
    return row["row"].partition(" ")[2]


def axis_of(panel):
    """Return the channel of values."""
    return panel.spec["layer"][0]["encoding"]["x"]


def marks_of(panel):
    """Return value and colour of each median by its label."""
    return {
        name_of(row): (row["value"], row["fill"])
        for row in panel.values("medians")
        if row["value"] is not None
    }


def lines_of(panel, kind):
    """Return the ends of the line of each label: ``intervals``, or ``ranges``."""
    return {
        name_of(row): (row["low"], row["high"])
        for row in panel.values("intervals")
        if row["low"] is not None and row["sure"] == (kind == "intervals")
    }


@pytest.mark.parametrize(("repetitions", "kind"), [(6, "intervals"), (4, "ranges")])
def test_points_are_medians_and_lines_their_intervals(tmp_path, repetitions, kind):
    run = a_run(tmp_path / "run", USUAL, repetitions=repetitions)
    by_label = {
        " ".join((c.sample.backend, "raw" if c.raw else "matched", c.sample.transfer)): c
        for c in readable(run).cases
    }
    found = draw_figures(run)

    def ends(seconds):
        if kind == "intervals":
            return seconds.low, seconds.high
        return seconds.minimum, seconds.maximum

    def check(ax, convert):
        marks, lines = marks_of(ax), lines_of(ax, kind)
        assert marks.keys() == lines.keys() == by_label.keys()
        assert lines_of(ax, {"intervals": "ranges", "ranges": "intervals"}[kind]) == {}
        for label, (value, _) in marks.items():
            seconds = by_label[label].phases[ax.heading.replace(" ", "_")].seconds
            assert value == pytest.approx(convert(seconds.median))
            assert lines[label] == pytest.approx(sorted(map(convert, ends(seconds))))

    for name in ("metadata", "totals"):
        for ax in found[f"hyperslab-shared-{name}"].panels:
            check(ax, lambda seconds: 1e3 * seconds)
    for ax in found["hyperslab-shared-data"].panels:
        check(ax, lambda seconds: BYTES / 2**20 / seconds)


def test_nothing_is_drawn_as_a_bar(run):
    for figure in draw_figures(run).values():
        marks = {layer["mark"]["type"] for ax in figure.panels for layer in ax.spec["layer"]}
        assert marks == {"circle", "rule", "text", "tick", "point"}
        scales = [axis_of(ax)["scale"] for ax in figure.panels]
        assert {scale["type"] for scale in scales} == {"log"}
        assert all(scale == scales[0] for scale in scales)


def test_totals_are_sums_and_dots_are_repetitions(run):
    summary = readable(run)
    ax = draw_figures(run)["hyperslab-shared-totals"].panels[0]
    assert ax.heading == "write total"
    first = next(c for c in summary.cases if c.sample.transfer == "collective")
    across = [dot["value"] for dot in ax.values("repetitions") if dot["row"].startswith("0 ")]
    written = [1e3 * s for s in first.phases["write_total"].by_block.values()]
    assert across == pytest.approx(written)


@pytest.mark.parametrize("copy_rate", [1e12, 1e8])
def test_the_dashed_line_is_what_roof_compares_with(tmp_path, copy_rate):
    """The smallest median of raw bytes, but never less than it takes to copy them in memory."""
    cases = (*USUAL, a_case("mpiio", "collective"), a_case("null"))
    floor = {"own": 1e-7, "synced": 1e-7, "tick": 1e-8, "memory_copy_bytes_per_second": copy_rate}
    run = a_run(tmp_path, cases, speed={cases[-1][0]: 1e-6}, floor=floor)
    found = draw_figures(run)
    ax = found["hyperslab-shared-data"].panels[0]
    (line,) = ax.values("roofline")
    summary = readable(run)
    least = min(
        case.phases["write"].seconds.median
        for case in summary.cases
        if case.sample.backend == "mpiio"  # not null, which moves nothing
    )
    limit = max(least, BYTES / copy_rate)
    assert (limit == least) == (copy_rate == 1e12)
    assert line["value"] == pytest.approx(BYTES / 2**20 / limit)
    assert line["text"] == ("raw" if limit == least else "memory copy")
    for case in summary.cases:
        phase = case.phases["write"]
        if not case.raw:
            assert phase.roofline == pytest.approx(limit / phase.seconds.median)
    assert not any(ax.values("roofline") for ax in found["hyperslab-shared-metadata"].panels)


def make_invalid(run, name, reason):
    """Say of a case that it read wrong data."""
    data = json.loads((run / "run.json").read_text())
    data["cases"][name]["invalid"] = reason
    (run / "run.json").write_text(json.dumps(data))


@pytest.mark.parametrize("name", [USUAL[2][0], USUAL[3][0]])
def test_invalid_cases_are_named_and_not_drawn(run, name):
    backend = name.partition(".")[0]
    assert draw_figures(run)["hyperslab-shared-data"].panels[0].values("roofline")
    make_invalid(run, name, "rank 1 read <7>")
    for figure in draw_figures(run).values():
        for ax in figure.panels:
            assert not any(label.startswith(backend) for label in marks_of(ax))
        assert f"Not drawn, INVALID: {backend}" in texts(figure)
        assert "rank 1 read <7>" in texts(figure)
    line = draw_figures(run)["hyperslab-shared-data"].panels[0].values("roofline")
    assert bool(line) == (backend == "zarr")


def test_a_comparison_of_invalid_cases_alone_has_no_figure(tmp_path):
    run = a_run(tmp_path, USUAL[:1])
    make_invalid(run, USUAL[0][0], "wrong")
    assert draw_figures(run) == {}
    assert 'id="figures"' not in page_of(run).read_text()


def test_axes_have_units_and_the_figure_says_what_it_shows(run):
    units = {"metadata": "ms", "data": "MiB/s", "totals": "ms"}
    for name, figure in draw_figures(run).items():
        titles = {axis_of(ax)["title"].split(",")[0] for ax in figure.panels}
        assert titles == {units[name.split("-")[-1]]}
        for part in ("hyperslab, layout shared: 8 MiB", "2 ranks on 2 nodes", "2026-01-01",
                     "some-20260101-120000-1", "range of fewer than five repetitions"):  # fmt: skip
            assert part in texts(figure)


def test_times_over_a_second_are_in_seconds(tmp_path):
    run = a_run(tmp_path, USUAL, speed={name: 1.0 for name, _ in USUAL})
    label = draw_figures(run)["hyperslab-shared-totals"].panels[0]
    assert axis_of(label)["title"] == "seconds, logarithmic"


def test_datasets_are_timed_for_each(tmp_path):
    run = a_run(tmp_path, [a_case("hdf5", workload="datasets", layout="own")])
    figure = draw_figures(run)["datasets-own-metadata"]
    create = figure.panels[0]
    assert {axis_of(ax)["title"] for ax in figure.panels} == {"µs per dataset, logarithmic"}
    median = readable(run).cases[0].phases["create"].seconds.median
    ((value, _),) = marks_of(create).values()
    assert value == pytest.approx(1e6 * median / 4)


def test_a_backend_has_one_colour_in_all_figures(tmp_path):
    one = a_run(tmp_path / "one", USUAL)
    other = a_run(tmp_path / "other", [a_case("zarr", layout="own"), a_case("posix", layout="own")])
    seen: dict[str, set[str]] = {}
    for figure in [*draw_figures(one).values(), *draw_figures(other).values()]:
        for ax in figure.panels:
            for label, (_, face) in marks_of(ax).items():
                seen.setdefault(label.split()[0], set()).add(face)
    assert seen == {b: {colour(b)} for b in ("hdf5", "zarr", "mpiio", "posix")}


def test_unknown_backends_have_a_stable_colour():
    assert colour("adios2") == colour("adios2") != colour("hdf5")
    assert colour("adios2").startswith("#")


def test_collective_is_a_square_and_defaults_are_pale(tmp_path):
    run = a_run(tmp_path, [*USUAL, a_case("zarr", settings="defaults")])
    rows = draw_figures(run)["hyperslab-shared-totals"].panels[0].values("medians")
    squares = [name_of(row) for row in rows if row["shape"] == "square"]
    assert squares == ["hdf5 matched collective"]
    assert {name_of(row) for row in rows if row["opacity"] < 1} == {"zarr defaults independent"}


def test_scales_hold_what_is_drawn():
    low, high = log_scale([3.0, 0.0, 50.0, float("inf")])["domain"]
    assert 2 < low < 3
    assert 50 < high < 70
    assert "type" not in log_scale([0.0])  # a clock that moves in longer steps than a phase


def test_one_repetition_has_no_interval_and_says_so(tmp_path):
    for figure in draw_figures(a_run(tmp_path, USUAL, repetitions=1)).values():
        for ax in figure.panels:
            assert {face for _, face in marks_of(ax).values()} == {PAPER}  # hollow
            assert {row["stroke"] for row in ax.values("medians")}.isdisjoint({INK})
            assert len(marks_of(ax)) == len(USUAL)
            assert lines_of(ax, "intervals") == lines_of(ax, "ranges") == {}
            assert ax.values("repetitions") == []
        assert "Hollow: one repetition, no interval" in texts(figure)
        assert "95 %" not in texts(figure)


def test_few_repetitions_are_named(run, tmp_path):
    few = texts(draw_figures(run)["hyperslab-shared-data"])
    assert "range of fewer than five repetitions" in few
    assert "95 %" not in few
    many = a_run(tmp_path / "many", USUAL[:2], repetitions=5)
    enough = texts(draw_figures(many)["hyperslab-shared-data"])
    assert "95 % interval of the median" in enough
    assert "fewer than five" not in enough


def test_of_many_repetitions_some_are_dots(tmp_path):
    figure = draw_figures(a_run(tmp_path, USUAL[:1], repetitions=300))["hyperslab-shared-data"]
    assert MOST_DOTS / 2 < len(figure.panels[0].values("repetitions")) <= MOST_DOTS
    assert f"Dots: {MOST_DOTS} of 300 repetitions" in texts(figure)
    assert dots_each(400) < dots_each(100) < dots_each(1) == MOST_DOTS


def test_invalid_runs_are_stamped(tmp_path):
    run = a_run(tmp_path, USUAL, valid=False, reasons=["read $3_1$, wrote <4> & more"])
    for figure in draw_figures(run).values():
        assert figure.words.stamp == "INVALID"
        assert "INVALID: read $3_1$, wrote <4> & more" in texts(figure)
    _, svg, _ = save(figure, tmp_path / "figure")
    told = [node.text for node in ET.parse(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert "INVALID" in told
    assert any("read $3_1$, wrote <4> & more" in (text or "") for text in told)


@pytest.mark.parametrize("status", ["running", "interrupted"])
def test_unfinished_runs_are_reported_and_named(tmp_path, status):
    run = a_run(tmp_path, USUAL, status=status, valid=None)
    text = texts(draw_figures(run)["hyperslab-shared-data"])
    assert "repetitions are missing" in text
    assert "INVALID" not in text


def test_failed_cases_are_named(tmp_path):
    run = a_run(tmp_path, USUAL)
    data = json.loads((run / "run.json").read_text())
    name, entry = a_case("netcdf4")
    data["cases"][name] = entry
    (run / "run.json").write_text(json.dumps(data))
    assert f"No result: {name}" in texts(draw_figures(run)["hyperslab-shared-data"])


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
    figure = draw_figures(a_run(tmp_path, USUAL, floor={"own": 1e-3, "synced": 1e-3, "tick": 1e-8}))
    ax = figure["hyperslab-shared-data"].panels[0]
    assert all(row["text"].endswith("†") for row in ax.values("written"))
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
    assert set(draw_figures(run)) == {"hyperslab-shared-metadata", "hyperslab-shared-totals"}


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
    ax = next(ax for ax in draw(chart, Words("t")).panels if ax.heading == "flush")
    assert len(marks_of(ax)) == 3
    assert "–" in [row["text"] for row in ax.values("written")]
