"""Whether the libraries of a backend are there, in the series that it was written for."""

from __future__ import annotations

from importlib.util import find_spec

from pffbench.backends.base import Backend


def lacking(kind: type[Backend]) -> str | None:
    """Say which library of a backend is missing or of another series, or None.

    Nothing is imported: of two series of a library only one can be there, and the other one's
    backend must not break what this one does.
    """
    for name in kind.libraries:
        if find_spec(name) is None:
            return f"needs the Python package {name}, which is not installed (see pffbench doctor)"
    for name, series in kind.series.items():
        version = installed(name)
        if version is not None and version.partition(".")[0] != str(series):
            return f"needs {name} {series}, and {version} is installed{_remedy(kind)}"
    return None


def installed(name: str) -> str | None:
    """Return the version of an installed package; None where it does not tell."""
    from importlib import metadata

    try:
        return metadata.version(name)
    except (metadata.PackageNotFoundError, ValueError):  # a ValueError: no name at all
        return None


def _remedy(kind: type[Backend]) -> str:
    return f" ({kind.remedy})" if kind.remedy else ""
