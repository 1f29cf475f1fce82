"""Classic netCDF files: CDF-1, CDF-2 and CDF-5.

The header is parsed here because netCDF-C reads zeros where a truncated file has no values, and
refuses a whole file for one name that is not UTF-8. See the format's specification,
https://docs.unidata.ucar.edu/netcdf-c/current/file_format_specifications.html.
"""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import msgspec
import numpy as np

from pffbench.data.base import Array, ElementType, Index
from pffbench.data.contents import Contents, shown_name
from pffbench.regular_files import open_regular

SIGNATURES = (b"CDF\x01", b"CDF\x02", b"CDF\x05")
#: NumPy's names of the types, which are numbered from 1.
_TYPES = ("i1", "S1", ">i2", ">i4", ">f4", ">f8", "u1", ">u2", ">u4", ">i8", ">u8")
_DIMENSION, _VARIABLE, _ATTRIBUTE = 10, 11, 12
_T = TypeVar("_T")


class ClassicVariable(msgspec.Struct, frozen=True):
    """A variable of a classic file."""

    #: Its values, mapped from the file.
    values: Array
    #: Whether its first axis is the unlimited dimension.
    grows: bool
    #: Names of its attributes.
    attributes: frozenset[str] = frozenset()

    @property
    def shape(self) -> Index:
        """Its shape."""
        shape: Index = self.values.shape
        return shape

    @property
    def dtype(self) -> ElementType:
        """Its type, big-endian."""
        return self.values.dtype

    def __getitem__(self, box: tuple[slice, ...]) -> Array:
        return np.array(self.values[box])


class _Declared(NamedTuple):
    """A variable as the header declares it."""

    name: str
    dimensions: Index
    attributes: frozenset[str]
    dtype: ElementType
    begin: int


def list_classic(path: Path) -> Contents:
    """Return the variables of a classic file.

    Raises
    ------
    ValueError
        The header is invalid.
    """
    with open_regular(path) as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        header = _Header(file)
        records, lengths, attributes, declared = header.parse()
    found = Contents("classic", {}, {}, attributes.__getitem__)
    record = _record_bytes([v for v in declared if _grows(v, lengths)], lengths)
    for variable in declared:
        grows = _grows(variable, lengths)
        inner = [lengths[i] for i in variable.dimensions]
        shape = [records, *inner[1:]] if grows else inner
        strides = [math.prod(shape[i + 1 :]) * variable.dtype.itemsize for i in range(len(shape))]
        if grows:
            strides[0] = record
        end = _end(variable, shape, strides)
        if end > len(mapped):
            found.unreadable[variable.name] = (
                f"the file is truncated: it has {len(mapped)} bytes, the variable ends at {end}"
            )
        else:
            begin = variable.begin if end else 0
            values: Array = np.ndarray(shape, variable.dtype, mapped, begin, strides)
            found.arrays[variable.name] = ClassicVariable(values, grows, variable.attributes)
    return found


def _end(variable: _Declared, shape: list[int], strides: list[int]) -> int:
    """Return the byte after the last element; 0 for a variable without elements."""
    if 0 in shape:
        return 0
    last = sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
    return variable.begin + last + variable.dtype.itemsize


def _grows(variable: _Declared, lengths: list[int]) -> bool:
    """Whether the first dimension is the unlimited one, which the header gives the length 0."""
    return bool(variable.dimensions) and lengths[variable.dimensions[0]] == 0


def _record_bytes(growing: list[_Declared], lengths: list[int]) -> int:
    """Return the bytes of a record, in which each variable is padded unless it is the only one."""
    sizes = [
        math.prod(lengths[i] for i in variable.dimensions[1:]) * variable.dtype.itemsize
        for variable in growing
    ]
    return sizes[0] if len(sizes) == 1 else sum(-(-size // 4) * 4 for size in sizes)


class _Header:
    """Parses a header.

    Parameters
    ----------
    file : file
        The open file.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        file.seek(0)
        version = file.read(4)[3]
        self._count = ">q" if version == 5 else ">i"
        self._offset = ">i" if version == 1 else ">q"

    def parse(self) -> tuple[int, list[int], dict[str, Any], list[_Declared]]:
        """Return number of records, lengths of dimensions, attributes and variables."""
        records = self._number(self._count)
        lengths = [length for _, length in self._list(_DIMENSION, self._dimension)]
        attributes = dict(self._list(_ATTRIBUTE, self._attribute))
        return records, lengths, attributes, list(self._list(_VARIABLE, self._variable))

    def _list(self, tag: int, item: Callable[[], _T]) -> Iterator[_T]:
        found, count = self._number(">i"), self._number(self._count)
        if found not in (tag, 0) or (count and not found):
            raise ValueError(f"the header is invalid: a list has the tag {found}, not {tag}")
        for _ in range(count):
            yield item()

    def _dimension(self) -> tuple[str, int]:
        return self._name(), self._number(self._count)

    def _attribute(self) -> tuple[str, Any]:
        name, dtype = self._name(), self._type()
        values = np.frombuffer(self._padded(self._number(self._count) * dtype.itemsize), dtype)
        return name, shown_name(values.tobytes()) if dtype.kind == "S" else values

    def _variable(self) -> _Declared:
        name = self._name()
        dimensions = [self._number(self._count) for _ in range(self._number(self._count))]
        attributes = frozenset(told for told, _ in self._list(_ATTRIBUTE, self._attribute))
        dtype, _ = self._type(), self._bytes(struct.calcsize(self._count))
        return _Declared(name, tuple(dimensions), attributes, dtype, self._number(self._offset))

    def _name(self) -> str:
        """Return a name, which ends at a NUL as in netCDF-C: old programs counted it in."""
        return shown_name(self._padded(self._number(self._count)).partition(b"\0")[0])

    def _type(self) -> ElementType:
        number = self._number(">i")
        if not 1 <= number <= len(_TYPES):
            raise ValueError(f"the header is invalid: there is no type {number}")
        return np.dtype(_TYPES[number - 1])

    def _number(self, form: str) -> int:
        (number,) = struct.unpack(form, self._bytes(struct.calcsize(form)))
        if number < 0:
            raise ValueError(f"the header is invalid: it has the number {number}")
        return int(number)

    def _padded(self, count: int) -> bytes:
        return self._bytes(-(-count // 4) * 4)[:count]

    def _bytes(self, count: int) -> bytes:
        found = self._file.read(count) if count < 2**31 else b""
        if len(found) < count:
            raise ValueError("the header is truncated")
        return found
