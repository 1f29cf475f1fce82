"""A failure of one rank, in any phase of any format, loses no other case."""

import re

import pytest

from fault_matrix import (
    BACKENDS,
    FEW_BACKENDS,
    FEW_FILES,
    FILES,
    KINDS,
    VERBS,
    Matrix,
    lines,
    outcomes,
    ways,
)
from launch import REPOSITORY, sampled
from sharing import word_of

pytestmark = pytest.mark.parallel

#: What the record of a case contains after each kind of failure.
SAID = {
    "fail": "told to fail", "hang": "not ended after", "stop": "not ended after",
    "die": "died in this case 2 times",
}  # fmt: skip
DOCUMENT = (REPOSITORY / "docs" / "reliability.md").read_text(encoding="utf-8")


def see(matrix):
    """Run a matrix and see that each case failed as planted, and that all others are complete."""
    record = matrix.run()
    entries = record["cases"]
    assert entries.keys() == matrix.verb_of.keys()
    for case, verb in matrix.verb_of.items():
        failure = entries[case]["failure"]
        if verb is not None:
            assert failure["phase"] == VERBS[verb], (case, failure)
            assert failure["rank"] == 1 or matrix.kind in ("hang", "stop"), (case, failure)
            assert SAID[matrix.kind] in failure["error"], (case, failure)
    assert len(record["reasons"]) == sum(verb is not None for verb in matrix.verb_of.values())
    assert not list((matrix.directory / "scratch").iterdir())
    return outcomes(matrix, record)


@pytest.mark.parametrize(
    ("backend", "verb"),
    sampled(
        [("hdf5", "arrays"), ("hdf5", "write"), ("netcdf4", "read"), ("zarr", "define"),
         ("mpiio", "close")],
        ("hdf5", "arrays"),
    ),
)  # fmt: skip
def test_a_rank_that_fails_in_a_phase_ends_its_case_or_the_job_in_time(tmp_path, backend, verb):
    matrix = Matrix(tmp_path, backend, (verb,))
    found = see(matrix)
    ended = sum(what == "job" for what in found.values())
    assert matrix.starts == 1 + ended


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_table_of_the_documents_is_what_happens(tmp_path, backend):
    matrix = Matrix(tmp_path, backend)
    for line in lines(matrix, see(matrix)):
        assert line in DOCUMENT


LOST = [(kind, backend) for kind, names in FEW_BACKENDS.items() for backend in names]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("kind", "backend"), LOST)
def test_a_rank_that_is_lost_in_any_phase_ends_as_the_documents_say(tmp_path, kind, backend):
    matrix = Matrix(tmp_path, backend, kind=kind)
    for line in lines(matrix, see(matrix)):
        assert line in DOCUMENT


@pytest.mark.parametrize(
    ("kind", "backend", "verb", "files"),
    sampled(
        [("stop", "zarr", "define", "per_rank"), ("hang", "netcdf4", "close", "one-shared"),
         ("die", "hdf5", "close", "per_rank"), ("die", "netcdf4", "open", "one-shared"),
         ("stop", "hdf5", "read", "one-shared")],
        ("die", "hdf5", "close", "per_rank"),  # of the others test_reliability_hang.py has one
    ),
)  # fmt: skip
def test_a_rank_that_is_lost_in_a_phase_ends_the_job_in_time(
    tmp_path, kind, backend, verb, files
):  # fmt: skip
    matrix = Matrix(tmp_path, backend, (verb,), kind, (files,))
    found = see(matrix)
    assert matrix.starts == 1 + len(found) * (2 if kind == "die" else 1)


def test_the_tables_have_every_format_with_all_files_and_transfers():
    wanted = [(backend, ways(backend, FILES)) for backend in BACKENDS]
    wanted += [(rf"{KINDS[k]} \| {backend}", ways(backend, FEW_FILES)) for k, backend in LOST]
    for first, keys in wanted:
        rows = re.findall(rf"^\| {first} \| ([\w, -]+) \|", DOCUMENT, re.MULTILINE)
        told = {way for row in rows for way in row.split(", ")}
        assert told == {f"{word_of(way)} {way['transfer']}" for way in keys}, first
