"""Count how often real runs tell two names for one environment apart, and find a planted delay.

Four questions (docs/environments.md):

* ``twice``: the two environments are one. A run that reports any difference is wrong.
* ``planted``: in the second one each H5Dcreate2 takes so much longer that writing takes `--percent`
  more. A run that does not report the second one as slower at writing has missed it.
* ``starts``: how much of the spread of times is between processes, and not within them. It would be
  in all repetitions of ranks that live as long as the run.
* ``blocks``: how much of the spread of times is between blocks, and not within them, where one
  environment under two names takes turns. It cancels in a comparison by pairs.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import correlation, median, stdev, variance

from pffbench.summary.summary import Summary, summarise

HERE = Path(__file__).resolve().parent
DATASETS = 300
CASE = {
    "workload": "datasets", "backend": "hdf5", "layout": "file_per_process", "datasets": DATASETS,
    "shape": [[256]], "settings": "defaults",
}  # fmt: skip


def experiment(
    given: argparse.Namespace, second: str | None, **changes: object
) -> dict[str, object]:
    """Return an experiment; with environments where the start of the second one is given."""
    both = [{"name": "first", "python": sys.executable}, {"name": "second", "command": second}]
    more: dict[str, object] = {}
    if second:
        more = {
            "environments": both,
            "launcher": launcher(given.ranks),
            "step_repetitions": given.often,
        }
    return {
        "name": "environments",
        "max_repetitions": given.most,
        "margin": 0.03,
        "roofline": False,
        "cases": [CASE],
        **more,
        **changes,
    }


def launcher(ranks: int) -> str:
    """Return the command that starts the ranks; one rank needs none."""
    mpiexec = os.environ.get("PFFBENCH_MPIEXEC") or "mpiexec"
    return "env" if ranks == 1 else f"{mpiexec} -n {ranks}"


def run(content: dict[str, object], place: Path) -> Summary:
    """Run an experiment as one process and return its summary."""
    import yaml

    file, out, scratch = (place / name for name in ("experiment.yaml", "results", "scratch"))
    file.write_text(yaml.safe_dump(content))
    scratch.mkdir()
    told = ["run", file, "--out", out, "--scratch", scratch, "--progress", "none"]
    command = [sys.executable, "-m", "pffbench", *map(str, told)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return summarise(out)


def claims_of(summary: Summary) -> dict[str, list[str]]:
    """Return the environments that are shown to be slower, by total."""
    found: dict[str, list[str]] = {}
    for answer in summary.answers:
        slower = [other.name for other in answer.others if other.standing == "slower"]
        found.setdefault(answer.total, []).extend(slower)
    return found


def ratios_of(summary: Summary) -> str:
    """Return the ratios of a run as text."""
    return ", ".join(
        f"{answer.total} {other.name}/{answer.name} {other.ratio.value:.3f} "
        f"({other.ratio.low:.3f}–{other.ratio.high:.3f}) {other.standing}, n={other.ratio.n}"
        for answer in summary.answers
        for other in answer.others
    )


def count(given: argparse.Namespace, second: str) -> None:
    """Run again and again, and print what is claimed."""
    wrong = right = 0
    for number in range(1, given.runs + 1):
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(dir=given.place) as place:
            summary = run(experiment(given, second), Path(place))
        claims = claims_of(summary)
        right += claims.get("write_total") == ["second"]
        wrong += any(claims.values())
        print(f"run {number}: {time.monotonic() - begin:.0f} s: {ratios_of(summary)}", flush=True)
    if given.question == "twice":
        print(f"{wrong} of {given.runs} runs report a difference")
    else:
        print(f"{right} of {given.runs} runs report the second one as slower at writing")


def delayed(given: argparse.Namespace) -> str:
    """Compile the delay; return the command of an environment in which writing takes longer."""
    library = Path(tempfile.mkdtemp(prefix="pffbench-delay-")) / "delay.so"
    source = HERE / "create_delay.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    with tempfile.TemporaryDirectory(dir=given.place) as place:
        plain = f"env DELAY_NS=0 {sys.executable}"
        content = experiment(given, plain, repetitions=10)
        (case, *_) = run(content, Path(place)).cases
    each = case.phases["write_total"].seconds.median * given.percent / 100 / DATASETS
    print(f"each H5Dcreate2 takes {each * 1e6:.2f} µs longer")
    return f"env LD_PRELOAD={library} DELAY_NS={each * 1e9:.0f} {sys.executable}"


def starts(given: argparse.Namespace) -> None:
    """Start processes of several repetitions each; print the spread between and within them."""
    values: dict[str, list[list[float]]] = {}
    for _ in range(given.runs):
        with tempfile.TemporaryDirectory(dir=given.place) as place:
            content = experiment(given, None, repetitions=given.most)
            (case,) = run(content, Path(place)).cases
        for total in ("write_total", "read_total"):
            times = case.phases[total].by_block.values()
            values.setdefault(total, []).append([math.log(seconds) for seconds in times])
    for total, processes in values.items():
        print(f"{total}: {spread(processes)}")


def spread(processes: Sequence[Sequence[float]]) -> str:
    """Return the spread of log times between and within processes, in percent."""
    size = min(map(len, processes))
    within = median(variance(own) for own in processes)
    between = max(0.0, variance([median(own) for own in processes]) - 1.57 * within / size)
    return (
        f"{100 * math.sqrt(within):.1f} % within a process of {size} repetitions, "
        f"{100 * math.sqrt(between):.1f} % between {len(processes)} processes"
    )


def blocks(given: argparse.Namespace) -> None:
    """Compare one environment with itself; print the spread of its times and of their ratios."""
    with tempfile.TemporaryDirectory(dir=given.place) as place:
        summary = run(experiment(given, sys.executable, repetitions=given.most), Path(place))
    for total in ("write_total", "read_total"):
        one, other = (
            [math.log(seconds) for _, seconds in sorted(case.phases[total].by_block.items())]
            for case in summary.cases
        )
        ratios = [a - b for a, b in zip(one, other, strict=True)]
        print(
            f"{total}: {100 * stdev(one):.1f} % and {100 * stdev(other):.1f} % between "
            f"{len(one)} blocks, correlation {correlation(one, other):.2f}, "
            f"ratios {100 * stdev(ratios):.1f} %"
        )


def main() -> None:
    """Ask one of the questions."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("question", choices=("twice", "planted", "starts", "blocks"))
    parser.add_argument("--runs", type=int, default=20, help="runs (default: 20)")
    parser.add_argument("--ranks", type=int, default=1, help="ranks (default: 1)")
    parser.add_argument("--most", type=int, default=40, help="most repetitions (default: 40)")
    parser.add_argument("--often", type=int, default=6, help="in a block (default: 6)")
    parser.add_argument("--percent", type=float, default=5.0, help="planted delay (default: 5)")
    parser.add_argument("--place", type=Path, default=Path("/dev/shm"), help="for the files")
    given = parser.parse_args()
    if given.question == "starts":
        starts(given)
    elif given.question == "blocks":
        blocks(given)
    elif given.question == "twice":
        count(given, sys.executable)
    else:
        count(given, delayed(given))


if __name__ == "__main__":
    main()
