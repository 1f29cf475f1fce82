"""The commands of docs/install.md, "Spack on a cluster", with the `spack` in PATH.

`make test ARGS="-m spack"` runs them as printed, in a copy of this checkout, with
`spack concretize` for `spack install` except in the slow test. That one needs the sources within
reach, or in a mirror that this Spack knows.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.spack
NO_SPACK = (
    "no `spack` in PATH; to get it: git clone --depth 2 --branch releases/v1.1 "
    "https://github.com/spack/spack.git && . spack/share/spack/setup-env.sh"
)
#: What a block ends with is not run here: it needs what `spack install` installs.
LAUNCHERS = ("srun ", "mpiexec ", ". setup/mpi-env.sh")
SECTION = "## Spack on a cluster"


@pytest.fixture(autouse=True)
def spack(tmp_path, monkeypatch):
    """Return the directory of Spack; what the commands configure stays in this test."""
    program = shutil.which("spack")
    if program is None:
        pytest.fail(NO_SPACK, pytrace=False)
    for name in ("SPACK_ENV", "PYTHONPATH", "VIRTUAL_ENV", "PFFBENCH_SPACK_SITE"):
        monkeypatch.delenv(name, raising=False)
    config = tmp_path / "user-config"
    config.mkdir()
    if "SPACK_DISABLE_LOCAL_CONFIG" in os.environ:
        monkeypatch.delenv("SPACK_DISABLE_LOCAL_CONFIG")
        monkeypatch.setenv("SPACK_SYSTEM_CONFIG_PATH", str(tmp_path / "system-config"))
    else:
        users = Path(os.environ.get("SPACK_USER_CONFIG_PATH", Path.home() / ".spack"))
        for name in users.glob("*.yaml"):
            shutil.copy2(name, config)
    monkeypatch.setenv("SPACK_USER_CONFIG_PATH", str(config))
    return Path(run([program, "location", "-r"], ROOT, 2).strip())


def run(command, cwd, minutes):
    done = subprocess.run(
        command, cwd=cwd, timeout=60 * minutes, capture_output=True, text=True, check=False
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, f"{command}\n{said[-8000:]}"
    assert "Required path" not in said
    return done.stdout


def printed_commands(title):
    """Return the blocks of commands under a heading, each as its lines without comments."""
    section = (ROOT / "docs" / "install.md").read_text().split(f"{SECTION}\n", 1)[1]
    section = re.split(r"^## ", section, maxsplit=1, flags=re.MULTILINE)[0]
    if title:
        section = section.split(f"### {title}\n", 1)[1]
    section = re.split(r"^### ", section, maxsplit=1, flags=re.MULTILINE)[0]
    blocks = re.findall(r"(?:^ {4}\S.*\n)+", section, flags=re.MULTILINE)
    assert blocks, f"no commands under {title}"
    lines = (block.splitlines() for block in blocks)
    return [[re.sub(r" +# .*", "", line.strip()) for line in block] for block in lines]


def follow(lines, spack, checkout, minutes):
    """Run printed commands in one shell that knows Spack, and end at the first that fails."""
    script = ["set -e", f". {shlex.quote(str(spack / 'share/spack/setup-env.sh'))}", *lines]
    return run(["bash", "-c", "\n".join(script)], checkout, minutes)


def to_concretize(lines):
    """Return printed commands with `concretize` for `install`, without the start of ranks."""
    kept = [line for line in lines if not line.startswith(LAUNCHERS)]
    assert "spack install" in kept
    return ["spack concretize" if line == "spack install" else line for line in kept]


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


def need_debian():
    """Skip on other systems; packages that are missing on Debian fail the test with their names."""
    if shutil.which("dpkg-query") is None:
        pytest.skip("not on Debian or Ubuntu")


def specs(checkout):
    """Return what was concretized, by package; each is there once, whatever depends on it."""
    lock = json.loads((checkout / "spack.lock").read_text())
    found = {}
    for spec in lock["concrete_specs"].values():
        found.setdefault(spec["name"], []).append(spec)
    return found


@pytest.mark.timeout(900)
def test_the_printed_update_brings_the_named_recipes(spack, checkout, tmp_path, monkeypatch):
    monkeypatch.setenv("SPACK_USER_CACHE_PATH", str(tmp_path / "cache"))
    (_, update), *_ = printed_commands("")
    follow([update], spack, checkout, 14)
    (branch,) = re.findall(r"--branch (\S+)", update)
    (head,) = (tmp_path / "cache" / "package_repos").glob("*/.git/HEAD")
    assert head.read_text().strip() == f"ref: refs/heads/{branch}"


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("title", "external"),
    [
        ("Everything from source", set()),
        ("A cluster", {"mpi"}),
        ("Debian and Ubuntu", {"mpi", "hdf5"}),
        ("HPE Cray EX", {"mpi", "hdf5", "netcdf-c"}),
        ("HDF5 2", set()),
    ],
)
def test_the_printed_commands_concretize_on_one_parallel_hdf5(spack, checkout, title, external):
    if title == "Debian and Ubuntu":
        need_debian()
    manifest = (checkout / "spack.yaml").read_text()
    (lines,) = printed_commands(title)
    follow(to_concretize(lines), spack, checkout, 28)
    if title != "HDF5 2":  # what is found on the machine goes into the site
        assert (checkout / "spack.yaml").read_text() == manifest
    found = specs(checkout)
    (hdf5,) = found["hdf5"]
    (netcdf,) = found["netcdf-c"]
    (mpi,) = (found[name][0] for name in ("openmpi", "mpich", "cray-mpich") if name in found)
    for name, spec in {"hdf5": hdf5, "netcdf-c": netcdf, "mpi": mpi}.items():
        if name in external:
            assert "external" in spec, name
        elif not (name == "netcdf-c" and title == "Debian and Ubuntu"):  # any that py-netcdf4 takes
            assert "external" not in spec, name
    assert hdf5["parameters"]["mpi"]
    assert netcdf["parameters"]["mpi"]
    assert hdf5["version"].startswith("2.") == (title == "HDF5 2")
    if "hdf5" not in external:
        assert hdf5["parameters"]["subfiling"]
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


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
def test_the_debian_environment_installs_without_network_and_its_four_ranks_agree(
    spack, checkout, tmp_path
):
    """From a mirror made by the printed commands, into a tree of its own."""
    need_debian()
    config = tmp_path / "user-config" / "config.yaml"
    config.write_text(json.dumps({"config": {"install_tree": {"root": str(tmp_path / "tree")}}}))
    with_network, without = (
        [line.replace("/path/", f"{tmp_path}/") for line in lines if "CACHE_PATH" not in line]
        for lines in printed_commands("Without the internet")
    )
    (debian,) = printed_commands("Debian and Ubuntu")
    site = debian[: debian.index("spack env activate .")]
    made = [line for line in with_network if "spack repo" not in line]  # tested above
    follow([*site, *made], spack, checkout, 30)
    export = next(line for line in site if line.startswith("export"))
    ranks = debian[debian.index("spack install") + 1 :]
    ranks[-1] += " --out results --set repetitions=2"
    script = "\n".join(["set -e", f". {spack}/share/spack/setup-env.sh", export, *without, *ranks])
    alone = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]
    run([*alone, "bash", "-c", f"ip link set lo up; {script}"], checkout, 200)
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
