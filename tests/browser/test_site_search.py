"""The site's search works in pages that are opened from disk."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
import yaml

from launch import REPOSITORY

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A site of one page, made with the theme and the plugins of ours."""
    place = tmp_path_factory.mktemp("site")
    ours = yaml.load((REPOSITORY / "mkdocs.yml").read_text(), Loader=yaml.BaseLoader)
    kept = {key: ours[key] for key in ("site_name", "theme", "extra", "use_directory_urls")}
    kept["plugins"] = [name for name in ours["plugins"] if name in ("search", "offline")]
    # BaseLoader keeps words as text, which these are not.
    kept["theme"]["font"] = kept["use_directory_urls"] = False
    (place / "docs").mkdir()
    (place / "mkdocs.yml").write_text(yaml.safe_dump(kept))
    (place / "docs" / "index.md").write_text("# First\n\nA sentence on the roofline.\n")
    for script in ours["extra"]["polyfills"]:
        shutil.copy(REPOSITORY / "docs" / script, place / "docs")
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "-q"], cwd=place, check=True)
    return place / "site" / "index.html"


def test_a_word_is_found_without_a_web_server(browser, site):
    browser.driver.get(site.as_uri())
    browser.wait("document.querySelector('[data-md-component=search-query]')")
    browser.js("void document.querySelector('#__search').click()")
    browser.wait("document.querySelector('[data-md-component=search-query]').offsetWidth")
    field = browser.driver.find_element("css selector", "[data-md-component=search-query]")
    field.send_keys("roofline")
    found = browser.wait(
        "document.querySelector('.md-search-result__item')?.innerText ?? ''", seconds=60
    )
    assert "A sentence on the roofline" in found
