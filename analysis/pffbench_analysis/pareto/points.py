"""Cases as points: compression ratio and speed of writing and reading."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import Any, Literal

from pffbench.summary.statistics import Spread
from pffbench.summary.summary import CaseSummary, Summary, compression_ratio
from pffbench_analysis.charts import differences
from pffbench_analysis.recommend.candidates import (
    READING,
    WRITING,
    Candidate,
    Purpose,
    Work,
    works,
)
from pffbench_analysis.recommend.judge import Recommendation, judge
from pffbench_analysis.style import plain

Direction = Literal["write", "read"]
DIRECTIONS: tuple[Direction, ...] = ("write", "read")
#: Libraries divide the same work differently between phases, so the totals are compared.
TOTAL: Mapping[Direction, str] = {"write": "write_total", "read": "read_total"}
#: Digits of a ratio that are compared: those of the tables.
_DIGITS = 3


@dataclass(frozen=True)
class Speed:
    """Speed of a case in one direction.

    Parameters
    ----------
    nbytes : int
        Bytes of array data that all ranks move together.
    stored : float or None
        Bytes in the files; None where only a part is read, whose chunks were not counted.
    seconds : Spread
        Job time over the repetitions, from creating until durable or from opening to closing.
    by_block : dict of int to float
        The same seconds for each repetition.
    below_resolution : bool
        Whether the overhead of the harness affects the time.
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
            Count bytes as stored in the files instead of those of the arrays.

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
        Parameters and numbers of the case.
    name : str
        Distinguishing name within its kind of data.
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
        """The codec as stored in the files, such as ``blosc-zstd 3 byte``."""
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
        """Return the speed in a direction; None if not measured."""
        return self.write if direction == "write" else self.read


BOTH = Purpose("writing and reading once", {"write_total": 1.0, "read_total": 1.0})


@dataclass(frozen=True)
class _TimesBytes(Candidate):
    """A way whose seconds are multiplied by its stored bytes."""

    stored_bytes: float = 1.0

    def seconds(self, purpose: Purpose) -> dict[int, float]:
        return {b: s * self.stored_bytes for b, s in super().seconds(purpose).items()}


@dataclass(frozen=True, eq=False)
class DataKind:
    """The same data, compressed in several ways by one run.

    Parameters
    ----------
    name : str
        The source or the user's file, and further distinguishing parameters.
    work : Work
        The work common to all points.
    ranks : int
        Number of ranks.
    points : tuple of CompressionPoint
        The ways, by descending ratio.
    without : tuple of str
        Ways whose stored bytes were not counted.
    """

    name: str
    work: Work
    ranks: int
    points: tuple[CompressionPoint, ...]
    without: tuple[str, ...]

    @cached_property
    def answers(self) -> Mapping[Direction | Literal["balance"], Recommendation]:
        """The answers for writing, reading and the balance, whose pairs are one family."""
        ways = [point.candidate for point in self.points]
        held = [_TimesBytes(**vars(p.candidate), stored_bytes=p.stored) for p in self.points]
        written, read, balance = judge(
            [(ways, WRITING), (ways, READING), (held, BOTH)], self.work.design
        )
        return {"write": written, "read": read, "balance": balance}


def kinds_of(summary: Summary) -> list[DataKind]:
    """Return the kinds of data of a run that were compressed by more than one codec.

    No compression at all counts as a codec. Cases of one kind do the same work:
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
    """Name a codec as stored in the files, or as requested."""
    stored = candidate.stored
    if stored is not None and stored.get("codec"):
        return str(stored["codec"])
    return str(candidate.parameters.get("codec") or "none")


def name_of(candidate: Candidate, work: Work) -> str:
    """Name a way by backend, codec and the parameters that distinguish it within its backend."""
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


#: Parameters named where ways of different backends differ; a transfer belongs to its backend.
_ALWAYS = ("layout", "settings", "chunks", "shards")


def family(codec: str) -> str:
    """Return a codec's name without its level and shuffle."""
    return codec.split()[0] if codec else "none"


def mark_of(family_name: str, marks: int) -> int:
    """Return the index of the mark of a codec, the same in every figure of every run."""
    if family_name in _FAMILIES:
        return _FAMILIES.index(family_name) % marks
    return sum(family_name.encode()) % marks


#: Codecs in the order of their marks.
_FAMILIES = (
    "none", "gzip", "zstd", "blosc-zstd", "blosc-lz4", "szip", "lz4", "blosc-lz4hc", "blosc-zlib",
    "blosc-blosclz",
)  # fmt: skip


def _points(work: Work) -> Sequence[CompressionPoint]:
    found = []
    for candidate in work.candidates:
        case = candidate.case
        ratio = compression_ratio(case)
        if ratio is not None and 0 < ratio < math.inf:  # counts are not trusted
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


#: The source of the data comes first; other parameters are named where runs have several.
_DATA = ("source", "file", "variable")


def _name(parameters: Mapping[str, Any], differs: Mapping[str, str]) -> str:
    source = str(parameters.get("source"))
    if source == "file":
        variable = parameters.get("variable")
        source = PurePath(str(parameters.get("file"))).name + (f" {variable}" if variable else "")
    more = (f"{k} {v}" for k, v in differs.items() if k not in _DATA)
    return plain(", ".join([source, *more]))
