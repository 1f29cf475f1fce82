"""A run beside other processes that use the processors, which its verdict names."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
import yaml
from test_answer_commands import run_printed

from launch import pffbench_cli
from pffbench.results.summary import summarise

pytestmark = pytest.mark.parallel
EXPERIMENT = {
    "name": "busy", "repetitions": 2, "warmup": 0, "roofline": False,
    "cases": [{"workload": "hyperslab", "backend": "hdf5", "shape_per_rank": [512, 1024],
               "files": "per_rank",
               "codec": "gzip", "level": 9}],
}  # fmt: skip


def test_processes_beside_a_run_are_named_and_the_printed_command_runs_it_again(tmp_path):
    (tmp_path / "busy.yaml").write_text(yaml.safe_dump(EXPERIMENT))
    # From the first repetition on: what comes before is not measured.
    begun = "while not glob.glob(sys.argv[1]): time.sleep(0.01)"
    spinning = [sys.executable, "-c", f"import glob, sys, time\n{begun}\nwhile True: pass",
                str(tmp_path / "*" / "0000-*")]  # fmt: skip
    count = len(os.sched_getaffinity(0))
    others = [subprocess.Popen(spinning) for _ in range(count)]
    try:
        done = pffbench_cli("run", "busy.yaml", "--out", tmp_path / "run", "--scratch", tmp_path,
                            cwd=tmp_path)  # fmt: skip
    finally:
        for process in others:
            process.kill()
            process.wait()
    assert done.status == 0, done.said
    busy = r"^NO ANSWER: BUSY: others used (\d+)% of the processors"
    found = re.search(busy, done.stdout, re.MULTILINE)
    assert found, done.said
    assert int(found[1]) > 30
    again = run_printed(done.stdout, tmp_path)
    assert {case.repetitions for case in summarise(again).cases} == {2}
