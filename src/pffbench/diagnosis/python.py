"""Python and pffbench themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pffbench.diagnosis.finding import MAKE_ENV, Finding
from pffbench.diagnosis.versions import Version
from pffbench.results.facts import Fact

TOPIC = "Python"
LOWEST: Version = (3, 11)


def judge_python(version: Version, executable: str) -> Finding:
    """Tell whether this Python is new enough."""
    text = f"Python {'.'.join(map(str, version))} ({executable})"
    if version[:2] >= LOWEST:
        return Finding(TOPIC, "ok", text)
    lowest = ".".join(map(str, LOWEST))
    return Finding(TOPIC, "problem", f"{text} is older than {lowest}", MAKE_ENV)


def judge_pffbench(facts: Mapping[str, Fact]) -> Iterator[Finding]:
    """Tell which pffbench this is; its commit is what makes a result repeatable.

    Parameters
    ----------
    facts : mapping
        ``version``, ``commit`` and ``dirty``, as `software_facts` gives them.
    """
    text = f"pffbench {facts['version']}"
    commit = facts.get("commit")
    if commit is None:
        yield Finding(TOPIC, "ok", f"{text}, installed")
        return
    text += f", checkout at {str(commit)[:12]}"
    if not facts.get("dirty"):
        yield Finding(TOPIC, "ok", text)
        return
    yield Finding(
        TOPIC,
        "warning",
        f"{text} with changes that are not committed",
        "commit them before measuring, so that others can run the same code",
    )
