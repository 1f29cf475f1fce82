"""Run commands with small file systems in memory; started in a namespace of mounts of its own.

    python small_disks.py JSON

See `run_on_small_disks` in tests/faults.py. What is mounted vanishes with this process, so every
place is copied after each step.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path


def mount(place, options):
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "small", place], check=True)


def prepare(step):
    for place, what in step["before"].items():
        for name in what.get("remove", []):
            Path(place, name).unlink()
        if "options" in what:
            subprocess.run(["mount", "-o", f"remount,{what['options']}", place], check=True)


def run(step):
    done = subprocess.run(
        step["command"], env={**os.environ, **step["environment"]}, capture_output=True, text=True,
        timeout=120, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return {"status": done.returncode, "stdout": done.stdout, "stderr": done.stderr}


told = json.loads(sys.argv[1])
for place, size in told["places"].items():
    mount(place, f"size={size},mode=700")
answers = []
for number, step in enumerate(told["steps"]):
    prepare(step)
    answers.append(run(step))
    for place in told["places"]:
        shutil.copytree(place, Path(told["kept"], str(number), Path(place).name), symlinks=True,
                        ignore=shutil.ignore_patterns("filler"))  # fmt: skip
print(json.dumps(answers))
