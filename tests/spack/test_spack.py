"""The environment of spack.yaml with the `spack` in PATH: `make test ARGS="-m spack"`.

The minimum version is said in spack.yaml. Sources must be reachable, or in a mirror that this Spack
knows; what is installed lands in this Spack's own tree and is found there the next time.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.spack,
    pytest.mark.skipif(shutil.which("spack") is None, reason="no `spack` in PATH"),
]


def clean_environment(**changes):
    """Return the variables without those of an environment that Python tests run in."""
    dropped = ("SPACK_ENV", "PYTHONPATH", "VIRTUAL_ENV", "PFFBENCH_SPACK_SITE")
    return {k: v for k, v in os.environ.items() if k not in dropped} | changes


def run(command, cwd, minutes, **changes):
    done = subprocess.run(
        command, cwd=cwd, env=clean_environment(**changes), timeout=60 * minutes,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout[-5000:]}\n{done.stderr[-5000:]}"
    return done.stdout


@pytest.fixture
def checkout():
    """A copy of what git knows of this checkout, as its working tree is, with a repository.

    Always in the same place: hashes depend on where the links of the Debian site lie, and what is
    installed already should be found again.
    """
    copy = ROOT / ".build" / "spack-checkout"
    shutil.rmtree(copy, ignore_errors=True)
    files = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], ROOT, 1)
    for name in filter(None, files.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name, follow_symlinks=False)
    run(["git", "init", "-q", "-b", "main"], copy, 1)
    return copy


def debian_site(checkout):
    """Describe this machine; without its packages that is the reason for skipping."""
    command = [sys.executable, "spack/debian_site.py"]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(done.stderr.strip())


def specs(checkout):
    """Return what was concretized, by package; each is there once, whatever depends on it."""
    lock = json.loads((checkout / "spack.lock").read_text())
    found = {}
    for spec in lock["concrete_specs"].values():
        found.setdefault(spec["name"], []).append(spec)
    return found


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("site", ["", "debian"])
def test_the_environment_concretizes_on_one_parallel_hdf5(checkout, site):
    if site == "debian":
        debian_site(checkout)
    run(["spack", "-e", ".", "concretize"], checkout, 28, PFFBENCH_SPACK_SITE=site)
    found = specs(checkout)
    (hdf5,) = found["hdf5"]
    (netcdf,) = found["netcdf-c"]
    assert hdf5["parameters"]["mpi"]
    assert netcdf["parameters"]["mpi"]
    if hdf5["version"].startswith("1.14") and "external" not in hdf5:
        assert hdf5["parameters"]["subfiling"]
    assert bool(site) == ("external" in hdf5)
    for name in ("py-h5py", "py-netcdf4", "py-mpi4py", "py-zarr", "py-pffbench"):
        assert len(found[name]) == 1


@pytest.mark.timeout(900)
def test_the_recipes_pass_the_audit(checkout):
    repo = checkout / "spack" / "spack_repo" / "pffbench"
    scope = checkout / "scope"
    scope.mkdir()
    (scope / "repos.yaml").write_text(json.dumps({"repos": {"pffbench": str(repo)}}))
    names = [p.parent.name.replace("_", "-") for p in repo.glob("packages/*/package.py")]
    run(["spack", "-C", scope, "audit", "packages", *names], checkout, 14)
    assert "MPI-parallel" in run(["spack", "-C", scope, "info", "py-pffbench"], checkout, 2)


@pytest.mark.timeout(3 * 3600)
def test_the_debian_environment_installs_and_its_four_ranks_agree(checkout):
    debian_site(checkout)
    script = """
        . "$(spack location -r)/share/spack/setup-env.sh"
        spack env activate . && spack install --jobs 2 || exit
        . setup/mpi-env.sh
        mpiexec -n 4 python -m pffbench --out results --set repetitions=2
    """
    run(["bash", "-c", script], checkout, 170, PFFBENCH_SPACK_SITE="debian")
    record = json.loads((checkout / "results" / "run.json").read_text())
    spack = record["provenance"]["spack"]
    assert record["valid"] is True
    assert spack["environment"] == checkout.name
    assert len(spack["lock_sha256"]) == 64
    found = specs(checkout)
    for name in ("hdf5", "netcdf-c", "openmpi", "py-h5py", "py-mpi4py", "py-netcdf4", "py-zarr"):
        assert spack["packages"][name]["hash"] == found[name][0]["hash"]
    libraries = record["provenance"]["software"]["libraries"]
    assert libraries["h5py"]["spack_hash"] == found["py-h5py"][0]["hash"]
