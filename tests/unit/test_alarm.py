"""The alarm by which a rank ends that nothing else ends."""

import signal
import subprocess
import sys

from launch import environment

RANK = """
import ctypes, sys, time
from pffbench.job import alarm
alarm.MARGIN, alarm._AGAIN = 0.5, 0.0
alarm.write_stack_at_alarm()
mine = alarm.Alarm()
mine.begin(0.5)
def stuck():
    ctypes.PyDLL(None).sleep(100)
def busy():
    for _ in range(15):
        time.sleep(0.1)
        mine.step()
    mine.end()
    time.sleep(1.2)
globals()[sys.argv[1]]()
"""


def ended(what):
    return subprocess.run(
        [sys.executable, "-c", RANK, what], env=environment(), capture_output=True, text=True,
        timeout=90, check=False,
    )  # fmt: skip


def test_a_rank_that_is_stuck_writes_its_stack_and_ends():
    done = ended("stuck")
    assert done.returncode == -signal.SIGALRM
    assert "in stuck" in done.stderr


def test_a_rank_whose_steps_end_in_time_goes_on():
    done = ended("busy")
    assert (done.returncode, done.stderr) == (0, "")
