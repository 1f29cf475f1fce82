"""Made-up decomposition maps, as irregular as those of E3SM's atmosphere, ocean and land.

    python -m pffbench.workloads.made_maps atmosphere --processes 16 --seed 1 atmosphere.npz

Only numbers of processes, stretches and elements are E3SM's, as its benchmark
https://github.com/Parallel-NetCDF/E3SM-IO has them; the process of each stretch is drawn from a
seed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from math import isqrt

import numpy as np

from pffbench.geometry.box import Shape
from pffbench.geometry.maps import DecompositionMap
from pffbench.geometry.stretches import Integers
from pffbench.workloads.map_files import write_npz, write_text


def atmosphere(processes: int, seed: int) -> DecompositionMap:
    """Make a map of 72 levels of columns: 54 columns a process, hardly any beside another.

    Each process has 72 times as many stretches, nearly all of one element.
    """
    owner = np.random.default_rng(seed).permutation(np.arange(54 * processes) % processes)
    return _of_owners((72, owner.size), np.tile(owner, 72), processes)


def ocean(processes: int, seed: int) -> DecompositionMap:
    """Make a map of cells of 80 levels, the levels of a cell together: 385 cells a process."""
    owner = np.random.default_rng(seed).permutation(np.arange(385 * processes) % processes)
    return _of_owners((owner.size, 80), np.repeat(owner, 80), processes)


def land(processes: int, seed: int) -> DecompositionMap:
    """Make a map of 15 levels of latitudes by longitudes, of which two in five are land.

    The grid has 864 points a process. Land is stretches of 1 to 9 points along a latitude, dealt
    out to the processes; no process has the sea between them.
    """
    latitudes = isqrt(576 * processes)
    row = 864 * processes // latitudes
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 10, latitudes * row)
    ends = np.cumsum(lengths)
    count = int(np.searchsorted(ends, latitudes * row)) + 1
    of_stretch = np.where(
        random.random(count) < 0.41, random.permutation(np.arange(count) % processes), -1
    )
    owner = np.repeat(of_stretch, lengths[:count])[: latitudes * row]
    return _of_owners((15, latitudes, row), np.tile(owner, 15), processes)


#: Kinds of maps.
MADE: dict[str, Callable[[int, int], DecompositionMap]] = {
    "atmosphere": atmosphere, "ocean": ocean, "land": land
}  # fmt: skip


def _of_owners(shape: Shape, owner: Integers, processes: int) -> DecompositionMap:
    """Return the map of an array each of whose elements has an owner, or -1 for none."""
    first = np.flatnonzero(np.diff(owner, prepend=-2))
    lengths = np.diff(first, append=owner.size)
    owners = owner[first]
    some = np.flatnonzero(owners >= 0)
    some = some[np.argsort(owners[some], kind="stable")]
    counts = np.bincount(owners[some], minlength=processes)
    return DecompositionMap(shape, counts, first[some], lengths[some])


def main(words: Sequence[str] | None = None) -> int:
    """Write a map. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m pffbench.workloads.made_maps")
    parser.description = "Make a decomposition map up."
    parser.add_argument("kind", choices=MADE)
    parser.add_argument("file", help="where it is written: .npz, or .txt for the form of E3SM-IO")
    parser.add_argument("--processes", type=int, default=16, help="16 when not given")
    parser.add_argument("--seed", type=int, default=1, help="1 when not given")
    given = parser.parse_args(words)
    if given.processes < 1:
        parser.error("--processes: at least 1")
    made = MADE[given.kind](given.processes, given.seed)
    (write_text if given.file.endswith(".txt") else write_npz)(given.file, made)
    each = f"{made.counts.min()} to {made.counts.max()}"
    told = f"shape {list(made.shape)}, {made.processes} processes, {each} stretches each"
    print(f"{given.file}: {told}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
