"""Runs of two environments as one: cases side by side, compared as independent repetitions."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from drawn_runs import BYTES, a_case, a_run, timed_run
from launch import REPOSITORY, entries_below
from pffbench.backends import registry as needs
from pffbench.cli import make_parser
from pffbench.commands.report import main as report_command
from pffbench.errors import UserError
from pffbench.experiment.check import make_plan
from pffbench.experiment.load import load_experiment
from pffbench.record.counters import append_counts
from pffbench.record.gather import Count
from pffbench.record.run_json import RunRecord
from pffbench.summary.columns import details
from pffbench.summary.conclusions import sentences, undecided
from pffbench.summary.dependence import variance_inflation
from pffbench.summary.join import joined, repetition
from pffbench.summary.rank_test import ratio_of_times
from pffbench.summary.summary import summarise
from pffbench_analysis.peers import import_results
from pffbench_analysis.published import side_by_side
from pffbench_analysis.report import report_joined

STUDY = {"study": "zarr-benchmarks", "seed": 1}


def codecs(backend, options):
    parameters = {
        "shape": [230, 252, 252], "chunks": [128, 128, 128], "dtype": "uint16", "source": "image",
        "codec": "blosc", "compressor": "zstd", "level": 3, "shuffle": None, "durability": "close",
    }  # fmt: skip
    name, entry = a_case(backend, workload="codecs", **parameters)
    entry["parameters"]["settings"] = "defaults"
    entry["options"] = options
    entry["cost"] = {"nbytes": BYTES}
    return name, entry


ZARR, TENSORSTORE, ZARR2 = "zarr", "tensorstore", "zarr2"
BY_NAME = {
    ZARR: codecs("zarr", {"format": 2, "shards": None, "pipeline": "library"}),
    TENSORSTORE: codecs("tensorstore", {"format": 2, "shards": None, "file_io_sync": None}),
    ZARR2: codecs("zarr2", {"format": 2, "blosc_threads": None, "write_empty_chunks": True}),
}


def libraries(**versions):
    versions |= {"h5py": "3.16.0"}  # the same in both, and found at another place
    told = {name: {"version": v, "path": str(versions)} for name, v in versions.items()}
    return {"software": {"libraries": told}}


def first(directory, **record):
    record = {"provenance": libraries(zarr="3.1.6", numcodecs="0.16.6"), **record}
    return counted(directory, {ZARR: 0.01, TENSORSTORE: 0.02}, record)


def second(directory, case=None, seconds=0.03, **record):
    record = {"provenance": libraries(zarr="2.18.7", numcodecs="0.15.1"), **record}
    return counted(directory, {case or ZARR2: seconds}, record)


def counted(directory, seconds, record):
    """Write a run whose first phase takes so long, and what its chunks take in the files."""
    speed = {BY_NAME[name][0]: taken for name, taken in seconds.items()}
    cases = [BY_NAME[name] for name in seconds]
    repetitions = record.pop("repetitions", 4)
    a_run(directory, cases, repetitions, speed, **{"experiment": STUDY, **record})
    for name, _ in cases:
        for number in range(1, repetitions + 1):
            counts = [Count("write", "stored_bytes", BYTES / 1.9, BYTES / 3.8)]
            append_counts(directory, name, number, False, counts)
    return directory


@pytest.fixture
def runs(tmp_path):
    return [first(tmp_path / "three"), second(tmp_path / "two")]


def summary_of(runs):
    return joined([(run, summarise(run)) for run in runs])


# --- the joined summary


def test_cases_of_both_stand_in_one_comparison(runs):
    found = summary_of(runs)
    (group,) = found.groups.values()
    assert [case.sample.backend for case in group] == ["zarr", "tensorstore", "zarr2"]
    assert [Path(case.run).name for case in group] == ["three", "three", "two"]
    software = found.record.provenance["software"]["libraries"]
    assert (software["zarr"]["version"], software["zarr (two)"]["version"]) == ("3.1.6", "2.18.7")
    assert set(software) == {"zarr", "numcodecs", "h5py", "zarr (two)", "numcodecs (two)"}
    assert found.record.valid
    assert "joined: three, two" in "\n".join(details(found))
    # The headline is that of a run: no look at the results was planned over both.
    assert sentences(found) == [*undecided(found)] == []


def test_ratios_across_runs_are_those_of_independent_repetitions(runs):
    zarr, tensorstore, zarr2 = summary_of(runs).cases
    alone = {case.sample.backend: case for case in summarise(runs[0]).cases}
    for case in (zarr, tensorstore):
        assert case.phases["write"].ratio == alone[case.sample.backend].phases["write"].ratio
    a, b = (c.phases["write"].by_block for c in (zarr2, zarr))
    inflation = variance_inflation([[a], [b]], 4, shared_cancels=False)
    found = zarr2.phases["write"].ratio
    assert found == ratio_of_times(a, b, inflation=inflation)
    assert found.value == pytest.approx(3)
    assert not set(zarr2.phases["write"].by_block) & set(zarr.phases["write"].by_block)
    assert [repetition(n) for n in zarr2.phases["write"].by_block] == [1, 2, 3, 4]


def test_the_best_case_may_be_of_the_second_run(tmp_path):
    runs = [first(tmp_path / "three"), second(tmp_path / "two", seconds=0.005)]
    zarr, tensorstore, zarr2 = summary_of(runs).cases
    assert zarr2.phases["write"].ratio.value == 1
    assert zarr.phases["write"].ratio.value == pytest.approx(2)
    assert tensorstore.phases["write"].ratio.value == pytest.approx(4)


def test_one_that_is_not_valid_spoils_both_and_is_named(tmp_path):
    runs = [first(tmp_path / "three"), second(tmp_path / "two", valid=False, reasons=["wrong"])]
    record = summary_of(runs).record
    assert record.valid is False
    assert record.reasons == ["two: wrong"]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"ranks": 4}, "2 ranks and .* has 4: they cannot be joined"),
        ({"experiment": STUDY | {"seed": 2}}, "differ in seed"),
        ({"experiment": {"seed": 1}}, "differ in study"),
    ],
)
def test_what_does_not_belong_together_is_refused(tmp_path, record, reason):
    runs = [first(tmp_path / "three"), second(tmp_path / "two", **record)]
    with pytest.raises(UserError, match=reason):
        summary_of(runs)


@pytest.mark.parametrize(("numbers", "fits"), [((512, 512), True), ((512, 1024), False)])
def test_comparisons_with_other_numbers_of_datasets_are_refused(tmp_path, numbers, fits):
    """Each run found its number (`datasets: auto`), and the cases did not do the same work."""
    runs = [first(tmp_path / "three"), second(tmp_path / "two")]
    for directory, number in zip(runs, numbers, strict=True):
        record = RunRecord.load(directory)
        for entry in record.cases.values():
            entry["parameters"]["calibrated_datasets"] = number
        record.save(directory)
    if fits:
        assert len(summary_of(runs).cases) == 3
        return
    with pytest.raises(UserError, match="run the second with --set calibrated_datasets=512"):
        summary_of(runs)


def test_cases_of_both_runs_are_controls_that_tell_of_drift(tmp_path):
    one = first(tmp_path / "three")
    more = {"provenance": libraries(zarr="2.18.7")}
    two = counted(tmp_path / "two", {TENSORSTORE: 0.05, ZARR2: 0.03}, more)
    found = summary_of([one, two])
    (group,) = found.groups.values()
    assert [case.sample.backend for case in group] == ["zarr", "tensorstore", "zarr2"]
    assert group[1].phases["write"].seconds.median == pytest.approx(0.02 * 3 * 1.25)
    (told,) = [text for text in details(found) if "control" in text]
    assert "of 1 case(s) that an earlier run has too, two took so many times as long" in told
    assert "writing 2.5 (2.5–2.5), reading 2.5 (2.5–2.5)" in told


def test_nothing_but_the_same_cases_is_for_compare(tmp_path):
    runs = [first(tmp_path / "three"), second(tmp_path / "two", case=ZARR)]
    with pytest.raises(UserError, match="pffbench compare"):
        summary_of(runs)
    with pytest.raises(UserError, match="only one run"):
        summary_of(runs[:1])


def test_the_load_of_two_runs_does_not_cancel(tmp_path):
    """The load that all cases of a run had is no dependence between them; of two runs it is."""
    load = [1.0 + block / 12 for block in range(12)]
    names = [BY_NAME[name] for name in (ZARR, TENSORSTORE, ZARR2)]
    took = {name: [factor * one for one in load]
            for (name, _), factor in zip(names, (1.0, 1.1, 1.1), strict=True)}  # fmt: skip
    both = {name: (seconds, seconds) for name, seconds in took.items()}
    runs = [timed_run(tmp_path / "three", both, names[:2], experiment=STUDY),
            timed_run(tmp_path / "two", both, names[2:], experiment=STUDY)]  # fmt: skip
    _, tensorstore, zarr2 = summary_of(runs).cases
    within, across = (case.phases["write"].ratio for case in (tensorstore, zarr2))
    assert within.value == across.value == pytest.approx(1.1)
    assert across.low < within.low < 1.1 < within.high < across.high
    assert across.p > within.p


# --- the published numbers and the report


def test_orders_hold_zarr_python_2_and_3(tmp_path):
    runs = [first(tmp_path / "three", repetitions=20), second(tmp_path / "two", repetitions=20)]
    found = side_by_side(summary_of(runs))
    (write,) = [o for o in found.orders if o.matches[0].operation == "write"]
    assert [m.alternative for m in write.matches] == [
        "zarr-python 3", "TensorStore", "zarr-python 2",
    ]  # fmt: skip
    assert [m.published.value for m in write.matches] == [1.1552, 1.4171, 2.4106]
    assert [pair.agrees for pair in write.pairs] == [True, True, True]
    ratios = {m.alternative: m for m in found.matches if m.measured is not None}
    assert set(ratios) == {"zarr-python 2", "zarr-python 3", "TensorStore"}
    reasons = {reason.about: reason.here for reason in found.reasons}
    assert reasons["versions"].startswith("zarr 3.1.6, zarr (two) 2.18.7, numcodecs 0.16.6")
    assert "which came after" in reasons["statistic"]


def test_a_short_lead_is_not_decided_across_runs(tmp_path):
    """Within blocks a lead of 10 % is the same in each; over the range of times it is none."""
    runs = [
        first(tmp_path / "three", repetitions=20),
        second(tmp_path / "two", seconds=0.022, repetitions=20),
    ]
    (write,) = [o for o in side_by_side(summary_of(runs)).orders
                if o.matches[0].operation == "write"]  # fmt: skip
    pairs = {(p.faster.alternative, p.slower.alternative): p.agrees for p in write.pairs}
    assert pairs["TensorStore", "zarr-python 2"] is None
    assert pairs["zarr-python 3", "TensorStore"] is True


def test_one_report_is_written_and_the_runs_are_left_alone(runs, tmp_path):
    before = [entries_below(run) for run in runs]
    place = tmp_path / "both"
    names = {path.name for path in report_joined(runs, place)}
    assert {"report.html", "summary.md", "summary.csv", "published.md", "published.csv"} <= names
    assert [entries_below(run) for run in runs] == before
    page = (place / "report.html").read_text()
    assert "zarr-python 2" in page
    assert "ranks.h5 is missing" not in page
    assert not re.search(r'"repetitions":\[100000\d', page)
    table = (place / "summary.md").read_text()
    assert all(f"| {name} |" in table for name in ("zarr", "zarr2", "tensorstore"))
    assert "joined: three, two" in table


def test_numbers_of_ior_stand_in_the_report_of_a_run(tmp_path):
    told = REPOSITORY / "tests" / "unit" / "peers" / "ior-posix.json"
    ior = import_results("ior", [told], tmp_path / "ior")
    place = tmp_path / "both"
    list(report_joined([a_run(tmp_path / "own", [a_case("hdf5")], ranks=2), ior], place))
    page = (place / "report.html").read_text()
    assert "IMPORTED" in page
    assert "measured by IOR 4.1.0+dev (run ior); pffbench has verified nothing" in page
    rows = (place / "summary.csv").read_text()
    assert {line.split(".")[0] for line in rows.splitlines()[1:]} == {"hdf5", "ior-posix"}
    assert {path.name for path in (place / "plots").glob("*.svg")} >= {
        "ior-shared-totals.svg", "hyperslab-shared-totals.svg",
    }  # fmt: skip


def command(*arguments):
    return report_command(make_parser().parse_args(["report", *map(str, arguments)]))


def test_the_command_joins_beside_the_first_run(runs, tmp_path, monkeypatch, capsys):
    def noted(given, directory):
        yield (given, directory)

    monkeypatch.setattr("pffbench_analysis.report.report_joined", noted)
    monkeypatch.delenv("COLUMNS", raising=False)
    assert command("--join", *runs) == 0
    assert str(tmp_path / "three-joined") in capsys.readouterr().out
    assert command("--join", "--out", tmp_path / "both", *runs) == 0
    assert str(tmp_path / "both") in capsys.readouterr().out
    assert command("--join", "--published", *runs) == 0
    assert "zarr-python 2 2.41" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--out", "x"], "only a joined report goes elsewhere"),
        (["--join", "--fom"], "are of one run"),
        (["--join", "--published", "--out", "x"], "it writes nothing"),
        (["--join", "--out", "{run}"], "holds a run"),
    ],
)
def test_options_that_do_not_go_together(runs, options, reason):
    told = [option.format(run=runs[0]) for option in options]
    with pytest.raises(UserError, match=reason):
        command(*told, *runs)


# --- the experiments and the command of both steps


@pytest.mark.parametrize(
    ("name", "again"),
    [
        ("zarr-benchmarks", {"tensorstore"}),
        ("zarr-benchmarks-full", {"tensorstore"}),
        ("file-format-testing", {"hdf5", "netcdf4"}),
        ("file-format-testing-full", {"hdf5", "netcdf4"}),
    ],
)
def test_the_second_step_has_the_works_of_the_first(name, again, monkeypatch):
    place = REPOSITORY / "configs" / "studies"
    one = make_plan(load_experiment(str(place / f"{name}.yaml"), []), 4)
    monkeypatch.setattr(needs, "installed", {"zarr": "2.18.7"}.get)
    two = make_plan(load_experiment(str(place / "zarr2" / f"{name}.yaml"), []), 4)
    assert {case.group for case in two.cases} <= {case.group for case in one.cases}
    controls = {c.id for c in two.cases if c.parameters.backend in again}
    assert controls
    assert controls <= {case.id for case in one.cases}
    assert {case.parameters.backend for case in two.cases} == {"zarr2", *again}
    for key in ("seed", "study", "warmup", "counters", "memory"):
        assert getattr(one.experiment, key) == getattr(two.experiment, key), key


def a_checkout(place, *, environment):
    """Return a checkout whose setup/run writes down what it is told and makes results.

    With `environment` its set-up can make the one with zarr-python 2.
    """
    for name in ("setup/lib", "configs/studies/zarr2", ".venv-zarr2/bin"):
        (place / name).mkdir(parents=True)
    for name in ("study", "lib/say.sh"):
        (place / "setup" / name).write_bytes((REPOSITORY / "setup" / name).read_bytes())
    for name in ("one.yaml", "two.yaml", "zarr2/two.yaml"):
        (place / "configs" / "studies" / name).touch()
    make = "" if not environment else f"""
if [[ ${{ZARR2:-}} != 0 ]]; then touch {place}/.venv-zarr2/bin/python; fi
chmod +x {place}/.venv-zarr2/bin/python || true"""
    (place / "setup" / "bootstrap").write_text(f"#!/bin/bash\necho \"$@\" >>{place}/made{make}\n")
    (place / "setup" / "bootstrap").chmod(0o755)
    script = f"""#!/bin/bash
echo "$@" >>{place}/calls
while (($#)); do
    if [[ $1 == --out && ! -d $2 ]]; then mkdir -p "$2"; echo {{}} >"$2/run.json"; fi
    shift
done
exit "${{STATUS:-0}}"
"""
    (place / "setup" / "run").write_text(script)
    (place / "setup" / "run").chmod(0o755)
    (place / "setup" / "ranks").write_text("#!/bin/bash\necho why >&2\necho 2\n")
    (place / "setup" / "ranks").chmod(0o755)
    return place


def study(place, name, arguments=("3", "--set", "repetitions=1"), **variables):
    env = {k: v for k, v in os.environ.items() if k != "ZARR2"} | variables
    done = subprocess.run(
        ["bash", place / "setup" / "study", name, *arguments],
        cwd=place, env=env, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return done, (place / "calls").read_text().splitlines()


@pytest.mark.parametrize(
    ("environment", "variables", "joins"),
    [
        (False, {}, False),
        (True, {}, True),
        (True, {"ZARR2": "1"}, True),
        (True, {"ZARR2": "0"}, False),
        (True, {"ZARR2": ""}, True),
    ],
)
def test_one_command_runs_both_steps_and_joins_them(tmp_path, environment, variables, joins):
    place = a_checkout(tmp_path / "some", environment=environment)
    done, calls = study(place, "two", **variables)
    assert done.returncode == 0, done.stderr
    runs = [call for call in calls if " run " in call]
    assert len(runs) == 1 + joins
    assert all(call.endswith("--set repetitions=1") for call in runs)
    assert ["--zarr2" in call for call in runs] == [False, True][: 1 + joins]
    assert any("report --join --out" in call for call in calls) == joins
    assert ("report --published --join" in calls[-1]) == joins
    assert ("-joined/report.html" in done.stdout) == joins
    lacking = not joins and variables.get("ZARR2") != "0"
    assert ("was not measured: its environment could not be made" in done.stderr) == lacking
    assert (place / "made").read_text() == "--study two\n"


def test_a_study_says_what_it_does_while_nothing_else_is_printed(tmp_path):
    """Reports take a minute and print nothing; on a busy machine several."""
    done, _ = study(a_checkout(tmp_path / "some", environment=True), "two")
    told = [line.partition("] ")[2] for line in done.stdout.splitlines()]
    steps = ["measuring", "drawing the figures and the page of pffbench-results"] * 2
    steps.append("drawing the figures and the page of both steps")
    for line, step in zip(told, steps, strict=False):
        assert line.startswith(step)


def test_a_study_without_a_second_step_is_one_run(tmp_path):
    place = a_checkout(tmp_path / "some", environment=True)
    done, calls = study(place, "one", ZARR2="1")
    assert done.returncode == 0, done.stderr
    assert sum(" run " in call for call in calls) == 1
    assert "--join" not in "\n".join(calls)


@pytest.mark.parametrize(
    ("arguments", "ranks"),
    [((), 2), (("",), 2), (("", "--set", "repetitions=1"), 2), (("3",), 3)],
)
def test_a_study_has_as_many_ranks_as_setup_ranks_says(tmp_path, arguments, ranks):
    place = a_checkout(tmp_path / "some", environment=False)
    done, calls = study(place, "one", arguments)
    assert done.returncode == 0, done.stderr
    (run,) = (call for call in calls if " run " in call)
    assert f" {ranks} {place}/configs/studies/one.yaml --out " in run
    assert ("why" in done.stderr) == (ranks == 2)


def test_a_step_that_is_not_valid_is_the_status_of_both(tmp_path):
    place = a_checkout(tmp_path / "some", environment=True)
    done, calls = study(place, "two", STATUS="1")
    assert done.returncode == 1
    assert sum(" run " in call for call in calls) == 2
