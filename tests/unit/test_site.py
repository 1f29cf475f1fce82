"""The documentation site is built with warnings as errors, and a dead link is one."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from launch import REPOSITORY

BAD = {
    "page": "[x](no-such-page.md)",
    "anchor": "[x](method.md#no-such-heading)",
    "file of the repository": "[x](../configs/no-such-file.yaml)",
    "reference": "[x](reference/keys.md#workload-no-such)",
}


def recipe():
    """Return the command of `make site`."""
    text = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    (line,) = re.findall(r"^site:.*\n\t(.*)", text, re.MULTILINE)
    return re.search(r"mkdocs (.*)", line)[1].split()


@pytest.fixture
def copy(tmp_path):
    """Copy what pages link to; pages of reports are taken from the earlier build, if any."""
    copy = tmp_path / "copy"
    ignored = shutil.ignore_patterns(".*", "__pycache__", "pffbench-*", "tests")
    shutil.copytree(REPOSITORY, copy, ignore=ignored)
    made = REPOSITORY / ".build" / "site-reports"
    if made.is_dir():
        shutil.copytree(made, copy / ".build" / "site-reports")
    return copy


@pytest.mark.full
def test_dead_links_fail_the_build_and_each_is_named(copy):
    page = copy / "docs" / "gallery.md"
    page.write_text(page.read_text() + "\n" + "\n\n".join(BAD.values()) + "\n")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", *recipe()], cwd=copy, capture_output=True, text=True,
        check=False, timeout=200, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode != 0
    warnings = [line for line in done.stderr.splitlines() if line.startswith("WARNING")]
    for target in ("no-such-page", "no-such-heading", "no-such-file", "workload-no-such"):
        assert any(target in line for line in warnings), target
    assert all("no-such" in line for line in warnings)
