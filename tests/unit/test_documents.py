"""Commands in the documents are accepted and experiments can be planned."""

import argparse
import csv
import re
import shlex
import shutil
from itertools import pairwise

import pytest

from launch import REPOSITORY, pffbench_here
from pffbench.cli import make_parser

pytestmark = pytest.mark.long

DOCS = REPOSITORY / "docs"
#: The pages for users.
PAGES = {
    path.name: path.read_text(encoding="utf-8")
    for path in [REPOSITORY / "README.md", *sorted(DOCS.glob("*.md"))]
    if path.name != "comparison.md"
}
#: The pages of measurements, and of what others do.
EVIDENCE = {
    f"evidence/{path.name}": path.read_text(encoding="utf-8")
    for path in sorted((DOCS / "evidence").glob("*.md"))
    if path.name != "README.md"
} | {"comparison.md": (DOCS / "comparison.md").read_text(encoding="utf-8")}
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(text, *languages):
    return [block for language, block in _FENCED.findall(text) if language in languages]


def command_lines():
    """Yield the page and the arguments of each command of pffbench in a block of code."""
    for page, text in (PAGES | EVIDENCE).items():
        fenced = "\n".join(blocks(text, "bash", ""))
        indented = re.findall(r"^    (.*)$", _FENCED.sub("", text), re.MULTILINE)
        for line in [*fenced.splitlines(), *indented]:
            # A line may end in a comment, or hold several commands.
            for part in re.split(r"[;&\\]", re.split(r"\s# ", f"{line} ")[0]):
                found = re.search(r"(?:^|\s|-m )pffbench( .*|)$", part.strip())
                if found and "=" not in part.split("pffbench")[0]:
                    yield page, found[1].strip()


COMMANDS = sorted(set(command_lines()))
EXPERIMENTS = [
    (page, block)
    for page, text in PAGES.items()
    for block in blocks(text, "yaml")
    if block.startswith("name:") and "\ncases:" in block
]


def subcommands():
    (found,) = (
        action
        for action in make_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return found.choices


def test_commands_are_found():
    assert len(COMMANDS) > 50
    assert len({page for page, _ in COMMANDS}) > 10


#: Commands of packages without which the program works.
ADDED = {"bisect": "pffbench_environments", "footprint": "pffbench_footprint"}


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_every_command_is_accepted(page, command):
    words = [word for word in shlex.split(command.replace("…", "x")) if word not in ("[", "]")]
    known = subcommands()
    if words and words[0] in ADDED:
        pytest.importorskip(ADDED[words[0]])
    if not words or words[0] not in known:
        words = ["run", *words]
    options = known[words[0]]._option_string_actions
    assert [w for w in words if w.startswith("--") and w.split("=")[0] not in options
            and w not in ("--", "--help", "--version")] == []  # fmt: skip
    for word in words:
        if word.startswith("configs/") and "*" not in word and "$" not in word:
            assert (REPOSITORY / word).exists(), word


JOBS = sorted(
    {line for text in PAGES.values() for line in re.findall(r"\bsbatch .*?(jobs/\S+.*)", text)}
)


@pytest.mark.parametrize("line", JOBS)
def test_every_job_names_a_script_and_an_experiment_that_exist(line):
    words = re.sub(r"`.*|;.*| \|\|.*", "", line).split()
    for word in words:
        if word.startswith(("jobs/", "configs/")):
            assert (REPOSITORY / word).is_file(), word


@pytest.mark.parametrize(("page", "text"), EXPERIMENTS)
def test_every_experiment_can_be_planned(page, text, tmp_path):
    (tmp_path / "x.yaml").write_text(text)
    done = pffbench_here("plan", "x.yaml", "--ranks", "4", "--scratch", tmp_path, cwd=tmp_path)
    assert done.status == 0, done.said


def keys_set():
    """Yield the experiment that a page prints, and the keys that a command of the page sets."""
    for page, command in COMMANDS:
        words = shlex.split(command.replace("…", "x"))
        keys = [f"--set={key}" for word, key in pairwise(words) if word == "--set"]
        printed = [text for on, text in EXPERIMENTS if on == page]
        named = [text for text in printed if f"{text.split()[1]}.yaml" in words]
        if keys and named:
            yield pytest.param(named[0], keys, id=f"{page} {' '.join(keys)}")


@pytest.mark.parametrize(("text", "keys"), list(keys_set()))
def test_every_key_that_a_page_sets_in_its_experiment_can_be_planned(text, keys, tmp_path):
    (tmp_path / "x.yaml").write_text(text)
    done = pffbench_here(
        "plan", "x.yaml", *keys, "--ranks", "4", "--scratch", tmp_path, cwd=tmp_path
    )
    assert done.status == 0, done.said


_RECIPE = re.compile(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
RECIPES = dict(_RECIPE.findall(PAGES["cookbook.md"]))


@pytest.mark.parametrize("recipe", RECIPES)
def test_each_recipe_needs_the_space_that_it_names(recipe, tmp_path):
    said = RECIPES[recipe].strip().split("\n\n")[0]
    runs = re.findall(r"mpiexec -n (\d+) python -m pffbench( .*)$", RECIPES[recipe], re.MULTILINE)
    for ranks, words in runs:
        if "mine.yaml" in words:
            continue
        config = re.search(r"configs/\S+", words)
        path = REPOSITORY / (config[0] if config else "configs/default.yaml")
        chosen = [word for pair in re.findall(r"--set ('[^']+'|\S+)", words)
                  for word in ("--set", pair.strip("'"))]  # fmt: skip
        done = pffbench_here(
            "plan", path, *chosen, "--ranks", ranks, "--scratch", tmp_path, cwd=tmp_path
        )
        (space,) = re.findall(r"^at most (\S+ \S+) at a time", done.said, re.MULTILINE)
        assert f", {space}" in said


@pytest.mark.parametrize("page", EVIDENCE)
def test_each_command_of_the_evidence_starts_what_is_there(page):
    lines = re.findall(r"^    (\S.*?)(?:\s# .*)?$", EVIDENCE[page], re.MULTILINE)
    targets = re.findall(r"^([\w-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    for line in lines:
        for target in re.findall(r"^make ([a-z][\w-]*)", line):
            assert target in targets, line
        for path in re.findall(
            r"(?<![\w./-])(?:benchmarks|configs|docs|setup|tests)/[\w./-]+", line
        ):
            assert (REPOSITORY / path).exists(), line


@pytest.mark.parametrize("command", ["compare", "scaling"])
def test_the_columns_of_derived_files_are_explained(command, tmp_path):
    run = DOCS / "results" / "default"
    shutil.copytree(run, tmp_path / "again")
    done = pffbench_here(command, run, tmp_path / "again", "--out", tmp_path / "out")
    assert done.status == 0, done.said
    text = (DOCS / "reference" / "derived.md").read_text(encoding="utf-8")
    table = text.split(f"\n| column of `{command}.csv`")[1].split("\n\n")[0].splitlines()[2:]
    names = [name for line in table for name in re.findall(r"`([^`]+)`", line.split("|")[1])]
    with (tmp_path / "out" / f"{command}.csv").open(encoding="utf-8") as file:
        assert names == next(csv.reader(file))
