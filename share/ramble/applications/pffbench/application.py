"""A Ramble application: pffbench, its times and rates as figures of merit, and its verdict.

See docs/other-programs.md for a workspace that uses it.
"""

from ramble.appkit import *  # noqa: F403 -- as all applications of Ramble begin


class Pffbench(ExecutableApplication):  # noqa: F405
    """HDF5, netCDF4 and Zarr in parallel, by pffbench."""

    name = "pffbench"
    tags("synthetic-benchmarks", "IO")  # noqa: F405

    # Paths may hold spaces, and without an experiment there must be no word for it.
    executable(  # noqa: F405
        "experiment", ["set -- '{experiment_file}'", 'test -n "$1" || shift'], use_mpi=False
    )
    executable(  # noqa: F405
        "pffbench",
        "'{python}' -m pffbench run \"$@\" --out '{experiment_run_dir}/results' --fom",
        use_mpi=True,
    )
    workload("run", executables=["experiment", "pffbench"])  # noqa: F405
    for _name, _default, _what in (
        ("python", "python3", "Python of the environment that pffbench is in"),
        ("experiment_file", "", "experiment; the default one when empty"),
    ):
        workload_variable(_name, default=_default, description=_what, workloads=["run"])  # noqa: F405

    _log = "{experiment_run_dir}/results/fom.txt"
    figure_of_merit(  # noqa: F405
        "time of {phase}", log_file=_log, units="s", group_name="value",
        fom_regex=r"FOM (?P<phase>[^=\s]+)\.time=(?P<value>\S+) s$",
    )  # fmt: skip
    figure_of_merit(  # noqa: F405
        "rate of {phase}", log_file=_log, units="MiB/s", group_name="value",
        fom_regex=r"FOM (?P<phase>[^=\s]+)\.rate=(?P<value>\S+) MiB/s$",
    )  # fmt: skip
    figure_of_merit(  # noqa: F405
        "verdict {flag}", log_file=_log, units="", group_name="value",
        fom_regex=r"FOM (?P<flag>[^=\s]+)=(?P<value>\S+) bool$",
    )  # fmt: skip
    success_criteria("valid", mode="string", match=r"FOM valid=1 .*", file=_log)  # noqa: F405
