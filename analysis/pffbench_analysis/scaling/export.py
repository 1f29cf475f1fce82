"""`pffbench scaling`: the answer, and files in a directory of their own."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pffbench.errors import UserError
from pffbench.regular_files import read_regular, write_replacing
from pffbench.results.answer import WIDTH, wrap
from pffbench.text import escape_markdown, one_line
from pffbench_analysis.derived_files import write_csv, writing
from pffbench_analysis.picture import save
from pffbench_analysis.scaling.belonging import Over
from pffbench_analysis.scaling.series import Series, load_series
from pffbench_analysis.scaling.tables import (
    data,
    figure,
    notes,
    rows_of,
    sentences,
    tables,
    times_of,
)

_NAME = "scaling"
#: Largest size of a `scaling.json`, in bytes.
_LARGEST = 2**28
#: The first one says whose directory it is.
FILES = ("scaling.json", "scaling.csv", "scaling.jsonl", "scaling.md", "scaling.svg")


class ScalingStudy(NamedTuple):
    """A series, and the directory for its files, which need not exist."""

    series: Series
    directory: Path

    def lines(self) -> Iterator[str]:
        """Yield the answer: sentences, problems, then a table for each total."""
        series = self.series
        for text in (*sentences(series), *series.alarms):
            yield from wrap(text)
        for table in tables(series):
            yield from ("", *map(one_line, table.lines(WIDTH)))
        yield ""
        for text in notes(series):
            yield from wrap(text)

    def write(self) -> Iterator[Path]:
        """Write tables and the figure, and yield each file; those of an earlier call are replaced.

        Raises
        ------
        UserError
            The directory cannot be written to.
        """
        series, names = self.series, FILES if self.series.kinds else FILES[:-1]
        with writing(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
            paths = [self.directory / name for name in names]
            text = json.dumps(data(series, names), indent=1, allow_nan=False)
            write_replacing(paths[0], f"{text}\n")
            write_csv(paths[1], rows_of(series))
            write_replacing(paths[2], "".join(f"{line}\n" for line in times_of(series)))
            write_replacing(paths[3], "".join(f"{line}\n" for line in _markdown(series)))
            if series.kinds:
                save(figure(series), paths[4])
        yield from paths


def scaling(
    runs: Sequence[str | Path], out: str | Path | None = None, over: Over | None = None
) -> ScalingStudy:
    """Read a series of runs; `ScalingStudy.write` writes the files.

    Parameters
    ----------
    runs : sequence of str or Path
        Results directories.
    out : str or Path, optional
        Directory for the files; by default `scaling` next to the runs.
    over : {"ranks", "nodes"}, optional
        See `load_series`.

    Raises
    ------
    UserError
        The runs are not a series, or the directory may not be written to.
    """
    series = load_series(runs, over)
    parents = [str(Path(os.path.realpath(run.directory)).parent) for run in series.runs]
    directory = Path(out) if out is not None else Path(os.path.commonpath(parents)) / _NAME
    _check(directory, series)
    return ScalingStudy(series, directory)


def _check(directory: Path, series: Series) -> None:
    """Refuse a directory of a run, with other files, or of another experiment."""
    resolved = Path(os.path.realpath(directory))
    for place in (resolved, *resolved.parents):
        if (place / "run.json").exists():
            raise UserError(f"--out {directory} lies in the run {place}; choose a place beside it")
    if directory.exists() and not directory.is_dir():
        raise UserError(f"--out {directory} is not a directory")
    # A call that was killed early leaves a file with a temporary name, and nothing else.
    begun = f".{FILES[0]}."
    if not directory.exists() or all(p.name.startswith(begun) for p in directory.iterdir()):
        return
    try:
        told = json.loads(read_regular(directory / FILES[0], _LARGEST))
        name = told["experiment"] if told["made_by"] == "pffbench scaling" else None
    except (OSError, ValueError, RecursionError, TypeError, KeyError):
        name = None
    if name is None:
        raise UserError(
            f"{directory} holds files that `pffbench scaling` did not make; give an empty or a new "
            "directory with --out"
        )
    if name != series.record.name:
        raise UserError(
            f"{directory} holds the scaling of experiment {name!r}, not of "
            f"{series.record.name!r}; give another directory with --out"
        )


def _markdown(series: Series) -> Iterator[str]:
    yield f"# {escape_markdown(series.record.name)}: scaling over {series.over}"
    if series.record.question:
        yield from ("", escape_markdown(series.record.question))
    yield ""
    yield from (f"- {escape_markdown(text)}" for text in sentences(series))
    yield from (f"- **{escape_markdown(text)}**" for text in series.alarms)
    for table in tables(series):
        yield from ("", *table.markdown())
    yield ""
    yield from (f"- {escape_markdown(text)}" for text in notes(series))
    if series.kinds:
        yield from ("", f"![Rate and efficiency]({FILES[-1]})")
