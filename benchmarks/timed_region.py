"""What Python does between the two stamps of a phase: a profile of the timed regions.

    python benchmarks/timed_region.py [--place /dev/shm]

Defines, writes, opens and reads 2 048 datasets of 128 floats with each backend and watches the
phases from behind the first stamp to before the second, in two passes. The first counts the
functions of pffbench that are entered and the built-in functions that they call, the second
what memory Python and the libraries keep and take through Python, and how often the collector ran.
The figures are for each call of the library, so a loop that looked something up or formatted a
name would show as a function or as bytes more.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import tracemalloc
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import small_datasets
from jobs import python, run_ranks
from repetition import Repetitions, scratch_below, the_case
from rows import Mark, Ratio, Row, not_measured, table
from script import Given

import pffbench
from pffbench.errors import UserError
from pffbench.parallel.clock import PhaseClock

_OURS = str(Path(pffbench.__file__).parent)
_WATCHED = ("define", "write", "open_array", "read")
HEADINGS = (
    "backend", "phase", "functions of pffbench", "built-in functions from them", "bytes kept",
    "most bytes taken", "collections",
)  # fmt: skip
#: The function that calls the library, where a bound method of the library would not do.
_MARK = Mark("at most", 1)


class Calls:
    """Counts what is called, by means of `sys.setprofile`."""

    def __init__(self) -> None:
        self.entered: Counter[str] = Counter()
        self.built_in: Counter[str] = Counter()

    def begin(self) -> None:
        """Begin to count."""
        sys.setprofile(self._see)

    def end(self) -> None:
        """Count no more."""
        sys.setprofile(None)

    def _see(self, frame: FrameType, event: str, argument: Any) -> None:
        if not frame.f_code.co_filename.startswith(_OURS) or _is_clock(frame):
            return
        if event == "call":
            self.entered[frame.f_code.co_name] += 1
        elif event == "c_call":
            self.built_in[getattr(argument, "__name__", str(argument))] += 1


class Memory:
    """Follows memory, by means of `tracemalloc`, and the collector."""

    def __init__(self) -> None:
        self.kept = self.most = self.collections = 0

    def begin(self) -> None:
        """Begin to follow."""
        tracemalloc.start()
        self._before = tracemalloc.get_traced_memory()[0]
        self._runs = _collections()

    def end(self) -> None:
        """Add what was found."""
        now, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        self.kept += now - self._before
        self.most = max(self.most, most - self._before)
        self.collections += _collections() - self._runs


class WatchedClock(PhaseClock):
    """A clock whose phases are watched from within."""

    def __init__(self, comm: Any, watchers: dict[str, Any]) -> None:
        super().__init__(comm)
        self._watchers = watchers

    def phase(self, name: str, nbytes: int = 0, operations: int = 1) -> Any:
        """Return the phase, watched if its name is."""
        inner = super().phase(name, nbytes, operations)
        watcher = self._watchers.get(name)
        return inner if watcher is None else _Watched(inner, watcher)


class _Watched:
    """A phase with a watcher between its stamps."""

    def __init__(self, inner: Any, watcher: Any) -> None:
        self._inner = inner
        self._watcher = watcher

    def __enter__(self) -> None:
        self._inner.__enter__()
        self._watcher.begin()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        self._watcher.end()
        return bool(self._inner.__exit__(kind, error, trace))


def profiles(given: Given) -> Iterator[tuple[str, ...]]:
    """Yield a line for each backend and phase."""
    with given.directory() as place, scratch_below(place) as scratch:
        for name, (keys, _) in small_datasets.LOOPS.items():
            try:
                case = the_case(f"{small_datasets.CASE}, {keys}")
            except UserError as error:
                yield (name, f"not measured: {error}", "", "", "", "", "")
                continue
            found = []
            for kind in (Calls, Memory):
                watchers: dict[str, Any] = {phase: kind() for phase in _WATCHED}
                watched = Repetitions(case, scratch, lambda comm, w=watchers: WatchedClock(comm, w))
                watched.one()  # imports and caches are not what a phase pays for
                watchers.update({phase: kind() for phase in _WATCHED})
                watched.one()
                found.append(watchers)
            for phase in _WATCHED:
                yield _line(name, phase, found[0][phase], found[1][phase])


def _line(name: str, phase: str, calls: Calls, memory: Memory) -> tuple[str, ...]:
    return (
        name,
        phase,
        _each(calls.entered),
        _each(calls.built_in),
        f"{memory.kept / small_datasets.DATASETS:.1f}",
        f"{memory.most / small_datasets.DATASETS:.1f}",
        str(memory.collections),
    )


def _each(counted: Counter[str]) -> str:
    """Return how often each was called for each call of the library."""
    many = {name: n / small_datasets.DATASETS for name, n in counted.items() if n > 9}
    return ", ".join(f"{name} {n:.3g}" for name, n in many.items()) or "none"


def _collections() -> int:
    return sum(one["collections"] for one in gc.get_stats())


def _is_clock(frame: FrameType) -> bool:
    return frame.f_code.co_filename.endswith("clock.py")


def measure(given: Given) -> Sequence[Row]:
    """Return the rows, of a process of its own: MPI starts in it."""
    command = python(__file__, "--json", "--place", str(given.place))
    lines = json.loads(run_ranks(1, command).splitlines()[-1])
    collections = float(sum(int(line[-1] or 0) for line in lines))
    none = Ratio(collections, collections, collections, 1)
    about = "collections of garbage in timed regions"
    return [*map(_row, lines), Row(about, "none", Mark("at most", 0), none, f"{collections:g}")]


def _row(line: Sequence[str]) -> Row:
    """Return the row of a backend and phase: functions of pffbench for each call of the library."""
    backend, phase, functions, *_ = line
    what, against = f"timed region, {backend}, {phase}", "functions of pffbench a call"
    if not functions:
        return not_measured(f"timed region, {backend}", against, _MARK, phase)
    entered = [] if functions == "none" else functions.split(", ")
    count = sum(float(each.split()[-1]) for each in entered)
    return Row(what, against, _MARK, Ratio(count, count, count, 1), functions)


def main() -> None:
    """Print the profile as a table in Markdown, or as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--place", type=Path, default=Path("/dev/shm"))
    parser.add_argument("--json", action="store_true", help="the cells of the table as JSON")
    arguments = parser.parse_args()
    found = list(profiles(Given(1, (), arguments.place)))
    print(json.dumps(found) if arguments.json else table([HEADINGS, *found]))


if __name__ == "__main__":
    main()
