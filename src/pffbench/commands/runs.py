"""`pffbench runs`: results directories, each with its verdict and its answer."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import msgspec

from pffbench.errors import UserError
from pffbench.record.run_json import RunRecord
from pffbench.regular_files import LARGEST_RECORD, read_regular
from pffbench.results.answer import Answer
from pffbench.results.document import FILE
from pffbench.text import counted, one_line

#: Folders within each other: of results, of the experiments of a folder, of runs.
_DEEPEST = 2


class _Results(msgspec.Struct):
    """What is read of `results.json`."""

    answer: Answer | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "directories",
        nargs="*",
        default=["pffbench-results"],
        metavar="DIR",
        help="directories that contain results directories (default: ./pffbench-results) (example: "
        "results)",
    )


def main(arguments: argparse.Namespace) -> int:
    """Print the runs of directories, the latest last. Return the exit status."""
    runs: list[tuple[str, Path, RunRecord]] = []
    for place in arguments.directories:
        found = list(_find_runs(Path(place), _DEEPEST))
        if not found:
            raise UserError(f"{place}: contains no results directory")
        for directory in found:
            try:
                record = RunRecord.load(directory)
            except ValueError as error:
                print(one_line(str(error)))
            else:
                runs.append((record.started, directory, record))
    for started, directory, record in sorted(runs, key=lambda run: run[:2]):
        ranks = counted(record.ranks, "rank")
        head = f"{directory}  {started[:16]}, {record.name}, {ranks}: {_describe_state(record)}"
        print(one_line(head))
        if answer := _read_answer(directory):
            print(one_line(f"    {answer.sentence}"))
            if answer.word == "NO ANSWER" and answer.command:
                print(one_line(f"    {answer.command}"))
    return 0


def _find_runs(place: Path, deepest: int) -> Iterator[Path]:
    """Yield the results directories at a place or below it; links are not followed."""
    if (place / "run.json").is_file():
        yield place
    elif deepest and place.is_dir():
        for inner in sorted(place.iterdir()):
            if inner.is_dir() and not inner.is_symlink():
                yield from _find_runs(inner, deepest - 1)


def _describe_state(record: RunRecord) -> str:
    if record.status != "finished":
        return record.status
    if record.has_losses:
        return "losses counted"
    return "every byte verified" if record.valid else f"INVALID ({record.objection})"


def _read_answer(directory: Path) -> Answer | None:
    """Return the answer of a run, if its results have been written and it has one."""
    try:
        text = read_regular(directory / FILE, LARGEST_RECORD)
        return msgspec.json.decode(text, type=_Results).answer
    except (OSError, msgspec.MsgspecError):
        return None
