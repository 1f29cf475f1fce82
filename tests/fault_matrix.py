"""A failure of one rank in each phase of each format, layout and transfer, and what it ends.

One rank raises an error in place of a call of the library that all ranks make. Where the others
wait for it in the library, the watchdog ends the job, and the run is resumed until it is finished.

    python tests/fault_matrix.py [BACKEND ...]    # prints the table of docs/reliability.md
"""

import json
import os
import sys
import tempfile
from pathlib import Path

from faults import TAG, no_process_is_left
from launch import PROGRAMS, run, write_experiment
from pffbench.backends.registry import backend_class
from pffbench.experiment.check import make_plan
from pffbench.experiment.load import load_experiment

RANKS = 4
#: Calls that fail, and the phase of each.
VERBS = {
    "create": "create", "define": "define", "write": "write", "flush": "flush", "close": "close",
    "open": "open", "arrays": "open_array", "read": "read",
}  # fmt: skip
BACKENDS = ("hdf5", "netcdf4", "netcdf3", "zarr", "tensorstore", "npy", "blosc2", "mpiio", "posix")
#: Seconds of a step after which the job is ended.
LIMIT = 4
#: Words of a failure that the watchdog recorded.
ENDED = ("waited for it in the library", "not ended after")


def ways(backend):
    """Yield the keys of a case for each layout and transfer that a backend has."""
    can = backend_class(backend).capabilities
    for layout in ("shared", "own", "file_per_group", "file_per_process"):
        if layout not in can.layouts and layout != "file_per_group":
            continue
        for transfer in ("independent", "collective"):
            if transfer not in can.transfers or (layout, transfer) == (
                "file_per_process", "collective",
            ):  # fmt: skip
                continue
            within = "shared" if "shared" in can.layouts else "own"
            group = {"group": {"count": 2}, "within": within} if "group" in layout else {}
            yield {"layout": layout, "transfer": transfer, **group}


class Matrix:
    """The cases of a backend: for each way one without a failure, and one for each call."""

    def __init__(self, directory, backend, verbs=tuple(VERBS)):
        self.backend, self.verbs, self.directory = backend, verbs, Path(directory)
        shapes = [[4, 8 * n] for n in range(1, len(verbs) + 2)]
        common = {"workload": "hyperslab", "backend": backend, "durability": "flush"}
        cases = [common | way | {"shape_per_rank": shape} for way in ways(backend)
                 for shape in shapes]  # fmt: skip
        self._path = write_experiment(directory, cases=cases, hang_timeout=f"{LIMIT} s")
        plan = make_plan(load_experiment(str(self._path)), RANKS)
        wanted = dict(zip(map(tuple, shapes), [None, *verbs], strict=True))
        #: The call that fails in each case; None for none.
        self.verb_of = {case.id: wanted[case.parameters.shape_per_rank] for case in plan.cases}
        self.starts = 0

    def run(self):
        """Run and resume until the run is finished; return its record."""
        (self.directory / "scratch").mkdir()
        faults = {case: verb for case, verb in self.verb_of.items() if verb}
        told = {"kind": "fail", "rank": 1, "backend": self.backend, "cases": faults}
        env = {"FAULT": json.dumps(told), TAG: str(self.directory)}
        out, scratch = self.directory / "results", ("--scratch", self.directory / "scratch")
        arguments = [self._path, "--out", out]
        while True:
            self.starts += 1
            done = run([PROGRAMS / "faulty.py", "run", *arguments, *scratch], ranks=RANKS, out=out,
                       cwd=self.directory, env=env)  # fmt: skip
            no_process_is_left(self.directory)
            if done.record["status"] == "finished":
                return done.record
            assert "nothing has come to an end" in done.stderr, done.said
            assert self.starts <= len(faults), done.said
            arguments = ["--resume", out]


def outcomes(matrix, record):
    """Return what each failure ended: the case, or the job; by layout, transfer and phase."""
    found = {}
    for case, verb in matrix.verb_of.items():
        if verb is None:
            continue
        entry = record["cases"][case]
        way = entry["parameters"]["layout"], entry["parameters"].get("transfer", "independent")
        ended = any(words in entry["failure"]["error"] for words in ENDED)
        found[*way, VERBS[verb]] = "job" if ended else "case"
    return found


def table(found):
    """Return the rows of a table of a backend: layouts and transfers with equal cells together."""
    rows = {}
    for layout, transfer in dict.fromkeys(key[:2] for key in found):
        cells = tuple(found[layout, transfer, phase] for phase in VERBS.values())
        rows.setdefault(cells, []).append(f"{layout} {transfer}")
    return [(", ".join(names), *cells) for cells, names in rows.items()]


if __name__ == "__main__":
    os.environ["PFFBENCH_TRACEBACK"] = "1"
    print(f"| format | layout and transfer | {' | '.join(VERBS.values())} |")
    print("| --- " * (len(VERBS) + 2) + "|")
    for name in sys.argv[1:] or BACKENDS:
        with tempfile.TemporaryDirectory(prefix="faults-") as place:
            made = Matrix(place, name)
            for row in table(outcomes(made, made.run())):
                print(f"| {name} | {' | '.join(row)} |", flush=True)
