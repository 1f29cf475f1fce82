"""Where the values of a dataset are: source files of virtual datasets, raw files, and filters.

HDF5 gives the fill value in place of a virtual dataset's source that is missing, and zeros after
the end of a raw file, so both are checked before anything is read.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

import h5py
from h5py import h5d, h5g, h5l, h5o, h5s, h5t, h5z

from pffbench.data.base import Index
from pffbench.data.contents import FAILURES, reason_of, shown_name
from pffbench.regular_files import check_regular

#: Source files of a virtual dataset that stay open: there may be more than a process can open.
_MOST_OPEN = 32
#: Most soft links that a name may lead through.
_MOST_LINKS = 40
#: Names of registered filters (https://github.com/HDFGroup/hdf5_plugins); those that the Python
#: package hdf5plugin has.
_OF_HDF5PLUGIN = {
    307: "bzip2", 32001: "Blosc", 32004: "LZ4", 32008: "bitshuffle", 32013: "ZFP",
    32015: "Zstandard", 32017: "SZ", 32018: "FCIDECOMP", 32024: "SZ3", 32026: "Blosc2",
    32028: "SPERR", 32033: "HTJ2K",
}  # fmt: skip
#: Highest number of a filter that is a part of HDF5.
_LAST_OF_HDF5 = 255


def open_hdf5(path: Path) -> h5py.File:
    """Open a file to read it.

    Raises
    ------
    OSError
        It cannot be opened.
    """
    try:
        return h5py.File(path, "r", locking="best-effort")
    except OSError as error:
        if "h5clear" in str(error):  # which would damage a file that is being written
            raise OSError("a program writes it, or ended without closing it") from None
        raise


def resolve(file: h5py.File, name: bytes, elsewhere: Callable[[bytes, bytes], Any]) -> Any:
    """Return the open object of a name, or None.

    Parameters
    ----------
    file : h5py.File
        The file.
    name : bytes
        The name, with the groups before it.
    elsewhere : callable
        Called with the file and the name in it where a link leads to another file; what it returns
        is the result.
    """
    place = root = h5g.open(file.id, b"/")
    parts, links = name.split(b"/")[::-1], 0
    while parts:
        part = parts.pop()
        if part in (b"", b"."):
            continue
        if not isinstance(place, h5g.GroupID) or not place.links.exists(part):
            return None
        kind = place.links.get_info(part).type
        if kind == h5l.TYPE_HARD:
            place = h5o.open(place, part)
        elif kind == h5l.TYPE_EXTERNAL:
            other, inside = place.links.get_val(part)
            return elsewhere(other, b"/".join([inside, *parts[::-1]]))
        elif kind == h5l.TYPE_SOFT and links < _MOST_LINKS:
            target = place.links.get_val(part)
            place = root if target.startswith(b"/") else place
            parts += target.split(b"/")[::-1]
            links += 1
        else:
            return None
    return place


def refuse_values(path: Path, dataset: Any) -> str | None:
    """Return why the values of a dataset cannot be found, or None.

    Parameters
    ----------
    path : Path
        The file that the dataset is in.
    dataset : h5py.h5d.DatasetID
        The dataset.
    """
    with ExitStack() as stack:
        try:
            return _Values(stack).refuse(path, dataset)
        except FAILURES as error:
            return reason_of(error)


class _Values:
    """Looks for the values of a dataset, in other files too.

    Parameters
    ----------
    stack : ExitStack
        Closes the files.
    """

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._files: dict[Path, h5py.File | None] = {}
        self._visited: set[tuple[Path, bytes]] = set()

    def refuse(self, path: Path, dataset: Any) -> str | None:
        """Return why the values of a dataset cannot be found, or None."""
        creation = dataset.get_create_plist()
        if creation.get_layout() != h5d.VIRTUAL:
            return _refuse_raw_files(path, dataset)
        for number in range(creation.get_virtual_count()):
            if not self._visited and len(self._files) > _MOST_OPEN:
                self._stack.close()
                self._files.clear()
            if reason := self._refuse_source(path, creation, number):
                return reason
        return None

    def _refuse_source(self, path: Path, creation: Any, number: int) -> str | None:
        """Return why the values of a mapping of a virtual dataset cannot be found, or None."""
        file = os.fsencode(creation.get_virtual_filename(number))
        name = os.fsencode(creation.get_virtual_dsetname(number))
        space = creation.get_virtual_vspace(number)
        if not _is_unlimited(space):
            fits = partial(_fits, creation.get_virtual_srcspace(number), space)
            return self._refuse_dataset(path, _block(file), _block(name), fits)
        if (_block(file, 0), _block(name, 0)) == (_block(file, 1), _block(name, 1)):
            return self._refuse_dataset(path, _block(file), _block(name))
        for block in count():  # as many as there are, and one at least
            names = _block(file, block), _block(name, block)
            if self._find(path, *names) is None:
                return self._refuse_dataset(path, *names) if block == 0 else None
            if reason := self._refuse_dataset(path, *names):
                return reason
        return None

    def _refuse_dataset(
        self, path: Path, file: bytes, name: bytes, fits: Callable[[Index], bool] | None = None
    ) -> str | None:
        told = f"its source {shown_name(name)} in {shown_name(file)}"
        found = self._find(path, file, name)
        if found is None:
            return f"{told} is missing or damaged"
        place, source = found
        if (place, name) in self._visited:
            return f"{told} is read for itself"
        self._visited.add((place, name))
        reason = refuse_filters(source) or self.refuse(place, source)
        self._visited.remove((place, name))
        if reason is None and fits is not None and not fits(source.shape):
            reason = f"{told} has the shape {source.shape}, less than is used of it"
        return reason

    def _find(self, path: Path, file: bytes, name: bytes) -> tuple[Path, Any] | None:
        """Return the file and the dataset that HDF5 would read a source from, or None."""
        opened = self._open(path, file, "HDF5_VDS_PREFIX")
        for _ in range(_MOST_LINKS):
            if opened is None:
                return None
            place, source = opened
            leads: list[tuple[bytes, bytes]] = []
            dataset = resolve(source, name, lambda *link: leads.append(link))  # noqa: B023
            if not leads:
                return (place, dataset) if isinstance(dataset, h5d.DatasetID) else None
            other, name = leads[0]
            opened = self._open(place, other, "HDF5_EXT_PREFIX")
        return None

    def _open(self, path: Path, file: bytes, prefix: str) -> tuple[Path, h5py.File] | None:
        """Open another file, in the first place where HDF5 would find it."""
        for place in [path] if file == b"." else _places(path, os.fsdecode(file), prefix):
            if place not in self._files:
                self._files[place] = None
                if place.exists():
                    check_regular(place)
                    with suppress(OSError):  # no HDF5 file; HDF5 tries the next place
                        self._files[place] = self._stack.enter_context(open_hdf5(place))
            if (opened := self._files[place]) is not None:
                return place, opened
        return None


def _is_unlimited(space: Any) -> bool:
    """Whether a selection grows with its source."""
    if space.get_select_type() != h5s.SEL_HYPERSLABS or not space.is_regular_hyperslab():
        return False
    _, _, counts, blocks = space.get_regular_hyperslab()
    return h5s.UNLIMITED in (*counts, *blocks)


def _fits(selection: Any, space: Any, shape: Index) -> bool:
    """Whether a dataset of this shape has what a mapping selects of it."""
    if selection.get_select_type() == h5s.SEL_ALL:  # HDF5 does not store of what shape
        return bool(math.prod(shape) == space.get_select_npoints())
    _, last = selection.get_select_bounds()
    return all(i < n for i, n in zip(last, shape, strict=True))


def _block(name: bytes, number: int | None = None) -> bytes:
    """Return the name of a source, of a block if it is the name of several."""
    told = b"%b" if number is None else b"%d" % number
    return re.sub(b"%[%b]", lambda found: b"%" if found[0] == b"%%" else told, name)


def _places(path: Path, file: str, prefix: str) -> Iterator[Path]:
    """Yield the places where HDF5 looks for another file, as its H5F_prefix_open_file does."""
    name = file
    if Path(file).is_absolute():
        yield Path(file)
        name = Path(file).name
    for directory in os.environ.get(prefix, "").split(":"):
        if directory:
            yield Path(_expanded(directory, path), name)
    yield path.parent.absolute() / name
    yield Path(name).absolute()
    yield path.resolve().parent / name


def _expanded(directory: str, path: Path) -> str:
    origin = "${ORIGIN}"
    if not directory.startswith(origin):
        return directory
    return f"{path.parent.absolute()}{directory.removeprefix(origin)}"


def _refuse_raw_files(path: Path, dataset: Any) -> str | None:
    """Return why the raw files that a dataset has its values in are not usable, or None."""
    creation = dataset.get_create_plist()
    left = math.prod(dataset.shape or ()) * dataset.get_type().get_size()
    for number in range(creation.get_external_count()):
        file, offset, size = creation.get_external(number)
        place = Path(_expanded(os.environ.get("HDF5_EXTFILE_PREFIX", ""), path), os.fsdecode(file))
        part = min(size, left)
        if not place.exists():
            return (
                f"its raw file {shown_name(file)} is missing, which HDF5 looks for in the current "
                "directory or in HDF5_EXTFILE_PREFIX"
            )
        check_regular(place)
        if place.stat().st_size < offset + part:
            return f"its raw file {shown_name(file)} is shorter than the {offset + part} bytes used"
        left -= part
    return None


def refuse_type(dataset: Any) -> str | None:
    """Return why the elements of a dataset are not the numbers that h5py calls them, or None.

    Parameters
    ----------
    dataset : h5py.h5d.DatasetID
        The dataset.
    """
    with suppress(TypeError, ValueError):  # h5py has no type for them
        dtype = dataset.dtype
        if dtype.kind in "iuf" and h5t.find(dataset.get_type(), h5t.py_create(dtype)) is None:
            return "HDF5 cannot convert its elements to numbers, as in a bit field"
    return None


def refuse_filters(dataset: Any) -> str | None:
    """Return why a dataset cannot be decoded, or None; filters of hdf5plugin are loaded.

    Parameters
    ----------
    dataset : h5py.h5d.DatasetID
        The dataset.
    """
    creation = dataset.get_create_plist()
    for index in range(creation.get_nfilters()):
        number, _, _, name = creation.get_filter(index)
        if _is_available(number):
            continue
        told = _OF_HDF5PLUGIN.get(number) or shown_name(name).strip("\0 ") or "without a name"
        if number in _OF_HDF5PLUGIN:
            remedy = "which needs the Python package hdf5plugin: pip install hdf5plugin"
        elif number <= _LAST_OF_HDF5:
            remedy = "which this HDF5 was built without"
        else:
            remedy = "which is not installed: set HDF5_PLUGIN_PATH to the directory of its plug-in"
        return f"it is stored with the HDF5 filter {number} ({told}), {remedy}"
    return None


def _is_available(number: int) -> bool:
    """Whether HDF5 has a filter, if need be with hdf5plugin."""
    if h5z.filter_avail(number):
        return True
    if number in _OF_HDF5PLUGIN:
        with suppress(ImportError):
            import_module("hdf5plugin")
    return bool(h5z.filter_avail(number))
