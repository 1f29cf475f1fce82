"""The site profiles: a real sbatch takes their options, and a job runs under each of them."""

from __future__ import annotations

import pytest

from desk import JOBS, Desk, verdicts

pytestmark = pytest.mark.slurm

#: What Slurm must know of a job that was submitted with a profile.
EXPECTED = {
    "archer2": {"Partition": "standard", "CPUs/Task": "1"},
    "frontier": {"Partition": "batch", "Features": "nvme"},
    "generic": {"Partition": "main"},
    "juwels": {"Partition": "batch", "CPUs/Task": "1"},
    "lumi": {"Partition": "standard", "CPUs/Task": "1"},
    "perlmutter": {"Features": "cpu", "CPUs/Task": "2", "Licenses": "SCRATCH"},
}


def test_every_profile_is_tested():
    assert {path.stem for path in (JOBS / "sites").glob("*.sh")} == set(EXPECTED)


@pytest.mark.parametrize("site", sorted(EXPECTED))
def test_a_job_runs_with_the_options_of_the_site(slurm, shared, site):
    desk = Desk(slurm, shared)
    job, report = desk.submit(
        "--site", site, "--account", "p1", "--nodes", "2", "--tasks-per-node", "2", "compare",
        desk.experiment(),
        # The sites' own MPI and file systems are not here; all else of the profile is used.
        PFFBENCH_MPI="pmix", PFFBENCH_SCRATCH=str(shared),
    )  # fmt: skip
    slurm.run("scancel", report)  # it is the same for all sites, and others test it
    facts = desk.complete(job)
    assert EXPECTED[site].items() <= facts.items()
    assert verdicts(desk.records("out")) == {f"compare-2n-{job}": ("finished", True)}
    assert f"site {site}" in desk.log(job)
