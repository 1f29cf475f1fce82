"""The documents tell of every column of the tables that a run and its report leave."""

from __future__ import annotations

import inspect
import re
import sys

from launch import REPOSITORY
from pffbench.docstrings import field_descriptions
from pffbench.record.counters import COLUMNS as COUNTERS
from pffbench.record.counters import Counted
from pffbench.record.run_json import RunRecord
from pffbench.record.samples import COLUMNS as SAMPLES
from pffbench.record.samples import Sample
from pffbench.summary import columns
from pffbench.summary.quantities import CASE_QUANTITIES, PHASE_QUANTITIES
from pffbench.summary.summary import AMPLIFICATIONS
from pffbench.workloads.registry import workload, workload_names
from pffbench_analysis.page.tables import MARKS

sys.path.insert(0, str(REPOSITORY / "docs" / "tools"))

from reference import heading_of, pages


def document(name):
    return (REPOSITORY / "docs" / name).read_text(encoding="utf-8")


def first_cells(name, title):
    """Return the first cells of the table of a document that begins with a title."""
    table = document(name).split(f"\n| {title}")[1].split("\n\n")[0]
    return [line.split("|")[1] for line in table.splitlines()[2:]]


def names(cells):
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def test_every_column_of_the_samples_is_explained():
    assert list(field_descriptions(Sample)) == list(SAMPLES)


def test_every_column_of_the_counters_is_explained():
    assert list(field_descriptions(Counted)) == list(COUNTERS)


def test_every_column_of_the_summary_is_explained_in_a_sentence():
    quantities = (*CASE_QUANTITIES, *PHASE_QUANTITIES)
    unexplained = [q.name for q in quantities if not q.meaning.endswith(".")]
    assert unexplained == []


def test_every_key_of_the_record_is_in_the_reference():
    assert set(field_descriptions(RunRecord)) == set(RunRecord.__struct_fields__)
    (page,) = (text for name, text in pages() if name == "reference/columns.md")
    for key in RunRecord.__struct_fields__:
        assert f"| `{key}` | " in page.partition("## `run.json`")[2]


def headings_of_workloads():
    return {heading_of(c) for name in workload_names() for c in workload(name).columns}


def test_every_column_of_the_tables_is_explained():
    source = inspect.getsource(columns)
    headings = {*re.findall(r'Column\(\s*"([^"]+)"', source), *AMPLIFICATIONS}
    assert {"backend", "n", "ratio"} <= headings
    assert headings - set(names(first_cells("results.md", "column | meaning"))) == set()


def test_the_reference_explains_each_quantity_and_what_workloads_bring():
    (page,) = (text for name, text in pages() if name == "reference/columns.md")
    for quantity in (*CASE_QUANTITIES, *PHASE_QUANTITIES):
        table = quantity.table
        heading = f"`{table.heading.format(part='write', unit='ms')}`" if table else ""
        assert f"| `{quantity.name}` | {heading} | " in page
    assert {"grew MiB", "define µs", "open ms"} <= headings_of_workloads()
    for heading in headings_of_workloads():
        assert f"| `{heading}` | " in page


def test_the_document_explains_no_column_that_is_gone():
    source = inspect.getsource(columns)
    movers = {f"{part} {what}" for part in ("write", "read") for what in ("calls", "ms")}
    known = movers | {"update ms", "repack ms", *AMPLIFICATIONS} | headings_of_workloads()
    known |= {*re.findall(r'Column\(\s*"([^"]+)"', source)}
    known |= {q.table.heading.format(part="write", unit="ms") for q in PHASE_QUANTITIES if q.table}
    assert set(names(first_cells("results.md", "column | meaning"))) - known == set()


def test_the_codes_of_warnings():
    assert names(first_cells("results.md", "code ")) == list(MARKS)
    for code, (letter, _) in MARKS.items():
        assert f"| `{code}` | {letter} |" in document("results.md")
