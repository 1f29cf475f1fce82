"""Thousands of repetitions of small cases: memory, descriptors, HDF5 objects, communicators stay.

    python tests/parallel/programs/soak.py --ranks 4 --repetitions 2000 --place /tmp/soak

Starts `pffbench run` under mpiexec. After each repetition every rank notes its resident memory, its
open descriptors, the HDF5 objects that are open in it and the lowest number that MPI gives a new
communicator, which rises when one is not freed. The first tenth, which fills caches and pools, is
left out, and the last tenth is compared with the one after the first: memory may differ by 5 %, the
others not at all. The exit status is 1 when they do.
"""

from __future__ import annotations

import argparse
import csv
import resource
import shutil
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

#: Part by which resident memory may differ.
FLAT = 0.05
COLUMNS = ("resident", "descriptors", "hdf5_objects", "lowest_communicator")
CASES = 9
SLAB = "workload: hyperslab, shape_per_rank: [16, 64]"
EXPERIMENT = """\
name: soak
question: Do repetitions leave anything behind?
repetitions: {repetitions}
warmup: 0
roofline: false
common: {{durability: flush}}
cases:
  - {{backend: hdf5, transfer: [independent, collective], {slab}}}
  - {{backend: [hdf5, zarr], files: per_rank, codec: gzip, {slab}}}
  - {{backend: netcdf4, transfer: collective, {slab}}}
  - {{backend: zarr, zarr: {{format: [2, 3]}}, {slab}}}
  - {{backend: mpiio, {slab}}}
  - {{backend: posix, files: per_rank, {slab}}}
  - {{backend: hdf5, files: one, arrays: per_rank, workload: datasets, shape: [16, 16],
      datasets_per_rank: 4}}
"""


def main() -> int:
    """Run the soak and tell what grew; return the exit status."""
    parser = argparse.ArgumentParser(description="See whether thousands of repetitions leak.")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--repetitions", type=int, default=2000, help="of all cases together")
    parser.add_argument("--place", type=Path, required=True, help="directory to work in; new")
    given = parser.parse_args()
    given.place.mkdir(parents=True)
    status = _run(given.ranks, -(-given.repetitions // CASES), given.place)
    if status:
        print(f"pffbench ended with {status}")
        return 1
    told = [_judge(given.place / f"rank-{rank}.csv") for rank in range(given.ranks)]
    for rank, growth in enumerate(told):
        for one in growth:
            print(f"rank {rank}: {one}")
    shutil.rmtree(given.place / "scratch")
    return int(not all(one.flat for growth in told for one in growth))


def _run(ranks: int, repetitions: int, place: Path) -> int:
    experiment = place / "soak.yaml"
    experiment.write_text(EXPERIMENT.format(repetitions=repetitions, slab=SLAB))
    (place / "scratch").mkdir()
    command = [
        "mpiexec", "-n", str(ranks), sys.executable, __file__, "--rank", str(place), "run",
        str(experiment), "--out", str(place / "results"), "--scratch", str(place / "scratch"),
    ]  # fmt: skip
    return subprocess.run(command, check=False).returncode


@dataclass(frozen=True)
class Growth:
    """What became of one number from the second tenth of a run to the last."""

    name: str
    early: float
    late: float

    @property
    def flat(self) -> bool:
        """Whether it stayed."""
        if self.name != "resident":
            return self.late <= self.early
        return abs(self.late - self.early) <= FLAT * self.early

    def __str__(self) -> str:
        change = (self.late - self.early) / self.early if self.early else 0.0
        verdict = "flat" if self.flat else "GROWS"
        unit = 2**20 if self.name == "resident" else 1
        unit_name = " MiB" if self.name == "resident" else ""
        early, late = self.early / unit, self.late / unit
        return f"{self.name}: {early:.4g} to {late:.4g}{unit_name} ({change:+.1%}), {verdict}"


def _judge(path: Path) -> list[Growth]:
    with path.open(newline="") as file:
        rows = [[float(cell) for cell in row] for row in csv.reader(file)]
    tenth = max(len(rows) // 10, 1)
    early, late = rows[tenth : 2 * tenth], rows[-tenth:]
    middle = statistics.median if len(early) > 1 else max
    return [
        Growth(name, middle(row[i] for row in early), middle(row[i] for row in late))
        for i, name in enumerate(COLUMNS)
    ]


def _descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def _on_a_rank(place: Path, arguments: Sequence[str]) -> None:
    """Run the command line of pffbench, and note this rank's state whenever it has recorded."""
    import h5py
    from mpi4py import MPI

    from pffbench.cli import main as pffbench
    from pffbench.run import runner

    page = resource.getpagesize()
    recorded = runner.gather
    with (place / f"rank-{MPI.COMM_WORLD.rank}.csv").open("w", newline="") as file:
        notes = csv.writer(file)

        def gather(*given: object) -> object:
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            objects = h5py.h5f.get_obj_count(h5py.h5f.OBJ_ALL, h5py.h5f.OBJ_ALL)
            probe = MPI.COMM_SELF.Dup()
            number = probe.py2f()
            probe.Free()
            notes.writerow([pages * page, _descriptors(), objects, number])
            file.flush()
            return recorded(*given)  # type: ignore[arg-type]

        runner.gather = gather  # type: ignore[assignment]
        pffbench(arguments)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--rank"]:
        _on_a_rank(Path(sys.argv[2]), sys.argv[3:])
    sys.exit(main())
