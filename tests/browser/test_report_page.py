"""`report.html` in a real browser: it is readable on any screen and paper, and fetches nothing."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from io import BytesIO
from unicodedata import normalize

import pytest

from drawn_codecs import a_codecs_run
from drawn_runs import a_case, a_run
from launch import REPOSITORY, pffbench_cli, sampled
from pages import page_of
from pffbench.results.summary import summarise

pytestmark = pytest.mark.browser


def test_it_opens_from_a_file_with_answer_and_figure_and_fetches_nothing(browser, page):
    browser.open(page)
    answer = summarise(page.parent).answer
    assert browser.text("#answer h2") == answer.sentence
    assert browser.count("#answer table.answer tbody tr") == len(answer.rows)
    assert browser.count("#answer figure svg path") > 10
    assert browser.js("performance.getEntriesByType('resource').length") == 0
    links = browser.js("[...document.querySelectorAll('a')].map(a => a.getAttribute('href'))")
    assert all(link.startswith("#") for link in links)


@pytest.mark.parallel
def test_a_run_of_the_default_experiment_has_a_page(browser, tmp_path):
    """Small arrays, since time is not of interest."""
    changes = ("shape_per_rank=[4, 16, 16]", "chunks=[2, 16, 16]", "repetitions=2", "warmup=0")
    small = [word for change in changes for word in ("--set", change)]
    config = REPOSITORY / "configs" / "default.yaml"
    done = pffbench_cli(
        "run", config, *small, "--out", "run", "--scratch", tmp_path,
        ranks=2, cwd=tmp_path, timeout=180,
    )  # fmt: skip
    assert done.status == 0, done.said
    browser.open(page_of(tmp_path / "run"))
    assert "2 ranks" in browser.text("h1")
    for backend in ("HDF5", "netCDF-4", "Zarr"):
        assert backend in browser.text("#numbers")


def test_published_numbers_and_their_figure_are_in_the_page(browser, tmp_path):
    pytest.importorskip("pffbench_studies")
    cases = [
        a_case(name, workload="datasets", datasets=2048, shape=[128], files="per_rank")
        for name in ("hdf5", "netcdf4", "zarr")
    ]
    study = {"study": "file-format-testing"}
    browser.open(page_of(a_run(tmp_path / "run", cases, experiment=study)))
    assert browser.js("document.querySelectorAll('#published table').length") == 3
    browser.wait("document.querySelector('img.published').naturalWidth > 300")


def test_header_and_first_column_of_a_table_stay_in_sight(browser, page):
    on_screen(browser, 390, "", "light")
    try:
        browser.open(page)
        moved = browser.js(
            "(() => { const box = document.querySelector('#numbers .group .scroll');"
            "const first = box.querySelector('tbody th'); box.scrollLeft = 200;"
            "const [x, y] = [first, box].map(node => node.getBoundingClientRect().x);"
            "return [box.scrollLeft, x - y] })()"
        )
        assert moved[0] > 50
        assert abs(moved[1]) < 2
        head = "getComputedStyle(document.querySelector('#numbers thead')).position"
        assert browser.js(head) == "sticky"
    finally:
        on_screen(browser, 0, "", "light")


def test_tables_are_sorted_by_a_click(browser, page):
    browser.open(page)
    table = "document.querySelector('#numbers table.numbers')"
    columns = browser.js(f"[...{table}.tHead.querySelectorAll('th')].map(h => h.textContent)")
    (column,) = (n for n, name in enumerate(columns) if name.startswith("write "))
    heading = f"#numbers table.numbers thead tr > *:nth-child({column + 2})"

    def seconds():
        return browser.js(
            f"[...{table}.tBodies[0].rows].map(r => parseFloat(r.cells[{column + 1}].textContent))"
        )

    browser.click(f"{heading} button")
    assert seconds() == sorted(seconds())
    browser.click(f"{heading} button")
    assert seconds() == sorted(seconds(), reverse=True)
    assert browser.count(f"{heading}[aria-sort=descending]") == 1


def test_what_is_folded_up_is_printed_and_no_page_is_empty(browser, page):
    browser.open(page)
    titles = browser.js("[...document.querySelectorAll('.group h3')].map(h => h.textContent)")
    assert len(titles) == 2
    closed = "document.querySelectorAll('#numbers details:not([open])').length"
    assert browser.js(closed) == 1
    browser.driver.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert browser.js(closed) == 0
    browser.driver.execute_script("dispatchEvent(new Event('afterprint'))")
    assert browser.js(closed) == 1
    printed = browser.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    sheets = sheets_of(printed)
    # In PDF "fl" may be one letter.
    texts = [" ".join(normalize("NFKC", sheet.extract_text()).split()) for sheet in sheets]
    assert min(map(len, texts)) > 100
    for title in titles:
        assert title in " ".join(texts)


def sheets_of(printed):
    from pypdf import PdfReader  # one of six processes opens pages

    return PdfReader(BytesIO(b64decode(printed["data"]))).pages


def test_paper_has_the_colours_of_the_screen(browser, page):
    """Browsers print no backgrounds and darken text, unless a page asks for its colours."""
    browser.open(page)
    asked, as_set = (colours_on_paper(browser, backgrounds) for backgrounds in (True, False))
    assert len(asked) > 4
    assert as_set == asked


def colours_on_paper(browser, backgrounds):
    """Return the colours that a printed page has, with the option of the print dialogue."""
    printed = browser.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": backgrounds})
    drawn = (sheet.get_contents() for sheet in sheets_of(printed))
    return set(
        re.findall(rb"[\d.]+ [\d.]+ [\d.]+ (?:rg|RG)\b", b"".join(d.get_data() for d in drawn))
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_follows_the_preferred_colours(browser, page, scheme):
    browser.media(scheme)
    browser.open(page)

    def brightness(selector, style):
        colour = browser.js(f"getComputedStyle(document.querySelector('{selector}')).{style}")
        return sum(map(int, re.findall(r"\d+", colour)[:3])) / 3

    assert (brightness("body", "backgroundColor") > 128) == (scheme == "light")
    assert (brightness("figure svg text", "fill") < 128) == (scheme == "light")


@pytest.mark.parametrize("scheme", sampled(["light", "dark"], "light"))
def test_axe_finds_nothing(browser, page, scheme):
    from axe_core_python.selenium import Axe

    browser.media(scheme)
    browser.open(page)
    browser.driver.execute_script("document.querySelectorAll('details').forEach(d => d.open = 1)")
    browser.driver.set_script_timeout(250)  # thousands of marks, on a machine that may be busy
    found = Axe().run(browser.driver)["violations"]
    told = [f"{v['id']}: {v['help']}: {[n['target'] for n in v['nodes']][:3]}" for v in found]
    assert told == []


EVIL = "<script>window.hit=1</script></script><img src=x onerror=window.hit=1>\"'&{{7*7}}"


def test_hostile_text_is_shown_and_never_run(browser, tmp_path):
    cases = [a_case(backend, dtype=EVIL) for backend in ("hdf5", "zarr", EVIL)]
    run = a_run(tmp_path / "run", cases, question=EVIL, reasons=[EVIL], remarks=[EVIL])
    record = json.loads((run / "run.json").read_text())
    record["provenance"] = {"environment": {EVIL: EVIL}, "hosts": [{"host": EVIL}]}
    (run / "run.json").write_text(json.dumps(record))
    browser.open(page_of(run))
    assert browser.js("window.hit") is None
    for part in ("h1", ".question", "#numbers", "#numbers svg", "#provenance"):
        assert EVIL in browser.text(part)
    assert browser.js("document.querySelectorAll('img').length") == 0


#: Texts of figures that are cut, or lie on one another.
UNREADABLE = """
(() => {
  const found = [];
  for (const drawn of document.querySelectorAll('.panels svg')) {
    if (!drawn.getClientRects().length) continue;
    const shown = [...drawn.querySelectorAll('text')].filter((t) => t.textContent);
    const boxes = shown.map((t) => t.getBoundingClientRect());
    const edge = drawn.getBoundingClientRect();
    boxes.forEach((box, i) => {
      const name = shown[i].textContent;
      if (box.left < edge.left - 2 || box.right > edge.right + 2) found.push(`cut ${name}`);
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
#: Widths of a screen, and its height; 794 is paper.
SCREENS = {390: 844, 768: 1024, 1440: 900, 794: 900}


def on_screen(browser, width, media, colours):
    """Take a screen, or paper, with the colours that the user prefers; 0 is the usual window."""
    size = {"width": width, "height": SCREENS.get(width, 0), "deviceScaleFactor": 1}
    preferred = [{"name": "prefers-color-scheme", "value": colours}]
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {**size, "mobile": False})
    browser.driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"media": media, "features": preferred}
    )


@pytest.fixture(scope="module")
def codecs(tmp_path_factory):
    """The page of a run of many codecs."""
    return page_of(a_codecs_run(tmp_path_factory.mktemp("codecs") / "run"))


@pytest.mark.parametrize(("width", "media"), [(390, ""), (768, ""), (1440, ""), (794, "print")])
@pytest.mark.parametrize("many", [False, True])
def test_labels_are_whole_and_apart_and_the_answer_is_on_the_first_screen(
    browser, page, codecs, width, media, many
):
    on_screen(browser, width, media, "light")
    try:
        browser.open(codecs if many else page)
        browser.driver.execute_script(
            "document.querySelectorAll('#numbers details').forEach(d => d.open = 1)"
        )
        assert browser.js(UNREADABLE.strip()) == []
        bottom = browser.js("document.querySelector('table.answer').getBoundingClientRect().bottom")
        assert bottom < SCREENS[width]
        assert browser.js("document.documentElement.scrollWidth") <= width
    finally:
        on_screen(browser, 0, "", "light")
