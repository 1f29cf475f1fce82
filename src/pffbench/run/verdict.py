"""The result of a finished run on rank 0: derived files, printed verdict, exit status."""

from __future__ import annotations

import shlex
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pffbench.errors import NOT_VALID
from pffbench.job.launcher import on_terminal
from pffbench.results.answer import WIDTH
from pffbench.results.document import as_data, write_results
from pffbench.results.export import print_summary, write_summary
from pffbench.results.rerun import command_to_resume
from pffbench.results.summary import Summary, summarise
from pffbench.run.next_steps import next_steps
from pffbench.run.options import RunOptions
from pffbench.run.output import make_console, print_json
from pffbench.run.recorder import Recorder
from pffbench.text import one_line
from pffbench.units import duration_text


def report_result(recorder: Recorder, options: RunOptions, began: float) -> int:
    """Write the derived files of a run, print its summary, and return the exit status.

    What fails here loses nothing that was measured: it is named, the rest is made, and the status
    says that something is missing.

    Parameters
    ----------
    recorder : Recorder
        Recorder of the run, with its verdict.
    options : RunOptions
        Options of the run.
    began : float
        Monotonic seconds at which this start of the run began.
    """
    directory, record = recorder.directory, recorder.run_record
    lost: list[str] = []
    with _noting("the summary", lost):
        summary = summarise(directory)
        lost += write_derived(summary, directory)
        with _noting("what is printed", lost):
            _print(summary, recorder, options, began)
    if lost:
        again = shlex.join(["pffbench", "report", directory])
        if record.status == "interrupted":
            again = command_to_resume(record, directory)
        text = f"{'; '.join(lost)}; all measurements are kept, try again with: {again}"
        print(one_line(f"pffbench: could not be made: {text}"), file=sys.stderr, flush=True)
    return (record.exit_status or NOT_VALID) if lost else record.exit_status


def write_derived(summary: Summary, directory: str | Path) -> list[str]:
    """Write the files that follow from a summary; return which could not be written, and why."""
    lost: list[str] = []
    for names, write in (
        ("summary.csv, summary.md, samples.csv", write_summary),
        ("results.json", write_results),
    ):
        with _noting(names, lost):
            write(summary, directory)
    return lost


@contextmanager
def _noting(what: str, lost: list[str]) -> Iterator[None]:
    """Note what could not be made, and where in the program that was found."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 -- whatever it is, the measurements are whole
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name} line {place.lineno}"
        lost.append(f"{what} ({type(error).__name__}: {error}, {where})")


def _print(summary: Summary, recorder: Recorder, options: RunOptions, began: float) -> None:
    """Print the results of a run, the answer last."""
    record = recorder.run_record
    if options.json:
        print_json(as_data(summary))
        return
    console = make_console(WIDTH, force_terminal=on_terminal())
    finished = record.status == "finished"
    took = f" ({duration_text(time.monotonic() - began)})" if finished and not options.quiet else ""
    console.print(f"results: {recorder.directory}{took}", soft_wrap=True)
    if options.quiet and finished:
        print_summary(summary, console)
        return
    if record.status == "interrupted":
        told = f"go on with: {command_to_resume(record, recorder.directory)}"
        console.print(told, highlight=False, soft_wrap=True)
    elif record.status == "written":
        console.print(
            f"kept until they are read: {record.scratch}\nread them on other nodes with: "
            f"{command_to_resume(record, recorder.directory, '--stage', 'read')}",
            soft_wrap=True,
        )
    else:
        for line in next_steps(summary, recorder.directory):
            console.print(line, soft_wrap=True)  # a command is copied as one line
    print_summary(
        summary, console, tables=options.tables
    )  # whose answer is the last thing on the screen
