"""The runs of a bundle as directories, while they are read, and the experiment of one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from pffbench.errors import UserError
from pffbench.experiment.load import parse
from pffbench.record.run import MeasuredRun
from pffbench_bundles.bundle_file import EXPERIMENT, open_bundle
from pffbench_bundles.rules import examine


@contextmanager
def directories_of(path: str) -> Iterator[dict[str, Path]]:
    """Unpack the runs of a bundle into temporary directories; a directory is a run itself.

    Raises
    ------
    UserError
        It cannot be read, or is no bundle.
    """
    if Path(path).is_dir():
        yield {path: Path(path)}
        return
    with open_bundle(path) as bundle, TemporaryDirectory(prefix="pffbench-") as place:
        directories = {run: Path(place, run) for run in bundle.runs}
        for run, directory in directories.items():
            directory.mkdir()
            bundle.unpack(run, directory)
        yield directories


@contextmanager
def only_run(path: str) -> Iterator[MeasuredRun]:
    """Return the run of a bundle of one that breaks no rule, or of a results directory.

    Raises
    ------
    UserError
        It cannot be read, holds several runs, or breaks a rule.
    """
    with directories_of(path) as directories:
        if len(directories) > 1:
            raise UserError(f"{path}: holds {len(directories)} runs, and one was expected")
        (directory,) = directories.values()
        if broken := [str(found.rule.number) for found in examine(directory) if found.broken]:
            raise UserError(
                f"{path}: breaks rule {', '.join(broken)} (pffbench check {path} says where)"
            )
        yield MeasuredRun.load(directory)


def experiment_of(path: str) -> str:
    """Return the text of the experiment that a bundle of one run has.

    Raises
    ------
    UserError
        It cannot be read, is no bundle, or one of several runs; or its experiment has commands.
    """
    with open_bundle(path) as bundle:
        run, *others = bundle.runs
        if others:
            raise UserError(f"{path}: holds {len(others) + 1} runs, and one was expected")
        text = b"".join(bundle.chunks(f"{run}/{EXPERIMENT}")).decode()
    data = parse(text, path)
    if isinstance(data, dict) and data.get("environments"):
        raise UserError(
            f"{path}: environments: commands of a bundle are not started; unpack it, read its "
            f"{EXPERIMENT} and run that"
        )
    return text
