"""Each experiment of configs/questions runs by its name, ends VALID and says what it found."""

from __future__ import annotations

import json
import re
import sys

import pytest

from launch import REPOSITORY, pffbench_cli
from pffbench.experiment.load import load_experiment

pytestmark = pytest.mark.parallel

FILES = sorted((REPOSITORY / "configs" / "questions").glob("*.yaml"))
#: Small arrays in as many pieces; what is not named here is small already.
SMALL = {
    "after-a-kill": {"kills": 1, "steps": 8},
    "chunk-shape": {"shape_per_rank": [32, 4, 16], "count": 4,
                    "chunks": ["contiguous", [1, 16, 16], [32, 4, 16], [4, 4, 4]]},
    "compress": {"shape_per_rank": [4, 16, 16], "chunks": [1, 16, 16]},
    "exchange": {"shape_per_rank": [3, 2, 4, 4]},
    "hdf5-2": {},
    "lost-data": {},
    "netcdf-uncompressed": {"shape_per_rank": [4, 8, 8],
                            "chunks": ["contiguous", "rank_part", [1, 8, 8]]},
    "nodes": {"shape_per_rank": [64, 16]},
    "open": {},
    "zarr-3": {"shape_per_rank": [4, 8, 8], "chunks": [2, 4, 8]},
    "zarr-inodes": {"shape_per_rank": [8, 4, 4], "chunks": [1, 4, 4],
                    "zarr.shards": [None, [2, 4, 4], [4, 4, 4], [8, 4, 4]]},
}  # fmt: skip
OTHERS = {"shape_per_rank": [8, 8, 8]}
#: `make test` runs these; all are planned there, and those of two environments start 16 ranks.
SAMPLE = ("chunk-shape",)


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.stem, marks=[pytest.mark.full] * (path.stem not in SAMPLE))
     for path in FILES],
)  # fmt: skip
def test_a_question_runs_by_its_name_on_four_ranks_and_ends_in_a_sentence(path, tmp_path):
    changes = {"repetitions": 1, "warmup": 0, **SMALL.get(path.stem, OTHERS)}
    experiment = load_experiment(str(path)).experiment
    if several := experiment.environments:
        here = [{"name": one.name, "python": sys.executable} for one in several]
        changes |= {"environments": here, "step_repetitions": 1}
    sets = [f"--set={key}={json.dumps(value)}" for key, value in changes.items()]
    sets += ["--trust"] if several else []
    done = pffbench_cli(
        "run", f"question:{path.stem}", *sets, "--out", tmp_path / "out", "--scratch", tmp_path,
        cwd=tmp_path, ranks=None if several else 4, env={"COLUMNS": "2000"},
    )  # fmt: skip
    assert done.status == 0, done.said
    if experiment.unsafe:
        assert re.search(r"^UNSAFE: every byte compared, ", done.stdout, re.MULTILINE), done.said
        assert re.search(r"^LOSSES: \w.*\bways?\b", done.stdout, re.MULTILINE)
        return
    assert re.search(r"^VALID: every byte verified, ", done.stdout, re.MULTILINE), done.said
    if path.stem == "after-a-kill":
        assert re.search(r"^KEPT: \d+ of 17 ways keep", done.stdout, re.MULTILINE), done.said
        return
    # One round decides nothing: the sentence says why, and a command what to run instead.
    assert re.search(r"^NO ANSWER: (?s:.+)\bpffbench run (?s:.+)--set", done.stdout, re.MULTILINE)
