"""One file for each command of the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pffbench.errors import UserError


@contextmanager
def needing_analysis(command: str) -> Iterator[None]:
    """Name the library that a command needs and that is not installed.

    Raises
    ------
    UserError
        In place of a ModuleNotFoundError.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise UserError(
            f"{command} needs {error.name}, which is not installed: {to_install_analysis()}"
        ) from None


def to_install_analysis() -> str:
    """Return how to install what `pffbench_analysis` needs, for the way that this one came.

    pip notes where a package was installed from, unless it was an index.
    """
    import json  # not needed by `run`, whose ranks all import this
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import unquote, urlsplit

    try:
        noted = distribution("pffbench").read_text("direct_url.json")
    except PackageNotFoundError:
        noted = "{}"  # run in a clone, or installed by another program
    if noted is None:
        return "pip install 'pffbench[analysis]'"
    url = urlsplit(str(json.loads(noted).get("url", "")))
    source = Path(unquote(url.path))
    if url.scheme == "file" and source.exists():
        return f"pip install '{source}[analysis]'"
    return "pip install '.[analysis]' in a clone of pffbench"
