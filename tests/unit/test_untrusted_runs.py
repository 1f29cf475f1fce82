"""Results directories and markers of others: no link is followed, nothing acts, nothing waits."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from drawn_runs import USUAL, a_case, a_run, a_sample
from launch import sampled
from pffbench.cli import main
from pffbench.errors import UserError
from pffbench.record.lock import RunLock
from pffbench.record.run_json import RunRecord
from pffbench.record.samples import SamplesLog, read_samples
from pffbench.storage.ownership import MARKER, find_leftovers
from pffbench.storage.scratch import Scratch

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


def change(run, **keys):
    path = run / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | keys))


# Links


def derived(run):
    """Return the files that a report consists of."""
    raw = {"run.json", "samples.csv", "ranks.h5"}
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


@pytest.mark.parametrize("name", ["plots"])
def test_a_directory_that_is_a_link_is_refused(run, tmp_path, capsys, name):
    away = tmp_path / "away"
    away.mkdir()
    (away / "mine.png").write_text("precious")
    (run / name).symlink_to(away)
    before = sorted(p.name for p in run.iterdir())
    assert run_cli("report", run) == 2
    assert "it is a symbolic link, not a directory" in capsys.readouterr().err
    assert [p.name for p in away.iterdir()] == ["mine.png"]
    assert sorted(p.name for p in run.iterdir()) == before


@pytest.mark.parametrize("name", ["samples.csv", "counters.csv", "samples.csv.unfinished"])
def test_nothing_is_appended_through_a_link(tmp_path, name):
    mine = tmp_path / "mine"
    mine.write_text("precious\n")
    (tmp_path / name).symlink_to(mine)
    log = SamplesLog.__new__(SamplesLog)
    log._path = str(tmp_path / name)
    with pytest.raises(OSError, match="it is a symbolic link, not a regular file"):
        log.append([a_sample(*USUAL[0], 0, "write", 1.0)])
    assert mine.read_text() == "precious\n"


def test_a_record_is_saved_in_the_place_of_a_link(run, tmp_path):
    mine = tmp_path / "mine"
    (run / "run.json").rename(mine)
    (run / "run.json").symlink_to(mine)
    before = mine.read_bytes()
    record = RunRecord.load(run)
    record.remarks.append("changed")
    record.save(run)
    assert mine.read_bytes() == before
    assert RunRecord.load(run).remarks == ["changed"]


# What is no file


def fifo(path):
    os.mkfifo(path)


def device(path):
    path.symlink_to("/dev/zero")


def directory(path):
    path.mkdir()


def giant(path):
    with path.open("wb") as file:
        file.truncate(2**42)


@pytest.mark.parametrize(
    ("name", "make"),
    sampled(
        [
            (name, make)
            for name in ("run.json", "samples.csv", "counters.csv", "ranks.h5")
            for make in (fifo, device, directory, giant)
        ],
        ("run.json", fifo), ("samples.csv", giant), ("counters.csv", device), ("ranks.h5", fifo),
    ),
)  # fmt: skip
def test_what_is_no_file_is_told(run, capsys, name, make):
    (run / name).unlink(missing_ok=True)
    make(run / name)
    status = run_cli("report", run)
    told = capsys.readouterr().err
    if name == "ranks.h5":
        page = (run / "report.html").read_text()
        assert status == 0
        assert "ranks.h5 cannot be read" in page
    else:
        assert (status, told.startswith("pffbench: ")) == (2, True), told
        assert name in told or "is no results directory" in told


@pytest.mark.parametrize("make", [fifo, device, directory, giant])
def test_a_lock_that_is_no_file_is_told_at_once(run, make):
    make(run / "run.lock")
    with pytest.raises(UserError, match=r"run\.lock is there and does not say .*it is "):
        RunLock().take(run, "--resume x")


@pytest.mark.parametrize("text", ["[" * 10_000, '{"pid": ' * 2000, "\xff\xfe", '{"pid": 1e999}'])
def test_a_lock_of_nonsense_is_left_to_people(run, text):
    (run / "run.lock").write_bytes(text.encode("latin-1"))
    with pytest.raises(UserError, match="does not say which run made it"):
        RunLock().take(run, "--resume x")


# Text that acts


def test_the_name_of_a_run_is_that_of_an_experiment(run, capsys):
    for name in ("../x", "x\ny", "", "x" * 65, "<b>", ESCAPE):
        change(run, name=name)
        assert run_cli("report", run) == 2
        assert "is not a record of a run" in capsys.readouterr().err


def test_a_record_with_bytes_that_are_no_utf8_is_refused(run, capsys):
    text = (run / "run.json").read_bytes()
    for wrong in (b"b\xfe", b"a\\udcff"):
        (run / "run.json").write_bytes(text.replace(b'"question": "', b'"question": "' + wrong))
        assert run_cli("report", run) == 2
        assert "is not valid JSON" in capsys.readouterr().err


def test_bytes_that_are_no_utf8_are_recorded_as_escapes(run):
    record = RunRecord.load(run)
    record.provenance = {"environment": {"X\udcff": "\udc80", "list": ["\ud800"]}}
    record.save(run)
    told = json.loads((run / "run.json").read_text())["provenance"]["environment"]
    assert told == {"X\\xff": "\\x80", "list": ["\\ud800"]}
    assert RunRecord.load(run).provenance["environment"] == told


def test_nothing_in_a_record_acts_on_a_terminal_or_in_markdown(tmp_path, capsys):
    host = "host" + ESCAPE
    hosts = {"hosts": [host, "b"], "nodes": [0, 1], "ranks_per_node": [1, 1]}
    run = a_run(tmp_path / "run", USUAL, question=HTML + ESCAPE, remarks=[HTML, ESCAPE],
                reasons=[HTML + ESCAPE], valid=False, topology=hosts)  # fmt: skip
    rows = (run / "samples.csv").read_text().replace(",a,", f",{host},")
    (run / "samples.csv").write_text(rows)
    other = a_run(tmp_path / "other", USUAL)
    for command in (["report", run], ["compare", run, other, "--out", tmp_path / "out"],
                    ["recommend", run], ["scaling", run, other, "--out", tmp_path / "scaling"],
                    ["report", "--fom", run]):  # fmt: skip
        run_cli(*command)
        told = "".join(capsys.readouterr())
        assert "\x1b]0" not in told
        assert "\x07" not in told
        assert "Traceback" not in told
    for file in [*run.rglob("*.md"), *run.rglob("*.csv"), *tmp_path.glob("out/*.md")]:
        if file.name != "samples.csv":
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


# Numbers


@pytest.mark.parametrize("seconds", ["nan", "inf", "-inf", "-1.0", "1e999"])
def test_what_are_no_seconds_is_refused(run, seconds):
    text = (run / "samples.csv").read_text()
    first = read_samples(run / "samples.csv")[0].own_max
    (run / "samples.csv").write_text(text.replace(f",{first!r},", f",{seconds},", 1))
    with pytest.raises(ValueError, match=r"samples\.csv line 2: own_max is"):
        read_samples(run / "samples.csv")


def test_a_clock_that_ran_backwards_is_read_where_the_row_says_so(run):
    lines = (run / "samples.csv").read_text().splitlines(keepends=True)
    cells = lines[1].split(",")
    names = lines[0].rstrip().split(",")
    cells[names.index("own_max")], cells[names.index("valid")] = "-1.0", "false"
    (run / "samples.csv").write_text("".join([lines[0], ",".join(cells), *lines[2:]]))
    assert read_samples(run / "samples.csv")[0].own_max == -1


@pytest.mark.parametrize("count", ["-2", "9223372036854775808", "1" + "0" * 30, "1.5"])
def test_what_is_no_count_is_refused(run, count):
    lines = (run / "samples.csv").read_text().splitlines(keepends=True)
    at = lines[0].split(",").index("bytes")
    cells = lines[3].split(",")
    cells[at] = count
    (run / "samples.csv").write_text("".join([*lines[:3], ",".join(cells), *lines[4:]]))
    with pytest.raises(ValueError, match=r"samples\.csv line 4: "):
        read_samples(run / "samples.csv")


@pytest.mark.parametrize(
    ("column", "text", "told"),
    [
        ("ranks", "0", "ranks is 0: "),
        ("reads", "0", "reads is 0: "),
        ("disk_inodes", "-1", "disk_inodes is -1: "),
        ("bytes", "1_0", "bytes is 1_0: "),
        ("ranks", "٣", "ranks is ٣: "),
        ("own_max", "1_0.5", r"own_max is 1_0\.5: "),
        ("seconds", "٣", "seconds is ٣: "),
        ("resident", "0_1", "resident is 0_1: "),
        ("environment", "zzz", "environment is zzz, and that of the case is none"),
    ],
)
def test_a_cell_that_no_run_writes_is_refused_with_its_line(run, column, text, told):
    lines = (run / "samples.csv").read_text().splitlines(keepends=True)
    cells = lines[3].rstrip("\n").split(",")
    cells[lines[0].rstrip("\n").split(",").index(column)] = text
    (run / "samples.csv").write_text("".join([*lines[:3], ",".join(cells) + "\n", *lines[4:]]))
    with pytest.raises(ValueError, match=rf"samples\.csv line 4: {told}"):
        read_samples(run / "samples.csv")


def test_a_row_of_another_environment_than_its_case_is_refused(run):
    # All rows of a case: no row contradicts another.
    lines = (run / "samples.csv").read_text().splitlines(keepends=True)
    names = lines[0].rstrip("\n").split(",")
    rows = [dict(zip(names, line.rstrip("\n").split(","), strict=True)) for line in lines[1:]]
    rows = [row | {"case": row["case"] + "@a", "environment": "b"} for row in rows]
    lines[1:] = [",".join(row.values()) + "\n" for row in rows]
    (run / "samples.csv").write_text("".join(lines))
    with pytest.raises(ValueError, match=r"line 2: environment is b, and that of the case is a"):
        read_samples(run / "samples.csv")


def test_a_row_that_stands_there_twice_is_refused(run, capsys):
    lines = (run / "samples.csv").read_text().splitlines(keepends=True)
    (run / "samples.csv").write_text("".join([*lines, lines[5]]))
    assert run_cli("report", run) == 2
    assert f"line {len(lines) + 1}: " in (told := capsys.readouterr().err)
    assert "of this repetition stands there twice" in told


def test_a_line_without_end_is_refused(run):
    with (run / "samples.csv").open("ab") as file:
        file.truncate(2**41)
    with pytest.raises(ValueError, match="a line is longer than"):
        read_samples(run / "samples.csv")


def test_what_is_missing_is_told_without_a_place_in_the_code(run, capsys, monkeypatch):
    change(run, topology={"nodes": [0]})
    assert run_cli("recommend", run) in (0, 2)
    assert run_cli("report", run) in (0, 2)
    told = capsys.readouterr().err
    assert "KeyError" not in told
    assert not re.search(r"line \d+\)", told)


# Markers


def leave_scratch(parent, name="run-1", **facts):
    scratch = Scratch.create(str(parent), name)
    marker = Path(scratch.directory, MARKER)
    marker.write_text(json.dumps(json.loads(marker.read_text()) | {"started": "1"} | facts))
    return Path(scratch.directory)


DAMAGED = [
    b"", b"[]", b"{}", b"null", b"\xff\xfe", b"\0" * 100, b"[" * 10_000, b'{"run_id": {}}',
    b'{"run_id": "x", "pid": 1e999}', b"x" * 20_000,
]  # fmt: skip
HOSTILE = [
    {"pid": 10**30}, {"pid": -1}, {"pid": "x"}, {"pid": None}, {"job": "--help"}, {"job": "1\0"},
    {"job": "x" * 10_000}, {"date": "9999-12-31T23:59:59-23:59"}, {"date": "0001-01-01"},
    {"kept_for": "/\0"}, {"kept_for": "x" * 5000}, {"kept_for": "/dev"}, {"host": ["x"] * 100},
    {"user": ESCAPE}, {"host": ESCAPE, "boot": "x"}, {"boot": {"x": [1]}}, {"run_id": ESCAPE},
    {"run_id": "../../x"}, {"started": 5}, {"namespace": None},
]  # fmt: skip


def test_a_damaged_marker_ends_nothing(tmp_path, capsys):
    for number, content in enumerate(DAMAGED):
        (leave_scratch(tmp_path, f"damaged-{number}") / MARKER).write_bytes(content)
    for number, facts in enumerate(HOSTILE):
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


@pytest.mark.parametrize("make", [fifo, device, directory, giant])
def test_a_marker_that_is_no_file_hangs_nobody(tmp_path, capsys, make):
    place = leave_scratch(tmp_path)
    (place / MARKER).unlink()
    make(place / MARKER)
    good = leave_scratch(tmp_path, "good")
    assert run_cli("clean", "--scratch", tmp_path) == 0
    assert f"{good}: " in capsys.readouterr().out
    assert [leftover.path for leftover in find_leftovers(str(tmp_path))] == [str(good)]


def test_names_of_directories_do_not_act_on_a_terminal(tmp_path, capsys):
    place = leave_scratch(tmp_path)
    place.rename(tmp_path / f"pffbench-{ESCAPE}")
    assert run_cli("clean", "--scratch", tmp_path) == 0
    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert "pffbench-\\x1b]0;owned\\x07" in told


def test_a_directory_that_is_nested_deeply_ends_nothing(tmp_path, capsys):
    place = leave_scratch(tmp_path)
    here = os.open(place, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=here)
        here, above = os.open("d", os.O_RDONLY, dir_fd=here), here
        os.close(above)
    os.close(here)
    try:
        for options in ([], ["--remove"]):
            assert run_cli("clean", "--scratch", tmp_path, *options) in (0, 1)
            assert "Traceback" not in capsys.readouterr().err
    finally:  # pytest could not remove it either
        subprocess.run(["rm", "-rf", str(place)], check=True)
