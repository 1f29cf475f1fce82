"""The site profiles: a real sbatch takes their options, and a job runs under each of them."""

from __future__ import annotations

import os

import pytest

from desk import JOBS, Desk, verdicts

pytestmark = pytest.mark.slurm

#: What Slurm must know of a job that was submitted with a profile.
EXPECTED = {
    "frontier": {"Partition": "batch", "Features": "nvme"},
    "generic": {"Partition": "main", "OverSubscribe": "NO"},
    "jupiter": {"Partition": "booster", "CPUs/Task": "1", "TresPerNode": "gres:gpu:4"},
    "juwels": {"Partition": "batch", "CPUs/Task": "1"},
    "lumi": {"Partition": "standard", "CPUs/Task": "1"},
    "marenostrum5": {"CPUs/Task": "1"},
    "perlmutter": {"Features": "cpu", "CPUs/Task": "2", "Licenses": "SCRATCH"},
}


def test_every_profile_of_slurm_is_tested():
    profiles = {path.stem: path.read_text() for path in (JOBS / "sites").glob("*.sh")}
    of_slurm = {name for name, text in profiles.items() if "SITE_SCHEDULER=slurm" in text}
    assert of_slurm == set(EXPECTED)


def with_modules(directory, status=0):
    """Return a PATH that has a program `module`, which ends with this status."""
    (tools := directory / "tools").mkdir()
    module = tools / "module"
    module.write_text(f'#!/bin/bash\necho "module: $*" >&2; exit {status}\n')
    module.chmod(0o755)
    # Nodes of one site are aarch64, as the nodes here may not be.
    uname = tools / "uname"
    uname.write_text('#!/bin/bash\n[[ $* == -m ]] && echo aarch64 || exec /bin/uname "$@"\n')
    uname.chmod(0o755)
    return f"{tools}{os.pathsep}{os.environ['PATH']}"


#: As Environment Modules and Lmod define it: a program prints what the shell is to do.
MODULE = """
modulecmd() {
    echo "ERROR: Unable to locate a modulefile for '${*: -1}'" >&2
    echo "test 0 = 1;"
}
module() { eval "$(modulecmd bash "$@")"; }
"""


@pytest.mark.full
@pytest.mark.parametrize("kind", ["program", "function"])
def test_a_job_whose_modules_are_missing_measures_nothing(slurm, shared, kind):
    desk = Desk(slurm, shared)
    (shared / "init.sh").write_text(MODULE)
    variables, said = {
        "program": ({"PATH": with_modules(shared, status=1)}, "module: load Stages/"),
        "function": ({"BASH_ENV": str(shared / "init.sh")}, "ERROR: Unable to locate a modulefile"),
    }[kind]
    job = desk.sbatch(JOBS / "compare.sh", desk.experiment(), PFFBENCH_SITE="juwels", **variables)
    facts = slurm.wait(job)
    assert (facts["JobState"], facts["ExitCode"]) == ("FAILED", "2:0")
    assert said in desk.log(job)
    assert not desk.records("pffbench-results")
    assert not list(shared.glob("pffbench-job-*"))


@pytest.mark.full
@pytest.mark.parametrize("site", sorted(EXPECTED))
def test_a_job_runs_with_the_options_of_the_site(slurm, shared, site):
    desk = Desk(slurm, shared)
    (job,) = desk.submit(
        "--site", site, "--no-report", "--account", "p1", "--nodes", "2", "--tasks-per-node", "2",
        "compare", desk.experiment(),
        # The sites' own MPI and file systems are not here; all else of the profile is used.
        PFFBENCH_MPI="pmix", PFFBENCH_SCRATCH=str(shared), PATH=with_modules(shared),
    )  # fmt: skip
    facts = desk.complete(job)
    assert EXPECTED[site].items() <= facts.items()
    assert verdicts(desk.records("out")) == {f"compare-2n-{job}": ("finished", True)}
    assert f"site {site}" in desk.log(job)
