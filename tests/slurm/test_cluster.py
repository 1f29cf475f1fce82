"""The cluster itself: its nodes are apart, jobs end as on a real one, and nothing is left behind.

Everything that the tests of pffbench rely on is shown here first.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cluster.machines import PROGRAM
from cluster.requirements import missing_programs
from cluster.settings import ClusterError

pytestmark = [pytest.mark.slurm, pytest.mark.full, pytest.mark.timeout(900)]

TESTS = Path(__file__).resolve().parents[1]

# What a rank sees of its node, as one line of JSON.
LOOK = """
import json, os, socket
print(json.dumps({
    "host": socket.gethostname(),
    "address": socket.gethostbyname(socket.gethostname()),
    "tmp": sorted(os.listdir("/tmp")),
    "shm": sorted(os.listdir("/dev/shm")),
    "first": open("/proc/1/cmdline").read().split(chr(0))[-2],
}))
"""

SIZES = """
from mpi4py import MPI
world = MPI.COMM_WORLD
node = world.Split_type(MPI.COMM_TYPE_SHARED)
sizes = world.gather((node.size, MPI.Get_processor_name()))
if world.rank == 0:
    print(world.size, len(set(sizes)), {size for size, _ in sizes})
"""


def on_each_node(cluster, *words):
    return cluster.run("srun", "-N4", "--ntasks-per-node=1", *words).stdout


# --- the nodes are apart


def test_every_node_is_a_host_of_its_own(slurm):
    for node in slurm.settings.names:
        slurm.run("srun", "-w", node, "touch", f"/tmp/of-{node}", f"/dev/shm/of-{node}")
    seen = [
        json.loads(line) for line in on_each_node(slurm, sys.executable, "-c", LOOK).splitlines()
    ]
    assert sorted(look["host"] for look in seen) == slurm.settings.names
    assert len({look["address"] for look in seen}) == 4
    for look in seen:
        ours = f"of-{look['host']}"
        assert [name for name in look["tmp"] if name.startswith("of-")] == [ours]
        # Open MPI 5 leaves a segment of its own, named by the node.
        assert [name for name in look["shm"] if not name.startswith("sm_segment.")] == [ours]
        assert look["first"] == look["host"], "process 1 is the node's own"


def test_process_ids_of_nodes_collide(slurm):
    told = slurm.run("srun", "-N4", "--ntasks-per-node=4", "sh", "-c", "echo $$").stdout.split()
    assert len(told) == 16
    assert len(set(told)) < 16


def test_only_shared_directories_are_seen_by_all_nodes(slurm, shared):
    (shared / "file").write_text("seen")
    assert on_each_node(slurm, "cat", shared / "file") == "seen" * 4


def test_a_command_runs_on_the_machine_named(slurm):
    assert slurm.run("hostname", on="node3").stdout == "node3\n"
    assert slurm.run("hostname").stdout == "login\n"


def test_64_ranks_on_4_nodes_are_one_world(slurm):
    srun = ["srun", "--mpi=pmix", "-N4", "--ntasks-per-node=16"]
    assert slurm.run(*srun, sys.executable, "-c", SIZES).stdout == "64 4 {16}\n"


# --- jobs end as they do elsewhere


@pytest.mark.parametrize("status", [0, 7])
def test_sbatch_waits_and_returns_the_status_of_the_job(slurm, shared, status):
    waiting = ["sbatch", "--wait", "-o", shared / "out", "--wrap", f"echo done; exit {status}"]
    assert slurm.run(*waiting, check=False).returncode == status
    assert (shared / "out").read_text() == "done\n"


def test_a_cancelled_job_gets_sigterm(slurm, shared):
    script = "trap 'echo told; exit 0' TERM; echo ready; sleep 300 & wait"
    job = slurm.submit("-o", shared / "out", "--wrap", script)
    wait_for_text(shared / "out", "ready\n")
    slurm.run("scancel", "--full", job)
    assert slurm.wait(job, {"CANCELLED"})
    wait_for_text(shared / "out", "told\n")


def test_the_signal_before_the_time_limit_reaches_the_batch_script(slurm, shared):
    script = "trap 'echo told; exit 0' USR1; echo ready; sleep 300 & wait"
    job = slurm.submit("--signal=B:USR1@30", "-o", shared / "out", "--wrap", script)
    wait_for_text(shared / "out", "ready\n")
    # At once, and what the clock would do: limits are looked at every half minute only.
    slurm.run("scancel", "--signal=USR1", "--batch", job)
    slurm.wait(job, {"COMPLETED"})
    assert (shared / "out").read_text() == "ready\ntold\n"


def test_a_requeued_job_starts_again_and_knows_it(slurm, shared):
    script = 'echo run ${SLURM_RESTART_COUNT:-0}; [ -n "$SLURM_RESTART_COUNT" ] || sleep 300'
    job = slurm.submit("--requeue", "--open-mode=append", "-o", shared / "out", "--wrap", script)
    wait_for_text(shared / "out", "run 0\n")
    slurm.run("scontrol", "requeue", job)
    assert slurm.wait(job, {"COMPLETED"})["Restarts"] == "1"
    runs = [line for line in (shared / "out").read_text().splitlines() if line.startswith("run")]
    assert runs == ["run 0", "run 1"]


def test_the_loss_of_a_node_ends_its_job_and_it_comes_back(slurm, shared):
    script = "srun sh -c 'touch $(hostname); sleep 300'"
    job = slurm.submit("--no-requeue", "-N4", "-D", shared, "--wrap", script)
    for node in slurm.settings.names:  # a node lost while a step starts only fails that step
        wait_for_file(shared / node)
    slurm.kill("node4")
    with pytest.raises(ClusterError, match=r"node4 of .* is not running"):
        slurm.run("hostname", on="node4")
    assert slurm.wait(job, {"NODE_FAIL"})
    slurm.boot("node4")
    slurm.settle()
    assert len(on_each_node(slurm, "hostname").split()) == 4


# --- nothing is left behind

# A test process that starts a cluster with a job on it, of which one node is lost and one is back
# from a power cut, and then does not end by itself.
HOLDER = """
import signal, sys, time
# A shell that starts the tests in the background has them ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, sys.argv[1])
from cluster.commands import Cluster
from cluster.settings import Settings
cluster = Cluster.start(Settings(sys.argv[2], moosefs=sys.argv[3] == "moosefs"))
cluster.submit("-N4", "-o", "/dev/null", "--wrap", "srun sleep 300")
for node in ("node3", "node4"):
    cluster.kill(node)
cluster.boot("node3")
print("running", flush=True)
time.sleep(300)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_test_process_that_is_killed_leaves_nothing(slurm, tmp_path_factory, number):
    killed_test_process_leaves_nothing(tmp_path_factory, number, "plain")


@pytest.mark.skipif(
    os.geteuid() != 0 or not os.path.exists("/dev/fuse"), reason="MooseFS needs root and /dev/fuse"
)
def test_nor_does_one_with_a_distributed_file_system(slurm, tmp_path_factory):
    if missing := missing_programs(with_moosefs=True):
        pytest.skip(missing)
    killed_test_process_leaves_nothing(tmp_path_factory, signal.SIGKILL, "moosefs")


def killed_test_process_leaves_nothing(tmp_path_factory, number, kind):
    place = tmp_path_factory.mktemp("c") / "cluster"
    before = footprint(place)
    said = tmp_path_factory.mktemp("said") / "stderr"
    with said.open("w") as file:
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLDER, TESTS, place, kind], stdout=subprocess.PIPE, text=True,
            stderr=file, env=os.environ,
        )  # fmt: skip
    with holder:
        assert holder.stdout.readline() == "running\n", said.read_text()
        assert len(footprint(place)[0]) > 10
        holder.send_signal(number)
        holder.wait(60)  # by itself it would end after five minutes
    left = wait_for_value(lambda: footprint(place), before)
    assert left == before
    assert not place.exists()


def test_one_command_starts_a_cluster_and_one_stops_it(slurm, tmp_path_factory):
    place = tmp_path_factory.mktemp("c") / "cluster"
    before = footprint(place)
    assert "2 nodes ready" in cluster_command("start", place, "--nodes", "2").stdout
    told = cluster_command("exec", place, "--", "srun", "-N2", "hostname").stdout.split()
    assert sorted(told) == ["node1", "node2"]
    assert "idle" in cluster_command("status", place).stdout
    assert "not empty" in cluster_command("start", place).stderr
    assert cluster_command("stop", place).returncode == 0
    assert wait_for_value(lambda: footprint(place), before) == before
    assert not place.exists()
    assert "no cluster" in cluster_command("stop", place).stderr


def test_a_cluster_that_cannot_start_says_why_and_leaves_nothing(slurm, tmp_path_factory):
    place = tmp_path_factory.mktemp("c") / "cluster"
    before = footprint(place)
    failed = cluster_command("start", place, "--conf", "NoSuchOption=1")
    assert failed.returncode == 1
    assert "NoSuchOption" in failed.stderr
    assert footprint(place) == before
    assert not place.exists()


def cluster_command(*arguments):
    command = [sys.executable, PROGRAM, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=os.environ)


def wait_for_text(file, text):
    """Wait until a job has written this."""
    wait_for_file(file)
    assert wait_for_value(lambda: text in file.read_text(), True), file.read_text()


def wait_for_file(file):
    """Wait until a file exists."""
    assert wait_for_value(file.exists, True), file


def wait_for_value(look, wanted, seconds=180):
    """Return what one sees, at the latest when the time is over."""
    end = time.monotonic() + seconds
    while (seen := look()) != wanted and time.monotonic() < end:
        time.sleep(0.05)
    return seen


def footprint(place):
    """What a cluster here would show on this machine: its processes, our mounts, our links."""
    processes = [
        (pid, words)
        for pid in filter(str.isdecimal, os.listdir("/proc"))
        if str(place) in (words := words_of(pid)) and int(pid) != os.getpid()
    ]
    return processes, Path("/proc/self/mounts").read_text(), sorted(os.listdir("/sys/class/net"))


def words_of(pid):
    """Its command line and its environment, which in a job names the cluster's configuration."""
    try:
        return "\0".join(
            Path("/proc", pid, name).read_text(errors="replace") for name in ("cmdline", "environ")
        )
    except OSError:  # it has just ended
        return ""
