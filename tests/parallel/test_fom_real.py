"""Figures of merit of a real run: printed at its end, kept in its results directory."""

from __future__ import annotations

import re

from launch import run_experiment


def test_a_run_prints_its_figures_of_merit(tmp_path):
    case = {"workload": "hyperslab", "backend": ["hdf5", "zarr"], "shape": [8, 8]}
    done = run_experiment(tmp_path, 2, "--fom", cases=[case], timeout=300)
    assert done.status == 0, done.said
    kept = (done.out / "fom.txt").read_text()
    printed = [line for line in done.stdout.splitlines() if line.startswith("FOM ")]
    assert printed == kept.splitlines()
    found = re.findall(r"^FOM (\S+)=(\S+) (\S+)$", kept, re.MULTILINE)
    assert len(found) == len(printed)
    values = {name: (float(value), unit) for name, value, unit in found}
    assert values["valid"] == (1.0, "bool")
    seconds = next(
        float(row["own_max"])
        for row in done.rows
        if row["backend"] == "zarr" and row["phase"] == "write"
    )
    told, unit = values["zarr.hyperslab.shared.independent.matched.write.time"]
    assert unit == "s"
    assert abs(told - seconds) < 1e-6 * seconds
