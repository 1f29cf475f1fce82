"""The search of the documentation site, on pages that are opened from disk."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
import yaml

from launch import REPOSITORY

pytestmark = pytest.mark.browser

#: What the search depends on.
KEYS = ("site_name", "use_directory_urls", "theme", "extra", "plugins")


@pytest.fixture
def site(tmp_path):
    """A site of one page, with the settings of ours but for the pages that are made."""
    settings = yaml.safe_load((REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8"))
    settings["plugins"] = [plugin for plugin in settings["plugins"] if isinstance(plugin, str)]
    (tmp_path / "mkdocs.yml").write_text(yaml.safe_dump({key: settings[key] for key in KEYS}))
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Start\n\n## Striping\n\nOn Lustre.\n")
    shutil.copy(REPOSITORY / "docs" / "iframe-worker.js", tmp_path / "docs")
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet"], cwd=tmp_path, check=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    return tmp_path / "site"


def test_the_search_finds_a_page_that_is_opened_from_disk(browser, site):
    browser.driver.get(f"{(site / 'index.html').as_uri()}?q=striping")
    browser.wait("document.querySelector('.md-search-result__item')", 60)
    assert "Striping" in browser.text(".md-search-result__item")
