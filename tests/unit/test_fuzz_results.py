"""Results directories that somebody or something has spoilt: read, or refused in words."""

import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from drawn_runs import USUAL, a_run
from pffbench.errors import UserError
from pffbench.mpi.topology import Team, Topology
from pffbench.record.lock import RunLock
from pffbench.record.repetitions import FILE, cut_torn, read_repetitions
from pffbench.record.run_json import RunRecord, readable
from pffbench.results.export import print_summary, write_summary
from pffbench.results.summary import summarise
from pffbench.run.resume import resumed

pytestmark = pytest.mark.long

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


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A run that nothing is wrong with: its files as text."""
    directory = a_run(tmp_path_factory.mktemp("good"), USUAL, repetitions=3, provenance=PROVENANCE)
    record = json.loads((directory / "run.json").read_text())
    for entry in record["cases"].values():
        entry["stored_as"] = {"chunks": [2, 2], "codec": "none", "fill": "never", "more": {}}
    return record, (directory / FILE).read_text(), directory


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("spoilt")


def write(place, record, lines):
    (place / "run.json").write_text(record, encoding="utf-8", errors="surrogatepass")
    (place / FILE).write_bytes(lines.encode("utf-8", errors="surrogatepass"))


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
    attempt(lambda: read_repetitions(place))
    summary = attempt(lambda: summarise(place))
    if summary is not None:
        attempt(lambda: _written(summary, place))
    lock = RunLock()
    before = attempt(
        lambda: resumed(str(place), Topology(("a", "b"), (0, 1)), None, lock, batch=False)
    )
    lock.release()
    if before is not None:
        attempt(lambda: before.done(3))
        attempt(lambda: cut_torn(place))
    (place / f"{FILE}.unfinished").unlink(missing_ok=True)
    assert not (place / "run.lock").exists()
    return refused


def _written(summary, place):
    with readable(place), (place / "told").open("w", errors="replace") as file:
        write_summary(summary, place)
        print_summary(summary, Console(file=file, width=120), tables=True)


def test_a_good_run_is_read(good, place):
    record, lines, _ = good
    write(place, json.dumps(record | {"status": "interrupted"}), lines)
    assert read_everything(place) == []


def places(data, path=()):
    pairs = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in pairs:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


def spoilt_record(record, data):
    """Return plain data with one or two values replaced or removed."""
    record = copy.deepcopy(record)
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(list(places(record))))
        target = record
        for step in path[:-1]:
            target = target[step]
        if data.draw(st.booleans()) or not isinstance(target, dict):
            target[path[-1]] = copy.deepcopy(data.draw(st.sampled_from(JUNK)))
        else:
            del target[path[-1]]
    return record


def spoilt_lines(text, data):
    """Return lines of which up to three are spoilt."""
    good = text.splitlines(keepends=True)
    lines = list(good)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(lines) - 1))
        line = good[at]
        lines[at] = data.draw(st.sampled_from([
            json.dumps(spoilt_record(json.loads(line), data)) + "\n", line.rstrip("\n"), "\n",
            line * 2, line.replace("}\n", "\n"),
        ]))  # fmt: skip
    return "".join(lines)


def spoilt_text(text, data):
    """Return a text with bytes put in and taken out."""
    at = data.draw(st.integers(0, len(text)))
    put = data.draw(st.sampled_from(
        ["", "\0", "[" * 100_000, '"', "\n", "9" * 5000, "\ud800", "{", ","]))  # fmt: skip
    return text[:at] + put + text[at + data.draw(st.integers(0, 50)) :]


@settings(suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_spoilt_run_is_read_or_refused_in_words(good, place, data):
    record, lines, _ = good
    record = record | {"status": "interrupted"}
    files = [json.dumps(record), lines]
    how = data.draw(st.sampled_from(["record", "lines", "bytes"]))
    if how == "record":
        files[0] = json.dumps(spoilt_record(record, data))
    elif how == "lines":
        files[1] = spoilt_lines(lines, data)
    else:
        which = data.draw(st.integers(0, 1))
        files[which] = spoilt_text(files[which], data)
    write(place, *files)
    read_everything(place)
