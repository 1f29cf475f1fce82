"""`pffbench completion`: a script with which a shell completes commands, options and files."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from pffbench.errors import UserError

_SHELLS = ("bash", "zsh", "tcsh")
#: Names of arguments that are paths.
_DIRECTORIES = frozenset({"DIR", "RUN", "BASE", "NEW"})
_FILES = frozenset({"EXPERIMENT.yaml", "FILE"})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "shell",
        nargs="?",
        choices=_SHELLS,
        metavar="SHELL",
        help="bash, zsh or tcsh (default: the name in $SHELL) (example: pffbench completion bash > "
        "~/.local/share/bash-completion/completions/pffbench)",
    )


def main(arguments: argparse.Namespace) -> int:
    """Print the script. Return the exit status."""
    try:
        import shtab
    except ModuleNotFoundError:
        raise UserError(
            "completion needs shtab, which is not installed: pip install 'pffbench[completion]'"
        ) from None
    shell = arguments.shell or Path(os.environ.get("SHELL", "")).name
    if shell not in _SHELLS:
        raise UserError(f"completion: name the shell: one of {', '.join(_SHELLS)}")
    parser: argparse.ArgumentParser = arguments.make_parser()
    for action in _actions(parser):
        if action.metavar in _DIRECTORIES:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif action.metavar in _FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, shell=shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the arguments of all commands."""
    found = list(parser._actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                found += _actions(command)
    return found
