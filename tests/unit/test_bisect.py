"""`pffbench bisect`: its input, the order of versions, and its halving; nothing is measured."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace

import pytest
import yaml

from pffbench.environments import bisect as module
from pffbench.environments.bisect import Search, TriedVersion, bisect
from pffbench.errors import NOT_VALID, VALID, UserError
from pffbench.summary.rank_test import Ratio

CASE = str(Path(__file__).resolve().parents[2] / "configs" / "many-datasets.yaml")
SHARDS = CASE.replace("many-datasets", "shard-write")
#: In no order: 1.10 is later than 1.9.
VERSIONS = ("1.10", "1.9", "1.2", "1.3", "1.3.1", "1.11", "1.4")
ORDER = ("1.0", "1.2", "1.3", "1.3.1", "1.4", "1.9", "1.10", "1.11", "2.0")


def search(tmp_path, **changes):
    given = {
        "experiment": CASE, "good": "h5py==1.0", "bad": "h5py==2.0", "total": "write_total",
        "count": None, "margin": 0.02, "versions": VERSIONS, "out": str(tmp_path / "out"),
        "launcher": None, "scratch": None,
    }  # fmt: skip
    return Search(**given | changes)


@pytest.fixture
def planted(monkeypatch):
    """Return a function that plants the first other version, and those that are undecided.

    Versions in `a_little` differ too, by less than half of it.
    """

    def plant(first_other, undecided=(), a_little=(), factor=1.3):
        tried = []

        class Trials:
            def __init__(self, *arguments):
                pass

            def of(self, version, margin):
                tried.append((version, margin))
                other = first_other and ORDER.index(version) >= ORDER.index(first_other)
                change = "more" if factor > 1 else "less"
                standing = change if other or version in a_little else "equal"
                standing = "undecided" if version in undecided else standing
                value = factor if other else factor**0.4 if version in a_little else 1.0
                ratio = Ratio(20, value, 0.9 * value, 1.1 * value, 0.01)
                return TriedVersion(version, ratio, standing, None, f"out/{version}")

        monkeypatch.setattr(module, "_Trials", Trials)
        monkeypatch.setattr(module, "_reason", lambda trial, _: f"because of {trial.version}")
        return tried

    return plant


@pytest.fixture
def valgrind(monkeypatch, tmp_path):
    """Return the file of a valgrind that is found first; a system without one has it too."""
    file = tmp_path / "bin" / "valgrind"
    script(file, "exit 1")
    monkeypatch.setenv("PATH", f"{file.parent}:{os.environ['PATH']}")
    return file


@pytest.mark.parametrize(("factor", "old", "new"), [(1.3, "fast", "slow"), (0.1, "slow", "fast")])
@pytest.mark.parametrize("first_other", ORDER[1:])
def test_the_first_changed_version_is_found_in_few_runs(
    first_other, factor, old, new, planted, tmp_path
):
    tried, said = planted(first_other, factor=factor), []
    assert bisect(search(tmp_path), said.append) == VALID
    before = ORDER[ORDER.index(first_other) - 1]
    assert said[-2] == (
        f"FOUND: h5py {first_other} is the first {new} version; {before} is the last {old} one"
    )
    assert said[-1] == f"because of {first_other}"
    assert len(tried) <= 4
    assert len(said) == 3 + len(tried)
    # Half of the difference on the logarithm decides; the first run knows none yet.
    assert [margin for _, margin in tried] == pytest.approx(
        [0.02] + [max(factor, 1 / factor) ** 0.5 - 1] * (len(tried) - 1)
    )


def test_a_smaller_change_on_the_way_is_not_the_one_that_is_searched(planted, tmp_path):
    planted("1.9", a_little=("1.3", "1.3.1", "1.4"))
    said = []
    assert bisect(search(tmp_path), said.append) == VALID
    assert said[-2].startswith("FOUND: h5py 1.9 is the first slow version; 1.4 is the last fast")


def test_a_count_has_its_own_words(planted, tmp_path):
    planted("1.4")
    said = []
    assert bisect(search(tmp_path, count="write_calls"), said.append) == VALID
    assert "more write_calls, 20 repetitions" in said[1]
    assert said[-2] == (
        "FOUND: h5py 1.4 is the first version with other write_calls; 1.3.1 is the last one without"
    )


def test_instructions_of_a_function_are_named(planted, valgrind, tmp_path):
    planted("1.4")
    said = []
    wanted = search(tmp_path, count="instructions:H5Dcreate2", experiment=CASE)
    assert bisect(wanted, said.append) == VALID
    assert "h5py 2.0: 1.300 times the good version" in said[1]
    assert "more instructions in H5Dcreate2" in said[1]
    assert said[-2] == (
        "FOUND: h5py 1.4 is the first version with other instructions in H5Dcreate2; 1.3.1 is the "
        "last one without"
    )


def test_instructions_of_a_version_are_counted_beside_the_good_one(
    valgrind, monkeypatch, tmp_path
):
    """A run of real ranks; the versions and what callgrind would say are planted."""
    script(tmp_path / "setup" / "env", """\
        mkdir -p "$(dirname "$0")/../.envs/$1/bin"
        printf '#!/bin/bash\\nexec "$PYTHON" "$@"\\n' >"$(dirname "$0")/../.envs/$1/bin/python"
        chmod +x "$(dirname "$0")/../.envs/$1/bin/python"
    """)  # fmt: skip
    script(valgrind, """\
        all="$*"; out=${all#*--callgrind-out-file=}; each=100
        if [[ $all == *h5py-2.0/* ]]; then each=250; fi
        file=${all#* run }; file=${file%% *}
        datasets=$(grep -o '"datasets": [0-9]*' "$file" | grep -o '[0-9]*$')
        echo "totals: $((7 + each * datasets))" >"${out%% *}"
    """)  # fmt: skip
    monkeypatch.setenv("PYTHON", sys.executable)
    monkeypatch.setattr(module, "_CHECKOUT", tmp_path)
    case = {"workload": "datasets", "backend": "hdf5", "datasets": 8, "shape": [4]}
    (tmp_path / "x.yaml").write_text(yaml.safe_dump({"name": "x", "cases": [case]}))
    said = []
    wanted = search(
        tmp_path, count="instructions:H5Dcreate2", experiment=str(tmp_path / "x.yaml"),
        versions=("1.0",), launcher="env", scratch=str(tmp_path),
    )  # fmt: skip
    assert bisect(wanted, said.append) == VALID, said
    assert "h5py 2.0: 2.500 times the good version, more instructions in H5Dcreate2" in said[1]
    assert said[2].startswith("FOUND: h5py 2.0 is the first version with other instructions")


def script(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/bash\nset -eu\n" + dedent(text))
    path.chmod(0o755)


def test_without_a_difference_nothing_is_searched(planted, tmp_path):
    tried, said = planted(None), []
    assert bisect(search(tmp_path), said.append) == NOT_VALID
    assert [version for version, _ in tried] == ["2.0"]
    assert said[-1] == "NOT SHOWN: h5py 2.0 is not shown to be slower or faster than 1.0"


def test_an_undecided_version_ends_the_search_with_what_is_known(planted, tmp_path):
    planted("1.4", undecided=("1.3",))
    said = []
    assert bisect(search(tmp_path), said.append) == NOT_VALID
    assert said[-1] == "NOT DECIDED: it changed after h5py 1.0, in 1.4 at the latest"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"good": "h5py"}, "--good h5py: name one version"),
        ({"bad": "h5py>=3"}, "--bad h5py>=3: name one version"),
        ({"bad": "zarr==3.1.0"}, "of another package"),
        ({"bad": "h5py==1.0"}, "must be an earlier version"),
        ({"versions": ("1.1", "x")}, "x is no version"),
        ({"experiment": "no.yaml"}, "no.yaml: cannot be read"),
        ({"experiment": CASE.replace("many-datasets", "smallest")}, "an experiment with one case"),
        ({"out": CASE}, "already there"),
        ({"count": "instructions:"}, "name the library function to count in"),
        ({"count": "instructions:f", "experiment": SHARDS}, "here is a case of hyperslab"),
    ],
)
def test_bad_input_is_one_sentence(changes, sentence, valgrind, tmp_path):
    with pytest.raises(UserError, match=sentence):
        bisect(search(tmp_path, **changes), print)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("calls", "seconds", "cpu", "said"),
    [
        ({"write_calls": 30}, 2.0, 2.0, "in write (write_calls) 10 → 30; it is processor"),
        ({"write_calls": 10}, 2.0, 2.0, "it is processor time (processor seconds of a rank +1"),
        ({"write_calls": 10}, 0.1, -1.6, "it is processor time (processor seconds of a rank -0.8"),
        ({"write_calls": 10}, 2.0, 0.1, "mostly waiting (processor seconds of a rank +0.05, of +1"),
        ({"write_calls": 10}, 2.0, None, "processor time was not recorded"),
        ({}, 2.0, 2.0, "were not counted here, so no layer is named"),
    ],
)
def test_the_reason_is_no_more_than_what_was_counted(calls, seconds, cpu, said):
    def case(name, seconds, cpu_seconds, counted):
        total = SimpleNamespace(seconds=SimpleNamespace(median=seconds), cpu_seconds=cpu_seconds)
        return SimpleNamespace(
            sample=SimpleNamespace(environment=name, ranks=2), phases={"write_total": total},
            counts={("write", counter): count for counter, count in counted.items()},
        )  # fmt: skip

    fast = case("1.0", 1.0, 0.0, dict.fromkeys(calls, 10))
    summary = SimpleNamespace(cases=[fast, case("2.0", seconds, cpu, calls)])
    trial = TriedVersion("2.0", None, "more", summary, "out")
    assert said in module._reason(trial, "write_total")


def test_a_count_is_compared_and_its_name_must_be_known():
    def case(name, calls):
        counts = {("define", "write_calls"): calls, ("write", "write_calls"): 1.0,
                  ("read", "write_calls"): 99.0}  # fmt: skip
        return SimpleNamespace(sample=SimpleNamespace(environment=name), counts=counts)

    summary = SimpleNamespace(cases=[case("1.0", 9.0), case("2.0", 19.0)])
    wanted = search(Path(), count="write_calls")
    trial = module._trial("2.0", "1.0", wanted, summary, "out")
    assert (trial.ratio.value, trial.standing) == (2.0, "more")
    with pytest.raises(UserError, match=r"--count x: nothing .* counted are: write_calls"):
        module._trial("2.0", "1.0", search(Path(), count="x"), summary, "out")
