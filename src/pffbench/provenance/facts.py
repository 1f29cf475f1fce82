"""Type of the collected provenance: values that can be written as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

Fact: TypeAlias = "bool | int | float | str | list[Fact] | dict[str, Fact] | None"
Facts: TypeAlias = dict[str, Fact]


def job_variables(environ: Mapping[str, str], prefix: str, names: tuple[str, ...]) -> Facts:
    """Select those variables of a batch job that are set, in lower case without their prefix."""
    return {name.lower(): environ[prefix + name] for name in names if prefix + name in environ}
