"""Commands in the documents are accepted, experiments can be planned, terms are explained."""

import argparse
import os
import re
import shlex
import subprocess
from typing import get_args

import pytest

from launch import REPOSITORY, pffbench_cli
from pffbench import case
from pffbench.cli import make_parser

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
#: Most words of the pages for users, as `wc -w` counts them, without what they show of runs:
#: 67,365 with it before measurements had pages of their own.
MOST_WORDS = 32_710
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


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_every_command_is_accepted(page, command):
    words = [word for word in shlex.split(command.replace("…", "x")) if word not in ("[", "]")]
    known = subcommands()
    if not words or words[0] not in known:
        words = ["run", *words]
    options = known[words[0]]._option_string_actions
    assert [w for w in words if w.startswith("--") and w.split("=")[0] not in options
            and w not in ("--", "--help", "--version")] == []  # fmt: skip
    for word in words:
        if word.startswith("configs/") and "*" not in word and "$" not in word:
            assert (REPOSITORY / word).exists(), word


JOBS = sorted({
    line.partition(" #")[0].strip()
    for text in PAGES.values()
    for line in re.findall(r"^(?:    )?(jobs/submit .*)$", text, re.MULTILINE)
})  # fmt: skip


@pytest.mark.parametrize("command", JOBS)
def test_every_job_can_be_submitted(command, tmp_path):
    words = shlex.split(command)
    if "--dry-run" not in words:
        words.insert(1, "--dry-run")
    words[0] = str(REPOSITORY / words[0])
    environment = {**os.environ, "PFFBENCH_OUT": str(tmp_path), "PFFBENCH_SITE": "generic"}
    done = subprocess.run(words, cwd=REPOSITORY, env=environment, capture_output=True, text=True,
                          check=False, timeout=300)  # fmt: skip
    assert done.returncode == 0, done.stderr
    site = words[words.index("--site") + 1] if "--site" in words else "generic"
    profile = (REPOSITORY / "jobs" / "sites" / f"{site}.sh").read_text()
    scheduler = re.search(r"^SITE_SCHEDULER=(\w+)", profile, re.MULTILINE)
    program = {"pbs": "$(qsub ", "flux": "$(flux batch "}.get(scheduler[1] if scheduler else "")
    assert (program or "sbatch --parsable") in done.stdout


@pytest.mark.parametrize(("page", "text"), EXPERIMENTS)
def test_every_experiment_can_be_planned(page, text, tmp_path):
    (tmp_path / "x.yaml").write_text(text)
    done = pffbench_cli("plan", "x.yaml", "--ranks", "4", "--scratch", tmp_path, cwd=tmp_path)
    assert done.status == 0, done.said


def test_from_what_it_is_to_an_own_experiment_it_is_five_pages_at_most():
    pages, reached = 1, {"README.md"}
    while "experiments.md" not in reached:
        texts = "\n".join(PAGES[page] for page in reached)
        reached |= set(re.findall(r"\]\((?:docs/)?([\w-]+\.md)", texts)) & PAGES.keys()
        pages += 1
        assert pages <= 5


def test_the_glossary_explains_the_words_of_experiments_and_tables():
    words = {
        word
        for kind in (case.Layout, case.Transfer, case.Settings, case.Durability, case.CacheState)
        for word in get_args(kind)
    } | {"backend", "roof", "×best", "floor", "block", "repetition", "below resolution", "look",
         "VALID", "INVALID", "BUSY", "not decided", "is fastest", "equally fast", "unproved",
         "interval", "margin", "imbalance", "durability", "warm-up"}  # fmt: skip
    glossary = PAGES["glossary.md"]
    terms = re.findall(r"^\| \*\*([^*]+)\*\* \| [^|]{10,} \|$", glossary, re.MULTILINE)
    assert words - set(terms) == set()
    assert len(terms) == len(set(terms))


@pytest.mark.parametrize(
    "page",
    ["README.md", "start.md", "cookbook.md", "tutorial-scientist.md", "tutorial-engineer.md",
     "tutorial-developer.md"],
)  # fmt: skip
def test_where_users_read_commands_they_read_how_the_shell_finds_them(page):
    assert ". .build/env.sh" in PAGES[page]


def test_commands_of_users_have_as_many_ranks_as_a_small_machine_has_cores():
    for page in ("README.md", "start.md", "cookbook.md", "experiments.md"):
        found = set(map(int, re.findall(r"mpiexec -n (\d+) ", PAGES[page])))
        assert found - {256, 64} <= {1, 2}, page  # the others are of clusters, and say so


_RECIPE = re.compile(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
RECIPES = dict(_RECIPE.findall(PAGES["cookbook.md"]))
_TIME_AND_SPACE = r"\*(?:(?:up to )?\d+ min|minutes|seconds)\b.*, .*(?:MiB|space)\b.*\*"


@pytest.mark.parametrize("recipe", RECIPES)
def test_each_recipe_names_its_time_and_its_space(recipe, tmp_path):
    said = RECIPES[recipe].strip().split("\n\n")[0]
    assert re.fullmatch(_TIME_AND_SPACE, said), said
    runs = re.findall(r"mpiexec -n (\d+) python -m pffbench( .*)$", RECIPES[recipe], re.MULTILINE)
    for ranks, words in runs:
        if "mine.yaml" in words:
            continue
        config = re.search(r"configs/\S+", words)
        path = REPOSITORY / (config[0] if config else "configs/default.yaml")
        done = pffbench_cli("plan", path, "--ranks", ranks, "--scratch", tmp_path, cwd=tmp_path)
        (space,) = re.findall(r"^at most (\S+ \S+) at a time", done.said, re.MULTILINE)
        assert f", {space}" in said


def test_the_pages_for_users_are_short():
    derived = r"<!-- run .*?<!-- end -->"
    words = sum(len(re.sub(derived, "", text, flags=re.S).split()) for text in PAGES.values())
    assert words <= MOST_WORDS, "cut as many words of a page for users elsewhere"


@pytest.mark.parametrize("page", EVIDENCE)
def test_each_page_of_evidence_has_a_date_and_the_command_that_makes_it_again(page):
    head = EVIDENCE[page].partition("\n## ")[0]
    assert re.search(r"^(?:Measured|Tested|Run|Read) 2\d{3}-\d\d-\d\d\b", head, re.MULTILINE)
    assert re.search(r"^    (?:setup/|make |python |docs/tools/)\S", head, re.MULTILINE)


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


def test_each_page_of_evidence_is_in_their_list():
    text = (DOCS / "evidence" / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[[^]]+\]\(([\w./-]+\.md)\)", text, re.MULTILINE)
    assert {os.path.normpath(f"evidence/{name}") for name in listed} == EVIDENCE.keys()


def test_the_readme_is_short():
    lines = PAGES["README.md"].splitlines()
    assert len(lines) <= 120
    assert [line for line in lines if len(line) > 80] == []
