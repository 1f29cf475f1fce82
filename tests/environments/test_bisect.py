"""`pffbench bisect`: its input, the order of versions, and its halving; nothing is measured."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import sys
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace

import pytest
import yaml

from pffbench.errors import INTERRUPTED, NOT_VALID, VALID, StoppedError, UserError
from pffbench.experiment.load import from_data
from pffbench.job.batch_job import StopSignals
from pffbench.results.judge import START, Ratio, Verdict
from pffbench_environments.bisect import search as module
from pffbench_environments.bisect import versions
from pffbench_environments.bisect.instructions import count_instructions
from pffbench_environments.bisect.judging import Question, count_of, looks_of, reason
from pffbench_environments.bisect.search import Search, TriedVersion, bisect, halve

CASE = str(Path(__file__).resolve().parents[2] / "configs" / "many-datasets.yaml")
SHARDS = CASE.replace("many-datasets", "shard-write")
#: In no order: 1.10 is later than 1.9.
VERSIONS = ("1.10", "1.9", "1.2", "1.3", "1.3.1", "1.11", "1.4")
ORDER = ("1.0", "1.2", "1.3", "1.3.1", "1.4", "1.9", "1.10", "1.11", "2.0")


def search(tmp_path, **changes):
    given = {
        "case": CASE, "good": "h5py==1.0", "bad": "h5py==2.0", "total": "write", "count": None,
        "versions": VERSIONS, "out": str(tmp_path / "out"), "launcher": None, "scratch": None,
        "resume": None,
    }  # fmt: skip
    return Search(**given | changes)


@pytest.fixture
def planted(monkeypatch):
    """Return a function that plants the first other version, and those that are undecided.

    Versions in `a_little` differ too, by less than half of it.
    """

    def plant(first_other, undecided=(), a_little=(), factor=1.3, lasting=True):
        tried = []

        class Trials:
            def __init__(self, *arguments):
                pass

            def begin(self):
                pass

            def of(self, version, question, *, again=False):
                tried.append((version, question.change))
                other = first_other and ORDER.index(version) >= ORDER.index(first_other)
                value = factor if other else factor**0.4 if version in a_little else 1.0
                standing = question.answer_by_count(value)
                standing = "open" if version in undecided else standing
                standing = "unlike" if again and not lasting else standing
                verdict = Verdict("open", Ratio(value, 0.9 * value, 1.1 * value), 20)
                return TriedVersion(version, verdict, standing, "good", version, f"out/{version}")

        monkeypatch.setattr(module, "Trials", Trials)
        monkeypatch.setattr(module, "reason", lambda *both, **_: f"because of {both[1]}")
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
    assert bisect(search(tmp_path), StopSignals(), said.append) == VALID
    before = ORDER[ORDER.index(first_other) - 1]
    assert said[-2] == (
        f"FOUND: h5py {first_other} is the first {new} version; {before} is the last {old} one"
    )
    assert said[-1] == f"because of {first_other}"
    assert len(tried) <= 5  # the bad version twice where it is the first one
    assert len(said) == 3 + len(tried)
    # The first run knows the change not yet.
    assert [change for _, change in tried] == [None] + [factor] * (len(tried) - 1)


def test_a_difference_that_is_not_there_again_is_not_found(planted, tmp_path):
    planted("2.0", lasting=False)
    said = []
    assert bisect(search(tmp_path), StopSignals(), said.append) == NOT_VALID
    assert said[-1] == "NOT SHOWN: h5py 2.0 differed once from 1.0, and not again"


def test_a_smaller_change_on_the_way_is_not_the_one_that_is_searched(planted, tmp_path):
    planted("1.9", a_little=("1.3", "1.3.1", "1.4"))
    said = []
    assert bisect(search(tmp_path), StopSignals(), said.append) == VALID
    assert said[-2].startswith("FOUND: h5py 1.9 is the first slow version; 1.4 is the last fast")


def test_a_count_has_its_own_words(planted, tmp_path):
    planted("1.4")
    said = []
    assert bisect(search(tmp_path, count="write_calls"), StopSignals(), said.append) == VALID
    assert "more write_calls, 20 rounds" in said[1]
    assert said[-2] == (
        "FOUND: h5py 1.4 is the first version with other write_calls; 1.3.1 is the last one without"
    )


def test_instructions_of_a_function_are_named(planted, valgrind, tmp_path):
    planted("1.4")
    said = []
    wanted = search(tmp_path, count="instructions:H5Dcreate2", case=CASE)
    assert bisect(wanted, StopSignals(), said.append) == VALID
    assert "h5py 2.0: 1.300 times the good version" in said[1]
    assert "more instructions in H5Dcreate2" in said[1]
    assert said[-2] == (
        "FOUND: h5py 1.4 is the first version with other instructions in H5Dcreate2; 1.3.1 is the "
        "last one without"
    )


@pytest.mark.full
def test_instructions_of_a_version_are_counted_beside_the_good_one(valgrind, monkeypatch, tmp_path):
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
    monkeypatch.setattr(versions, "CHECKOUT", tmp_path)
    case = {"workload": "datasets", "backend": "hdf5", "datasets": 8, "shape": [4]}
    (tmp_path / "x.yaml").write_text(yaml.safe_dump({"name": "x", "cases": [case]}))
    said = []
    wanted = search(
        tmp_path, count="instructions:H5Dcreate2", case=str(tmp_path / "x.yaml"),
        versions=("1.0",), launcher="env", scratch=str(tmp_path),
    )  # fmt: skip
    assert bisect(wanted, StopSignals(), said.append) == VALID, said
    assert "h5py 2.0: 2.500 times the good version, more instructions in H5Dcreate2" in said[1]
    assert said[2].startswith("FOUND: h5py 2.0 is the first version with other instructions")


def instructions_here(tmp_path, function="H5Dcreate2"):
    case = {"workload": "datasets", "backend": "hdf5", "datasets": 8, "shape": [4],
            "files": "per_rank"}  # fmt: skip
    told = {"name": "x", "cases": [case], "environments": [{"name": "a", "python": sys.executable}]}
    loaded = from_data(told, "x.yaml")
    return count_instructions(loaded, function, str(tmp_path), StopSignals())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('all="$*"; out=${all#*--callgrind-out-file=}; echo "totals: 7" >"${out%% *}"',
         "a: H5Dcreate2: no such function was called"),
        ('all="$*"; out=${all#*--callgrind-out-file=}; echo >"${out%% *}"',
         "a: H5Dcreate2: no such function was called"),
        ("echo pffbench: it is broken >&2; exit 1", "a: it is broken"),
    ],
)  # fmt: skip
def test_instructions_that_cannot_be_counted_are_one_sentence(text, sentence, valgrind, tmp_path):
    script(valgrind, text)
    with pytest.raises(UserError, match=sentence):
        instructions_here(tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_the_same_environment_needs_the_same_instructions(tmp_path):
    counts = [instructions_here(tmp_path) for _ in range(2)]
    assert counts[0] == pytest.approx(counts[1], rel=0.002)


def script(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/bash\nset -eu\n" + dedent(text))
    path.chmod(0o755)


def test_without_a_difference_nothing_is_searched(planted, tmp_path):
    tried, said = planted(None), []
    assert bisect(search(tmp_path), StopSignals(), said.append) == NOT_VALID
    assert [version for version, _ in tried] == ["2.0"]
    assert said[-1] == "NOT SHOWN: h5py 2.0 is not shown to be slower or faster than 1.0"


def test_an_undecided_version_ends_the_search_with_what_is_known(planted, tmp_path):
    planted("1.4", undecided=("1.3",))
    said = []
    assert bisect(search(tmp_path), StopSignals(), said.append) == NOT_VALID
    assert said[-1] == "NOT DECIDED: it changed after h5py 1.0, in 1.4 at the latest"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"good": "h5py"}, "--good h5py: name one version"),
        ({"bad": "h5py>=3"}, "--bad h5py>=3: name one version"),
        ({"bad": "zarr==3.1.0"}, "of another package"),
        ({"bad": "h5py==1.0"}, "must be an earlier version"),
        ({"versions": ("1.1", "x")}, "x is not a version"),
        ({"case": "no.yaml"}, "no.yaml: cannot be read"),
        ({"case": CASE.replace("many-datasets", "smallest")}, "an experiment with one case"),
        ({"out": CASE}, "already there"),
        ({"count": "instructions:"}, "name the library function to count in"),
        ({"count": "instructions:f", "case": SHARDS}, "here is a case of hyperslab"),
    ],
)
def test_bad_input_is_one_sentence(changes, sentence, valgrind, tmp_path):
    with pytest.raises(UserError, match=sentence):
        bisect(search(tmp_path, **changes), StopSignals(), print)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("calls", "seconds", "cpu", "said"),
    [
        ({"write_calls": 30}, 2.0, 2.0, "in write (write_calls) 10 → 30; it is processor"),
        ({"write_calls": 10}, 2.0, 2.0, "it is processor time (processor seconds of a rank +1"),
        ({"write_calls": 10}, 0.1, -1.6, "it is processor time (processor seconds of a rank -0.8"),
        ({"write_calls": 10}, 2.0, 0.1, "mostly waiting (processor seconds of a rank +0.05, of +1"),
        ({}, 2.0, 2.0, "were not counted here, so no layer is named"),
    ],
)
def test_the_reason_is_no_more_than_what_was_counted(calls, seconds, cpu, said):
    def case(name, seconds, cpu_seconds, counted):
        total = SimpleNamespace(seconds=SimpleNamespace(median=seconds), cpu_seconds=cpu_seconds)
        return SimpleNamespace(
            name=name, ranks=2, phases={"write_total": total},
            counts={("write", counter): count for counter, count in counted.items()},
        )  # fmt: skip

    fast = case("1.0", 1.0, 0.0, dict.fromkeys(calls, 10))
    both = fast, case("2.0", seconds, cpu, calls), "write"
    assert said in reason(*both, timed=True)
    assert "processor" not in reason(*both, timed=False)


def test_a_count_is_that_of_all_phases_of_the_time():
    counts = {("define", "write_calls"): 9.0, ("write", "write_calls"): 1.0,
              ("read", "write_calls"): 99.0}  # fmt: skip
    case = SimpleNamespace(counts=counts)
    assert count_of(case, "write", "write_calls") == 10.0
    assert count_of(case, "write", "x") == 0.0


def rounds(drawn, effect, deviation, count):
    """Return seconds of a version and of the good one, whose ratio has this effect and noise."""
    state = [drawn.gauss(0, 0.1) for _ in range(count)]  # of the machine, which both have
    new = {START * n: math.exp(s + drawn.gauss(effect, deviation)) for n, s in enumerate(state)}
    return new, {START * n: math.exp(s) for n, s in enumerate(state)}


def asked(drawn, question, effect, deviation, most=40):
    """Run rounds until a question is answered; return the answer, the verdict and the rounds."""
    both = rounds(drawn, effect, deviation, most)
    for n in looks_of(most):
        some = [dict(list(way.items())[:n]) for way in both]
        standing, verdict = question.answer(*some, most)
        if standing not in ("same", "open"):
            break
    return standing, verdict, n


def place_found(drawn, effects, deviation):
    """Return the place of the version that a search finds among effects; None without one."""

    class Trials:
        def of(self, version, question, **_):
            standing, verdict, _ = asked(drawn, question, effects[int(version)], deviation)
            return TriedVersion(version, verdict, standing, "good", version, "out")

    said = []
    places = [str(place) for place in range(len(effects))]
    halve(search(Path()), Trials(), "x", places, said.append)
    found = [line.split()[2] for line in said if line.startswith("FOUND")]
    return int(found[0]) if found else None


@pytest.mark.parametrize(
    ("change", "deviation", "earlier"),
    [(1.06, 0.05, 0), (1.1, 0.05, 0), (1.1, 0.05, 0.25), (1.2, 0.08, 0), (1.2, 0.08, 0.25)],
)
def test_a_version_that_is_found_is_seldom_the_wrong_one(change, deviation, earlier, monkeypatch):
    monkeypatch.setattr(module, "reason", lambda *_, **__: "")
    drawn, effect = random.Random(5), math.log(change)
    # With a step of a part of the effect three versions before.
    effects = [0] * 3 + [earlier * effect] * 3 + [effect] * 3
    found = [place_found(drawn, effects, deviation) for _ in range(60)]
    wrong = [place for place in found if place not in (6, None)]
    assert len(wrong) <= 3, found
    if change > 1.09:
        assert found.count(6) >= 30, found


def test_without_a_change_no_version_is_found(monkeypatch):
    monkeypatch.setattr(module, "reason", lambda *_, **__: "")
    drawn = random.Random(6)
    assert [place_found(drawn, [0] * 9, 0.05) for _ in range(100)] == [None] * 100


def test_a_large_ratio_is_decided_at_the_first_look():
    standing, _, n = asked(random.Random(1), Question(), math.log(8), 0.3)
    assert (standing, n) == ("slower", 7)
    standing, _, n = asked(random.Random(1), Question(8.0), math.log(8), 0.3)
    assert (standing, n) == ("like", 7)


def test_an_interval_around_the_half_way_point_decides_nothing():
    both = rounds(random.Random(2), math.log(1.1) / 2, 0.02, 40)
    assert Question(1.1).answer(*both, 40)[0] == "open"


@pytest.fixture
def checkout(monkeypatch, tmp_path):
    """A checkout whose environments are this Python; return the files that note their starts."""
    script(tmp_path / "setup" / "env", """\
        mkdir -p "$(dirname "$0")/../.envs/$1/bin"
        printf '#!/bin/bash\\nVERSION=%s exec "$PYTHON" "$@"\\n' "$1" \\
            >"$(dirname "$0")/../.envs/$1/bin/python"
        chmod +x "$(dirname "$0")/../.envs/$1/bin/python"
    """)  # fmt: skip
    monkeypatch.setenv("PYTHON", sys.executable)
    monkeypatch.setattr(versions, "CHECKOUT", tmp_path)
    case = {"workload": "datasets", "backend": "npy", "datasets": 8, "shape": [4],
            "files": "per_rank"}  # fmt: skip
    (tmp_path / "x.yaml").write_text(yaml.safe_dump({"name": "x", "cases": [case]}))

    def wanted(**changes):
        given = {"case": str(tmp_path / "x.yaml"), "versions": ("1.0",), "launcher": "env",
                 "scratch": str(tmp_path), "count": "write_calls"}  # fmt: skip
        return search(tmp_path, **given | changes)

    return wanted


#: Makes a version slow.
SLOW = """
import os, time
if os.environ.get("VERSION") == "h5py-2.0":
    from pffbench.backends.npy import NpyArray
    write_call = NpyArray.write_call
    def slow(self, *arguments):
        call = write_call(self, *arguments)
        return lambda: [time.sleep(0.02), call()][1]
    NpyArray.write_call = slow
"""


@pytest.mark.full
def test_a_slow_version_is_found_with_the_reason(checkout, monkeypatch, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(SLOW)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    said = []
    assert bisect(checkout(count=None, versions=("1.0",)), StopSignals(), said.append) == VALID
    assert "slower, 7 rounds" in said[1]
    assert "like the bad version, 7 rounds" in said[2]
    assert said[3] == "FOUND: h5py 2.0 is the first slow version; 1.0 is the last fast one"
    assert "mostly waiting" in said[4]


@pytest.mark.full
def test_an_unknown_count_leaves_nothing(checkout, tmp_path):
    named = r"--count zzz: nothing is counted by that name; counted are: .*write_calls"
    with pytest.raises(UserError, match=named):
        bisect(checkout(count="zzz"), StopSignals(), print)
    assert not (tmp_path / "out").exists()


def test_a_stopped_search_goes_on_with_the_same_options_alone(checkout, tmp_path):
    stop = StopSignals()
    stop.asked = True
    with pytest.raises(StoppedError, match=r"--resume \S*/out") as raised:
        bisect(checkout(), stop, print)
    assert raised.value.exit_status == INTERRUPTED
    with pytest.raises(UserError, match=r"another search \(total\)"):
        bisect(checkout(resume=str(tmp_path / "out"), total="read"), StopSignals(), print)
    said = []
    assert bisect(checkout(resume=str(tmp_path / "out")), StopSignals(), said.append) == NOT_VALID
    assert said[-1].startswith("NOT SHOWN"), said
    record = tmp_path / "out" / "1.0-2.0" / "run.json"
    before = record.read_bytes()
    assert json.loads(before)["status"] == "finished"
    assert bisect(checkout(resume=str(tmp_path / "out")), StopSignals(), said.append) == NOT_VALID
    assert record.read_bytes() == before  # not measured again


def test_versions_of_thousands_of_digits_are_none(tmp_path):
    with pytest.raises(UserError, match="name one version of a package"):
        bisect(search(tmp_path, bad="h5py==" + "9" * 5000), StopSignals(), print)
