"""The result of a finished run on rank 0: derived files, printed verdict, exit status."""

from __future__ import annotations

import os
import time
from pathlib import Path

from pffbench.record.progress import on_terminal
from pffbench.run.next_steps import next_steps
from pffbench.run.options import RunOptions
from pffbench.run.output import make_console, print_json
from pffbench.run.recorder import Recorder
from pffbench.summary.answer import answer_of
from pffbench.summary.conclusions import verdict_lines
from pffbench.summary.export import print_answer, print_summary, write_fom, write_summary
from pffbench.summary.results import as_data, write_results
from pffbench.summary.summary import summarise
from pffbench.text import one_line


def report_result(recorder: Recorder, options: RunOptions, began: float) -> int:
    """Write the derived files of a run, print its summary, and return the exit status.

    Parameters
    ----------
    recorder : Recorder
        Recorder of the run, with its verdict.
    options : RunOptions
        Options of the run.
    began : float
        Monotonic seconds at which this start of the run began.
    """
    summary = summarise(recorder.directory)
    write_summary(summary, recorder.directory)
    fom = write_fom(summary, recorder.directory)
    write_results(summary, recorder.directory)
    record = recorder.run_record
    if options.json:
        print_json(as_data(summary))
        return recorder.exit_status
    # Wide enough for a table even if the width is unknown, such as in a log.
    console = make_console(120, force_terminal=on_terminal(os.environ))
    tables = True if options.tables else None
    if options.fom:
        print_summary(summary, console, tables=tables)
        print(fom.read_text(encoding="utf-8"), end="", flush=True)
    console.print(f"results: {recorder.directory}", soft_wrap=options.quiet)
    if options.quiet and record.status == "finished":
        print_answer(summary, console)
        for text in [] if answer_of(summary) else verdict_lines(summary):
            console.print(one_line(text))
        return recorder.exit_status
    if record.status == "interrupted":
        told = f"go on with: pffbench run --resume {recorder.directory}"
        if record.environments:  # whose commands a record alone may not start
            is_file = Path(record.experiment_file).is_file()
            told += f" {record.experiment_file}" if is_file else " --trust"
        console.print(told, highlight=False, soft_wrap=True)
    elif record.status == "written":
        console.print(
            f"kept until they are read: {record.scratch}\nread them on other nodes with: "
            f"pffbench run --resume {recorder.directory} --stage read",
        )
    else:
        for line in next_steps(summary, recorder.directory, time.monotonic() - began):
            console.print(line, soft_wrap=True)  # a command is copied as one line
    if not options.fom:  # the answer is the last thing on the screen
        print_summary(summary, console, tables=tables)
    return recorder.exit_status
