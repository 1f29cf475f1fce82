"""New memory in reads: libraries that return a new array are compared by their reading alone."""

import json
import os
from statistics import median

import pytest

from launch import environment, run_experiment
from pffbench.results.export import write_summary
from pffbench.results.summary import summarise

pytestmark = pytest.mark.parallel
#: Two backends that differ in nothing else: one reads into the buffer, one into a new array.
BACKENDS = """
import numpy as np
from msgspec.structs import replace
from pffbench.backends.raw.posix import Posix, PosixArray, PosixStore
from pffbench.backends.raw.layout import place_of


class Reused(Posix):
    name = "reused"
    capabilities = replace(Posix.capabilities, raw=False)


class Fresh(Reused):
    name = "fresh"
    capabilities = replace(Reused.capabilities, new_arrays=frozenset({"independent"}))

    def create(self, path, comm):
        return FreshStore(path, super().create(path, comm)._descriptor, self.options)

    def open(self, path, comm):
        return FreshStore(path, super().open(path, comm)._descriptor, self.options)


class FreshStore(PosixStore):
    def wrap(self, specs, returned):
        return {
            spec.name: FreshArray(self._descriptor, place_of(spec, self._options), self._reaches)
            for spec in specs
        }


class FreshArray(PosixArray):
    def reader(self, box, out, collective):
        def read():
            new = np.empty(out.shape, out.dtype)
            super(FreshArray, self).reader(box, new, collective)()
            return new

        return read
"""
ENTRY_POINTS = """[pffbench.backends]
reused = pffbench_memory:Reused
fresh = pffbench_memory:Fresh
"""


@pytest.fixture
def run_both(tmp_path):
    """Return a function that runs both backends on two ranks and returns what they left."""
    about = tmp_path / "packages" / "pffbench_memory-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: pffbench-memory\nVersion: 1\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    (about.parent / "pffbench_memory.py").write_text(BACKENDS)
    path = os.pathsep.join([str(about.parent), environment()["PYTHONPATH"]])

    def run(size, *settings):
        done = run_experiment(
            tmp_path, 2, env={"PYTHONPATH": path}, repetitions=3, warmup=1, memory="256 MiB",
            common={"workload": "hyperslab", "files": "per_rank", "chunks": "contiguous"},
            cases=[
                {"backend": ["reused", "fresh"], "settings": [*settings],
                 "shape_per_rank": [size, 512, 512]}
            ],
        )  # fmt: skip
        assert done.status == 0, done.said
        return done

    return run


def reads(done, backend, settings):
    """Return the rows of the reads that count."""
    rows = done.phases(done.case(backend=backend, settings=settings))["read"]
    return [row for row in rows if row["warmup"] == "false"]


def new_memory(rows):
    """Return the part of the bytes of a read that goes through new memory, the median.

    It follows from page faults, the kernel's own count.
    """
    return median(int(row["new_memory"]) / int(row["bytes"]) for row in rows)


@pytest.mark.full
@pytest.mark.parametrize("size", [64, 240])
def test_a_fresh_array_brings_no_new_memory_in_matched(run_both, size):
    done = run_both(size, "matched")
    fresh, reused = (reads(done, name, "matched") for name in ("fresh", "reused"))
    assert new_memory(fresh) < 0.05
    assert new_memory(reused) < 0.05
    assert "kept" in done.record["allocator"]["matched"]


def test_defaults_get_what_a_program_gets_and_the_run_says_so(run_both):
    done = run_both(24, "matched", "defaults")
    for name in ("fresh", "reused"):
        assert new_memory(reads(done, name, "matched")) < 0.05
    assert new_memory(reads(done, "fresh", "defaults")) > 0.9
    assert done.record["allocator"].keys() == {"matched", "defaults"}
    # Given, since a busy machine may find none: new memory then takes no longer than other memory.
    cost = 2e9
    done.record["floor"]["memory_new_bytes_per_second"] = cost
    (done.out / "run.json").write_text(json.dumps(done.record))
    summary = summarise(done.out)
    write_summary(summary, done.out)
    (case,) = [
        case for case in summary.cases
        if (case.backend, case.parameters["settings"]) == ("fresh", "defaults")
    ]  # fmt: skip
    read = case.phases["read_total"]
    (caution,) = [w.message for w in read.warnings if w.code == "page_faults"]
    assert read.new_memory_seconds == pytest.approx(read.faulted * case.nbytes / cost)
    assert f"about {1e3 * read.new_memory_seconds:.3g} of" in caution
    assert "new mem ms" in (done.out / "summary.md").read_text()
