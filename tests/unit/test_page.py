"""`report.html` as text: what it says first, what it holds, how it thins out, what it escapes."""

from __future__ import annotations

import csv
import json
import re
from html import unescape

import h5py
import pytest

from drawn_runs import PHASES, USUAL, a_case, a_run
from pffbench.errors import UserError
from pffbench_analysis.page import numbers
from pffbench_analysis.page.build import render
from pffbench_analysis.page.ranks import MOST_RANKS, read_ranks
from pffbench_analysis.report import readable, report

EVIL = "</script><script>alert(1)</script>&\"'<!--"


def page_of(directory):
    path = next(path for path in report([directory]) if path.name == "report.html")
    return path.read_text(encoding="utf-8")


def data_of(page):
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', page)[1]
    )


@pytest.fixture
def run(tmp_path):
    return a_run(tmp_path / "run", USUAL)


def test_the_verdict_comes_first(run, tmp_path):
    page = page_of(run)
    body = page[page.index("<main>") :]
    assert body.index('class="badge">VALID') < body.index("<table")
    invalid = page_of(a_run(tmp_path / "bad", USUAL, valid=False, reasons=["rank 3 read 7"]))
    assert 'class="badge">INVALID' in invalid
    assert "rank 3 read 7" in invalid
    assert "if they could be trusted" in invalid or "No comparison of formats" in invalid


@pytest.mark.parametrize(
    ("status", "valid", "word"),
    [("interrupted", True, "INTERRUPTED"), ("running", None, "NOT FINISHED"),
     ("written", None, "WRITTEN")],
)  # fmt: skip
def test_a_run_that_is_not_at_its_end_says_so(tmp_path, status, valid, word):
    page = page_of(a_run(tmp_path, USUAL, status=status, valid=valid))
    assert f'class="badge">{word}' in page


def test_it_names_no_address(run):
    """Nothing can be fetched: no element has an address on a network, and the policy forbids it."""
    page = page_of(run)
    assert not re.search(r"""(?:src|href|action|poster)\s*=\s*["']?(?:https?:)?//""", page)
    assert "@import" not in page
    policy = unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1])
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy.split("style-src")[0]
    assert len(page) < 6_000_000


def test_its_numbers_are_those_of_the_summary(run):
    data = data_of(page_of(run))
    with (run / "summary.csv").open(newline="") as file:
        rows = {(row["case"], row["phase"]): row for row in csv.DictReader(file)}
    seen = 0
    for case in data["groups"][0]["cases"]:
        for phase, told in case["phases"].items():
            row = rows[case["case"], phase]
            for name, column in (("median", "median_s"), ("low", "low_s"), ("high", "high_s")):
                assert told[name] == pytest.approx(float(row[column]), rel=1e-4)
            assert [w["code"] for w in told["warnings"]] == row["warning_codes"].split()
            seen += 1
    assert seen == len(rows)


def test_hostile_text_is_escaped_everywhere(tmp_path):
    run = a_run(tmp_path, USUAL, question=EVIL, reasons=[EVIL], provenance={EVIL: EVIL})
    summary = readable(run)
    summary.record.name = EVIL  # which no record that is read can have
    page = render(summary, run, {group: {} for group in summary.groups})
    assert EVIL not in page
    assert "<script>alert" not in page
    assert page.count("<script") == page.count("</script>") == 3


def test_warnings_stand_beside_their_numbers(tmp_path):
    page = page_of(a_run(tmp_path, USUAL, floor={"barrier": 1e-3, "tick": 1e-8,
                                                 "memory_copy_bytes_per_second": 1e9}))  # fmt: skip
    table = page[page.index("<tbody>") : page.index("</tbody>")]
    assert re.search(r'<abbr title="[^"]*under 100 times the floor">r</abbr>', table)


def test_ranks_are_told_one_by_one(run):
    case = data_of(page_of(run))["groups"][0]["cases"][0]
    write = case["ranks"]["phases"]["write"]
    assert case["ranks"]["hosts"] == ["a", "b"]
    assert write["median"][0] == pytest.approx(2 * write["median"][1])
    assert write["median"][0] == pytest.approx(case["phases"]["write"]["median"], rel=1e-3)
    assert write["quantiles"][0] == pytest.approx(write["median"][1])


def test_many_ranks_are_put_together(tmp_path):
    own = [[[0.001 * (1 + rank) for rank in range(1000)]]]
    with h5py.File(tmp_path / "ranks.h5", "w") as file:
        file["host"] = ["node"] * 1000
        group = file.create_group("case")
        group.attrs["phases"] = ["write"]
        group["own"] = own
        group["repetition"] = [1]
    found = read_ranks(tmp_path, {"case": frozenset({1})}).of("case")
    assert len(found["first"]) == MOST_RANKS
    assert found["phases"]["write"]["low"][0] == 0.001
    assert found["phases"]["write"]["high"][-1] == 1.0


def test_of_many_repetitions_some_are_held_with_the_extremes(tmp_path, monkeypatch):
    monkeypatch.setattr(numbers, "MOST_POINTS", 13 * 12)
    data = data_of(page_of(a_run(tmp_path, USUAL[:1], repetitions=40)))
    assert data["mostPoints"] == 12
    for phase in data["groups"][0]["cases"][0]["phases"].values():
        assert phase["n"] == 40
        assert 10 <= len(phase["seconds"]) == len(phase["repetitions"]) <= 12
        assert (min(phase["seconds"]), max(phase["seconds"])) == (phase["min"], phase["max"])


# What is missing is said, and the rest is shown


def test_without_times_of_ranks(run):
    (run / "ranks.h5").unlink()
    page = page_of(run)
    assert "ranks.h5 is missing" in page
    data = data_of(page)
    assert data["noRanks"]
    assert data["groups"][0]["cases"][0]["phases"]["write"]["spread"]["host"] == "a"


def test_with_broken_times_of_ranks(run):
    (run / "ranks.h5").write_bytes(b"no HDF5")
    assert "ranks.h5 cannot be read" in page_of(run)


def test_a_killed_run_is_reported_as_far_as_it_went(run):
    path = run / "samples.csv"
    text = path.read_text()
    path.write_text(text[: text.rindex(",write,") + 3])
    page = page_of(run)
    assert "ends in the midst of a line" in page
    assert "1 repetition was cut short" in page
    last = data_of(page)["groups"][0]["cases"][-1]
    assert last["phases"]["create"]["n"] == 3  # of four that count


def test_cases_without_a_number_are_named(run):
    data = json.loads((run / "run.json").read_text())
    name, entry = a_case("netcdf4")
    data["cases"][name] = entry
    (run / "run.json").write_text(json.dumps(data))
    assert f"1 of 5 cases gave no number: {name}" in page_of(run)


def test_a_page_in_the_way(run):
    (run / "report.html").mkdir()
    with pytest.raises(UserError, match=r"report\.html cannot be written"):
        list(report([run]))


def test_every_phase_can_be_chosen(run):
    assert set(data_of(page_of(run))["phases"]) == {*PHASES, "write_total", "read_total"}
    assert readable(run).gaps == ()
