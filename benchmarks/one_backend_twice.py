"""Count how often real runs tell two names for one backend apart.

The runs are those of the default experiment. Without a factor the two are equal, and a run that
claims a difference is wrong. With one, write(2), fsync(2) and their like take so many times as long
on the files of the second name, and a run that claims no difference in writing has missed it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from jobs import python, run_ranks

from pffbench.results.compare import Comparison
from pffbench.results.summary import Summary, summarise

HERE = Path(__file__).resolve().parent
BACKEND = """
from pffbench.backends.hdf5 import Hdf5


class Twin(Hdf5):
    name = "twin"
"""
ENTRY_POINT = "[pffbench.backends]\ntwin = pffbench_twin:Twin\n"
FASTER, SLOWER = "hdf5", "twin"


def make_package(directory: Path) -> None:
    """Make a package that registers the second name."""
    about = directory / "pffbench_twin-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: pffbench-twin\nVersion: 1\n")
    (about / "entry_points.txt").write_text(ENTRY_POINT)
    (directory / "pffbench_twin.py").write_text(BACKEND)


def make_experiment(directory: Path) -> Path:
    """Write the default experiment with the two names for the formats that it compares."""
    import yaml

    experiment = yaml.safe_load((HERE.parent / "configs" / "default.yaml").read_text())
    for entry in experiment["cases"]:
        entry["backend"] = [FASTER, SLOWER]
        entry.pop("hdf5", None)  # options of one name only
    path = directory / "twice.yaml"
    path.write_text(yaml.safe_dump(experiment))
    return path


def make_fault(directory: Path, factor: float) -> dict[str, str]:
    """Compile the library that makes calls slow; return the environment that plants it."""
    source = HERE.parent / "tests" / "parallel" / "programs" / "planted.c"
    library = directory / "planted.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return {
        "LD_PRELOAD": str(library),
        "PLANT_MATCH": f"-{SLOWER}.",
        "PLANT_FACTOR": str(factor),
        "PLANT_FACTOR_OF": "write",
    }


def run(ranks: int, experiment: Path, place: Path, env: dict[str, str]) -> Summary:
    """Run the experiment once and return its summary."""
    out, scratch = place / "results", place / "scratch"
    shutil.rmtree(out, ignore_errors=True)
    scratch.mkdir(exist_ok=True)
    told = ["run", experiment, "--out", out, "--scratch", scratch]
    run_ranks(ranks, python("-m", "pffbench", *map(str, told)), **env)
    return summarise(out)


def slower_of(found: Comparison) -> str:
    """Return the name that is shown to be slower; empty if none is."""
    return {"slower": found.value, "faster": found.base}.get(found.verdict.word, "")


def formats_of(summary: Summary) -> list[Comparison]:
    """Return the comparisons of the two names."""
    return list(summary.compared.formats) if summary.compared else []


def claims_of(summary: Summary) -> list[str]:
    """Return the differences that a run claims, with the slower name and the ratio."""
    return [
        f"{found.cells[0][0].keys['column']}: {slower} {found.verdict.ratio.value:.2f}"
        for found in formats_of(summary)
        if (slower := slower_of(found))
    ]


def is_found(summary: Summary) -> bool:
    """Return whether the second name is shown to be slower in writing."""
    return any(
        slower_of(found) == SLOWER
        for found in formats_of(summary)
        if found.cells[0][0].keys["total"] == "write"
    )


def main() -> None:
    """Run both kinds in turns and print what each run claims."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=20, help="runs with equal backends")
    parser.add_argument("--planted", type=int, default=10, help="runs with a slower second name")
    parser.add_argument("--factor", type=float, default=1.25)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--directory", type=Path, default=Path.cwd(), help="file system to use")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="twice-", dir=args.directory) as made:
        place = Path(made)
        make_package(place)
        before = filter(None, [os.environ.get("PYTHONPATH")])
        plain = {"PYTHONPATH": os.pathsep.join([str(place), *before])}
        slow = plain | make_fault(place, args.factor)
        experiment = make_experiment(place)
        for number in range(max(args.runs, args.planted)):
            for kind, runs, env in (("equal", args.runs, plain), ("slower", args.planted, slow)):
                if number >= runs:
                    continue
                found = run(args.ranks, experiment, place, env)
                claims = "; ".join(claims_of(found)) or "none"
                verdict = f", found: {is_found(found)}" if kind == "slower" else ""
                answer = found.answer.sentence if found.answer else "no answer"
                print(f"{kind} {number}: {answer} claims: {claims}{verdict}", flush=True)


if __name__ == "__main__":
    main()
