"""The rules of the code's structure: directions of imports, names, and sizes of modules."""

import ast
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = [ROOT / "src" / "pffbench", ROOT / "analysis" / "pffbench_analysis"]
MODULES = [path for package in PACKAGES for path in sorted(package.rglob("*.py"))]
#: File names that every package may have.
COMMON = {
    "__init__.py", "__main__.py", "base.py", "registry.py", "hdf5.py", "netcdf4.py", "zarr.py",
}  # fmt: skip


def public_classes(path):
    tree = ast.parse(path.read_text())
    return [n.name for n in tree.body if isinstance(n, ast.ClassDef) and n.name[0] != "_"]


def test_packages_import_only_what_is_below_them():
    program = shutil.which("lint-imports", path=Path(sys.executable).parent)
    assert program, "import-linter is not installed"
    done = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True,
                          timeout=120, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_no_modules_import_each_other_in_a_circle():
    import grimp

    graph = grimp.build_graph(
        "pffbench", "pffbench_analysis", exclude_type_checking_imports=True, cache_dir=None
    )
    circles = []
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            if graph.chain_exists(importer=imported, imported=module):
                circles.append((module, imported))
    # Functions may import later what would be a circle at the top of a module.
    assert not [pair for pair in circles if all(at_the_top(*p) for p in (pair, pair[::-1]))]


def at_the_top(importer, imported):
    """Say whether a module imports another one where it is loaded."""
    path = next(p for p in MODULES if named(p) == importer)
    tree = ast.parse(path.read_text())
    return any(isinstance(n, ast.ImportFrom) and n.module == imported for n in tree.body)


def named(path):
    package = next(p for p in PACKAGES if path.is_relative_to(p))
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def test_no_public_class_has_the_name_of_another_one():
    where = defaultdict(list)
    for path in MODULES:
        for name in public_classes(path):
            where[name].append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in where.items() if len(paths) > 1} == {}


def test_a_file_name_says_what_is_inside():
    names = Counter(path.name for path in MODULES if path.name not in COMMON)
    assert {name for name, count in names.items() if count > 2} == set()
    assert {name for name in ("model.py", "words.py", "utils.py", "helpers.py") if names[name]} == set()


def test_modules_are_neither_splinters_nor_warehouses():
    lines = {p: p.read_text().count("\n") for p in MODULES if p.name != "__init__.py"}
    small = [p for p, n in lines.items() if n < 60 and p.parent.name != "commands"]
    assert len(small) <= 15, small
    assert [str(p) for p, n in lines.items() if n > 500] == []


def test_module_docstrings_name_their_subject():
    for path in MODULES:
        docstring = ast.get_docstring(ast.parse(path.read_text()))
        assert docstring, path
        assert not re.match(r"What\b", docstring), path


def test_every_file_that_the_description_of_the_code_names_exists():
    text = (ROOT / "docs" / "architecture.md").read_text()
    for name in set(re.findall(r"`((?:[a-z_0-9]+/)*[a-z_0-9]+\.py)`", text)):
        places = [ROOT, *PACKAGES, *(p.parent for p in MODULES), *(ROOT / "tests").iterdir()]
        assert any((place / name).is_file() for place in places), name
