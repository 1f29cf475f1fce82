"""The definitions of containers: sections, shell and names of packages, without building them."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

CONTAINERS = Path(__file__).resolve().parents[2] / "containers"
DEFINITIONS = sorted(CONTAINERS.glob("*.def"))


def sections(definition):
    parts = re.split(r"^%(\w+)\n", definition.read_text(), flags=re.MULTILINE)
    return parts[0], dict(zip(parts[1::2], parts[2::2], strict=True))


def test_there_is_one_for_each_abi():
    assert [path.stem for path in DEFINITIONS] == ["mpich-abi", "openmpi"]


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda path: path.stem)
def test_it_has_the_sections_of_apptainer_and_they_are_shell(definition):
    head, parts = sections(definition)
    assert head.startswith("Bootstrap: docker\nFrom: debian:12\n")
    assert list(parts) == ["setup", "post", "runscript", "help"]
    for name in ("setup", "post", "runscript"):
        checked = subprocess.run(["bash", "-n"], input=parts[name], capture_output=True, text=True)
        assert (checked.returncode, checked.stderr) == (0, ""), name


@pytest.mark.skipif(not shutil.which("apt-cache"), reason="Debian alone knows Debian's packages")
@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda path: path.stem)
def test_debian_has_its_packages(definition):
    _, parts = sections(definition)
    post = parts["post"].replace("\\\n", " ")
    (names,) = re.findall(r"--no-install-recommends (.*)", post)
    known = subprocess.run(["apt-cache", "show", *names.split()], capture_output=True, text=True)
    found = set(re.findall(r"^Package: (\S+)$", known.stdout, re.MULTILINE))
    assert set(names.split()) == found, known.stderr


def test_the_python_of_a_container_is_that_of_the_image(tmp_path):
    tool = tmp_path / "apptainer"
    tool.write_text('#!/bin/bash\nprintf "%s\\n" "$@"\n')
    tool.chmod(0o755)
    environ = {
        **os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PFFBENCH_IMAGE": "/images/p.sif", "PFFBENCH_BIND": "/opt/cray",
    }  # fmt: skip
    command = [CONTAINERS / "python", "-c", "print(1, 2)"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "exec", "--bind", "/opt/cray", "/images/p.sif", "/opt/pffbench/.venv/bin/python",
        "-c", "print(1, 2)",
    ]  # fmt: skip
    del environ["PFFBENCH_IMAGE"]
    without = subprocess.run(command, env=environ, capture_output=True, text=True)
    assert without.returncode
    assert "PFFBENCH_IMAGE: is the path of an image" in without.stderr
