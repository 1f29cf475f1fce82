"""The pictures of `report.html` in a real browser: points with intervals, on logarithmic axes."""

from __future__ import annotations

import json

import pytest
from chromium import MEDIANS_OF

from drawn_runs import USUAL, a_run
from pages import page_of

pytestmark = pytest.mark.browser

#: Names of the figures that follow the controls.
FIGURES = ("medians", "roofline", "drift", "spread")
#: The axis of the answer, and where pictures say of which kind a mark is.
RATIO = "times as long, logarithmic"
KIND = "aria-roledescription"


def with_invalid_case(directory, cases, name):
    """Write a run of which a case read wrong data, and return its page."""
    run = a_run(directory, cases, reasons=["wrong data"], valid=False)
    record = json.loads((run / "run.json").read_text())
    record["cases"][name]["invalid"] = "wrong data"
    (run / "run.json").write_text(json.dumps(record))
    return page_of(run)


def test_the_answer_is_drawn_before_the_tables_of_numbers(browser, page):
    browser.open(page)
    told = json.loads(browser.text("#data"))
    rows = told["answer"]["numbers"]
    points = browser.marks(MEDIANS_OF.format("answer"))
    assert sorted(float(point[RATIO]) for point in points) == pytest.approx(
        sorted(row["ratio"] for row in rows), rel=1e-4
    )
    others = [row for row in rows if row["standing"] not in ("fastest", "ahead")]
    lines = browser.marks("#answer .mark-rule.role-mark line[aria-label*='high:']")
    intervals = sorted((row["low"], row["high"]) for row in others)
    assert sorted((float(line[RATIO]), float(line["high"])) for line in lines) == [
        pytest.approx(ends, rel=1e-4) for ends in intervals
    ]
    written = browser.text("#answer .chart")
    for row in others:
        assert f"{row['format']} {row['ratio']:.2f}" in written
    assert browser.js(
        "document.querySelector('#answer').compareDocumentPosition("
        "document.querySelector('#tables table'))"
        " & Node.DOCUMENT_POSITION_FOLLOWING"
    )


def test_a_band_is_the_only_area(browser, page):
    """Nothing is drawn as a bar: its length would mean nothing on a logarithmic axis."""
    browser.open(page)
    for phase in ("*metadata", "write", "*totals"):
        browser.choose("phase", phase)
        assert browser.count(f"[{KIND}=bar]") == 0
        assert browser.count(f"[{KIND}=point]") > 0
    bands = browser.marks(f"[{KIND}='rect mark']")
    assert [float(band["to"]) for band in bands] == [pytest.approx(1.1)] * 2


def test_axes_are_logarithmic_until_linear_ones_are_chosen(browser, page):
    def scales():
        labels = browser.js(
            "[...document.querySelectorAll('#figures .role-axis[aria-label]')]"
            ".map(axis => axis.getAttribute('aria-label'))"
        )
        values = [label for label in labels if " with values from " in label]
        # Repetitions and ranks are numbers too, and evenly spaced.
        values = [v for v in values if "'repetition'" not in v and "'rank'" not in v]
        assert len(values) >= 2 * len(FIGURES)
        return {label.split(" for a ")[1].split(" scale")[0] for label in values}

    browser.open(page)
    assert scales() == {"log"}
    browser.choose("scale", "linear")
    assert scales() == {"linear"}


def test_invalid_cases_are_not_drawn(browser, tmp_path):
    browser.open(with_invalid_case(tmp_path / "run", USUAL, USUAL[2][0]))
    assert "INVALID" in browser.text("#tables tr.invalid")
    assert browser.count("#answer .chart") == 0  # nothing is left to compare the other format with
    for figure in FIGURES:
        assert "zarr" not in browser.text(f"#{figure} .chart")
        assert "zarr" not in browser.text(f"#{figure} .values")
    assert "Not drawn, INVALID: zarr matched independent" in browser.text("#medians .notes")


def test_a_run_without_a_valid_case_has_a_page(browser, tmp_path):
    browser.open(with_invalid_case(tmp_path / "run", USUAL[:1], USUAL[0][0]))
    assert browser.text(".badge") == "INVALID"
    assert browser.count("figure") == 0


def test_few_repetitions_have_lines_without_caps(browser, page, tmp_path):
    def caps():
        return browser.count(f"#medians [{KIND}=tick]")

    def lines():
        return len(browser.marks("#medians .mark-rule.role-mark line[aria-label*='high:']"))

    browser.open(page)
    assert "Lines with caps: 95 % interval" in browser.text("#medians .notes")
    assert caps() == 2 * lines() > 0
    browser.open(page_of(a_run(tmp_path / "few", USUAL, repetitions=3)))
    notes = browser.text("#medians .notes")
    assert "range of fewer than five repetitions" in notes
    assert "95 %" not in notes
    assert caps() == 0 < lines()


def test_an_interval_without_bounds_is_told(browser, tmp_path):
    browser.open(page_of(a_run(tmp_path / "few", USUAL, repetitions=3)))
    assert "(no interval)" in browser.text("#answer .chart")
    assert browser.count(f"#answer [{KIND}=tick]") == 0
