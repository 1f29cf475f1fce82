"""What the doctor makes of plain facts, without MPI and without looking at this machine."""

import io
import json
import os
import sys
from dataclasses import asdict, replace

import pytest

from launch import REPOSITORY
from pffbench.backends.array_spec import EVERY_LAYOUT, EVERY_TRANSFER, Capabilities
from pffbench.backends.registry import backend_class
from pffbench.backends.shared_files import mentions
from pffbench.doctor import (
    backends,
    checks,
    finding,
    io_test,
    libraries,
    locks,
    machine,
    mpi_stack,
    scratch,
)
from pffbench.doctor.finding import Ability, Finding, Report, looked_at
from pffbench.doctor.installation import Installation, kind_of
from pffbench.doctor.libraries import Library, numbers
from pffbench.parallel.clock import Floor
from pffbench.parallel.launcher import speaks_for_all
from pffbench.run.output import best_effort_output
from pffbench.storage.filesystem import FileSystem

sys.path.insert(0, str(REPOSITORY / "docs" / "tools"))

from reference import pages


def statuses(findings):
    return [finding.status for finding in findings]


def texts(findings):
    return "\n".join(finding.text for finding in findings)


def assert_remedies(findings):
    """Whatever is wrong has a remedy beside it."""
    assert all(f.remedy for f in findings if f.status in ("warning", "problem")), findings


# --- findings and their print


def test_a_check_that_breaks_becomes_a_problem_and_keeps_what_it_found():
    def check():
        yield finding.ok("first")
        raise OSError("the disk is gone")

    first, second = looked_at("T", check)
    assert (first.topic, first.text) == ("T", "first")
    assert (second.topic, second.status) == ("T", "problem")
    assert "the disk is gone" in second.text
    assert second.remedy


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1.14.4-3", (1, 14, 4)), ("v5.0.1rc2", (5, 0, 1)), ("4.1", (4, 1)), ("unknown", ())],
)
def test_versions_are_read_as_numbers(text, expected):
    assert numbers(text) == expected


SOME = [
    Finding("A", "ok", "all well"),
    Finding("B", "problem", "broken", "mend it"),
    Finding("A", "warning", "odd", "look"),
    Finding("A", "unknown", "dark"),
]


def lines(*findings, width=80, abilities=()):
    """Return the lines of a report of findings, as the terminal shows them."""
    shown = Report("here", finding.grouped(findings), tuple(abilities))
    return [line for line, _ in finding.lines_of(shown, width)]


def test_findings_are_grouped_and_their_remedies_stand_below():
    shown = lines(*SOME)
    assert [line.strip() for line in shown if not line.startswith(" ")] == [
        "A", "B", "1 problem, 1 warning",
    ]  # fmt: skip
    assert shown.index("B") > next(i for i, line in enumerate(shown) if "dark" in line)
    broken = next(i for i, line in enumerate(shown) if "broken" in line)
    assert shown[broken].split() == ["✗", "problem", "broken"]
    assert shown[broken + 1].strip() == "→ mend it"


def test_what_follows_from_a_cause_stands_below_it_and_is_not_counted_again():
    cause = Finding("Libraries", "problem", "netCDF4 is gone", "install it", name="netCDF4")
    follows = Finding("Backends", "warning", "netcdf4: cannot run", because="netCDF4")
    apart = Finding("Backends", "warning", "x: cannot run", because="y")  # nobody names y
    shown = lines(follows, cause, apart, follows)
    assert [line.split() for line in shown[:4]] == [
        ["Libraries"], ["✗", "problem", "netCDF4", "is", "gone"],
        ["so:", "netcdf4:", "cannot", "run"], ["→", "install", "it"],
    ]  # fmt: skip
    assert shown[-1] == "1 problem, 1 warning"


def test_a_cause_keeps_the_consequences_that_it_came_with():
    cause = Finding("A", "absent", "no plugin", name="p", consequences=("no codec",))
    (found,) = finding.grouped([cause, Finding("B", "warning", "no speed", because="p")])
    assert found.consequences == ("no codec", "no speed")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_longer_than_the_terminal(width):
    long = Finding("A", "ok", "word " * 60 + "/a" * 99, "remedy " * 30, consequences=("x " * 99,))
    abilities = [Ability("tensorstore", layout, ("independent",)) for layout in backends.LAYOUTS]
    shown = lines(long, width=width, abilities=abilities)
    assert max(map(len, shown)) <= width
    assert len(shown) > 10


def test_what_runs_is_a_row_for_each_backend():
    abilities = [
        Ability("hdf5", "shared", ("independent", "collective"), tested=True),
        Ability("hdf5", "own", ("collective",), tested=True),
        Ability("hdf5", "file_per_process", (), reason="needs h5py"),
    ]
    shown = lines(abilities=abilities)
    assert shown[0] == finding.WHAT_RUNS
    assert shown[1].split() == ["shared", "own", "file_per_process"]
    assert shown[2].split() == ["hdf5", "yes", "collective", "no"]
    assert "tried just now); file_per_group can what shared can" in " ".join(map(str.strip, shown))


def test_a_report_can_be_written_as_json():
    whole = Report("here", finding.grouped(SOME), (Ability("hdf5", "own", ("independent",)),))
    told = json.loads(json.dumps(asdict(whole)))
    assert told["findings"][0] == asdict(SOME[0]) | {"consequences": []}
    assert told["abilities"][0]["transfers"] == ["independent"]


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        (SOME, "1 problem, 1 warning"),
        ([], "0 problems, 0 warnings"),
        (SOME[1:2] * 2, "2 problems, 0 warnings"),
    ],
)
def test_the_last_line_counts(findings, expected):
    assert Report("here", tuple(findings)).verdict == expected


def test_a_terminal_without_the_marks_still_gets_the_words(monkeypatch):
    said = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(said, encoding="ascii"))
    with best_effort_output(of_run=False):
        finding.print_report(Report("here", tuple(SOME)))
    shown = said.getvalue().decode()
    assert "+ ok" in shown
    assert "x problem" in shown
    assert "? unknown" in shown


# --- Python and libraries


@pytest.mark.parametrize(
    ("facts", "status", "said"),
    [
        ({"version": "1.0", "commit": None, "dirty": None}, "ok", "installed"),
        ({"version": "1.0", "commit": "0123456789abcdef", "dirty": False}, "ok", "0123456789ab"),
        ({"version": "1.0", "commit": "0123456789abcdef", "dirty": True}, "warning", "changes"),
    ],
)
def test_uncommitted_changes_are_warned_of(facts, status, said):
    (finding,) = libraries.judge_pffbench(facts)
    assert finding.status == status
    assert said in finding.text


HERE = Installation("pip", "/venv")
H5PY = Library("h5py", "3.16.0", "", {"mpi": True, "hdf5": "1.14.6"}, parallel=True)
NETCDF4 = Library(
    "netCDF4", "1.7.2", "", {"parallel4": True, "netcdf_c": "4.9.3", "hdf5": "1.14.6"}, True
)
GONE = Library("netCDF4", None, "No module named 'netCDF4'")
SERIAL = [replace(H5PY, parallel=False), replace(NETCDF4, parallel=False)]


def judge(*found, failing=None, where=HERE):
    return list(libraries.judge_libraries(found, failing or {}, where))


def test_parallel_builds_are_well():
    first, second = judge(H5PY, NETCDF4)
    assert (first.status, second.status) == ("ok", "ok")
    assert "parallel4" in second.text


def test_serial_builds_are_one_finding_and_limit_what_runs():
    (found,) = judge(*SERIAL)
    assert found.status == "warning"
    assert "h5py 3.16.0 and netCDF4 1.7.2: built without MPI" in found.text
    assert "docs/install.md" in found.remedy
    (alone,) = judge(SERIAL[1])
    assert "h5py" not in alone.text + alone.remedy


#: What the remedy of each kind of installation is recognised by.
TOOLS = {
    "own": "make env", "spack": "spack add", "conda": "conda install", "debian": "apt install",
    "modules": "module spider", "pip": "pip install",
}  # fmt: skip


#: The table that remedies name.
REMEDIES = (REPOSITORY / "docs/install.md").read_text().partition("### Remedies\n")[2]


@pytest.mark.parametrize("kind", TOOLS)
def test_remedies_are_those_of_the_installation(kind):
    where = Installation(kind, "/x", "MPICH")
    (serial,) = judge(*SERIAL, where=where)
    gone = Library("zarr", None, "No module named 'zarr'")
    (missing,) = judge(gone, failing={"zarr": {gone.error: ["a"]}}, where=where)
    assert serial.remedy.endswith(f"Remedies in docs/install.md, row {kind}")
    assert TOOLS[kind] in missing.remedy
    assert "zarr" in missing.remedy
    others = {"spack add", "conda install", "apt install", "module spider"} - {TOOLS[kind]}
    assert not [tool for tool in others if tool in missing.remedy]
    (row,) = (line for line in REMEDIES.splitlines() if line.startswith(f"| {kind} |"))
    assert TOOLS[kind] in row.split(" | ")[1]


@pytest.mark.parametrize(
    ("kind", "name", "remedy"),
    [
        ("debian", "tensorstore", "row debian"),
        ("debian", "hdf5plugin", "apt install python3-hdf5plugin"),
        ("spack", "icechunk", "row spack"),
        ("spack", "pandas", "row spack"),
        ("own", "versioned_hdf5", "row own"),
        ("own", "tensorstore", "make env"),
    ],
)
def test_no_package_is_named_that_the_packages_lack(kind, name, remedy):
    assert remedy in Installation(kind, "/x").to_install(name)


@pytest.mark.parametrize(
    ("kind", "environ", "made", "file"),
    [
        ("pip", {}, "", "lib/h5py/__init__.py"),
        ("pip", {"LOADEDMODULES": "gcc"}, "", "lib/h5py/__init__.py"),
        ("conda", {"LOADEDMODULES": "gcc"}, "env/conda-meta", "lib/h5py/__init__.py"),
        ("own", {}, "setup", "lib/h5py/__init__.py"),
        ("modules", {"LOADEDMODULES": "py-h5py"}, "", "/apps/h5py/__init__.py"),
        ("debian", {}, "", "/usr/lib/python3/dist-packages/h5py/__init__.py"),
        ("spack", {"SPACK_ENV": "/e"}, "", "lib/h5py/__init__.py"),
    ],
)
def test_the_kind_of_an_installation_is_found(tmp_path, kind, environ, made, file):
    prefix = tmp_path / "env"
    (tmp_path / made).mkdir(parents=True, exist_ok=True)
    if made == "setup":
        (tmp_path / "setup/bootstrap").write_text("")
    assert kind_of(environ, prefix, tmp_path / "base", [prefix / file]) == kind


def test_each_check_is_in_the_reference():
    (page,) = (text for name, text in pages() if name == "reference/commands.md")
    for check in checks.CHECKS:
        assert f"\n| {check.topic} | {check.asks} | {check.needs} |" in page


def test_an_import_that_fails_on_one_node_names_it():
    (found,) = judge(H5PY, failing={"h5py": {"ImportError: libhdf5.so.310": ["node7", "node7"]}})
    assert found.status == "problem"
    assert found.text.count("node7") == 1
    assert "libhdf5.so.310" in found.text


def test_a_library_that_is_not_there_is_called_not_installed():
    gone = Library("zarr", None, "ModuleNotFoundError: No module named 'zarr'")
    (found,) = judge(gone, failing={"zarr": {gone.error: ["a", "b"]}})
    assert found.status == "problem"
    assert "not installed" in found.text


def test_a_run_can_do_without_mpi4py():
    gone = Library("mpi4py", None, "ModuleNotFoundError: No module named 'mpi4py'")
    assert statuses(judge(gone, failing={"mpi4py": {gone.error: ["a"]}})) == ["warning"]


def test_what_is_absent_is_not_ok_and_says_what_it_is_for():
    versions = {"pandas": "3.0", "hdf5plugin": None}
    needs = {"hdf5plugin": ["hdf5: no codecs zstd"]}
    there, gone = libraries.judge_optional(versions, needs, HERE)
    assert (there.status, gone.status) == ("ok", "absent")
    assert "pandas 3.0" in there.text
    assert gone.consequences == ("hdf5: no codecs zstd",)
    assert gone.remedy == "`python -m pip install hdf5plugin`"


def test_optional_libraries_are_those_that_backends_name():
    uses = backends.needed_for() | {"h5py": [], "yaml": [], "not_there": ["mine: cannot run"]}
    versions = libraries.optional_versions(uses)
    assert {"hdf5plugin", "tensorstore", "pandas"} <= set(versions)
    assert "h5py" not in versions, "it is required"
    assert versions["yaml"] == "", "the distribution of it is called PyYAML"
    assert versions["not-there"] is None


def test_binaries_are_searched_for_what_only_a_parallel_build_has(tmp_path):
    (tmp_path / "a.so").write_bytes(b"\0" * 100)
    (tmp_path / "b.so").write_bytes(b"\0" * 100 + b"H5Pset_fapl_mpio\0")
    assert mentions([tmp_path / "a.so", tmp_path / "b.so"], b"H5Pset_fapl_mpio")
    assert not mentions([tmp_path / "a.so"], b"H5Pset_fapl_mpio")


def test_backends_that_cannot_run_name_their_cause():
    found = {f.text.partition(":")[0]: f for f in backends.look_at_backends({"netCDF4"})}
    assert set(found) == {"netcdf4"}
    assert (found["netcdf4"].status, found["netcdf4"].because) == ("warning", "netCDF4")
    optional = list(backends.look_at_backends({"tensorstore"}))
    assert "absent" in {f.status for f in optional if f.text.startswith("tensorstore")}


def can(broken=(), worked=None, mpi=True):
    """Return the transfers of each backend and layout."""
    found = backends.abilities(set(broken), worked, mpi)
    return {(ability.backend, ability.layout): ability for ability in found}


def test_what_runs_follows_from_the_libraries():
    whole = can()
    assert whole["hdf5", "shared"].transfers == ("independent", "collective")
    assert whole["zarr", "shared"].transfers == ("independent",)
    assert "null" not in {backend for backend, _ in whole}  # it keeps nothing
    assert not can({"netCDF4"})["netcdf4", "file_per_process"].transfers
    alone = can({"mpi4py"}, mpi=False)
    assert alone["hdf5", "file_per_process"].transfers
    assert alone["hdf5", "shared"].reason == "needs MPI"
    assert not alone["mpiio", "file_per_process"].transfers


def test_what_runs_is_what_was_tried():
    tried = can(worked={"hdf5": {"independent"}})
    assert tried["hdf5", "own"].transfers == ("independent",)
    assert tried["hdf5", "own"].tested
    assert not tried["zarr", "shared"].transfers
    assert tried["zarr", "file_per_process"].transfers  # which is not tried


def test_serial_libraries_leave_a_file_for_each_process(monkeypatch):
    monkeypatch.setattr(backends, "built_for_mpi", lambda name: False if name == "h5py" else None)
    (found,) = (f for f in backends.look_at_backends(set()) if f.text.startswith("hdf5"))
    assert found.because == libraries.SERIAL
    limited = can()
    assert limited["hdf5", "file_per_process"].transfers
    assert "without MPI" in limited["hdf5", "own"].reason


# --- HDF5


def test_one_hdf5_for_both_is_well():
    (found,) = mpi_stack.judge_copies(["/usr/lib/libhdf5.so.310"], "1.14.6", "1.14.6", HERE)
    assert found.status == "ok"


def test_two_copies_of_hdf5_are_a_problem_even_of_one_version():
    copies = ["/usr/lib/libhdf5.so.310", "/venv/h5py.libs/libhdf5-2abc.so.310"]
    found = list(mpi_stack.judge_copies(copies, "1.14.6", "1.14.6", HERE))
    assert statuses(found) == ["problem"]
    assert "/venv/h5py.libs" in found[0].text
    assert_remedies(found)


def test_wheels_keep_an_hdf5_each_apart():
    copies = ["/v/h5py.libs/libhdf5-1.so.310", "/v/netCDF4.libs/libhdf5-2.so.310"]
    (found,) = mpi_stack.judge_copies(copies, "2.0.0", "1.14.6", HERE)
    assert found.status == "ok"
    assert "2.0.0, 1.14.6" in found.text


def test_two_versions_of_hdf5_are_a_problem_even_where_no_library_is_seen():
    found = list(mpi_stack.judge_copies([], "1.14.6", "1.12.2", HERE))
    assert statuses(found) == ["problem"]


def test_nothing_is_claimed_of_static_libraries():
    assert statuses(mpi_stack.judge_copies([], "1.14.6", "1.14.6", HERE)) == ["unknown"]


MPICH = """MPICH Version:\t4.0.2
MPICH ABI:\t14:2:2
MPICH Device:\tch4:ucx
MPICH configure:\t--prefix=/usr --with-device=ch4:ucx
MPICH CC:\tgcc -O2
MPICH Custom Information:\t"""


def test_the_mpi_library_is_named_without_the_options_of_its_compilation():
    facts = {"mpi_library": MPICH, "mpi_standard": "4.0", "thread_level": "MULTIPLE"}
    assert texts(mpi_stack.judge_library(facts)) == (
        "MPICH Version: 4.0.2 MPICH ABI: 14:2:2 MPICH Device: ch4:ucx; MPI standard 4.0; "
        "thread level MULTIPLE"
    )


@pytest.mark.parametrize(
    ("vendor", "version", "large_counts", "expected"),
    [
        ("MPICH", "4.0.2", True, ["warning"]),
        ("MPICH", "4.0.2", False, []),
        ("MPICH", "4.1", True, []),
        ("MPICH", "3.4.3", True, []),
        ("Open MPI", "4.0.5", True, []),
    ],
)
def test_an_mpich_that_views_of_mpi4py_end_is_warned_of(vendor, version, large_counts, expected):
    found = list(mpi_stack.judge_views(vendor, version, large_counts=large_counts))
    assert statuses(found) == expected
    assert_remedies(found)


def test_two_mpi_libraries_are_a_problem():
    assert not list(mpi_stack.judge_mpi_copies(["/l/libmpi.so.40"]))
    (found,) = mpi_stack.judge_mpi_copies(["/l/libmpi.so.40", "/m/libmpi_gnu_123.so.12"])
    assert found.status == "problem"
    assert "/m/libmpi_gnu_123.so.12" in found.text
    assert "HDF5" not in found.text
    assert_remedies([found])


@pytest.mark.parametrize(
    ("version", "status"), [("1.10.1", "warning"), ("1.10.2", "ok"), ("2.0.0", "ok")]
)
def test_compressed_parallel_writes_need_hdf5_1_10_2(version, status):
    found = [f for f in mpi_stack.judge_parallel_hdf5(version, None) if "compressed" in f.text]
    assert statuses(found) == [status]
    assert_remedies(found)


@pytest.mark.parametrize(("version", "noted"), [("1.12.2", True), ("1.12.3", False)])
def test_large_calls_are_noted_before_hdf5_1_12_3(version, noted):
    assert ("2 GiB" in texts(mpi_stack.judge_parallel_hdf5(version, None))) is noted


def test_h5py_compiled_for_another_hdf5_is_warned_of():
    other = replace(H5PY, facts={**H5PY.facts, "hdf5_at_build": "1.12.2"})
    found = list(mpi_stack.look_at_hdf5(other, GONE, [], HERE))
    assert statuses(found) == ["warning", "ok"]
    assert "compiled for HDF5 1.12.2" in found[0].text
    assert_remedies(found)
    assert statuses(mpi_stack.look_at_hdf5(H5PY, GONE, [], HERE)) == ["ok"]


def test_the_parallel_abilities_of_hdf5_are_not_claimed_of_a_serial_h5py():
    assert "in parallel" in texts(mpi_stack.look_at_hdf5(H5PY, GONE, [], HERE))
    assert list(mpi_stack.look_at_hdf5(SERIAL[0], GONE, [], HERE)) == []


def test_subfiling_is_told():
    assert "subfiling: available" in texts(mpi_stack.judge_parallel_hdf5("1.14.6", True))
    assert statuses(mpi_stack.judge_parallel_hdf5("2.0.0", False)) == ["ok", "absent"]


# --- MPI and launcher


def mpi_io(**facts):
    return {"library": "Open MPI", "library_version": "4.1.4", "component": "ompio", **facts}


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (mpi_io(), ["ok", "warning", "warning"]),
        (mpi_io(component="romio321"), ["ok"]),
        (mpi_io(library_version="4.1.7"), ["ok", "warning"]),
        (mpi_io(library_version="5.0.3"), ["ok"]),
        (mpi_io(library="MPICH", library_version="4.2", component="romio"), ["ok"]),
        (mpi_io(component=None), ["unknown"]),
        (mpi_io(error="no such directory"), ["problem"]),
    ],
)
def test_defects_of_ompio_are_warned_of(facts, expected):
    found = list(mpi_stack.judge_mpi_io(facts))
    assert statuses(found) == expected
    assert_remedies(found)
    overlaps = [finding for finding in found if "a map with overlaps is refused" in finding.text]
    assert len(overlaps) == (facts.get("component") == "ompio" and "error" not in facts
                             and facts["library_version"].startswith("4"))  # fmt: skip


def test_hints_are_named():
    assert "cb_nodes=4" in texts(mpi_stack.judge_mpi_io(mpi_io(hints={"cb_nodes": "4"})))


def test_ranks_that_share_cores_are_warned_of():
    assert list(mpi_stack.judge_cores(4, 4, {}, "Open MPI")) == []
    (unset,) = mpi_stack.judge_cores(8, 4, {}, "Open MPI")
    assert unset.status == "warning"
    assert "mpi_yield_when_idle=1" in unset.remedy
    yielding = {"OMPI_MCA_mpi_yield_when_idle": "1"}
    (set_,) = mpi_stack.judge_cores(8, 4, yielding, "Open MPI")
    assert "mpi_yield_when_idle" not in set_.remedy
    (mpich,) = mpi_stack.judge_cores(8, 4, {}, "MPICH")
    assert "OMPI" not in mpich.text + mpich.remedy


@pytest.mark.parametrize(
    ("claim", "size", "status"),
    [
        (None, 1, "ok"),
        (None, 4, "ok"),
        ((4, "PMI_SIZE"), 4, "ok"),
        ((64, "SLURM_STEP_NUM_TASKS"), 1, "problem"),
        ((64, "OMPI_COMM_WORLD_SIZE"), 1, "problem"),
    ],
)
def test_singletons_are_found_out(claim, size, status):
    found = mpi_stack.judge_launcher(claim, size, "Open MPI")
    assert found.status == status
    assert_remedies([found])


def test_the_remedy_for_singletons_fits_launcher_and_library():
    slurm = (64, "SLURM_STEP_NUM_TASKS")
    assert "--mpi=pmix" in mpi_stack.judge_launcher(slurm, 1, "Open MPI").remedy
    assert "--mpi=pmi2" in mpi_stack.judge_launcher(slurm, 1, "MPICH").remedy
    other = mpi_stack.judge_launcher((4, "OMPI_COMM_WORLD_SIZE"), 1, "MPICH").remedy
    assert "mpiexec of MPICH" in other


@pytest.mark.parametrize(
    ("environ", "speaks"),
    [
        ({}, True),
        ({"SLURM_PROCID": "0"}, True),
        ({"SLURM_PROCID": "3"}, False),
        ({"PMI_RANK": "1"}, False),
        # an mpiexec inside a Slurm step: the ranks inherit the step's number
        ({"OMPI_COMM_WORLD_RANK": "0", "SLURM_PROCID": "2"}, True),
    ],
)
def test_only_the_first_of_many_singletons_speaks(environ, speaks):
    assert speaks_for_all(environ) is speaks


@pytest.mark.parametrize(
    "text",
    [
        "MPI plugin types are...\n\tnone\n\tpmi2\n\tpmix\n"
        "specific pmix plugin versions available: pmix_v4",
        "srun: MPI types are...\nsrun: none\nsrun: pmi2\nsrun: pmix\nsrun: pmix_v4",
    ],
)
def test_the_types_that_srun_names_are_read(text):
    assert mpi_stack.mpi_types(text) == ["none", "pmi2", "pmix", "pmix_v4"]


def test_srun_without_pmix_cannot_start_open_mpi():
    found = mpi_stack.judge_slurm_types(["none", "pmi2"], "Open MPI")
    assert found.status == "warning"
    assert "mpiexec" in found.remedy
    assert mpi_stack.judge_slurm_types(["none", "pmi2"], "MPICH").status == "ok"
    assert mpi_stack.judge_slurm_types(["none", "pmi2"], None).status == "ok"
    assert mpi_stack.judge_slurm_types(["none", "pmix_v3"], "Open MPI").status == "ok"


def test_an_srun_that_fails_is_quoted(tmp_path, monkeypatch):
    srun = tmp_path / "srun"
    srun.write_text("#!/bin/sh\necho 'srun: error: no host'\necho 'srun: fatal: no source' >&2\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    srun.chmod(0o755)
    assert statuses(mpi_stack.look_at_slurm(None)) == ["ok"]
    srun.write_text(srun.read_text() + "exit 1\n")
    (found,) = mpi_stack.look_at_slurm(None)
    assert found.status == "unknown"
    assert found.text.endswith("it failed: srun: fatal: no source")


# --- locks


def locked(refused, *tries):
    """Return what is said of flock; each try is on the other node or not, and what it met."""
    met = [(far, {"flock": flock, "fcntl": locks.SEEN}) for far, flock in tries]
    of_flock, of_fcntl = locks.judge_locks(refused, met)
    assert of_fcntl.status == "ok"
    assert_remedies([of_flock])
    return of_flock.status, of_flock.text


@pytest.mark.parametrize(
    ("tries", "told"),
    [
        ([(False, "seen"), (True, "seen")], ("ok", "seen by other nodes")),
        ([(False, "seen")], ("ok", "seen by other processes of this node")),
        ([(False, "seen"), (True, "unseen")], ("warning", "seen on one node only")),
        ([(False, "unseen"), (True, "seen")], ("warning", "not seen by other processes")),
        ([(True, "No locks available")], ("warning", "refused (No locks available)")),
    ],
)
def test_who_sees_a_lock_is_told(tries, told):
    status, text = told
    assert locked({}, *tries) == (status, f"locks by flock on a file: {text}")


def test_a_lock_that_cannot_be_taken_is_refused_with_the_variable_of_hdf5():
    refused = {"flock": "Function not implemented"}
    found, _ = locks.judge_locks(refused, [(True, {"flock": "unseen", "fcntl": "seen"})])
    assert found.text.endswith("refused (Function not implemented)")
    assert "HDF5_USE_FILE_LOCKING" in found.remedy


def test_locks_are_seen_by_another_process_until_they_are_released(tmp_path):
    with locks.held(str(tmp_path)) as refused:
        assert refused == {}
        assert locks.tried_by_another_process(str(tmp_path)) == {"flock": "seen", "fcntl": "seen"}
    assert locks.tried_by_another_process(str(tmp_path)) == {"flock": "unseen", "fcntl": "unseen"}


# --- scratch directory, node, environment, clock


def on(fs_type, **changes):
    facts = {
        "path": "/there", "mount_point": "/", "device": "d", "type": fs_type, "options": "rw",
        "kernel_type": fs_type,
        "total_bytes": 2**40, "free_bytes": 2**39, "free_inodes": 10**6, "block_size": 4096,
        "in_memory": fs_type == "tmpfs", "striping": None, **changes,
    }  # fmt: skip
    return FileSystem(**facts)


@pytest.mark.parametrize(
    ("fs_type", "nodes", "kind", "status"),
    [
        ("ext4", 1, "local", "ok"),
        ("xfs", 4, "local", "warning"),
        ("lustre", 4, "parallel", "ok"),
        ("gpfs", 4, "parallel", "ok"),
        ("nfs4", 1, "network", "warning"),
        ("sshfs", 1, "network", "warning"),
        ("moosefs", 4, "parallel", "ok"),
        ("fuse", 1, "FUSE, of a kind that is not known", "ok"),
        ("tmpfs", 1, "in memory", "warning"),
    ],
)
def test_the_kind_of_file_system_is_told(fs_type, nodes, kind, status):
    found = list(scratch.judge_filesystem(on(fs_type), nodes))
    assert kind in found[0].text
    assert found[0].status == status
    assert_remedies(found)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, "ok"),
        ({"free_inodes": None}, "ok"),
        ({"free_bytes": 2**29}, "warning"),
        ({"free_inodes": 500}, "warning"),
    ],
)
def test_little_room_is_warned_of(changes, status):
    assert list(scratch.judge_filesystem(on("ext4", **changes), 1))[1].status == status


@pytest.mark.parametrize(
    ("striping", "status"),
    [("stripe_count:  4\nstripe_size: 1048576", "ok"), ("unknown: lfs not found", "unknown")],
)
def test_striping_is_told_in_one_line(striping, status):
    found = list(scratch.judge_filesystem(on("lustre", striping=striping), 1))[-1]
    assert found.status == status
    assert "\n" not in found.text


def test_nodes_that_do_not_see_the_directory_are_named():
    assert list(scratch.judge_sight([], "a")) == []
    (found,) = scratch.judge_sight(["b", "c"], "a")
    assert found.status == "problem"
    assert "b, c" in found.text
    assert "--scratch" in found.remedy


@pytest.mark.parametrize(
    ("fraction", "in_memory", "status"),
    [(0.0, False, "ok"), (0.5, False, "warning"), (1.0, True, "warning")],
)
def test_a_cache_that_stays_is_warned_of(fraction, in_memory, status):
    found = scratch.judge_eviction(fraction, in_memory)
    assert found.status == status
    assert_remedies([found])


def a_node(**changes):
    return {
        "cpu_model": "CPU", "cores": 8, "threads": 16, "memory_bytes": 2**36, "governor": None,
        "transparent_huge_pages": "madvise", "load_average": [0.5, 0.5, 0.5], **changes,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "warned"),
    [
        ({}, ""),
        ({"load_average": [30.0, 20.0, 10.0]}, "others are using this machine"),
        ({"load_average": [11.0, 9.0, 8.0]}, ""),  # half of the threads, and the ranks themselves
        ({"governor": "powersave"}, "powersave"),
        ({"governor": "performance"}, ""),
    ],
)
def test_a_busy_or_slow_node_is_warned_of(changes, warned):
    found = [f for f in machine.judge_node(a_node(**changes), 4, None) if f.status != "ok"]
    assert len(found) == bool(warned)
    assert warned in texts(found)
    assert_remedies(found)


def test_the_memory_limit_of_the_job_is_told():
    assert "allows 4 GiB" in texts(machine.judge_node(a_node(), 4, 2**32))
    assert "allows" not in texts(machine.judge_node(a_node(), 4, None))


def test_equal_nodes_are_told_once():
    same, odd = Finding("Node", "ok", "16 cores"), Finding("Node", "warning", "load 9")
    found = list(machine.by_node([("a", same), ("a", odd), ("b", same), ("c", same)]))
    assert texts(found) == "all 3 nodes: 16 cores\na: load 9"
    assert texts(machine.by_node([("a", same)])) == "16 cores"


def test_nodes_with_other_loads_are_told_in_one_line():
    loads = {"a": 0.5, "b": 0.7, "c": 30.0}
    per_node = [
        (host, found)
        for host, load in loads.items()
        for found in machine.judge_node(a_node(load_average=[load]), 4, None)
        if "load" in found.text
    ]
    little, much = machine.by_node(per_node)
    assert (little.status, much.status) == ("ok", "warning")
    assert little.text.startswith("a, b: load over the last minute: at most 12 on 16 threads")
    assert much.text.startswith("c: load over the last minute: 30.0")


def test_variables_that_change_io_are_listed():
    environ = {
        "HDF5_USE_FILE_LOCKING": "FALSE", "OMPI_MCA_io": "romio321", "ROMIO_HINTS": "/h",
        "OMPI_MCA_iof_base": "x", "HOME": "/root", "LD_PRELOAD": "/l/libdarshan.so",
        "HDF5_PLUGIN_PATH": "/p", "H5FD_SUBFILING_SUBFILE_PREFIX": "/s", "PFFBENCH_SCRATCH": "/t",
    }  # fmt: skip
    found = list(machine.judge_environment(environ))
    said = texts(found)
    assert "HDF5_USE_FILE_LOCKING=FALSE" in said
    assert "OMPI_MCA_io=romio321" in said
    assert "ROMIO_HINTS=/h" in said
    assert "HDF5_PLUGIN_PATH=/p" in said
    assert "H5FD_SUBFILING_SUBFILE_PREFIX=/s" in said
    assert "PFFBENCH_SCRATCH=/t" in said
    assert "iof_base" not in said
    assert "HOME" not in said
    assert [f.text for f in found if f.status == "warning"] == [
        "LD_PRELOAD=/l/libdarshan.so: Darshan stands between the program and its I/O"
    ]
    assert_remedies(found)


def test_where_libraries_lie_changes_no_io():
    """Modules name it, and the set-up of this project its launcher."""
    places = (
        "HOME", "HDF5_DIR", "HDF5_ROOT", "HDF5_INCLUDEDIR", "NETCDF_DIR", "NETCDF_FORTRAN_HOME",
        "PNETCDF_DIR", "DARSHAN_ROOT", "HDF5_VERSION", "HDF5_MPI", "PFFBENCH_MPIEXEC",
    )  # fmt: skip
    (found,) = machine.judge_environment(dict.fromkeys(places, "/x"))
    assert (found.status, found.text) == ("ok", "no variable is set that changes I/O")


def test_another_preloaded_library_is_not_said_to_do_io():
    (found,) = machine.judge_environment({"LD_PRELOAD": "/l/libjemalloc.so"})
    assert "may stand between" in found.text


@pytest.mark.parametrize(("barrier", "status"), [(1e-5, "ok"), (0.15, "warning")])
def test_a_slow_barrier_is_warned_of(barrier, status):
    found = machine.judge_floor(Floor(1e-7, barrier, 5e-8), 16)
    assert found.status == status
    assert "50 ns" in found.text


# --- the trial


def test_only_what_a_backend_claims_is_tried():
    codecs = frozenset({"none", "gzip"})
    both = Capabilities(layouts=EVERY_LAYOUT, transfers=EVERY_TRANSFER, codecs=codecs)
    names = ["independent", "collective", "collective with gzip"]
    assert [way.name for way in io_test.ways_of(both)] == names
    alone = Capabilities(layouts=EVERY_LAYOUT, codecs=codecs)
    assert [way.name for way in io_test.ways_of(alone)] == ["independent"]
    assert io_test.ways_of(Capabilities(codecs=codecs)) == []
    assert io_test.ways_of(Capabilities(layouts=EVERY_LAYOUT, discards=True)) == []


def test_a_failed_trial_is_a_problem_but_compression_can_be_done_without():
    plain, _, packed = io_test.ways_of(backend_class("hdf5").capabilities)
    found = [io_test.judge_failure(backend_class("hdf5"), way, "broken") for way in (plain, packed)]
    assert statuses(found) == ["problem", "warning"]
    assert_remedies(found)
    assert "MPI-IO" in found[0].remedy
    assert "MPI-IO" not in io_test.judge_failure(backend_class("zarr"), plain, "broken").remedy
