"""`pffbench scaling`: files derived from a series, in a separate directory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pffbench.errors import UserError
from pffbench.regular_files import read_regular
from pffbench_analysis.derived_files import writing
from pffbench_analysis.picture import save
from pffbench_analysis.scaling.figures import figures
from pffbench_analysis.scaling.points import Over
from pffbench_analysis.scaling.sentences import summary_lines
from pffbench_analysis.scaling.series import Series, load_series
from pffbench_analysis.scaling.study import study
from pffbench_analysis.scaling.tables import write_json, write_markdown, write_points

_NAME = "scaling"
#: Largest size of a `scaling.json`, in bytes.
_LARGEST = 2**28
_TABLES = ("scaling.csv", "scaling.json", "scaling.md")


@dataclass(frozen=True)
class Written:
    """Result of `scaling`.

    Parameters
    ----------
    lines : list of str
        The verdict.
    files : list of Path
        Files written.
    """

    lines: list[str]
    files: list[Path]


def scaling(
    runs: Sequence[str | Path],
    out: str | Path | None = None,
    over: Over | None = None,
    predict: int | None = None,
) -> Written:
    """Read a series of runs and write tables, fits and figures.

    Parameters
    ----------
    runs : sequence of str or Path
        Results directories.
    out : str or Path, optional
        Directory for the files; by default `scaling` next to the runs.
    over : {"ranks", "nodes"}, optional
        See `load_series`.
    predict : int, optional
        See `study`.

    Raises
    ------
    UserError
        The runs are not a series, or the directory may not be written to. Nothing is written.
    """
    series = load_series(runs, over)
    directory = _directory(series, out)
    earlier = _earlier(directory, series)
    fitted = study(series, predict)
    drawn = dict(figures(series, fitted))
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
        for name in earlier:
            (directory / name).unlink(missing_ok=True)
        made = [file for name, figure in drawn.items() for file in save(figure, directory / name)]
        names = [file.name for file in made]
        write_points(fitted, directory / "scaling.csv")
        write_markdown(series, fitted, names, directory / "scaling.md")
        write_json(series, fitted, [*_TABLES, *names], directory / "scaling.json")
    return Written(summary_lines(series, fitted), [*(directory / n for n in _TABLES), *made])


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


def _earlier(directory: Path, series: Series) -> Iterator[str]:
    """Return the files of an earlier call, which are replaced.

    Raises
    ------
    UserError
        The directory holds something else, or another experiment.
    """
    if not directory.exists() or not any(directory.iterdir()):
        return iter(())
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
    name = series.runs[-1].record.name
    if told.get("experiment") != name:
        raise UserError(
            f"{directory} holds the scaling of experiment {told.get('experiment')!r}, not of "
            f"{name!r}; give another directory with --out"
        )
    return (str(n) for n in told.get("files", []) if Path(str(n)).name == str(n))
