"""`results.json` of real runs, and what `run --json` prints: the shipped default, scaled down."""

from __future__ import annotations

import json

import jsonschema
import pytest

from launch import REPOSITORY, pffbench_cli
from pffbench.results.document import results_schema
from pffbench.storage.page_cache import reason_against_cold_reads

pytestmark = pytest.mark.parallel
SMALLER = [
    part
    for change in ("repetitions=1", "warmup=0", "shape_per_rank=[4, 64, 64]",
                   "chunks=auto")
    for part in ("--set", change)
]  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "status"), [([], 0), (["--set", "drop=1"], 2)], ids=["valid", "wrong input"]
)
def test_a_run_prints_its_results_and_nothing_else(tmp_path, fault, status):
    default = REPOSITORY / "configs" / "default.yaml"
    ranks = None if status else 2
    done = pffbench_cli("run", default, *SMALLER, *fault, "--json", "--out", tmp_path / "run",
                        "--scratch", tmp_path, cwd=tmp_path, ranks=ranks)  # fmt: skip
    assert done.status == status, done.said
    if status:
        assert done.stdout == ""
        assert "unknown key 'drop'" in done.stderr
        return
    data = json.loads(done.stdout)
    jsonschema.Draft202012Validator(results_schema()).validate(data)
    assert data == json.loads((tmp_path / "run" / "results.json").read_text())
    # With one size and one chunk for all, the two comparisons of other ones are the first again.
    count = 12 if reason_against_cold_reads(str(tmp_path)) else 16
    assert (data["valid"], data["ranks"], len(data["cases"])) == (True, 2, count)
    moved = {case["bytes"] for case in data["cases"]}
    assert moved == {2 * 4 * 64 * 64 * 4}
