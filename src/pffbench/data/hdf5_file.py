"""The datasets of an HDF5 file, which netCDF-4 files are too: these by netCDF's rules.

Links are looked at before they are followed, because one may lead to a file that blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
from h5py import h5d, h5g, h5l, h5o

from pffbench.data.base import Array, Index
from pffbench.data.contents import FAILURES, MOST_NAMES, Contents, reason_of, shown_name
from pffbench.data.hdf5_values import open_hdf5, refuse_type, refuse_values, resolve
from pffbench.errors import UserError

#: How netCDF-4 marks the dataset of a dimension that has no coordinate variable.
_BARE_DIMENSION = b"This is a netCDF dimension but not a netCDF variable"
#: How netCDF-4 begins the name of a variable that is named like a dimension which it does not have.
_NOT_A_COORDINATE = "_nc4_non_coord_"
#: Numbers of a file and of an object in it.
_Identity = tuple[int, ...]


class _Link(NamedTuple):
    """A link in a group."""

    group: Any
    name: bytes
    #: The name with the groups before it.
    path: bytes


def list_hdf5(path: Path, stack: ExitStack, wanted: str | None = None) -> Contents:
    """Return the datasets by name, which are the variables of netCDF-4; or the one wanted.

    Of very many datasets only the first ones are there: one more than `MOST_NAMES`. A dataset that
    has several names is there once.

    Raises
    ------
    UserError
        The one wanted is in another file.
    """
    file = stack.enter_context(open_hdf5(path))
    found = Contents("hdf5", {}, {}, file.attrs.__getitem__)
    if wanted and _add_wanted(found, path, file, wanted):
        return found
    root = h5g.open(file.id, b"/")
    pending, visited = list(_members(root, b"")), {_identity(root)}
    longest: dict[_Identity, int] = {}
    while pending and len(found.arrays) <= MOST_NAMES:
        link = pending.pop()
        try:
            opened = _open_link(link, found)
            if opened is None or (identity := _identity(opened)) in visited:
                continue
            visited.add(identity)
            if isinstance(opened, h5g.GroupID):
                pending += _members(opened, link.path)
            elif isinstance(opened, h5d.DatasetID) and not _is_bare_dimension(opened):
                _add(found, path, shown_name(link.path), opened, longest)
        except FAILURES as error:
            found.unreadable[shown_name(link.path)] = reason_of(error)
    _rename(found.arrays)
    return found


def _add_wanted(found: Contents, path: Path, file: h5py.File, wanted: str) -> bool:
    """Add the dataset of a name; return whether there is one, readable or not."""
    try:
        one = _find(path, file, wanted)
        if one is not None:
            _add(found, path, wanted, one, {})
    except FAILURES as error:
        found.unreadable[wanted] = reason_of(error)
    return wanted in found.arrays or wanted in found.unreadable


def _members(group: Any, path: bytes) -> Iterator[_Link]:
    """Yield the links of a group, the last one first."""
    for name in sorted(group, reverse=True):
        yield _Link(group, name, name if not path else path + b"/" + name)


def _identity(opened: Any) -> _Identity:
    state = h5g.get_objinfo(opened)
    return (*state.fileno, *state.objno)


def _open_link(link: _Link, found: Contents) -> Any:
    """Open the object of a link; None if it is in no place of its own here."""
    kind = link.group.links.get_info(link.name).type
    if kind == h5l.TYPE_HARD:
        return h5o.open(link.group, link.name)
    if kind == h5l.TYPE_EXTERNAL:
        other, _ = link.group.links.get_val(link.name)
        name = f"{shown_name(link.path)} in {shown_name(other)}"
        found.unreadable[name] = "a link to another file"
    elif kind != h5l.TYPE_SOFT:
        found.unreadable[shown_name(link.path)] = "a link of a kind that HDF5 does not define"
    return None


def _add(
    found: Contents, path: Path, name: str, opened: Any, longest: dict[_Identity, int]
) -> None:
    """Add a dataset to the readable or the unreadable ones; lengths of dimensions are kept."""
    if reason := refuse_values(path, opened) or refuse_type(opened):
        found.unreadable[name] = reason
    else:
        found.arrays[name] = _with_all_records(h5py.Dataset(opened), longest)


def _rename(arrays: dict[str, Any]) -> None:
    """Name variables as netCDF does."""
    for name in list(arrays):
        group, slash, last = name.rpartition("/")
        shown = f"{group}{slash}{last.removeprefix(_NOT_A_COORDINATE)}"
        if shown not in arrays:
            arrays[shown] = arrays.pop(name)


def _find(path: Path, file: h5py.File, wanted: str) -> Any:
    """Return the dataset of a name, or None.

    Raises
    ------
    UserError
        It is in another file.
    """

    def refuse(other: bytes, _: bytes) -> None:
        raise UserError(
            f"{path}: {wanted!r} is a link to {shown_name(other)!r}; name that file instead"
        )

    group, slash, last = wanted.rpartition("/")
    for name in (wanted, f"{group}{slash}{_NOT_A_COORDINATE}{last}"):
        opened = resolve(file, name.encode("utf-8", "surrogateescape"), refuse)
        if isinstance(opened, h5d.DatasetID) and not _is_bare_dimension(opened):
            return opened
    return None


def _is_bare_dimension(opened: Any) -> bool:
    with suppress(*FAILURES):  # such as an attribute of a type that NumPy has not
        name = h5py.Dataset(opened).attrs.get("NAME", b"")
        text = name.encode() if isinstance(name, str) else name
        return isinstance(text, bytes) and text.startswith(_BARE_DIMENSION)
    return False


class _Records:
    """A netCDF-4 variable with fewer records than its unlimited dimension; the others are filled.

    Parameters
    ----------
    dataset : h5py.Dataset
        The variable.
    shape : tuple of int
        Its shape by its dimensions.
    """

    def __init__(self, dataset: h5py.Dataset, shape: Index) -> None:
        self._dataset = dataset
        self.shape = shape

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dataset, name)

    def __getitem__(self, box: tuple[slice, ...]) -> Array:
        out: Array = np.full([cut.stop - cut.start for cut in box], self._fill, self._dataset.dtype)
        ends = [
            max(cut.start, min(cut.stop, n))
            for cut, n in zip(box, self._dataset.shape, strict=True)
        ]
        written = tuple(slice(cut.start, end) for cut, end in zip(box, ends, strict=True))
        part = tuple(slice(0, cut.stop - cut.start) for cut in written)
        if out[part].size:
            out[part] = self._dataset[written]
        return out

    @property
    def _fill(self) -> Any:
        defined = self._dataset.id.get_create_plist().fill_value_defined()
        if defined == h5d.FILL_VALUE_USER_DEFINED:
            return self._dataset.fillvalue
        import netCDF4

        return netCDF4.default_fillvals[self._dataset.dtype.str[1:]]


def _with_all_records(dataset: h5py.Dataset, longest: dict[_Identity, int]) -> Any:
    """Return a dataset as netCDF shows it: an unlimited dimension is as long as its longest one."""
    with suppress(*FAILURES):  # dimensions are damaged, or not netCDF's
        shape = tuple(
            n if most is not None else max(n, _longest(dataset, axis, longest))
            for axis, (n, most) in enumerate(zip(dataset.shape, dataset.maxshape, strict=True))
        )
        return dataset if shape == dataset.shape else _Records(dataset, shape)
    return dataset


def _longest(dataset: h5py.Dataset, axis: int, known: dict[_Identity, int]) -> int:
    """Return the largest length of all variables along the dimension of an axis; 0 without one."""
    if h5py.h5ds.is_scale(dataset.id):
        scale = dataset
    elif "DIMENSION_LIST" in dataset.attrs:
        scale = dataset.file[dataset.attrs["DIMENSION_LIST"][axis][0]]
    else:
        return 0
    if "_Netcdf4Dimid" not in scale.attrs and "_NCProperties" not in dataset.file.attrs:
        return 0
    identity = _identity(scale.id)
    if identity not in known:
        users = scale.attrs.get("REFERENCE_LIST", ())
        lengths = [dataset.file[reference].shape[place] for reference, place in users]
        known[identity] = max([scale.shape[0], *lengths])
    return known[identity]
