"""One file for each command of the command line."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from pffbench.plugins import plugins

#: The commands and what each does, in the order of `pffbench --help`.
COMMANDS = {
    "run": "run an experiment on all ranks; without a name, the built-in one",
    "init": "write an experiment from the arrays of your own HDF5, netCDF or Zarr file",
    "plan": "print the cases of an experiment and their cost; write nothing",
    "footprint": "count files, calls, bytes and shared stripes of an experiment on any ranks",
    "doctor": "check the software and this machine, and name remedies",
    "runs": "list results directories with their verdicts and answers",
    "report": "rebuild summary, tables and plots of results directories",
    "compare": "compare the same cases in two or more runs: faster, slower, or not decided",
    "scaling": "show how rates grow with ranks or nodes",
    "recommend": "recommend a format and settings, with confidence level and a ready program",
    "clean": "list files that killed runs left in a scratch directory; --remove deletes them",
    "backends": "list the backends and their capabilities",
    "workloads": "list the workloads and their parameters",
    "schema": "print the JSON Schema of an experiment, or of results.json",
    "completion": "print a script that completes commands, options and files in bash, zsh or tcsh",
}

#: Other packages add a command through an entry point of this group: a module such as those here,
#: which has its line of help as ``HELP``.
ENTRY_POINT_GROUP = "pffbench.commands"


class Command(Protocol):
    """What a module of a command has. At its top it imports little more than its options need."""

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Add the options of the command."""

    @staticmethod
    def main(arguments: argparse.Namespace) -> int:
        """Run the command and return its exit status."""


def command_names() -> list[str]:
    """Return the names of all commands, those of other packages last."""
    return [*COMMANDS, *sorted(plugins(ENTRY_POINT_GROUP).keys() - COMMANDS.keys())]


def command_module(name: str) -> Command:
    """Return the module of a command.

    Raises
    ------
    KeyError
        There is no command of that name.
    """
    if name in COMMANDS:
        module = f"pffbench.commands.{name}"
    else:
        module = plugins(ENTRY_POINT_GROUP)[name]
    return cast(Command, import_module(module))


def help_of(name: str) -> str:
    """Return what a command does, in a line.

    The lines of our own commands are here, because some of the modules take long to import.
    """
    return COMMANDS.get(name) or str(vars(command_module(name))["HELP"])


def to_install_analysis() -> str:
    """Return how to install what `pffbench_analysis` needs, for the way that this one came.

    pip notes where a package was installed from, unless it was an index.
    """
    import json  # not needed by `run`, whose ranks all import this
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import unquote, urlsplit

    try:
        noted = distribution("pffbench").read_text("direct_url.json")
    except PackageNotFoundError:
        noted = "{}"  # run in a clone, or installed by another program
    if noted is None:
        return "pip install 'pffbench[analysis]'"
    url = urlsplit(str(json.loads(noted).get("url", "")))
    source = Path(unquote(url.path))
    if url.scheme == "file" and source.exists():
        return f"pip install '{source}[analysis]'"
    return "pip install '.[analysis]' in a clone of pffbench"
