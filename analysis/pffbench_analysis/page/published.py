"""A run beside a published study, as a section of the page."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from pffbench.results.summary import Summary
from pffbench_analysis.published.output import page_data

_MIME = {".svg": "image/svg+xml", ".csv": "text/csv"}


def published_of(summary: Summary, directory: Path) -> dict[str, Any] | None:
    """Return what the section shows; None where the experiment names no study.

    Parameters
    ----------
    summary : Summary
        The run.
    directory : Path
        Where `published.svg` and `published.csv` have been written; both go into the page.

    Returns
    -------
    dict or None
        What `page_data` returns, and ``figure`` and ``csv`` as data URIs; empty where there is no
        such file.
    """
    data = page_data(summary)
    if data is None:
        return None
    place = directory / "published"
    figure, table = (_uri(place.with_suffix(suffix)) for suffix in (".svg", ".csv"))
    return data | {"figure": figure, "csv": table}


def _uri(path: Path) -> str:
    if not path.exists():
        return ""
    content = base64.b64encode(path.read_bytes()).decode()
    return f"data:{_MIME[path.suffix]};base64,{content}"
