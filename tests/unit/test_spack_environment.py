"""What a run records of its Spack environment, and what the doctor makes of it."""

import hashlib
import json
from pathlib import Path

import pytest

from pffbench.doctor.spack import judge_spack, library_hashes
from pffbench.provenance.spack import find_environment, spack_facts

H5PY, HDF5, CYTHON = "a" * 32, "b" * 32, "c" * 32


def depends(digest, *kinds):
    return {"hash": digest, "parameters": {"deptypes": list(kinds)}}


LOCK = {
    "spack": {"version": "1.1.0"},
    "roots": [{"hash": H5PY, "spec": "py-h5py"}],
    "concrete_specs": {
        H5PY: {
            "name": "py-h5py",
            "version": "3.16.0",
            "dependencies": [depends(CYTHON, "build"), depends(HDF5, "build", "link")],
        },
        HDF5: {"name": "hdf5", "version": "1.10.8", "external": {"path": "/usr", "module": None}},
        CYTHON: {"name": "py-cython", "version": "3.2.4"},
    },
}


@pytest.fixture
def environment(tmp_path):
    directory = tmp_path / "cluster"
    directory.mkdir()
    (directory / "spack.lock").write_text(json.dumps(LOCK))
    return directory


def facts_of(directory):
    return spack_facts(find_environment({"SPACK_ENV": str(directory)}, Path("/usr")))


def test_an_active_environment_is_named_with_its_lock_and_what_runs(environment):
    facts = facts_of(environment)
    lock = (environment / "spack.lock").read_bytes()
    assert facts == {
        "environment": "cluster",
        "directory": str(environment),
        "active": True,
        "lock_sha256": hashlib.sha256(lock).hexdigest(),
        "spack": "1.1.0",
        "packages": {  # Cython only builds
            "hdf5": {"version": "1.10.8", "hash": HDF5, "external": "/usr"},
            "py-h5py": {"version": "3.16.0", "hash": H5PY, "external": None},
        },
    }


def test_the_python_of_a_view_belongs_to_its_environment_without_activation(environment):
    facts = spack_facts(find_environment({}, environment / ".spack-env" / "view"))
    assert (facts["environment"], facts["active"]) == ("cluster", False)
    assert facts["packages"]["py-h5py"]["hash"] == H5PY


def test_outside_of_spack_there_is_nothing_to_tell():
    assert find_environment({"SPACK_ROOT": "/opt/spack"}, Path("/usr")) is None
    assert spack_facts(None) is None


@pytest.mark.parametrize("content", [None, "{", "[]", '{"roots": []}'])
def test_a_lock_that_cannot_be_read_stops_no_run_and_is_reported(environment, content):
    lock = environment / "spack.lock"
    lock.unlink() if content is None else lock.write_text(content)
    facts = facts_of(environment)
    assert facts["error"].startswith("spack.lock: ")
    assert "packages" not in facts
    (finding,) = judge_spack(facts, {})
    assert finding.status == "warning"
    assert finding.remedy == f"spack -e {environment} install"


def test_the_doctor_shows_the_hashes_of_what_is_measured(environment):
    findings = list(judge_spack(facts_of(environment), {"h5py": H5PY}))
    assert [finding.status for finding in findings] == ["ok", "ok"]
    text = "\n".join(finding.text for finding in findings)
    assert "environment cluster" in text
    assert "py-h5py 3.16.0 (/aaaaaaa)" in text
    assert "hdf5 1.10.8 (/bbbbbbb, external)" in text


def test_the_doctor_tells_libraries_that_are_not_of_the_active_environment(environment):
    found = list(judge_spack(facts_of(environment), {"h5py": None, "zarr": "d" * 32}))
    strange, stale = (finding for finding in found if finding.status == "warning")
    assert "not from the environment: h5py" in strange.text
    assert "spack env activate" in strange.remedy
    assert "of other hashes than in the lock file: zarr" in stale.text
    assert stale.remedy.endswith("install")


def test_the_hash_of_a_library_is_found_without_importing_it(tmp_path, monkeypatch):
    digest = "abcdefghijklmnopqrstuvwxyz234567"
    prefix = tmp_path / f"py-unheardof-1.0-{digest}"
    (prefix / ".spack").mkdir(parents=True)
    (prefix / "lib/unheardof").mkdir(parents=True)
    (prefix / "lib/unheardof/__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(prefix / "lib"))
    assert library_hashes(["unheardof", "not_there_at_all"]) == {"unheardof": digest}
