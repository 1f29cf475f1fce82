"""Rules of CONTRIBUTING.md for what enters, and of what hosts and hooks run."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from launch import REPOSITORY, SHIPPED
from pffbench.backends.registry import backend_class, backend_names
from pffbench.case import Parameters
from pffbench.commands.describe import keys_of
from pffbench.experiment.schema import Experiment
from pffbench.workloads.registry import workload, workload_names

#: Keys of 0.1.0, which need no question.
BEFORE = set((Path(__file__).parent / "keys-0.1.0.txt").read_text(encoding="utf-8").split())
HOSTED = yaml.safe_load((REPOSITORY / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
HOOKS = yaml.safe_load((REPOSITORY / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
MAKEFILE = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def keys():
    """Return the keys that the reference explains, each after what has it."""
    kinds = {"experiment": Experiment, "case": Parameters}
    kinds |= {name: workload(name).parameters_type for name in workload_names()}
    kinds |= {name: backend_class(name).options_type for name in backend_names()}
    of_all = set(Parameters.__struct_fields__)
    return {
        f"{owner}.{key.name}"
        for owner, kind in kinds.items()
        for key in keys_of(kind)
        if owner in ("experiment", "case", *backend_names()) or key.name not in of_all
    }


def words_of(value):
    """Yield all keys in a document."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from words_of(part)
    elif isinstance(value, list):
        for part in value:
            yield from words_of(part)


def unasked(found, experiments):
    """Return the new keys that no experiment with a question uses."""
    used = {key for one in experiments if one.get("question") for key in words_of(one)}
    return {key for key in found - BEFORE if key.partition(".")[2] not in used}


def test_each_new_key_is_in_an_experiment_that_has_a_question():
    experiments = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in SHIPPED]
    assert unasked(keys(), experiments) == set()


@pytest.mark.parametrize(
    ("experiments", "found"),
    [
        ([], {"hyperslab.colour"}),
        ([{"cases": [{"colour": 1}]}], {"hyperslab.colour"}),
        ([{"question": "Which?", "cases": [{"colour": 1}]}], set()),
    ],
)
def test_a_key_without_a_question_is_found(experiments, found):
    assert unasked({*BEFORE, "hyperslab.colour"}, experiments) == found


def test_hosted_ci_runs_what_everybody_runs():
    commands = [
        step["run"] for job in HOSTED["jobs"].values() for step in job["steps"] if "run" in step
    ]
    assert {"make check", ".ci/run"} <= set(commands)
    assert HOSTED["permissions"] == {"contents": "read"}


def test_hooks_are_the_steps_of_lint():
    steps = re.search(r"^lint:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)[1]
    hooks = [hook for repo in HOOKS["repos"] for hook in repo["hooks"]]
    assert [hook["entry"] for hook in hooks] == re.findall(r"^\t@(.+)$", steps, re.MULTILINE)
    assert {hook["language"] for hook in hooks} == {"system"}  # the locked versions


def test_the_check_runs_tests_that_exist():
    names = re.search(r"^QUICK := \$\(patsubst .*\\\n((?:.*\\\n)*.*)\)$", MAKEFILE, re.MULTILINE)[1]
    found = re.findall(r"\w+", names)
    assert len(found) >= 50
    for name in found:
        assert (REPOSITORY / "tests" / "unit" / f"test_{name}.py").is_file(), name


def test_addresses_are_in_one_place():
    hosts = {re.match(r"https://[^/]+", url)[0] for url in PROJECT["urls"].values()}
    assert {"Source", "Issues", "Documentation"} <= PROJECT["urls"].keys()
    texts = [*REPOSITORY.glob("*"), *(REPOSITORY / "docs").rglob("*.md"), *SHIPPED]
    texts += [*(REPOSITORY / ".github").rglob("*"), *(REPOSITORY / "paper").glob("*")]
    for path in texts:
        if path.is_file() and path.name != "pyproject.toml":
            text = path.read_text(encoding="utf-8", errors="replace")
            assert not any(host in text for host in hosts), path


def test_templates_and_rules_are_where_hosts_look():
    for name in ("SUPPORT.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md"):
        assert (REPOSITORY / name).is_file()
    forms = sorted((REPOSITORY / ".github" / "ISSUE_TEMPLATE").glob("*.md"))
    assert len(forms) >= 2
    for form in forms:
        head = yaml.safe_load(form.read_text(encoding="utf-8").split("---")[1])
        assert head["name"]
        assert head["about"]
