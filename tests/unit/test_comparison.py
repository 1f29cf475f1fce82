"""Each fact on other benchmarks has its source, in `docs/comparison.md` and in the paper."""

from __future__ import annotations

import re

import pytest

from launch import REPOSITORY

DOCS = REPOSITORY / "docs"
TEXT = (DOCS / "comparison.md").read_text(encoding="utf-8")
PAPER = (REPOSITORY / "paper" / "paper.md").read_text(encoding="utf-8")
BIBLIOGRAPHY = (REPOSITORY / "paper" / "paper.bib").read_text(encoding="utf-8")
SOURCES = dict(re.findall(r"^\[([\w-]+)\]: (\S+)$", TEXT, re.MULTILINE))
CITED = set(re.findall(r"@([\w-]+)", PAPER.split("---", 2)[2]))
SHOWN = re.compile(r"<!-- run .*? -->.*?<!-- end -->", re.DOTALL)


def rows(text):
    """Yield the cells of each row of the tables, without their heads."""
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        for line in table.splitlines()[2:]:
            yield [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.parametrize("row", list(rows(TEXT)), ids=lambda row: row[0].replace(" ", "-"))
def test_each_cell_links_to_its_source(row):
    *others, ours = row[1:]
    assert len(others) == 6
    for cell in others:
        found = re.fullmatch(r"\[[^]]+\]\[([\w-]+)\]", cell)
        assert found, cell
        assert found[1] in SOURCES, cell
    page = re.fullmatch(r"\[.+\]\(([\w./-]+\.md)(#[\w-]+)?\)", ours)
    assert page, ours
    # `index.md` and the pages of the reference are made when the site is built, which checks all.
    assert page[1].startswith(("reference/", "index")) or (DOCS / page[1]).is_file()


def test_each_source_is_a_file_in_a_commit_and_is_used():
    for name, url in SOURCES.items():
        assert re.fullmatch(
            r"https://github\.com/[\w-]+/[\w-]+/blob/[0-9a-f]{40}/[\w./-]+(#L\d+)?", url
        ), url
        assert f"[{name}]" in TEXT.replace(f"[{name}]: ", ""), name


def test_the_bibliography_has_what_the_paper_cites_and_nothing_else():
    entries = re.findall(r"^@\w+\{([\w-]+),$", BIBLIOGRAPHY, re.MULTILINE)
    assert len(entries) == len(set(entries))
    assert set(entries) == CITED
    for entry in re.split(r"^(?=@)", BIBLIOGRAPHY, flags=re.MULTILINE)[1:]:
        assert re.search(r"^  (doi|url) += \{\S+\}", entry, re.MULTILINE), entry
        assert {"title", "author", "year"} <= set(re.findall(r"^  (\w+)", entry, re.MULTILINE))


def test_each_row_of_the_papers_table_cites():
    found = list(rows(PAPER))
    assert len(found) > 5
    for row in found:
        assert "@" in row[-1] or "this work" in row[-1], row


def test_the_paper_is_in_the_form_of_the_journal():
    head, text = PAPER.split("---", 2)[1:]
    for key in ("title", "tags", "authors", "affiliations", "date", "bibliography"):
        assert re.search(rf"^{key}:", head, re.MULTILINE)
    headings = re.findall(r"^# (.+)$", text, re.MULTILINE)
    assert headings[:3] == ["Summary", "Statement of need", "State of the field"]
    assert headings[-1] == "References"
    assert 750 <= len(SHOWN.sub("", text).split()) <= 1750


def test_numbers_of_our_own_come_from_a_kept_run():
    """What the paper shows of a run is made of it (test_shipped_results.py); the rest has none."""
    assert SHOWN.search(PAPER)
    text = SHOWN.sub("", PAPER)
    assert not re.findall(r"\d\s*(?:%|times|[GM]i?B/s|ms\b|µs)", text)
