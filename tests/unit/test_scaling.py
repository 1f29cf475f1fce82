"""`pffbench scaling`: what was planted is found, and runs that do not fit are refused."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import numpy as np
import pytest
from msgspec.structs import replace

from drawn_runs import a_case, edit
from pffbench.cli import main
from pffbench.errors import UserError
from pffbench.record.repetitions import MachineState
from pffbench.record.run_json import FloorEntry
from pffbench.results.cells import starts_of
from pffbench_analysis.scaling import load_series
from pffbench_analysis.scaling.export import FILES, scaling
from pffbench_analysis.scaling.tables import figure, sentences, tables
from timed_runs import Maker

pytestmark = pytest.mark.long

MIB = 2**20
PROVENANCE = {
    "software": {"libraries": {"h5py": {"version": "3.16.0", "imported": True, "hdf5": "1.14.6"}}},
    "filesystem": {"type": "lustre", "device": "a@tcp:/scratch", "mount_point": "/scratch"},
    "hosts": [{"host": "n1", "cpu_model": "some", "kernel": "6.1"}],
}
#: Seconds that the phases of writing of `Maker` take.
WRITE = 0.26


def usl(n, sigma=0.05, kappa=0.002):
    """The speed-up of n ranks."""
    return n / (1 + sigma * (n - 1) + kappa * n * (n - 1))


def a_run(
    parent, ranks, *, rates=usl, called="", nodes=None, kind="weak", seed=0, noise=0.02,
    cases=("hdf5",), parameters=None, **record,
):  # fmt: skip
    """Write a run whose totals have the rates that a function gives, with noise."""
    (parent / "made").mkdir(parents=True, exist_ok=True)
    entries = {}
    for backend in cases:
        case, entry = a_case(backend, durability="close", **(parameters or {}))
        nbytes = 8 * MIB * (ranks if kind == "weak" else 1)
        entries[case] = replace(entry, cost=replace(entry.cost, nbytes=nbytes))
    given = {"experiment": {"name": "some", "seed": 1}, "provenance": PROVENANCE} | record
    factor = (ranks if kind == "weak" else 1) / rates(ranks)
    made = Maker(parent / "made")(
        seed=[seed, ranks], factor=factor, noise=noise, cases=entries, ranks=ranks,
        nodes=nodes or ranks, **given,
    )  # fmt: skip
    return made.rename(parent / (called or f"run-{ranks}"))


def a_series(parent, sizes=(1, 2, 4, 8), **how):
    return [a_run(parent, ranks, **how) for ranks in sizes]


def curve_of(series, total="write"):
    (found,) = (c for c in series.curves if c.points[0].cell.keys["total"] == total)
    return found


# ---- series


@pytest.mark.parametrize("kind", ["weak", "strong"])
def test_kind_rates_and_efficiency_come_from_the_data(tmp_path, kind):
    series = load_series(reversed(a_series(tmp_path, kind=kind, noise=0.0)))
    assert (series.kinds, series.over, series.sizes) == ([kind], "nodes", [1, 2, 4, 8])
    curve = curve_of(series)
    for point in curve.points:
        assert point.rate == pytest.approx(8 * MIB / WRITE * usl(point.size))
        assert len(point.cell.seconds) == 10  # the warm-up is left out
        assert point.imbalance == pytest.approx(1)
        assert curve.speedup(point) == pytest.approx(usl(point.size))
    for point in curve.points[1:]:
        assert point.efficiency.value == pytest.approx(usl(point.size) / point.size)
    assert curve.points[0].efficiency is None


def test_intervals_of_efficiency_hold_the_truth_and_three_starts_decide(tmp_path):
    generator, wide = np.random.default_rng(3), []
    for count in (1, 3):
        runs = []
        for ranks in (1, 4):
            for start in range(count):
                speed = float(np.exp(0.04 * generator.normal()))
                where = tmp_path / f"{count}-{start}"
                runs.append(
                    a_run(where, ranks, seed=start, rates=lambda n, v=speed: v * n / 1.5 ** (n > 1))
                )
        point = curve_of(load_series(runs)).points[-1]
        found = point.efficiency
        assert found.low <= 1 / 1.5 <= found.high
        assert starts_of([point.cell]) == count
        wide.append(found.high / found.low)
    assert point.verdict.word == "slower"
    assert wide[1] < wide[0]


def test_ranks_or_nodes(tmp_path):
    runs = [a_run(tmp_path, ranks, nodes=ranks // 2) for ranks in (2, 4, 8)]
    assert load_series(runs).sizes == [1, 2, 4]
    assert load_series(runs, "ranks").sizes == [2, 4, 8]
    one_node = [a_run(tmp_path / "b", ranks, nodes=1) for ranks in (2, 4)]
    assert load_series(one_node).over == "ranks"
    with pytest.raises(UserError, match="would be one point"):
        load_series(one_node, "nodes")
    uneven = [*runs, a_run(tmp_path / "c", 24, nodes=6)]
    assert load_series(uneven).over == "ranks"
    with pytest.raises(UserError, match="same number of ranks on each node"):
        load_series(uneven, "nodes")


def provenance_with(**areas):
    return PROVENANCE | areas


OTHERS = {
    "hdf5: 1.14.6 / 1.10.8": provenance_with(software={"libraries": {
        "h5py": {"version": "3.16.0", "imported": True, "hdf5": "1.10.8"}}}),
    "filesystem.type: lustre / xfs": provenance_with(filesystem={"type": "xfs"}),
    "slurm.cluster_name: – / other": provenance_with(slurm={"cluster_name": "other"}),
}  # fmt: skip


@pytest.mark.parametrize("told", OTHERS)
def test_runs_of_other_software_or_places_are_refused(tmp_path, told):
    runs = [*a_series(tmp_path, (1, 2)), a_run(tmp_path, 4, provenance=OTHERS[told])]
    with pytest.raises(UserError) as caught:
        scaling(runs)
    assert told in str(caught.value)
    assert "run-4" in str(caught.value)
    assert not (tmp_path / "scaling").exists()


def test_other_experiments_and_other_work_are_refused(tmp_path):
    first = a_run(tmp_path, 1, kind="strong")
    other = a_run(tmp_path, 2, kind="strong", experiment={"name": "else", "seed": 1})
    with pytest.raises(UserError, match=r"experiment\.name: some / else"):
        load_series([first, other])
    larger = a_run(tmp_path, 4, kind="strong", parameters={"shape": [128]})
    with pytest.raises(UserError, match="shape: – / 128"):
        load_series([first, larger])
    traced = a_run(tmp_path, 8, experiment={"name": "some", "seed": 1, "counters": "calls"})
    with pytest.raises(UserError, match="system calls were counted"):
        load_series([first, traced])


def test_harmless_differences_and_cases_left_out_are_named(tmp_path):
    hosts = [{"host": "n9", "cpu_model": "some", "kernel": "6.2"}]
    runs = [
        *a_series(tmp_path, (1, 2)),
        a_run(tmp_path, 4, provenance=provenance_with(hosts=hosts)),
    ]
    (note,) = load_series(runs).notes
    assert "hosts.kernel: 6.1 at first, then 6.2 (run-4)" in note
    file = runs[-1] / "run.json"
    record = json.loads(file.read_text())
    next(iter(record["cases"].values()))["invalid"] = "wrong data"
    file.write_text(json.dumps(record))
    notes = load_series(runs).notes
    assert any("of run-4: wrong data" in note for note in notes)
    assert any("has no result at 4 nodes" in note for note in notes)


# ---- cautions


def test_bad_runs_are_alarms(tmp_path):
    bad = a_run(tmp_path, 4, valid=False, reasons=["rotten"])
    series = load_series([*a_series(tmp_path, (1, 2)), bad])
    assert series.alarms == ("INVALID: run-4: rotten",)
    assert "INVALID: run-4: rotten" in figure(series).svg()


def test_a_busy_machine_shared_cores_and_one_node_are_alarms(tmp_path):
    runs = [a_run(tmp_path, n, nodes=1, rates=lambda n: 0.1 * n, clock="synced") for n in (1, 2)]
    edit(runs[1], lambda one: replace(one, machine=MachineState(busy_others=0.5)))
    busy, cores, node = load_series(runs).alarms
    assert busy.startswith("run-2: BUSY: others used 50% of the processors")
    assert cores.startswith("more ranks than cores: run-1, run-2; ")
    assert node.startswith("one node: ")
    assert load_series(a_series(tmp_path / "good")).alarms == ()


def test_a_run_without_results_does_not_hide_the_others(tmp_path):
    runs = a_series(tmp_path, (1, 2, 4))
    (runs[2] / "repetitions.jsonl").write_text("")
    series = load_series(runs)
    assert series.sizes == [1, 2]
    assert "run-4 holds no repetition that counts" in series.alarms[0]
    with pytest.raises(UserError, match="no repetition that counts"):
        load_series(runs[2:])


# ---- words


def test_a_sentence_for_each_total_and_all_sizes_in_the_table(tmp_path):
    series = load_series(a_series(tmp_path, (1, 2, 4, 8), cases=("hdf5", "zarr"), noise=0.001))
    write, read = sentences(series)
    assert write.startswith("Weak scaling from 1 to 8 nodes, write and close: efficiency HDF5 ")
    assert " and Zarr " in write
    assert "read, page cache" in read
    table, _ = tables(series)
    assert table.title == "write and close, weak scaling, 8 MiB per rank"
    assert list(table.columns) == ["", "1 node", "2", "4", "8", "efficiency", ""]
    assert [row[0] for row in table.rows] == ["HDF5", "Zarr"]
    assert table.rows[0][1] == "32 MB/s"
    assert table.rows[0][2].endswith(" %")


def test_one_size_and_few_rounds_have_no_efficiency(tmp_path):
    one = load_series(a_series(tmp_path, (2,)))
    assert next(sentences(one)).startswith("One size only: rates, but no efficiency.")
    assert [path.name for path in scaling([tmp_path / "run-2"]).write()] == list(FILES[:-1])
    few = load_series(a_series(tmp_path / "few", (1, 2), repetitions=3))
    assert "too few rounds for an efficiency" in next(sentences(few))
    assert next(tables(few)).rows[0][-2] == "too few rounds"


def test_times_below_resolution_are_marked(tmp_path):
    series = load_series(a_series(tmp_path, (1, 2), floor=FloorEntry(1e-2, 1e-2, 1e-8)))
    assert next(tables(series)).rows[0][1].endswith("†")


# ---- files


def test_files(tmp_path, capsys):
    runs = a_series(tmp_path, (1, 2, 4, 8, 16), cases=("hdf5", "zarr"), noise=0.002)
    with pytest.raises(SystemExit) as ended:
        main(["scaling", *map(str, runs)])
    assert ended.value.code == 0
    out = tmp_path / "scaling"
    said = capsys.readouterr().out.splitlines()
    assert said[-len(FILES) :] == [str(out / name) for name in FILES]
    assert sorted(path.name for path in out.iterdir()) == sorted(FILES)
    assert said[0].startswith("Weak scaling from 1 to 16 nodes")
    with (out / "scaling.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 2 * 5  # cases, totals, sizes
    first, second = rows[:2]
    assert (first["backend"], first["total"], first["kind"]) == ("hdf5", "write", "weak")
    assert float(first["bytes_per_second"]) == pytest.approx(8 * MIB / WRITE, rel=0.1)
    low, value, high = (float(second[f"efficiency{end}"]) for end in ("_low", "", "_high"))
    assert low <= value <= high
    data = json.loads((out / "scaling.json").read_text())
    assert [run["ranks"] for run in data["runs"]] == [1, 2, 4, 8, 16]
    assert len(data["points"]) == len(rows)
    times = [json.loads(line) for line in (out / "scaling.jsonl").read_text().splitlines()]
    assert [time["params"] for time in times[:5]] == [{"nodes": n} for n in (1, 2, 4, 8, 16)]
    assert {len(time["value"]) for time in times} == {10}
    assert {time["metric"] for time in times} == {"seconds"}
    assert len({time["callpath"] for time in times}) == 2 * 4
    assert "| 1 node | 2 | 4 | 8 | 16 | efficiency |" in (out / "scaling.md").read_text()
    drawn = (out / "scaling.svg").read_text()
    assert drawn.startswith("<svg")
    assert "efficiency, %" in drawn


def test_own_files_are_replaced_and_others_are_not_touched(tmp_path):
    runs = a_series(tmp_path, (1, 2))
    out = tmp_path / "scaling"
    list(scaling(runs).write())
    (out / "mine.txt").write_text("keep")
    (out / "scaling.csv").write_text("half")
    list(scaling(runs).write())
    assert (out / "mine.txt").read_text() == "keep"
    assert (out / "scaling.csv").read_text() != "half"

    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "scaling.csv").write_text("keep")
    with pytest.raises(UserError, match="did not make"):
        scaling(runs, out=foreign)
    assert [path.name for path in foreign.iterdir()] == ["scaling.csv"]
    with pytest.raises(UserError, match="lies in the run"):
        scaling(runs, out=runs[0] / "scaling")
    more = {"name": "else", "experiment": {"name": "else", "seed": 1}}
    others = [a_run(tmp_path / "else", n, **more) for n in (1, 2)]
    with pytest.raises(UserError, match="scaling of experiment 'some'"):
        scaling(others, out=out)


def test_a_killed_call_leaves_a_directory_that_the_next_one_writes_into(tmp_path, monkeypatch):
    runs, out = a_series(tmp_path, (1, 2)), tmp_path / "scaling"

    def dying(path, rows):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pffbench_analysis.scaling.export.write_csv", dying)
        with pytest.raises(KeyboardInterrupt):
            list(scaling(runs).write())
    list(scaling(runs).write())
    assert {path.name for path in out.iterdir()} == {*FILES}
    early = tmp_path / "early"
    early.mkdir()
    (early / f".scaling.json.{'0' * 12}").write_text("{")
    list(scaling(runs, out=early).write())
    assert {*FILES} < {path.name for path in early.iterdir()}


def test_json_has_the_answer_and_writes_nothing_unless_asked(tmp_path, capsys):
    runs = a_series(tmp_path, (1, 2, 4))
    with pytest.raises(SystemExit):
        main(["scaling", *map(str, runs), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (told["format"], told["version"]) == ("pffbench scaling", 2)
    assert told["sentences"] == list(sentences(load_series(runs)))
    assert not (tmp_path / "scaling").exists()


def test_it_needs_no_mpi(tmp_path):
    runs = a_series(tmp_path, (1, 2))
    code = (
        "import sys; import pffbench_analysis.scaling.export as o; "
        "list(o.scaling(sys.argv[1:]).lines()); assert 'mpi4py.MPI' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, *map(str, runs)], check=True, timeout=120)


@pytest.mark.parametrize("sizes", [(1, 2), (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)])
def test_tables_of_any_number_of_sizes_have_80_columns(tmp_path, sizes):
    runs = a_series(tmp_path, sizes, cases=("hdf5", "netcdf4", "zarr"), noise=0.002)
    lines = list(scaling(runs).lines())
    rows = [line for line in lines if " MB/s" in line or " GB/s" in line]
    assert max(map(len, lines)) <= 80
    assert sum(line.count("B/s") for line in rows) == 2 * 3 * len(sizes)
