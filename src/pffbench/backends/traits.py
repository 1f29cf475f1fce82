"""Traits that a backend, its stores or its arrays may have: each a small protocol.

A class that has the methods has the trait; it need not name it, and what a class lacks is stated
nowhere. Workloads ask with `isinstance`, and before a run with `issubclass` of a backend's class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from mpi4py import MPI

    from pffbench.backends.array_spec import ArraySpec
    from pffbench.backends.base import Array, Call, Store
    from pffbench.backends.hints import FileHints
    from pffbench.backends.inspection import StoredAs, StoredChunks, StoredLayout
    from pffbench.case import Parameters
    from pffbench.data import Source


# ---- of a backend


@runtime_checkable
class Changes(Protocol):
    """A backend that overwrites parts of arrays in a closed store, and appends to them."""

    def reopen(self, path: str, comm: MPI.Intracomm | None) -> Store:
        """Open a store to change it; as in `Backend.open`, `comm` is None for one rank."""


@runtime_checkable
class Forgets(Protocol):
    """A backend whose library keeps free memory, or memory of threads, that held data."""

    def forget(self, overwrite: Callable[[], None]) -> None:
        """Erase the data from memory between writing and reading, off the timer.

        Parameters
        ----------
        overwrite : callable
            Overwrites the free memory of the calling thread. A library that keeps free memory of
            its own releases it first, and one with threads calls it in each.
        """


@runtime_checkable
class Describes(Protocol):
    """A backend that inspects its closed stores."""

    def describe(self, path: str) -> StoredAs:
        """Return the storage layout of the first array of a store; called by one rank."""


@runtime_checkable
class SizesChunks(Protocol):
    """A backend that finds the chunks of an array in its closed stores."""

    def stored_chunks(self, path: str, names: Sequence[str]) -> list[StoredChunks]:
        """Return the size on disk of the chunks of each array that has chunks.

        Called by any rank.
        """


@runtime_checkable
class RefusesData(Protocol):
    """A backend with filters that give up on data, which harms the file or the other ranks."""

    def refuse_data(
        self, parameters: Parameters, spec: ArraySpec, source: Source, part: int, parts: int
    ) -> str | None:
        """Return why an array cannot be written with these data, before it is written; or None.

        Parameters
        ----------
        parameters : Parameters
            The case.
        spec : ArraySpec
            The array.
        source : Source
            Its data.
        part, parts : int
            This rank looks at every `parts`-th chunk from number `part` on.
        """


# ---- of a store

#: By name of an array: the library's own object for it, its shape, its type.
Inquiry = Mapping[str, tuple[Any, Sequence[int], Any]]


@runtime_checkable
class Lists(Protocol):
    """A store that knows which arrays it has."""

    def inquire(self) -> Inquiry:
        """Find all arrays with their shapes and types, on the timer; `Store.wrap` wraps them."""


@runtime_checkable
class Reports(Protocol):
    """A store whose library tells how it moved data."""

    def transfer_facts(self) -> dict[str, str]:
        """Return the library's report of the last transfer, such as its mode."""


@runtime_checkable
class ReportsHints(Protocol):
    """A store that MPI-IO may have open, which reports what became of the hints."""

    def file_hints(self) -> FileHints | None:
        """Return the hints of the open file; None on a rank that leaves it to another one."""


@runtime_checkable
class Abandons(Protocol):
    """A store of HDF5 alone: the library keeps the names of what it has failed to close."""

    def abandon(self) -> None:
        """Let go of the store after its close has failed on this rank, so that others work."""


@runtime_checkable
class HasAttributes(Protocol):
    """A store whose arrays have attributes; `Capabilities.attributes` says so before a run."""

    def attribute_writers(self, values: Sequence[tuple[Array, str, int]]) -> list[Call]:
        """Prepare to set attributes, of open arrays, by name; return the calls in their order."""

    def attribute_readers(self, names: Sequence[tuple[Array, str]]) -> list[Call]:
        """Prepare to read attributes; return the calls, each of which returns a value."""


# ---- of an array


@runtime_checkable
class Grows(Protocol):
    """An array that is resized before rows are appended; others grow when these are written."""

    def resizer(self, length: int) -> Call:
        """Prepare to resize the first axis to `length`; return the call that does it."""


@runtime_checkable
class TellsLayout(Protocol):
    """An array whose place in files is known."""

    def layout(self, collective: bool) -> StoredLayout | None:
        """Return the chunks of an array, or its place in a file, off the timer; None if unknown.

        With `collective`, as collective transfers use it, which may bypass its chunk cache.
        """


@runtime_checkable
class CountsMissing(Protocol):
    """An array whose calls return no count of bytes although they may move fewer: MPI-IO alone.

    Other libraries raise an error, or their call returns the count.
    """

    def missing(self, call: Call, nbytes: int) -> int:
        """Return how many of `nbytes` a call did not move; asked once for each call, untimed."""


TRAITS: tuple[type, ...] = (
    Changes, Forgets, Describes, SizesChunks, RefusesData,
    Lists, Reports, ReportsHints, Abandons, HasAttributes,
    Grows, TellsLayout, CountsMissing,
)  # fmt: skip
