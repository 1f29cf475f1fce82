"""`pffbench keys`: the keys of an experiment, of workloads and of backends, or the JSON Schema."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib.util import find_spec

from pffbench.backends.base import Backend
from pffbench.backends.registry import backend_class, loadable_backend_names, missing_library
from pffbench.case import Parameters
from pffbench.commands.describe import key_lines, wrapped
from pffbench.errors import VALID, UserError
from pffbench.experiment.schema import Experiment, json_schema
from pffbench.run.output import print_json
from pffbench.text import perhaps_meant
from pffbench.workloads.registry import loadable_workload_names, workload


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="print the keys of these workloads and backends (default: the keys that every "
        "experiment and case can have, and the names of workloads and backends) (example: "
        "hyperslab zarr)",
    )
    parser.add_argument(
        "--schema",
        nargs="?",
        choices=("experiment", "results"),
        const="experiment",
        metavar="DOCUMENT",
        help="print the JSON Schema of an experiment, or of results.json (example: --schema "
        "results)",
    )


def main(arguments: argparse.Namespace) -> int:
    """Print the keys, or the schema. Return the exit status."""
    known = (*loadable_workload_names(), *loadable_backend_names())
    if unknown := [name for name in arguments.names if name not in known]:
        hint = perhaps_meant(unknown[0], known)
        raise UserError(f"{unknown[0]!r} is not a workload or a backend ({', '.join(known)}){hint}")
    if arguments.schema is not None and arguments.names:
        raise UserError("--schema has the keys of all workloads and backends: leave out NAME")
    if arguments.schema == "results":
        from pffbench.results.document import results_schema

        print_json(results_schema())
    elif arguments.schema is not None:
        print_json(json_schema())
    elif not arguments.names:
        print("\n".join(_overview()))
    for name in arguments.names:
        if name in loadable_workload_names():
            print("\n".join(_workload(name)))
        if name in loadable_backend_names():
            print("\n".join(_backend(backend_class(name))))
    return VALID


def _overview() -> Iterator[str]:
    """Yield the keys that do not depend on names, and the names."""
    yield "keys of an experiment:"
    yield from key_lines(Experiment)
    yield from ("", "keys of every case:")
    yield from key_lines(Parameters)
    yield from ("", "workloads (pffbench keys NAME prints the keys of one):")
    for name in loadable_workload_names():
        yield from wrapped(f"{name}: {workload(name).summary}", "  ", "      ")
    yield from ("", "backends (the same):")
    for name in loadable_backend_names():
        yield from wrapped(_summary(backend_class(name)), "  ", "      ")


def _workload(name: str) -> Iterator[str]:
    kind = workload(name)
    yield from wrapped(f"{name}: {kind.summary}", "", "  ")
    yield from key_lines(kind.parameters_type, but=Parameters.__struct_fields__)
    yield ""


def _summary(kind: type[Backend]) -> str:
    reason = missing_library(kind)
    return f"{kind.name}: {kind.summary}{f' (cannot run: {reason})' if reason else ''}"


def _backend(kind: type[Backend]) -> Iterator[str]:
    can = kind.capabilities
    yield from wrapped(_summary(kind), "", "  ")
    yield f"  arrays     {', '.join(sorted(can.arrays)) or 'no files that ranks share'}"
    yield f"  transfers  {', '.join(sorted(can.transfers))}"
    codecs = ", ".join(_codec(kind, codec) for codec in sorted(can.codecs))
    yield from wrapped(codecs, "  codecs     ", " " * 13)
    if can.new_arrays:
        yield "  reads      return new arrays. Their allocation is part of the read"
    yield from key_lines(kind.options_type, prefix=f"{kind.name}.")
    yield ""


def _codec(kind: type[Backend], codec: str) -> str:
    """Name a codec with its settings, and the package that it lacks."""
    can = kind.capabilities
    compressors = can.compressors if codec == "blosc" else frozenset()
    facts = [
        *([f"of {', '.join(sorted(compressors))}"] if compressors else []),
        *([f"shuffle {'|'.join(sorted(can.shuffles[codec]))}"] if codec in can.shuffles else []),
    ]
    library = can.codec_libraries.get(codec)
    if library is not None and find_spec(library) is None:
        facts.append(f"not installed: {library}")
    return f"{codec} ({'; '.join(facts)})" if facts else codec
