"""Output of figures to files, in parallel processes where there is much to draw."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import chain
from multiprocessing import get_context
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from pffbench.regular_files import replacing
from pffbench_analysis.style import RC

#: Twice the resolution of a figure of nine inches on a page of 900 pixels.
_DOTS_PER_INCH = 200
#: Total number of marks below which no other processes are started.
_MANY_MARKS = 300
#: More processes than this hardly help, and a login node is shared.
_MOST_PROCESSES = 4


@dataclass(frozen=True)
class Drawing:
    """A figure to be drawn.

    Parameters
    ----------
    name : str
        File name without suffix.
    figure : callable
        Draws the figure; picklable, since another process may call it.
    marks : int
        Number of marks to draw.
    """

    name: str
    figure: Callable[[], Figure]
    marks: int


def save_all(drawings: Sequence[Drawing], directory: Path) -> Iterator[Path]:
    """Draw figures and write each as PNG and SVG, in their order.

    Other processes start at once, so the caller can do other work before it requests the files.

    Raises
    ------
    OSError
        A file cannot be written; raised when that file is requested.
    """
    marks = sum(drawing.marks for drawing in drawings)
    processes = min(len(os.sched_getaffinity(0)), _MOST_PROCESSES, len(drawings))
    if marks < _MANY_MARKS or processes < 2:
        return chain.from_iterable(_draw_and_save(drawing, directory) for drawing in drawings)
    pool = ProcessPoolExecutor(processes, mp_context=get_context("fork"))
    return _collected(pool, pool.map(_draw_and_save, drawings, [directory] * len(drawings)))


def _collected(pool: ProcessPoolExecutor, saved: Iterator[list[Path]]) -> Iterator[Path]:
    with pool:
        yield from chain.from_iterable(saved)


def _draw_and_save(drawing: Drawing, directory: Path) -> list[Path]:
    return list(save(drawing.figure(), directory / drawing.name, links=False))


def save(figure: Figure, path: Path, *, links: bool = True) -> Iterator[Path]:
    """Write a figure as PNG and SVG; the same figure gives the same bytes.

    Parameters
    ----------
    figure : Figure
        Result of a `Drawing`.
    path : Path
        Output path without the suffix.
    links : bool
        Whether its directory may be a symbolic link.

    Yields
    ------
    Path
        Each file that was written.
    """
    with mpl.rc_context(RC):
        _place(figure)
        for suffix, metadata in ((".png", {"Software": None}), (".svg", {"Date": None})):
            file = path.with_name(path.name + suffix)
            with replacing(file, "wb", links=links) as place:
                figure.savefig(place, format=suffix[1:], dpi=_DOTS_PER_INCH, metadata=metadata)
            yield file


def _place(figure: Figure) -> None:
    """Lay out the figure once: otherwise each file repeats the layout by drawing twice."""
    engine = figure.get_layout_engine()
    if engine is not None:
        figure.set_dpi(_DOTS_PER_INCH)  # texts are as wide as in the PNG
        engine.execute(figure)
        figure.set_layout_engine(None)
