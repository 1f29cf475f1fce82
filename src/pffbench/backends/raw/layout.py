"""Raw files: arrays one after the other, whose offsets follow from their specifications."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from typing import ClassVar, TypeVar

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Array, Backend, Call, Store
from pffbench.backends.file_layout import ArrayInFile
from pffbench.backends.inspection import StoredAs, StoredLayout
from pffbench.case import Options, Settings
from pffbench.units import Size


class RawOptions(Options, frozen=True, kw_only=True):
    """Options of all raw files."""

    @property
    def call(self) -> Size | None:
        """Most bytes that one call moves; None where a rank's part is moved by one call."""
        return None

    @property
    def header(self) -> int:
        """Bytes before the data: where the size of calls is limited, a page."""
        return 0 if self.call is None else mmap.PAGESIZE


class ChunkedRawOptions(RawOptions, frozen=True, kw_only=True):
    """Options of the raw transfers that pffbench adds to cold reads.

    They have calls as large as the formats' chunks, and a header that is read when a file is
    opened. Without them the kernel reads ahead less than for a format.
    """

    call: Size


RawOptionsT = TypeVar("RawOptionsT", bound=RawOptions)


class RawBackend(Backend[RawOptionsT]):
    """Arrays one after the other in a plain file."""

    suffix = ".raw"
    #: Options of the transfers added to cold reads.
    chunked_options: ClassVar[type[RawOptions]] = ChunkedRawOptions

    def __init__(self, options: RawOptionsT, settings: Settings) -> None:
        super().__init__(options, settings)
        limits = (type(self).call_limit, options.call)
        self.call_limit = min(filter(None, limits), default=None)

    def describe(self, path: str) -> StoredAs:
        """Return nothing but that it is raw: such a file describes nothing."""
        return StoredAs()


class RawStore(Store):
    """A plain file without metadata: to define or to open arrays takes no call."""

    _path: str
    _options: RawOptions

    def files(self) -> set[str]:
        return {self._path}

    def definer(self, specs: Sequence[ArraySpec]) -> Call:
        return _find_nothing

    def opener(self, specs: Sequence[ArraySpec]) -> Call:
        return _find_nothing


class RawArray(Array):
    """An array of a plain file."""

    _place: ArrayInFile

    def layout(self, collective: bool) -> StoredLayout:
        return self._place


def _find_nothing() -> None:
    """Make no call: a program that knows the offsets makes none."""


def place_of(spec: ArraySpec, options: RawOptions) -> ArrayInFile:
    """Return where an array lies in the file: after those before it."""
    shape = (spec.shape[0] + spec.growth, *spec.shape[1:])
    return ArrayInFile(shape, spec.itemsize, options.header + spec.offset)
