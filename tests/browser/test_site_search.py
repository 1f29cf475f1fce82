"""The site's search works in pages that are opened from disk, and finds what users ask."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest
import yaml

from launch import REPOSITORY

pytestmark = pytest.mark.browser

#: What a user types, and the heading that answers it.
ASKED = {
    "which chunks": "Which chunks should I use?",
    "how sure": "How sure is the answer?",
    "command not found": "pffbench: command not found",
}
#: Files of the top level that are pages, as the hooks of the site add them.
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md"}


def build_site(place, documents):
    """Build pages with the theme and the plugins of ours, without its hooks; return the first."""
    ours = yaml.load((REPOSITORY / "mkdocs.yml").read_text(), Loader=yaml.BaseLoader)
    kept = {key: ours[key] for key in ("site_name", "theme", "extra", "use_directory_urls")}
    kept["plugins"] = [name for name in ours["plugins"] if name in ("search", "offline")]
    # BaseLoader keeps words as text, which these are not.
    kept["theme"]["font"] = kept["use_directory_urls"] = False
    (place / "mkdocs.yml").write_text(yaml.safe_dump(kept))
    for name, text in documents.items():
        (place / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        (place / "docs" / name).write_text(text)
    for script in ours["extra"]["polyfills"]:
        shutil.copy(REPOSITORY / "docs" / script, place / "docs")
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "-q"], cwd=place, check=True)
    return place / "site" / "index.html"


def first_result(browser, site, words):
    """Type words into the search field of a page, and return the text of the first result."""
    browser.driver.get(site.as_uri())
    browser.wait("document.querySelector('[data-md-component=search-query]')")
    browser.js("void document.querySelector('#__search').click()")
    browser.wait("document.querySelector('[data-md-component=search-query]').offsetWidth")
    field = browser.driver.find_element("css selector", "[data-md-component=search-query]")
    field.send_keys(words)
    return browser.wait(
        "document.querySelector('.md-search-result__item')?.innerText ?? ''", seconds=60
    )


def test_a_word_is_found_without_a_web_server(browser, tmp_path):
    site = build_site(tmp_path, {"index.md": "# First\n\nA sentence on the roofline.\n"})
    assert "A sentence on the roofline" in first_result(browser, site, "roofline")


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    """The pages of ours that are text, with the reference made from the code."""
    texts = {path.name: path.read_text() for path in (REPOSITORY / "docs").glob("*.md")}
    for name, page in PAGES.items():
        texts[page] = (REPOSITORY / name).read_text().replace("](docs/", "](")
    write = "import json, reference; print(json.dumps(dict(reference.pages())))"
    made = subprocess.run(
        [sys.executable, "-c", write], cwd=REPOSITORY / "docs" / "tools", capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    place = tmp_path_factory.mktemp("documents")
    shutil.copytree(
        REPOSITORY / "docs" / "results" / "default", place / "docs" / "results" / "default",
        ignore=shutil.ignore_patterns("*.h5", "*.json*"),
    )  # fmt: skip
    return build_site(place, texts | json.loads(made.stdout))


@pytest.mark.full
@pytest.mark.parametrize("words", ASKED)
def test_the_first_result_answers_what_users_ask(browser, documents, words):
    assert ASKED[words] in first_result(browser, documents, words)
