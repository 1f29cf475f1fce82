"""Which backends can run, by the libraries that are there."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pffbench.backends.registry import backend_class, backend_names
from pffbench.diagnosis.finding import Finding, looked_at
from pffbench.diagnosis.libraries import REQUIRED

TOPIC = "Backends"


def judge_backend(name: str, missing: Collection[str], needed: bool) -> Finding:
    """Tell whether a backend can run.

    Parameters
    ----------
    name : str
        Its name.
    missing : collection of str
        Its libraries that cannot be imported.
    needed : bool
        Whether these belong to what pffbench depends on; what is optional is not missed.
    """
    if not missing:
        return Finding(TOPIC, "ok", f"{name}: can run")
    what = ", ".join(missing)
    if needed:
        text, remedy = f"{name}: cannot run without {what}", f"see what is said of {what} above"
        return Finding(TOPIC, "warning", text, remedy)
    return Finding(TOPIC, "ok", f"{name}: cannot run without {what}, which is optional")


def look_at_backends(broken: Collection[str]) -> Iterator[Finding]:
    """Look at all backends.

    Parameters
    ----------
    broken : collection of str
        Import names of libraries that cannot be imported.
    """
    for name in backend_names():
        yield from looked_at(TOPIC, lambda name=name: [_look_at(name, broken)])  # type: ignore[misc]


def _look_at(name: str, broken: Collection[str]) -> Finding:
    missing = [library for library in backend_class(name).libraries if library in broken]
    return judge_backend(name, missing, any(library in REQUIRED for library in missing))
