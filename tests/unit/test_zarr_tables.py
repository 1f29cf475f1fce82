"""The tables of docs/zarr.md are those of the runs in docs/results/zarr."""

from __future__ import annotations

import re
import sys

import pytest

from launch import REPOSITORY
from pffbench.record.run_json import RunRecord

sys.path.insert(0, str(REPOSITORY / "docs" / "tools"))

from zarr_tables import PAGE, written

TEXT = PAGE.read_text(encoding="utf-8")
RUNS = re.findall(r"<!-- run (\S+) -->", TEXT)


def test_no_number_of_the_page_was_typed():
    assert written(TEXT) == TEXT
    assert "VALID: every byte read was verified" in TEXT


@pytest.mark.parametrize("run", RUNS)
def test_its_runs_are_valid_and_had_the_settings_in_force(run):
    record = RunRecord.load(PAGE.parent / run)
    assert (record.valid, record.status) == (True, "finished")
    asked = {"library": "Batched", "fused": "Fused", "zarrs": "Zarrs"}
    for entry in record.cases.values():
        facts = entry.get("transfer_facts", {})
        if entry["parameters"]["backend"] == "zarr" and "blosc_threads" not in facts:
            assert facts["pipeline"] == f"{asked[entry['options']['pipeline']]}CodecPipeline"
            assert facts.get("chunk_grid", "regular") == entry["options"]["chunk_grid"]


def test_the_page_has_one_rank_and_four():
    assert {RunRecord.load(PAGE.parent / run).ranks for run in RUNS} == {1, 4}
