"""Quota, open files: what would stop a run in its midst is told before it begins."""

import os
import resource
import subprocess
import sys

import pytest

from launch import environment, pffbench_here, write_experiment
from pffbench.errors import UserError
from pffbench.experiment.check import make_plan
from pffbench.experiment.limits import Allowance, check_open_files, check_tasks, open_files
from pffbench.experiment.load import from_data
from pffbench.run.prepare import check_scratch
from pffbench.storage.filesystem import Quota, filesystem, parsed, quota_left
from plans import plan_cases

LUSTRE = "     /lustre 1048576* 0 2097152 - 40 0 100 -\nuid 7 is using default file quota setting\n"
QUOTA = """Disk quotas for user me (uid 7):
     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace
          /home     512    1000    1024       0       5       0       0       0
          /data    2048       0       0       0   [7]       0       9       0
"""


@pytest.mark.parametrize(
    ("text", "mount", "left"),
    [
        (LUSTRE, "/lustre", Quota(2**30, 60)),
        (LUSTRE.replace("/lustre ", "/lustre\n        "), "/lustre", Quota(2**30, 60)),
        (QUOTA, "/home", Quota(512 * 1024, None)),
        (QUOTA, "/data", Quota(None, 2)),
        (QUOTA.replace("2048 ", "4096*").replace("0       0   [7]", "9 3 [7]"), "/data",
         Quota(0, 2)),
        (QUOTA, "/else", None),
        ("none", "/home", None),
        ("/home 1 2", "/home", None),
        ("/home 1 2 many 4 5 6 7 8", "/home", None),
        ("", "", None),
    ],
)  # fmt: skip
def test_what_the_tools_print_is_read(text, mount, left):
    assert parsed(text, mount) == left


def tool(directory, name, says, monkeypatch):
    program = directory / "bin" / name
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho \"$@\" > {directory}/asked\ncat <<'END'\n{says}\nEND\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")


def experiment(**case):
    base = {"workload": "hyperslab", "backend": "hdf5", "shape_per_rank": [256, 1024]}
    return plan_cases(base | case, ranks=1)


def test_a_quota_that_is_too_small_is_refused_before_anything_is_made(tmp_path, monkeypatch):
    mount = filesystem(str(tmp_path)).mount_point
    tool(tmp_path, "quota", f"{mount} 900 0 1000 0 5 0 0 0", monkeypatch)
    with pytest.raises(UserError, match=r"about 1\.\d+ MiB in .* by your quota, where 100 KiB"):
        check_scratch(experiment(), str(tmp_path), 2**40)
    assert str(os.getuid()) in (tmp_path / "asked").read_text()
    tool_says_enough = quota_left(filesystem(str(tmp_path)))
    assert tool_says_enough == Quota(100 * 1024, None)


def test_a_quota_of_files_is_looked_at_too(tmp_path, monkeypatch):
    mount = filesystem(str(tmp_path)).mount_point
    tool(tmp_path, "quota", f"{mount} 900 0 0 0 5 0 30 0", monkeypatch)
    many = experiment(backend="zarr", chunks=[16, 16])
    with pytest.raises(UserError, match=r"makes about 10\d\d files in .* by your quota, where 25 "):
        check_scratch(many, str(tmp_path), 2**40)


def test_lustre_is_asked_with_its_own_tool(tmp_path, monkeypatch):
    from msgspec.structs import replace

    there = replace(filesystem(str(tmp_path)), type="lustre", mount_point="/lustre")
    tool(tmp_path, "lfs", LUSTRE, monkeypatch)
    assert quota_left(there) == Quota(2**30, 60)
    assert (tmp_path / "asked").read_text() == f"quota -q -u {os.getuid()} /lustre\n"


@pytest.mark.parametrize("says", ["", "quota: no such thing"])
def test_a_tool_that_tells_nothing_is_no_limit(tmp_path, monkeypatch, says):
    tool(tmp_path, "quota", says, monkeypatch)
    check_scratch(experiment(), str(tmp_path), 2**40)


def test_zarr_needs_as_many_open_files_as_transfers_are_under_way():
    plain = files_open()
    assert plain < files_open(backend="zarr", chunks="rank_part") < 100
    assert files_open(backend="zarr", chunks="rank_part", zarr={"concurrency": 5000}) > 5000


def files_open(**case):
    plan = experiment(**case)
    return open_files(plan.cases[0], plan)


def test_a_file_for_each_array_is_counted_made_and_held_open():
    several = {
        "workload": "datasets",
        "datasets": 300,
        "shape": [16],
        "files": "one",
        "arrays": "per_rank",
    }
    one, many = (
        make_plan(from_data({"name": "x", "roofline": False,
                             "cases": [several | {"backend": name}]}, "x.yaml"), 1)
        for name in ("hdf5", "npy")
    )  # fmt: skip
    assert [plan.costs[plan.cases[0].id].files for plan in (one, many)] == [1, 301]
    assert open_files(many.cases[0], many) - open_files(one.cases[0], one) == 299


def test_too_few_open_files_are_refused():
    plan = experiment(backend="zarr", chunks="rank_part", zarr={"concurrency": [8, 5000]})
    check_open_files(plan, Allowance(memory=0, open_files=6000))
    told = r"may need 50\d\d more open files .* where 900 are allowed; raise the limit"
    with pytest.raises(UserError, match=told):
        check_open_files(plan, Allowance(memory=0, open_files=900))


@pytest.mark.parallel
def test_the_limit_of_open_files_is_that_of_the_process(tmp_path):
    path = write_experiment(tmp_path, cases=[{
        "workload": "hyperslab", "backend": "zarr", "shape_per_rank": [4, 4], "chunks": "rank_part",
        "zarr": {"concurrency": 500}}])  # fmt: skip
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (400, 400)); "
        "from pffbench.cli import main; main(sys.argv[1:])"
    )
    done = subprocess.run([sys.executable, "-c", code, "run", str(path)], cwd=tmp_path, text=True,
                          capture_output=True, env=environment(), timeout=300)  # fmt: skip
    assert done.returncode == 2
    assert "more open files on a rank, where 3" in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["experiment.yaml"]
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] != 400
    assert pffbench_here("plan", path, cwd=tmp_path).status == 0


@pytest.mark.parametrize(
    ("needed", "case"),
    [
        (8, {"backend": "zarr", "chunks": "rank_part"}),
        (106, {"backend": "zarr", "chunks": "rank_part", "zarr": {"concurrency": 50}}),
        (206, {"backend": "tensorstore", "chunks": "rank_part", "tensorstore": {"threads": 100}}),
    ],
)
def test_too_few_processes_and_threads_are_refused_with_the_limit(needed, case):
    plan = experiment(**case)
    check_tasks(plan, Allowance(memory=0, open_files=0, tasks=needed))
    with pytest.raises(UserError, match=rf"{needed} more .* {needed - 1} are allowed.*ulimit -u"):
        check_tasks(plan, Allowance(memory=0, open_files=0, tasks=needed - 1))
