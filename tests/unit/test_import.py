"""`pffbench import`: real output of IOR and h5bench becomes a run that says what it is.

The files in `peers/` were written by IOR 4.1.0+dev and by h5bench 1.5 on two ranks; names of the
machine and its directories were taken out, and the JSON laid out anew.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from launch import entries_below, pffbench_cli
from pffbench.errors import UserError
from pffbench.summary.summary import summarise

pytest.importorskip("pandas")

from pffbench_analysis.peers import import_results
from pffbench_analysis.runs import Run

PEERS = Path(__file__).parent / "peers"
IOR = [PEERS / f"ior-{name}.json" for name in ("posix", "mpiio-collective", "hdf5")]


@pytest.fixture
def ior(tmp_path):
    done = pffbench_cli("import", "--from", "ior", *IOR, "--out", tmp_path / "ior")
    assert done.status == 0, done.said
    assert done.stdout.strip() == str(tmp_path / "ior")
    return tmp_path / "ior"


def ior_value(name, access, key):
    (test,) = json.loads((PEERS / f"ior-{name}.json").read_text())["tests"]
    return [row[key] for row in test["Results"] if row["access"] == access]


def test_the_numbers_are_those_of_ior(ior):
    cases = {case.sample.backend: case for case in summarise(ior).cases}
    assert list(cases) == ["ior-posix", "ior-mpiio", "ior-hdf5"]
    files = dict(zip(cases, ("posix", "mpiio-collective", "hdf5"), strict=True))
    for backend, case in cases.items():
        assert case.nbytes == 16 * 2**20
        for phase, access, key in (
            ("create", "write", "openTime"), ("write", "write", "wrRdTime"),
            ("close", "write", "closeTime"), ("open", "read", "openTime"),
            ("read", "read", "wrRdTime"), ("close_read", "read", "closeTime"),
        ):  # fmt: skip
            seconds = list(case.phases[phase].by_block.values())
            assert seconds == ior_value(files[backend], access, key)
        # Where phases do not overlap (-g), sums are IOR's totals, to its rounding.
        sums = list(case.phases["write_total"].by_block.values())
        assert sums == pytest.approx(ior_value(files[backend], "write", "totalTime"), abs=3e-4)
        rate = np.median(ior_value(files[backend], "write", "bwMiB"))
        assert case.phases["write_total"].rate / 2**20 == pytest.approx(rate, rel=0.03)


def test_words_of_ior_become_ours(ior):
    record = Run.load(ior).record
    told = {e["parameters"]["backend"]: e for e in record.cases.values()}
    assert [told[b]["raw"] for b in ("ior-posix", "ior-mpiio", "ior-hdf5")] == [True, True, False]
    assert told["ior-mpiio"]["parameters"]["transfer"] == "collective"
    assert told["ior-posix"]["parameters"]["durability"] == "fsync"
    assert told["ior-hdf5"]["parameters"]["durability"] == "flush"
    assert {e["parameters"]["cache"] for e in told.values()} == {"shifted"}
    assert len({e["group"] for e in told.values()}) == 1


def test_nothing_is_made_up(ior):
    summary = summarise(ior)
    assert summary.record.valid is None
    assert summary.record.imported == "IOR 4.1.0+dev"
    assert any("imported from IOR 4.1.0+dev" in remark for remark in summary.record.remarks)
    samples = Run.load(ior).samples
    assert samples[["own_median", "own_min", "synced_max", "resident"]].isna().all(axis=None)
    assert set(samples.loc[samples.phase == "read", "cache"]) == {"unproved"}
    assert all(phase.ranks is None for case in summary.cases for phase in case.phases.values())
    assert "IMPORTED: measured by IOR 4.1.0+dev; pffbench has verified nothing" in (
        (ior / "summary.md").read_text()
    )
    assert (ior / "fom.txt").read_text().startswith("FOM valid=0 bool\n")
    # Times in steps of 0.1 ms tell nothing of phases under 10 ms.
    codes = {w.code for w in summary.cases[0].phases["create"].warnings}
    assert codes == {"below_resolution"}


def test_imported_runs_are_reported_and_nothing_is_recommended_of_them(ior):
    from pffbench_analysis.report import report

    made = {path.name for path in report([ior])}
    assert {"report.html", "ior-shared-totals.svg", "ior-shared-data.png"} <= made
    assert "INVALID" not in (ior / "plots" / "ior-shared-data.svg").read_text()
    page = (ior / "report.html").read_text()
    assert "IMPORTED" in page
    assert "NOT FINISHED" not in page
    done = pffbench_cli("recommend", ior)
    assert done.status == 2
    assert "no verdict was given" in done.stderr


def test_writing_of_two_imported_runs_is_compared_and_reading_is_not(tmp_path):
    for name, factor in (("base", 1.0), ("new", 1.3)):
        told = json.loads((PEERS / "ior-posix.json").read_text())
        (test,) = told["tests"]
        # Eight repetitions that take longer than the steps in which IOR prints times.
        test["Results"] = [
            row | {"wrRdTime": factor * (1 + n / 250) / 10}
            for n in range(8)
            for row in test["Results"][:2]
        ]
        (tmp_path / f"{name}.json").write_text(json.dumps(told))
        import_results("ior", [tmp_path / f"{name}.json"], tmp_path / name)
    done = pffbench_cli("compare", "base", "new", "--fail-if-slower", "5%", cwd=tmp_path)
    assert done.status == 1, done.said
    assert "ior-posix: write_total takes 1.30 times as long" in " ".join(done.stdout.split())
    assert "page cache not proved" in done.stdout
    assert "measured by IOR 4.1.0+dev, verified by nobody" in done.stdout


def test_a_file_for_each_process_that_was_only_written(tmp_path):
    out = import_results("ior", [PEERS / "ior-kept.json"], tmp_path / "kept")
    (case,) = summarise(out).cases
    assert case.sample.layout == "file_per_process"
    assert case.sample.arrays == 2
    assert list(case.phases) == ["create", "write", "close", "write_total"]
    assert case.phases["write"].operations_rate == pytest.approx(
        8 / case.phases["write"].seconds.median
    )


def test_h5bench_that_wrote_and_read_becomes_one_case(tmp_path):
    files = sorted(PEERS.glob("h5bench-*.csv"))
    out = tmp_path / "h5bench"
    done = pffbench_cli("import", "--from", "h5bench", *files, "--out", out)
    assert done.status == 0, done.said
    (case,) = summarise(out).cases
    assert case.sample.backend == "h5bench-hdf5"
    assert case.sample.transfer == "collective"
    assert case.nbytes == 80 * 2**20
    told = {name: [] for name in ("write", "read")}
    for file in files:
        rows = dict(line.split(", ")[:2] for line in file.read_text().splitlines())
        told[rows["operation"]].append((float(rows["raw time"]), float(rows["observed time"])))
    for phase, pairs in told.items():
        assert list(case.phases[phase].by_block.values()) == [raw for raw, _ in pairs]
        total = list(case.phases[f"{phase}_total"].by_block.values())
        assert total == pytest.approx([observed for _, observed in pairs])
    assert "2 ranks, date unknown" in (out / "summary.md").read_text()


def import_changed(tmp_path, change, name="posix"):
    data = json.loads((PEERS / f"ior-{name}.json").read_text())
    change(data)
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(data))
    return path


@pytest.mark.parametrize(
    ("program", "content", "reason"),
    [
        ("ior", "{", "is not JSON as IOR 4 writes it"),
        ("ior", "[]", "holds no tests of IOR"),
        ("ior", '{"tests": []}', "holds no tests of IOR"),
        ("ior", '{"tests": [{}]}', "has no 'Parameters'"),
        ("ior", None, "cannot be read"),
        ("h5bench", "a, b, c\n", "no line 'metric, value, unit'"),
        ("h5bench", "metric, value, unit\noperation, append, \n", "neither write nor read"),
        ("h5bench", "metric, value, unit\noperation, read, \n", "has no row 'ranks'"),
        ("h5bench", None, "cannot be read"),
    ],
)
def test_other_files_are_refused_in_one_sentence(tmp_path, program, content, reason):
    path = tmp_path / "file"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UserError, match=reason) as error:
        import_results(program, [path], tmp_path / "out")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out").exists()


def test_units_that_h5bench_does_not_write_are_refused(tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text((PEERS / "h5bench-read-1.csv").read_text().replace(", MB\n", ", MiB\n"))
    with pytest.raises(UserError, match="unit 'MiB' of the total size"):
        import_results("h5bench", [path], tmp_path / "out")


def test_what_cannot_be_told_in_phases_is_refused(tmp_path):
    with pytest.raises(UserError, match="ended by time"):
        import_results("ior", [PEERS / "ior-stonewall.json"], tmp_path / "out")

    def larger(data):
        data["tests"][0]["Options"]["tasks"] = 4

    with pytest.raises(UserError, match="different size"):
        import_results("ior", [IOR[0], import_changed(tmp_path, larger)], tmp_path / "out")
    with pytest.raises(UserError, match="named twice"):
        import_results("ior", [IOR[0], IOR[0]], tmp_path / "out")
    assert entries_below(tmp_path) == [str(tmp_path / "changed.json")]


def test_phases_that_overlap_are_remarked_on(tmp_path):
    def overlap(data):
        for row in data["tests"][0]["Results"]:
            row["openTime"] = row["totalTime"]

    out = import_results("ior", [import_changed(tmp_path, overlap)], tmp_path / "out")
    assert any("run IOR with -g" in remark for remark in Run.load(out).record.remarks)


def test_a_directory_with_a_run_is_not_overwritten(tmp_path):
    import_results("ior", IOR[:1], tmp_path / "out")
    before = (tmp_path / "out" / "samples.csv").read_text()
    with pytest.raises(UserError, match="there is a run already"):
        import_results("ior", IOR[1:], tmp_path / "out")
    assert (tmp_path / "out" / "samples.csv").read_text() == before
