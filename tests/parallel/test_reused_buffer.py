"""A buffer that all transfers of a rank share: what is verified, and what is noticed."""

from __future__ import annotations

import re

import pytest

from launch import PROGRAMS, run_experiment, sampled, start_experiment
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


@pytest.mark.parametrize(
    ("name", "repetition"),
    sampled([(name, number) for name in SUPPRESSED for number in (0, 1)], ("all", 0), ("last", 1)),
)
def test_reads_that_read_nothing_are_invalid_though_verification_reads(tmp_path, name, repetition):
    """Those after the timed ones, which verify, read the file."""
    first, end = (2 * STEPS * repetition + number for number in SUPPRESSED[name])
    fault = planted("independent.", read="suppress", size=NBYTES, after=first, until=end)
    done = run_experiment(tmp_path, 1, cases=[ALONE], repetitions=2, env=fault)
    assert done.status == 1, done.said
    reasons = done.record["reasons"]
    assert any("did not read the files" in reason for reason in reasons)
    place = SUPPRESSED[name][0]  # which is seen in the buffer too
    assert any(f"array 0, element [{place}, " in reason for reason in reasons) == (name != "all")


#: Timed reads of 34, from 0, that get the bytes before those asked for.
MISREAD = [1, 16, 33]


@pytest.mark.parametrize("call", sampled(MISREAD, 16))
def test_a_timed_read_that_gets_the_data_of_another_one_is_invalid(tmp_path, call):
    """The reads that verify get the right ones; up to 34 calls are compared all."""
    case = {**ALONE, "steps": 34}
    fault = planted("independent.", read="neighbour", size=NBYTES, after=call, until=call + 1)
    done = run_experiment(tmp_path, 1, cases=[case], repetitions=2, env=fault)
    assert done.status == 1, done.said
    assert "repetition 0: " in done.record["reasons"][0]


def test_of_many_timed_reads_a_sample_is_compared_and_the_verdict_says_how_many(tmp_path):
    case = {**ALONE, "steps": 100}
    done = run_experiment(tmp_path, 1, cases=[case], repetitions=3)
    assert done.status == 0, done.said
    summary = (done.out / "summary.md").read_text()
    said = re.search(
        r"Every byte read was verified; with buffer: reuse that was a second read, off the "
        r"timer, and (\d+) % or more of the timed calls were compared too; 1 case",
        summary,
    )
    assert said, done.said
    assert 2 * 17 - 2 <= int(said[1]) <= 2 * 17 + 2  # those before the drawn place and the end


def test_transfers_in_each_others_place_are_invalid(tmp_path):
    done = start_experiment(
        tmp_path, 1, program=(PROGRAMS / "misplaced.py",), cases=[ALONE]
    ).finish()
    assert done.status == 1, done.said
    timed = done.record["reasons"][:2]
    assert "array 0, element [4, 0]: " in timed[0]
    assert "array 0, element [3, 0]: " in timed[1]
