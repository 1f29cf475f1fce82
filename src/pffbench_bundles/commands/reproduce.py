"""`pffbench reproduce`: the run of a bundle again, and a verdict on each of its sentences."""

from __future__ import annotations

import argparse
from functools import partial

from pffbench.commands import run
from pffbench.errors import INCONCLUSIVE, NOT_VALID, VALID, UserError
from pffbench.run.options import RunOptions, add_changes

#: The line of `pffbench --help`.
HELP = "repeat the run of a bundle here, and judge each of its sentences"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("file", metavar="FILE", help="a bundle of one run (example: run.zip)")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument(
        "--with",
        dest="made",
        metavar="RUN",
        help="judge by this run of the experiment instead of making one; pffbench run FILE makes "
        "one too (example: --with results/again)",
    )
    instead.add_argument(
        "--appendix",
        action="store_true",
        help="only print the artifact description of the run, in Markdown (example: --appendix)",
    )
    instead.add_argument(
        "--out",
        metavar="DIR",
        help="new results directory (default: ./pffbench-results/NAME-DATE-PID) "
        "(example: --out results/again)",
    )
    add_changes(parser)


def main(arguments: argparse.Namespace) -> int:
    """Run the experiment of a bundle, on all ranks, and judge. Return the exit status."""
    if arguments.appendix:
        return _describe(arguments.file)
    if arguments.made is not None:
        return _judge(arguments.file, arguments.made)
    words = argparse.ArgumentParser()
    run.add_arguments(words)
    given = vars(words.parse_args([])) | vars(arguments) | {"experiment": arguments.file}
    return run.execute(
        RunOptions.of_arguments(argparse.Namespace(**given)), partial(_judge, arguments.file)
    )


def _describe(file: str) -> int:
    from pffbench.summary.summary import summary_of
    from pffbench_bundles.appendix import appendix
    from pffbench_bundles.bundled import only_run

    with only_run(file) as there:
        for line in appendix(summary_of(there), file):
            print(line)
    return VALID


def _judge(file: str, made: str | None) -> int:
    """Print what a run says of the sentences of a bundle; return the exit status.

    Without a run only the bundle is checked.
    """
    from pffbench.record.run import MeasuredRun
    from pffbench.record.run_json import readable
    from pffbench.text import one_line, without_digests
    from pffbench_bundles.bundled import only_run
    from pffbench_bundles.claims import judged

    with only_run(file) as there:
        if made is None:
            return VALID
        try:
            with readable(made):
                verdicts = judged(there, MeasuredRun.load(made))
        except ValueError as error:
            raise UserError(str(error)) from None
    for verdict in verdicts:
        print(one_line(without_digests(f"{verdict.word.upper()}: {verdict.sentence}")))
        for text in verdict.why:
            print(one_line(without_digests(f"    {text}")))
    words = [verdict.word for verdict in verdicts]
    counts = (f"{words.count(word)} {word}" for word in dict.fromkeys(words))
    print(f"{file}: {', '.join(counts) or 'claims nothing'}", flush=True)
    if "refuted" in words:
        return NOT_VALID
    return VALID if words and set(words) == {"confirmed"} else INCONCLUSIVE
