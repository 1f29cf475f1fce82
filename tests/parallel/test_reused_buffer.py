"""A buffer that all transfers of a rank share: what is verified, and what is noticed."""

from __future__ import annotations

import pytest

from launch import PROGRAMS, run_experiment, start_experiment
from planted import planted

pytestmark = pytest.mark.parallel

STEPS, NBYTES = 20, 2**14
REUSED = {"workload": "hyperslab", "shape_per_rank": [NBYTES // 4], "steps": STEPS,
          "chunks": "contiguous", "buffer": "reuse"}  # fmt: skip
ALONE = {**REUSED, "layout": "file_per_process", "backend": "posix"}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Every layout, transfer and kind of call, with parts of unequal size; both kinds of memory."""
    uneven = {k: v for k, v in REUSED.items() if k != "shape_per_rank"} | {"shape": [37, 40]}
    libraries = ["hdf5", "mpiio", "posix"]
    cases = [
        {**uneven, "backend": libraries, "layout": ["shared", "own", "file_per_process"],
         "transfer": ["independent", "collective"], "arrays": 2, "buffer": ["reuse", "block"]},
        {**uneven, "backend": "posix", "cache": "shifted"},
        {**uneven, "backend": "zarr", "layout": "own", "chunks": "block", "source": "integers"},
    ]  # fmt: skip
    return run_experiment(tmp_path_factory.mktemp("reused"), 3, cases=cases)


def test_every_byte_is_verified_and_counted_once(done):
    assert done.status == 0, done.said
    for name, entry in done.record["cases"].items():
        p, phases = entry["parameters"], done.phases(name)
        (write,), (read,) = phases["write"], phases["read"]
        nbytes = p["arrays"] * STEPS * 37 * 40 * 4
        assert int(read["verified_bytes"]) == int(read["bytes"]) == int(write["bytes"]) == nbytes


def test_the_title_says_which_memory_it_was(done):
    lines = (done.out / "summary.md").read_text().splitlines()
    titles = [line for line in lines if line.startswith("## hyperslab")]
    reused = [line for line in titles if ", one buffer reused" in line]
    assert 0 < len(reused) < len(titles)


#: Reads on the timer of the second repetition, from 0, that move nothing: first and end.
SUPPRESSED = {"all": (0, STEPS), "first": (0, 1), "last": (STEPS - 1, STEPS)}


@pytest.mark.parametrize("name", SUPPRESSED)
def test_reads_that_read_nothing_are_invalid_though_verification_reads(tmp_path, name):
    """Those after the timed ones, which verify, read the file.

    Reads are counted from the second repetition on, when it is known how the data are stored.
    """
    first, end = (2 * STEPS + number for number in SUPPRESSED[name])
    fault = planted("independent.", read="suppress", size=NBYTES, after=first, until=end)
    done = run_experiment(tmp_path, 1, cases=[ALONE], repetitions=2, env=fault)
    assert done.status == 1, done.said
    assert any("did not read the files" in reason for reason in done.record["reasons"])


def test_reads_of_the_first_repetition_that_read_nothing_are_seen_in_the_buffer(tmp_path):
    fault = planted("independent.", read="suppress", size=NBYTES, until=STEPS)
    done = run_experiment(tmp_path, 1, cases=[ALONE], env=fault)
    assert done.status == 1, done.said
    (reason,) = done.record["reasons"]
    assert f"({STEPS - 1}, 0)" in reason or f"[{STEPS - 1}, 0]" in reason


def test_transfers_in_each_others_place_are_invalid(tmp_path):
    done = start_experiment(
        tmp_path, 1, program=(PROGRAMS / "misplaced.py",), cases=[ALONE]
    ).finish()
    assert done.status == 1, done.said
    (first, second) = done.record["reasons"]
    assert "(3, 0)" in first or "[3, 0]" in first
    assert "(4, 0)" in second or "[4, 0]" in second
