"""`pffbench scaling`: files derived from a series, in a separate directory."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pffbench.errors import UserError
from pffbench.regular_files import read_regular, write_replacing
from pffbench.text import make_table, one_line
from pffbench_analysis.derived_files import writing
from pffbench_analysis.scaling.crossing import Crossing, crossings
from pffbench_analysis.scaling.points import Over
from pffbench_analysis.scaling.sentences import can_tell, unscaled
from pffbench_analysis.scaling.series import Series, load_series
from pffbench_analysis.scaling.summary_tables import SummaryTable, footnotes, summary_tables
from pffbench_analysis.scaling.tables import (
    scaling_data,
    write_markdown,
    write_points,
    write_times,
)

_NAME = "scaling"
#: Largest size of a `scaling.json`, in bytes.
_LARGEST = 2**28
_TABLES = ("scaling.csv", "scaling.json", "scaling.jsonl", "scaling.md")


@dataclass(frozen=True, eq=False)
class ScalingStudy:
    """A series, and the directory for its files.

    Parameters
    ----------
    series : Series
        The series.
    directory : Path
        The directory, which need not exist.
    earlier : tuple of str
        Names of the files of an earlier call in it.
    """

    series: Series
    directory: Path
    earlier: tuple[str, ...]

    @cached_property
    def crossings(self) -> list[Crossing]:
        """Where another way becomes faster."""
        return crossings(self.series)

    def print(self, console: Console) -> None:
        """Print problems, a table for each total, and where ways cross."""
        series = self.series
        for text in (*series.alarms, *can_tell(series), *unscaled(series)):
            console.print(Text(one_line(text)))
        for found in summary_tables(series):
            console.print()
            console.print(Text(one_line(found.title)), style="bold")
            console.print(_for_terminal(found))
        for text in (*footnotes(series), *map(str, self.crossings), *series.noted):
            console.print(Text(one_line(text)))

    def data(self, files: Sequence[str] = ()) -> dict[str, Any]:
        """Return the content of `scaling.json`."""
        return scaling_data(self.series, self.crossings, files)

    def write(self) -> Iterator[Path]:
        """Write tables, then draw; yield each file.

        `scaling.json` is written first, with the names of all files, so that a call that is killed
        leaves a directory that the next one may write into.

        Raises
        ------
        UserError
            The directory cannot be written to.
        """
        # What draws is needed here only; the verdict is there without it.
        from pffbench_analysis.picture import SUFFIXES, save
        from pffbench_analysis.scaling.figures import draw, figure_names

        drawn = figure_names(self.series)
        figures = [f"{name}{suffix}" for name in drawn for suffix in SUFFIXES]
        with writing(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
            for path in self.directory.iterdir():
                mine = path.name in self.earlier or _begun(path.name) in self.earlier
                if mine and path.name != "scaling.json":
                    path.unlink()
            text = json.dumps(self.data([*_TABLES, *figures]), indent=1, allow_nan=False)
            write_replacing(self.directory / "scaling.json", text + "\n")
            write_points(self.series, self.directory / "scaling.csv")
            write_times(self.series, self.directory / "scaling.jsonl")
            write_markdown(self.series, self.crossings, figures, self.directory / "scaling.md")
            yield from (self.directory / name for name in _TABLES)
            for name, curves in drawn.items():
                yield from save(draw(self.series, curves), self.directory / name)


def scaling(
    runs: Sequence[str | Path],
    out: str | Path | None = None,
    over: Over | None = None,
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
    directory = _directory(series, out)
    earlier = tuple(_earlier(directory, series))
    return ScalingStudy(series, directory, earlier)


def _for_terminal(found: SummaryTable) -> Table:
    table = make_table()
    for number, heading in enumerate(found.headings):
        table.add_column(heading, justify="right" if number else "left", overflow="fold")
    for row in found.rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    return table


def _directory(series: Series, out: str | Path | None) -> Path:
    """Return the output directory, never that of a run."""
    parents = [str(Path(os.path.realpath(run.directory)).parent) for run in series.runs]
    directory = Path(out) if out is not None else Path(os.path.commonpath(parents)) / _NAME
    resolved = Path(os.path.realpath(directory))
    for place in (resolved, *resolved.parents):
        if (place / "run.json").exists():
            raise UserError(f"--out {directory} lies in the run {place}; choose a place beside it")
    if directory.exists() and not directory.is_dir():
        raise UserError(f"--out {directory} is not a directory")
    return directory


def _begun(name: str) -> str:
    """Return which file a killed call left unfinished, by the names of `replacing`; mostly none."""
    found = re.fullmatch(r"\.(.*)\.[0-9a-f]{12}", name)
    return found[1] if found else ""


def _earlier(directory: Path, series: Series) -> list[str]:
    """Return the files of an earlier call, which are replaced.

    Raises
    ------
    UserError
        The directory holds something else, or another experiment.
    """
    there = {path.name for path in directory.iterdir()} if directory.exists() else set()
    if all(_begun(name) in _TABLES for name in there):
        return list(_TABLES)
    try:
        told = json.loads(read_regular(directory / "scaling.json", _LARGEST))
        mine = isinstance(told, dict) and told.get("made_by") == "pffbench scaling"
    except (OSError, ValueError, RecursionError):
        mine = False
    if not mine:
        raise UserError(
            f"{directory} holds files that `pffbench scaling` did not make; give an empty or a new "
            "directory with --out"
        )
    name = series.record.name
    if told.get("experiment") != name:
        raise UserError(
            f"{directory} holds the scaling of experiment {told.get('experiment')!r}, not of "
            f"{name!r}; give another directory with --out"
        )
    return [str(n) for n in told.get("files", []) if Path(str(n)).name == str(n)]
