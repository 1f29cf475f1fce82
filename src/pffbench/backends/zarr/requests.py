"""A store of zarr-python that counts the requests made to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

from zarr.storage import LocalStore, WrapperStore


class CountingStore(WrapperStore[LocalStore]):  # type: ignore[misc]
    """A directory, read only; each question for an object or a list of objects is a request.

    Parameters
    ----------
    path : str
        The directory.
    """

    def __init__(self, path: str) -> None:
        super().__init__(LocalStore(path, read_only=True))
        self.requests = 0

    async def get(self, *args: Any, **told: Any) -> Any:
        """Count one request."""
        self.requests += 1
        return await super().get(*args, **told)

    def get_sync(self, *args: Any, **told: Any) -> Any:
        """Count one request: the fused pipeline of zarr-python 3.3 and newer reads by it."""
        self.requests += 1
        return super().get_sync(*args, **told)

    async def get_partial_values(self, prototype: Any, key_ranges: Iterable[Any]) -> Any:
        """Count a request for each range."""
        ranges = list(key_ranges)
        self.requests += len(ranges)
        return await super().get_partial_values(prototype, ranges)

    async def exists(self, key: str) -> bool:
        """Count one request."""
        self.requests += 1
        found: bool = await super().exists(key)
        return found

    def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Count one request."""
        self.requests += 1
        names: AsyncIterator[str] = super().list_dir(prefix)
        return names

    def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """Count one request."""
        self.requests += 1
        names: AsyncIterator[str] = super().list_prefix(prefix)
        return names
