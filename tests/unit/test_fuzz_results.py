"""Results directories that somebody or something has spoilt: read, or refused in words."""

import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from drawn_runs import USUAL, a_run
from pffbench.errors import UserError
from pffbench.parallel.topology import Team, Topology
from pffbench.record.counters import read_counts
from pffbench.record.lock import RunLock
from pffbench.record.run_json import RunRecord, readable
from pffbench.record.samples import drop_unfinished, read_samples
from pffbench.run.resume import resumed
from pffbench.summary.export import print_summary, write_summary
from pffbench.summary.summary import summarise

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


def spoilt_record(record, data):
    """Return a record with one or two values replaced or removed."""
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


def spoilt_table(samples, data):
    """Return a table with up to three cells and lines spoilt."""
    lines = samples.splitlines(keepends=True)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(lines) - 1))
        cells = lines[at].rstrip("\n").split(",")
        cells[data.draw(st.integers(0, len(cells) - 1))] = str(data.draw(st.sampled_from(JUNK)))
        lines[at] = data.draw(st.sampled_from([
            ",".join(cells) + "\n", ",".join(cells), "\n", ",".join(cells[:-1]) + "\n",
            lines[at] * 2, lines[at].replace("\n", ",x\n"),
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
    record, samples, _ = good
    record = record | {"status": "interrupted"}
    files = [json.dumps(record), samples, COUNTS * 3]
    how = data.draw(st.sampled_from(["record", "table", "bytes"]))
    if how == "record":
        files[0] = json.dumps(spoilt_record(record, data))
    elif how == "table":
        files[1] = spoilt_table(samples, data)
    else:
        which = data.draw(st.integers(0, 2))
        files[which] = spoilt_text(files[which], data)
    write(place, *files)
    read_everything(place)
