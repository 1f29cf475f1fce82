"""A finding: what a check has to say, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warning", "problem", "unknown"]

#: The way out that fits most trouble with libraries.
MAKE_ENV = "`make env` in the checkout builds a private environment with parallel h5py and netCDF4"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Parameters
    ----------
    topic : str
        What it belongs to; findings of a topic are printed together.
    status : {"ok", "warning", "problem", "unknown"}
        ``problem``: an experiment will fail or mislead; ``warning``: it will run, but mind this;
        ``unknown``: it could not be found out.
    text : str
        What is so.
    remedy : str
        What to do about it; empty where nothing has to be done.
    """

    topic: str
    status: Status
    text: str
    remedy: str = ""


def looked_at(topic: str, check: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """Run a check; an error that it did not expect becomes a finding and ends only this check."""
    found: list[Finding] = []
    try:
        found.extend(check())
    except Exception as error:  # noqa: BLE001 -- a doctor must not die of what it finds
        found.append(
            Finding(
                topic,
                "problem",
                f"looking at this failed: {type(error).__name__}: {error}",
                "when the other findings do not explain it, please report it as a bug",
            )
        )
    return found


def count(findings: Iterable[Finding], status: Status) -> int:
    """Count the findings of a status."""
    return sum(finding.status == status for finding in findings)
