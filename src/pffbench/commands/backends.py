"""`pffbench backends`: abilities of each backend, and its options with their defaults."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib.util import find_spec

from pffbench.backends.base import Backend
from pffbench.backends.registry import backend_class, backend_names, missing_library
from pffbench.commands.describe import add_names, key_lines, wrapped


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_names(parser, "backend", backend_names())


def main(arguments: argparse.Namespace) -> int:
    """List the backends. Return the exit status."""
    for name in arguments.names or backend_names():
        print("\n".join(_lines(backend_class(name))))
    return 0


def _codec(kind: type[Backend], codec: str) -> str:
    """Name a codec with its settings, and the package that it lacks."""
    can = kind.capabilities
    compressors = can.compressors if codec == "blosc" else frozenset()
    told = [
        *([f"of {', '.join(sorted(compressors))}"] if compressors else []),
        *([f"shuffle {'|'.join(sorted(can.shuffles[codec]))}"] if codec in can.shuffles else []),
    ]
    library = can.codec_libraries.get(codec)
    if library is not None and find_spec(library) is None:
        told.append(f"not installed: {library}")
    return f"{codec} ({'; '.join(told)})" if told else codec


def _lines(kind: type[Backend]) -> Iterator[str]:
    can = kind.capabilities
    reason = missing_library(kind)
    state = f" (cannot run: {reason})" if reason else ""
    yield from wrapped(f"{kind.name}: {kind.summary}{state}", "", "  ")
    yield f"  layouts    {', '.join(sorted(can.layouts))}"
    yield f"  transfers  {', '.join(sorted(can.transfers))}"
    codecs = ", ".join(_codec(kind, codec) for codec in sorted(can.codecs))
    yield from wrapped(codecs, "  codecs     ", " " * 13)
    if can.new_arrays:
        yield "  reads      return new arrays, whose allocation is part of the read"
    yield from key_lines(kind.options_type, prefix=f"{kind.name}.")
    yield ""
