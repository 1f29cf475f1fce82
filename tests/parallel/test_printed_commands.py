"""README, start page, cookbook and tutorials: each command runs as printed, in a fresh clone."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import NamedTuple

import pytest
from test_way_in import write_netcdf

from launch import REPOSITORY, environment

pytestmark = pytest.mark.parallel

#: Commands that need more than one machine without a network, by their beginning.
#: `test_documents.py` checks their arguments.
ELSEWHERE = {
    "python3 -m venv env": "network: pip follows; the job wheels of CI installs so",
    "pip install": "network; the job wheels of CI",
    "conda env create": "network and conda",
    "spack env activate": "network and Spack; tests/spack",
    "module load": "modules of a cluster",
    "sbatch": "a scheduler; tests/slurm",
    "for n in": "a scheduler; tests/slurm",
    "0 3 * * *": "cron and a scheduler; tests/slurm/test_nightly.py",
    "setup/env": "network: a second environment; tests/environments",
    "python -m pffbench run configs/environments.yaml": "two environments; tests/environments",
    "pffbench bisect": "network: environments of versions; tests/environments/test_bisect.py",
}
#: What the pages tell the reader to put in place of what they print.
IN_PLACE_OF = {
    r"srun -n \d+": "mpiexec -n 2",  # said on start.md and in the cookbook
    r"/lustre/\w+|/path/on/the/filesystem": ".",
    r"\bOLD NEW\b": "results/old-1 results/new",
    r"\bRUN\b": "pffbench-results/default-*",
    r"results/new-\*": "results/new",  # made by the loops above it, which are left out
    "…": "*",
}
#: Runs that a reader has already: the run of the documents stands for each.
HAD = ("old-1", "old-2", "old-3", "new", "new-1", "hdf5-1.14-1", "hdf5-2.0-1")
#: What takes seconds: the first runs before each commit. The rest takes more than an hour.
SHORT = ("cookbook.md: Is my update slower? (CI)", "tutorial-engineer.md")
#: The gate of `compare` ends so when something is slower, undecided, or the machine changed.
OF_THE_GATE = (0, 1, 2, 4, 5)
#: The last lines of a run: an answer, or why there is none and what to do.
ANSWERED = re.compile(r"^(?:USE|NO DECISION:|MEASURED:) \S|^NO ANSWER: (?s:.*?)--\w", re.MULTILINE)
VERDICT = re.compile(
    r"slower|faster|equal|not decided|machine changed|^(?:PASSED|FAILED): ",
    re.IGNORECASE | re.MULTILINE,
)
_BLOCK = re.compile(r"^```(\w*)\n((?s:.*?))^```$|^    (\S.*)$", re.MULTILINE)
_IN_TABLE = re.compile(r"^\| \S+ \| `([^`]+)` \|", re.MULTILINE)


class Part(NamedTuple):
    """What a reader goes through at one go: its commands, and the files that it lets save."""

    commands: list[str]
    experiments: dict[str, str]


def part(text):
    """Return what of a text is typed into a shell, and into files."""
    commands, experiments = _IN_TABLE.findall(text), {}
    for language, block, line in _BLOCK.findall(text):
        if language == "yaml" and (name := re.match(r"name: ([\w-]+)", block)):
            experiments[f"{name[1]}.yaml"] = block
        elif language == "python":
            commands.append(f"python - <<'END'\n{block}END")
        elif language == "bash":
            commands += block.splitlines()
        elif line:
            commands.append(line)
    return Part([re.split(r"\s+# ", command)[0] for command in commands], experiments)


def parts():
    """Yield the name of each part with what it has: recipes of the cookbook, and whole pages."""
    docs = REPOSITORY / "docs"
    for path in [REPOSITORY / "README.md", docs / "start.md", *docs.glob("tutorial-*.md")]:
        yield path.name, part(path.read_text(encoding="utf-8"))
    cookbook = (docs / "cookbook.md").read_text(encoding="utf-8")
    for recipe in cookbook.split("\n## ")[1:]:
        title, _, text = recipe.partition("\n")
        yield f"cookbook.md: {title}", part(text)


PARTS = dict(parts())


def elsewhere(command):
    """Return why a command does not run here, or None."""
    return next((why for start, why in ELSEWHERE.items() if command.startswith(start)), None)


def on_this_machine(command):
    """Return a printed command with what a reader puts in place of its names."""
    for printed, own in IN_PLACE_OF.items():
        command = re.sub(printed, own, command)
    return command


@pytest.fixture(scope="module")
def environment_of_clone(tmp_path_factory):
    """A clone in which the set-up has run."""
    path = tmp_path_factory.mktemp("printed") / "clone"
    subprocess.run(["git", "clone", "-q", REPOSITORY, path], check=True, timeout=300)
    if (tools := REPOSITORY / ".build" / "tools").exists():  # uv, which it would install anew
        (path / ".build").mkdir()
        (path / ".build" / "tools").symlink_to(tools)
    assert typed(path, "make env").returncode == 0
    return path


@pytest.fixture
def clone(environment_of_clone):
    """A clone as after the set-up, with the file of a program, and runs of other days."""
    path = environment_of_clone
    subprocess.run(["git", "clean", "-fdxq", "-e", ".venv", "-e", ".build"], cwd=path, check=True)
    write_netcdf(path / "run-42.nc")
    for name in HAD:
        shutil.copytree(path / "docs" / "results" / "default", path / "results" / name)
    return path


def typed(clone, command):
    """Run a command in a clone as a user does, and return what it ended with."""
    return subprocess.run(
        ["bash", "-c", f"[ ! -e .build/env.sh ] || . .build/env.sh\n{command}"], cwd=clone,
        env=environment(PYTHONPATH=None, BROWSER="true"), capture_output=True, text=True,
        timeout=1500, check=False,
    )  # fmt: skip


def test_all_pages_have_commands_and_each_one_that_runs_elsewhere_is_printed():
    assert len(PARTS) >= 20
    assert all(part.commands for part in PARTS.values())
    printed = [command for part in PARTS.values() for command in part.commands]
    for start in ELSEWHERE:
        assert any(command.startswith(start) for command in printed), start


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "name",
    [
        name
        if name == SHORT[0]
        else pytest.param(name, marks=pytest.mark.full if name in SHORT else pytest.mark.slow)
        for name in PARTS
    ],
)
def test_printed_commands_end_with_an_answer(clone, name):
    commands, experiments = PARTS[name]
    for file, text in experiments.items():
        (clone / file).write_text(text, encoding="utf-8")
    for command in commands:
        if elsewhere(command):
            continue
        done = typed(clone, on_this_machine(command))
        said = f"{command}\nexit status {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert done.returncode in (OF_THE_GATE if "--fail-if-slower" in command else (0,)), said
        if "pffbench compare" in command:
            assert VERDICT.search(done.stdout), said
        elif "pffbench recommend" in command or starts_a_run(command, commands):
            assert ANSWERED.search(done.stdout), said


def starts_a_run(command, commands):
    """Return whether a command is a run with an answer; of two versions `compare` has it."""
    out = re.search(r"--out (\S+)", command)
    later = bool(out) and any("pffbench compare" in c and out[1] in c for c in commands)
    return bool(re.search(r"pffbench (?:run|--)", command)) and not later
