"""The tables of docs/evidence/zarr.md are those of the runs in docs/results/zarr."""

from __future__ import annotations

import re
import shutil
import sys

import pytest

from launch import REPOSITORY
from pffbench.record.run_json import RunRecord

sys.path.insert(0, str(REPOSITORY / "docs" / "tools"))

from zarr_tables import PAGE, take, written

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
            options = {key: value for key, value in entry["options"].items() if value is not None}
            pipeline = asked[options.get("pipeline", "library")]
            assert facts["pipeline"] == f"{pipeline}CodecPipeline"
            grid = options.get("chunk_grid", "regular")
            assert facts.get("chunk_grid", "regular") == grid


def test_the_page_has_one_rank_and_four():
    assert {RunRecord.load(PAGE.parent / run).ranks for run in RUNS} == {1, 4}


def test_a_run_is_taken_with_its_place_masked_and_named_on_the_page_once(tmp_path):
    run, page = tmp_path / "versions-9-ranks", tmp_path / "docs" / "evidence" / "zarr.md"
    shutil.copytree(PAGE.parent / RUNS[0], run)
    for file in run.iterdir():
        text = file.read_text(encoding="utf-8")
        text = text.replace("/home/user/pffbench", "/secret/x").replace(",vm,", ",node7,")
        file.write_text(text.replace('"vm"', '"node7"'), encoding="utf-8")
    page.parent.mkdir(parents=True)
    page.write_text("# Zarr\n\n## Again\n\nx\n", encoding="utf-8")
    take(run, page)
    take(run, page)
    name = "../results/zarr/versions-9-ranks"
    assert page.read_text(encoding="utf-8") == (
        f"# Zarr\n\n### Versions 9 ranks\n\n<!-- run {name} -->\n<!-- end -->\n\n## Again\n\nx\n"
    )
    kept = [file.read_text(encoding="utf-8") for file in (page.parent / name).iterdir()]
    assert len(kept) == 3
    assert not any("/secret" in text or "node7" in text for text in kept)
    assert RunRecord.load(page.parent / name).valid
