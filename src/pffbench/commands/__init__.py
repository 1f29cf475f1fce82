"""One file for each command of the command line."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from pffbench.plugins import loaded

#: The commands and what each does, by task, in the order of `pffbench --help`.
TASKS = {
    "before a run": {
        "doctor": "check the software and this machine, and name remedies",
        "init": "write an experiment from your own HDF5, netCDF or Zarr file",
        "keys": "explain the keys of experiments, workloads and backends",
        "plan": "print the cases of an experiment and their cost",
    },
    "measure": {
        "run": "run an experiment on all ranks, or repeat a run",
    },
    "results": {
        "runs": "list results directories with their verdicts and answers",
        "report": "write report.html, the figures and the tables of finished runs",
        "recommend": "recommend a format and settings, and print a program",
        "compare": "show what became faster or slower between two or more runs",
        "scaling": "show how rates grow with ranks or nodes",
    },
    "after a run": {
        "clean": "list or remove files that killed runs left in a scratch directory",
    },
}
COMMANDS = {name: text for commands in TASKS.values() for name, text in commands.items()}

#: Other packages add a command through an entry point of this group: a module such as those here,
#: which has its line of help as ``HELP``, and one of the tasks above as ``TASK``.
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
    return [*COMMANDS, *sorted(_others().keys() - COMMANDS.keys())]


def _others() -> dict[str, Command]:
    """Return the modules of the commands of other packages."""
    return loaded(ENTRY_POINT_GROUP, "HELP", "TASK", "add_arguments", "main")


def command_module(name: str) -> Command:
    """Return the module of a command.

    Raises
    ------
    KeyError
        There is no command of that name.
    """
    if name in COMMANDS:
        return cast(Command, import_module(f"pffbench.commands.{name}"))
    return _others()[name]


def help_of(name: str) -> str:
    """Return what a command does, in a line.

    The lines of our own commands are here, because some of the modules take long to import.
    """
    return COMMANDS.get(name) or str(vars(command_module(name))["HELP"])


def commands_by_task() -> dict[str, list[str]]:
    """Return the names of all commands by their tasks, those of other packages among them."""
    tasks = {task: list(commands) for task, commands in TASKS.items()}
    for name in command_names():
        if name not in COMMANDS:
            tasks.setdefault(vars(command_module(name))["TASK"], []).append(name)
    return tasks


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
