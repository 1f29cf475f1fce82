"""Figures into files, several at once where there is much to draw."""

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

#: Twice as fine as a figure of nine inches is shown on a page of 900 pixels.
_DOTS_PER_INCH = 200
#: With fewer marks in all, other processes are not worth starting.
_MANY_MARKS = 300
#: More processes than this hardly help, and a login node is shared.
_MOST_PROCESSES = 4


@dataclass(frozen=True)
class Drawing:
    """A figure that is still to be drawn.

    Parameters
    ----------
    name : str
        Its name, as of a file.
    figure : callable
        Draws it; another process may be asked to, so it can be pickled.
    marks : int
        How much there is to draw.
    """

    name: str
    figure: Callable[[], Figure]
    marks: int


def save_all(drawings: Sequence[Drawing], directory: Path) -> Iterator[Path]:
    """Draw figures and write each as PNG and SVG, in their order.

    Other processes begin at once, so the caller can do something else before it asks for the
    files.

    Raises
    ------
    OSError
        A file cannot be written; raised when that file is asked for.
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
        What a `Drawing` made.
    path : Path
        Where to, without the suffix.
    links : bool
        Whether the directory that it is in may be a symbolic link.

    Yields
    ------
    Path
        The files.
    """
    with mpl.rc_context(RC):
        _place(figure)
        for suffix, metadata in ((".png", {"Software": None}), (".svg", {"Date": None})):
            file = path.with_name(path.name + suffix)
            with replacing(file, "wb", links=links) as place:
                figure.savefig(place, format=suffix[1:], dpi=_DOTS_PER_INCH, metadata=metadata)
            yield file


def _place(figure: Figure) -> None:
    """Find places for all parts, once: each file would do that anew, by drawing all twice."""
    engine = figure.get_layout_engine()
    if engine is not None:
        figure.set_dpi(_DOTS_PER_INCH)  # texts are as wide as in the PNG
        engine.execute(figure)
        figure.set_layout_engine(None)
