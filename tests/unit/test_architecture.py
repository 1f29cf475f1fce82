"""The rules of the code's structure: directions of imports."""

import ast
import re
import shutil
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

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
