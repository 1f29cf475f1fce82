"""pffbench whose ranks lose the last of their stretches, when they write or exchange them."""

import sys

import pffbench.backends.file_layout as runs_of_file
import pffbench.mpi.exchange as exchange
from pffbench.__main__ import main
from pffbench.backends.file_layout import UnequalRuns
from pffbench.geometry.stretches import CommonRuns, Stretches, common_runs

write_unequal_runs = runs_of_file._write_unequal_runs


def write_all_but_one(descriptor, data, runs):
    fewer = UnequalRuns(runs.offsets[:-1], runs.length, runs.lengths[:-1])
    write_unequal_runs(descriptor, data, fewer)
    return runs.length


def all_but_one(stretches, box):
    return CommonRuns(*(values[:-1] for values in common_runs(stretches, box)))


def plant_in_netcdf():
    from pffbench.backends.netcdf4_store import NetCdf4Array

    stretch_writer = NetCdf4Array._stretch_writer

    def all_but_one_box(self, stretches, buffer, collective):
        fewer = Stretches.of(stretches.whole, stretches.offsets[:-1], stretches.lengths[:-1])
        return stretch_writer(self, fewer, buffer, collective)

    NetCdf4Array._stretch_writer = all_but_one_box


if __name__ == "__main__":
    runs_of_file._write_unequal_runs = write_all_but_one
    exchange.common_runs = all_but_one
    plant_in_netcdf()
    sys.exit(main())
