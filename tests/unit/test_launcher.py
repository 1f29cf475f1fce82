"""What the launcher claims, read from environments as the launchers leave them."""

import pytest

from pffbench.job.launcher import (
    launcher_size,
    needs_yield,
    ranks_on_node,
    without_contact,
)

STEP = {
    "SLURM_JOB_ID": "7",
    "SLURM_STEP_ID": "0",
    "SLURM_PROCID": "3",
    "SLURM_NODEID": "3",
    "SLURM_STEP_NUM_TASKS": "7",
    "SLURM_STEP_TASKS_PER_NODE": "2(x3),1",
    "SLURM_NTASKS": "64",
    "SLURM_TASKS_PER_NODE": "16(x4)",
}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, None),
        ({"OMPI_COMM_WORLD_SIZE": "64"}, (64, "OMPI_COMM_WORLD_SIZE")),
        ({"PMI_SIZE": "8", "MPI_LOCALNRANKS": "4"}, (8, "PMI_SIZE")),
        ({"MV2_COMM_WORLD_SIZE": "8"}, (8, "MV2_COMM_WORLD_SIZE")),
        (STEP, (7, "SLURM_STEP_NUM_TASKS")),
        ({"PMI_SIZE": "not a number"}, None),
    ],
)
def test_size_is_what_the_launcher_says(environ, expected):
    assert launcher_size(environ) == expected


def test_mpiexec_counts_more_than_the_slurm_step_that_carries_it():
    orted = {**STEP, "SLURM_STEP_NUM_TASKS": "4", "OMPI_COMM_WORLD_SIZE": "64"}
    assert launcher_size(orted) == (64, "OMPI_COMM_WORLD_SIZE")


@pytest.mark.parametrize("step", ["", "4294967291", "4294967290", "batch"])
def test_a_script_in_an_allocation_without_srun_makes_no_claim(step):
    batch = {**STEP, "SLURM_STEP_ID": step}
    assert launcher_size(batch) is None
    assert ranks_on_node(batch) is None
    assert not needs_yield(batch, 1)


def test_a_job_outside_of_any_step_makes_no_claim():
    assert launcher_size({"SLURM_JOB_ID": "7", "SLURM_NTASKS": "64", "SLURM_PROCID": "0"}) is None


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, None),
        ({"OMPI_COMM_WORLD_LOCAL_SIZE": "5"}, 5),
        ({"MPI_LOCALNRANKS": "6"}, 6),
        (STEP, 1),
        ({**STEP, "SLURM_NODEID": "0"}, 2),
        ({**STEP, "SLURM_NODEID": "9"}, 2),
        ({**STEP, "SLURM_STEP_TASKS_PER_NODE": "64", "SLURM_NODEID": "0"}, 64),
        ({**STEP, "SLURM_STEP_TASKS_PER_NODE": "nonsense"}, None),
        ({**STEP, "OMPI_COMM_WORLD_LOCAL_SIZE": "16"}, 16),
    ],
)
def test_ranks_on_this_node(environ, expected):
    assert ranks_on_node(environ) == expected


def test_slurm_before_steps_had_their_own_count():
    environ = {name: value for name, value in STEP.items() if name != "SLURM_STEP_TASKS_PER_NODE"}
    assert ranks_on_node(environ) == 16


@pytest.mark.parametrize(("cpus", "expected"), [(1, True), (2, False), (64, False)])
def test_more_ranks_than_cores_must_yield(cpus, expected):
    assert needs_yield({"OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, cpus) is expected


def test_a_lone_program_need_not_yield():
    assert not needs_yield({}, 1)


def test_tasks_of_srun_that_heard_nothing_of_each_other():
    assert without_contact(STEP) == (7, "SLURM_STEP_NUM_TASKS")


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {**STEP, "PMIX_RANK": "3"},
        {**STEP, "PMI_RANK": "3", "PMI_SIZE": "7"},
        {**STEP, "PMI_FD": "12"},
        {**STEP, "SLURM_STEP_NUM_TASKS": "1"},
        {**STEP, "SLURM_STEP_ID": "4294967290"},  # the batch script itself
        {**STEP, "SLURM_STEP_NUM_TASKS": "4", "OMPI_COMM_WORLD_SIZE": "64"},  # mpiexec's carrier
        {"MV2_COMM_WORLD_SIZE": "8"},
    ],
)
def test_tasks_that_can_find_each_other_or_are_alone(environ):
    assert without_contact(environ) is None
