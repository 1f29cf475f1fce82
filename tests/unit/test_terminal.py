"""What each command prints fits 80 and 120 columns, on a terminal and without one."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
import time

import pytest
import yaml
from rich.console import Console

from launch import DIGEST, REPOSITORY, environment, pffbench_cli, sampled
from pffbench.results.answer import lines_of
from pffbench.results.columns import title
from pffbench.results.export import print_summary
from pffbench.results.summary import summarise

pytestmark = pytest.mark.long

RUN = REPOSITORY / "docs" / "results" / "default"
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")
#: Characters of the line below the headings of a table.
_RULE = re.compile(r"^[ ─━]*[─━]{8,}[ ─━]*$")
SMALL = {
    "name": "small", "repetitions": 2,
    "cases": [{"workload": "hyperslab", "backend": ["npy", "hdf5"], "shape_per_rank": [64, 64]},
              {"workload": "datasets", "backend": "npy", "shape": [64], "datasets": 4,
               "files": "one", "arrays": "per_rank"}],
}  # fmt: skip


def on_terminal(arguments, columns, cwd):
    """Run a command on a pseudo-terminal of so many columns; return its status and its lines."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "pffbench", *map(str, arguments)], cwd=cwd, stdin=theirs,
        stdout=theirs, stderr=theirs, env=environment(TERM="xterm-256color"), close_fds=True,
    )  # fmt: skip
    os.close(theirs)
    data, end = b"", time.monotonic() + 300
    while time.monotonic() < end:
        if not select.select([ours], [], [], 1)[0]:
            continue
        try:
            part = os.read(ours, 2**16)
        except OSError:  # the other side is closed
            break
        data += part
    os.close(ours)
    status = process.wait(timeout=300)
    text = _CONTROLS.sub("", data.decode().replace("\r\n", "\n"))
    return status, [line.rpartition("\r")[2].rstrip() for line in text.split("\n")]


def run_without_terminal(arguments, columns, cwd):
    done = pffbench_cli(*arguments, cwd=cwd, env={"COLUMNS": str(columns)})
    return done.status, done.said.split("\n", 1)[1].splitlines()


def assert_whole_tables(lines):
    """Every line of a table is as wide as its rule, and no cell was cut or wrapped."""
    for place, line in enumerate(lines):
        if not _RULE.match(line):
            continue
        heading = lines[place - 1]
        assert heading.strip(), lines
        assert "…" not in heading, heading
        rows = []
        for row in lines[place + 1 :]:
            if not row.strip():
                break
            rows.append(row)
        assert rows, lines
        assert not [row for row in rows if "…" in row]
        assert all(len(row) <= len(line) + 1 for row in [heading, *rows])
        # A wrapped cell makes a row that does not begin with the words of its first column.
        assert all(re.match(r" ?\S", row) for row in rows), rows


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with an experiment, and a finished run of another one."""
    directory = tmp_path_factory.mktemp("terminal")
    (directory / "small.yaml").write_text(yaml.safe_dump(SMALL))
    shutil.copytree(RUN, directory / "finished")
    shutil.copytree(RUN, directory / "again")
    record = directory / "again" / "run.json"
    record.write_text(re.sub(r'("run_id": "[^"]*)', r"\1-2", record.read_text()))
    return directory


COMMANDS = {
    "nothing": [],
    "help": ["--help"],
    "run --help": ["run", "--help"],
    "plan": ["plan", "small.yaml"],
    "plan default": ["plan", "--ranks", "64"],
    "doctor": ["doctor", "--no-mpi"],
    "recommend": ["recommend", "finished"],
    "compare": ["compare", "finished", "again"],
    "clean": ["clean", "--scratch", "."],
    "keys": ["keys"],
    "keys NAME": ["keys", "hyperslab", "zarr"],
    "run": ["run", "small.yaml", "--scratch", "."],
}
#: Commands whose lines are for grep and programs where there is no terminal, or of any length.
UNBROKEN = {"doctor", "keys", "keys NAME", "recommend", "run", "clean"}


WIDE = {"plan default", "recommend", "compare", "doctor"}
#: Commands that `make test` also runs without a terminal, and on a wide one.
SAMPLE = {"plan", "compare", "run"}
WAYS = [
    (command, columns, show) for command in COMMANDS
    for columns, show in ((80, on_terminal), (80, run_without_terminal), (120, on_terminal))
    if command in (COMMANDS if columns == 80 else WIDE) and (command, show) != ("run", on_terminal)
]  # fmt: skip


@pytest.mark.parametrize(
    ("command", "columns", "show"),
    sampled(WAYS, *(way for way in WAYS if way[1:] == (80, on_terminal) or way[0] in SAMPLE)),
)
def test_what_a_command_prints_fits(place, command, columns, show):
    status, lines = show(COMMANDS[command], columns, place)
    assert status in (0, 1 if command == "doctor" else 0), lines
    assert any(lines)
    assert_whole_tables(lines)
    assert not DIGEST.search("".join(lines))
    if command not in UNBROKEN:
        assert max(map(len, lines)) <= columns, max(lines, key=len)


def test_a_run_prints_the_same_on_any_terminal_and_explains_its_tables(place):
    """A log of a batch job has no width, and numbers are copied from it."""
    shown = []
    for columns in (80, 200):
        status, lines = on_terminal([*COMMANDS["run"], "--tables"], columns, place)
        assert status == 0, lines
        text = " ".join(" ".join(lines).split())
        for word in ("n: rounds", "roof: ", "cpu: "):
            assert word in text
        assert "to start more: mpiexec" in text
        assert re.search(r"\n  pffbench report \S+/pffbench-results/small-", "\n".join(lines))
        rows = [line for line in lines if re.match("(HDF5|npy)[,: ]", line)]  # not of progress
        shown.append([line.split()[:2] for line in rows])
    assert shown[0] == shown[1] != []
    assert not any("…" in line for line in lines)


def test_the_answer_is_the_last_and_has_80_columns_on_any_terminal(capsys):
    summary = summarise(RUN)
    shown = []
    for width in (40, 80, 300):
        print_summary(summary, Console(width=width, file=sys.stdout))
        shown.append(capsys.readouterr().out)
    assert shown == [shown[0]] * 3
    assert shown[0].splitlines() == list(lines_of(summary.answer))
    assert max(map(len, shown[0].splitlines())) <= 80


def test_no_two_tables_of_the_default_run_have_the_same_title():
    """Comparisons that differ in the size of their chunks alone would."""
    summary = summarise(RUN)
    titles = [title(cases, summary) for cases in summary.groups.values()]
    assert len(set(titles)) == len(titles) > 4
