"""`reproduce`: what a run says of the sentences of another one; a pure function of both."""

from __future__ import annotations

import csv
import json
import re
import shutil

import pytest

from launch import REPOSITORY
from pffbench.cli import main
from pffbench.phases import READ_PHASES
from pffbench.record.run import MeasuredRun
from pffbench.summary.summary import summarise
from pffbench_bundles.claims import judged, statements

SHIPPED = REPOSITORY / "docs" / "results" / "default"
WORDS = {"confirmed", "refuted", "cannot be decided here"}


@pytest.fixture
def here(tmp_path):
    """The run that the README shows, as if it had been made here again."""
    return shutil.copytree(SHIPPED, tmp_path / "here")


def slowed(run, factor, backend, phases=("read",), most=10**9, **cells):
    """Plant a slowdown of a format, or change cells of all its rows."""
    path = run / "samples.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if row["backend"] == backend and row["phase"] in phases:
            for clock in ("own_max", "seconds"):
                row[clock] = repr(factor * float(row[clock]))
        row |= cells
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(row for row in rows if int(row["repetition"]) <= most)


def changed(run, change):
    record = json.loads((run / "run.json").read_text())
    change(record)
    (run / "run.json").write_text(json.dumps(record))


def verdicts(here):
    found = judged(MeasuredRun.load(SHIPPED), MeasuredRun.load(here))
    assert {verdict.word for verdict in found} <= WORDS
    return found


def test_the_sentences_that_claim_something_are_judged():
    told = [sentence for sentence, _ in statements(summarise(SHIPPED))]
    assert len(told) == 4
    assert told[0] == "HDF5 is never shown slower, and fastest to read from the page cache."
    assert [("writing" in text, "reading" in text) for text in told[1:]] == [
        (True, False), (False, True), (False, True)
    ]  # fmt: skip


def test_the_same_times_confirm_everything(here):
    assert [verdict.word for verdict in verdicts(here)] == ["confirmed"] * 4


def test_a_slowdown_of_the_fastest_format_refutes_what_it_contradicts(here):
    slowed(here, 1.5, "hdf5")
    answer, writing, reading, cold = verdicts(here)
    assert writing.word == "confirmed"
    assert {answer.word, reading.word, cold.word} == {"refuted"}
    assert re.fullmatch(r"\d of 10 comparisons", reading.why[0])
    assert re.match(
        r"reading, layout shared, netCDF-4 against HDF5: 1\.\d\d \[\S+\] times as long there, "
        r"0\.\d\d \[\S+\] here", next(why for why in reading.why if "layout shared," in why)
    )  # fmt: skip


def test_a_slowdown_that_no_sentence_contradicts_refutes_nothing(here):
    slowed(here, 1.5, "zarr")
    assert {verdict.word for verdict in verdicts(here)} == {"confirmed"}


def test_a_contender_that_is_equally_fast_may_lead_here(here):
    """The other comparisons of a sentence are judged although another format is in front."""
    slowed(here, 0.93, "netcdf4", READ_PHASES)
    answers = {a.total: a.name for a in summarise(here).cold_answers}
    assert answers["read_total"] == "netcdf4"  # and hdf5 was in front before
    cold = verdicts(here)[3]
    assert cold.word == "cannot be decided here"
    assert cold.why[0] == "1 of 2 comparisons"  # hdf5 and zarr are judged all the same
    assert re.match(r"reading, netCDF-4 against HDF5: too few repetitions: 39 rep", cold.why[1])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda r: r["provenance"]["filesystem"].update(type="lustre"),
         "the file system: ext4 there, lustre here"),
        (lambda r: r.update(ranks=1), "ranks: 2 there, 1 here"),
        (lambda r: r["topology"].update(nodes=[0, 1]), "nodes: 1 there, 2 here"),
        (lambda r: r.update(valid=False, reasons=["wrong data"]),
         "the run here is not VALID (wrong data)"),
        (lambda r: r.update(status="interrupted"), "the run here is not VALID (interrupted)"),
        (lambda r: r["floor"].update(own=1.0), "the times are too short to measure"),
    ],
)  # fmt: skip
def test_a_run_under_other_conditions_decides_nothing(here, change, why):
    changed(here, change)
    found = verdicts(here)
    assert {verdict.word for verdict in found} == {"cannot be decided here"}
    assert all(any(text.startswith(why) for text in verdict.why) for verdict in found), found


def test_a_busy_machine_or_too_few_repetitions_decide_nothing(here):
    slowed(here, 1, "hdf5", busy_others="0.9")
    assert {v.why[0].partition(":")[0] for v in verdicts(here)} == {"BUSY"}
    slowed(here, 1, "hdf5", most=4, busy_others="0")
    assert all("at least 7 repetitions are needed" in v.why[0] for v in verdicts(here))


def test_a_comparison_that_is_open_or_missing_is_named(here):
    slowed(here, 1, "hdf5", most=8)
    found = verdicts(here)
    assert {v.word for v in found} <= {"confirmed", "cannot be decided here"}
    why = [text for v in found for text in v.why]
    assert any(
        re.search(r"too few repetitions: \d+ repetitions leave it open, about", w) for w in why
    )
    changed(here, lambda r: [e.update(group="other") for e in r["cases"].values()])
    path = here / "samples.csv"
    path.write_text(re.sub(r"hyperslab\.(shared|own|file_per_process)\.[0-9a-f]{12},", "other,",
                           path.read_text()))  # fmt: skip
    assert any("they were not compared" in text for v in verdicts(here) for text in v.why)


def run_cli(capsys, *words):
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    return ended.value.code, capsys.readouterr()


def test_the_exit_status_says_what_was_found(here, tmp_path, capsys):
    bundle = tmp_path / "run.zip"
    assert run_cli(capsys, "bundle", SHIPPED, "-o", bundle)[0] == 0
    status, told = run_cli(capsys, "reproduce", bundle, "--with", here)
    assert (status, told.out.count("CONFIRMED: ")) == (0, 4), told
    assert told.out.endswith(f"{bundle}: 4 confirmed\n")
    slowed(here, 1.5, "hdf5")
    status, told = run_cli(capsys, "reproduce", bundle, "--with", here)
    assert (status, told.out.count("REFUTED: ")) == (1, 3)
    assert told.out.endswith(f"{bundle}: 3 refuted, 1 confirmed\n")
    changed(here, lambda r: r.update(ranks=1))
    status, told = run_cli(capsys, "reproduce", bundle, "--with", here)
    assert (status, told.out.count("CANNOT BE DECIDED HERE: ")) == (4, 4)
    status, told = run_cli(capsys, "reproduce", bundle, "--with", tmp_path / "nowhere")
    assert (status, told.err.count("\n")) == (2, 1)
    assert "there is no such directory" in told.err


def test_the_artifact_description_names_machine_software_claims_and_commands(tmp_path, capsys):
    bundle = tmp_path / "run.zip"
    run_cli(capsys, "bundle", SHIPPED, "-o", bundle)
    status, told = run_cli(capsys, "reproduce", bundle, "--appendix")
    assert status == 0
    assert re.findall(r"^## (.*)$", told.out, re.MULTILINE) == [
        "Claims", "Hardware and software", "Data", "Space and time", "Commands",
    ]  # fmt: skip
    for text in (
        "- HDF5 is never shown slower, and fastest to read from the page cache. (20 comparisons)",
        "- 2 ranks on 2 cores (AMD EPYC), Debian GNU/Linux 12 (bookworm), Python 3.11.2, Open MPI",
        "- each node: 23.54 GiB of memory, kernel 6.",
        "- pffbench 0.1.0, commit 8f3a23a86b3f7616d53e4c19f34494f509b79e56",
        "h5py 3.16.0, HDF5 1.10.8",
        "- made by pffbench from the seed 1",
        "VALID: every byte read was verified; 24 cases",
        f"    pffbench check {bundle}",
        f"    mpiexec -n 2 python -m pffbench reproduce {bundle}",
    ):
        assert text in told.out, text
