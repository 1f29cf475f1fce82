"""Whether a directory can be made in another one, told before it is tried."""

from __future__ import annotations

import os
from pathlib import Path

from pffbench.errors import UserError
from pffbench.storage.filesystem import nearest_existing


def check_parent(parent: Path, may_be_made: bool) -> None:
    """Refuse a directory in which none can be made.

    Parameters
    ----------
    parent : Path
        The directory, with links resolved.
    may_be_made : bool
        Whether it need not exist.

    Raises
    ------
    UserError
        It cannot be reached, is missing, no directory, or not writable.
    """
    try:
        nearest = Path(nearest_existing(str(parent)))
    except OSError as error:
        raise UserError(
            f"the scratch parent {parent} cannot be reached: {error.strerror}"
        ) from None
    if not nearest.is_dir():
        raise UserError(f"the scratch parent {parent} cannot be used: {nearest} is not a directory")
    if nearest != parent and not may_be_made:
        raise UserError(
            f"the scratch parent {parent} does not exist "
            f"(the nearest directory that does is {nearest})"
        )
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise UserError(f"the scratch parent {nearest} is not writable")
