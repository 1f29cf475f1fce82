"""`pffbench scaling`: what was planted is found, and runs that do not fit are refused."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from pffbench.record.samples import Sample, SamplesLog
from pffbench.summary.starts import starts_of
from pffbench_analysis.specs import PAPER

from pffbench.cli import main
from pffbench.errors import UserError
from pffbench.record.run_json import RunRecord
from pffbench_analysis.scaling import load_series
from pffbench_analysis.scaling.crossing import crossings
from pffbench_analysis.scaling.export import scaling
from pffbench_analysis.scaling.figures import draw, figure_names
from pffbench_analysis.scaling.sentences import summary_lines, verdict, verdicts
from pffbench_analysis.scaling.summary_tables import summary_tables

pytestmark = pytest.mark.long

MIB = 2**20
PHASES = ("create", "write", "close", "open", "read", "close_read", "remove")
SHARES = dict(zip(PHASES, (0.1, 0.8, 0.1, 0.05, 0.9, 0.05, 0.0), strict=True))
PROVENANCE = {
    "software": {"libraries": {"h5py": {"version": "3.16.0", "imported": True, "hdf5": "1.14.6"}}},
    "filesystem": {"type": "lustre", "device": "a@tcp:/scratch", "mount_point": "/scratch"},
    "hosts": [{"host": "n1", "cpu_model": "some", "kernel": "6.1"}],
}


def usl(n, alone=100 * MIB, sigma=0.05, kappa=0.002):
    return alone * n / (1 + sigma * (n - 1) + kappa * n * (n - 1))


def a_run(
    parent, ranks, rates, *, name="", nodes=None, kind="weak", seed=0, noise=0.02, repetitions=5,
    provenance=None, parameters=None, cases=("hdf5",), record=None,
):  # fmt: skip
    """Write a run whose totals have the rates that a function gives, with noise.

    A case is its backend, its transfer and what it is written until.
    """
    nodes = ranks if nodes is None else nodes
    directory = parent / (name or f"run-{ranks}")
    directory.mkdir(parents=True)
    shape = {"shape_per_rank": [16]} if kind == "weak" else {"shape": [64]}
    entries = {}
    for case in cases:
        backend, transfer, durability = (*case.split(" "), "", "")[:3]
        told = {
            "workload": "hyperslab", "backend": backend, "layout": "shared", "cache": "warm",
            "transfer": transfer or "independent", "settings": "matched",
            "durability": durability or "sync",
            **shape, **(parameters or {}),
        }  # fmt: skip
        entries[f"{case} {told}"] = {
            "parameters": told, "options": {}, "verified": True,
            "group": f"shared-{shape}{durability}",
            "raw": backend == "mpiio",
        }  # fmt: skip
    given = {
        "run_id": directory.name, "name": "some", "question": "", "command": [], "ranks": ranks,
        "started": "2026-01-01T12:00:00+00:00", "experiment": {"name": "some", "seed": 1},
        "experiment_file": "", "cases": entries, "left_out": [], "scratch": "",
        "topology": {"hosts": [], "nodes": [r * nodes // ranks for r in range(ranks)],
                     "ranks_per_node": [ranks // nodes] * nodes},
        "floor": {"barrier": 1e-7, "tick": 1e-8, "memory_copy_bytes_per_second": 1e9},
        "startup": {}, "provenance": provenance or PROVENANCE, "status": "finished", "valid": True,
    }  # fmt: skip
    RunRecord(**(given | (record or {}))).save(directory)
    rng = np.random.default_rng([seed, ranks])
    nbytes = 64 * MIB * (ranks if kind == "weak" else 1)
    log = SamplesLog(str(directory / "samples.csv"))
    for case, entry in entries.items():
        for repetition in range(repetitions + 1):
            seconds = float(nbytes / rates(ranks) * np.exp(noise * rng.standard_normal()))
            log.append(
                a_sample(case, entry, repetition, phase, seconds * SHARES[phase], nbytes, given)
                for phase in PHASES
            )
    return directory


def a_sample(case, entry, repetition, phase, seconds, nbytes, record):
    p = entry["parameters"]
    return Sample(
        case=case, repetition=repetition, warmup=repetition == 0, position=0, phase=phase,
        backend=p["backend"], workload=p["workload"], layout=p["layout"], transfer=p["transfer"],
        settings=p["settings"], group=entry["group"], ranks=record["ranks"], nodes=1, arrays=1,
        operations=1, bytes=nbytes if phase in ("write", "read") else 0, own_max=seconds,
        own_median=seconds / 1.25, own_min=seconds / 2, synced_max=seconds, slowest_rank=0,
        slowest_host="a", below_resolution=False, cache="warm" if phase == "read" else "",
        resident=None, verified_bytes=None, peak_memory=1, disk_bytes=None, disk_files=None,
        valid=True, started="2026-01-01T12:00:00.000+00:00", seconds=seconds,
    )  # fmt: skip


def a_series(parent, sizes=(1, 2, 4, 8), rates=usl, **how):
    return [a_run(parent, ranks, rates, **how) for ranks in sizes]


def curves_of(series, phase="write_total"):
    return [curve for curve in series.curves if curve.phase == phase]


# ---- series


@pytest.mark.parametrize("kind", ["weak", "strong"])
def test_kind_rates_and_efficiency_come_from_the_data(tmp_path, kind):
    series = load_series(reversed(a_series(tmp_path, kind=kind, noise=0.0)))
    assert (series.kinds, series.over, series.sizes) == ([kind], "nodes", [1, 2, 4, 8])
    (curve,) = curves_of(series)
    for point in curve.points:
        assert point.rate.value == pytest.approx(usl(point.size))
        assert point.time.n == 5  # the warm-up is left out
        assert point.imbalance == pytest.approx(1.25)
        assert curve.speedup(point).value == pytest.approx(usl(point.size) / usl(1))
        assert curve.efficiency(point).value == pytest.approx(usl(point.size) / usl(1) / point.size)
    (write,) = curves_of(series, "write")
    assert write.points[0].rate.value == pytest.approx(usl(1) / 0.8)


def test_intervals_of_efficiency_hold_the_truth(tmp_path):
    inside = 0
    for seed in range(10):
        series = load_series(a_series(tmp_path / str(seed), (1, 4), seed=seed, noise=0.05))
        (one,) = curves_of(series)
        found = one.efficiency(one.points[-1])
        inside += found.low <= usl(4) / usl(1) / 4 <= found.high
    assert inside >= 8


def test_ranks_or_nodes(tmp_path):
    runs = [a_run(tmp_path, ranks, usl, nodes=ranks // 2) for ranks in (2, 4, 8)]
    assert load_series(runs).sizes == [1, 2, 4]
    assert load_series(runs, "ranks").sizes == [2, 4, 8]
    one_node = [a_run(tmp_path / "b", ranks, usl, nodes=1) for ranks in (2, 4)]
    assert load_series(one_node).over == "ranks"
    with pytest.raises(UserError, match="would be one point"):
        load_series(one_node, "nodes")
    uneven = [*runs, a_run(tmp_path / "c", 24, usl, nodes=6)]
    assert load_series(uneven).over == "ranks"
    with pytest.raises(UserError, match="same number of ranks on each node"):
        load_series(uneven, "nodes")


def test_runs_of_one_size_are_taken_together(tmp_path):
    runs = [*a_series(tmp_path, (1, 2)), a_run(tmp_path, 2, usl, name="again", seed=1)]
    series = load_series(runs)
    (one,) = curves_of(series)
    assert [point.time.n for point in one.points] == [5, 10]
    assert len(starts_of(one.points[1].by_block)) == 2
    assert any("run-2" in note and "again" in note for note in series.notes)


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
    runs = [*a_series(tmp_path, (1, 2)), a_run(tmp_path, 4, usl, provenance=OTHERS[told])]
    with pytest.raises(UserError) as caught:
        scaling(runs)
    assert told in str(caught.value)
    assert "run-4" in str(caught.value)
    assert not (tmp_path / "scaling").exists()


def test_other_experiments_and_other_work_are_refused(tmp_path):
    first = a_run(tmp_path, 1, usl, kind="strong")
    name = {"experiment": {"name": "else", "seed": 1}}
    other = a_run(tmp_path, 2, usl, kind="strong", record=name)
    with pytest.raises(UserError, match=r"experiment\.name: some / else"):
        load_series([first, other])
    larger = a_run(tmp_path, 4, usl, kind="strong", parameters={"shape": [128]})
    with pytest.raises(UserError, match="shape: 64 / 128"):
        load_series([first, larger])


def test_harmless_differences_are_told(tmp_path):
    hosts = [{"host": "n9", "cpu_model": "some", "kernel": "6.2"}]
    runs = [
        *a_series(tmp_path, (1, 2)),
        a_run(tmp_path, 4, usl, provenance=provenance_with(hosts=hosts)),
    ]
    (note,) = load_series(runs).notes
    assert "hosts.kernel: 6.1 at first, then 6.2 (run-4)" in note


def test_bad_runs_are_told(tmp_path):
    bad = a_run(tmp_path, 4, usl, record={"valid": False, "reasons": ["rotten"]})
    runs = [*a_series(tmp_path, (1, 2)), bad]
    series = load_series(runs)
    assert series.alarms == ("INVALID: run-4: rotten",)
    figure = draw(series, figure_names(series)["hyperslab-shared-write_total"])
    assert figure.words.stamp == "INVALID"


def test_a_run_without_results_does_not_hide_the_others(tmp_path):
    runs = [*a_series(tmp_path, (1, 2)), a_run(tmp_path, 4, usl, repetitions=0)]
    series = load_series(runs)
    assert series.sizes == [1, 2]
    assert "run-4 holds no repetition that counts" in series.alarms[0]
    with pytest.raises(UserError, match="no repetition that counts"):
        load_series(runs[2:])


# ---- words


def test_verdict_in_plain_words(tmp_path):
    series = load_series(a_series(tmp_path, (1, 2, 4, 8, 16, 32, 64), noise=0.001))
    text = verdict(*curves_of(series))
    assert text.startswith("hdf5 shared independent, write total: 1→64 nodes, 5.")
    assert "(ideal 64), efficiency 8" in text


def test_comparisons_are_told_apart(tmp_path):
    cases = ("hdf5 independent close", "hdf5 independent sync")
    series = load_series(a_series(tmp_path, cases=cases))
    assert [text.partition(",")[0] for text in verdicts(series) if "write" in text] == [
        "hdf5 shared independent durability close", "hdf5 shared independent durability sync",
    ]  # fmt: skip
    titles = [draw(series, curves).words.title for curves in figure_names(series).values()]
    assert titles[0].startswith("some: hyperslab, layout shared, durability close: weak scaling")


def test_one_size_says_what_cannot_be_told(tmp_path):
    series = load_series(a_series(tmp_path, (2,)))
    assert "One size only" in summary_lines(series)[0]
    assert figure_names(series) == {}


# ---- files and figures


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_files(tmp_path, capsys):
    runs = a_series(tmp_path, (1, 2, 4, 8, 16), cases=("hdf5", "zarr"), noise=0.002)
    with pytest.raises(SystemExit) as ended:
        main(["scaling", *map(str, runs)])
    assert ended.value.code == 0
    out = tmp_path / "scaling"
    told = capsys.readouterr().out.splitlines()
    files = [line for line in told if line.startswith(str(out))]
    assert {path.name for path in out.iterdir()} == {line.rpartition("/")[2] for line in files}
    (head, *_) = (line for line in told if line.startswith(" case"))
    assert " ".join(head.split()) == "case 1 node 16 nodes speed-up efficiency"
    rows = rows_of(out / "scaling.csv")
    assert len(rows) == 2 * 4 * 5  # cases, phases, sizes
    first = rows[0]
    assert (first["backend"], first["phase"], first["kind"]) == ("hdf5", "write_total", "weak")
    assert float(first["rate_mib_s"]) == pytest.approx(100, rel=0.1)
    (row, *_) = (line for line in told if line.startswith(" hdf5"))
    assert float(row.split()[1]) == pytest.approx(float(first["rate_mib_s"]), rel=0.01)
    assert float(first["rate_low_mib_s"]) <= float(first["rate_mib_s"])
    data = json.loads((out / "scaling.json").read_text())
    assert [run["ranks"] for run in data["runs"]] == [1, 2, 4, 8, 16]
    times = [json.loads(line) for line in (out / "scaling.jsonl").read_text().splitlines()]
    assert [time["params"] for time in times[:5]] == [{"nodes": n} for n in (1, 2, 4, 8, 16)]
    assert {len(time["value"]) for time in times} == {5}
    assert {time["metric"] for time in times} == {"seconds"}
    assert len({time["callpath"] for time in times}) == 2 * 4
    text = (out / "scaling.md").read_text()
    assert "| case | 1 node | 16 nodes | speed-up | efficiency |" in text
    for phase in ("write_total", "read_total", "write", "read"):
        assert (out / f"hyperslab-shared-{phase}.png").read_bytes().startswith(b"\x89PNG")


def test_own_files_are_replaced_and_others_are_not_touched(tmp_path):
    runs = a_series(tmp_path, (1, 2))
    out = tmp_path / "scaling"
    list(scaling(runs).write())
    stale = out / "hyperslab-old-write.png"
    stale.write_text("")
    told = json.loads((out / "scaling.json").read_text())
    (out / "scaling.json").write_text(json.dumps(told | {"files": [*told["files"], stale.name]}))
    (out / "mine.txt").write_text("keep")
    list(scaling(runs).write())
    assert not stale.exists()
    assert (out / "mine.txt").read_text() == "keep"

    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "scaling.csv").write_text("keep")
    with pytest.raises(UserError, match="did not make"):
        scaling(runs, out=foreign)
    assert [path.name for path in foreign.iterdir()] == ["scaling.csv"]
    with pytest.raises(UserError, match="lies in the run"):
        scaling(runs, out=runs[0] / "scaling")
    more = {"name": "else", "experiment": {"name": "else", "seed": 1}}
    others = [a_run(tmp_path / "else", n, usl, record=more) for n in (1, 2)]
    with pytest.raises(UserError, match="scaling of experiment 'some'"):
        scaling(others, out=out)


def test_a_killed_call_leaves_a_directory_that_the_next_one_writes_into(tmp_path, monkeypatch):
    runs = a_series(tmp_path, (1, 2))
    out = tmp_path / "scaling"
    saved = "pffbench_analysis.picture.save"

    def dying(figure, path):
        path.with_name(f"{path.name}.png").write_text("half")
        raise KeyboardInterrupt
        yield

    with monkeypatch.context() as patch:
        patch.setattr(saved, dying)
        written = []
        with pytest.raises(KeyboardInterrupt):
            written.extend(path.name for path in scaling(runs).write())
    half = {path.name for path in out.iterdir() if path.suffix == ".png"}
    assert half
    (out / "mine.txt").write_text("keep")
    whole = {path.name for path in scaling(runs).write()}
    assert {path.name for path in out.iterdir()} == whole | {"mine.txt"}
    assert (out / next(iter(half))).read_bytes() != b"half"

    early = tmp_path / "early"
    early.mkdir()
    (early / f".scaling.json.{'0' * 12}").write_text("{")
    list(scaling(runs, out=early).write())
    assert {path.name for path in early.iterdir()} == whole


def test_the_verdict_is_printed_before_anything_is_drawn(tmp_path, monkeypatch, capsys):
    runs = a_series(tmp_path, (1, 2))
    printed = []

    def drawing(figure, path):
        printed.append(capsys.readouterr().out)
        yield path.with_name(f"{path.name}.png")

    monkeypatch.setattr("pffbench_analysis.picture.save", drawing)
    with pytest.raises(SystemExit):
        main(["scaling", *map(str, runs)])
    for found in summary_tables(load_series(runs)):
        assert found.title in printed[0]
        assert all(cell in printed[0] for row in found.rows for cell in row)


def test_json_has_the_verdict_and_writes_nothing_unless_asked(tmp_path, capsys):
    runs = a_series(tmp_path, (1, 2, 4))
    with pytest.raises(SystemExit):
        main(["scaling", *map(str, runs), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (told["format"], told["version"]) == ("pffbench scaling", 1)
    series = load_series(runs)
    assert told["sentences"] == summary_lines(series)
    assert told["curves"]
    assert not (tmp_path / "scaling").exists()


def test_figures_show_the_points_with_their_intervals(tmp_path):
    series = load_series(a_series(tmp_path, cases=("hdf5", "hdf5 collective", "zarr", "mpiio")))
    these = curves_of(series)
    figure = draw(series, these)
    rate, _, efficiency, _ = figure.panels
    assert [panel.heading for panel in figure.panels] == ["independent", "collective", "", ""]
    panels = {
        ("rate", "independent"): rate, ("rate", "collective"): figure.panels[1],
        ("efficiency", "independent"): efficiency, ("efficiency", "collective"): figure.panels[3],
    }  # fmt: skip
    for one in these:
        s = one.case.sample
        for what in ("rate", "efficiency"):
            points = panels[what, s.transfer].values("points")
            points = [point for point in points if point["case"].startswith(s.backend)]
            for drawn, point in zip(points, one.points, strict=True):
                wanted = point.rate if what == "rate" else one.efficiency(point)
                unit = 1 / MIB if what == "rate" else 100
                assert drawn["size"] == pytest.approx(point.size, rel=0.1)
                assert [drawn[k] for k in ("value", "low", "high")] == pytest.approx(
                    [v * unit for v in (wanted.value, wanted.low, wanted.high)]
                )
    axes = rate.spec["layer"][0]["encoding"]
    assert axes["y"]["scale"]["type"] == "log"
    assert axes["x"]["title"] == "nodes"
    assert "MiB/s" in axes["y"]["title"]
    cases = 3
    assert len({row["line"] for row in rate.values("ideal")}) == cases


def test_single_repetitions_are_hollow_and_say_so(tmp_path):
    series = load_series(a_series(tmp_path, repetitions=1))
    figure = draw(series, curves_of(series))
    points = figure.panels[0].values("points")
    assert {point["fill"] for point in points} == {PAPER}
    assert {point["low"] for point in points} == {None}
    assert "no interval" in figure.words.lines


def test_it_needs_no_mpi(tmp_path):
    runs = a_series(tmp_path, (1, 2, 4))
    code = (
        "import sys; import pffbench_analysis.scaling.export as o; "
        "o.scaling(sys.argv[1:]).data(); assert 'mpi4py.MPI' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, *map(str, runs)], check=True, timeout=120)


# ---- crossings


def crossing_runs(parent, names, seconds, repetitions=10):
    """Write runs of two ways; `seconds` maps the ranks and the run to those of each repetition."""
    runs = []
    for place, (name, ranks) in enumerate(names):
        told = iter([s for way in seconds(ranks, place) for s in (way[0], *way)])
        runs.append(a_run(
            parent, ranks, lambda n, told=told: 64 * MIB * n / next(told), name=name,
            cases=("hdf5", "hdf5 collective"), noise=0, repetitions=repetitions,
        ))  # fmt: skip
    return load_series(runs)


def noisy_ways(ranks, place, noise=0.01):
    """The one takes a second with any number of ranks, the other longer with each more."""
    rng = np.random.default_rng(place)
    return [s * np.exp(noise * rng.standard_normal(10)) for s in (1.0, ranks / 6)]


def test_ways_that_cross_are_named_with_the_sizes_where_it_is_shown(tmp_path):
    series = crossing_runs(tmp_path, [("a", 1), ("b", 4), ("c", 16)], noisy_ways)
    found = crossings(series)
    assert [(c.before.phase, c.at.below, c.at.above) for c in found] == [
        ("write_total", 4, 16), ("read_total", 4, 16),
    ]  # fmt: skip
    assert all(c.before.case.sample.transfer == "collective" for c in found)
    assert [round(c.at.near, 1) for c in found] == [pytest.approx(6, abs=0.2)] * 2
    assert str(found[1]).startswith(
        "read total: hdf5 shared collective is faster with 4 nodes, "
        "hdf5 shared independent with 16 nodes; they cross near "
    )


def test_runs_of_one_size_are_compared_each_within_itself(tmp_path):
    """The second start of each size takes 1.5 times as long, with both ways."""

    def seconds(ranks, place):
        rng, start = np.random.default_rng(place), (1.0, 1.5)[place % 2]
        ratio = 0.8 if ranks == 1 else 1.25
        return [start * s * np.exp(0.01 * rng.standard_normal(10)) for s in (1.0, ratio)]

    names = [("a", 1), ("again", 1), ("b", 4), ("b-again", 4)]
    series = crossing_runs(tmp_path, names, seconds)
    assert [(c.at.below, c.at.above) for c in crossings(series)] == [(1, 4), (1, 4)]
    curve = curves_of(series)[0]
    assert [len(starts_of(point.by_block)) for point in curve.points] == [2, 2]


def test_times_below_resolution_and_invalid_cases_do_not_cross(tmp_path):
    names = [("a", 1), ("b", 16)]
    series = crossing_runs(tmp_path / "short", names, noisy_ways)
    assert len(crossings(series)) == 2
    short = [
        replace(c, points=tuple(replace(p, below_resolution=True) for p in c.points))
        for c in series.curves
    ]
    assert crossings(replace(series, curves=tuple(short))) == []

    file = tmp_path / "short" / "b" / "run.json"
    record = json.loads(file.read_text())
    wrong = next(iter(record["cases"].values()))
    wrong["invalid"] = "wrong data"
    file.write_text(json.dumps(record))
    series = load_series([tmp_path / "short" / name for name, _ in names])
    assert any("of b: wrong data" in note for note in series.notes)
    assert crossings(series) == []
    assert sorted(len(c.points) for c in curves_of(series)) == [1, 2]
