"""Job scripts under PBS and Flux, whose commands are replaced by programs that note their words.

OpenPBS and flux-core were run once, by hand.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from launch import sampled
from pffbench.parallel.batch_job import seconds_left
from pffbench.provenance.batch import scheduler_facts
from pffbench.run.next_steps import more_ranks
from pffbench.storage.ownership import OwnerProcess

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
JOBS = ROOT / "jobs"
PLAIN = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("PFFBENCH", "SLURM", "SBATCH", "PBS", "FLUX"))
}
QSTAT = """Job Id: 17.server
    job_state = {state}
    exec_vnode = (n1:ncpus=2)+(n2:ncpus
\t=2)
    Resource_List.select = 2:ncpus=2:mpiprocs=2
    Resource_List.walltime = 01:00:00
    Account_Name = abc
    stime = {start}
"""


def tool(directory, name, script):
    """Make a program of this name that notes its words and then runs this."""
    directory.mkdir(exist_ok=True)
    program = directory / name
    program.write_text(f'#!/bin/bash\nprintf "%s\\n" "{name} $*" >>{directory}/notes\n{script}\n')
    program.chmod(0o755)


def notes(directory):
    return (directory / "notes").read_text().splitlines()


def submit(tools, *words, **variables):
    return subprocess.run(
        [JOBS / "submit", *words],
        env={**PLAIN, "PATH": f"{tools}:{PLAIN['PATH']}", **variables},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip


def test_a_series_is_submitted_by_qsub(tmp_path):
    tools = tmp_path / "tools"
    tool(tools, "qsub", f"echo $((100 + $(wc -l <{tools}/notes))).server")
    done = submit(
        tools, "--site", "generic-pbs", "--nodes", "2", "--tasks-per-node", "8", "--account", "abc",
        "--partition", "debug", "--time", "1-02:30", "--out", str(tmp_path / "o"),
        "scaling-weak", "--set", "repetitions=3",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, second = notes(tools)
    out = f"PFFBENCH_HOME={ROOT},PFFBENCH_SITE=generic-pbs,PFFBENCH_OUT={tmp_path}/o"
    assert first == (
        "qsub -N pffbench-scaling-weak -l select=1:ncpus=8:mpiprocs=8 -l place=scatter:excl "
        f"-l walltime=26:30:00 -Aabc -qdebug -j oe -k doe -o {tmp_path}/o/ -V -v {out} "
        f"-- {JOBS}/scaling-weak.sh --set repetitions=3"
    )
    assert "select=2:ncpus=8:mpiprocs=8" in second
    assert "-W depend=afterany:101.server --" in second


def test_a_series_is_submitted_by_flux_batch(tmp_path):
    tools = tmp_path / "tools"
    tool(tools, "flux", f"echo f$(wc -l <{tools}/notes)")
    done = submit(
        tools, "--site", "tuolumne", "--nodes", "2", "--account", "abc", "--time", "90",
        "--partition", "pbatch", "--out", str(tmp_path / "o"), "compare", "--set", "seed=[2, 3]",
        "--", "--urgency=17",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (first,) = notes(tools)
    assert first == (
        "flux batch --job-name=pffbench-compare --nodes=2 --exclusive --time-limit=90m "
        "--queue=pdebug --bank=abc --queue=pbatch --urgency=17 "
        f"--output={tmp_path}/o/pffbench-compare-{{{{id}}}}.out "
        f"--env=PFFBENCH_HOME={ROOT} --env=PFFBENCH_SITE=tuolumne --env=PFFBENCH_OUT={tmp_path}/o "
        f"--env=PFFBENCH_TASKS_PER_NODE=84 --wrap {JOBS}/compare.sh --set 'seed=[2, 3]'"
    )


#: How each scheduler numbers jobs, and the command that cancels them.
SCHEDULERS = {
    "generic": ("sbatch", "echo 10$(wc -l <{tools}/notes)", "101", "scancel 101"),
    "generic-pbs": ("qsub", "echo 10$(wc -l <{tools}/notes).box", "101.box", "qdel 101.box"),
    "generic-flux": ("flux", "echo ƒ$(wc -l <{tools}/notes)", "ƒ1", "flux cancel 'ƒ1'"),
}


@pytest.mark.parametrize(
    ("site", "accepted", "silent"),
    sampled(
        [(site, accepted, silent)
         for site in SCHEDULERS for accepted in (0, 1) for silent in (False, True)],
        ("generic", 0, True), ("generic-pbs", 1, False), ("generic-flux", 0, False),
        ("generic-flux", 1, True),
    ),
)  # fmt: skip
def test_a_refused_submission_ends_the_command(tmp_path, site, accepted, silent):
    """Nothing more is submitted then, also where the command prints nothing and ends with 0."""
    tools = tmp_path / "tools"
    command, number, first, cancel = SCHEDULERS[site]
    refusal = "exit 0" if silent else "echo no such queue >&2; exit 157"
    number = number.format(tools=tools)
    tool(tools, command, f"(($(wc -l <{tools}/notes) <= {accepted})) || {{ {refusal}; }}\n{number}")
    done = submit(
        tools, "--site", site, "--nodes", "4", "--out", str(tmp_path / "o"), "scaling-weak"
    )
    assert done.returncode == 2, done.stdout
    assert len(notes(tools)) == accepted + 1
    why = "printed no number of a job: ''" if silent else "ended with status 157"
    assert f"refused the job: {command} {why}; " in done.stderr
    before = (
        f"submitted before, and still in the queue: {first}; cancel with: {cancel}."
        if accepted
        else "nothing was submitted."
    )
    assert before in done.stderr
    assert (tmp_path / "o").exists() == bool(accepted)
    # A directory that was there is the user's.
    (tmp_path / "mine").mkdir()
    submit(tools, "--site", site, "--out", str(tmp_path / "mine"), "compare")
    assert (tmp_path / "mine").exists()


@pytest.mark.parametrize("site", SCHEDULERS)
def test_lines_of_the_centre_before_the_number_are_no_part_of_it(tmp_path, site):
    tools = tmp_path / "tools"
    command, number, first, _ = SCHEDULERS[site]
    tool(tools, command, f"echo 'Welcome to the centre'; {number.format(tools=tools)}")
    done = submit(tools, "--site", site, "--out", str(tmp_path / "o"), "compare")
    assert f"job {first}: " in done.stdout


@pytest.mark.parametrize("name", ["it's", "a\tb", "$(touch planted)", 'say "x"', "a b"])
def test_any_sh_reads_the_words_that_flux_wraps(tmp_path, name):
    tools, folder = tmp_path / "tools", tmp_path / name
    folder.mkdir()
    tool(tools, "flux", f'printf "%s" "${{@: -1}}" >{tools}/wrapped; echo f1')
    case = "{backend: posix, workload: hyperslab, shape: [8, 8], layout: file_per_process}"
    (folder / "mine.yaml").write_text(f"name: mine\ncases: [{case}]\n")
    done = submit(
        tools, "--site", "generic-flux", "--out", str(tmp_path / "o"), "array", str(folder)
    )
    assert done.returncode == 0, done.stderr
    line = (tools / "wrapped").read_text()
    words = subprocess.run(
        ["sh", "-c", f"set -- {line}; printf '%s\\n' \"$@\""], cwd=tmp_path,
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert words.splitlines() == [f"{JOBS}/array.sh", str(folder)]
    assert not (tmp_path / "planted").exists()


@pytest.mark.parametrize(
    ("nodes", "queue"),
    [("1", "capacity"), ("16", "capacity"), ("17", "debug-scaling"), ("256", "prod")],
)
def test_aurora_gets_one_job_in_the_queue_for_its_nodes(tmp_path, nodes, queue):
    tools = tmp_path / "tools"
    tool(tools, "qsub", "echo 7.aurora")
    done = submit(
        tools, "--site", "aurora", "--nodes", nodes, "--out", str(tmp_path / "o"), "scaling-weak"
    )
    assert done.returncode == 0, done.stderr
    (call,) = notes(tools)
    assert f" -q {queue} " in call
    assert f"select={nodes}:" in call
    assert ",PFFBENCH_ONE_ALLOCATION=1 " in call


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--site", "generic-pbs", "--qos", "q", "compare"), "--qos: jobs/submit has nothing like"),
        (("--site", "generic-flux", "--time", "soon", "compare"), "--time soon: it is minutes"),
        (("--site", "generic-flux", "cold-read"), "which only Slurm can do here"),
    ],
)
def test_what_a_scheduler_cannot_do_is_refused(tmp_path, words, said):
    done = submit(tmp_path, "--dry-run", "--out", str(tmp_path / "o"), *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert not (tmp_path / "o").exists()


def test_the_name_of_the_results_directory_is_no_option_of_a_tool(tmp_path):
    done = submit(tmp_path, "--dry-run", "--site", "generic-pbs", "--out", "-o", "compare")
    assert (done.returncode, done.stderr) == (0, "")
    assert "/-o" in done.stdout


# --- a job


def job(tmp_path, site, script="compare", **variables):
    """Run a job script as a scheduler would, with a launcher that notes its words."""
    (tmp_path / "mine.yaml").write_text("name: mine\n")
    return subprocess.run(
        [JOBS / f"{script}.sh", "mine.yaml", "--set", "repetitions=3"],
        env={
            **PLAIN, "PATH": f"{tmp_path / 'tools'}:{PLAIN['PATH']}",
            "PFFBENCH_HOME": str(ROOT), "PFFBENCH_SITE": site, "PFFBENCH_OUT": str(tmp_path / "o"),
            "PFFBENCH_PYTHON": sys.executable, "PFFBENCH_SCRATCH": str(tmp_path),
            "TMPDIR": str(tmp_path), **variables,
        },
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


#: A launcher whose run stops before its end, as at the end of the job's time.
STOPS = """mkdir -p "${@: -1}"
echo '{"status": "interrupted", "startup": {"seconds_to_main": 1}}' >"${@: -1}/run.json"
exit 3"""


@pytest.mark.parametrize(
    ("version", "how", "hosts"),
    [
        ("mpiexec (Open MPI) 5.0.7", "--map-by ppr:2:node", "n1 slots=2\nn2 slots=2\n"),
        ("HYDRA build details:", "-ppn 2", "n1:2\nn2:2\n"),
        ("mpiexec version 1.4.0 PALS", "--ppn 2", "n1\nn2\n"),
    ],
)  # fmt: skip
def test_a_job_of_pbs_starts_its_ranks_by_mpiexec(tmp_path, version, how, hosts):
    (tmp_path / "nodes").write_text("n1\nn1\nn2\nn2\n")
    start = "Mon Nov 23 00:34:54 2026"
    tool(tmp_path / "tools", "qstat", f"cat <<'E'\n{QSTAT.format(state='R', start=start)}E")
    answer = f'[[ $1 != --version ]] || {{ echo "{version}"; exit; }}'
    tool(tmp_path / "tools", "mpiexec", f"{answer}\n{STOPS}")
    done = job(
        tmp_path, "generic-pbs", PBS_JOBID="17.server", PBS_JOBNAME="x", PBS_ACCOUNT="abc",
        PBS_NODEFILE=str(tmp_path / "nodes"), PBS_O_WORKDIR=str(tmp_path),
    )  # fmt: skip
    assert done.returncode == 3, done.stdout + done.stderr
    (call,) = (line for line in notes(tmp_path / "tools") if " -n 4 " in line)
    assert how in call
    assert f"-m pffbench run --scratch {tmp_path}/pffbench-job-17 mine.yaml" in call
    assert (tmp_path / "o" / "hosts-17-2n-2").read_text() == hosts
    assert (
        f"PBS does not queue the job again; go on in a new job with: PFFBENCH_JOB=17 {JOBS}/submit "
        f"--site generic-pbs --nodes 2 --tasks-per-node 2 --out {tmp_path}/o --account abc "
        "compare mine.yaml --set repetitions=3" in done.stdout
    )


FLUX = f"""case "$1 $2" in
"getattr jobid") echo ƒ17 ;; "getattr size") echo 2 ;; "getattr hostlist") echo 'n[1-2]' ;;
"job id") echo f17 ;; "job timeleft") echo 3600 ;; run*) {STOPS} ;; *) exit 1 ;; esac"""


def test_a_job_of_flux_starts_its_ranks_by_flux_run(tmp_path):
    tool(tmp_path / "tools", "flux", FLUX)
    done = job(tmp_path, "generic-flux", FLUX_URI="local:///x", PFFBENCH_TASKS_PER_NODE="2")
    assert done.returncode == 3, done.stdout + done.stderr
    (call,) = (line for line in notes(tmp_path / "tools") if line.startswith("flux run"))
    assert call.startswith("flux run -o exit-timeout=60s --nodes=2 --tasks-per-node=2 ")
    assert "2 nodes (n[1-2]), 2 tasks on each" in done.stdout
    assert "Flux does not queue the job again; go on in a new job" in done.stdout
    assert f"PFFBENCH_JOB=f17 {JOBS}/submit --site generic-flux --nodes 2" in done.stdout


def test_the_new_job_goes_on_where_the_other_one_left(tmp_path):
    tool(tmp_path / "tools", "flux", FLUX)
    first = job(tmp_path, "generic-flux", FLUX_URI="local:///x", PFFBENCH_TASKS_PER_NODE="2")
    again = job(
        tmp_path, "generic-flux", FLUX_URI="local:///x", PFFBENCH_TASKS_PER_NODE="2",
        PFFBENCH_JOB="f16",
    )  # fmt: skip
    assert f"{tmp_path}/o/compare-2n-f17" in first.stdout
    assert f"{tmp_path}/o/compare-2n-f16" in again.stdout


@pytest.mark.parametrize(("site", "what"), [("generic-pbs", "PBS"), ("generic-flux", "Flux")])
def test_a_script_outside_of_its_scheduler_says_so(tmp_path, site, what):
    done = job(tmp_path, site)
    assert done.returncode == 2
    assert f"this is no {what} job; submit it with jobs/submit --site {site}" in done.stderr


FINISHES = STOPS.replace("interrupted", "finished").replace(", ", ', "valid": true, ', 1)


@pytest.mark.parametrize("wanted", ["0", "1"])
def test_the_report_is_the_last_step_of_a_job_unless_it_is_not_wanted(tmp_path, wanted):
    tool(tmp_path / "tools", "flux", FLUX.replace(STOPS, FINISHES.replace("exit 3", "exit 0")))
    done = job(
        tmp_path, "generic-flux", FLUX_URI="local:///x", PFFBENCH_TASKS_PER_NODE="2",
        PFFBENCH_REPORT=wanted,
    )  # fmt: skip
    # This run holds nothing to report of, and a job that measured does not fail by that.
    assert done.returncode == 0, done.stdout + done.stderr
    assert ("make them with: pffbench report DIRECTORY" in done.stdout) is (wanted == "1")
    assert "exit status 0: all well" in done.stdout
    assert "run ended with 0, start-up took 1.0 s: " in done.stdout


# --- striping


def stripe(tmp_path, site="generic", **variables):
    tool(tmp_path / "tools", "lfs", "exit 0")
    script = '. "$PFFBENCH_HOME/jobs/lib.sh"; load_site; check_striping; stripe /here; env'
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        env={**PLAIN, "PATH": f"{tmp_path / 'tools'}:{PLAIN['PATH']}", "PFFBENCH_HOME": str(ROOT),
             "PFFBENCH_SITE": site, **variables},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("site", "variables", "command"),
    [
        ("generic", {"STRIPES": "8", "STRIPE_SIZE": "16M", "STRIPE_POOL": "fast"},
         "lfs setstripe --stripe-count 8 --stripe-size 16M --pool fast /here"),
        ("frontier", {"STRIPES": "450"}, "lfs setstripe --stripe-count 450 --pool capacity /here"),
        ("lumi", {"STRIPE_LAYOUT": "-E 1G -c 1 -E -1 -c 8 -S 16M"},
         "lfs setstripe -E 1G -c 1 -E -1 -c 8 -S 16M /here"),
    ],
)  # fmt: skip
def test_files_are_striped_as_the_variables_say(tmp_path, site, variables, command):
    done = stripe(tmp_path, site, **{f"PFFBENCH_{k}": v for k, v in variables.items()})
    assert notes(tmp_path / "tools") == [command], done.stderr
    # What the site adds is recorded as well, with the environment of the run.
    assert ("PFFBENCH_STRIPE_POOL=capacity" in done.stdout) is (site == "frontier")


def test_without_a_variable_the_layout_of_the_site_stays(tmp_path):
    assert stripe(tmp_path, "frontier").returncode == 0
    assert not (tmp_path / "tools" / "notes").exists()


@pytest.mark.parametrize(
    ("site", "variables", "said"),
    [
        ("generic", {"STRIPES": "many"}, "PFFBENCH_STRIPES=many: it is a number of servers"),
        ("frontier", {"STRIPES": "451"}, "site frontier allows at most 450"),
        ("frontier", {"STRIPES": "-1"}, "PFFBENCH_STRIPES=-1: site frontier allows at most 450"),
        ("generic", {"STRIPE_SIZE": "100K"}, "PFFBENCH_STRIPE_SIZE=100K: it is a multiple of 64K"),
        ("generic", {"STRIPE_POOL": "a b"}, "PFFBENCH_STRIPE_POOL=a b: it is the name of a pool"),
        ("generic", {"STRIPE_LAYOUT": "-c 4"}, "it is the components of a progressive layout"),
        ("generic", {"STRIPE_LAYOUT": "-E -1 -c 4", "STRIPES": "2"}, "unset the other PFFBENCH"),
        ("juwels", {"STRIPES": "2"}, "the file system of site juwels has no striping to set"),
    ],
)
def test_wrong_striping_is_refused_in_a_sentence(tmp_path, site, variables, said):
    done = stripe(tmp_path, site, **{f"PFFBENCH_{k}": v for k, v in variables.items()})
    assert done.returncode == 2
    assert said in done.stderr
    assert not (tmp_path / "tools" / "notes").exists()


# --- what pffbench itself knows of such a job


@pytest.fixture
def pbs(tmp_path, monkeypatch):
    start = time.strftime("%a %b %d %H:%M:%S %Y", time.localtime(time.time() - 600))
    tool(tmp_path, "qstat", f"cat <<'E'\n{QSTAT.format(state='R', start=start)}E")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return {"PBS_JOBID": "17.server", "PBS_QUEUE": "debug"}


def test_a_run_ends_before_the_time_of_a_pbs_job(pbs):
    assert seconds_left(pbs) == pytest.approx(3000 - 60, abs=3)


@pytest.mark.parametrize(("left", "seconds"), [("3000", 2940), ("4294967295", None), ("", None)])
def test_a_run_ends_before_the_time_of_a_flux_job(tmp_path, monkeypatch, left, seconds):
    tool(tmp_path, "flux", f'[ "$*" = "job timeleft" ] && echo {left}')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert seconds_left({"FLUX_URI": "local:///x"}) == (seconds and pytest.approx(seconds, abs=3))


def test_the_facts_of_a_pbs_job_are_recorded(pbs):
    facts = scheduler_facts("pbs", pbs)
    assert (facts["jobid"], facts["queue"]) == ("17.server", "debug")
    assert facts["qstat"]["exec_vnode"] == "(n1:ncpus=2)+(n2:ncpus=2)"
    assert "Account_Name" not in facts["qstat"]
    assert scheduler_facts("pbs", {}) == {}


def test_the_facts_of_a_flux_job_are_recorded(tmp_path, monkeypatch):
    tool(tmp_path, "flux", "printf '%s\\n' 'size  2' 'hostlist  n[1-2]' 'rank  0'")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    job = {"FLUX_URI": "local:///x", "FLUX_JOB_ID": "ƒ2", "PFFBENCH_FLUX_JOB": "f17"}
    facts = scheduler_facts("flux", job)
    assert (facts["job_id"], facts["batch_job"]) == ("ƒ2", "f17")
    assert facts["instance"] == {"size": "2", "hostlist": "n[1-2]"}
    assert scheduler_facts("flux", {}) == {}


@pytest.mark.parametrize(
    ("scheduler", "says", "status", "fate"),
    [
        ("pbs", "    job_state = R", 0, "runs"), ("pbs", "    job_state = F", 0, "ended"),
        ("pbs", "qstat: Unknown Job Id 17.server", 153, "ended"),
        ("pbs", "no server", 1, "unknown"),
        ("flux", "RUN", 0, "runs"), ("flux", "INACTIVE", 0, "ended"),
        ("flux", "broken", 1, "unknown"),
    ],
)  # fmt: skip
def test_whether_a_process_of_another_job_has_ended(
    tmp_path, monkeypatch, scheduler, says, status, fate
):
    name = {"pbs": "qstat", "flux": "flux"}[scheduler]
    tool(tmp_path, name, f'echo "{says}" >&$((1 + ({status} > 0))); exit {status}')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    other = OwnerProcess(
        "elsewhere", "me", 7, "2026-11-23", boot="b", job="17.server", scheduler=scheduler
    )
    assert other.fate().state == fate


@pytest.mark.parametrize("scheduler", ["slurm", "pbs", "flux"])
def test_without_the_scheduler_nothing_is_known_of_another_job(tmp_path, monkeypatch, scheduler):
    monkeypatch.setenv("PATH", str(tmp_path))
    other = OwnerProcess("elsewhere", "me", 7, "2026", boot="b", job="17", scheduler=scheduler)
    assert other.fate().state == "unknown"


def test_the_next_command_is_that_of_the_scheduler():
    options = SimpleNamespace(experiment=None)
    assert "flux run -n 2 python" in more_ranks(options, {"FLUX_URI": "x"}, 2)
    assert "mpiexec -n 2 python" in more_ranks(options, {"PBS_JOBID": "1"}, 2)
