"""`report.html` as text: what it says first, what it holds, what it lacks, what it escapes."""

from __future__ import annotations

import json
import re
from html import unescape

import h5py
import pytest

import pages
from drawn_runs import USUAL, a_case, a_run
from launch import sampled
from pffbench.record.repetitions import FILE
from pffbench.record.run_json import TopologyEntry
from pffbench.results.answer import lines_of
from pffbench.results.summary import summarise
from pffbench_analysis.ranks import MOST_RANKS, read_ranks
from sharing import keys_of

pytestmark = pytest.mark.long

EVIL = "</script><script>alert(1)</script>&\"'<!--"
WAYS = [
    a_case(b, **keys_of(layout))
    for b in ("hdf5", "zarr")
    for layout in ("one-shared", "one-per_rank")
]
CHANGES = (
    {},
    {"status": "interrupted"},
    {"status": "running", "valid": None},
    {"valid": False, "reasons": ["rank 3 read 7", "and rank 4 <too>"]},
)


def page_of(directory):
    """Return the page of a run as text."""
    return pages.page_of(directory).read_text(encoding="utf-8")


def section(page, name):
    """Return what is read in a section of a page, on one line."""
    text = re.search(rf'<section id="{name}".*?</section>', page, re.DOTALL)[0]
    return " ".join(unescape(re.sub("<.*?>", " ", text)).split())


@pytest.mark.parametrize(
    ("cases", "changes"),
    sampled(
        [(cases, changes) for cases in (USUAL, WAYS, USUAL[:1]) for changes in CHANGES],
        *((USUAL, changes) for changes in CHANGES),
        (WAYS, {}),
        (USUAL[:1], {}),
    ),
    ids=str,
)
def test_the_answer_is_the_one_of_the_terminal(tmp_path, cases, changes):
    run = a_run(tmp_path, cases, repetitions=12, **changes)
    answer = summarise(run).answer
    shown = section(page_of(run), "answer")
    assert shown.startswith(" ".join(answer.sentence.split()))
    said = " ".join(lines_of(answer))
    for text in (*answer.columns, *(cell for row in answer.rows for cell in row), *answer.below):
        told = " ".join(text.split())
        assert told in shown
        assert told in " ".join(said.split())
    assert " ".join(answer.command.split()) in shown


def test_the_title_names_machine_file_system_ranks_and_date(tmp_path):
    made = {"hosts": [{"cpu_model": "Some CPU"}], "filesystem": {"type": "lustre"}}
    hosts = TopologyEntry(["a", "b"], [0, 1], [1, 1])
    page = page_of(a_run(tmp_path, USUAL, provenance=made, topology=hosts))
    place = "Some CPU, lustre, 2 ranks on 2 nodes, 2026-01-01"
    assert f"<title>{place} – pffbench</title>" in page
    assert f"<h1>{place}</h1>" in page


def test_a_list_of_contents_leads_to_every_section(run):
    page = page_of(run)
    contents = re.search("<nav.*?</nav>", page, re.DOTALL)[0]
    assert re.findall(r'href="#(\w+)"', contents) == re.findall(r'<section id="(\w+)"', page)


def test_it_fetches_nothing(run):
    """No element has an address on a network, and the policy forbids it."""
    page = page_of(run)
    assert not re.search(r"""(?:src|href|action|poster)\s*=\s*["']?(?:https?:)?//""", page)
    assert "@import" not in page
    policy = unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1])
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy.split("style-src")[0]


def test_its_tables_are_those_of_the_summary(run):
    shown = section(page_of(run), "numbers")
    for row in (run / "summary.md").read_text().split("## Details")[0].splitlines():
        if row.startswith("| HDF5") and " ms" not in row:
            cells = [cell.strip().replace("\\", "") for cell in row.strip("|").split("|")]
            assert " ".join(cell for cell in cells if cell) in shown


def test_an_invalid_case_stands_in_the_tables_with_the_reason_and_in_no_figure(run):
    record = json.loads((run / "run.json").read_text())
    name = USUAL[2][0]
    record["cases"][name]["invalid"] = "rank 1 read <7>"
    record |= {"valid": False, "reasons": ["rank 1 read <7>"]}
    (run / "run.json").write_text(json.dumps(record))
    page = page_of(run)
    assert "rank 1 read <7>" in section(page, "answer")
    assert "INVALID" in section(page, "numbers")
    assert not [svg for svg in re.findall("<svg.*?</svg>", page, re.DOTALL) if "Zarr" in svg]


def test_hostile_text_is_escaped_everywhere(tmp_path):
    cases = [a_case(b, dtype=EVIL) for b in ("hdf5", "zarr", EVIL)]
    run = a_run(tmp_path, cases, question=EVIL, reasons=[EVIL], provenance={EVIL: EVIL})
    page = page_of(run)
    assert EVIL not in page
    assert "<script>alert" not in page
    assert page.count("<script") == page.count("</script>") == 1


# What is missing is said, and the rest is shown


def test_without_times_of_ranks(run):
    (run / "ranks.h5").unlink()
    assert "ranks.h5 is missing" in section(page_of(run), "answer")


def test_with_broken_times_of_ranks(run):
    (run / "ranks.h5").write_bytes(b"no HDF5")
    assert "ranks.h5 cannot be read" in page_of(run)


def test_a_killed_run_is_reported_as_far_as_it_went(run):
    path = run / FILE
    path.write_text(path.read_text()[:-40])
    assert "Not in this report" in section(page_of(run), "answer")


def test_cases_without_a_number_are_named(tmp_path):
    run = a_run(tmp_path, USUAL)
    record = json.loads((run / "run.json").read_text())
    name = USUAL[0][0]
    record["cases"]["absent"] = record["cases"][name]
    (run / "run.json").write_text(json.dumps(record))
    assert "1 of 5 cases gave no number: absent" in page_of(run)


def test_many_ranks_are_put_together(tmp_path):
    own = [[[0.001 * (1 + rank) for rank in range(1000)]]]
    with h5py.File(tmp_path / "ranks.h5", "w") as file:
        file["host"] = ["node"] * 1000
        group = file.create_group("case")
        group.attrs["phases"] = ["write"]
        group["own"] = own
        group["repetition"] = [1]
    write = read_ranks(tmp_path, {"case": frozenset({1})}).cases["case"]["write"]
    assert len(write.first) == MOST_RANKS
    assert write.low[0] == 0.001
    assert write.high[-1] == 1.0
