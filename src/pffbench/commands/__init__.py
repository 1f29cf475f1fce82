"""One file for each command of the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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
            f"{command} needs {error.name}, which is not installed: pip install "
            "'pffbench[analysis]'"
        ) from None
