"""With more ranks than cores each import is paid by all: what only rank 0 needs, it alone has."""

import json

import pytest
import yaml

from launch import PROGRAMS, run

pytestmark = pytest.mark.parallel

#: What reads and checks an experiment, describes the software, records and tells.
OF_RANK_0 = {
    "yaml", "h5py", "rich", "csv", "hashlib", "statistics",
    "pffbench.run.prepare", "pffbench.run.recording", "pffbench.experiment.check",
    "pffbench.experiment.load", "pffbench.experiment.sweep", "pffbench.run.recorder",
    "pffbench.provenance.job", "pffbench.record.run_json", "pffbench.record.repetitions",
    "pffbench.results.summary",
}  # fmt: skip
#: What describes a node, on its last rank: rank 0 has other work then.
OF_THE_LAST = {"psutil", "pffbench.provenance.node"}
#: What no rank of a run has any use for.
OF_NONE = {
    "difflib", "importlib.metadata", "numpy.ma",
    "numpy.testing", "numpy.f2py", "unittest", "pffbench.doctor", "pffbench.data.files",
    "pffbench_studies.versions.workload", "zarr", "netCDF4", "pandas",
}  # fmt: skip


def test_the_other_ranks_import_nothing_that_only_rank_0_needs(tmp_path):
    case = {"workload": "hyperslab", "backend": "null", "shape_per_rank": [16]}
    told = {"name": "x", "repetitions": 1, "warmup": 0, "roofline": False, "cases": [case]}
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(told))
    file = tmp_path / "modules.json"
    done = run(
        [PROGRAMS / "imported.py", file, "run", tmp_path / "x.yaml", "--out", tmp_path / "out",
         "--scratch", tmp_path], ranks=3,
    )  # fmt: skip
    assert done.status == 0, done.said
    first, second, last = (set(modules) for modules in json.loads(file.read_text()))
    # Else a name here has changed, and the next lines prove nothing.
    assert first >= OF_RANK_0
    assert last >= OF_THE_LAST
    assert second & (OF_RANK_0 | OF_THE_LAST) == set()
    assert last & OF_RANK_0 == set()
    assert not (first | second | last) & OF_NONE
