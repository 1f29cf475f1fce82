"""The files for Spack, read without Spack: valid, and agreeing with pyproject.toml and the lock."""

from __future__ import annotations

import ast
import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
REPO = ROOT / "spack" / "spack_repo" / "pffbench"
SCRIPT = ROOT / "spack" / "debian_site.py"
RECIPES = sorted((REPO / "packages").glob("*/package.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: Extras that are no part of the program.
FOR_DEVELOPERS = {"test", "lint", "docs"}
#: Extras of packages that Spack has no recipe of.
NOT_IN_SPACK = {"blosc2", "versioned-hdf5", "versions", "zarrs"}


def spack_name(requirement):
    """Return Spack's name of what a requirement of pyproject.toml names."""
    name = re.match(r"[\w.-]+", requirement)[0]
    return "py-" + re.sub(r"[-_.]+", "-", name).lower().removeprefix("py-")


def floor(requirement):
    """Return the numbers of the lowest version allowed, without trailing zeros."""
    return numbers(re.search(r">=\s*([\d.]+)", requirement)[1])


def numbers(version):
    found = [int(part) for part in re.match(r"[\d.]*\d", version)[0].split(".")]
    while found and found[-1] == 0:
        found.pop()
    return tuple(found)


def depends(recipe):
    """Return by package the specs that a recipe depends on."""
    found = {}
    for call in ast.walk(ast.parse(recipe.read_text())):
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "depends_on":
            spec = call.args[0].value
            found.setdefault(re.match(r"[\w-]+", spec)[0], []).append(spec)
    return found


def lowest(spec):
    """Return the numbers of the lower end of the version range of a spec."""
    match = re.search(r"@=?([\d.]+)", spec)
    return numbers(match[1]) if match else ()


PFFBENCH = depends(REPO / "packages" / "py_pffbench" / "package.py")
EXTRAS = {
    name: needs
    for name, needs in PROJECT["optional-dependencies"].items()
    if name not in FOR_DEVELOPERS | NOT_IN_SPACK
}


# --- the recipes


def variants():
    text = (REPO / "packages" / "py_pffbench" / "package.py").read_text()
    return set(re.findall(r'variant\("(\w+)"', text))


def recipe_versions(recipe):
    """Return Spack's name of a recipe's package, and the numbers of its versions."""
    versions = re.findall(r'version\("([\d.]+)"', recipe.read_text())
    return recipe.parent.name.replace("_", "-"), [numbers(version) for version in versions]


@pytest.mark.parametrize("requirement", PROJECT["dependencies"])
def test_the_recipe_needs_what_the_project_needs(requirement):
    (spec,) = PFFBENCH[spack_name(requirement)]
    assert lowest(spec) == floor(requirement)
    below = re.search(r"<(\d+)", requirement)
    if below:
        assert spec.endswith(f":{int(below[1]) - 1}")


@pytest.mark.parametrize(("extra", "needs"), EXTRAS.items(), ids=list(EXTRAS))
def test_each_extra_is_a_variant(extra, needs):
    assert extra in variants()
    for requirement in needs:
        (spec,) = PFFBENCH[spack_name(requirement)]
        assert lowest(spec) == floor(requirement)


def test_own_recipes_have_versions_that_the_project_takes():
    """An audit of Spack fails where none of the known versions is allowed."""
    for recipe in RECIPES:
        (name, versions) = recipe_versions(recipe)
        for spec in PFFBENCH.get(name, []):
            assert not versions or max(versions) >= lowest(spec), name


# --- the site of Debian and Ubuntu


@pytest.fixture(scope="module")
def debian_site():
    spec = importlib.util.spec_from_file_location("debian_site", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def describe(directory, **env):
    command = [sys.executable, SCRIPT, directory]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **env)


def make_dpkg(tmp_path, answer):
    """Return a search path whose dpkg-query prints one answer for everything."""
    program = tmp_path / "bin" / "dpkg-query"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{answer}'\n")
    program.chmod(0o755)
    return str(program.parent)


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        ("installed 1:4.9.0-1+b1", "4.9.0"),
        ("installed 1.10.8+repack1-1", "1.10.8"),
        ("installed 2.12.1+dfsg-5+deb12u4", "2.12.1"),
        ("installed 3.0.22-1~deb12u1", "3.0.22"),
        ("installed 5.4.1-0.2", "5.4.1"),
        ("config-files 4.1.4-3", None),
        ("installed unheard-of", None),
    ],
)
def test_the_upstream_version_of_a_package_is_known(
    debian_site, tmp_path, monkeypatch, answer, version
):
    monkeypatch.setenv("PATH", make_dpkg(tmp_path, answer) + ":/bin:/usr/bin")
    assert debian_site.package_version("any") == version


def test_what_is_missing_is_named_and_nothing_is_made(tmp_path):
    path = make_dpkg(tmp_path, "not-installed ") + ":/bin:/usr/bin"
    done = describe(tmp_path / "site", env={"PATH": path})
    assert done.returncode == 1
    assert "apt-get install g++ gfortran libopenmpi-dev" in done.stderr
    assert "libnetcdf-pnetcdf-dev" in done.stderr
    assert not (tmp_path / "site").exists()


@pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="not on Debian or Ubuntu")
def test_this_machine_is_described_with_prefixes_that_spack_can_use(tmp_path):
    site = tmp_path / "site"
    done = describe(site)
    if done.returncode:
        missing = done.stderr.split("apt-get install ")[1].split()
        pytest.skip(f"not installed: {' '.join(missing)}")
    packages = yaml.safe_load((site / "packages.yaml").read_text())["packages"]
    assert packages["mpi"] == {"buildable": False, "require": ["openmpi"]}
    for name in ("openmpi", "hdf5", "netcdf-c", "openblas", "python"):
        (external,) = packages[name]["externals"]
        assert re.match(rf"{name}@\d+\.\d+", external["spec"])
        assert (Path(external["prefix"]) / "lib").is_dir()
    assert "+mpi" in packages["hdf5"]["externals"][0]["spec"]
    assert (site / "prefixes/hdf5/include/hdf5.h").is_file()
    assert (site / "prefixes/hdf5/lib/libhdf5.so").is_file()
    assert (site / "prefixes/netcdf-c/include/netcdf_par.h").is_file()
    said = subprocess.run(
        [site / "prefixes/netcdf-c/bin/nc-config", "--version", "--libdir"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert re.match(r"netCDF \d", said)
    once = (site / "packages.yaml").read_text()
    assert describe(site).returncode == 0
    assert (site / "packages.yaml").read_text() == once
