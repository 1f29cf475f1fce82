"""Contents of the files that a run takes its data or its decomposition from.

Two runs are the same, or comparable, only when these files are.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from pffbench.errors import UserError
from pffbench.provenance.facts import Facts
from pffbench.regular_files import open_regular

if TYPE_CHECKING:
    from pffbench.case import Case

#: Bytes up to which a whole file is read, a fraction of a second; of larger ones both ends are.
_WHOLE = 64 * 2**20
_END = 2**20
#: Files of a directory that are listed.
_MOST_FILES = 10_000


def input_facts(cases: Iterable[Case]) -> Facts:
    """Return size and digest of each file that cases read as input, by its name.

    Parameters
    ----------
    cases : iterable of Case
        Of a checked plan.

    Returns
    -------
    dict
        By the name in the experiment: ``bytes``, and ``sha256`` of the contents, or ``sha256_ends``
        of the first and the last MiB of a file of more than 64 MiB. For a directory, such as a Zarr
        store, ``bytes`` is the sum over its first 10 000 files, and ``sha256_names`` is of their
        names and sizes. The reason as text where a file cannot be read.
    """
    parameters = [case.parameters for case in cases]
    names = {name for p in parameters for name in p.input_files}
    return {name: _identity(name) for name in sorted(names)}


def changed_inputs(before: Mapping[str, object], now: Mapping[str, object]) -> Iterator[str]:
    """Yield which input files have other contents than before.

    Parameters
    ----------
    before, now : mapping
        Provenance of two runs, or of two starts of a run.
    """
    was, is_ = before.get("inputs"), now.get("inputs")
    if isinstance(was, Mapping) and isinstance(is_, Mapping):
        for name in sorted(was.keys() & is_.keys()):
            if was[name] != is_[name]:
                yield f"the file {name} has other contents than when the run began"


def _identity(name: str) -> Facts | str:
    from pffbench.data.files import locate  # for runs with such files alone

    try:
        path = Path(locate(name))
        if path.is_dir():
            return _of_directory(path)
        with open_regular(path) as file:
            return _of_file(file)
    except (OSError, UserError) as error:
        return f"cannot be read: {getattr(error, 'strerror', None) or error}"


def _of_file(file: BinaryIO) -> Facts:
    size = os.fstat(file.fileno()).st_size
    if size <= _WHOLE:
        return {"bytes": size, "sha256": hashlib.sha256(file.read()).hexdigest()}
    digest = hashlib.sha256(file.read(_END))
    file.seek(-_END, os.SEEK_END)
    digest.update(file.read(_END))
    return {"bytes": size, "sha256_ends": digest.hexdigest()}


def _of_directory(path: Path) -> Facts:
    """Return the facts of a directory; with millions of files, all would take minutes."""
    files = list(islice(_files_below(path), _MOST_FILES))
    sizes = [file.stat().st_size for file in files]
    lines = (f"{file.relative_to(path)} {size}\n" for file, size in zip(files, sizes, strict=True))
    return {
        "bytes": sum(sizes),
        "sha256_names": hashlib.sha256("".join(lines).encode(errors="replace")).hexdigest(),
    }


def _files_below(path: Path) -> Iterator[Path]:
    """Yield files in an order that depends on their names alone."""
    for directory, below, names in os.walk(path):
        below.sort()
        yield from (Path(directory, name) for name in sorted(names))
