"""`report.html` as text: what it says first, what it holds, how it thins out, what it escapes."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from html import unescape

import h5py
import pytest
from pffbench.summary.answer import answer_of
from pffbench.summary.cautions import cautions
from pffbench.summary.conclusions import evidence, verdict_lines
from pffbench.summary.labels import format_title
from pffbench.summary.statistics import Caveat
from pffbench_analysis.page.ranks import MOST_RANKS, read_ranks
from pffbench_analysis.page.tables import Mark, mark_of
from rich.console import Console
from test_answer_table import make_busy

import pages
from drawn_codecs import WAYS, a_codecs_run
from drawn_runs import BYTES, PHASES, USUAL, a_case, a_run
from pffbench.errors import UserError
from pffbench.results.export import print_summary, write_summary
from pffbench_analysis.page import numbers
from pffbench_analysis.page.build import render
from pffbench_analysis.report import readable, report

pytestmark = pytest.mark.long

EVIL = "</script><script>alert(1)</script>&\"'<!--"


def page_of(directory):
    """Return the page of a run as text."""
    return pages.page_of(directory).read_text(encoding="utf-8")


def data_of(page):
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', page)[1]
    )


def section(page, name):
    """Return a section of a page."""
    return re.search(rf'<section id="{name}".*?</section>', page, re.DOTALL)[0]


def items(text, kind):
    """Return the items of a list as they are read."""
    found = re.search(rf'<ul class="{kind}">(.*?)</ul>', text, re.DOTALL)
    return [unescape(item) for item in re.findall("<li>(.*?)</li>", found[1])] if found else []


def verdict_on(page):
    """Return the word of the verdict with its meaning, and the sentences."""
    text = section(page, "verdict")
    word, meaning = (
        unescape(re.search(rf'<span class="{part}">(.*?)</span>', text)[1])
        for part in ("badge", "meaning")
    )
    return [f"{word}: {meaning}", *items(text, "conclusions")]


def print_run(summary):
    """Return the lines that end what a terminal shows, one of them to a line."""
    file = io.StringIO()
    print_summary(summary, Console(file=file, width=1000))
    return file.getvalue().splitlines()


def change_record(run, **changes):
    """Change what `run.json` says."""
    data = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(data | changes))


def test_the_verdict_comes_first(run, tmp_path):
    page = page_of(run)
    body = page[page.index("<main>") :]
    assert body.index('class="badge">NO ANSWER') < body.index('id="answer"')
    invalid = page_of(a_run(tmp_path / "bad", USUAL, valid=False, reasons=["rank 3 read 7"]))
    assert 'class="badge">INVALID' in invalid
    assert "rank 3 read 7" in verdict_on(invalid)[0]
    assert "if they could be trusted" in section(invalid, "verdict")


def test_a_list_of_contents_leads_to_every_section(run):
    page = page_of(run)
    contents = re.search("<nav.*?</nav>", page, re.DOTALL)[0]
    links = re.findall(r'href="#(\w+)"', contents)
    assert links == re.findall(r'<section id="(\w+)"', page)


def test_a_busy_machine_is_the_headline_and_no_second_caution(tmp_path):
    run = a_run(tmp_path, USUAL, repetitions=12)
    make_busy(run)
    page = page_of(run)
    assert '<section id="verdict" class="verdict open">' in page
    assert verdict_on(page)[0].startswith("NO ANSWER: BUSY: ")
    assert not any("BUSY" in text for text in items(section(page, "verdict"), "cautions"))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"status": "interrupted"},
        {"status": "running", "valid": None},
        {"valid": False, "reasons": ["rank 3 read 7", "and rank 4 <too>"]},
        {"status": "written", "valid": None},
    ],
)
@pytest.mark.parametrize("layouts", [["shared"], ["shared", "own", "file_per_process"]])
def test_the_verdict_is_that_of_the_terminal(tmp_path, changes, layouts):
    cases = [a_case(b, layout=layout) for b in ("hdf5", "zarr", "posix") for layout in layouts]
    run = a_run(tmp_path, cases)
    change_record(run, **changes)
    summary = readable(run)
    *lines, valid = verdict_lines(summary)
    first, *rest = verdict_on(page_of(run))
    assert 1 <= len(lines) <= 4
    assert rest == lines
    shown = print_run(summary)
    if answer := answer_of(summary):
        assert shown[-1] == evidence(summary)
        assert first == f"{answer.word}: {answer.sentence}"
        said = (f"{answer.word}  {answer.sentence}", answer.open, f"  {answer.command}")
        assert tuple(shown[-4:-1]) == said
        text = section(page_of(run), "verdict")
        assert evidence(summary) in text
        assert answer.command in text
        assert not re.search(r"(?<!IN)VALID", text)
    else:
        assert shown[-1] == first == valid
        assert shown[-len(lines) - 1 : -1] == lines


def test_cautions_stand_below_the_verdict_and_details_are_folded_up(tmp_path):
    floor = {"own": 1e-3, "synced": 1e-3, "tick": 1e-8, "memory_copy_bytes_per_second": 1e9}
    cases = [a_case(b, layout=layout) for layout in ("shared", "own") for b in ("hdf5", "zarr")]
    speed = {name: 10.0 for name, entry in cases if entry["parameters"]["layout"] == "own"}
    run = a_run(tmp_path, cases, speed=speed, floor=floor, remarks=["a remark", "another"])
    summary = readable(run)
    text = section(page_of(run), "verdict")
    assert items(text, "cautions") == cautions(summary) != []
    shown = print_run(summary)
    assert shown.index(cautions(summary)[-1]) < shown.index(verdict_lines(summary)[0])
    shown, _, folded = text.rpartition("<details")
    assert "a remark" not in shown
    assert "floor: " not in shown
    assert {"a remark", "another"} <= set(items(folded, "remarks"))
    assert "<details open" not in text


def test_what_makes_a_run_invalid_is_unfolded(tmp_path):
    run = a_run(tmp_path, USUAL, valid=False, reasons=["one", "two"])
    text = section(page_of(run), "verdict")
    assert "<details open>" in text
    assert items(text, "reasons") == ["one", "two"]


def test_the_picture_of_the_answer_has_the_intervals_of_the_verdict(tmp_path):
    cases = [a_case(b, layout=layout) for layout in ("shared", "own") for b in ("hdf5", "zarr")]
    run = a_run(tmp_path, cases, repetitions=8, experiment={"repetitions": 8, "margin": 0.2})
    told = data_of(page_of(run))["answer"]
    answers = readable(run).answers
    found = {}
    for row in told["numbers"]:
        found[row["total"], row["comparison"], row["format"]] = row
    assert len(found) == sum(1 + len(answer.others) for answer in answers)
    for answer in answers:
        comparison = f"layout {answer.key.group.split('.')[1]}"
        first = found[answer.total, comparison, format_title(answer.name)]
        assert (first["ratio"], first["low"], first["high"]) == (1.0, 1.0, 1.0)
        for other in answer.others:
            row = found[answer.total, comparison, format_title(other.name)]
            assert row["standing"] == other.standing
            ratio = other.ratio
            assert [row[k] for k in ("ratio", "low", "high")] == pytest.approx(
                [ratio.value, ratio.low, ratio.high], rel=1e-4
            )


def test_without_a_comparison_there_is_no_picture_of_an_answer(tmp_path):
    page = page_of(a_run(tmp_path, USUAL[:1]))
    assert data_of(page)["answer"] is None
    assert 'id="answer"' not in page
    assert "No comparison of formats" in section(page, "verdict")


@pytest.mark.parametrize(
    ("status", "valid", "word"),
    [("interrupted", True, "INTERRUPTED"), ("running", None, "NOT FINISHED"),
     ("written", None, "WRITTEN")],
)  # fmt: skip
def test_a_run_that_is_not_at_its_end_says_so(tmp_path, status, valid, word):
    page = page_of(a_run(tmp_path, USUAL, status=status, valid=valid))
    assert f"{word}: " in section(page, "verdict") or f'class="badge">{word}' in page


def test_it_names_no_address(run):
    """Nothing can be fetched: no element has an address on a network, and the policy forbids it."""
    page = page_of(run)
    assert not re.search(r"""(?:src|href|action|poster)\s*=\s*["']?(?:https?:)?//""", page)
    assert "@import" not in page
    policy = unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1])
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy.split("style-src")[0]
    assert len(page) < 6_000_000


@pytest.mark.parametrize("repetitions", [4, 6])
def test_its_numbers_are_those_of_the_summary(tmp_path, repetitions):
    run = a_run(tmp_path / "run", USUAL, repetitions=repetitions)
    data = data_of(page_of(run))
    write_summary(readable(run), run)
    with (run / "summary.csv").open(newline="") as file:
        rows = {(row["case"], row["phase"]): row for row in csv.DictReader(file)}
    seen = 0
    for case in data["groups"][0]["cases"]:
        for phase, told in case["phases"].items():
            row = rows[case["case"], phase]
            assert math.isnan(float(row["low_s"])) == (repetitions < 5)
            for name in ("median_s", "low_s", "high_s", "cpu_s"):
                number = math.nan if told[name] is None else told[name]
                assert number == pytest.approx(float(row[name]), rel=1e-4, nan_ok=True)
            assert told["warning_codes"] == row["warning_codes"]
            seen += 1
    assert seen == len(rows)


def test_cases_that_compress_have_their_bytes_in_the_files(tmp_path):
    run = a_codecs_run(tmp_path / "run", uncounted=[("image", "zarr", "gzip")])
    image, _ = data_of(page_of(run))["groups"]
    told = {(c["backend"], c["variant"]): c for c in image["cases"]}
    assert len(told) == 6
    for (source, backend, codec), (ratio, *_) in WAYS.items():
        if source == "image":
            case = told[backend, f"codec={codec}"]
            counted = (backend, codec) != ("zarr", "gzip")
            assert case["compression_ratio"] == (pytest.approx(ratio) if counted else None)
            assert case["stored_bytes"] == (
                pytest.approx(BYTES / ratio, rel=1e-4) if counted else None
            )


def rows_of(page):
    """Return the rows of the first table of numbers, as lists of texts."""
    table = re.search(r'<table class="numbers">(.*?)</table>', page, re.DOTALL)[1]
    rows = re.findall("<tr.*?>(.*?)</tr>", table, re.DOTALL)
    cells = [re.findall(r"<t[dh].*?>(.*?)</t[dh]>", row, re.DOTALL) for row in rows]
    return [[" ".join(re.sub("<.*?>", " ", cell).split()) for cell in row] for row in cells]


def test_the_table_has_repetitions_and_processor_time(tmp_path):
    run = a_run(tmp_path / "run", USUAL, repetitions=6)
    page = page_of(run)
    first, second, *rows = rows_of(page)
    assert first[3] == "n"
    assert second.count("cpu ms") == 2
    by_transfer = {tuple(row[:3]): row for row in rows}
    case = next(c for c in readable(run).cases if c.sample.transfer == "collective")
    row = by_transfer["hdf5", "matched", "collective"]
    total = case.phases["write_total"]
    assert row[3] == "6"
    assert row[4 + second.index("cpu ms")] == f"{1e3 * total.cpu_seconds:.3g}"
    low, high = (f"{1e3 * s:.3g}" for s in (total.seconds.low, total.seconds.high))
    assert f"{low}–{high}" in row[4 + second.index("write ms")]


def test_of_few_repetitions_the_range_stands_in_brackets(run):
    _, second, *rows = rows_of(page_of(run))
    seconds = readable(run).cases[0].phases["write_total"].seconds
    told = f"({1e3 * seconds.minimum:.3g}–{1e3 * seconds.maximum:.3g})"
    assert any(told in row[4 + second.index("write ms")] for row in rows)


def test_processor_time_that_nobody_recorded_has_no_column(run):
    text = (run / "samples.csv").read_text()
    header, *lines = text.splitlines()
    place = header.split(",").index("cpu_seconds")
    lines = [",".join([*(c := line.split(","))[:place], "nan", *c[place + 1 :]]) for line in lines]
    (run / "samples.csv").write_text("\n".join([header, *lines]) + "\n")
    assert not any("cpu ms" in row for row in rows_of(page_of(run)))


def test_invalid_cases_stand_in_the_table_with_the_reason_and_nowhere_else(run):
    data = json.loads((run / "run.json").read_text())
    name = USUAL[2][0]
    data["cases"][name]["invalid"] = "rank 1 read <7>"
    change_record(run, cases=data["cases"], valid=False, reasons=["rank 1 read <7>"])
    page = page_of(run)
    (row,) = (row for row in rows_of(page) if row[0] == "zarr")
    assert row[:4] == ["zarr", "matched", "independent", "4"]
    assert row[4:] == ["INVALID , takes part in nothing: rank 1 read &lt;7&gt;"]
    (group,) = data_of(page)["groups"]
    assert name not in {case["case"] for case in group["cases"]}
    assert group["invalid"] == ["zarr matched independent"]
    # Nothing is left that the other format could be compared with, and the page says so.
    assert data_of(page)["answer"] is None
    assert any("Nothing is compared: Zarr takes no part" in line for line in verdict_on(page))


def test_hostile_text_is_escaped_everywhere(tmp_path):
    run = a_run(tmp_path, USUAL, question=EVIL, reasons=[EVIL], provenance={EVIL: EVIL})
    summary = readable(run)
    summary.record.name = EVIL  # which no record that is read can have
    page = render(summary, run, {group: {} for group in summary.groups})
    assert EVIL not in page
    assert "<script>alert" not in page
    assert page.count("<script") == page.count("</script>") == 3


def test_warnings_stand_beside_their_numbers(tmp_path):
    floor = {"own": 1e-3, "synced": 1e-3, "tick": 1e-8, "memory_copy_bytes_per_second": 1e9}
    page = page_of(a_run(tmp_path, USUAL, floor=floor))
    table = page[page.index("<tbody>") : page.index("</tbody>")]
    assert re.search(r'<abbr title="[^"]*under 100 times the floor">r</abbr>', table)


def test_a_number_has_the_mark_of_its_gravest_warning_that_tells_all():
    assert mark_of([Caveat("outliers", "far"), Caveat("below_resolution", "short")]) == Mark(
        "r", "far; short"
    )
    assert mark_of([]) is None


def test_ranks_are_told_one_by_one(run):
    case = data_of(page_of(run))["groups"][0]["cases"][0]
    write = case["ranks"]["phases"]["write"]
    assert case["ranks"]["hosts"] == ["a", "b"]
    assert write["median"][0] == pytest.approx(2 * write["median"][1])
    assert write["median"][0] == pytest.approx(case["phases"]["write"]["median_s"], rel=1e-3)
    assert write["quantiles"][0] == pytest.approx(write["median"][1])


def test_many_ranks_are_put_together(tmp_path):
    own = [[[0.001 * (1 + rank) for rank in range(1000)]]]
    with h5py.File(tmp_path / "ranks.h5", "w") as file:
        file["host"] = ["node"] * 1000
        group = file.create_group("case")
        group.attrs["phases"] = ["write"]
        group["own"] = own
        group["repetition"] = [1]
    found = read_ranks(tmp_path, {"case": frozenset({1})}).of("case")
    assert len(found["first"]) == MOST_RANKS
    assert found["phases"]["write"]["low"][0] == 0.001
    assert found["phases"]["write"]["high"][-1] == 1.0


def test_of_many_repetitions_some_are_held_with_the_extremes(tmp_path, monkeypatch):
    monkeypatch.setattr(numbers, "MOST_POINTS", 13 * 12)
    data = data_of(page_of(a_run(tmp_path, USUAL[:1], repetitions=40)))
    assert data["mostPoints"] == 12
    for phase in data["groups"][0]["cases"][0]["phases"].values():
        assert phase["repetitions"] == 40
        assert 10 <= len(phase["seconds"]) == len(phase["blocks"]) <= 12
        assert (min(phase["seconds"]), max(phase["seconds"])) == (phase["min_s"], phase["max_s"])


# What is missing is said, and the rest is shown


def test_without_times_of_ranks(run):
    (run / "ranks.h5").unlink()
    page = page_of(run)
    assert "ranks.h5 is missing" in page
    data = data_of(page)
    assert data["noRanks"]
    assert data["groups"][0]["cases"][0]["phases"]["write"]["slowest_host"] == "a"


def test_with_broken_times_of_ranks(run):
    (run / "ranks.h5").write_bytes(b"no HDF5")
    assert "ranks.h5 cannot be read" in page_of(run)


def test_a_killed_run_is_reported_as_far_as_it_went(run):
    path = run / "samples.csv"
    text = path.read_text()
    path.write_text(text[: text.rindex(",write,") + 3])
    page = page_of(run)
    assert "ends in the midst of a line" in page
    assert "1 repetition was cut short" in page
    last = data_of(page)["groups"][0]["cases"][-1]
    assert last["phases"]["create"]["repetitions"] == 3  # of four that count


def test_cases_without_a_number_are_named(run):
    data = json.loads((run / "run.json").read_text())
    name, entry = a_case("netcdf4")
    data["cases"][name] = entry
    (run / "run.json").write_text(json.dumps(data))
    assert f"1 of 5 cases gave no number: {name}" in page_of(run)


def test_a_page_in_the_way(run):
    (run / "report.html").mkdir()
    with pytest.raises(UserError, match=r"report\.html cannot be written"):
        list(report([run]))


def test_every_phase_can_be_chosen(run):
    assert set(data_of(page_of(run))["phases"]) == {*PHASES, "write_total", "read_total"}
    assert readable(run).gaps == ()
