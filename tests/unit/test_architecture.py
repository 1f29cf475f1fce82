"""The rules of the code's structure: directions of imports."""

import ast
import re
import shutil
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

from pffbench.backends.registry import backend_class, backend_names
from pffbench.case import DataSize, GivenShape, Parameters, Way, keys_that_are, work_of
from pffbench.workloads.registry import workload, workload_names

ROOT = Path(__file__).parents[2]
CORE = [ROOT / "src" / "pffbench", ROOT / "analysis" / "pffbench_analysis"]
#: The core, and the packages that only entry points tie to it.
PACKAGES = [*CORE, *(p.parent for p in sorted((ROOT / "src").glob("pffbench_*/__init__.py")))]
MODULES = [path for package in PACKAGES for path in sorted(package.rglob("*.py"))]


def test_packages_import_only_what_is_below_them():
    program = shutil.which("lint-imports", path=Path(sys.executable).parent)
    assert program, "import-linter is not installed"
    done = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True,
                          timeout=120, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout


#: Studies, the workload that only a study uses, and those of its keys that no other workload has.
OF_STUDIES = {
    "file-format-testing", "hdf5-compression-tuning", "chunking-vs-memmap", "zarr-benchmarks",
    "versioned-hdf5", "versions", "keep", "probabilities",
}  # fmt: skip
#: Words of these that mean other things: versions of packages, and a library that doctor names.
OTHERWISE = {
    "versioned-hdf5": {"doctor/installation.py"},
}


def test_the_core_names_no_study():
    for package in CORE:
        for path in package.rglob("*.py"):
            found = {
                node.value
                for node in ast.walk(ast.parse(path.read_text()))
                if isinstance(node, ast.Constant) and node.value in OF_STUDIES
            }
            name = path.relative_to(package).as_posix()
            found -= {word for word in found if name in OTHERWISE.get(word, ())}
            assert not found, (name, found)


def test_no_modules_import_each_other_in_a_circle():
    known = {named(path): path for path in MODULES}
    graph = {name: imported_by(path, known) for name, path in known.items()}
    TopologicalSorter(graph).prepare()  # raises with the circle, if there is one


def imported_by(path, known):
    """Return the modules of the project that a module imports when it is loaded."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in known else node.module)
    return found & known.keys() - {named(path)}


def named(path):
    package = next(p for p in PACKAGES if path.is_relative_to(p))
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


#: Where the keys of workloads and the options of backends are declared, and read.
OWN = {"pffbench/workloads", "pffbench/backends", "pffbench_studies/workloads",
       "pffbench_studies/backends", "pffbench_studies/versions"}  # fmt: skip


def test_keys_of_a_workload_or_a_backend_are_read_by_their_name_alone():
    """`getattr` with a key in it hides from mypy, and from a reader, who depends on the key."""
    kinds = [workload(name).parameters_type for name in workload_names()]
    options = [backend_class(name).options_type for name in backend_names()]
    keys = {key for kind in [*kinds, *options] for key in kind.__struct_fields__}
    assert {"rearranger", "steps", "hints", "chunk_grid"} <= keys
    found = [
        f"{path.name}:{node.lineno}"
        for path in MODULES
        if not any(f"/{own}/" in path.as_posix() for own in OWN)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("getattr", "hasattr")
        if any(isinstance(one, ast.Constant) and one.value in keys for one in node.args)
    ]
    assert not found


def test_each_key_says_in_its_declaration_what_it_is():
    """No other list of keys has to be kept: a key that is declared in a new workload counts."""

    class New(Parameters, frozen=True, kw_only=True, tag="new"):
        tiles: DataSize[int] = 1
        route: Way[str] = "direct"
        extents: GivenShape[tuple[int, ...] | None] = None

    p = New(backend="hdf5", tiles=3, route="ring", extents=(2, 3))
    assert work_of(p) == work_of(
        New(backend="zarr", tiles=3, extents=(2, 3), transfer="collective")
    )
    assert work_of(p) != work_of(New(backend="hdf5", tiles=4, extents=(2, 3)))
    assert p.given_shape == (2, 3)
    assert keys_that_are(New, "size") == ("tiles", "extents")
    assert set(keys_that_are(New, "data")) == {"source", "file", "variable", "durability", "cache"}


def test_records_are_structs_where_every_rank_defines_them():
    package = PACKAGES[0]
    frozen = [str(path.relative_to(package)) for path in package.rglob("*.py")
              if "@dataclass(frozen=True" in path.read_text()]  # fmt: skip
    assert set(frozen) == {"run/options.py"}


def test_every_file_that_the_description_of_the_code_names_exists():
    text = (ROOT / "docs" / "architecture.md").read_text()
    for name in set(re.findall(r"`((?:[a-z_0-9]+/)*[a-z_0-9]+\.py)`", text)):
        places = [ROOT, *PACKAGES, *(p.parent for p in MODULES), *(ROOT / "tests").iterdir()]
        assert any((place / name).is_file() for place in places), name
