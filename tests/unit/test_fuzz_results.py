"""Results directories that somebody or something has spoilt: read, or refused in words."""

import copy
import io
import json
import os
import random
import shutil
import signal
import stat
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from drawn_runs import USUAL, a_run, a_sample
from pffbench.cli import main
from pffbench.errors import UserError
from pffbench.parallel.topology import Team, Topology
from pffbench.record.counters import read_counts
from pffbench.record.lock import RunLock
from pffbench.record.ranks import RanksFile
from pffbench.record.run_json import RunRecord, readable
from pffbench.record.samples import SamplesLog, drop_unfinished, read_samples
from pffbench.run.resume import resumed
from pffbench.summary.export import fom_lines, print_summary, write_summary
from pffbench.summary.summary import summarise
from pffbench_analysis.picture import Picture, Words
from spoilt_runs import spoil, spoil_scratch

JUNK = [
    None, True, False, -1, 0, 1, 2**63, 10**30, 1.5, -0.5, float("nan"), float("inf"), 1e308, "",
    "x", "../x", "<b>&", "nan", "1e999", [], {}, [[]], [{}], [None], ["x"], [1], [0.5], {"x": 1},
    {"": {}}, "x" * 2000, "\ud800", "a\nb", '"', ",", "running", "finished", "read", "all",
]  # fmt: skip
PROVENANCE = {
    "software": {"python": {"version": "3.11"}, "pffbench": {"version": "0.1.0", "commit": None},
                 "libraries": {"numpy": {"imported": False}}},
    "hosts": [{"host": "a", "memory_bytes": 2**34}], "filesystem": {"type": "ext4"},
}  # fmt: skip
COUNTS = "case,repetition,warmup,phase,counter,total,largest\nx,0,false,write,cpu_seconds,1.5,0.7\n"


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A run that nothing is wrong with: its files as text."""
    directory = a_run(tmp_path_factory.mktemp("good"), USUAL, repetitions=3, provenance=PROVENANCE)
    record = json.loads((directory / "run.json").read_text())
    for entry in record["cases"].values():
        entry["cost"] = {"nbytes": 8, "arrays": 1, "files": 1, "space": 8, "memory": 8}
        entry["stored_as"] = {"chunks": [2, 2], "codec": "none", "fill": "never", "more": {}}
    return record, (directory / "samples.csv").read_text(), directory


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("spoilt")


def write(place, record, samples, counts=COUNTS):
    (place / "run.json").write_text(record, encoding="utf-8", errors="surrogatepass")
    (place / "samples.csv").write_bytes(samples.encode("utf-8", errors="surrogatepass"))
    (place / "counters.csv").write_bytes(counts.encode("utf-8", errors="surrogatepass"))


def team(ranks):
    return Team(None, None, Topology(("a",) * ranks, (0,) * ranks))


def read_everything(place):
    """Read a results directory as all commands do; return how often it was refused."""
    refused = []

    def attempt(read):
        told = str(place)
        try:
            return read()
        except (ValueError, UserError) as error:
            told = str(error)
        assert str(place) in told, told
        refused.append(told)
        return None

    attempt(lambda: RunRecord.load(place))
    attempt(lambda: read_samples(place / "samples.csv"))
    attempt(lambda: read_counts(place))
    summary = attempt(lambda: summarise(place))
    if summary is not None:
        attempt(lambda: _written(summary, place))
    lock = RunLock()
    before = attempt(lambda: resumed(str(place), Topology(("a", "b"), (0, 1)), None, lock))
    lock.release()
    if before is not None:
        attempt(lambda: before.done(3))
        attempt(lambda: drop_unfinished(str(place / "samples.csv"), before.record.last_written))
    (place / "samples.csv.unfinished").unlink(missing_ok=True)
    assert not (place / "run.lock").exists()
    return refused


def _written(summary, place):
    with readable(place), (place / "told").open("w", errors="replace") as file:
        write_summary(summary, place)
        list(fom_lines(summary))
        print_summary(summary, Console(file=file, width=120))


def test_a_good_run_is_read(good, place):
    record, samples, _ = good
    write(place, json.dumps(record | {"status": "interrupted"}), samples)
    assert read_everything(place) == []


def places(data, path=()):
    pairs = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in pairs:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


#: Examples of a test: 100, and 500 with `make test-all`.
EXAMPLES = settings().max_examples
HOW = settings(max_examples=EXAMPLES // 2, suppress_health_check=list(HealthCheck))


@HOW
@given(st.data())
def test_a_spoilt_record_is_refused_in_words(good, place, data):
    record, samples, _ = good
    record = copy.deepcopy(record) | {"status": "interrupted"}
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(list(places(record))))
        target = record
        for step in path[:-1]:
            target = target[step]
        if data.draw(st.booleans()) or not isinstance(target, dict):
            target[path[-1]] = copy.deepcopy(data.draw(st.sampled_from(JUNK)))
        else:
            del target[path[-1]]
    write(place, json.dumps(record), samples)
    read_everything(place)


@HOW
@given(st.data())
def test_a_spoilt_table_is_refused_in_words(good, place, data):
    record, samples, _ = good
    lines = samples.splitlines(keepends=True)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(lines) - 1))
        cells = lines[at].rstrip("\n").split(",")
        cells[data.draw(st.integers(0, len(cells) - 1))] = str(data.draw(st.sampled_from(JUNK)))
        lines[at] = data.draw(st.sampled_from([
            ",".join(cells) + "\n", ",".join(cells), "\n", ",".join(cells[:-1]) + "\n",
            lines[at] * 2, lines[at].replace("\n", ",x\n"),
        ]))  # fmt: skip
    write(place, json.dumps(record | {"status": "interrupted"}), "".join(lines))
    read_everything(place)


@HOW
@given(st.data())
def test_spoilt_bytes_are_refused_in_words(good, place, data):
    record, samples, _ = good
    files = [json.dumps(record), samples, COUNTS * 3]
    which = data.draw(st.integers(0, 2))
    text = files[which]
    at = data.draw(st.integers(0, len(text)))
    put = data.draw(st.sampled_from(
        ["", "\0", "[" * 100_000, '"', "\n", "9" * 5000, "\ud800", "{", ","]))  # fmt: skip
    files[which] = text[:at] + put + text[at + data.draw(st.integers(0, 50)) :]
    write(place, *files)
    read_everything(place)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[]", b"{}", b"null", b"\0" * 1000])
def test_files_that_are_nothing_are_refused(good, place, content):
    record, samples, _ = good
    for name in ("run.json", "samples.csv", "counters.csv"):
        write(place, json.dumps(record), samples)
        Path(place, name).write_bytes(content)
        assert read_everything(place) or (name, content) in [("counters.csv", b"")]


@pytest.fixture(scope="module")
def other(good, tmp_path_factory):
    """Another good run, to compare with."""
    record, samples, _ = good
    place = tmp_path_factory.mktemp("other")
    write(place, json.dumps(record), samples)
    return place


@settings(max_examples=EXAMPLES // 10, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_commands_refuse_spoilt_runs_in_words(good, place, other, capsys, data):
    record, samples, _ = good
    record = copy.deepcopy(record)
    path = data.draw(st.sampled_from(list(places(record))))
    target = record
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = copy.deepcopy(data.draw(st.sampled_from(JUNK)))
    write(place, json.dumps(record), samples)
    out = ["--out", place / "out"]
    command = data.draw(st.sampled_from([
        ["report", "--fom", place], ["recommend", place], ["scaling", place, other, *out],
        ["compare", other, place, *out], ["compare", place, other, *out],
    ]))  # fmt: skip
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in command])
    shutil.rmtree(place / "out", ignore_errors=True)
    told = capsys.readouterr().err
    assert ended.value.code in (0, 1, 2)
    assert "Traceback" not in told
    assert (ended.value.code == 2) == told.startswith("pffbench: "), told


# Directories that somebody has spoilt on purpose

#: Cases that are tried; a person who wants more asks for them by PFFBENCH_FUZZ_CASES.
SPOILT = int(os.environ.get("PFFBENCH_FUZZ_CASES", EXAMPLES // 2))
_AT_ONCE = 50
#: Seconds after which a case counts as waiting for something; none takes a tenth of it.
_WAITING = 120


@pytest.fixture(scope="module")
def yard(good, tmp_path_factory):
    """A good run to copy, a place outside that nothing may change, and one to be in."""
    record, samples, directory = good
    place = tmp_path_factory.mktemp("yard")
    run = place / "good"
    run.mkdir()
    write(run, json.dumps(record), samples)
    shutil.copy(directory / "ranks.h5", run)
    outside = place / "outside"
    shutil.copytree(run, outside / "run")
    for name in ("summary.csv", "summary.md", "fom.txt", "results.json", "report.html", "run.lock"):
        (outside / "run" / name).write_text("precious")
    (outside / "precious").write_text("precious")
    (outside / "mine.png").write_text("precious")
    os.mkfifo(outside / "fifo")
    (place / "here").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place / "here")
        # What a figure looks like takes most of the time and is not in question here.
        for name in ("draw", "draw_answer"):
            patch.setattr(f"pffbench_analysis.report.{name}", tiny)
        yield place


def tiny(*_):
    return Picture("", Words(""), ())


def contents_of(directory):
    """Return all that is below a directory, with what it holds."""
    return {
        str(path): (stat.S_IFMT(status.st_mode), status.st_size, status.st_mtime_ns)
        for path in sorted(directory.rglob("*"))
        for status in [path.lstat()]
    }


def go_on(run):
    """Do what `run --resume` does with the files of a run."""
    lock = RunLock()
    try:
        nodes = Topology(("a", "b"), (0, 1))
        before = resumed(str(run), nodes, None, lock)
        before.done(3)
        RanksFile(str(run / "ranks.h5"), ["a", "b"])
        drop_unfinished(str(run / "samples.csv"), before.record.last_written)
        name, entry = next(iter(USUAL))
        SamplesLog(str(run / "samples.csv")).append([a_sample(name, entry, 77, "write", 1.0)])
        before.record.save(run)
    except OSError as error:  # as where the device is full
        raise UserError(str(error)) from None
    finally:
        lock.release()


def try_one_way(yard, run, scratch, draw):
    """Use spoilt directories in one of the ways that there are; say which, and how it ended."""
    out, other = run.parent / "out", yard / "good"
    ways = {
        "fom": ["report", "--fom", run], "report": ["report", run],
        "recommend": ["recommend", run], "compare": ["compare", run, other, "--out", out],
        "compared": ["compare", other, run], "scaling": ["scaling", run, other, "--out", out],
        "clean": ["clean", "--scratch", scratch, "--kept", "--remove"], "resume": None,
        "check": ["check", run],
    }  # fmt: skip
    weights = {"report": 4, "fom": 3, "resume": 3, "clean": 2, "check": 2}
    way = draw.choices(list(ways), [weights.get(name, 1) for name in ways])[0]
    told, err = io.StringIO(), io.StringIO()
    with redirect_stdout(told), redirect_stderr(err):
        if ways[way] is None:
            try:
                go_on(run)
                code = 0
            except UserError as error:
                print(f"pffbench: {error}", file=err)
                code = 2
        else:
            with pytest.raises(SystemExit) as ended:
                main([str(word) for word in ways[way]])
            code = ended.value.code
    return way, code, told.getvalue(), err.getvalue()


def raise_timeout(*_):
    raise TimeoutError("a command waits for something")


@pytest.mark.timeout(_AT_ONCE * _WAITING)
@pytest.mark.parametrize("first", range(0, SPOILT, _AT_ONCE))
def test_spoilt_directories_do_no_harm(yard, first):
    """No traceback, nothing written outside, no waiting, and nothing that acts on a terminal."""
    untouched = [yard / name for name in ("outside", "good", "here")]
    before = [contents_of(directory) for directory in untouched]
    alarm = signal.signal(signal.SIGALRM, raise_timeout)
    try:
        for number in range(first, min(first + _AT_ONCE, SPOILT)):
            draw = random.Random(number)
            place = yard / f"case-{number}"
            place.mkdir()
            run, scratch = place / "run", place / "scratch"
            shutil.copytree(yard / "good", run)
            if draw.random() < 0.7:
                record = json.loads((run / "run.json").read_text())
                (run / "run.json").write_text(json.dumps(record | {"status": "interrupted"}))
            scratch.mkdir()
            acts = spoil(run, draw, yard / "outside")
            acts += " | " + spoil_scratch(scratch, draw, yard / "outside")
            signal.alarm(_WAITING)
            way, code, told, err = try_one_way(yard, run, scratch, draw)
            signal.alarm(0)
            case = f"number {number}, {way}: {acts}\n{told}\n{err}"
            assert code in (0, 1, 2), case
            assert "Traceback" not in told + err, case
            assert "\x1b" not in told + err, case
            assert code != 2 or err.startswith("pffbench: "), case
            assert [contents_of(directory) for directory in untouched] == before, case
            assert {path.name for path in place.iterdir()} <= {"run", "scratch", "out"}, case
            shutil.rmtree(place)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, alarm)
