"""`setup/study`: one run of a study and its report, and the environment that it may need."""

from __future__ import annotations

import subprocess

import pytest

from launch import REPOSITORY


@pytest.fixture
def checkout(tmp_path):
    """A checkout whose setup/run writes down its arguments and makes results."""
    place = tmp_path / "some"
    for name in ("setup", "configs/studies"):
        (place / name).mkdir(parents=True)
    for name in ("study", "common.sh"):
        (place / "setup" / name).write_bytes((REPOSITORY / "setup" / name).read_bytes())
    for name in ("chunking-vs-memmap", "zarr-benchmarks"):
        (place / "configs" / "studies" / f"{name}.yaml").touch()
    scripts = {
        "bootstrap": "",
        "env": f'echo "env $@" >>{place}/made',
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
    done, calls = study(checkout, "chunking-vs-memmap", "3", "--set", "repetitions=1")
    assert done.returncode == 0, done.stderr
    run, report = calls
    assert " 3 configs/studies/chunking-vs-memmap.yaml --out " in run
    assert run.endswith("--set repetitions=1")
    out = run.partition("--out ")[2].split()[0]
    assert report == f"python -m pffbench report {out}"
    assert done.stdout.endswith(f": {out}/report.html\n")


def test_a_study_of_several_environments_starts_its_ranks_itself(checkout):
    done, calls = study(checkout, "zarr-benchmarks", "3")
    assert done.returncode == 0, done.stderr
    assert (
        '--set "launcher=$PFFBENCH_MPIEXEC -n $0" 3 configs/studies/zarr-benchmarks.yaml'
        in calls[0]
    )
    assert "env zarr-2 zarr==2.18.7 numcodecs==0.15.1" in (checkout / "made").read_text()


def test_a_run_that_is_not_valid_gives_the_exit_status(checkout):
    done, calls = study(checkout, "chunking-vs-memmap", "2", STATUS="1")
    assert done.returncode == 1
    assert " run " in calls[0]
