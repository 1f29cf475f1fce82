"""`pffbench instructions`: what it makes of callgrind's counts; one real count is marked slow."""

import json
import os
import re
import shutil
import sys

import pytest
import yaml

from launch import pffbench_cli
from pffbench_environments.instructions import total_of

CASE = {"workload": "datasets", "backend": "hdf5", "layout": "file_per_process", "datasets": 50,
        "shape": [4]}  # fmt: skip
#: Counts 1000 for the start, and for each dataset what the environment plants.
VALGRIND = f"""#!{sys.executable}
import json, os, sys
out = next(a for a in sys.argv if a.startswith("--callgrind-out-file=")).split("=")[1]
experiment = json.load(open(next(a for a in sys.argv if a.endswith("experiment.yaml"))))
assert experiment["repetitions"] == 1 and experiment["warmup"] == 0, experiment
assert not os.path.exists(sys.argv[sys.argv.index("--out") + 1])
(case,) = experiment["cases"]
each = next((a[5:] for a in sys.argv if a.startswith("EACH=")), "0")
if each == "fail":
    sys.exit("pffbench: it is broken")
called = "--toggle-collect=H5Dcreate2" in sys.argv
open(out, "w").write(f"events: Ir\\ntotals: {{1000 + called * int(each) * case['datasets']}}\\n")
"""


@pytest.fixture
def count(tmp_path):
    """Return a function that counts in environments that plant so much for each dataset."""
    (tmp_path / "valgrind").write_text(VALGRIND)
    (tmp_path / "valgrind").chmod(0o755)

    def count(planted, *arguments, path=True, **changes):
        environments = [{"name": f"e{n}", "command": f"env EACH={each} {sys.executable}"}
                        for n, each in enumerate(planted)]  # fmt: skip
        told = {"name": "x", "cases": [CASE], "environments": environments} | changes
        (tmp_path / "x.yaml").write_text(yaml.safe_dump(told))
        where = f"{tmp_path}:{os.environ['PATH']}" if path else "/nowhere"
        (function,) = arguments or ["H5Dcreate2"]
        told = ["instructions", "x.yaml", "--scratch", tmp_path, "--function", function]
        return pffbench_cli(*told, cwd=tmp_path, env={"PATH": where})

    return count


def test_the_start_cancels_and_the_first_environment_is_the_reference(count, tmp_path):
    done = count([60000, 75000])
    assert (done.status, done.stderr) == (0, "")
    assert done.stdout.count("twice under valgrind") == 2  # a line before each count
    assert done.stdout.splitlines()[2:] == [
        "H5Dcreate2, for each dataset:",
        "e0: 60,000 instructions",
        "e1: 75,000 instructions, 1.250 times e0",
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["valgrind", "x.yaml"]


def test_each_case_has_a_reference_of_its_own(count):
    done = count([100, 50], cases=[{**CASE, "hdf5": {"libver": ["v108", "latest"]}}])
    assert len(re.findall(r"in e0: 100 instructions$", done.stdout, re.MULTILINE)) == 2
    assert done.stdout.count("in e1: 50 instructions, 0.500 times e0") == 2


@pytest.mark.parametrize(
    ("planted", "arguments", "changes", "sentence"),
    [
        ([5], ["H5Dopen2"], {}, "e0: H5Dopen2: no such function was called for the datasets"),
        (["fail"], [], {}, "e0: it is broken"),
        ([], [], {}, "x.yaml: it names no environments"),
        ([5], [], {"cases": [{**CASE, "workload": "hyperslab", "datasets": 1}]}, "unknown"),
        ([5], [], {"cases": [{"workload": "hyperslab", "backend": "hdf5", "shape": [4]}]},
         "here is a case of hyperslab"),
        ([5], [], {"path": False}, "valgrind, which counts the instructions, is not installed"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(planted, arguments, changes, sentence, count):
    done = count(planted, *arguments, **changes)
    assert done.status == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert "for each dataset:" not in done.stdout


def test_a_file_without_a_sum_counts_nothing():
    assert total_of("events: Ir\n") == 0
    assert total_of("summary: 7\n\ntotals: 70\n") == 70


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_an_environment_named_twice_counts_the_same(tmp_path):
    environments = [{"name": name, "python": sys.executable} for name in ("a", "b")]
    told = {"name": "x", "cases": [CASE], "environments": environments}
    (tmp_path / "x.yaml").write_text(json.dumps(told))
    done = pffbench_cli("instructions", "x.yaml", "--function", "H5Dcreate2", "--scratch",
                        tmp_path, cwd=tmp_path, timeout=600)  # fmt: skip
    (ratio,) = re.findall(r"b: [\d,]+ instructions, (.*) times a", done.stdout)
    assert abs(float(ratio) - 1) < 0.002
