"""The way of a scientist from a clone to an answer, as docs/start.md prints it; `pffbench init`."""

from __future__ import annotations

import re
import subprocess

import numpy as np
import pytest

from launch import REPOSITORY, environment, pffbench_cli, sampled
from pffbench.draft.from_file import draft_experiment
from pffbench.record.run_json import RunRecord

pytestmark = pytest.mark.parallel


def write_netcdf(path, steps=24):
    """Write a file as a model does: compressed, a chunk for each step."""
    import netCDF4

    values = np.random.default_rng(1).random((steps, 90, 180), "f4").cumsum(2)
    with netCDF4.Dataset(path, "w") as file:
        for name, count in (("time", None), ("lat", 90), ("lon", 180)):
            file.createDimension(name, count)
        for name in ("temperature", "wind"):
            how = {"zlib": True, "complevel": 4, "chunksizes": (1, 90, 180)}
            file.createVariable(name, "f4", ("time", "lat", "lon"), **how)[:] = values


def transcript(page):
    """Return each command that a page prints with a prompt, and the lines below it."""
    text = (REPOSITORY / "docs" / page).read_text(encoding="utf-8")
    (block,) = re.findall(r"^```console\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(re.split(r"\s+# ", first)[0], below) for first, *below in map(str.splitlines, parts)]


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_the_printed_way_from_a_clone_to_an_answer_can_be_gone(tmp_path):
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", REPOSITORY, clone], check=True, timeout=300)
    write_netcdf(clone / "run-42.nc")
    steps = transcript("start.md")
    assert len(steps) > 6
    follow(steps, clone, timeout=1500)


def test_five_commands_lead_from_a_clone_to_a_decision_about_a_file(tmp_path):
    write_netcdf(tmp_path / "run-42.nc", steps=2)
    make, enter, *steps = transcript("tutorial-scientist.md")
    assert (make[0], enter[0], len(steps)) == ("make env", ". .build/env.sh", 3)
    (init, shown), *rest = steps
    less = "s/^time_budget: .*/repetitions: 7/; s/sync/close/; s/codec: .*/codec: none/"
    less += "; /- .1, 45, 90./d"  # the chunks of the file alone
    short = f"{init}; sed -i '{less}' mine.yaml"
    follow([(short, shown), *rest], tmp_path, timeout=300)


def follow(steps, directory, timeout):
    """Run the commands of a transcript in one shell, and find the lines that it has below each."""
    script = "\n".join(f"echo '<<{n}>>'; {command}" for n, (command, _) in enumerate(steps))
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=directory, env=environment(PYTHONPATH=None),
        capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    printed = re.split(r"^<<\d+>>\n", done.stdout, flags=re.MULTILINE)[1:]
    for (command, below), text in zip(steps, printed, strict=True):
        lines = iter([*text.splitlines(), *done.stderr.splitlines()])
        for line in below:
            told = line.rstrip("…").rstrip()  # what follows differs from run to run
            # A busy machine has another answer.
            wanted = ("USE ", "NO DECISION: ", "NO ANSWER: ") if told == "USE" else (told,)
            found = next((one for one in lines if any(w in one for w in wanted)), None)
            assert found is not None, f"{command}: {line}\n{text}"
            if told == "USE" and "USE" not in found:
                break  # nor does a program follow


@pytest.mark.parametrize("ranks", sampled([1, 2], 2))
def test_an_experiment_of_a_file_runs_with_its_chunks_and_filters(tmp_path, ranks):
    write_netcdf(tmp_path / "run-42.nc", steps=2)
    draft = draft_experiment(tmp_path / "run-42.nc")
    (tmp_path / "x.yaml").write_text(draft.text)
    told = ["run", "x.yaml", "--out", "out", "--scratch", ".", "--set", "repetitions=1",
            "--set", "warmup=0", "--set", "durability=close"]  # fmt: skip
    done = pffbench_cli(*told, cwd=tmp_path, ranks=ranks)
    assert done.status == 0, done.said
    record = RunRecord.load(tmp_path / "out")
    assert record.valid is True
    stored = {
        (entry.backend, tuple(entry.stored_as.chunks), entry.stored_as.codec)
        for entry in record.cases.values() if not entry.raw
    }  # fmt: skip
    assert stored == {
        (backend, chunks, codec)
        for backend in ("hdf5", "netcdf4", "zarr")
        for chunks in ((1, 90, 180), (1, 45, 90))
        for codec in ("gzip 4 byte", "none")
    }
