"""Results directories and markers of others: no link is followed, nothing acts, nothing waits."""

import json
import os
import re
from pathlib import Path

import pytest

from drawn_runs import USUAL, a_case, a_repetition, a_run, edit_record
from pffbench.cli import main
from pffbench.errors import UserError
from pffbench.record.lock import RunLock
from pffbench.record.repetitions import FILE, RepetitionsLog
from pffbench.record.run_json import TopologyEntry
from pffbench.storage.ownership import MARKER, find_leftovers
from pffbench.storage.scratch import Scratch

pytestmark = pytest.mark.long

ESCAPE = "\x1b]0;owned\x07\x1b[31m"
HTML = "<script>alert(1)</script> ![x](http://evil) | \n# owned"


def run_cli(*arguments):
    """Run a command; return its exit status."""
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in arguments])
    return ended.value.code


@pytest.fixture
def run(tmp_path):
    return a_run(tmp_path / "run", USUAL, repetitions=3)


# Links


def derived(run):
    """Return the files that a report consists of."""
    raw = {"run.json", FILE, "ranks.h5"}
    return [p for p in run.rglob("*") if p.is_file() and p.name not in raw]


def test_a_report_replaces_links_and_leaves_their_targets_alone(run, tmp_path, capsys):
    assert run_cli("report", run) == 0
    files = derived(run)
    assert len(files) > 5
    mine = tmp_path / "mine"
    mine.write_text("precious")
    for file in files:
        file.unlink()
        file.symlink_to(mine)
    assert run_cli("report", run) == 0
    assert mine.read_text() == "precious"
    assert not [file for file in files if file.is_symlink()]
    assert "Traceback" not in capsys.readouterr().err


def test_a_directory_that_is_a_link_is_refused(run, tmp_path, capsys):
    away = tmp_path / "away"
    away.mkdir()
    (away / "mine.svg").write_text("precious")
    (run / "plots").symlink_to(away)
    before = sorted(p.name for p in run.iterdir())
    assert run_cli("report", "--figures", run) == 2
    assert "it is a symbolic link, not a directory" in capsys.readouterr().err
    assert [p.name for p in away.iterdir()] == ["mine.svg"]
    assert sorted(p.name for p in run.iterdir()) == before


def test_nothing_is_appended_through_a_link(tmp_path):
    mine = tmp_path / "mine"
    mine.write_text("precious\n")
    log = RepetitionsLog(tmp_path)
    (tmp_path / FILE).unlink()
    (tmp_path / FILE).symlink_to(mine)
    with pytest.raises(OSError, match="was removed, renamed or replaced"):
        log.append(a_repetition(*USUAL[0], 0, {"write": 1.0}))
    assert mine.read_text() == "precious\n"


# What is no file


@pytest.mark.parametrize("name", ["run.json", FILE])
def test_what_is_no_file_is_told(run, capsys, name):
    (run / name).unlink()
    os.mkfifo(run / name)
    assert run_cli("report", run) == 2
    told = capsys.readouterr().err
    assert told.startswith("pffbench: ")
    assert name in told or "is not a results directory" in told


def test_a_lock_that_is_no_file_is_told_at_once(run):
    os.mkfifo(run / "run.lock")
    with pytest.raises(UserError, match=r"run\.lock is there and does not say .*it is "):
        RunLock().take(run, "--resume x")


# Text that acts


def test_the_name_of_a_run_is_that_of_an_experiment(run, capsys):
    for name in ("../x", "x\ny", "", "x" * 65, "<b>", ESCAPE):
        edit_record(run, name=name)
        assert run_cli("report", run) == 2
        assert "is not a record of a run" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [None, 3, {"count": "many"}])
def test_files_of_a_case_that_no_experiment_has_are_refused(run, capsys, wrong):
    record = json.loads((run / "run.json").read_text())
    for entry in record["cases"].values():
        entry["parameters"] |= {"files": wrong, "arrays": "per_rank"}
    (run / "run.json").write_text(json.dumps(record))
    assert run_cli("report", run) == 2
    assert "is not a record of a run" in capsys.readouterr().err


def test_a_record_with_bytes_that_are_no_utf8_is_refused(run, capsys):
    text = (run / "run.json").read_bytes()
    for wrong in (b"b\xfe", b"a\\udcff"):
        (run / "run.json").write_bytes(text.replace(b'"question": "', b'"question": "' + wrong))
        assert run_cli("report", run) == 2
        assert "is not valid JSON" in capsys.readouterr().err


def test_nothing_in_a_record_acts_on_a_terminal_or_in_markdown(tmp_path, capsys):
    host = "host" + ESCAPE
    hosts = TopologyEntry([host, "b"], [0, 1], [1, 1])
    run = a_run(tmp_path / "run", USUAL, question=HTML + ESCAPE, remarks=[HTML, ESCAPE],
                reasons=[HTML + ESCAPE], valid=False, topology=hosts)  # fmt: skip
    other = a_run(tmp_path / "other", USUAL)
    for command in (
        ["report", run],
        ["compare", run, other, "--out", tmp_path / "out"],
        ["recommend", run],
        ["scaling", run, other, "--out", tmp_path / "scaling"],
    ):
        run_cli(*command)
        told = "".join(capsys.readouterr())
        assert "\x1b]0" not in told
        assert "\x07" not in told
        assert "Traceback" not in told
    for file in [*run.rglob("*.md"), *run.rglob("*.csv"), *tmp_path.glob("out/*.md")]:
        assert "\x1b" not in file.read_text()
    summary = (run / "summary.md").read_text()
    assert "<script" not in summary
    assert "](http" not in summary
    assert not re.search("^# owned", summary, re.MULTILINE)
    assert "\\x1b]0;owned\\x07" in summary


def test_markup_of_rich_is_text(tmp_path, capsys):
    cases = [a_case(b, dtype="[/red][link=http://evil]x") for b in ("hdf5", "zarr")]
    run = a_run(tmp_path / "run", cases, remarks=["[/] [bold]x"])
    assert run_cli("report", run) == 0
    assert run_cli("compare", run, a_run(tmp_path / "other", cases)) == 0
    assert "Traceback" not in capsys.readouterr().err


# Markers


def leave_scratch(parent, name="run-1", **facts):
    scratch = Scratch.create(str(parent), name)
    marker = Path(scratch.directory, MARKER)
    marker.write_text(json.dumps(json.loads(marker.read_text()) | {"started": "1"} | facts))
    return Path(scratch.directory)


def test_a_damaged_marker_ends_nothing(tmp_path, capsys):
    for number, content in enumerate((b"", b"[]", b"\xff\xfe", b"[" * 10_000)):
        (leave_scratch(tmp_path, f"damaged-{number}") / MARKER).write_bytes(content)
    for number, facts in enumerate(({"pid": 10**30}, {"job": "--help"}, {"user": ESCAPE})):
        leave_scratch(tmp_path, f"hostile-{number}", **facts)
    good = leave_scratch(tmp_path, "good")
    assert run_cli("clean", "--scratch", tmp_path) == 0
    told = capsys.readouterr()
    assert f"{good}: " in told.out
    assert "can go: its process is gone" in told.out
    assert told.err == ""
    assert "\x1b" not in told.out
    assert run_cli("clean", "--scratch", tmp_path, "--remove", "--kept") in (0, 1)
    assert not good.exists()
    assert (tmp_path / "pffbench-damaged-0").exists()


def test_a_marker_that_is_no_file_hangs_nobody(tmp_path, capsys):
    place = leave_scratch(tmp_path)
    (place / MARKER).unlink()
    os.mkfifo(place / MARKER)
    good = leave_scratch(tmp_path, "good")
    assert run_cli("clean", "--scratch", tmp_path) == 0
    assert f"{good}: " in capsys.readouterr().out
    assert [leftover.path for leftover in find_leftovers(str(tmp_path))] == [str(good)]
