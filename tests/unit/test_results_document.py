"""The reference explains every column of the tables that a run and its report leave."""

from __future__ import annotations

import sys

import pytest

from launch import REPOSITORY
from pffbench.descriptions import field_descriptions
from pffbench.record.repetitions import (
    Counted,
    MachineState,
    PhaseTimes,
    ReadState,
    Repetition,
)
from pffbench.record.run_json import CaseEntry, RunRecord
from pffbench.results.quantities import CASE_QUANTITIES, PHASE_QUANTITIES
from pffbench.storage.durability import DiskUsage
from pffbench.workloads.registry import workload, workload_names

sys.path.insert(0, str(REPOSITORY / "docs" / "tools"))

from reference import heading_of, pages


@pytest.mark.parametrize(
    "record", [Repetition, PhaseTimes, MachineState, ReadState, Counted, DiskUsage, CaseEntry]
)
def test_every_key_of_a_repetition_is_in_the_reference(record):
    (page,) = (text for name, text in pages() if name == "reference/columns.md")
    for key in record.__struct_fields__:
        assert f"| `{key}` | " in page


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


def test_the_reference_explains_each_quantity_and_what_workloads_bring():
    (page,) = (text for name, text in pages() if name == "reference/columns.md")
    for quantity in (*CASE_QUANTITIES, *PHASE_QUANTITIES):
        table = quantity.table
        heading = f"`{table.heading.format(part='write', unit='ms')}`" if table else ""
        assert f"| `{quantity.name}` | {heading} | " in page
    assert {"grew MiB", "define µs", "open ms"} <= headings_of_workloads()
    for heading in headings_of_workloads():
        assert f"| `{heading}` | " in page
