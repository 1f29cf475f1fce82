"""Ends while zarr-python's thread is busy for longer than zarr-python waits for it."""

import time

from pffbench.backends.registry import backend_class

kind = backend_class("zarr")
kind(kind.options_type(), "matched")

from zarr.core import sync  # noqa: E402 -- after the backend, as in a run


async def nothing() -> None:
    return None


sync.sync(nothing())  # makes the thread
sync.loop[0].call_soon_threadsafe(time.sleep, 1.0)
