"""The backends that can run with the installed libraries."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from importlib.util import find_spec

from pffbench.backends.registry import backend_class, backend_names, missing_library
from pffbench.doctor.finding import Finding, looked_at
from pffbench.doctor.libraries import REQUIRED
from pffbench.versioning.interface import Keep, keeper_class, ways_of

TOPIC = "Backends"


def judge_backend(name: str, missing: Collection[str], needed: bool) -> Finding:
    """Report whether a backend can run.

    Parameters
    ----------
    name : str
        Its name.
    missing : collection of str
        Libraries of it that cannot be imported.
    needed : bool
        Whether pffbench depends on these; missing optional ones are no problem.
    """
    if not missing:
        return Finding(TOPIC, "ok", f"{name}: can run")
    what = ", ".join(missing)
    if needed:
        text, remedy = f"{name}: cannot run without {what}", f"see what is said of {what} above"
        return Finding(TOPIC, "warning", text, remedy)
    return Finding(TOPIC, "ok", f"{name}: cannot run without {what}, which is optional")


def look_at_backends(broken: Collection[str]) -> Iterator[Finding]:
    """Check all backends.

    Parameters
    ----------
    broken : collection of str
        Import names of libraries that cannot be imported.
    """
    for name in backend_names():
        yield from looked_at(TOPIC, partial(_look_at, name, broken))
        for keep in ways_of(name):
            yield from looked_at(TOPIC, partial(_look_at_way, name, keep))


def absent_libraries() -> frozenset[str]:
    """Find the libraries of all backends that are not installed, without importing one."""
    return frozenset(
        library
        for name in backend_names()
        for library in _libraries_of(name)
        if find_spec(library) is None
    )


def _look_at(name: str, broken: Collection[str]) -> Iterator[Finding]:
    kind = backend_class(name)
    missing = [library for library in kind.libraries if library in broken]
    reason = None if missing else missing_library(kind)
    if reason:  # of two series of a library one may be installed, so the other one is not missing
        yield Finding(TOPIC, "ok", f"{name}: cannot run here, it {reason}")
        return
    yield judge_backend(name, missing, any(library in REQUIRED for library in missing))
    needed = kind.capabilities.codec_libraries
    for library in sorted({found for found in needed.values() if find_spec(found) is None}):
        codecs = ", ".join(sorted(codec for codec, its in needed.items() if its == library))
        text = f"{name}: codecs {codecs} need {library}, which is optional"
        yield Finding(TOPIC, "ok", text)


def _look_at_way(backend: str, keep: Keep) -> Iterator[Finding]:
    """Report the missing libraries of a way of keeping versions; nothing if none is missing."""
    keeper = keeper_class(backend, keep)
    for library in keeper.libraries:
        if find_spec(library) is None:
            text = f"{backend}: keep {keep} needs {library}, which is optional ({keeper.remedy})"
            yield Finding(TOPIC, "ok", text)


def _libraries_of(name: str) -> tuple[str, ...]:
    try:
        return backend_class(name).libraries
    except Exception:  # noqa: BLE001 -- a backend of another package; `look_at_backends` reports it
        return ()
