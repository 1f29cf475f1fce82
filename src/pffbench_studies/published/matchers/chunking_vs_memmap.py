"""Study 3: slices of a volume, memory-mapped and in HDF5, redone by the workload `slices`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pffbench.results.summary import AMPLIFICATIONS, CaseSummary, Summary, amplification
from pffbench.text import value_text
from pffbench_studies.published.counterparts import Match, apart, cases_like, in_words
from pffbench_studies.published.matchers import Matcher
from pffbench_studies.published.reasons import Fields, listed, when
from pffbench_studies.published.values import PublishedValue, indexed

FORMATS = {"hdf5": "HDF5", "memmap": "memmap"}
#: The study's name of a slice, by the axis it is normal to.
SLICES = {0: "x", 2: "z"}
_ELAPSED = "elapsed time of the process"
#: The study timed the whole process; the nearest phase of pffbench.
_PHASE = "read_total"
_SHAPE = (621, 4991, 2600)
#: Largest ratio of longest to shortest side for chunks that prefer no axis; it is 7.8 for those
#: that h5py guesses for the published volume.
_NO_AXIS = 8
#: Way of the study: files, settings and cache.
_NEAREST = ("one file per rank", "library defaults", "dropped")


class ChunkingVsMemmap(Matcher):
    """Matcher of cases by format, axis of the slice, element type and stride of the worst axis."""

    def matches(self, summary: Summary, values: Sequence[PublishedValue]) -> list[Match]:
        """Return the numbers with a counterpart in the run.

        A case counts when it reads one first slice across the first or last axis of a uint8 volume
        that is 621 long along its first axis, whatever its size, from a cold cache: through a map
        of a file in Fortran order, or from HDF5 in chunks that prefer no axis. A smaller volume
        is compared with the published one, since the stride, and so the bytes touched for each
        byte wanted, is the same.
        """
        elapsed = (v for v in values if v.quantity == _ELAPSED)
        index = indexed(elapsed, lambda v: (v.parameters["format"], v.parameters["slice"]))
        cases = cases_like(
            summary, workload="slices", backend=tuple(FORMATS), position="first", count=1,
            dtype="uint8", codec=("auto", "none"), axis=tuple(SLICES), cache="dropped",
        )  # fmt: skip
        return [
            _match(index[_name(c)], c, summary)
            for c in cases
            if c.parameters["shape"][0] == _SHAPE[0] and _stored_alike(c) and _PHASE in c.phases
        ]

    def facts(self, summary: Summary, matches: Sequence[Match]) -> Mapping[str, Sequence[Fields]]:
        """Return the bytes that the run moved, the volume and its storage."""
        cases = [match.case for match in matches]
        shapes = sorted({value_text(c.parameters["shape"]) for c in cases})
        orders = sorted({c.options["destination"] for c in cases if "destination" in c.options})
        stored = (c.entry.stored_as for c in cases if c.backend == "hdf5")
        moved = (_moved(c, summary) for c in cases)
        nothing = "not counted (counters: true counts)"
        return {
            "moved": when(True, moved=listed(filter(None, moved), nothing)),
            "size": when(shapes != [value_text(_SHAPE)], shapes=", ".join(shapes)),
            "destination": when(orders and orders != ["C"], orders=" and ".join(orders)),
            "chunks": when(True, stored=listed(stored, "no HDF5 case")),
        }


MATCHER = ChunkingVsMemmap()


def _name(c: CaseSummary) -> tuple[str, str]:
    """Return the study's names of the format and of the slice."""
    return FORMATS[c.backend], SLICES[c.parameters["axis"]]


def _match(value: PublishedValue, c: CaseSummary, summary: Summary) -> Match:
    p = c.parameters
    told = [*in_words(c, "files", "settings"), p["cache"]]
    if p["transfer"] == "collective":
        told.append("collective reads")
    return Match(
        value,
        c,
        c.phases[_PHASE],
        factor=1.0,
        subject=f"volume of {value_text(p['shape'])}",
        operation="one slice",
        variant=", ".join(told),
        alternative=" ".join(filter(None, [*_name(c), apart(c, summary)])),
        nearest=tuple(told) == _NEAREST,
        known_as=" ".join(_name(c)),
    )


def _stored_alike(c: CaseSummary) -> bool:
    """Whether a map is in Fortran order, or chunks prefer no axis."""
    if c.backend == "memmap":
        return bool(c.options.get("order") == "F")
    chunks = c.parameters["chunks"]
    return isinstance(chunks, list) and bool(max(chunks) <= _NO_AXIS * min(chunks))


def _moved(c: CaseSummary, summary: Summary) -> str:
    """Return the bytes moved for each byte wanted; empty where they were not counted."""
    times = {
        heading.lstrip("×"): amplification(c, counter)
        for heading, counter in AMPLIFICATIONS.items()
    }
    if times["touched"] is None:
        return ""
    numbers = ", ".join(f"{k} {v:.3g}" for k, v in times.items() if v is not None)
    words = (" ".join(_name(c)), *in_words(c, "files"), c.cache, apart(c, summary))
    return f"{', '.join(filter(None, words))}: {numbers}"
