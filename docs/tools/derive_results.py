"""Make everything in `docs` again that comes from the runs in `docs/results`; take a new run.

    setup/run python docs/tools/derive_results.py             # after a change of the program
    setup/run python docs/tools/derive_results.py RUN         # RUN becomes docs/results/default

A run's directory holds its raw rows and some of the files that ``pffbench report`` makes of them.
Pages show parts of what a run prints, between two comments:

    <!-- run results/default answer -->
    <!-- end -->

``answer`` is the answer, ``table`` the first table, ``platform`` where the run was made.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

import h5py

from pffbench.record.run_json import RunRecord
from pffbench.results.answer import WIDTH, lines_of
from pffbench.results.export import tables_of
from pffbench.results.summary import Summary, summarise

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
#: What a run measured; everything else in its directory is made from it.
RAW = ("run.json", "repetitions.jsonl", "ranks.h5")
#: The run that the README shows, and what is kept of its derived files.
SHOWN, KEPT = "default", ("summary.md", "answer.svg")
_BLOCK = re.compile(r"(<!-- run (\S+) (table|answer|platform) -->\n).*?(<!-- end -->)", re.DOTALL)
_LIBRARIES = ("h5py", "netCDF4", "zarr")
#: The libraries in C that these call.
_WRAPPED = {"h5py": ("HDF5", "hdf5"), "netCDF4": ("netCDF-C", "netcdf_c")}
#: Absolute paths in a record, but for those that are alike on many machines.
_OWN_PATH = re.compile(
    r"(?<=[\"=: ,;])/(?!(?:usr|dev|proc|sys|etc|lib|lib64|bin|opt|run|home/user)/)[\w.+@~/-]+"
)
_README = """\
# The run that the README shows

`pffbench run` with `configs/default.yaml`:

<!-- run . platform -->
<!-- end -->

Names of directories and hosts are masked; the numbers are as they were. `pffbench report` in a copy
of this directory makes all derived files, of which the summary and the picture of the answer are
kept here (`docs/tools/derive_results.py`).
"""


def runs(results: Path = RESULTS) -> list[Path]:
    """Return the directories of the shipped runs.

    Raises
    ------
    ValueError
        A directory holds neither raw rows nor directories with them.
    """
    found = []
    for place in sorted(path for path in results.rglob("*") if path.is_dir()):
        if all((place / name).is_file() for name in ("run.json", "repetitions.jsonl")):
            found.append(place)
        elif not any(path.is_dir() for path in place.iterdir()) or derived_names(place):
            raise ValueError(f"{place}: no raw rows from which its files were made")
    return found


def derived_names(run: Path) -> list[str]:
    """Return the names of the files in a run's directory that were made from its raw rows."""
    names = (path.name for path in run.iterdir() if path.is_file())
    return sorted(name for name in names if name not in (*RAW, "README.md"))


def derived(run: Path, names: Sequence[str]) -> dict[str, str]:
    """Return files as `pffbench report` makes them of the raw rows of a run."""
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / run.name
        copy.mkdir()
        for name in RAW:
            if (run / name).exists():
                shutil.copy(run / name, copy)
        subprocess.run(
            [sys.executable, "-m", "pffbench", "report", str(copy)],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        made = {path.name: path for path in copy.rglob("*")}
        if missing := sorted(set(names) - set(made)):
            raise ValueError(f"{run}: pffbench report does not make {', '.join(missing)}")
        return {name: made[name].read_text(encoding="utf-8") for name in names}


def pages(root: Path = ROOT) -> list[Path]:
    """Return the pages that show parts of runs."""
    files = [root / "README.md", *(root / "docs").glob("*.md")]
    files += (root / "docs" / "results").rglob("README.md")
    return sorted(page for page in files if _BLOCK.search(page.read_text(encoding="utf-8")))


def written(page: Path) -> str:
    """Return the text of a page with the parts of runs that it shows."""

    def block(found: re.Match[str]) -> str:
        summary = summarise(page.parent / found[2])
        lines = _shown(summary, found[3])
        return f"{found[1]}\n{chr(10).join(lines)}\n\n{found[4]}"

    return _BLOCK.sub(block, page.read_text(encoding="utf-8"))


def _shown(summary: Summary, part: str) -> Iterator[str]:
    if part == "platform":
        yield from textwrap.wrap(_platform(summary.record), WIDTH, break_on_hyphens=False)
        return
    yield "```text"
    if part == "table":
        yield from next(iter(tables_of(summary))).lines()
    elif summary.answer is not None:
        yield from lines_of(summary.answer)
    yield "```"


def _platform(record: RunRecord) -> str:
    """Return one sentence on where a run was made, and when."""
    made = record.provenance
    (host, *_), software = made["hosts"], made["software"]
    libraries = software["libraries"]
    versions = [f"{name} {libraries[name]['version']}" for name in _LIBRARIES]
    for place, name in enumerate(("h5py", "netCDF4")):
        label, key = _WRAPPED[name]
        versions.insert(2 * place + 1, f"{label} {libraries[name][key]}")
    mpi = libraries["mpi4py"]["mpi_library"].partition(",")[0]
    return (
        f"{record.ranks} ranks on {host['cores']} cores ({host['cpu_model']}), {host['os']}, "
        f"Python {software['python']['version']}, {mpi}, {made['filesystem']['type']}, "
        f"{record.started[:10]}. {', '.join(versions)}."
    )


def copy_masked(run: Path, copy: Path) -> None:
    """Copy the raw rows of a run on one host, without the names of that host and of directories."""
    (host,) = set(RunRecord.load(run).topology.hosts)
    record = (
        (run / "run.json").read_text(encoding="utf-8").replace(str(ROOT), "/home/user/pffbench")
    )
    named = _OWN_PATH.sub("/home/user", record)
    (copy / "run.json").write_text(re.sub(rf"\b{re.escape(host)}\b", "vm", named), encoding="utf-8")
    shutil.copy(run / "repetitions.jsonl", copy)
    with h5py.File(run / "ranks.h5") as source, h5py.File(copy / "ranks.h5", "w") as target:
        for name in source:
            if name == "host":  # in a changed file the old name would remain
                target.create_dataset(
                    name, data=["vm"] * len(source[name]), dtype=source[name].dtype
                )
            else:
                source.copy(name, target)


def take(run: Path, results: Path = RESULTS) -> None:
    """Put a run in the place of the one that the README shows.

    Parameters
    ----------
    run : Path
        Results directory of a default run, left unchanged.
    results : Path, optional
        Directory of the shipped runs.
    """
    place = results / SHOWN
    with tempfile.TemporaryDirectory() as directory:
        kept = Path(directory) / SHOWN
        kept.mkdir()
        copy_masked(run, kept)
        for name in KEPT:
            (kept / name).touch()
        (kept / "README.md").write_text(_README, encoding="utf-8")
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(kept, place)


def main() -> None:
    """Take a run, if one is named, and make everything anew."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", nargs="?", type=Path, metavar="RUN", help="results of a default run")
    given = parser.parse_args()
    if given.run:
        take(given.run)
    for run in runs():
        if names := derived_names(run):
            for name, text in derived(run, names).items():
                (run / name).write_text(text, encoding="utf-8")
    for page in pages():
        page.write_text(written(page), encoding="utf-8")


if __name__ == "__main__":
    main()
