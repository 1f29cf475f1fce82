"""`pffbench bundle`: results directories as one file that others can check and repeat."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from tempfile import TemporaryDirectory

from pffbench import __version__
from pffbench.errors import UserError

#: The line of `pffbench --help`.
HELP = "pack results directories into one file that others can check and repeat"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="results directories (example: results/first)",
    )
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE.zip",
        help="new file (example: -o run.zip)",
    )
    parser.add_argument(
        "--mask",
        action="store_true",
        help="mask the names of directories and hosts, and variables that list hosts; free text, "
        "such as the question, stays (example: --mask)",
    )


def main(arguments: argparse.Namespace) -> int:
    """Write a bundle. Return the exit status."""
    from pffbench_bundles.bundle_file import Manifest, open_bundle, write_bundle

    output = Path(arguments.output)
    if output.suffix != ".zip" or output.exists():
        why = "is there already" if output.exists() else "does not end in .zip"
        raise UserError(f"-o {output}: {why}; name a new file, such as run.zip")
    with TemporaryDirectory(prefix="pffbench-") as place:
        runs: dict[str, Path] = {}
        for run in map(Path, arguments.runs):
            name, copy = _prepared(run, Path(place, str(len(runs))), mask=arguments.mask)
            if name in runs:
                raise UserError(f"{run}: the run {name} is given twice")
            runs[name] = copy
        write_bundle(output, runs, Manifest(__version__, arguments.mask, {}))
    try:
        with open_bundle(output):
            print(output)
    except UserError:
        output.unlink()
        raise
    return 0


def _prepared(run: Path, copy: Path, *, mask: bool) -> tuple[str, Path]:
    """Copy the files of a run, add those that follow from them, and return the name of the run."""
    from pffbench.record.ranks_reader import NAME as RANKS
    from pffbench.record.run_json import RunRecord
    from pffbench.summary.results import write_results
    from pffbench.summary.summary import summarise
    from pffbench_bundles.bundle_file import EXPERIMENT
    from pffbench_bundles.masking import masked_copy, plain_copy

    try:
        if (status := RunRecord.load(run).status) in ("running", "written"):
            raise UserError(f"{run}: the run is not finished ({status}): its rows may change")
        (masked_copy if mask else plain_copy)(run, copy)
        summary = summarise(copy)
    except ValueError as error:
        raise UserError(str(error).replace(str(copy), str(run))) from None
    except OSError as error:
        raise UserError(f"{error.filename}: cannot be read: {error.strerror}") from None
    if not (copy / RANKS).exists():
        raise UserError(f"{run}: it holds no {RANKS}, with the seconds of each rank")
    write_results(summary, copy)
    record = summary.record
    # YAML, as which it is read again, knows no pairs of surrogates.
    experiment = json.dumps(record.experiment, indent=1, ensure_ascii=False)
    (copy / EXPERIMENT).write_text(experiment, encoding="utf-8")
    return record.run_id, copy
