"""`setup/study`: the runs of a study, of which one may need an environment of its own."""

from __future__ import annotations

import os
import subprocess

import pytest

from launch import REPOSITORY
from pffbench.backends import registry
from pffbench.experiment.check import make_plan
from pffbench.experiment.load import load_experiment


@pytest.mark.parametrize(
    ("name", "again"),
    [
        ("zarr-benchmarks", {"tensorstore"}),
        ("zarr-benchmarks-full", {"tensorstore"}),
        ("file-format-testing", {"hdf5", "netcdf4"}),
        ("file-format-testing-full", {"hdf5", "netcdf4"}),
    ],
)
def test_the_second_run_has_the_works_of_the_first(name, again, monkeypatch):
    place = REPOSITORY / "configs" / "studies"
    one = make_plan(load_experiment(str(place / f"{name}.yaml"), []), 4)
    monkeypatch.setattr(registry, "installed", {"zarr": "2.18.7"}.get)
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
    make = (
        ""
        if not environment
        else f"""
if [[ ${{ZARR2:-}} != 0 ]]; then touch {place}/.venv-zarr2/bin/python; fi
chmod +x {place}/.venv-zarr2/bin/python || true"""
    )
    (place / "setup" / "bootstrap").write_text(f'#!/bin/bash\necho "$@" >>{place}/made{make}\n')
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
        cwd=place, env=env, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    return done, (place / "calls").read_text().splitlines()


@pytest.mark.parametrize(
    ("environment", "variables", "both"),
    [
        (False, {}, False),
        (True, {}, True),
        (True, {"ZARR2": "1"}, True),
        (True, {"ZARR2": "0"}, False),
        (True, {"ZARR2": ""}, True),
    ],
)
def test_one_command_makes_both_runs_each_with_a_report(tmp_path, environment, variables, both):
    place = a_checkout(tmp_path / "some", environment=environment)
    done, calls = study(place, "two", **variables)
    assert done.returncode == 0, done.stderr
    runs = [call for call in calls if " run " in call]
    assert len(runs) == 1 + both
    assert all(call.endswith("--set repetitions=1") for call in runs)
    assert ["--zarr2" in call for call in runs] == [False, True][: 1 + both]
    directories = [call.partition("--out ")[2].split()[0] for call in runs]
    assert [one.endswith("-zarr2") for one in directories] == [False, True][: 1 + both]
    reports = [call.partition(" report ")[2] for call in calls if " report " in call]
    assert reports == [*directories, " ".join(["--published", *directories])]
    pages = " ".join(f"{directory}/report.html" for directory in directories)
    assert done.stdout.endswith(f": {pages}\n")
    lacking = not both and variables.get("ZARR2") != "0"
    assert ("was not measured: its environment could not be made" in done.stderr) == lacking
    assert (place / "made").read_text() == "--study two\n"


def test_a_study_says_what_it_does_while_nothing_else_is_printed(tmp_path):
    """Reports take a minute and print nothing; on a busy machine several."""
    done, _ = study(a_checkout(tmp_path / "some", environment=True), "two")
    told = [line.partition("] ")[2] for line in done.stdout.splitlines()]
    steps = ["measuring", "drawing the figures and the page of pffbench-results"] * 2
    for line, step in zip(told, steps, strict=False):
        assert line.startswith(step)


def test_a_study_without_zarr_python_2_is_one_run(tmp_path):
    place = a_checkout(tmp_path / "some", environment=True)
    done, calls = study(place, "one", ZARR2="1")
    assert done.returncode == 0, done.stderr
    assert sum(" run " in call for call in calls) == 1


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


def test_a_run_that_is_not_valid_is_the_status_of_both(tmp_path):
    place = a_checkout(tmp_path / "some", environment=True)
    done, calls = study(place, "two", STATUS="1")
    assert done.returncode == 1
    assert sum(" run " in call for call in calls) == 2
