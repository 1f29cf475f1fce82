"""A run beside a published study, as a section of the page."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from pffbench.results.summary import Summary
from pffbench_analysis.published.output import CURVES, page_data

_MIME = {".svg": "image/svg+xml", ".csv": "text/csv"}


def published_of(summary: Summary, directory: Path) -> dict[str, Any] | None:
    """Return what the section shows; None where the experiment names no study.

    Parameters
    ----------
    summary : Summary
        The run.
    directory : Path
        Where the figures and `published.csv` have been written; all of it goes into the page.

    Returns
    -------
    dict or None
        What `page_data` returns, with ``figures`` and ``csv`` as data URIs; ``csv`` is empty where
        there is no such file.
    """
    data = page_data(summary)
    if data is None:
        return None
    place = directory / "published"
    figures = [_uri(place.with_name(f"{name}.svg")) for name in (place.name, *CURVES)]
    table = _uri(place.with_suffix(".csv"))
    return data | {"figures": [figure for figure in figures if figure], "csv": table}


def _uri(path: Path) -> str:
    if not path.exists():
        return ""
    content = base64.b64encode(path.read_bytes()).decode()
    return f"data:{_MIME[path.suffix]};base64,{content}"
