"""A failure of one rank in each phase of each format, kind of files and transfer, and what it ends.

One rank raises an error in place of a call of the library that all ranks make, or hangs there, is
stopped or is killed. If the job ends, the run is resumed until it is finished.

    python tests/fault_matrix.py fail|hang|stop|die [BACKEND ...]    # the tables of reliability.md
"""

import json
import os
import re
import sys
import tempfile
from pathlib import Path

from faults import TAG, no_process_is_left
from launch import PROGRAMS, run, write_experiment
from pffbench.backends.registry import backend_class
from pffbench.experiment.check import make_plan
from pffbench.experiment.load import load_experiment
from sharing import keys_of, word_of

#: Ranks of a run in which one raises an error, and in which one hangs, is stopped or is killed.
RANKS, FEW_RANKS = 4, 2
#: Calls that fail, and the phase of each.
VERBS = {
    "create": "create", "define": "define", "write": "write", "flush": "flush", "close": "close",
    "open": "open", "arrays": "open_array", "read": "read",
}  # fmt: skip
BACKENDS = ("hdf5", "netcdf4", "netcdf3", "zarr", "tensorstore", "npy", "blosc2", "mpiio", "posix")
#: Files and arrays, by their words in names of cases.
FILES = ("one-shared", "one-per_rank", "count_2", "per_rank")
#: The formats and files in which a rank hangs, is stopped or is killed.
FEW_FILES = ("one-shared", "per_rank")
FEW_BACKENDS = dict.fromkeys(("hang", "stop", "die"), ("hdf5", "netcdf4", "zarr"))
#: What each kind of failure is called in the documents.
KINDS = {"fail": "raises", "hang": "hangs", "stop": "is stopped", "die": "is killed"}
#: Seconds of a step after which the job is ended.
LIMIT = 4
#: Seconds after the limit in which the job must have ended, see `pffbench.job.alarm`.
MARGIN = 25
#: What a failure contains if the job ended, and after how many seconds.
WAITED = re.compile(r"(?:waited for it in the library for|not ended after) (\d+) s")


def ways(backend, files=FILES):
    """Yield the keys of a case for some files and each transfer of a backend."""
    can = backend_class(backend).capabilities
    first = "shared" if "shared" in can.arrays else "per_rank"
    for word in files:
        keys = {"files": {"count": 2}, "arrays": first} if word == "count_2" else keys_of(word)
        if word != "per_rank" and keys["arrays"] not in can.arrays:
            continue
        for transfer in ("independent", "collective"):
            if transfer in can.transfers and (word, transfer) != ("per_rank", "collective"):
                yield keys | {"transfer": transfer}


class Matrix:
    """The cases of a backend: for each way one without a failure, and one for each call."""

    def __init__(self, directory, backend, verbs=tuple(VERBS), kind="fail", files=None):
        self.backend, self.verbs, self.directory = backend, verbs, Path(directory)
        self.kind, self.ranks = kind, RANKS if kind == "fail" else FEW_RANKS
        files = files or (FILES if kind == "fail" else FEW_FILES)
        shapes = [[4, 8 * n] for n in range(1, len(verbs) + 2)]
        common = {"workload": "hyperslab", "backend": backend, "durability": "flush"}
        cases = [common | way | {"shape_per_rank": shape} for way in ways(backend, files)
                 for shape in shapes]  # fmt: skip
        self._path = write_experiment(directory, cases=cases, hang_timeout=f"{LIMIT} s")
        plan = make_plan(load_experiment(str(self._path)), self.ranks)
        wanted = dict(zip(map(tuple, shapes), [None, *verbs], strict=True))
        #: The call that fails in each case; None for none.
        self.verb_of = {case.id: wanted[case.parameters.shape_per_rank] for case in plan.cases}
        self.starts = 0

    def run(self):
        """Run and resume until the run is finished; return its record."""
        (self.directory / "scratch").mkdir()
        faults = {case: verb for case, verb in self.verb_of.items() if verb}
        told = {"kind": self.kind, "rank": 1, "backend": self.backend, "cases": faults}
        env = {"FAULT": json.dumps(told), TAG: str(self.directory)}
        out, scratch = self.directory / "results", ("--scratch", self.directory / "scratch")
        arguments = [self._path, "--out", out]
        while True:
            self.starts += 1
            done = run([PROGRAMS / "faulty.py", "run", *arguments, *scratch], ranks=self.ranks,
                       out=out, cwd=self.directory, env=env)  # fmt: skip
            no_process_is_left(self.directory)
            if done.record["status"] == "finished":
                return done.record
            assert self.kind == "die" or "nothing has come to an end" in done.stderr, done.said
            assert self.starts <= len(faults) * (2 if self.kind == "die" else 1), done.said
            arguments = ["--resume", out]


def outcomes(matrix, record):
    """Return what each failure ended: the case, or jobs; by files, transfer and phase."""
    found = {}
    for case, verb in matrix.verb_of.items():
        entry = record["cases"][case]
        if verb is None:
            assert (entry["failure"], bool(entry["invalid"])) == (None, False), entry
            continue
        way = word_of(entry["parameters"]), entry["parameters"].get("transfer", "independent")
        waited = WAITED.search(entry["failure"]["error"])
        assert not waited or LIMIT <= int(waited[1]) <= LIMIT + MARGIN, entry["failure"]
        deaths = record.get("died_in", []).count(case)
        assert deaths == (2 if matrix.kind == "die" else 0), (case, deaths)
        found[*way, VERBS[verb]] = "2 jobs" if deaths else "job" if waited else "case"
    return found


def table(found):
    """Return the rows of a table of a backend: files and transfers with equal cells together."""
    rows = {}
    for files, transfer in dict.fromkeys(key[:2] for key in found):
        cells = tuple(found[files, transfer, phase] for phase in VERBS.values())
        rows.setdefault(cells, []).append(f"{files} {transfer}")
    return [(", ".join(names), *cells) for cells, names in rows.items()]


def lines(matrix, found):
    """Return the lines of the table of the documents."""
    first = (matrix.backend,) if matrix.kind == "fail" else (KINDS[matrix.kind], matrix.backend)
    return [f"| {' | '.join((*first, *row))} |" for row in table(found)]


if __name__ == "__main__":
    os.environ["PFFBENCH_TRACEBACK"] = "1"
    kind, *names = sys.argv[1:]
    for name in names or FEW_BACKENDS.get(kind, BACKENDS):
        with tempfile.TemporaryDirectory(prefix="faults-") as place:
            made = Matrix(place, name, kind=kind)
            print(*lines(made, outcomes(made, made.run())), sep="\n", flush=True)
