"""The conda environment and recipe: the project's dependencies, in builds for MPI."""

import re
import tomllib

import yaml

from launch import REPOSITORY
from pffbench import __version__

PYPROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
ENVIRONMENT = yaml.safe_load((REPOSITORY / "environment.yml").read_text())
RECIPE = yaml.safe_load((REPOSITORY / "conda" / "recipe" / "recipe.yaml").read_text())
#: What conda-forge builds with and without MPI.
WITH_MPI = {"hdf5", "h5py", "netcdf4"}


def required():
    """Return version limits by package: of the project and of the figures of its page."""
    figures = [d for d in PROJECT["optional-dependencies"]["analysis"] if d.startswith("vl-")]
    parts = (re.split(r"(?=[<>=])", text, maxsplit=1) for text in PROJECT["dependencies"] + figures)
    return {"python": PROJECT["requires-python"], **{name.lower(): rest for name, rest in parts}}


def named(specs):
    """Return version limits and build by package."""
    parts = [spec.split() for spec in specs if isinstance(spec, str)]
    return {name: [*rest, *[""] * (2 - len(rest))] for name, *rest in parts}


def of_recipe(part):
    """Return what the recipe requires to build or to run, with its variable filled in."""
    minimum = RECIPE["context"]["python_min"]
    return [s.replace("${{ python_min }}", minimum) for s in RECIPE["requirements"][part]]


def test_the_environment_has_every_dependency_with_the_same_limits():
    found = named(ENVIRONMENT["dependencies"])
    versions = {name: version for name, (version, _) in found.items()}
    extra = {"openmpi": "", "hdf5": "*", "pip": ""}
    assert versions == required() | extra
    assert {"pip": ["-e ."]} in ENVIRONMENT["dependencies"]


def test_the_recipe_has_every_dependency_with_the_same_limits():
    run = named(of_recipe("run"))
    assert {name: version for name, (version, _) in run.items()} == required()
    host = of_recipe("host")
    built_with = [spec.replace(" ", "") for spec in host if "setuptools" in spec]
    assert built_with == PYPROJECT["build-system"]["requires"]
    assert RECIPE["context"]["version"] == __version__
    assert RECIPE["about"]["license"] == PROJECT["license"]
    assert (REPOSITORY / "conda" / "recipe" / RECIPE["source"]["path"] / "pyproject.toml").is_file()
    (entry,) = RECIPE["build"]["python"]["entry_points"]
    assert entry.split(" = ") == ["pffbench", PROJECT["scripts"]["pffbench"]]


def test_hdf5_and_netcdf_are_of_builds_with_mpi():
    for specs, build in (
        (ENVIRONMENT["dependencies"], "mpi_openmpi_*"),
        (of_recipe("run"), "mpi_*"),
    ):
        found = named(specs)
        assert {name for name, (_, its) in found.items() if its} >= WITH_MPI & found.keys()
        assert all(its in ("", build) for _, its in found.values())
