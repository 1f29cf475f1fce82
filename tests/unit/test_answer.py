"""The picture of the answer: what `Summary.answers` says, a point for each contender."""

from __future__ import annotations

import json
import math

import pytest

from drawn_runs import USUAL, a_case, a_run
from pffbench.summary.conclusions import comparison_names
from pffbench.summary.labels import format_title
from pffbench_analysis.answer import answer_panels
from pffbench_analysis.report import figures, readable
from pffbench_analysis.specs import PAPER
from pffbench_analysis.style import colour

pytestmark = pytest.mark.long

TOTALS = ("write_total", "read_total")
#: How many times as long as HDF5 the cases of each format take.
FACTORS = {"hdf5": 1.0, "netcdf4": 1.02, "zarr": 1.6, "mpiio": 0.9}


def a_contest(directory, repetitions=20, layouts=("shared", "own"), margin=0.2, **record):
    """Write a run in which netCDF-4 is as fast as HDF5 and Zarr is slower."""
    cases = [a_case(backend, layout=layout) for layout in layouts for backend in FACTORS]
    cases += [a_case("hdf5", "collective", layout=layout) for layout in layouts]
    speed = {
        name: 0.01 * FACTORS[entry["parameters"]["backend"]]
        for name, entry in cases
        if entry["parameters"]["transfer"] == "independent"
    }
    speed |= {name: 0.015 for name, _ in cases if name not in speed}
    experiment = {"repetitions": repetitions, "margin": margin}
    return a_run(directory, cases, repetitions, speed, experiment=experiment, **record)


@pytest.fixture(scope="module")
def contest(tmp_path_factory):
    return a_contest(tmp_path_factory.mktemp("contest"))


def draw_answer(run):
    return next(figure for name, figure in figures(readable(run)) if name == "answer")


def points_of(panel):
    """Return standing, value, row and face of the contenders that are drawn."""
    return [
        (row["standing"], row["value"], row["row"], row["fill"])
        for row in panel.values("marks")
        if row["value"] is not None
    ]


def intervals_of(panel):
    return {
        (row["row"], row["told"]["format"]): (row["low"], row["high"])
        for row in panel.values("intervals")
        if row["low"] is not None
    }


def axis_of(panel):
    return panel.spec["layer"][0]["encoding"]["x"]


def texts(figure):
    return figure.words.lines


def test_each_contender_has_one_point_and_its_interval(contest):
    summary = readable(contest)
    words = comparison_names(summary)
    names = list(words.values())
    for ax, total in zip((axes := draw_answer(contest).panels), TOTALS, strict=True):
        found = [answer for answer in summary.answers if answer.total == total]
        points = points_of(ax)
        assert len(points) == sum(1 + len(answer.others) for answer in found) == 6
        intervals = intervals_of(ax)
        for answer in sorted(found, key=lambda a: names.index(comparison_names(summary)[a.key])):
            others = {other.name: other for other in answer.others}
            for name in sorted([answer.name, *others]):
                standing, value, place, face = points.pop(0)
                assert (place.partition(" ")[2], face) == (words[answer.key], colour(name))
                if name == answer.name:
                    assert (standing, value) == ("fastest", 1.0)
                    assert (place, format_title(name)) not in intervals
                    continue
                other = others[name]
                assert (standing, value) == (other.standing, pytest.approx(other.ratio.value))
                assert intervals[place, format_title(name)] == pytest.approx(
                    (other.ratio.low, other.ratio.high)
                )
    assert [ax.heading for ax in axes] == ["write to disk", "read, page cache"]


def test_standings_are_seen(contest):
    for ax in draw_answer(contest).panels:
        standings = {standing: face for standing, _, _, face in points_of(ax)}
        assert standings == {
            "fastest": colour("hdf5"), "equal": colour("netcdf4"), "slower": colour("zarr"),
        }  # fmt: skip


def test_what_is_not_decided_is_hollow(tmp_path):
    figure = draw_answer(a_contest(tmp_path, repetitions=5))
    for ax in figure.panels:
        assert {(standing, face) for standing, _, _, face in points_of(ax)} == {
            ("ahead", PAPER), ("undecided", PAPER),
        }  # fmt: skip
        assert all(row["faint"] for row in ax.values("intervals"))
    assert "◇ smallest median, open (?); ○ open (?); grey band" in texts(figure)
    assert "line: 95 % interval (pale: open)" in texts(figure)
    assert "●" not in texts(figure)


@pytest.mark.parametrize("margin", [None, 0.25])
def test_the_band_is_as_wide_as_the_margin(tmp_path, margin):
    figure = draw_answer(a_contest(tmp_path, margin=margin))
    for ax in figure.panels:
        (band,) = ax.values("band")
        width = margin or 0.1
        assert (band["from"], band["to"]) == pytest.approx((1 / (1 + width), 1 + width))
    assert f"within {100 * (margin or 0.1):g} %" in texts(figure)


def test_axes_are_logarithmic_and_shared(contest):
    axes = [axis_of(panel) for panel in draw_answer(contest).panels]
    assert axes[0]["scale"]["type"] == "log"
    assert all(axis["scale"] == axes[0]["scale"] for axis in axes)
    assert all("logarithmic" in axis["title"] for axis in axes)


def test_rows_are_comparisons_where_there_are_several_and_formats_by_their_times(contest, tmp_path):
    def rows(run):
        return [[row.partition(" ")[2] for row in p.rows] for p in draw_answer(run).panels]

    assert rows(contest) == 2 * [["layout shared", "layout own"]]
    assert [entry.name for entry in draw_answer(contest).legend] == ["HDF5", "netCDF-4", "Zarr"]
    alone = draw_answer(a_contest(tmp_path, layouts=["shared"]))
    assert [[row.partition(" ")[2] for row in panel.rows] for panel in alone.panels] == (
        2 * [["HDF5", "netCDF-4", "Zarr"]]
    )
    assert alone.legend == ()


def test_cold_reads_have_a_panel(tmp_path):
    cases = [
        a_case(backend, cache=cache, layout=layout)
        for layout, cache in (("shared", "warm"), ("own", "warm"), ("own", "dropped"))
        for backend in ("hdf5", "zarr")
    ]
    run = a_run(tmp_path, cases, 12, experiment={"repetitions": 12, "cold_reads": "extra"})
    panels = draw_answer(run).panels
    assert [panel.heading for panel in panels] == [
        "write to disk", "read, page cache", "read from disk",
    ]  # fmt: skip
    assert [row.partition(" ")[2] for row in panels[2].rows] == ["layout own"]
    assert [row["told"]["format"] for row in panels[2].values("marks")] == ["HDF5", "Zarr"]


def test_a_sweep_has_a_panel_for_each_value_of_a_key_and_rows_by_time(tmp_path):
    factors = {"none": 1.0, "gzip": 3.0, "zstd": 2.0}
    cases = [
        a_case(backend, chunks=[size, 64], codec=codec)
        for backend in ("hdf5", "zarr")
        for size in (16, 32)
        for codec in factors
    ]
    speed = {
        name: 0.01 * factors[p["codec"]] * (2 if p["backend"] == "zarr" else 1)
        for name, entry in cases
        for p in [entry["parameters"]]
    }
    run = a_run(tmp_path, cases, 12, speed)
    figure = draw_answer(run)
    panels = figure.panels
    assert figure.heading == "Median time of each setting"
    medians = [
        case.phases["write_total"].seconds.median
        for case in readable(run).cases
        if case.sample.backend == "zarr"
    ]
    drawn = [
        row["value"]
        for panel in panels[:2]
        for row in panel.values("marks")
        if row["told"]["format"] == "Zarr"
    ]
    assert sorted(drawn) == pytest.approx(sorted(medians))
    assert [panel.heading for panel in panels] == [
        f"{total}, chunks {size}×64"
        for total in ("write to disk", "read, page cache")
        for size in (16, 32)
    ]
    for panel in panels:
        assert [row.partition(" ")[2] for row in panel.rows] == ["none", "zstd", "gzip"]
        assert len(points_of(panel)) == 6
    # The first of each format has another mark than the first of all in the other figure.
    first = ("fastest", "ahead")
    marked = {r["shape"] for p in panels for r in p.values("marks") if r["standing"] in first}
    assert marked == {"triangle-up"}
    assert "△ smallest median of its format, open (?)" in texts(figure)


def test_comparisons_that_differ_in_no_name_are_told_apart_by_their_parameters(tmp_path):
    cases = [a_case(b, cache=cache) for cache in ("warm", "copied") for b in ("hdf5", "zarr")]
    summary = readable(a_run(tmp_path, cases))
    assert list(comparison_names(summary).values()) == ["cache warm", "cache copied"]
    assert [len(panel.rows) for panel in answer_panels(summary)] == [4, 4]


def test_an_interval_without_bounds_ends_with_arrows(tmp_path):
    run = a_contest(tmp_path, repetitions=3, layouts=["shared"])
    summary = readable(run)
    others = [other for answer in summary.answers for other in answer.others]
    assert {(other.ratio.low, other.ratio.high) for other in others} == {(0.0, math.inf)}
    for ax in draw_answer(run).panels:
        assert set(intervals_of(ax).values()) == {tuple(axis_of(ax)["scale"]["domain"])}
        rows = [row for row in ax.values("arrows_high") if row["high_open"]]
        goes_on = [(row["row"], row["told"]["format"]) for row in rows]
        assert all(row["faint"] for row in rows)
        assert len(set(goes_on) & intervals_of(ax).keys()) == 2
        assert any("(no interval)" in row["text"] for row in ax.values("written"))


def test_invalid_cases_are_no_contenders(tmp_path):
    run = a_contest(tmp_path)
    data = json.loads((run / "run.json").read_text())
    fastest = next(name for name in data["cases"] if name.startswith("hdf5") and ".shared." in name)
    data["cases"][fastest]["invalid"] = "wrong bytes"
    (run / "run.json").write_text(json.dumps(data))
    panels = answer_panels(readable(run))
    shared = [row for panel in panels for row in panel.rows if row.comparison == "layout shared"]
    # The collective case is valid: it is the best that HDF5 has, and not the best of all.
    assert {row.case for row in shared if row.name == "HDF5"} == {"hdf5 matched collective"}
    assert {row.name for row in shared if row.is_first} == {"netCDF-4"}


def test_a_format_without_a_valid_case_is_named_beneath(tmp_path):
    cases = [a_case(b) for b in ("hdf5", "netcdf4", "zarr")]
    cases[2][1]["invalid"] = "wrong bytes"
    run = a_run(tmp_path / "two", cases, repetitions=12)
    assert "Zarr takes no part (wrong bytes)." in texts(draw_answer(run))
    cases[1][1]["failure"] = {"phase": "open", "error": "no such file"}
    cases.append(a_case("hdf5", "collective"))
    left = readable(a_run(tmp_path / "one", cases, repetitions=12))
    assert answer_panels(left) == []


def test_cases_of_one_format_are_contenders_themselves(tmp_path):
    run = a_run(tmp_path, USUAL[:2], repetitions=12, experiment={"repetitions": 12})
    (panel, _) = answer_panels(readable(run))
    assert [row.name for row in panel.rows] == ["HDF5 collective", "HDF5 independent"]


def test_too_short_comparisons_are_counted_and_not_drawn(tmp_path):
    speed = {name: 1e-3 if layout == "shared" else 10.0
             for layout in ("shared", "own")
             for name, _ in (a_case(b, layout=layout) for b in ("hdf5", "zarr"))}  # fmt: skip
    cases = [a_case(b, layout=layout) for layout in ("shared", "own") for b in ("hdf5", "zarr")]
    floor = {"own": 1e-3, "synced": 1e-3, "tick": 1e-8}
    run = a_run(tmp_path, cases, speed=speed, floor=floor)
    figure = draw_answer(run)
    assert [len(points_of(ax)) for ax in figure.panels] == [2, 2]
    assert "2 of 4 comparisons are too short" in texts(figure)


def test_without_a_comparison_there_is_no_picture(tmp_path):
    run = a_run(tmp_path, [USUAL[0], USUAL[3]])
    names = [name for name, _ in figures(readable(run))]
    assert names
    assert "answer" not in names


def test_it_is_stamped_and_says_where_it_comes_from(tmp_path):
    run = a_contest(tmp_path, valid=False, reasons=["rank 3 read 7"], question="Which?")
    figure = draw_answer(run)
    for part in ("Which?", "INVALID: rank 3 read 7", "some-20260101-120000-1", "2 ranks"):
        assert part in texts(figure)
    assert figure.words.stamp == "INVALID"
