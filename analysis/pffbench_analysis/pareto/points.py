"""Cases as points: how much smaller they make data, and how fast they write and read them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal

from pffbench.summary.statistics import Spread
from pffbench.summary.summary import CaseSummary, Summary, compression_ratio
from pffbench_analysis.charts import differences
from pffbench_analysis.recommend.candidates import Candidate, Work, works
from pffbench_analysis.style import plain

Direction = Literal["write", "read"]
DIRECTIONS: tuple[Direction, ...] = ("write", "read")
#: Libraries divide the same work differently between phases, so the totals are compared.
TOTAL: Mapping[Direction, str] = {"write": "write_total", "read": "read_total"}
#: Digits of a ratio that count: those that tables show.
_DIGITS = 3


@dataclass(frozen=True)
class Speed:
    """How fast a case is in one direction.

    Parameters
    ----------
    nbytes : int
        Bytes of array data that all ranks move together.
    stored : float or None
        What they take in the files; None where only a part is read, whose chunks nobody counted.
    seconds : Spread
        Job time over the repetitions, from creating until durable or from opening to closing.
    by_block : dict of int to float
        The same seconds for each repetition.
    below_resolution : bool
        Whether the harness itself shows in the time.
    """

    nbytes: int
    stored: float | None
    seconds: Spread
    by_block: Mapping[int, float]
    below_resolution: bool

    def rate(self, *, stored: bool = False) -> tuple[float, float, float] | None:
        """Return bytes per second of all ranks together: median and 95 % interval.

        Parameters
        ----------
        stored : bool
            Count bytes as they are in the files instead of those of the arrays.

        Returns
        -------
        tuple of float or None
            NaN bounds for fewer than five repetitions; None where stored bytes are not known.
        """
        amount = self.stored if stored else float(self.nbytes)
        s = self.seconds
        return None if amount is None else (amount / s.median, amount / s.high, amount / s.low)


@dataclass(frozen=True, eq=False)
class CompressionPoint:
    """A case whose compression was counted.

    Parameters
    ----------
    candidate : Candidate
        What it is.
    name : str
        What sets it apart from the others of its kind of data.
    ratio : float
        Bytes of the arrays over those of their chunks in the files.
    write, read : Speed or None
        None where it was not measured.
    """

    candidate: Candidate
    name: str
    ratio: float
    write: Speed | None
    read: Speed | None

    @property
    def backend(self) -> str:
        """Name of the backend."""
        return self.candidate.backend

    @property
    def codec(self) -> str:
        """The codec as it is in the files, such as ``blosc-zstd 3 byte``."""
        return codec_of(self.candidate)

    @property
    def shown_ratio(self) -> float:
        """The ratio with the three digits that are compared."""
        return float(f"{self.ratio:.{_DIGITS}g}")

    @property
    def stored(self) -> float:
        """Bytes of the chunks in the files."""
        return self.candidate.case.nbytes / self.ratio

    def speed(self, direction: Direction) -> Speed | None:
        """Return how fast it is in a direction; None where it was not measured."""
        return self.write if direction == "write" else self.read


@dataclass(frozen=True, eq=False)
class DataKind:
    """The same data, compressed in several ways by one run.

    Parameters
    ----------
    name : str
        What the data are: the source, or the user's file, and what else tells it apart in the run.
    work : Work
        The work that all points do.
    ranks : int
        How many ranks did it.
    points : tuple of Point
        The ways, those that compress best first.
    without : tuple of str
        Ways whose stored bytes were not counted.
    """

    name: str
    work: Work
    ranks: int
    points: tuple[CompressionPoint, ...]
    without: tuple[str, ...]


def kinds_of(summary: Summary) -> list[DataKind]:
    """Return the kinds of data of a run that were compressed by more than one codec.

    No compression at all counts as a codec. Cases are of one kind where they do the same work:
    equal data, cut alike, as durable, read from the same state of the cache.
    """
    found = []
    all_works = works(summary)
    told = differences({str(number): work.parameters for number, work in enumerate(all_works)})
    for number, work in enumerate(all_works):
        points = sorted(_points(work), key=lambda p: (-p.ratio, p.name))
        if len({point.codec for point in points}) < 2:
            continue
        counted = {id(point.candidate) for point in points}
        without = tuple(name_of(c, work) for c in work.candidates if id(c) not in counted)
        name = _name(work.parameters, told.get(str(number), {}))
        found.append(DataKind(name, work, summary.record.ranks, tuple(points), without))
    return found


def codec_of(candidate: Candidate) -> str:
    """Name a codec as it is in the files, or as it was asked for."""
    stored = candidate.stored
    if stored is not None and stored.get("codec"):
        return str(stored["codec"])
    return str(candidate.parameters.get("codec") or "none")


def name_of(candidate: Candidate, work: Work) -> str:
    """Name a way by backend and codec, and by what sets it apart from others of its backend."""
    words = candidate.words
    same = [c.words for c in work.candidates if c.backend == candidate.backend]
    everywhere = [c.words for c in work.candidates]
    telling = [
        word
        for key, word in words.items()
        if key not in ("backend", "codec")
        and any(w.get(key, "") != word for w in (everywhere if key in _ALWAYS else same))
    ]
    codec = codec_of(candidate)
    told = "no compression" if codec == "none" else codec
    return plain(", ".join([f"{candidate.backend} {told}", *filter(None, telling)]))


#: In these, ways of different backends may not differ without a word; a transfer is its backend's.
_ALWAYS = ("layout", "settings", "chunks", "shards")


def family(codec: str) -> str:
    """Return a codec's name without its level and shuffle."""
    return codec.split()[0] if codec else "none"


def mark_of(family_name: str, marks: int) -> int:
    """Return which of so many marks stands for a codec, the same in every figure of every run."""
    if family_name in _FAMILIES:
        return _FAMILIES.index(family_name) % marks
    return sum(family_name.encode()) % marks


#: In the order of their marks.
_FAMILIES = (
    "none", "gzip", "zstd", "blosc-zstd", "blosc-lz4", "szip", "lz4", "blosc-lz4hc", "blosc-zlib",
    "blosc-blosclz",
)  # fmt: skip


def _points(work: Work) -> Sequence[CompressionPoint]:
    found = []
    for candidate in work.candidates:
        case = candidate.case
        ratio = compression_ratio(case)
        if ratio is not None and 0 < ratio < math.inf:  # counts can be anybody's
            write, read = (_speed(case, direction, ratio) for direction in DIRECTIONS)
            found.append(CompressionPoint(candidate, name_of(candidate, work), ratio, write, read))
    return found


def _speed(case: CaseSummary, direction: Direction, ratio: float) -> Speed | None:
    phase = case.phases.get(TOTAL[direction])
    nbytes = case.nbytes if direction == "write" else case.read_bytes
    if phase is None or not nbytes or min(phase.by_block.values()) <= 0:
        return None
    return Speed(
        nbytes,
        nbytes / ratio if nbytes == case.nbytes else None,
        phase.seconds,
        phase.by_block,
        any(warning.code == "below_resolution" for warning in phase.warnings),
    )


#: Where data come from is told first; what is not of the data is told where runs have several.
_DATA = ("source", "file", "variable")


def _name(parameters: Mapping[str, Any], differs: Mapping[str, str]) -> str:
    source = str(parameters.get("source"))
    if source == "file":
        variable = parameters.get("variable")
        source = PurePath(str(parameters.get("file"))).name + (f" {variable}" if variable else "")
    more = (f"{k} {v}" for k, v in differs.items() if k not in _DATA)
    return plain(", ".join([source, *more]))
