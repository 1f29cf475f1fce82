"""The job scripts without Slurm; tests/slurm/test_jobs.py submits them."""

import os
import pwd
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from launch import cannot_run
from timed_runs import Maker

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
JOBS = ROOT / "jobs"
LIBRARIES = [
    JOBS / f"{name}.sh" for name in ("lib", "endings", "stage", "striping", "baseline")
]  # fmt: skip
SCHEDULERS = sorted((JOBS / "schedulers").glob("*.sh"))
SITES = sorted((JOBS / "sites").glob("*.sh"))
SCRIPTS = sorted(set(JOBS.glob("*.sh")) - set(LIBRARIES))
ALL = [*SCRIPTS, *LIBRARIES, *SCHEDULERS, *SITES, JOBS / "submit"]
#: What a user's own shell may have set must not reach the tests.
PLAIN = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("PFFBENCH", "SLURM", "SBATCH", "PBS", "FLUX"))
}


def named(paths):
    return [pytest.param(path, id=str(path.relative_to(JOBS))) for path in paths]


def bash(script, timeout=300, **variables):
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        env={**PLAIN, "PFFBENCH_HOME": str(ROOT), **variables},
        capture_output=True, text=True, timeout=timeout,
    )  # fmt: skip


def submit(*arguments, cwd=ROOT, path="", **variables):
    return subprocess.run(
        [JOBS / "submit", *arguments],
        env={**PLAIN, "PATH": f"{path}:{PLAIN['PATH']}", **variables},
        cwd=cwd, capture_output=True, text=True, timeout=300,
    )  # fmt: skip


# --- all scripts


def test_all_that_was_asked_for_is_there():
    assert {path.stem for path in SCRIPTS} == {
        "array", "cold-read", "compare", "nightly", "report", "scaling-strong", "scaling-weak"
    }  # fmt: skip
    assert {path.stem for path in SITES} == {
        "aurora", "frontier", "generic", "generic-flux", "generic-pbs", "jupiter", "juwels",
        "lumi", "marenostrum5", "perlmutter", "tuolumne",
    }  # fmt: skip


@pytest.mark.parametrize("script", named(ALL))
def test_it_is_bash(script):
    checked = subprocess.run(["bash", "-n", script], capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize("script", named(ALL))
def test_shellcheck_finds_nothing(script):
    if not shutil.which("shellcheck"):
        cannot_run("shellcheck is not installed")
    checked = subprocess.run(
        ["shellcheck", "--external-sources", "--source-path", ROOT, script],
        capture_output=True, text=True,
    )  # fmt: skip
    assert (checked.returncode, checked.stdout) == (0, "")


@pytest.mark.parametrize("script", named(ALL))
def test_no_path_of_a_machine_is_in_it(script):
    allowed = {"/bin/bash", "/usr/bin/env", "/dev/null", "/tmp", "/usr/"}
    if script in SITES:  # a site's own documented places are the site's to know
        allowed |= {
            "/mnt/bb/$", "/scratch/$SLURM_JOB_ACCOUNT", "/gpfs/scratch/$", "/p/lustre5/$",
            "/lus/flare/projects/$PBS_ACCOUNT/$",
        }  # fmt: skip
    lines = script.read_text().splitlines()
    code = "\n".join(lines[:1] + [line for line in lines if not line.lstrip().startswith("#")])
    assert set(re.findall(r"(?<=[\s=(\"'!:+-])/[A-Za-z][\w$./]*", code)) <= allowed


@pytest.mark.parametrize("script", named([*SCRIPTS, JOBS / "submit"]))
def test_it_can_be_executed_and_stops_at_errors(script):
    assert os.access(script, os.X_OK)
    assert "\nset -euo pipefail\n" in script.read_text()


def header(script):
    found = re.findall(r"^#SBATCH --([a-z-]+)(?:=(.*))?$", script.read_text(), re.MULTILINE)
    return dict(found)


@pytest.mark.parametrize("script", named(SCRIPTS))
def test_the_header_names_nothing_that_only_one_cluster_has(script):
    options = header(script)
    assert {"job-name", "nodes", "ntasks-per-node", "time", "output"} <= set(options)
    own = {"account", "partition", "constraint", "qos", "licenses", "reservation", "mem"}
    assert not own & set(options)


@pytest.mark.parametrize("script", named([s for s in SCRIPTS if s.stem != "report"]))
def test_a_job_that_measures_can_be_warned_and_go_on(script):
    options = header(script)
    # Without B: the ranks are warned; and the log of the first start is kept.
    assert options["signal"] == "USR1@120"
    assert "requeue" in options
    assert options["open-mode"] == "append"


def test_outside_a_job_a_script_says_what_to_do():
    alone = bash(f"unset PFFBENCH_HOME; {JOBS}/compare.sh")
    assert alone.returncode != 0
    assert "submit this script with sbatch" in alone.stderr


# --- site profiles

KINDS_OF_MPI = {
    "slurm": {"auto", "default", "pmix", "pmi2", "cray_shasta"},
    "pbs": {"auto", "openmpi", "hydra", "pals"},
    "flux": {"auto"},
}


@pytest.mark.parametrize("site", named(SITES))
def test_a_site_defines_all_that_the_scripts_use(site):
    done = bash(
        '. "$PFFBENCH_HOME/jobs/lib.sh"; load_site\n'
        "declare -p SITE_SUBMIT SITE_LAUNCH SITE_SCHEDULER SITE_JOBS SITE_TASKS_PER_NODE SITE_MPI\n"
        "declare -p SITE_LOCAL SITE_DROP_HOOK SITE_STRIPING SITE_MOST_STRIPES SITE_STRIPE_POOL\n"
        "declare -F site_environment site_scratch submission job_begins launcher why_ended",
        PFFBENCH_SITE=site.stem, USER="me",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.startswith("declare -a") for line in lines[:2]] == [True, True]
    assert len(lines[-6:]) == 6
    assert "site_environment" in lines
    assert "submission" in lines
    scheduler = re.search(r'SITE_SCHEDULER="(.*)"', done.stdout)
    mpi = re.search(r'SITE_MPI="(.*)"', done.stdout)
    assert scheduler
    assert mpi
    assert mpi[1] in KINDS_OF_MPI[scheduler[1]]


def test_a_site_that_names_no_scheduler_has_slurm(tmp_path):
    """As profiles that were written before there were others."""
    text = (JOBS / "sites" / "generic.sh").read_text()
    own = tmp_path / "own.sh"
    own.write_text("".join(
        line for line in text.splitlines(True) if not line.startswith("SITE_SCHEDULER=")
    ))  # fmt: skip
    assert len(own.read_text()) < len(text)
    done = bash('set -u; . "$PFFBENCH_HOME/jobs/lib.sh"; load_site; echo $SITE_SCHEDULER',
                PFFBENCH_SITE=str(own), USER="me")  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "slurm\n"), done.stderr


@pytest.mark.parametrize("site", named(SITES))
def test_a_site_uses_no_variable_that_lib_does_not_read(site):
    set_here = set(re.findall(r"^(SITE_\w+)=", site.read_text(), re.MULTILINE))
    readers = "".join(path.read_text() for path in [*LIBRARIES, *SCHEDULERS, JOBS / "submit"])
    assert set_here == set(re.findall(r"SITE_\w+", readers))


@pytest.mark.parametrize("site", named([s for s in SITES if not s.stem.startswith("generic")]))
def test_a_site_says_that_it_was_not_tested_there(site):
    assert "from public documentation, not tested there" in " ".join(
        site.read_text().replace("\n#", "").lower().split()
    )


@pytest.mark.parametrize(
    ("site", "variables", "directory"),
    [
        ("generic", {"SLURM_SUBMIT_DIR": "/here"}, "/here"),
        ("generic", {"SCRATCH": "/fast/me"}, "/fast/me"),
        ("perlmutter", {"SCRATCH": "/fast/me"}, "/fast/me"),
        ("frontier", {"MEMBERWORK": "/m", "SLURM_JOB_ACCOUNT": "ABC123"}, "/m/abc123"),
        ("lumi", {"SLURM_JOB_ACCOUNT": "project_465000000"}, "/scratch/project_465000000"),
        ("aurora", {"PBS_ACCOUNT": "abc"}, "/lus/flare/projects/abc/$(id -un)"),
        ("generic-pbs", {"PBS_O_WORKDIR": "/here"}, "/here"),
        ("tuolumne", {}, "/p/lustre5/$(id -un)"),
        ("jupiter", {"SCRATCH": "/p/scratch/x"}, "/p/scratch/x"),
        ("juwels", {"SCRATCH": "/p/scratch/x"}, "/p/scratch/x"),
        ("juwels", {"SCRATCH": "/p/scratch/x", "PFFBENCH_SCRATCH": "/mine"}, "/mine"),
    ],
)
def test_where_the_files_under_test_go(site, variables, directory):
    done = bash(
        '. "$PFFBENCH_HOME/jobs/lib.sh"; unset SCRATCH; eval "$SET"; load_site; scratch_parent',
        PFFBENCH_SITE=site,
        SET="; ".join(f"{name}={value}" for name, value in {"USER": "me", **variables}.items()),
    )
    user = pwd.getpwuid(os.getuid()).pw_name
    assert done.stdout == directory.replace("$(id -un)", user) + "\n", done.stderr


def test_a_site_that_does_not_know_the_scratch_directory_says_so():
    done = bash(
        '. "$PFFBENCH_HOME/jobs/lib.sh"; unset SLURM_JOB_ACCOUNT; load_site; scratch_parent',
        PFFBENCH_SITE="lumi",
    )
    assert "set PFFBENCH_SCRATCH" in done.stderr + done.stdout
    assert done.returncode != 0


def test_a_site_can_be_a_file_of_ones_own(tmp_path):
    mine = tmp_path / "mine.sh"
    generic = (JOBS / "sites/generic.sh").read_text()
    mine.write_text(generic.replace("SITE_SUBMIT=(--exclusive)", "SITE_SUBMIT=(--partition=mine)"))
    done = submit("--dry-run", "--site", str(mine), "--out", str(tmp_path), "compare")
    assert " --partition=mine " in done.stdout


def test_a_wrong_site_is_answered_with_the_right_ones():
    done = submit("--dry-run", "--site", "nowhere", "compare")
    assert done.returncode == 2
    assert "juwels lumi marenostrum5 perlmutter tuolumne or the path" in done.stderr


# --- what a job does before it measures


def test_a_module_that_cannot_be_loaded_ends_the_job(tmp_path):
    module = tmp_path / "module"
    module.write_text('#!/bin/bash\necho "Lmod has detected the following error: $*" >&2\nexit 1\n')
    module.chmod(0o755)
    done = bash(
        '. "$PFFBENCH_HOME/jobs/lib.sh"; load_site; enter_site; echo measured',
        PFFBENCH_SITE="perlmutter", PATH=f"{tmp_path}:{PLAIN['PATH']}",
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Lmod has detected the following error: load python" in done.stderr
    assert "the environment of site perlmutter could not be loaded" in done.stderr


@pytest.mark.parametrize(
    ("status", "starts", "once_more"),
    [
        ("0", "1", True),
        ("137", "1", True),
        ("0", "2", False),
        ("2", "1", False),
        ("138", "1", False),
    ],
)
def test_a_step_that_recorded_no_start_never_began_whatever_srun_ends_with(
    status, starts, once_more
):
    done = bash(
        '. "$PFFBENCH_HOME/jobs/lib.sh"; ENDED=; recorded() { echo "$STARTS"; }\n'
        'if never_began /run 1 "$STATUS"; then echo yes; else echo no; fi',
        STARTS=starts, STATUS=status,
    )  # fmt: skip
    assert done.stdout == ("yes\n" if once_more else "no\n"), done.stderr


@pytest.mark.parametrize("works", [True, False])
def test_what_was_made_on_a_login_node_is_proved_once_by_the_first_job(tmp_path, works):
    tools, home = tmp_path / "tools", tmp_path / "home"
    for place in (tools, home / ".build", home / ".venv" / "bin"):
        place.mkdir(parents=True)
    (home / ".build" / "unproven").touch()
    (home / "jobs").symlink_to(JOBS)
    srun = tools / "srun"
    said = "h5py 3 and netCDF4 1 share it" if works else "h5py is built without MPI"
    srun.write_text(f'#!/bin/bash\necho "$*" >>{tmp_path}/calls\necho "{said}"; exit {1 - works}\n')
    srun.chmod(0o755)
    script = (
        '. "$PFFBENCH_HOME/jobs/lib.sh"; ENDED=; JOB=7; MPI_OPTION=(--mpi=pmix)\n'
        '. "$ROOT/jobs/sites/generic.sh"; . "$ROOT/jobs/schedulers/slurm.sh"\n'
        f"OUT={tmp_path}/out; PYTHON={home}/.venv/bin/python; prove_environment; prove_environment"
    )
    done = bash(script, PFFBENCH_HOME=str(home), ROOT=str(ROOT), PATH=f"{tools}:{PLAIN['PATH']}")
    (call,) = (tmp_path / "calls").read_text().splitlines()
    assert call.startswith("--mpi=pmix --overcommit --kill-on-bad-exit=0 --wait=60 --nodes=1 ")
    assert (home / ".build" / "unproven").exists() is not works
    assert done.returncode == (0 if works else 2)
    assert said in (done.stdout if works else done.stderr)
    assert ("nothing was measured" in done.stderr) is not works


# --- nights


def drawn_nights(directory, count, factor, generator):
    """Runs of equal programs, or slower ones, whose starts differ by 5 % and repetitions by 8 %."""
    maker = Maker(directory)
    for seed in range(count):
        start = {}

        def took(case, phase, start=start):
            own = start.setdefault((case, phase), float(np.exp(generator.normal(0, 0.05))))
            return own * (1 if case.startswith("posix") else factor)

        maker(factor=took, seed=seed, noise=0.08)


@pytest.mark.full
def test_ten_equal_nights_are_green_seven_are_the_baseline_and_a_slowdown_of_half_is_red(tmp_path):
    generator = np.random.default_rng(31)
    for place, count, factor in (("equal", 10, 1), ("slow", 3, 1.5)):
        (tmp_path / place).mkdir()
        drawn_nights(tmp_path / place, count, factor, generator)
    kept = tmp_path / "nightly-1n.baseline"
    nights = [*(f"equal/run{n}" for n in range(1, 11)), *(f"slow/run{n}" for n in range(1, 4))]
    for night in nights:
        (tmp_path / night).rename(tmp_path / night.replace("/", "-"))
    done = bash(
        '. "$PFFBENCH_HOME/jobs/lib.sh"; . "$PFFBENCH_HOME/jobs/baseline.sh"; ALLOWED=20%\n'
        'for night in "$OUT"/equal-run{1..10} "$OUT"/slow-run{1..3}; do\n'
        '    WORST=0 MEANING=; find_baseline; judge_night "$night"; echo "ended $WORST: $MEANING"\n'
        "done\n"
        # A night that is slower, by less than is allowed here.
        'ALLOWED=70% WORST=0 MEANING=; judge_night "$night"; echo "ended $WORST: $MEANING"',
        timeout=240, OUT=str(tmp_path), KEPT=str(kept), PYTHON=sys.executable,
    )  # fmt: skip
    ended = re.findall("^ended (.*)", done.stdout, re.MULTILINE)
    *ended, allowed = ended
    assert len(ended) == 13, done.stdout + done.stderr
    assert allowed.startswith("0: all well: shown to be slower than the baseline, by no more than")
    assert ended[0] == "0: all well: the first night of a baseline, so nothing was compared"
    assert all(line.startswith("0: all well: ") for line in ended[:10]), done.stdout + done.stderr
    assert all(line.startswith("1: shown to be slower than the base") for line in ended[10:]), ended
    assert kept.read_text().split() == [f"equal-run{n}" for n in range(1, 8)]


# --- submit


EXPORT = f"--export=ALL,PFFBENCH_HOME={ROOT},PFFBENCH_SITE"


def sbatch(rest, site="generic", options="--exclusive ", log="%x-%j.out", more=""):
    """The command that submits, with results in /o."""
    return (
        f"sbatch --parsable {options}--output=/o/{log} {EXPORT}={site},PFFBENCH_OUT=/o{more} {rest}"
    )


@pytest.mark.parametrize("script", ["scaling-weak", "scaling-strong"])
@pytest.mark.parametrize(
    ("nodes", "series"), [("1", [1]), ("2", [1, 2]), ("4", [1, 2, 4]), ("6", [1, 2, 4, 6])]
)
def test_a_series_is_one_job_after_the_other(script, nodes, series):
    done = submit("--dry-run", "--nodes", nodes, "--out", "/o", script)
    expected = []
    for number, size in enumerate(series, 1):
        after = f"--dependency=afterany:$job{number - 1} " if number > 1 else ""
        rest = sbatch(f"--nodes={size} {after}{JOBS}/{script}.sh")
        expected.append(f"job{number}=$({rest})")
    assert done.stdout.splitlines() == expected


def test_a_series_in_one_allocation_is_one_job():
    done = submit("--dry-run", "--nodes", "4", "--one-allocation", "--out", "/o", "scaling-weak")
    rest = sbatch(f"--nodes=4 {JOBS}/scaling-weak.sh", more=",PFFBENCH_ONE_ALLOCATION=1")
    assert done.stdout.splitlines() == [f"job1=$({rest})"]


def test_every_option_reaches_sbatch_and_arguments_the_script():
    done = submit(
        "--dry-run", "--nodes", "2", "--tasks-per-node", "64", "--site", "perlmutter",
        "--account", "m0000", "--partition", "p", "--constraint", "gpu", "--qos", "debug",
        "--time", "01:00:00", "--reservation", "r", "--out", "/o",
        "--no-report", "compare", "mine.yaml", "--set", "shape=[2, 3]", "--fail-fast",
        "--", "--mem=0", "--exclude", "node 7",
    )  # fmt: skip
    # What is given comes after what the site has, so that sbatch takes it.
    how = {
        "site": "perlmutter",
        "options": "--constraint=cpu --qos=regular --licenses=SCRATCH --cpus-per-task=2 "
        "--account=m0000 --partition=p --constraint=gpu --qos=debug --time=01:00:00 "
        "--reservation=r --mem=0 --exclude 'node 7' ",
        "more": ",PFFBENCH_REPORT=0",
    }
    rest = f"--nodes=2 --ntasks-per-node=64 {JOBS}/compare.sh mine.yaml --set 'shape=[2, 3]' "
    assert done.stdout.splitlines() == [f"job1=$({sbatch(rest + '--fail-fast', **how)})"]


def test_an_array_has_an_element_for_each_experiment(tmp_path):
    for name in ("b.yaml", "a.yaml", "no.txt"):
        (tmp_path / name).touch()
    done = submit("--dry-run", "--out", "/o", "array", str(tmp_path), "c.yaml")
    rest = f"--nodes=1 --array=0-2%1 {JOBS}/array.sh {tmp_path} c.yaml"
    assert done.stdout.splitlines() == [f"job1=$({sbatch(rest, log='%x-%A_%a.out')})"]


def test_a_dry_run_touches_nothing(tmp_path):
    submit("--dry-run", "--nodes", "2", "scaling-weak", cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def fake_sbatch(tmp_path):
    """A program `sbatch` that notes its arguments and numbers the jobs; returns (PATH, notes)."""
    tools = tmp_path / "tools"
    tools.mkdir()
    notes = tmp_path / "notes"
    program = tools / "sbatch"
    program.write_text(
        f"""#!/bin/bash
        printf '%s\\n' "$*" >>{notes}
        echo "$((100 + $(wc -l <{notes})));box"
        """
    )
    program.chmod(0o755)
    return str(tools), notes


def test_what_is_submitted_is_what_a_dry_run_prints(fake_sbatch, tmp_path):
    path, notes = fake_sbatch
    options = ["--nodes", "4", "--tasks-per-node", "8", "--out", str(tmp_path / "o")]
    printed = submit("--dry-run", *options, "scaling-weak", "--set", "repetitions=3").stdout
    done = submit(*options, "scaling-weak", "--set", "repetitions=3", path=path)
    assert done.returncode == 0, done.stderr
    # The printed lines are a program for the shell.
    ran = notes.read_text()
    notes.unlink()
    again = bash(printed, PATH=f"{path}:{PLAIN['PATH']}")
    assert again.returncode == 0, again.stderr
    assert notes.read_text().replace(";box", "") == ran
    assert "--dependency=afterany:102 " in ran
    assert (tmp_path / "o").is_dir()


@pytest.mark.parametrize("script", ["compare", "scaling-weak", "array"])
def test_an_experiment_of_the_package_is_submitted_by_its_name(fake_sbatch, tmp_path, script):
    path, notes = fake_sbatch
    done = submit("--out", str(tmp_path / "o"), script, "question:writers", path=path)
    assert done.returncode == 0, done.stderr
    assert notes.read_text().endswith(f"jobs/{script}.sh question:writers\n")


def test_results_are_named_after_an_experiment_without_a_colon():
    names = bash('. "$PFFBENCH_HOME/jobs/lib.sh"; name_of question:writers; name_of a/b.yaml')
    assert names.stdout.split() == ["question-writers", "b"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "SCRIPT is scaling-weak"),
        (("--nodes",), "--nodes needs a value"),
        (("--nodes", "0", "compare"), "not a number of nodes"),
        (("--tasks-per-node", "many", "compare"), "not a number of tasks"),
        (("--colour", "compare"), "unknown option --colour"),
        (("hourly",), "there is no script hourly"),
        (("array",), "array needs experiments"),
        (("--out", "a,b", "compare"), "comma"),
        (("--", "--exclusive", "compare"), "what follows -- comes last"),
        (("compare", "nosuch.yaml"), "nosuch.yaml: there is no experiment to read"),
        (("array", "nosuch.yaml"), "nosuch.yaml: there is no experiment to read"),
        (("compare", "question:writer"), "the nearest: question:writers, "),
        (("compare", "--set", "colour=red"), "colour"),
        (("scaling-weak", "--set", "shape=[2, 3]"), "nothing was submitted"),
    ],
)
def test_wrong_input_is_refused_before_anything_is_done(fake_sbatch, tmp_path, arguments, said):
    path, notes = fake_sbatch
    work = tmp_path / "work"
    work.mkdir()
    done = submit(*arguments, cwd=work, path=path)
    assert done.returncode == 2
    assert said in done.stderr
    assert not notes.exists()
