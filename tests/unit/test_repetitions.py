"""`repetitions.jsonl`: lines that are whole or absent, and what no run has written."""

import msgspec
import pytest

from pffbench.record.repetitions import (
    FILE,
    PhaseTimes,
    ReadState,
    Repetition,
    RepetitionsLog,
    claim,
    cut_torn,
    is_torn,
    merged,
    read_repetitions,
)


def times(phase, seconds=0.5):
    return PhaseTimes(phase, seconds, seconds, seconds, seconds, seconds, bytes=8)


def repetition(case="hdf5.a", number=1, **more):
    given = {"phases": (times("write"), times("read")), "totals": {"write": 0.5, "read": 0.5}}
    return Repetition(case, number, 0, "2026-01-01T12:00:00.000+00:00", **given | more)


@pytest.fixture
def log(tmp_path):
    found = RepetitionsLog(tmp_path)
    found.append(repetition())
    found.append(repetition(number=2, valid=False))
    return found


def test_what_is_appended_is_read_again(tmp_path, log):
    assert read_repetitions(tmp_path) == [repetition(), repetition(number=2, valid=False)]


def test_seconds_are_of_phases_and_totals(tmp_path, log):
    assert read_repetitions(tmp_path)[0].seconds == {"write": 0.5, "read": 0.5}


@pytest.mark.parametrize("cut", [1, 10, 100])
def test_a_line_cut_short_counts_as_never_written_and_is_kept_aside(tmp_path, log, cut):
    file = tmp_path / FILE
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(lines[0] + lines[1][:-cut])
    assert is_torn(tmp_path)
    assert read_repetitions(tmp_path) == [repetition()]
    aside = cut_torn(tmp_path)
    assert aside.read_bytes() == lines[1][:-cut] + b"\n"
    assert not is_torn(tmp_path)
    assert cut_torn(tmp_path) is None
    RepetitionsLog(tmp_path).append(repetition(number=2))
    assert [one.round for one in read_repetitions(tmp_path)] == [1, 2]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{}", "line 3: not a repetition: Object missing required field case"),
        (b"nonsense", "line 3: not a repetition"),
        (msgspec.json.encode(repetition()), "line 3: round 1 of hdf5.a is there twice"),
        (
            msgspec.json.encode(repetition(number=3, phases=(times("write"),) * 2)),
            "line 3: a phase is there twice",
        ),
        (
            msgspec.json.encode(repetition(number=3, totals={"write": -1.0})),
            "line 3: a time is not a number of seconds",
        ),
        (b'{"case": "\xff"}', "line 3: not a repetition"),
    ],
)
def test_a_line_that_no_run_wrote_is_refused_with_its_number(tmp_path, log, line, why):
    with (tmp_path / FILE).open("ab") as file:
        file.write(line + b"\n")
    with pytest.raises(ValueError, match=why):
        read_repetitions(tmp_path)


def test_text_that_would_act_on_a_terminal_is_escaped(tmp_path, log):
    log.append(repetition("a\x1b[31m", number=3))
    assert read_repetitions(tmp_path)[-1].case == "a\\x1b[31m"


def test_an_invalid_repetition_may_have_the_times_of_a_clock_that_ran_backwards(tmp_path, log):
    odd = repetition(number=3, valid=False, totals={"write": -1.0})
    log.append(odd)
    assert read_repetitions(tmp_path)[-1] == odd


def test_two_jobs_make_one_repetition():
    write = repetition(part="write", phases=(times("write"),), totals={"write": 0.5})
    state = ReadState("warm", verified_bytes=8)
    read = repetition(
        part="read", phases=(times("read"),), totals={"read": 0.5}, read=state, valid=False
    )
    other = repetition(number=2, part="write")
    assert merged([write, other, read]) == [
        repetition(part="all", read=state, valid=False),
        other,
    ]


def test_a_directory_is_claimed_once(tmp_path):
    claim(tmp_path)
    with pytest.raises(FileExistsError):
        claim(tmp_path)


def test_a_log_of_which_some_are_kept_takes_further_ones(log, tmp_path):
    log.keep([one for one in read_repetitions(tmp_path) if one.round == 1])
    log.append(repetition(number=3))
    assert [one.round for one in read_repetitions(tmp_path)] == [1, 3]
