"""Version and commit: of checkouts with and without tags, of archives, and of built packages."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import metadata

import pytest
import yaml

import pffbench
from launch import REPOSITORY, environment
from pffbench.provenance.software import software_facts
from pffbench.version import Origin, origin

RELEASE = pffbench.__version__


def git(directory, *arguments):
    done = subprocess.run(
        ["git", "-C", directory, "-c", "user.name=x", "-c", "user.email=x@x", *arguments],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout.strip()


def version(root):
    """Return what `pffbench --version` prints in a copy of the sources."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pffbench", "--version"], capture_output=True, text=True,
        env=environment(PYTHONPATH=root / "src"), check=True, timeout=60,
    )  # fmt: skip
    return done.stdout


@pytest.fixture
def checkout(tmp_path):
    """A repository with the sources of the program, and one commit."""
    root = tmp_path / "checkout"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "configs")
    shutil.copytree(REPOSITORY / "src", root / "src", ignore=ignored)
    shutil.copy(REPOSITORY / ".gitattributes", root)
    git(tmp_path, "init", root)
    git(root, "add", ".")
    git(root, "commit", "-m", "x")
    return root


def test_a_checkout_without_tags_has_the_version_of_the_source_and_its_commit(checkout):
    commit = git(checkout, "rev-parse", "HEAD")
    assert version(checkout) == f"pffbench {RELEASE} (commit {commit})\n"
    code = origin(checkout / "src" / "pffbench")
    assert code == Origin(RELEASE, commit, dirty=False)
    assert code.for_builds == f"{RELEASE}+g{commit[:12]}"
    with (checkout / "src" / "pffbench" / "cli.py").open("a") as file:
        file.write("#\n")
    assert version(checkout) == f"pffbench {RELEASE} (commit {commit}, with changes)\n"


def test_the_tag_of_a_release_is_its_version(checkout):
    git(checkout, "tag", "v1.2.3")
    git(checkout, "tag", "nightly")
    released = git(checkout, "rev-parse", "HEAD")
    assert version(checkout) == f"pffbench 1.2.3 (commit {released})\n"
    package = checkout / "src" / "pffbench"
    assert origin(package).for_builds == "1.2.3"
    git(checkout, "commit", "--allow-empty", "-m", "y")
    git(checkout, "commit", "--allow-empty", "-m", "z")
    commit = git(checkout, "rev-parse", "HEAD")
    assert origin(package) == Origin("1.2.3.post2", commit, dirty=False)
    assert origin(package).for_builds == f"1.2.3.post2+g{commit[:12]}"


@pytest.mark.parametrize("tag", [None, "v1.2.3"])
def test_an_archive_names_its_commit(checkout, tmp_path, tag):
    if tag:
        git(checkout, "tag", tag)
    commit = git(checkout, "rev-parse", "HEAD")
    git(checkout, "archive", "--output", tmp_path / "x.tar", "HEAD")
    # Below somebody's repository, of which it is no part.
    unpacked = tmp_path / "theirs" / "unpacked"
    git(tmp_path, "init", unpacked.parent)
    shutil.unpack_archive(tmp_path / "x.tar", unpacked)
    number = tag[1:] if tag else RELEASE
    assert version(unpacked) == f"pffbench {number} (commit {commit})\n"
    assert origin(unpacked / "src" / "pffbench").dirty is None


@pytest.mark.parametrize(
    ("folder", "metadata"),
    [("", "pffbench-1.2.3.dist-info/METADATA"), ("src", "pffbench.egg-info/PKG-INFO")],
    ids=["wheel", "sdist"],
)
def test_a_built_package_has_the_commit_in_its_version(folder, metadata, tmp_path, monkeypatch):
    package, info = tmp_path / folder / "pffbench", tmp_path / metadata
    package.mkdir(parents=True)
    info.parent.mkdir()
    info.write_text("Name: pffbench\nVersion: 1.2.3.post2+g0123456789ab\n")
    assert origin(package) == Origin("1.2.3.post2", "0123456789ab")
    assert origin(package).for_builds == "1.2.3.post2+g0123456789ab"
    monkeypatch.setenv("PATH", str(tmp_path))  # without git
    assert origin(package) == Origin("1.2.3.post2", "0123456789ab")


def test_nothing_is_said_of_a_commit_where_nothing_names_it(tmp_path):
    notes = tmp_path / "notes"
    notes.write_text("x")
    git(tmp_path, "init")
    git(tmp_path, "add", "notes")
    git(tmp_path, "commit", "-m", "x")
    (tmp_path / "venv" / "pffbench").mkdir(parents=True)
    code = origin(tmp_path / "venv" / "pffbench")
    assert code == Origin(RELEASE)
    assert str(code) == code.for_builds == RELEASE


def test_the_record_of_a_run_has_the_commit(checkout):
    code = origin()
    facts = software_facts([])["pffbench"]
    assert facts == {"version": RELEASE, "commit": code.commit, "dirty": code.dirty}


def test_the_citation_and_the_installed_package_have_the_version_of_the_source():
    cited = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == RELEASE
    assert metadata.version("pffbench").startswith(RELEASE)
