"""`docs/results.md` tells of every column of every table that a run and its report leave."""

from __future__ import annotations

import csv
import re

from drawn_codecs import a_codecs_run
from drawn_runs import a_case, a_run
from launch import REPOSITORY
from pffbench.record.counters import COLUMNS as COUNTERS
from pffbench.record.samples import COLUMNS as SAMPLES
from pffbench_analysis.page.tables import MARKS
from pffbench_analysis.pareto.command import write_pareto
from pffbench_analysis.published.writing import write_published
from pffbench_analysis.report import readable, report

DOCUMENT = (REPOSITORY / "docs" / "results.md").read_text(encoding="utf-8")


def section(heading):
    return re.split(r"^## ", DOCUMENT.split(f"\n## {heading}\n")[1], flags=re.MULTILINE)[0]


def first_cells(heading, title):
    """Return the first cells of the table of a section that begins with a title."""
    table = section(heading).split(f"\n| {title}")[1].split("\n\n")[0]
    return [line.split("|")[1] for line in table.splitlines()[2:]]


def documented(heading, title="column", known=()):
    """Return the names in these cells; ``a`` to ``b`` are all that the file has between."""
    found = []
    for cell in first_cells(heading, title):
        names = re.findall(r"`([^`]+)`", cell)
        if " to " in cell:
            names = known[known.index(names[0]) : known.index(names[1]) + 1]
        found += names
    return found


def columns_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return next(csv.reader(file))


def test_samples():
    assert documented("`samples.csv`") == list(SAMPLES)


def test_summary(tmp_path):
    run = a_run(tmp_path / "run", [a_case("hdf5"), a_case("zarr")])
    list(report([run]))
    columns = columns_of(run / "summary.csv")
    assert documented("`summary.csv`", known=columns) == columns


def test_the_codes_of_warnings():
    assert documented("`summary.csv`", "code ") == list(MARKS)
    for code, (letter, _) in MARKS.items():
        assert f"| `{code}` | {letter} |" in section("`summary.csv`")


def test_counters():
    assert [name for name in COUNTERS if f"`{name}`" not in section("`counters.csv`")] == []


def test_pareto(tmp_path):
    run = a_codecs_run(tmp_path / "run")
    (run / "plots").mkdir()
    list(write_pareto(readable(run), run))
    columns = columns_of(run / "pareto.csv")
    # `stored_rate_mib_s` and its bounds: these have no names there.
    bounds = ["stored_rate_low_mib_s", "stored_rate_high_mib_s"]
    told = section("Compression against speed")
    assert [name for name in columns if f"`{name}`" not in told] == bounds


def test_published(tmp_path):
    parameters = {"datasets": 2048, "shape": [128], "layout": "file_per_process"}
    case = a_case("hdf5", workload="datasets", **parameters)
    run = a_run(tmp_path / "run", [case], experiment={"study": "file-format-testing"})
    list(write_published(readable(run), run))
    columns = columns_of(run / "published.csv")
    assert documented("Published numbers", "column of", known=columns) == columns
