"""The figures of a report: what they show is what the summary says."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from msgspec.structs import replace

from drawn_codecs import WAYS as WAYS_OF_CODECS
from drawn_codecs import a_codecs_run
from drawn_runs import FLOOR, USUAL, a_case, a_run
from pffbench.results import words
from pffbench.results.summary import summarise
from pffbench_analysis.axes import Axis, axis_of
from pffbench_analysis.charts import Line, Mark, Point, dots, lines, scatter
from pffbench_analysis.figures import answer_figure, group_figures, kept
from pffbench_analysis.picture import Figure, save
from pffbench_analysis.ranks import Ranks, RankTimes
from pffbench_analysis.style import colour, plain
from sharing import keys_of

pytestmark = pytest.mark.long

WAYS = [
    a_case(b, **keys_of(layout))
    for b in ("hdf5", "zarr")
    for layout in ("one-shared", "one-per_rank")
]
UNIT = Axis("x", 0.0, 1.0, log=False)
NO_RANKS = Ranks()


def figures_of(run, ranks=NO_RANKS):
    """Return the figures of the only group of a run."""
    summary = summarise(run)
    (cases,) = summary.groups.values()
    return group_figures(cases, summary, ranks)


def told_by(drawing):
    """Return what pointing at the marks shows."""
    return [node.text for node in ET.fromstring(f"<g>{drawing}</g>").iter("title")]


def test_the_figure_of_the_answer_has_the_ratios_of_the_answer(tmp_path):
    speed = {name: 0.01 if name.startswith("hdf5") else 0.03 for name, _ in WAYS}
    summary = summarise(a_run(tmp_path, WAYS, repetitions=12, speed=speed))
    figure = answer_figure(summary)
    compared = summary.compared
    assert [panel.heading for panel in figure.panels] == [
        purpose.heading for purpose in compared.decided.purposes
    ]
    for panel in figure.panels:
        own = [one for one in (*compared.formats, *compared.changes)
               if one.cells[0][0].keys["column"] == panel.heading]  # fmt: skip
        told = told_by(panel.drawing)
        assert len(told) == len(own) + 1  # and the way to use
        for one in own:
            assert any(words.verdict(one.verdict) in text for text in told)


@pytest.mark.parametrize("lacking", [("gzip",), ("gzip", "zstd"), ("none",)])
def test_a_format_that_lacks_some_ways_has_a_name_in_figure_and_table(tmp_path, lacking):
    """As a format has whose slowest cases did not fit into the time."""
    ways = {way: told for way, told in WAYS_OF_CODECS.items() if way[0] == "image"}
    for (source, backend, codec), told in tuple(ways.items()):
        if backend == "hdf5" and codec not in lacking:
            ways[source, "netcdf4", codec] = told
    summary = summarise(a_codecs_run(tmp_path, ways, repetitions=12))
    names = [row[0] for row in summary.answer.rows]
    assert len(set(names)) == len(names) == 3
    assert "netCDF-4" in names[-1]
    for panel in answer_figure(summary).panels:
        assert all(panel.rows)
        assert sum("netCDF-4" in name for name in panel.rows) == 1


@pytest.mark.parametrize("changes", [{"valid": False, "reasons": ["wrong"]}, {"valid": None}])
def test_times_that_show_nothing_are_no_figure_of_an_answer(tmp_path, changes):
    assert answer_figure(summarise(a_run(tmp_path, WAYS, repetitions=12, **changes))) is None


def test_a_run_that_compares_nothing_has_its_times(tmp_path):
    figure = answer_figure(summarise(a_run(tmp_path, USUAL[:1], repetitions=8)))
    assert figure.heading == "Median times"


@pytest.mark.parametrize("repetitions", [1, 3, 8])
def test_marks_are_medians_with_their_intervals_or_ranges(tmp_path, repetitions):
    run = a_run(tmp_path, USUAL, repetitions=repetitions)
    figure = figures_of(run)["times"]
    (cases,) = summarise(run).groups.values()
    for panel, total in zip(figure.panels, ("write_total", "read_total"), strict=True):
        told = told_by(panel.drawing)
        for case in cases:
            seconds = case.phases[total].seconds
            ends = (seconds.low, seconds.high) if repetitions == 8 else (
                seconds.minimum, seconds.maximum)  # fmt: skip
            between = " to ".join(map(words.seconds, ends))
            median = words.seconds(seconds.median)
            assert f"{case.label}: {median}, {between}, {repetitions} rounds" in told
    assert any("Hollow: fewer than" in note for note in figure.notes) == (repetitions < 5)


def test_invalid_cases_are_not_drawn(run):
    record = json.loads((run / "run.json").read_text())
    record["cases"][USUAL[2][0]]["invalid"] = "rank 1 read <7>"
    (run / "run.json").write_text(json.dumps(record))
    for figure in figures_of(run).values():
        assert "Zarr" not in figure.svg()


def test_phases_too_short_to_trust_are_marked(tmp_path):
    floor = replace(FLOOR, own=1e-3, synced=1e-3)
    figure = figures_of(a_run(tmp_path, USUAL, floor=floor))["phases"]
    assert "†</text>" in figure.panels[0].drawing
    assert any(note.startswith("†: ") for note in figure.notes)


def test_problems_of_the_run_stand_on_every_figure(tmp_path):
    reason = "read $3_1$, wrote <4> & more"
    run = a_run(tmp_path / "bad", USUAL, valid=False, reasons=[reason], status="interrupted")
    for figure in figures_of(run).values():
        path = save(figure, tmp_path / "figure.svg")
        told = " ".join(text for text in ET.parse(path).getroot().itertext())
        assert reason in told
        assert "rounds are missing" in told


def test_size_and_time_are_drawn_where_sizes_differ(run, tmp_path):
    assert "sizes" not in figures_of(run)
    summary = summarise(a_codecs_run(tmp_path / "codecs"))
    cases = next(iter(summary.groups.values()))
    assert len(group_figures(cases, summary, NO_RANKS)["sizes"].panels) == 2


def test_three_ranks_or_more_are_drawn(run):
    assert "ranks" not in figures_of(run)
    three = RankTimes([0, 1, 2], [1.0, 2.0, 3.0], [0.5, 1.5, 2.5], [1.5, 2.5, 3.5])
    figure = figures_of(run, Ranks({USUAL[0][0]: {"write": three}}))["ranks"]
    assert [panel.heading.partition(":")[0] for panel in figure.panels] == ["write"]


# The charts


def test_a_mark_stands_at_its_number():
    panel = dots("", ["a"], [Mark("a", 0.25, 0.0, 0.5, text="text")], UNIT)
    (mark,) = ET.fromstring(f"<g>{panel.drawing}</g>").findall("path[@pointer-events]")
    assert mark.get("d").startswith("M35.0,")  # a quarter of 160 pixels, less its radius
    assert "text</text>" in panel.drawing
    nothing = dots("", ["a"], [Mark("a", math.nan)], UNIT)
    assert "pointer-events" not in nothing.drawing


def test_lines_and_points_name_their_numbers():
    line = Line("a", [0.0, 1.0], [0.5, 1.0], dash="4 3")
    assert {"a", "a: 0, 0.5", "a: 1, 1"} == set(told_by(lines("", [line], UNIT, UNIT).drawing))
    assert told_by(scatter("", [Point("b", 0.5, 0.25)], UNIT, UNIT).drawing) == ["b: 0.5, 0.25"]


def test_axes_hold_what_is_drawn_and_labels_do_not_touch():
    axis = axis_of([3.0, 0.0, 50.0, math.inf], "")
    assert 2 < axis.low < 3
    assert 50 < axis.high < 70
    for pixels in (100, 300, 1000):
        places = [place * pixels for place, _ in axis.labels(pixels)]
        assert len(places) > 1
        assert min(b - a for a, b in pairwise(places)) > 20
    assert axis_of([0.0], "").labels(100)  # a clock that moves in longer steps than a phase


def test_of_many_values_some_are_kept_with_the_extremes():
    values = [float((7 * n) % 300) for n in range(300)]
    found = [values[n] for n in kept(values, 100)]
    assert len(found) <= 100
    assert {0.0, 299.0} <= set(found)


def test_a_backend_has_one_colour():
    assert colour("adios2") == colour("adios2") != colour("hdf5")
    assert colour("adios2").startswith("#")


def test_unprintable_text_is_replaced():
    assert plain("a\x01b\nc") == "a\ufffdb\ufffdc"
    panel = dots("<x>", ["a\x01&"], [], UNIT)
    ET.fromstring(Figure("h & <b>", [panel]).svg())
