"""`pffbench clean` removes what nothing needs any more, and nothing else."""

import json
import os
import time
from pathlib import Path

import pytest

from drawn_runs import a_record
from pffbench.cli import make_parser
from pffbench.commands.clean import find_stale_scratch, main, remove
from pffbench.errors import UserError
from pffbench.storage import ownership
from pffbench.storage.ownership import MARKER, OwnerProcess
from pffbench.storage.scratch import Scratch

pytestmark = pytest.mark.usefixtures("outside_of_jobs")


def clean(directory, *options):
    return main(make_parser().parse_args(["clean", "--scratch", str(directory), *options]))


def leave_scratch(directory, run_id, kept_for="", **holder):
    """Leave what a killed run leaves: marker, a store, and a link to precious data."""
    scratch = Scratch.create(str(directory), run_id, kept_for=str(kept_for))
    place = Path(scratch.directory)
    (place / "0000-case").mkdir()
    (place / "0000-case" / "shared.h5").write_bytes(b"x" * 100_000)
    change(place, **({"started": "1"} | holder))
    return place


def change(place, **facts):
    marker = place / MARKER
    marker.write_text(json.dumps(json.loads(marker.read_text()) | facts))


def test_a_dry_run_lists_and_removes_nothing(tmp_path, capsys):
    place = leave_scratch(tmp_path, "run-1")
    before = sorted(tmp_path.rglob("*"))
    assert clean(tmp_path) == 0
    told = capsys.readouterr().out
    assert f"{place}: " in told
    assert " in 1 files, " in told
    assert " s old, run run-1, process " in told
    assert "can go: its process is gone" in told
    assert "1 of 1 can go" in told
    assert "nothing was removed: add --remove" in told
    assert sorted(tmp_path.rglob("*")) == before


def test_what_a_killed_run_left_is_removed(tmp_path, capsys):
    leave_scratch(tmp_path, "run-1")
    assert clean(tmp_path, "--remove") == 0
    assert "removed: its process is gone" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
    assert clean(tmp_path) == 0
    assert "no run has left anything" in capsys.readouterr().out


NOT_TO_BE_ASKED = [
    ({"boot": "x", "host": "elsewhere"}, "may be in use: it ran on elsewhere"),
    ({"boot": "x"}, "may be in use: it ran on another machine called "),
    ({"boot": "", "started": ""}, "may be in use"),
    ({"namespace": "pid:[7]"}, "may be in use: it is in another container"),
]


@pytest.mark.parametrize("facts", [facts for facts, _ in NOT_TO_BE_ASKED])
def test_what_no_living_run_has_touched_for_long_is_removed(tmp_path, capsys, facts):
    place = leave_scratch(tmp_path, "run-1", **facts)
    at = time.time() - ownership.SILENCE - 60
    os.utime(place / MARKER, (at, at))
    assert clean(tmp_path, "--remove") == 0
    assert ", and touched its file 61 min ago" in capsys.readouterr().out
    assert not place.exists()


def test_a_run_that_touches_its_marker_meanwhile_stays(tmp_path):
    leave_scratch(tmp_path, "run-1")
    (one,) = find_stale_scratch(str(tmp_path), kept=False)
    assert one.removable
    os.utime(Path(one.leftover.path) / MARKER, (1, 1))
    assert remove(one) == "its marker has changed meanwhile"


@pytest.mark.parametrize(
    ("facts", "why"),
    [(OwnerProcess.me().facts(), "in use: its process is there"), *NOT_TO_BE_ASKED],
)
def test_what_may_be_in_use_stays(tmp_path, capsys, facts, why):
    place = leave_scratch(tmp_path, "run-1", **facts)
    assert clean(tmp_path, "--remove", "--kept") == 0
    assert f"stays: {why}" in capsys.readouterr().out
    assert (place / "0000-case" / "shared.h5").exists()


def test_links_are_not_followed(tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "data").write_text("keep")
    parent = tmp_path / "scratch"
    parent.mkdir()
    place = leave_scratch(parent, "run-1")
    (place / "0000-case" / "link").symlink_to(precious)
    (place / "0001-link").symlink_to(precious)
    elsewhere = leave_scratch(tmp_path, "run-2")
    (parent / "pffbench-run-2").symlink_to(elsewhere)
    clean(parent, "--remove")
    assert (precious / "data").read_text() == "keep"
    assert not place.exists()
    assert (elsewhere / "0000-case" / "shared.h5").exists()
    assert (parent / "pffbench-run-2").is_symlink()


def test_a_marker_that_is_a_link_is_none(tmp_path, capsys):
    place = leave_scratch(tmp_path, "run-1")
    (place / MARKER).rename(tmp_path / "marker")
    (place / MARKER).symlink_to(tmp_path / "marker")
    clean(tmp_path, "--remove")
    assert "no run has left anything" in capsys.readouterr().out
    assert place.exists()


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"run_id": "x"}', "[" * 10_000, "x" * 10**6])
def test_a_directory_without_a_good_marker_stays(tmp_path, text, capsys):
    place = leave_scratch(tmp_path, "run-1")
    (place / MARKER).write_text(text)
    assert clean(tmp_path, "--remove") == 0
    assert place.exists()


#: What a marker may say instead of what a run writes.
DAMAGE = {
    "the run": {"run_id": 5},
    "another run": {"run_id": "run-2"},
    "no text": {"run_id": "\ud800"},
    "a path for the run": {"run_id": "../precious"},
    "the process": {"pid": "many"},
    "the date": {"date": None},
    "a program for the job": {"job": "--help; rm"},
    "results that are a FIFO": {"kept_for": "FIFO"},
    "results that are a file": {"kept_for": "FILE"},
    "results in no text": {"kept_for": "\udcff\ud800"},
    "results of no path": {"kept_for": "a\0b"},
    "results with a long path": {"kept_for": "x" * 5000},
    "results of another type": {"kept_for": ["a"]},
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_marker_stops_nothing_and_lets_nothing_of_others_go(tmp_path, capsys, what):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "data").write_text("keep")
    (tmp_path / "results").mkdir()
    os.mkfifo(tmp_path / "results" / "run.json")
    given = {"FIFO": str(tmp_path / "results"), "FILE": str(precious / "data")}
    facts = {k: given.get(v, v) if isinstance(v, str) else v for k, v in DAMAGE[what].items()}
    place = leave_scratch(tmp_path, "run-1")
    change(place, **facts)
    assert clean(tmp_path, "--remove") == 0
    assert (place / "0000-case" / "shared.h5").exists()
    assert (precious / "data").read_text() == "keep"
    told = capsys.readouterr().out
    assert all(text.isprintable() for text in told.splitlines()), told


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"schema_version": 1}', "[" * 5000, "x" * 1000, "a record"]
)
def test_damaged_results_let_nothing_go_that_is_kept_for_them(tmp_path, capsys, content):
    results = tmp_path / "results"
    record(results, "written")
    text = (results / "run.json").read_text()
    if content == "a record":
        content = json.dumps(json.loads(text) | {"provenance": {"mpi_io": 5}, "command": ["x"]})
    (results / "run.json").write_text(content)
    place = leave_scratch(tmp_path, "run-1", kept_for=results)
    assert clean(tmp_path, "--remove") == 0
    assert "stays: " in capsys.readouterr().out
    assert place.exists()


@pytest.mark.parametrize("kind", ["a file", "a directory", "a FIFO", "a link", "a link to nothing"])
def test_what_no_run_makes_stays_with_the_directory_that_it_is_in(tmp_path, capsys, kind):
    """Such as notes of the user."""
    place = leave_scratch(tmp_path, "run-1")
    mine = place / "notes"
    match kind:
        case "a file":
            mine.write_text("keep")
        case "a directory":
            mine.mkdir()
        case "a FIFO":
            os.mkfifo(mine)
        case "a link":
            mine.symlink_to(tmp_path)
        case _:
            mine.symlink_to("absent")
    assert clean(tmp_path, "--remove") == 0
    assert "stays: no run makes notes, which is in it; move it away, or" in capsys.readouterr().out
    assert os.path.lexists(mine)
    assert (place / "0000-case").exists()
    mine.rename(tmp_path / "notes")
    assert clean(tmp_path, "--remove") == 0
    assert not place.exists()
    assert os.path.lexists(tmp_path / "notes")


def test_files_of_any_kind_in_a_case_go_with_it(tmp_path):
    place = leave_scratch(tmp_path, "run-1")
    inside = place / "0000-case"
    os.mkfifo(inside / "fifo")
    (inside / os.fsdecode(b"n\xff")).write_text("")
    (inside / "closed").mkdir(mode=0o500)
    deep = inside
    for _ in range(60):
        deep = deep / ("d" * 50)
        deep.mkdir()
    assert clean(tmp_path, "--remove") == 0
    assert not place.exists()


@pytest.mark.parametrize("name", ["mine", "pffbench-run-1-copy", "pffbench-run"])
def test_a_directory_under_another_name_stays(tmp_path, name):
    place = leave_scratch(tmp_path, "run-1").rename(tmp_path / name)
    clean(tmp_path, "--remove")
    assert place.exists()


def record(directory, status):
    directory.mkdir(exist_ok=True)
    a_record({}, run_id="run-1", status=status, stage="write").save(directory)


def test_files_that_another_job_is_to_read_stay(tmp_path, capsys):
    results = tmp_path / "results"
    record(results, "written")
    place = leave_scratch(tmp_path, "run-1", kept_for=results)
    clean(tmp_path, "--remove")
    told = capsys.readouterr().out
    command = f"mpiexec -n 2 python -m pffbench run --resume {results} --stage read"
    assert f"waits to be read (--kept removes it all the same): {command}\n" in told
    assert place.exists()
    record(results, "interrupted")
    clean(tmp_path, "--remove")
    told = capsys.readouterr().out
    assert f"not everything is written (--kept removes it all the same): {command[:-13]}\n" in told
    assert place.exists()
    record(results, "finished")
    clean(tmp_path, "--remove")
    assert not place.exists()


def test_files_whose_results_are_gone_go_only_when_that_is_asked_for(tmp_path):
    place = leave_scratch(tmp_path, "run-1", kept_for=tmp_path / "absent")
    clean(tmp_path, "--remove")
    assert place.exists()
    clean(tmp_path, "--remove", "--kept")
    assert not place.exists()


def test_a_run_that_went_on_meanwhile_keeps_its_directory(tmp_path):
    place = leave_scratch(tmp_path, "run-1")
    (one,) = find_stale_scratch(str(tmp_path), kept=False)
    Scratch.take_over(str(tmp_path), "run-1")
    assert remove(one) == "its marker has changed meanwhile"
    assert place.exists()
    (now,) = find_stale_scratch(str(tmp_path), kept=False)
    assert not now.removable


def test_a_marker_without_a_date_is_of_unknown_age(tmp_path, capsys):
    change(leave_scratch(tmp_path, "run-1"), date="yesterday")
    clean(tmp_path)
    assert "of unknown age" in capsys.readouterr().out


def test_what_cannot_be_removed_is_told(tmp_path, capsys, monkeypatch):
    leave_scratch(tmp_path, "run-1")

    def fail(*_, **__):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "unlink", fail)
    assert clean(tmp_path, "--remove") == 1
    assert "could not be removed: [Errno 30] Read-only file system" in capsys.readouterr().out


def test_a_directory_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(UserError, match="absent: cannot be read: No such file"):
        clean(tmp_path / "absent")
