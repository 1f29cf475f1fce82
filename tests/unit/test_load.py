"""The load of the machine: what others used of it, and the word BUSY."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from drawn_runs import a_case, edit, timed_run
from pffbench.observe.machine import LoadMeter, MachineLoad
from pffbench.record.gather import STATE, Conditions, state_of
from pffbench.record.repetitions import MachineState, read_repetitions
from pffbench.results.load import busy, summarise_load
from pffbench.results.summary import summarise
from pffbench.storage.durability import Settled

CASES = (a_case("hdf5"), a_case("zarr"))


def machine(*ranks):
    """Return the state of a node of these ranks; the first one measures the load."""
    numbers = [Conditions(Settled(), load, cpu).numbers for load, cpu in ranks]
    return state_of(np.array(numbers, STATE), [0] * len(ranks))


def a_busy_run(directory, others, steal=None, seconds=0.3, cases=CASES):
    """Write a run in whose rounds other processes, and the host, took these parts."""
    times = [seconds] * len(others)
    timed_run(directory, {name: (times, times) for name, _ in cases}, cases)
    steal = steal or [0.0] * len(others)

    def disturb(one):
        place = one.round - 1
        return replace(one, machine=MachineState(busy_others=others[place], steal=steal[place]))

    return edit(directory, disturb)


def busy_lines(directory):
    return list(busy(summarise(directory).load))


def test_own_ranks_are_no_others():
    load = MachineLoad(busy=0.98, capacity=8.0)
    assert machine((load, 3.9), (None, 3.94)).busy_others == pytest.approx(0.0, abs=1e-9)


def test_the_rest_of_the_used_time_is_that_of_others():
    load = MachineLoad(busy=1.0, capacity=8.0)
    assert machine((load, 1.0), (None, 0.6)).busy_others == pytest.approx(0.8)


def test_nodes_are_judged_apart_by_their_own_processors():
    loads = [MachineLoad(busy=1.0, capacity=4.0), MachineLoad(busy=0.5, capacity=64.0)]
    numbers = [Conditions(Settled(), load, 4.0).numbers for load in loads]
    assert state_of(np.array(numbers, STATE), [0, 1]).busy_others == pytest.approx(0.5 - 4 / 64)


def test_the_kernel_s_ticks_become_parts_of_the_time(tmp_path):
    def tell(user, idle, steal, stalled):
        (tmp_path / "stat").write_text(f"cpu  {user} 0 0 {idle} 0 0 0 {steal} 0 0\n")
        (tmp_path / "pressure").mkdir(exist_ok=True)
        (tmp_path / "pressure" / "cpu").write_text(f"some avg10=0.00 total={stalled}\n")
        (tmp_path / "loadavg").write_text("3.50 1.00 1.00 2/300 4242\n")

    tell(1000, 5000, 10, 0)
    meter = LoadMeter(tmp_path)
    meter.begin()
    tell(1060, 5020, 30, 10**9)
    load = meter.since()
    assert (load.load, load.busy, load.steal) == (3.5, 0.6, 0.2)
    assert load.cpu_pressure == 1.0
    assert load.capacity > 0


def test_the_line_names_the_part_and_the_rounds(tmp_path):
    run = a_busy_run(tmp_path / "run", [0.8, 0.82, 0.02, 0.78, 0.8])
    (line,) = busy_lines(run)
    begin = "BUSY: others used 80% of the processors in 4 of 5 rounds; measure again"
    assert line.startswith(begin)


def test_stolen_time_is_named_apart(tmp_path):
    run = a_busy_run(tmp_path / "run", [0.0] * 4, [0.3, 0.3, 0.0, 0.3])
    (line,) = busy_lines(run)
    assert line.startswith("BUSY: the host of this machine used 30% of the processors in 3 of 4")


def test_a_run_that_compares_nothing_says_it_too(tmp_path):
    assert busy_lines(a_busy_run(tmp_path / "run", [0.5] * 3, cases=CASES[:1]))


@pytest.mark.parametrize("others", [[0.1] * 8, [0.9, *[0.05] * 7]], ids=["little", "once"])
def test_a_machine_that_is_seldom_or_little_used_is_not_called_busy(tmp_path, others):
    assert not busy_lines(a_busy_run(tmp_path / "run", others))


def test_rounds_shorter_than_the_kernel_s_ticks_are_not_judged(tmp_path):
    run = a_busy_run(tmp_path / "run", [0.5] * 6, seconds=0.01)
    assert summarise_load(read_repetitions(run)).rounds == 0
    assert not busy_lines(run)
