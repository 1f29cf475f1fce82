"""A failure of one rank, in any phase of any format, layout and transfer, loses no other case."""

import re

import pytest

from fault_matrix import BACKENDS, VERBS, Matrix, outcomes, table, ways
from launch import REPOSITORY, sampled

pytestmark = pytest.mark.parallel

DOCUMENT = (REPOSITORY / "docs" / "reliability.md").read_text(encoding="utf-8")


def see(matrix):
    """Run a matrix and see that each case failed as planted, and that all others are complete."""
    record = matrix.run()
    entries = record["cases"]
    assert entries.keys() == matrix.verb_of.keys()
    for case, verb in matrix.verb_of.items():
        failure = entries[case]["failure"]
        if verb is None:
            assert failure is None, case
            assert not entries[case]["invalid"], case
        else:
            assert (failure["phase"], failure["rank"]) == (VERBS[verb], 1), (case, failure)
            assert "told to fail" in failure["error"], (case, failure)
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
    for row in table(see(Matrix(tmp_path, backend))):
        assert f"| {backend} | {' | '.join(row)} |" in DOCUMENT


def test_the_table_has_every_format_layout_and_transfer():
    for backend in BACKENDS:
        rows = re.findall(rf"^\| {backend} \| ([\w, ]+) \|", DOCUMENT, re.MULTILINE)
        told = {way for row in rows for way in row.split(", ")}
        assert told == {f"{way['layout']} {way['transfer']}" for way in ways(backend)}, backend
