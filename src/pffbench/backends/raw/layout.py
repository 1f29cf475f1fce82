"""Raw files: arrays one after the other, whose offsets follow from their specifications."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from typing import ClassVar, Literal, TypeVar, cast

from msgspec.structs import replace

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Array, Backend, Call, Cuts, Storage, Store
from pffbench.backends.file_layout import Copies, Copy, Order
from pffbench.backends.inspection import StoredAs
from pffbench.case import Options, Parameters, Settings
from pffbench.units import Size


class RawOptions(Options, frozen=True, kw_only=True):
    """Options of all raw files.

    Parameters
    ----------
    order : {"C", "F", "both", "three"}
        Order of the elements in the file: last index fastest, first index fastest, one copy of
        each, or a third one too, in which the middle index is slowest, so that a slice across any
        axis of a volume is in one piece. A read takes the copy that is in fewest pieces.
    """

    order: Literal["C", "F", "both", "three"] = "C"

    @property
    def call(self) -> Size | None:
        """Most bytes that one call moves; None where a rank's part is moved by one call."""
        return None

    @property
    def header(self) -> int:
        """Bytes before the data: where the size of calls is limited, a page."""
        return 0 if self.call is None else mmap.PAGESIZE

    @property
    def orders(self) -> tuple[Order, ...]:
        """The order of each copy."""
        several: dict[str, tuple[Order, ...]] = {"both": ("C", "F"), "three": ("C", "F", "M")}
        return several.get(self.order) or (cast(Order, self.order),)


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

    @classmethod
    def storage(cls, spec: ArraySpec, options: RawOptionsT) -> Storage:
        return replace(super().storage(spec, options), copies=len(options.orders))

    @classmethod
    def refuse(
        cls, parameters: Parameters, options: RawOptionsT, specs: Sequence[ArraySpec], cuts: Cuts
    ) -> str | None:
        if parameters.irregular and options.order != "C":
            return f"a decomposition map has its stretches in order C, here it is {options.order}"
        return refuse_order(options, specs)

    def describe(self, path: str) -> StoredAs:
        """Return what the options say of the order of elements: a raw file describes nothing."""
        order = self.options.order
        return StoredAs(more={} if order == "C" else {"order": str(order)})


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
    """An array of a plain file, or several copies of it in different orders."""

    _copies: Copies

    def layout(self, collective: bool) -> Copies:
        return self._copies


def _find_nothing() -> None:
    """Make no call: a program that knows the offsets makes none."""


def refuse_order(options: RawOptions, specs: Sequence[ArraySpec]) -> str | None:
    """Return why arrays cannot be in that order, or None."""
    if options.order != "C" and any(spec.growth for spec in specs):
        return f"rows are appended to raw files of order C only, here it is {options.order}"
    if options.order == "three" and any(len(spec.shape) < 3 for spec in specs):
        return "order: three is for arrays of 3 axes or more; with fewer, both has all orders"
    return None


def copies_of(spec: ArraySpec, options: RawOptions) -> Copies:
    """Return the copies of an array: one after the other, after those of preceding arrays."""
    orders = options.orders
    begin = options.header + len(orders) * spec.offset
    shape = (spec.shape[0] + spec.growth, *spec.shape[1:])
    return Copies(
        [
            Copy(shape, spec.itemsize, order, begin + number * spec.nbytes)
            for number, order in enumerate(orders)
        ]
    )
