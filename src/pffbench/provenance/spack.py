"""The Spack environment of a run: its name, lock file and package hashes.

A concrete hash identifies a package with its version, variants, compiler and dependencies. The
hashes and the digest of the lock file therefore identify the software better than versions do.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from pffbench.provenance.facts import Fact, Facts

#: Spack's own files next to the manifest of an environment, including its view.
_OWN_DIRECTORY = ".spack-env"
_LOCK = "spack.lock"


class Environment(msgspec.Struct, frozen=True):
    """A Spack environment."""

    #: Directory of its ``spack.yaml``.
    directory: Path
    #: Whether it is the activated one; otherwise it was found because Python belongs to it.
    active: bool

    @property
    def name(self) -> str:
        """Name of the environment, which is that of its directory."""
        return self.directory.resolve().name


def find_environment(environ: Mapping[str, str], prefix: Path) -> Environment | None:
    """Find the Spack environment of this process.

    Parameters
    ----------
    environ : mapping
        Environment variables; ``spack env activate`` sets ``SPACK_ENV``.
    prefix : Path
        Prefix of the running Python. It may lie in the view of an environment that is not
        activated: a job script can simply start the view's Python.

    Returns
    -------
    Environment or None
        None outside of Spack environments.
    """
    if environ.get("SPACK_ENV"):
        return Environment(Path(environ["SPACK_ENV"]), active=True)
    for parent in (prefix, *prefix.parents):
        if parent.name == _OWN_DIRECTORY:
            return Environment(parent.parent, active=False)
    return None


def spack_facts(environment: Environment | None) -> Facts | None:
    """Describe a Spack environment.

    Returns
    -------
    dict or None
        None without an environment, otherwise ``environment`` (its name), ``directory``,
        ``active``, ``lock_sha256``, ``spack`` (the version that concretized it) and ``packages``:
        by name the ``version``, ``hash`` and ``external`` (the prefix if not installed by Spack,
        else None) of every run-time dependency of the environment's roots. If the lock file cannot
        be read, ``error`` holds the reason and the last three are missing.
    """
    if environment is None:
        return None
    facts: Facts = {
        "environment": environment.name,
        "directory": str(environment.directory),
        "active": environment.active,
    }
    try:
        content = (environment.directory / _LOCK).read_bytes()
        lock = json.loads(content)
        return facts | {
            "lock_sha256": hashlib.sha256(content).hexdigest(),
            "spack": lock.get("spack", {}).get("version"),
            "packages": _running_packages(lock),
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return facts | {"error": f"{_LOCK}: {type(error).__name__}: {error}"}


def _running_packages(lock: Mapping[str, Any]) -> dict[str, Fact]:
    """Return the packages that the roots reach without build-only dependencies."""
    specs = lock["concrete_specs"]
    waiting = [root["hash"] for root in lock["roots"]]
    reached: dict[str, Any] = {}
    while waiting:
        digest = waiting.pop()
        if digest in reached:
            continue
        reached[digest] = spec = specs[digest]
        for dependency in spec.get("dependencies", []):
            if {"link", "run"} & set(dependency["parameters"]["deptypes"]):
                waiting.append(dependency["hash"])
    packages: dict[str, Fact] = {}
    for digest, spec in sorted(reached.items(), key=lambda item: (item[1]["name"], item[0])):
        external = spec.get("external") or {}
        packages[spec["name"]] = {
            "version": str(spec["version"]),
            "hash": digest,
            "external": external.get("path"),
        }
    return packages
