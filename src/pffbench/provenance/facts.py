"""Type of the collected provenance: values that can be written as JSON."""

from __future__ import annotations

from typing import TypeAlias

Fact: TypeAlias = "bool | int | float | str | list[Fact] | dict[str, Fact] | None"
Facts: TypeAlias = dict[str, Fact]
