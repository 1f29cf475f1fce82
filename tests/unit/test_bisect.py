"""`pffbench bisect`: its input, the order of versions, and its halving; nothing is measured."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from pffbench.environments import bisect as module
from pffbench.environments.bisect import Search, TriedVersion, bisect
from pffbench.errors import NOT_VALID, VALID, UserError
from pffbench.summary.rank_test import Ratio

CASE = str(Path(__file__).resolve().parents[2] / "configs" / "many-datasets.yaml")
#: In no order: 1.10 is later than 1.9.
VERSIONS = ("1.10", "1.9", "1.2", "1.3", "1.3.1", "1.11", "1.4")
ORDER = ("1.0", "1.2", "1.3", "1.3.1", "1.4", "1.9", "1.10", "1.11", "2.0")


def search(tmp_path, **changes):
    given = {
        "experiment": CASE, "good": "h5py==1.0", "bad": "h5py==2.0", "total": "write_total",
        "versions": VERSIONS, "out": str(tmp_path / "out"), "launcher": None, "arguments": (),
    }  # fmt: skip
    return Search(**given | changes)


@pytest.fixture
def planted(monkeypatch):
    """Return a function that plants the first slow version, and those that are undecided."""

    def plant(first_slow, undecided=()):
        tried = []

        class Trials:
            def __init__(self, *arguments):
                pass

            def of(self, version, *_):
                tried.append(version)
                slow = ORDER.index(version) >= ORDER.index(first_slow) if first_slow else False
                standing = "slower" if slow else "equal"
                standing = "undecided" if version in undecided else standing
                ratio = Ratio(20, 1.3 if slow else 1.0, 0.9, 1.4, 0.01)
                return TriedVersion(version, ratio, standing, 20, None, f"out/{version}")

        monkeypatch.setattr(module, "_Trials", Trials)
        monkeypatch.setattr(module, "_reason", lambda trial, _: f"because of {trial.version}")
        return tried

    return plant


@pytest.mark.parametrize("first_slow", ORDER[1:])
def test_the_first_slow_version_is_found_in_few_runs(first_slow, planted, tmp_path):
    tried, said = planted(first_slow), []
    assert bisect(search(tmp_path), said.append) == VALID
    before = ORDER[ORDER.index(first_slow) - 1]
    assert said[-2] == (
        f"FOUND: h5py {first_slow} is the first slow version; {before} is the last fast one"
    )
    assert said[-1] == f"because of {first_slow}"
    assert len(tried) <= 4
    assert len(said) == 3 + len(tried)


def test_without_a_difference_nothing_is_searched(planted, tmp_path):
    tried, said = planted(None), []
    assert bisect(search(tmp_path), said.append) == NOT_VALID
    assert tried == ["2.0"]
    assert said[-1].startswith("NOT SHOWN: ")


def test_an_undecided_version_ends_the_search_with_what_is_known(planted, tmp_path):
    planted("1.4", undecided=("1.3",))
    said = []
    assert bisect(search(tmp_path), said.append) == NOT_VALID
    assert said[-1] == "NOT DECIDED: it became slower after h5py 1.0, in 1.4 at the latest"


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
    ],
)
def test_bad_input_is_one_sentence(changes, sentence, tmp_path):
    with pytest.raises(UserError, match=sentence):
        bisect(search(tmp_path, **changes), print)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("calls", "cpu", "said"),
    [
        ({"write_calls": 30}, 2.0, "changed counts: system calls in write (write_calls) 10 → 30"),
        ({"write_calls": 10}, 2.0, "it is processor time (processor seconds of a rank +1, of +1"),
        ({"write_calls": 10}, 0.1, "mostly waiting (processor seconds of a rank +0.05, of +1"),
        ({"write_calls": 10}, None, "processor time was not recorded"),
        ({}, 2.0, "were not counted here, so no layer is named"),
    ],
)
def test_the_reason_is_no_more_than_what_was_counted(calls, cpu, said):
    def case(name, seconds, cpu_seconds, counted):
        total = SimpleNamespace(seconds=SimpleNamespace(median=seconds), cpu_seconds=cpu_seconds)
        return SimpleNamespace(
            sample=SimpleNamespace(environment=name, ranks=2), phases={"write_total": total},
            counts={("write", counter): count for counter, count in counted.items()},
        )  # fmt: skip

    fast = case("1.0", 1.0, 0.0, dict.fromkeys(calls, 10))
    summary = SimpleNamespace(cases=[fast, case("2.0", 2.0, cpu, calls)])
    trial = TriedVersion("2.0", None, "slower", 20, summary, "out")
    assert said in module._reason(trial, "write_total")
