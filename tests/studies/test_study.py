"""`setup/study`: one run of a study and its report, and the environment that it may need."""

from __future__ import annotations

import subprocess

import pytest

from launch import REPOSITORY


@pytest.fixture
def checkout(tmp_path):
    """A checkout whose setup/run writes down its arguments and makes results."""
    place = tmp_path / "some"
    for name in ("setup/lib", "configs/studies"):
        (place / name).mkdir(parents=True)
    for name in ("study", "lib/say.sh"):
        (place / "setup" / name).write_bytes((REPOSITORY / "setup" / name).read_bytes())
    (place / "configs" / "studies" / "one.yaml").touch()
    (place / "configs" / "studies" / "two.yaml").write_text("environments: []\n")
    scripts = {
        "bootstrap": f'echo "$@" >>{place}/made',
        "env": f'echo "env $@" >>{place}/made',
        "ranks": "echo why >&2; echo 2",
        "run": f"""
echo "$@" >>{place}/calls
while (($#)); do
    if [[ $1 == --out && ! -d $2 ]]; then mkdir -p "$2"; echo {{}} >"$2/run.json"; fi
    shift
done
exit "${{STATUS:-0}}"
""",
    }
    for name, text in scripts.items():
        (place / "setup" / name).write_text(f"#!/bin/bash\n{text}\n")
        (place / "setup" / name).chmod(0o755)
    return place


def study(place, name, *arguments, **variables):
    done = subprocess.run(
        ["bash", place / "setup" / "study", name, *arguments],
        env={"PATH": "/usr/bin:/bin", **variables}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    return done, (place / "calls").read_text().splitlines()


def test_one_command_makes_a_run_and_its_report(checkout):
    done, calls = study(checkout, "one", "3", "--set", "repetitions=1")
    assert done.returncode == 0, done.stderr
    run, report, published = calls
    assert " 3 configs/studies/one.yaml --out " in run
    assert run.endswith("--set repetitions=1")
    out = run.partition("--out ")[2].split()[0]
    assert report == f"python -m pffbench report {out}"
    assert published == f"python -m pffbench report --published {out}"
    assert done.stdout.endswith(f": {out}/report.html\n")
    assert (checkout / "made").read_text() == "--study one\n"


def test_a_study_of_several_environments_starts_its_ranks_itself(checkout):
    done, calls = study(checkout, "two", "3")
    assert done.returncode == 0, done.stderr
    assert '--set "launcher=$PFFBENCH_MPIEXEC -n $0" 3 configs/studies/two.yaml' in calls[0]
    assert "env zarr-2 zarr==2.18.7 numcodecs==0.15.1" in (checkout / "made").read_text()


@pytest.mark.parametrize(
    ("arguments", "ranks"),
    [((), 2), (("",), 2), (("", "--set", "repetitions=1"), 2), (("3",), 3)],
)
def test_a_study_has_as_many_ranks_as_setup_ranks_says(checkout, arguments, ranks):
    done, calls = study(checkout, "one", *arguments)
    assert done.returncode == 0, done.stderr
    assert f" {ranks} configs/studies/one.yaml --out " in calls[0]
    assert ("why" in done.stderr) == (ranks == 2)


def test_a_run_that_is_not_valid_gives_the_exit_status(checkout):
    done, calls = study(checkout, "one", STATUS="1")
    assert done.returncode == 1
    assert " run " in calls[0]
