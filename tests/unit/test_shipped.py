"""The experiments of the package: their names, their list, and the page of questions."""

import json
import re

import pytest
import yaml

from launch import REPOSITORY, pffbench_cli, pffbench_here, sampled
from pffbench.experiment.check import make_plan
from pffbench.experiment.load import load_experiment
from pffbench.experiment.shipped import head_of, shipped_experiments, shipped_file, shipped_files
from pffbench.units import Size

pytestmark = pytest.mark.long

CONFIGS = REPOSITORY / "configs"
SHAPES = sorted((CONFIGS / "shapes").glob("*.yaml"))


def test_each_file_has_a_name_by_which_it_is_found():
    files = shipped_files()
    assert sorted(path.resolve() for path in files.values()) == sorted(CONFIGS.rglob("*.yaml"))
    assert {name: shipped_file(name) for name in files} == files
    assert files["question:writers"].resolve() == CONFIGS / "questions" / "writers.yaml"
    assert shipped_file("../pffbench/configs/default") is None
    assert shipped_file("a" * 5000) is None


def test_the_list_has_a_line_for_each_with_its_question_and_time_the_questions_first(tmp_path):
    listed = pffbench_cli("run", "--list", cwd=tmp_path)
    assert listed.status == 0, listed.said
    *lines, last = listed.stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(shipped_files())
    assert re.match(r"question:\S+ +\w.*\?  \(.*\bminutes?\b.* 4 ranks on 2 cores\)$", lines[0])
    assert "pffbench run NAME" in last
    assert pffbench_here("plan", cwd=tmp_path).stdout == listed.stdout
    assert pffbench_here("plan", "--list", "--ranks", "8", cwd=tmp_path).stdout == listed.stdout
    told = json.loads(pffbench_cli("run", "--list", "--json", cwd=tmp_path).stdout)
    assert [one["name"] for one in told["experiments"]] == list(shipped_files())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("rank", ["1", "0"])
def test_under_a_launcher_one_process_prints_the_list(rank, tmp_path):
    listed = pffbench_cli("run", "--list", cwd=tmp_path, env={"PMI_RANK": rank, "PMI_SIZE": "2"})
    assert (listed.status, bool(listed.stdout)) == (0, rank == "0")


@pytest.mark.parametrize(
    ("name", "near"),
    sampled(
        [("question:writer", "question:writers"), ("questions:writers", "question:writers"),
         ("wrters", "writers"), ("zarr-inode", "question:zarr-inodes")],
        ("questions:writers", "question:writers"), ("wrters", "writers"),
    ),
)  # fmt: skip
def test_an_unknown_name_is_answered_with_the_nearest_in_a_sentence(name, near, tmp_path):
    done = pffbench_cli("run", name, cwd=tmp_path)
    assert done.status == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"pffbench: {name}: no file and no experiment of pffbench has this name")
    assert near in re.search(r"the nearest: (.*); pffbench run --list", line)[1].split(", ")
    assert list(tmp_path.iterdir()) == []


def test_a_file_goes_before_an_experiment_of_its_name(tmp_path):
    case = {"workload": "hyperslab", "backend": "null", "shape": [8]}
    (tmp_path / "hints").write_text(yaml.safe_dump({"name": "mine", "cases": [case]}))
    assert "null.hyperslab" in pffbench_here("plan", "hints", cwd=tmp_path).stdout


def test_what_an_experiment_says_at_its_head_may_take_several_lines():
    text = "# Question: which one\n#           is it?\n# Takes:    one.\n#\n#   more\nname: x\n"
    assert head_of(text + "# Writes: 1\n") == {"Question": "which one is it?", "Takes": "one."}


def test_every_shipped_experiment_names_a_question_and_a_time():
    assert [one.name for one in shipped_experiments() if not (one.question and one.takes)] == []


def test_the_page_of_questions_lists_every_experiment_and_has_a_section_for_each_question():
    page = (REPOSITORY / "docs" / "questions.md").read_text(encoding="utf-8")
    elsewhere = ("shape", "issue", "study", "paper")
    wanted = {name for name in shipped_files() if name.partition(":")[0] not in elsewhere}
    assert wanted <= set(re.findall(r"`([\w:-]+)`", page))
    for experiment in shipped_experiments():
        if experiment.name.startswith("question:"):
            assert f"\n### {experiment.question}\n" in page, experiment.name


@pytest.mark.parametrize("ranks", [4, 16])
@pytest.mark.parametrize("path", SHAPES, ids=[path.stem for path in SHAPES])
def test_a_shape_has_at_full_size_the_bytes_that_its_head_names(path, ranks, monkeypatch):
    monkeypatch.chdir(path.parent)
    number, unit, each = re.match(
        r"([\d.]+) (.iB) (a rank|in all)", head_of(path.read_text())["Writes"]
    ).groups()
    wanted = float(number) * Size.parse(f"1 {unit}") * (ranks if each == "a rank" else 1)
    costs = make_plan(load_experiment(path.name), ranks).costs.values()
    assert costs
    for cost in costs:
        assert cost.nbytes == pytest.approx(wanted, rel=0.02)
