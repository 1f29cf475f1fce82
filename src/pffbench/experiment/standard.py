"""The standard experiments: work that never changes, so that results of all machines compare.

An experiment of the standard is known by a digest of its work: which cases there are, not how often
they run or what is counted. Changed work is the next standard, with another digest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

#: Digests of the work of the standard experiments in configs/standard, by version.
STANDARDS: Mapping[int, str] = {1: "af5a6720d9207d17"}
#: Keys of an experiment that its work depends on.
_WORK = ("cases", "common", "scale", "seed", "warmup", "memory", "node_local")
_DIGITS = 16


class Standard(msgspec.Struct, frozen=True):
    """The standard that a run measured."""

    #: Its number.
    version: int
    #: The digest of its work.
    digest: str

    def __str__(self) -> str:
        return f"standard {self.version} ({self.digest})"


def work_digest(experiment: Mapping[str, Any]) -> str:
    """Return the digest of the work of an experiment as plain data."""
    import hashlib  # which loads OpenSSL

    work = {key: experiment.get(key) for key in _WORK}
    return hashlib.sha256(json.dumps(work, sort_keys=True).encode()).hexdigest()[:_DIGITS]


def standard_of(experiment: Mapping[str, Any]) -> Standard | None:
    """Return the standard that an experiment as plain data is; None if it is not one."""
    digest = work_digest(experiment)
    return next((Standard(n, known) for n, known in STANDARDS.items() if known == digest), None)
