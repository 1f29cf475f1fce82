"""What CONTRIBUTING.md and CITATION.cff name is there: files, commands, markers, methods."""

import argparse
import inspect
import re
import tomllib

import pytest
import yaml

import pffbench
from launch import REPOSITORY
from pffbench.backends import base, traits
from pffbench.backends.registry import backend_class
from pffbench.cli import make_parser

TEXT = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
#: Words of code and of command lines.
QUOTED = re.findall(r"`([^`\n]+)`", TEXT)
COMMANDS = [line.strip() for line in TEXT.splitlines() if line.startswith("    ")]
#: A folder and a name, or a file at the top level.
PATHS = sorted({
    word
    for text in [*QUOTED, *COMMANDS, *re.findall(r"\]\(([^)#]+)", TEXT)]
    for word in re.findall(r"[\w./-]+", text)
    if re.match(r"(?:(?:src|tests|docs|configs|analysis|setup)/[\w/.-]*\w"
                r"|[\w-]+\.(?:md|toml|cff))$", word)
})  # fmt: skip


def subcommands():
    (found,) = (
        action
        for action in make_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return found.choices


def test_paths_are_found():
    assert {"src/pffbench/backends/blosc2.py", "setup/run", "pyproject.toml"} <= set(PATHS)
    assert len(PATHS) > 25


@pytest.mark.parametrize("path", PATHS)
def test_every_path_that_is_named_exists(path):
    assert (REPOSITORY / path).exists()


def test_every_command_is_known_with_its_options():
    known, seen = subcommands(), set()
    for line in [*QUOTED, *COMMANDS]:
        line = line.partition("#")[0]
        for name, rest in re.findall(r"\bpffbench ([a-z]+)\b(.*)", line):
            assert name in known, line
            seen.add(name)
            options = known[name]._option_string_actions
            assert [o for o in re.findall(r"--[a-z-]+", rest) if o not in options] == [], line
    assert {"run", "backends", "doctor", "schema"} <= seen


def test_every_target_of_make_is_there():
    targets = re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    named = {m for line in [*QUOTED, *COMMANDS] for m in re.findall(r"^make ([a-z-]+)", line)}
    assert {"env", "test", "test-all", "lint"} <= named <= set(targets)


def test_the_table_of_tests_has_every_folder_and_marker():
    markers = PROJECT["tool"]["pytest"]["ini_options"]["markers"]
    assert [m for m in markers if f"`{m.partition(':')[0]}`" not in TEXT] == []
    folders = {path.parent.name for path in (REPOSITORY / "tests").glob("*/test_*.py")}
    assert [name for name in sorted(folders) if f"| `tests/{name}` |" not in TEXT] == []


def test_the_contract_names_every_method_that_a_backend_must_have():
    table = TEXT.split("### The contract")[1].split("###")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    named, kind = set(), ""
    for name in (word for row in rows for word in re.findall(r"`([\w.]+)`", row)):
        kind, method = name.split(".") if "." in name else (kind, name)
        assert hasattr(getattr(base, kind), method), name
        named.add(f"{kind}.{method}")
    for kind in (base.Backend, base.Store, base.Array):
        for method in kind.__abstractmethods__:
            assert f"{kind.__name__}.{method}" in named


def test_every_trait_is_in_the_table_with_its_methods():
    table = TEXT.split("### Traits")[1].split("###")[0]
    rows = [line.split("|") for line in table.splitlines() if line.startswith("| `")]
    named = {row[1].strip(" `"): set(re.findall(r"`\w+\.(\w+)`", row[2])) for row in rows}
    own = {kind.__name__: {n for n in vars(kind) if n[0] != "_"} for kind in traits.TRAITS}
    assert named == own


def test_the_model_is_in_the_registry_and_short():
    model = backend_class("blosc2")
    assert len(inspect.getsource(inspect.getmodule(model)).splitlines()) <= 150


def test_the_citation_is_of_this_version():
    cited = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["cff-version"] == "1.2.0"
    assert cited["title"] == PROJECT["project"]["name"]
    assert cited["version"] == pffbench.__version__
    assert cited["license"] == PROJECT["project"]["license"]
    assert cited["authors"] == [{"name": "The pffbench developers"}]
