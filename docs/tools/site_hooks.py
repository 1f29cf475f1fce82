"""Hooks of the documentation site: pages made at build time, and links to files of the repository.

- `README.md` and the other documents of the top level are pages of the site.
- The reference pages come from the code, the report pages from the runs in `docs/results`.
- A link that leaves `docs/`, such as ``../configs/default.yaml``, leads to a page that shows the
  file, so that the same link works in the repository and on the site. A file that is not there
  is a warning, which `mkdocs build --strict` makes an error.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(Path(__file__).parent))

from reference import pages  # noqa: E402 -- beside this file, which is no package

LOG = logging.getLogger("mkdocs.hooks.site")
CACHE = ROOT / ".build" / "site-reports"
#: Files of the repository that are pages of the site.
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
_LINK = re.compile(r"(\]\()([^()\s#]+)(#[^()\s]*)?(\))")
_LANGUAGES = {".yaml": "yaml", ".yml": "yaml", ".py": "python", ".sh": "bash", ".toml": "toml"}
_FETCHED = re.compile(
    r"""<(?:script|link|img|iframe)\b[^>]*(?:src|href)=["']?(?:https?:)?//[^>]*>"""
)
_EXTERNAL = re.compile(r"[a-z]+:")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made, and those of files that are linked to."""
    for source, target in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(_page(config, target, text))
    for target, text in pages():
        files.append(_page(config, target, text))
    for run, page in _reports():
        files.append(File.generated(config, f"results/{run.name}/report.html", content=page))
    shown: set[str] = set()
    for file in [f for f in files if f.is_documentation_page()]:
        for target in _linked(file):
            path = _in_repository(file, target)
            if path is not None and _site_path(path) == _shown_as(path) not in shown:
                shown.add(_shown_as(path))
                files.append(_page(config, _shown_as(path), _showing(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Turn links to files of the repository into links of the site."""

    def turned(link: re.Match[str]) -> str:
        path = _in_repository(page.file, link[2])
        if path is None:
            return link[0]
        here = PurePosixPath(page.file.src_uri).parent
        target = os.path.relpath(_site_path(path), here)
        return f"{link[1]}{target}{link[3] or ''}{link[4]}"

    return _LINK.sub(turned, markdown)


def on_post_page(output: str, page: Any, config: MkDocsConfig) -> None:  # noqa: ARG001
    """Warn of what a page would fetch from elsewhere: the site works offline."""
    for tag in _FETCHED.findall(output):
        LOG.warning("%s fetches %s", page.file.src_uri, tag)


def _page(config: MkDocsConfig, path: str, text: str) -> File:
    return File.generated(config, path, content=text)


def _source(file: File) -> Path:
    """Return the path in the repository of the text of a page."""
    for source, target in PAGES.items():
        if file.src_uri == target:
            return ROOT / source
    return ROOT / "docs" / file.src_uri


def _linked(file: File) -> Iterator[str]:
    for link in _LINK.finditer(file.content_string):
        yield link[2]


def _in_repository(file: File, target: str) -> Path | None:
    """Return the file of the repository that a link means; None for links of the site."""
    if _EXTERNAL.match(target) or target.startswith("/") or file.src_uri.startswith("repository/"):
        return None
    path = Path(os.path.normpath(_source(file).parent / target))
    if path.is_relative_to(ROOT / "docs") and file.src_uri not in PAGES.values():
        return None
    if not path.is_file():
        LOG.warning("%s links to %s, which is no file", _source(file).relative_to(ROOT), target)
        return None
    return path


def _site_path(path: Path) -> str:
    """Return the path in the site of a file of the repository."""
    name = path.relative_to(ROOT).as_posix()
    if name.startswith("docs/"):
        return name.removeprefix("docs/")
    return PAGES.get(name, _shown_as(path))


def _shown_as(path: Path) -> str:
    return f"repository/{path.relative_to(ROOT).as_posix()}.md"


def _showing(path: Path) -> str:
    name = path.relative_to(ROOT).as_posix()
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return text
    language = _LANGUAGES.get(path.suffix, "text")
    return f"# `{name}`\n\nA file of the repository.\n\n````{language}\n{text}````\n"


def _reports() -> Iterator[tuple[Path, str]]:
    """Yield the runs in `docs/results` with their report pages, which `pffbench report` makes."""
    runs = sorted(path.parent for path in (ROOT / "docs" / "results").glob("*/run.json"))
    places = [CACHE / _digest(run) for run in runs]
    for old in set(CACHE.glob("*")) - set(places):
        shutil.rmtree(old, ignore_errors=True)
    with ThreadPoolExecutor() as pool:
        yield from zip(runs, pool.map(_report, runs, places), strict=True)


def _report(run: Path, place: Path) -> str:
    page = place / "report.html"
    if not page.exists():
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(run, place, dirs_exist_ok=True)
        done = subprocess.run(
            [sys.executable, "-m", "pffbench", "report", str(place)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            LOG.warning("no report of %s: %s", run, done.stderr.strip())
            return ""
    return page.read_text(encoding="utf-8")


def _digest(run: Path) -> str:
    """Return a digest of a run and of the code that makes its report."""
    made_of = [run, ROOT / "analysis" / "pffbench_analysis", ROOT / "src" / "pffbench" / "results"]
    whole = hashlib.sha256()
    for path in (p for part in made_of for p in sorted(part.rglob("*"))):
        if path.is_file() and path.suffix != ".pyc":
            whole.update(path.name.encode() + path.read_bytes())
    return whole.hexdigest()[:16]
