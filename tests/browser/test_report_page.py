"""`report.html` in a real browser: it answers to its controls and fetches nothing."""

from __future__ import annotations

import csv
import json
import re
from base64 import b64decode
from io import BytesIO
from unicodedata import normalize
from xml.etree import ElementTree

import numpy as np
import pytest
from axe_core_python.selenium import Axe
from chromium import MEDIANS_OF, REPETITIONS_OF
from PIL import Image
from pypdf import PdfReader

from drawn_codecs import WAYS, a_codecs_run
from drawn_runs import USUAL, a_case, a_run
from launch import REPOSITORY, pffbench_cli, sampled
from pages import page_of
from pffbench_analysis.report import report

pytestmark = pytest.mark.browser

MEDIANS = "document.querySelector('#medians .chart').innerHTML"


def test_it_opens_from_a_file_with_the_verdict_and_figures(browser, page):
    browser.open(page)
    assert browser.text(".badge") == "ANSWER"
    shown = browser.js(
        "[...document.querySelectorAll('figure')].filter(f => !f.hidden && f.querySelector('svg'))"
        ".map(f => f.id)"
    )
    assert shown == [
        "answer",
        "medians",
        "roofline",
        "drift",
        "spread",
    ]  # of two ranks none is drawn rank by rank
    for figure in shown:
        axis = browser.js(
            f"[...document.querySelectorAll('#{figure} .role-axis-title')].map(t => t.textContent)"
        )
        assert any(title.endswith(", logarithmic") for title in axis)
    assert browser.js("performance.getEntriesByType('resource').length") == 0


@pytest.fixture(scope="module")
def default(tmp_path_factory):
    """The page of a real run of configs/default.yaml with small arrays: time is not of interest."""
    place = tmp_path_factory.mktemp("default")
    changes = ("shape_per_rank=[4, 16, 16]", "chunks=[2, 16, 16]", "repetitions=2", "warmup=0")
    small = [word for change in changes for word in ("--set", change)]
    config = REPOSITORY / "configs" / "default.yaml"
    done = pffbench_cli(
        "run", config, *small, "--out", "run", "--scratch", place, ranks=2, cwd=place, timeout=180
    )
    assert done.status == 0, done.said
    return page_of(place / "run")


@pytest.mark.parallel
def test_a_run_of_the_default_experiment_has_a_page_that_answers(browser, default):
    browser.open(default)
    assert browser.text(".badge") == "NO ANSWER"  # of two repetitions
    groups = browser.js(
        "[...document.querySelector('select[name=group]').options].map(o => o.text)"
    )
    layouts = dict.fromkeys(re.search(r", layout (\w+)", group)[1] for group in groups)
    assert list(layouts) == ["shared", "own", "file_per_process"]
    for name, value in (("group", "1"), ("phase", "*metadata"), ("measure", "operations")):
        before = browser.js(MEDIANS)
        browser.choose(name, value)
        assert browser.js(MEDIANS) != before
    for backend in ("hdf5", "netcdf4", "zarr"):
        assert f"{backend} matched" in browser.text("#medians .values")
    assert "2 ranks on 1 node" in browser.text("footer")


def test_published_numbers_and_their_figure_are_in_the_page(browser, tmp_path):
    pytest.importorskip("pffbench_studies")
    cases = [
        a_case(name, workload="datasets", datasets=2048, shape=[128], layout="file_per_process")
        for name in ("hdf5", "netcdf4", "zarr")
    ]
    study = {"study": "file-format-testing"}
    run = a_run(tmp_path / "run", cases, experiment=study)
    list(report([run]))  # the page shows a picture beside it
    browser.open(run / "report.html")
    assert browser.js("document.querySelectorAll('#published table').length") == 3
    browser.wait("document.querySelector('img.published').naturalWidth > 300")


def test_compression_shows_time_against_bytes_in_the_files(browser, tmp_path):
    browser.open(page_of(a_codecs_run(tmp_path / "run")))
    points = "document.querySelectorAll('#compression .chart .mark-symbol.role-mark path').length"
    assert browser.js(points) == 2 * sum(source == "image" for source, _, _ in WAYS)
    assert "2.1" in browser.text("#compression .values")  # the ratio of Zarr with gzip
    browser.choose("group", "1")
    assert browser.js(points) == 2 * sum(source == "sparse" for source, _, _ in WAYS)


@pytest.mark.parametrize(
    ("name", "value", "seen"),
    [
        ("phase", "define", "define"),
        ("phase", "*metadata", "open array"),
        ("group", "1", "layout own"),
        ("measure", "rate", "MiB/s"),
        ("transfer", "collective", "hdf5 matched collective"),
        ("settings", "matched", "zarr matched independent"),
        ("scale", "linear", "ms"),
    ],
)
def test_figures_follow_the_controls(browser, page, name, value, seen):
    browser.open(page)
    before = browser.js(MEDIANS)
    browser.choose(name, value)
    after = browser.js(MEDIANS)
    assert after != before
    assert seen in browser.text("#medians")
    charted = browser.text("#medians .chart")
    if name == "settings":
        assert "zarr defaults" not in charted
    if name == "transfer":
        assert "independent" not in charted


def test_the_address_holds_the_choices(browser, page):
    browser.open(page)
    browser.choose("phase", "write")
    browser.choose("scale", "linear")
    browser.click("#controls input[value=zarr]")
    browser.wait("!document.querySelector('#medians .chart').textContent.includes('zarr')")
    address = browser.js("location.href")
    seen = browser.js(MEDIANS)
    browser.driver.get("about:blank")
    browser.driver.get(address)
    browser.wait("document.documentElement.dataset.drawn")
    assert browser.js("document.querySelector('select[name=scale]').value") == "linear"
    assert browser.js(MEDIANS) == seen


def test_header_and_first_column_of_a_table_stay_in_sight(browser, page):
    size = {"width": 390, "height": 700, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        browser.open(page)
        moved = browser.js(
            "(() => { document.querySelector('.comparison').open = true;"
            "const box = document.querySelector('#tables .scroll');"
            "const first = box.querySelector('tbody th'); box.scrollLeft = 200;"
            "const [x, y] = [first, box].map(node => node.getBoundingClientRect().x);"
            "return [box.scrollLeft, x - y] })()"
        )
        assert moved[0] > 100
        assert abs(moved[1]) < 2
        head = "getComputedStyle(document.querySelector('#tables thead')).position"
        assert browser.js(head) == "sticky"
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_repetitions_and_formats_can_be_taken_away(browser, page):
    browser.open(page)
    dots = f'document.querySelectorAll("{REPETITIONS_OF.format("medians")}").length'
    assert browser.js(dots) >= 4 * len(USUAL)
    browser.click("#controls input[name=points]")
    browser.wait(f"{dots} === 0")
    browser.click("#controls input[value=zarr]")
    browser.wait("!document.querySelector('#medians .chart').textContent.includes('zarr')")


@pytest.fixture(scope="module")
def ranked(tmp_path_factory):
    """The page of a run of three ranks, which is drawn rank by rank."""
    return page_of(a_run(tmp_path_factory.mktemp("ranked"), USUAL, ranks=3))


def test_a_case_can_be_chosen_among_the_ranks(browser, ranked):
    browser.open(ranked)
    browser.driver.execute_script(
        "const s = document.querySelector('#byrank select'); s.selectedIndex = 2;"
        "s.dispatchEvent(new Event('change'))"
    )
    browser.wait(
        "document.querySelector('#byrank .what').textContent.includes("
        "document.querySelector('#byrank select').selectedOptions[0].text)"
    )


def test_pointing_at_a_median_tells_its_values(browser, page):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By

    browser.open(page)
    browser.choose("phase", "write")
    median = browser.driver.find_element(By.CSS_SELECTOR, MEDIANS_OF.format("medians"))
    browser.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", median)
    ActionChains(browser.driver).move_to_element(median).perform()
    tip = browser.wait("document.querySelector('#vg-tooltip-element.visible')?.textContent")
    assert "median" in tip
    assert "slowest host" in tip


def test_the_data_of_a_figure_can_be_downloaded(browser, page):
    browser.open(page)
    browser.choose("phase", "write")
    file = downloaded(browser, page.parent, "medians.csv", "#medians .download a")
    with file.open(newline="") as rows:
        told = {row["case"]: row for row in csv.DictReader(rows)}
    assert USUAL[0][0] in told
    with (page.parent / "summary.csv").open(newline="") as rows:
        summary = {r["case"]: r for r in csv.DictReader(rows) if r["phase"] == "write"}
    for case, row in told.items():
        for name in ("median_s", "low_s", "high_s"):
            assert float(row[name]) == pytest.approx(float(summary[case][name]), rel=1e-4)


def downloaded(browser, folder, name, selector):
    """Click on a link and return the file, once all of it is there."""
    browser.driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)}
    )
    browser.click(selector)
    for _ in range(200):
        if (folder / name).exists() and (folder / name).stat().st_size:
            return folder / name
        browser.driver.execute_async_script("setTimeout(arguments[0], 50)")
    raise AssertionError(f"{name} was not downloaded: {browser.console()}")


@pytest.mark.parametrize("figure", ["answer", "medians", "drift", "spread"])
def test_a_figure_can_be_taken_away_as_it_is_seen(browser, page, tmp_path, figure):
    browser.media("dark")
    browser.open(page)
    svg = downloaded(browser, tmp_path, f"{figure}.svg", f"#{figure} [data-picture=svg]")
    text = svg.read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    told = " ".join(node.text or "" for node in root.iter("{http://www.w3.org/2000/svg}text"))
    expected = {
        "answer": ("write to disk", "netCDF-4", "layout own"),
        "medians": ("write total", "hdf5 matched collective"),
        "drift": ("write total", "repetition"),
        "spread": ("write", "hdf5 matched collective"),
    }
    for part in expected[figure]:
        assert part in told
    assert browser.text(f"#{figure} h3") in told
    assert "currentColor" not in text
    assert "var(" not in text
    file = downloaded(browser, tmp_path, f"{figure}.png", f"#{figure} [data-picture=png]")
    png = np.asarray(Image.open(file).convert("RGB"))
    assert png.shape[:2] == (2 * int(root.get("height")), 2 * int(root.get("width")))
    assert png[0, 0].max() < 77  # the page is dark
    assert len({tuple(colour) for colour in png[::7, ::7].reshape(-1, png.shape[2])}) > 3


def test_repetitions_and_ranks_stand_at_whole_numbers(browser, ranked):
    browser.open(ranked)
    for figure in ("drift", "byrank"):
        ticks = browser.js(
            f"[...document.querySelector('#{figure} .role-axis-label').querySelectorAll('text')]"
            ".map(t => t.textContent)"
        )
        assert ticks
        assert len(ticks) == len(set(ticks))


def test_what_is_folded_up_below_tables_is_printed(browser, tmp_path):
    name, entry = a_case("hdf5")
    stored = {"chunks": None, "codec": "none", "fill": "never", "more": {}}
    browser.open(page_of(a_run(tmp_path / "run", [(name, entry | {"stored_as": stored})])))
    closed = "document.querySelectorAll('#tables details:not([open])').length"
    assert browser.js(closed) > 0
    browser.driver.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert browser.js(closed) == 0
    browser.driver.execute_script("dispatchEvent(new Event('afterprint'))")
    assert browser.js(closed) > 0


def test_tables_fit_on_paper(browser, page):
    browser.open(page)
    try:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        size = {"width": 718, "height": 1000, "deviceScaleFactor": 1, "mobile": False}  # A4, 1 cm
        browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.driver.execute_script("dispatchEvent(new Event('beforeprint'))")
        tables = "[...document.querySelectorAll('#tables table')]"
        widths = browser.js(f"{tables}.map(t => t.offsetWidth)")
        assert len(widths) == 2
        assert min(widths) > 300
        assert max(widths) <= 718
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_follows_the_preferred_colours_and_the_switch(browser, page, scheme):
    def brightness():
        colour = browser.js("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, colour.removeprefix("rgb(").rstrip(")").split(","))) / 3

    browser.media(scheme)
    browser.open(page)
    assert (brightness() > 128) == (scheme == "light")
    ink = browser.js("getComputedStyle(document.querySelector('#medians svg text')).fill")
    assert (int(ink.removeprefix("rgb(").split(",")[0]) < 128) == (scheme == "light")
    other = "dark" if scheme == "light" else "light"
    browser.click(f"#theme input[value={other}]")
    assert (brightness() > 128) == (other == "light")


def test_a_narrow_page_does_not_scroll_sideways(browser, page):
    size = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        browser.open(page)
        assert browser.js("document.documentElement.scrollWidth") <= 400
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_every_comparison_is_printed_and_no_page_is_empty(browser, page):
    browser.open(page)
    titles = browser.js("[...document.querySelectorAll('.comparison h3')].map(h => h.textContent)")
    assert len(titles) == 2
    printed = browser.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    pages = PdfReader(BytesIO(b64decode(printed["data"]))).pages
    # In PDF "fl" may be one letter.
    texts = [" ".join(normalize("NFKC", sheet.extract_text()).split()) for sheet in pages]
    assert min(map(len, texts)) > 200
    told = " ".join(texts)
    for title in titles:
        assert title in told


@pytest.mark.parametrize("scheme", sampled(["light", "dark"], "light"))
def test_axe_finds_nothing_serious(browser, page, scheme):
    browser.media(scheme)
    browser.open(page)
    browser.driver.execute_script("document.querySelectorAll('details').forEach(d => d.open = 1)")
    browser.driver.set_script_timeout(250)  # thousands of marks, on a machine that may be busy
    found = Axe().run(browser.driver)["violations"]
    told = [f"{v['id']}: {v['help']}: {[n['target'] for n in v['nodes']][:3]}" for v in found
            if v["impact"] in ("serious", "critical")]  # fmt: skip
    assert told == []


def test_the_card_has_the_programs_of_recommend(browser, tmp_path):
    cases = dict(a_case(backend, shape_per_rank=[4, 6]) for backend in ("hdf5", "zarr"))
    speed = dict(zip(cases, (0.01, 0.05), strict=True))
    run = a_run(tmp_path / "run", cases.items(), 12, speed, experiment={"repetitions": 12})
    browser.open(page_of(run))
    advice = json.loads(pffbench_cli("recommend", run, "--json").stdout)
    programs = [work["program"] for run in advice["runs"] for work in run["works"]]
    shown = browser.js("[...document.querySelectorAll('.choice pre')].map(p => p.textContent)")
    assert shown == [program for program in programs if program] != []
    browser.driver.execute_script(
        "Object.defineProperty(navigator, 'clipboard', {value: {"
        "writeText: async (text) => { window.copied = text }}})"
    )
    browser.click("button.copy")
    assert browser.wait("window.copied") == shown[0]
    taken = browser.text(".choice summary")
    assert taken.startswith("Take ")
    assert browser.js("document.querySelector('.choice').getBoundingClientRect().bottom") < 900


def test_tables_are_folded_and_sorted_by_a_click(browser, page):
    browser.open(page)
    assert browser.count(".comparison") == 2
    assert browser.count(".comparison[open]") == 0
    browser.click(".comparison summary")
    columns = browser.js("[...document.querySelectorAll('.comparison thead tr:last-child th')]"
                         ".map(h => h.textContent)")  # fmt: skip
    column = columns.index("write ms") if "write ms" in columns else columns.index("write s")

    def seconds():
        return browser.js(
            "[...document.querySelector('.comparison tbody').rows].filter(r => !r.className)"
            f".map(r => parseFloat(r.cells[4 + {column}].textContent))"
        )

    heading = f".comparison thead tr:last-child th:nth-child({column + 1})"
    browser.click(f"{heading} button")
    assert seconds() == sorted(seconds())
    browser.click(f"{heading} button")
    assert seconds() == sorted(seconds(), reverse=True)
    assert browser.count(f"{heading}[aria-sort=descending]") == 1


def test_it_refers_to_nothing_outside_itself(browser, page):
    browser.open(page)
    links = browser.js("[...document.querySelectorAll('a')].map(a => a.getAttribute('href'))")
    assert all(link.startswith("#") for link in links)


EVIL = "<script>window.hit=1</script></script><img src=x onerror=window.hit=1>\"'&{{7*7}}"


def test_hostile_text_is_shown_and_never_run(browser, tmp_path):
    run = a_run(tmp_path / "run", USUAL, question=EVIL, reasons=[EVIL], remarks=[EVIL])
    spoil(run)
    browser.open(page_of(run))
    assert browser.js("window.hit") is None
    assert EVIL in browser.text(".reasons")
    assert EVIL in browser.text("#provenance")
    assert EVIL in browser.text("#tables")
    assert EVIL in browser.js("document.querySelector('#medians .values').textContent")
    assert browser.js("document.querySelectorAll('img').length") == 0
    browser.choose("phase", "write")
    assert browser.js("window.hit") is None


def spoil(run):
    """Put hostile text into every text of the run that a page could show."""
    record = json.loads((run / "run.json").read_text())
    for key in ("scratch", "experiment_file", "started"):
        record[key] = EVIL
    record["provenance"] = {"environment": {EVIL: EVIL}, "hosts": [{"host": EVIL}]}
    record["left_out"] = [{"case": EVIL, "reason": EVIL}]
    names = {name: f"{name}{EVIL}" for name in record["cases"]}
    cases = {}
    for name, entry in record["cases"].items():
        entry["parameters"] |= {"workload": EVIL, "transfer": EVIL, "dtype": EVIL}
        entry["group"] = EVIL
        cases[names[name]] = entry
    record["cases"] = cases
    (run / "run.json").write_text(json.dumps(record))
    with (run / "samples.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["case"] = names[row["case"]]
        for key in (
            "backend",
            "workload",
            "layout",
            "transfer",
            "settings",
            "group",
            "slowest_host",
        ):
            row[key] = f"{row[key]}{EVIL}" if key == "backend" else EVIL
    with (run / "samples.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


#: Texts of figures that are cut, or lie on one another; what only surrounds a text is no text.
UNREADABLE = """
(() => {
  const found = [];
  for (const drawn of document.querySelectorAll('figure:not([hidden]) .chart svg')) {
    const shown = [...drawn.querySelectorAll('text')].filter(
      (t) => t.textContent && getComputedStyle(t).opacity !== '0'
        && t.getAttribute('opacity') !== '0' && !t.getAttribute('stroke'));
    const boxes = shown.map((t) => t.getBoundingClientRect());
    boxes.forEach((box, i) => {
      const name = `${drawn.closest('figure').id}: ${shown[i].textContent}`;
      if (shown[i].textContent.endsWith('…')) found.push(`shortened ${name}`);
      const right = document.documentElement.clientWidth;
      if (box.left < -1 || box.right > right + 1) found.push(`cut ${name}`);
      boxes.slice(i + 1).forEach((other, j) => {
        const across = Math.min(box.right, other.right) - Math.max(box.left, other.left);
        const down = Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top);
        if (across > 2 && down > 3) found.push(`${name} on ${shown[i + 1 + j].textContent}`);
      });
    });
  }
  return found;
})()
"""


#: Widths of a screen, and its height.
SCREENS = {390: 844, 768: 1024, 1440: 900, 794: 900}


def on_screen(browser, width, media, colours):
    """Take a screen, or paper, with the colours that the user prefers; 0 is the usual window."""
    size = {"width": width, "height": SCREENS.get(width, 0), "deviceScaleFactor": 1}
    preferred = [{"name": "prefers-color-scheme", "value": colours}]
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {**size, "mobile": False})
    browser.driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"media": media, "features": preferred}
    )


def bottom_of(browser, selector):
    return browser.js(f"document.querySelector('{selector}').getBoundingClientRect().bottom")


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """The page of 63 cases: chunks, codecs and formats."""
    factors = {"none": 1, "gzip": 3, "zstd": 1.2, "lz4": 1.1, "blosc": 1.3, "lzf": 2, "szip": 2.5}
    cases = [
        a_case(backend, chunks=[size, 64], codec=codec)
        for backend in ("hdf5", "netcdf4", "zarr")
        for size in (16, 32, 64)
        for codec in factors
    ]
    speed = {name: 0.01 * factors[entry["parameters"]["codec"]] for name, entry in cases}
    experiment = {"repetitions": 12}
    return page_of(a_run(tmp_path_factory.mktemp("sweep"), cases, 12, speed, experiment=experiment))


@pytest.mark.parametrize(
    ("width", "media", "colours"),
    [
        (390, "", "light"), (768, "", "light"), (1440, "", "light"), (1440, "", "dark"),
        (768, "", "dark"), (390, "", "dark"), (794, "print", "light"), (794, "print", "dark"),
    ],
)  # fmt: skip
def test_labels_are_whole_and_apart_and_the_answer_is_on_the_first_screen(
    browser, page, width, media, colours
):
    on_screen(browser, width, media, colours)
    try:
        browser.open(page)
        assert browser.js(UNREADABLE.strip()) == []
        assert bottom_of(browser, "table.answer") < SCREENS[width]
        assert media or bottom_of(browser, "#answer .chart") < SCREENS[width]
        assert browser.js("document.documentElement.scrollWidth") <= width
    finally:
        on_screen(browser, 0, "", "light")


@pytest.mark.full
@pytest.mark.parametrize("width", [390, 768, 1440])
def test_labels_of_63_cases_are_whole_and_apart(browser, sweep, width):
    on_screen(browser, width, "", "light")
    try:
        browser.open(sweep)
        assert browser.count("#answer .panel") == 6  # three chunks, written and read
        names = browser.js(
            "[...document.querySelectorAll('#medians .panel:first-child .role-axis-label text')]"
            ".map(t => t.textContent).filter(text => text.includes('codec='))"
        )
        assert len(names) == 63
        assert "codec=none" in names[0]
        assert "codec=gzip" in names[-1]
        assert browser.js(UNREADABLE.strip()) == []
        assert bottom_of(browser, "table.answer") < SCREENS[width]
        # On a small screen the whole trellis is there too, with narrow columns.
        seen = "#answer .panel" if width == 768 else "#answer .chart"
        assert bottom_of(browser, seen) < SCREENS[width]
        assert browser.js("document.documentElement.scrollWidth") <= width
    finally:
        on_screen(browser, 0, "", "light")
