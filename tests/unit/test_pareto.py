"""Compression against speed: who is on the front, how sure that is, and what is recommended."""

from __future__ import annotations

import csv
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawn_codecs import WAYS, a_codecs_run
from drawn_runs import BYTES, USUAL, a_run
from pffbench.summary.crossing import WaysAtSize, compare_ways
from pffbench.summary.headline import Design
from pffbench.summary.rank_test import FEWEST
from pffbench.summary.statistics import spread
from pffbench.summary.summary import summarise
from pffbench_analysis.page.build import render
from pffbench_analysis.recommend.candidates import Candidate, Work
from pffbench_analysis.recommend.frontier import (
    DataKind,
    FrontStanding,
    Speed,
    choices,
    chosen,
    kinds_of,
    non_dominated,
    shown_faster,
    standings,
)
from pffbench_analysis.recommend.frontier_figure import draw_kind
from pffbench_analysis.recommend.frontier_files import write_frontier
from pffbench_analysis.recommend.frontier_text import headline, markdown, sureness
from pffbench_analysis.report import report

MIB = 2**20
#: One look, after all repetitions; those that are drawn here are as many.
BLOCKS = 12
DESIGN = Design((BLOCKS,))
#: Few different values, so that ties are frequent.
VALUES = st.lists(
    st.tuples(*[st.sampled_from([1.0, 2.0, 3.0, 5.0, np.nan])] * 3), min_size=1, max_size=12
)


def dominates(a, b):
    return all(x >= y for x, y in zip(a, b, strict=True)) and a != b


# The front by itself


@given(VALUES)
def test_the_front_is_what_nothing_dominates(rows):
    front = non_dominated(np.array(rows))
    there = [row for row in rows if not any(map(np.isnan, row))]
    for row, on_front in zip(rows, front, strict=True):
        if any(map(np.isnan, row)):
            assert not on_front
        elif on_front:
            assert not any(dominates(other, row) for other in there)
        else:
            mine = [r for r, on in zip(rows, front, strict=True) if on]
            assert any(dominates(other, row) for other in mine)
    assert front.any() == bool(there)


@given(VALUES, st.randoms())
def test_the_order_does_not_matter(rows, chance):
    values = np.array(rows)
    order = list(range(len(rows)))
    chance.shuffle(order)
    assert np.array_equal(non_dominated(values[order]), non_dominated(values)[order])


# The front with what is shown


def a_point(ratio, seconds=None, read=None, unsure=False):
    """Return a way of a case that takes these seconds."""
    phases = {
        total: SimpleNamespace(
            by_block=numbered(took),
            seconds=spread([*numbered(took).values()]),
            warned=lambda code: unsure and code == "below_resolution",
        )
        for total, took in {"write_total": seconds, "read_total": read}.items()
        if took is not None
    }
    case = SimpleNamespace(
        phases=phases, nbytes=BYTES, read_bytes=BYTES, disk_files=1,
        counts={("write", "stored_bytes"): BYTES / ratio}, sample=SimpleNamespace(backend="hdf5"),
    )  # fmt: skip
    parameters = {"layout": "own", "transfer": "", "settings": "", "codec": f"r{ratio}"}
    return Candidate(case, parameters, {}, None)


def a_kind(points, design=DESIGN):
    """Return the kind of data of some ways."""
    return DataKind("", Work({}, tuple(points), design), 2, tuple(points))


def place_points(points, directions, design=DESIGN):
    return standings(a_kind(points, design), directions)


POINTS = st.lists(
    st.tuples(
        st.sampled_from([1.0, 1.5, 2.0, 40.0]),
        st.sampled_from([0.1, 0.101, 0.2, 0.4]),
        st.one_of(st.none(), st.sampled_from([0.1, 0.3])),
        st.integers(0, 2**32 - 1),
    ),
    min_size=1,
    max_size=8,
)


def draw_points(told, blocks=BLOCKS):
    points = []
    for ratio, write, read, seed in told:
        noise = np.exp(np.random.default_rng(seed).normal(0, 0.03, (2, blocks)))
        points.append(a_point(ratio, write * noise[0], None if read is None else read * noise[1]))
    return points


@settings(max_examples=25, deadline=None)
@given(POINTS, st.sampled_from([("write",), ("read",), ("write", "read")]))
def test_standings_agree_with_the_front_of_the_medians(told, directions):
    points = draw_points(told)
    placed = place_points(points, directions)
    rates = [
        [
            np.nan if (s := Speed.of(p, d)) is None else 1 / s.phase.seconds.median
            for d in directions
        ]
        for p in points
    ]
    values = [[p.ratio, *r] for p, r in zip(points, rates, strict=True)]
    front = non_dominated(np.array(values))
    for i, (one, on_front) in enumerate(zip(placed, front, strict=True)):
        assert one.standing.on_front == on_front
        assert (one.standing is FrontStanding.NONE) == any(np.isnan(rates[i]))
        if one.standing in (FrontStanding.OFF, FrontStanding.CLOSE):
            other = placed[one.by]
            assert points[one.by].ratio >= points[i].ratio
            assert all(a >= b for a, b in zip(rates[one.by], rates[i], strict=True))
            assert one.standing is FrontStanding.OFF or other.standing is not FrontStanding.NONE


@settings(max_examples=25, deadline=None)
@given(POINTS, st.randoms())
def test_standings_do_not_depend_on_the_order(told, chance):
    points = draw_points(told)
    order = list(range(len(points)))
    chance.shuffle(order)
    before = [one.standing for one in place_points(points, ("write",))]
    after = [one.standing for one in place_points([points[i] for i in order], ("write",))]
    assert after == [before[i] for i in order]


NOISE = np.array([1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.015, 0.985, 1.005, 0.995, 1.01, 0.99])


def test_a_point_is_off_the_front_only_when_that_is_shown():
    fast, slow, hardly_slower = 0.1 * NOISE, 0.2 * NOISE[::-1], 0.1005 * NOISE[::-1]
    points = [a_point(2, fast), a_point(1.5, slow), a_point(1.5, hardly_slower)]
    told = place_points(points, ("write",))
    assert [one.standing for one in told] == [
        FrontStanding.ON, FrontStanding.OFF, FrontStanding.CLOSE
    ]  # fmt: skip
    assert [one.by for one in told] == [None, 0, 0]


def test_a_point_is_on_the_front_for_sure_only_when_all_that_are_as_small_are_slower():
    points = [a_point(2, 0.2 * NOISE), a_point(1.5, 0.1 * NOISE[::-1]), a_point(1, 0.0995 * NOISE)]
    told = place_points(points, ("write",))
    assert [one.standing for one in told] == [
        FrontStanding.ON, FrontStanding.ON, FrontStanding.BY_MEDIAN
    ]  # fmt: skip
    assert told[2].by == 1


def test_too_few_blocks_and_too_short_phases_show_nothing():
    for blocks in (4, FEWEST - 1):
        few = [a_point(2, [0.1] * blocks), a_point(1, [0.3] * blocks)]
        assert place_points(few, ("write",), Design((blocks,)))[1].standing is FrontStanding.CLOSE
    enough = [a_point(2, [0.1] * FEWEST), a_point(1, [0.3] * FEWEST)]
    assert place_points(enough, ("write",), Design((FEWEST,)))[1].standing is FrontStanding.OFF
    short = [a_point(2, 0.1 * NOISE, unsure=True), a_point(1, 0.3 * NOISE)]
    assert place_points(short, ("write",))[1].standing is FrontStanding.CLOSE


def test_together_a_point_is_off_when_it_is_slower_in_both():
    points = [
        a_point(2, 0.1 * NOISE, 0.1 * NOISE),
        a_point(2, 0.3 * NOISE, 0.3 * NOISE),
        a_point(2, 0.3 * NOISE, 0.05 * NOISE),
        a_point(2, 0.3 * NOISE),
    ]
    told = [one.standing for one in place_points(points, ("write", "read"))]
    assert told == [FrontStanding.ON, FrontStanding.OFF, FrontStanding.ON, FrontStanding.NONE]
    assert place_points(points, ("write",))[3].standing is FrontStanding.OFF


def test_fronts_and_choices_give_one_answer_for_a_pair():
    """A pair that a family of one direction would decide, and one of three does not."""
    rng = np.random.default_rng(5)
    pair = [np.arange(1.0, 9.0), np.arange(4.5, 12.5)]
    kind = a_kind([a_point(2, took, np.exp(rng.normal(0, 0.1, 8))) for took in pair], Design((8,)))
    times = [numbered(took) for took in pair]
    (alone,) = decide_questions(times, design=Design((8,)))
    assert alone[0, 1]
    for directions in (("write",), ("read",), ("write", "read")):
        assert standings(kind, directions)[1].standing is not FrontStanding.OFF
    assert chosen(choices(kind)["fastest writing"]) is None
    for direction in ("write", "read"):
        decided = kind.answers[direction].decisions["000000", "000001"]
        beaten = standings(kind, (direction,))[1].standing is FrontStanding.OFF
        assert beaten == decided.shorter


def test_of_equal_ways_none_is_chosen_and_equally_small_ones_are_named_together():
    rng = np.random.default_rng(6)
    kind = a_kind([a_point(2, *np.exp(rng.normal(0, 0.2, (2, BLOCKS)))) for _ in range(3)])
    smallest, *others = choices(kind).values()
    assert chosen(smallest) is kind.points[0]
    assert len(smallest.best) == 3
    for answer in others:
        assert chosen(answer) is None
        assert {id(way.candidate) for way in answer.best} == set(map(id, kind.points))
        assert re.fullmatch(r"not decided between .* would decide it", sureness(kind, answer))


def test_the_only_way_that_was_read_is_not_the_fastest():
    kind = a_kind([a_point(2, 0.1 * NOISE, 0.1 * NOISE), a_point(1, 0.3 * NOISE)])
    found = choices(kind)
    assert chosen(found["fastest writing"]) is kind.points[0]
    for purpose in ("fastest reading", "balance"):
        assert sureness(kind, found[purpose]) == "only HDF5, codec r2 was measured"


def decide_questions(*questions, design=DESIGN):
    """Return for each question whether i is shown to be faster than j."""
    fields = [
        WaysAtSize(place, "", 0, {str(n): own for n, own in enumerate(times) if own})
        for place, times in enumerate(questions)
    ]
    found = compare_ways([field for field in fields if field.times], design)
    return [
        shown_faster(found[place][0].decisions if place in found else {}, len(times))
        for place, times in enumerate(questions)
    ]


def test_chance_is_seldom_taken_for_a_difference():
    rng = np.random.default_rng(3)
    wrong = 0
    for _ in range(40):
        times = [numbered(0.1 * np.exp(rng.normal(0, 0.1, BLOCKS))) for _ in range(8)]
        wrong += decide_questions(times)[0].any()
    assert wrong <= 6  # 5 % of 40 runs are 2; 7 or more have a probability of 0.3 %


def test_all_directions_are_one_family():
    """What is shown by itself need not be so among many: the level is divided by all pairs."""
    rng = np.random.default_rng(5)
    short = Design((8,))
    pair = [numbered(one) for one in (np.arange(1.0, 9.0), np.arange(4.5, 12.5))]
    others = [[numbered(np.exp(rng.normal(0, 0.1, 8))) for _ in range(7)] for _ in range(2)]
    (alone,) = decide_questions(pair, design=short)
    assert alone.tolist() == [[False, True], [False, False]]
    first, *_ = decide_questions(pair, *others, design=short)
    assert not first.any()


def test_times_that_never_vary_leave_no_doubt_and_single_ones_show_nothing():
    ones, twos = (numbered(np.full(BLOCKS, seconds)) for seconds in (1.0, 2.0))
    later = numbered(np.full(BLOCKS, 2.0), 10**6)
    for other in (twos, later):
        assert decide_questions([ones, other])[0].tolist() == [[False, True], [False, False]]
    assert not decide_questions([ones, dict(ones)])[0].any()
    for lone in ([{0: 1.0}, {7: 2.0}], [{0: 1.0}, {0: 2.0}], [ones, None], [ones, {}], [None]):
        assert not decide_questions(lone)[0].any()
    # A time of 0 is of a broken table, and has no ratio.
    assert not decide_questions([ones, numbered(np.zeros(BLOCKS))])[0].any()


def numbered(seconds, first=0):
    """Return seconds by block."""
    return {first + block: float(s) for block, s in enumerate(seconds)}


# Of a run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return a_codecs_run(tmp_path_factory.mktemp("codecs") / "run")


@pytest.fixture(scope="module")
def kinds(run):
    return kinds_of(summarise(run))


def test_kinds_of_data_are_told_apart(kinds):
    assert [kind.name for kind in kinds] == ["image", "sparse"]
    assert [len(kind.points) for kind in kinds] == [6, 3]
    found = {(p.backend, p.codec): p for p in kinds[0].points}
    for (source, backend, codec), (ratio, write, read) in WAYS.items():
        if source == "image":
            point = found[backend, codec]
            assert point.ratio == pytest.approx(ratio)
            rate, low, high = Speed.of(point, "write").rate()
            assert low <= rate <= high
            assert rate == pytest.approx(BYTES / write, rel=0.2)
            stored = Speed.of(point, "read").rate(stored=True)
            assert stored.value == pytest.approx(BYTES / ratio / read, rel=0.2)


def test_the_planted_front_is_found(kinds):
    points, told = kinds[0].points, {}
    for direction in ("write", "read"):
        placed = zip(points, standings(kinds[0], (direction,)), strict=True)
        told[direction] = {way_of(p) for p, one in placed if one.standing.on_front}
    assert told["write"] == {"hdf5 none", "hdf5 zstd", "zarr gzip"}
    assert told["read"] == {"zarr none", "hdf5 zstd", "zarr gzip"}


def way_of(point):
    return f"{point.backend} {point.codec}"


def test_the_recommendation_is_the_planted_one(kinds):
    told = choices(kinds[0])
    assert {name: way_of(chosen(answer)) for name, answer in told.items()} == {
        "smallest files": "zarr gzip",
        "fastest writing": "hdf5 none",
        "fastest reading": "zarr none",
        "balance": "hdf5 zstd",  # (0.20 + 0.12) / 2.0, against 0.20 without compression
    }
    assert all(len(answer.best) == 1 for answer in told.values())
    smallest = choices(kinds[1])["smallest files"]
    assert [way_of(way.candidate) for way in smallest.best] == ["hdf5 zstd", "zarr zstd"]


def test_the_balance_is_the_least_product_of_bytes_and_time(kinds):
    for kind in kinds:
        products = {
            kind.way(p): p.stored_bytes * sum(
                Speed.of(p, direction).phase.seconds.median for direction in ("write", "read")
            )
            for p in kind.points
        }  # fmt: skip
        assert kind.way(chosen(choices(kind)["balance"])) == min(products, key=products.get)


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"valid": False, "reasons": ["rank 3 read 7"]}, "INVALID: rank 3 read 7"),
        ({"valid": None, "status": "running"}, "it is not finished"),
    ],
)
def test_nothing_is_recommended_from_a_run_that_is_not_valid(tmp_path, record, said):
    run = a_codecs_run(tmp_path / "run", **record)
    summary = summarise(run)
    text = "\n".join(markdown(kinds_of(summary), summary))
    assert said in text
    assert "take " not in text
    assert "smallest files" not in text


def test_what_was_not_read_or_not_counted(tmp_path):
    run = a_codecs_run(
        tmp_path / "run", unread=[("image", "hdf5", "zstd")], uncounted=[("image", "zarr", "gzip")]
    )
    kind = kinds_of(summarise(run))[0]
    assert kind.without == ["Zarr, codec gzip"]
    unread = next(i for i, p in enumerate(kind.points) if way_of(p) == "hdf5 zstd")
    assert Speed.of(kind.points[unread], "read") is None
    assert standings(kind, ("read",))[unread].standing is FrontStanding.NONE
    assert standings(kind, ("write",))[unread].standing.on_front
    assert way_of(chosen(choices(kind)["fastest reading"])) == "zarr none"
    assert draw_kind(kind, summarise(run))


def test_one_codec_has_no_front(tmp_path):
    run = a_codecs_run(tmp_path / "run", {k: v for k, v in WAYS.items() if k[2] == "zstd"})
    assert kinds_of(summarise(run)) == []
    assert list(write_frontier(summarise(run), run)) == []


@pytest.fixture(scope="module")
def files(run):
    return list(report([run]))


def test_files_say_the_same_as_the_points(run, kinds, files):
    assert {"pareto.md", "pareto.csv", "pareto-image.png", "pareto-sparse.svg"} <= {
        file.name for file in files
    }
    with (run / "pareto.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * len(WAYS)
    for row in rows:
        logical, stored = float(row["rate_mib_s"]), float(row["stored_rate_mib_s"])
        assert logical / stored == pytest.approx(float(row["ratio"]))
        assert float(row["rate_per_rank_mib_s"]) == pytest.approx(logical / int(row["ranks"]))
        assert logical == pytest.approx(BYTES / MIB / float(row["median_s"]))
    first = (run / "pareto.md").read_text().split("\n")[2]
    assert first == f"- {headline(kinds[0], summarise(run))}"
    assert "take HDF5, codec zstd (ratio 2" in first


def test_the_figure_has_a_mark_for_each_point_and_the_front(run, kinds):
    figure = draw_kind(kinds[0], summarise(run))
    assert [panel.heading for panel in figure.panels] == ["write", "read"]
    for panel in figure.panels:
        points, steps = panel.values("on_front"), panel.values("front")
        assert len(points) == 6
        assert any(point["on_front"] for point in points)
        for point in points:  # nothing is right of and above the front
            right = [step["value"] for step in steps if step["x"] >= point["x"] / 1.05]
            assert not right or point["value"] <= max(right) * 1.001 or point["on_front"]


def data_of(page):
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', page)[1]
    )


def test_the_page_has_the_section_and_its_numbers(kinds, files):
    path = next(file for file in files if file.name == "report.html")
    page = path.read_text(encoding="utf-8")
    assert '<section id="compression">' in page
    told = data_of(page)["compression"]["kinds"]
    assert [kind["name"] for kind in told] == ["image, 2 ranks", "sparse, 2 ranks"]
    for kind, own in zip(told, kinds, strict=True):
        rows = kind["views"]["read bytes"]["numbers"]
        for row, real in zip(rows, own.points, strict=True):
            assert row["way"] == own.way(real)
            rate = Speed.of(real, "read").rate().value / MIB
            assert row["rate_mib_s"] == pytest.approx(rate, rel=1e-4)
            assert row["standing"] in {standing.value for standing in FrontStanding}


def test_a_run_without_codecs_has_no_section(tmp_path):
    summary = summarise(a_run(tmp_path / "run", USUAL))
    page = render(summary, tmp_path / "run", {})
    assert '<section id="compression">' not in page
    assert data_of(page)["compression"] is None
    assert list(write_frontier(summary, tmp_path / "run")) == []


def test_files_of_an_earlier_report_are_taken_away(tmp_path):
    run = a_codecs_run(tmp_path / "run", {k: v for k, v in WAYS.items() if k[2] == "zstd"})
    (run / "plots").mkdir()
    for name in ("pareto.md", "pareto.csv", "plots/pareto-image.png"):
        (run / name).write_text("old")
    list(write_frontier(summarise(run), run))
    assert not list(run.glob("pareto*"))
    assert not list((run / "plots").glob("pareto*"))
