"""What the doctor makes of plain facts, without MPI and without looking at this machine."""

import os
import sys
from importlib import import_module

import pytest
from msgspec.structs import replace

from launch import REPOSITORY
from pffbench.backends.registry import backend_class
from pffbench.backends.shared_files import mentions
from pffbench.doctor import libraries, locks, mpi_stack, node, scratch, trial
from pffbench.doctor.examination import CHECKS, CHECKS_OF_SCRATCH
from pffbench.doctor.finding import Finding, lines_of, look_at, ok
from pffbench.doctor.installation import Installation, kind_of
from pffbench.doctor.libraries import numbers
from pffbench.doctor.subject import Subject
from pffbench.job.launcher import speaks_for_all
from pffbench.mpi.topology import Topology
from pffbench.observe.clock import Floor
from pffbench.record.run_json import FailureEntry, RunRecord
from pffbench.storage.filesystem import FileSystem
from sharing import keys_of

sys.path.insert(0, str(REPOSITORY / "docs" / "tools"))

from reference import pages

HERE = Installation("pip", "/venv")
LIBRARIES = {
    "mpi4py": {"version": "4.1.2", "imported": True, "mpi_library": "Open MPI v5.0.3, ident: 5",
               "mpi_standard": "3.1", "thread_level": "MULTIPLE"},
    "numpy": {"version": "2.4.6", "imported": True},
    "h5py": {"version": "3.16.0", "imported": True, "hdf5": "1.14.6", "hdf5_at_build": "1.14.6"},
    "netCDF4": {"version": "1.7.2", "imported": True, "netcdf_c": "4.9.3", "hdf5": "1.14.6",
                "pnetcdf": False},
    "zarr": {"version": "3.1.6", "imported": True},
    "numcodecs": {"version": "0.16.6", "imported": True},
}  # fmt: skip


def a_subject(*, loaded=None, pffbench=None, changes=None, **facts):
    """Return facts of a machine on which nothing is wrong, with changes of its libraries."""
    known = {name: {**own, **(changes or {}).get(name, {})} for name, own in LIBRARIES.items()}
    software = {
        "libraries": known,
        "loaded": loaded or {},
        "pffbench": pffbench or {"version": "1.0", "commit": None, "dirty": None},
    }
    return Subject(installation=facts.pop("installation", HERE), software=software, **facts)


def statuses(findings):
    return [finding.status for finding in findings]


def texts(findings):
    return "\n".join(finding.text for finding in findings)


def assert_remedies(findings):
    """Whatever is wrong has a remedy beside it."""
    assert all(f.remedy for f in findings if f.status in ("warning", "problem")), findings


@pytest.fixture(autouse=True)
def parallel(monkeypatch):
    """Take h5py and netCDF4 for built with MPI, unless a test says otherwise."""
    serial = set()
    for module in (libraries, mpi_stack, import_module("pffbench.backends.shared_files")):
        monkeypatch.setattr(
            module, "built_for_mpi",
            lambda name: name not in serial if name in ("h5py", "netCDF4") else None,
        )  # fmt: skip
    import_module("pffbench.backends.shared_files").serial_library.cache_clear()
    yield serial
    import_module("pffbench.backends.shared_files").serial_library.cache_clear()


# --- findings and their print


def test_a_check_that_breaks_becomes_a_problem_and_keeps_what_it_found():
    def check():
        yield ok("first")
        raise OSError("the disk is gone")

    first, second = look_at("T", check)
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


def test_consequences_and_the_remedy_are_below_their_cause():
    shown = lines_of(Finding("A", "problem", "netCDF4 is gone", "install it", ("no netcdf4",)))
    assert [line.split() for line in shown] == [
        ["✗", "problem", "netCDF4", "is", "gone"], ["so:", "no", "netcdf4"], ["→", "install", "it"],
    ]  # fmt: skip


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_longer_than_the_terminal(width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    long = Finding("A", "ok", "word " * 60 + "/a" * 99, "remedy " * 30, ("x " * 99,))
    shown = list(lines_of(long))
    assert max(map(len, shown)) <= min(width, 110)
    assert len(shown) > 5


def test_each_check_is_in_the_reference():
    (page,) = (text for name, text in pages() if name == "reference/commands.md")
    for topic, check in (*CHECKS, *CHECKS_OF_SCRATCH):
        assert f"\n| {topic} | {check.__doc__.splitlines()[0]} |" in page


# --- Python and libraries


@pytest.mark.parametrize(
    ("facts", "status", "said"),
    [
        ({"version": "1.0", "commit": None, "dirty": None}, "ok", "1.0"),
        ({"version": "1.0", "commit": "0123456789abcdef", "dirty": False}, "ok", "0123456789ab"),
        ({"version": "1.0", "commit": "0123456789abcdef", "dirty": True}, "warning", "changes"),
    ],
)
def test_uncommitted_changes_are_warned_of(facts, status, said):
    _, found = libraries.check_python(a_subject(pffbench=facts))
    assert found.status == status
    assert said in found.text


def required(**facts):
    """Return the findings on the required libraries that are not well."""
    return [f for f in libraries.check_required(a_subject(**facts)) if f.status != "ok"]


def test_parallel_builds_are_well():
    found = list(libraries.check_required(a_subject()))
    assert statuses(found) == ["ok"] * 6
    assert "netCDF4 1.7.2 with parallel4, on netCDF-C 4.9.3, HDF5 1.14.6" in texts(found)


def test_serial_builds_are_one_finding_and_limit_what_runs(parallel):
    parallel.update({"h5py", "netCDF4"})
    (found,) = required()
    assert found.status == "warning"
    assert "h5py 3.16.0 and netCDF4 1.7.2: built without MPI" in found.text
    assert "docs/install.md" in found.remedy
    assert found.consequences == tuple(
        f"{name}: a file for each process only" for name in ("hdf5", "netcdf4", "netcdf3")
    )
    parallel.remove("h5py")
    (alone,) = required()
    assert "h5py" not in alone.text + alone.remedy


#: What the remedy of each kind of installation is recognised by.
TOOLS = {
    "own": "make env", "spack": "spack add", "conda": "conda install", "debian": "apt install",
    "modules": "module spider", "pip": "pip install",
}  # fmt: skip
#: The table that remedies name.
REMEDIES = (REPOSITORY / "docs/install.md").read_text().partition("### Remedies\n")[2]
GONE = {"zarr": {"ModuleNotFoundError: No module named 'zarr'": ["a", "b"]}}


@pytest.mark.parametrize("kind", TOOLS)
def test_remedies_are_those_of_the_installation(kind, parallel):
    parallel.add("h5py")
    where = Installation(kind, "/x")
    missing, serial = required(installation=where, errors=GONE, changes={"zarr": {"version": None}})
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


def test_an_import_that_fails_on_one_node_names_it():
    (found,) = required(errors={"h5py": {"ImportError: libhdf5.so.310": ["node7", "node7"]}})
    assert found.status == "problem"
    assert found.text.count("node7") == 1
    assert "libhdf5.so.310" in found.text
    assert {"the backend hdf5 cannot run", "no run can be recorded"} <= {*found.consequences}


def test_a_library_that_is_not_there_is_called_not_installed():
    (found,) = required(errors=GONE, changes={"zarr": {"version": None}})
    assert (found.status, "not installed" in found.text) == ("problem", True)


def test_a_run_can_do_without_mpi4py():
    (found,) = required(errors={"mpi4py": {"ImportError: libmpi.so.40": ["a"]}})
    assert found.status == "warning"
    assert found.consequences == ("runs have one process", "the backend mpiio cannot run")


def test_optional_libraries_have_what_they_are_for(monkeypatch):
    class Mine(backend_class("null")):
        name = "mine"
        libraries = ("yaml", "not_there", "h5py")

    monkeypatch.setattr(libraries, "loadable_backends", lambda: [Mine])
    there, *missing = libraries.check_optional(a_subject())
    assert (there.status, "yaml" in there.text) == ("ok", True)  # the distribution is called PyYAML
    assert "h5py" not in there.text, "it is required"
    (gone,) = (found for found in missing if found.text.startswith("not-there,"))
    assert (gone.status, gone.consequences) == ("absent", ("the backend mine cannot run",))
    assert gone.remedy == "`python -m pip install not-there`"


def test_a_backend_of_another_package_that_cannot_be_loaded_is_a_problem(monkeypatch):
    assert not list(libraries.check_plugins(a_subject()))
    monkeypatch.setattr(libraries, "backend_names", lambda: ("hdf5", "mine"))
    (found,) = libraries.check_plugins(a_subject())
    assert found.status == "problem"
    assert "the backend mine cannot be loaded: KeyError" in found.text
    assert [kind.name for kind in libraries.loadable_backends()] == ["hdf5"]


def test_binaries_are_searched_for_what_only_a_parallel_build_has(tmp_path):
    (tmp_path / "a.so").write_bytes(b"\0" * 100)
    (tmp_path / "b.so").write_bytes(b"\0" * 100 + b"H5Pset_fapl_mpio\0")
    assert mentions([tmp_path / "a.so", tmp_path / "b.so"], b"H5Pset_fapl_mpio")
    assert not mentions([tmp_path / "a.so"], b"H5Pset_fapl_mpio")


# --- HDF5

SHARED, WHEELS = ["/usr/lib/libhdf5.so.310"], ["/v/h5py.libs/a.so", "/v/netCDF4.libs/b.so"]


@pytest.mark.parametrize(
    ("copies", "netcdf4", "status", "said"),
    [
        (SHARED, "1.14.6", "ok", "share /usr/lib"),
        ([*SHARED, "/venv/h5py.libs/libhdf5-2abc.so"], "1.14.6", "problem", "/venv/h5py.libs"),
        (WHEELS, "1.12.2", "ok", "1.14.6, 1.12.2"),
        ([], "1.12.2", "problem", "netCDF4 uses HDF5 1.12.2"),
        ([], "1.14.6", "unknown", "may bring one each"),  # of static libraries
    ],
)
def test_there_is_one_hdf5_for_both(copies, netcdf4, status, said):
    subject = a_subject(loaded={"libhdf5": copies}, changes={"netCDF4": {"hdf5": netcdf4}})
    found = next(mpi_stack.check_hdf5(subject))
    assert (found.status, said in found.text) == (status, True)
    assert_remedies([found])


@pytest.mark.parametrize(
    ("version", "status"), [("1.10.1", "warning"), ("1.10.2", "ok"), ("2.0.0", "ok")]
)
def test_compressed_parallel_writes_need_hdf5_1_10_2(version, status):
    found = mpi_stack.judge_parallel_hdf5(version)
    assert found.status == status
    assert_remedies([found])


def test_h5py_compiled_for_another_hdf5_is_warned_of(parallel):
    other = {"h5py": {"hdf5_at_build": "1.12.2"}}
    found = list(mpi_stack.check_hdf5(a_subject(changes=other)))
    assert statuses(found) == ["unknown", "warning", "ok"]
    assert "compiled for HDF5 1.12.2" in found[1].text
    assert_remedies(found)


def test_the_parallel_abilities_of_hdf5_are_not_claimed_of_a_serial_h5py(parallel):
    assert "in parallel" in texts(mpi_stack.check_hdf5(a_subject()))
    parallel.add("h5py")
    assert "in parallel" not in texts(mpi_stack.check_hdf5(a_subject()))


# --- MPI and launcher

MPICH = """MPICH Version:\t4.0.2
MPICH ABI:\t14:2:2
MPICH Device:\tch4:ucx
MPICH configure:\t--prefix=/usr --with-device=ch4:ucx
MPICH CC:\tgcc -O2
MPICH Custom Information:\t"""


def test_the_mpi_library_is_named_without_the_options_of_its_compilation():
    facts = {"mpi_library": MPICH, "mpi_standard": "4.0", "thread_level": "MULTIPLE"}
    assert texts(mpi_stack.check_mpi(a_subject(changes={"mpi4py": facts}))) == (
        "MPICH Version: 4.0.2 MPICH ABI: 14:2:2 MPICH Device: ch4:ucx; MPI standard 4.0; "
        "thread level MULTIPLE"
    )


def test_two_mpi_libraries_are_a_problem():
    one = ["/l/libmpi.so.40"]
    assert statuses(mpi_stack.check_mpi(a_subject(loaded={"libmpi": one}))) == ["ok"]
    two = {"libmpi": [*one, "/m/libmpi_gnu_123.so.12"]}
    _, found = mpi_stack.check_mpi(a_subject(loaded=two))
    assert found.status == "problem"
    assert "/m/libmpi_gnu_123.so.12" in found.text
    assert_remedies([found])


def mpi_io(**facts):
    known = {"library": "Open MPI", "library_version": "4.1.4", "component": "ompio", **facts}
    return list(mpi_stack.check_mpi_io(a_subject(mpi_io=known)))


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, ["ok", "warning", "warning"]),
        ({"component": "romio321"}, ["ok"]),
        ({"library_version": "4.1.7"}, ["ok", "warning"]),
        ({"library_version": "5.0.3"}, ["ok"]),
        ({"library": "MPICH", "library_version": "4.2", "component": "romio"}, ["ok"]),
        ({"component": None}, ["unknown"]),
        ({"error": "no such directory"}, ["problem"]),
    ],
)
def test_defects_of_ompio_are_warned_of(facts, expected):
    found = mpi_io(**facts)
    assert statuses(found) == expected
    assert_remedies(found)
    overlaps = [finding for finding in found if "a map with overlaps is refused" in finding.text]
    assert len(overlaps) == (
        not {"component", "error"} & set(facts)
        and facts.get("library_version", "4.1.4").startswith("4")
    )


@pytest.mark.parametrize(
    ("vendor", "version", "large_counts", "expected"),
    [
        ("MPICH", "4.0.2", True, ["ok", "warning"]),
        ("MPICH", "4.0.2", False, ["ok"]),
        ("MPICH", "4.1", True, ["ok"]),
        ("MPICH", "3.4.3", True, ["ok"]),
        ("Open MPI", "4.0.5", True, ["ok"]),
    ],
)
def test_an_mpich_that_views_of_mpi4py_end_is_warned_of(
    vendor, version, large_counts, expected, monkeypatch
):
    monkeypatch.setattr(mpi_stack, "mentions", lambda *_: large_counts)
    found = mpi_io(library=vendor, library_version=version, component="romio")
    assert statuses(found) == expected
    assert_remedies(found)


def test_hints_are_named():
    assert "cb_nodes=4" in texts(mpi_io(hints={"cb_nodes": "4"}))


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
    assert mpi_stack.judge_slurm_types(["none", "pmi2"], "").status == "ok"
    assert mpi_stack.judge_slurm_types(["none", "pmix_v3"], "Open MPI").status == "ok"


def test_an_srun_that_fails_is_quoted(tmp_path, monkeypatch):
    srun = tmp_path / "srun"
    srun.write_text("#!/bin/sh\necho 'srun: error: no host'\necho 'srun: fatal: no source' >&2\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    srun.chmod(0o755)
    launched = {"PMI_SIZE": "4"}
    assert statuses(mpi_stack.check_launcher(a_subject(environ=launched))) == ["ok", "ok"]
    srun.write_text(srun.read_text() + "exit 1\n")
    _, found = mpi_stack.check_launcher(a_subject(environ=launched))
    assert found.status == "unknown"
    assert found.text.endswith("it failed: srun: fatal: no source")


# --- locks


def flock(refused, *tries):
    """Return the finding on flock; each try is on the other node or not, and its result."""
    met = [(far, {"flock": flock, "fcntl": locks.SEEN}) for far, flock in tries]
    of_flock, of_fcntl = locks.check_locks(a_subject(refused=refused, tries=met))
    assert of_fcntl.status == "ok"
    assert_remedies([of_flock])
    return of_flock


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
    found = flock({}, *tries)
    assert (found.status, found.text) == (status, f"locks by flock on a file: {text}")


def test_a_lock_that_cannot_be_taken_is_refused_with_the_variable_of_hdf5():
    found = flock({"flock": "Function not implemented"}, (True, "unseen"))
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
    found = list(scratch.judge_file_system(on(fs_type), nodes))
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
    assert list(scratch.judge_file_system(on("ext4", **changes), 1))[1].status == status


@pytest.mark.parametrize(
    ("striping", "status"),
    [("stripe_count:  4\nstripe_size: 1048576", "ok"), ("unknown: lfs not found", "unknown")],
)
def test_striping_is_told_in_one_line(striping, status):
    found = list(scratch.judge_file_system(on("lustre", striping=striping), 1))[-1]
    assert found.status == status
    assert "\n" not in found.text


def test_nodes_that_do_not_see_the_directory_are_named():
    assert list(scratch.check_directory(a_subject())) == []
    (found,) = scratch.check_directory(a_subject(blind=["b", "c"]))
    assert found.status == "problem"
    assert "b, c" in found.text
    assert "--scratch" in found.remedy


@pytest.mark.parametrize(
    ("fraction", "fs_type", "status"),
    [(0.0, "ext4", "ok"), (0.5, "ext4", "warning"), (1.0, "tmpfs", "warning")],
)
def test_a_cache_that_stays_is_warned_of(fraction, fs_type, status, monkeypatch):
    monkeypatch.setattr(scratch, "filesystem", lambda _: on(fs_type))
    (found,) = scratch.check_directory(a_subject(kept_in_cache=fraction))
    assert found.status == status
    assert_remedies([found])


def nodes(ranks=4, limit=None, cpus="0-15", vendor="Open MPI", environ=None, quota=None, **changes):
    """Return the findings on a node."""
    facts = {
        "host": "a", "cpu_model": "CPU", "cores": 8, "threads": 16, "memory_bytes": 2**36,
        "governor": None, "transparent_huge_pages": "madvise", "load_average": [0.5, 0.5, 0.5],
        **changes,
    }  # fmt: skip
    each = {"affinity": cpus, "memory_limit_bytes": limit, "cpu_quota": quota}
    return list(node.check_nodes(a_subject(
        ranks=[each] * ranks, nodes=[0] * ranks, hosts={0: facts}, vendor=vendor,
        environ=environ or {},
    )))  # fmt: skip


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
    found = [f for f in nodes(**changes) if f.status != "ok"]
    assert len(found) == bool(warned)
    assert warned in texts(found)
    assert_remedies(found)


def test_the_memory_limit_of_the_job_is_told():
    assert "allows 4 GiB" in texts(nodes(limit=2**32))
    assert "allows" not in texts(nodes())


def test_ranks_that_share_cores_are_warned_of():
    assert "share" not in texts(nodes(4, cpus="0-3"))
    unset = nodes(8, cpus="0-3")[-1]
    assert unset.status == "warning"
    assert "8 ranks share 4 cores" in unset.text
    assert "mpi_yield_when_idle=1" in unset.remedy
    yielding = {"OMPI_MCA_mpi_yield_when_idle": "1"}
    assert "mpi_yield_when_idle" not in nodes(8, cpus="0-3", environ=yielding)[-1].remedy
    mpich = nodes(8, cpus="0-3", vendor="MPICH")[-1]
    assert "OMPI" not in mpich.text + mpich.remedy


def test_ranks_that_share_the_quota_of_a_container_are_warned_of():
    assert "share" not in texts(nodes(4, cpus="0-15", quota=4.0))
    for ranks, told in ((2, "2 ranks share 0.5 processors"), (1, "1 rank shares 0.5 processors")):
        found = nodes(ranks, quota=0.5)[-1]
        assert (found.status, told in found.text) == ("warning", True)
        assert "the quota of their control group" in found.text
    assert_remedies([found])


def test_nodes_are_told_in_one_line_as_far_as_they_are_equal():
    same, odd = Finding("Node", "ok", "16 cores"), Finding("Node", "warning", "load 9")
    found = list(node.by_node([("a", same), ("a", odd), ("b", same), ("c", same)]))
    assert texts(found) == "all 3 nodes: 16 cores\na: load 9"
    assert texts(node.by_node([("a", same)])) == "16 cores"


def test_variables_that_change_io_are_listed():
    environ = {
        "HDF5_USE_FILE_LOCKING": "FALSE", "OMPI_MCA_io": "romio321", "ROMIO_HINTS": "/dev/null",
        "OMPI_MCA_iof_base": "x", "HOME": "/root", "LD_PRELOAD": "/l/libdarshan.so",
        "HDF5_PLUGIN_PATH": "/dev", "H5FD_SUBFILING_SUBFILE_PREFIX": "/s", "PFFBENCH_SCRATCH": "/t",
    }  # fmt: skip
    found = list(node.check_environment(a_subject(environ=environ)))
    said = texts(found)
    assert "HDF5_USE_FILE_LOCKING=FALSE" in said
    assert "OMPI_MCA_io=romio321" in said
    assert "ROMIO_HINTS=/dev/null" in said
    assert "HDF5_PLUGIN_PATH=/dev" in said
    assert "H5FD_SUBFILING_SUBFILE_PREFIX=/s" in said
    assert "PFFBENCH_SCRATCH=/t" in said
    assert "iof_base" not in said
    assert "HOME" not in said
    assert [f.text for f in found if f.status == "warning"] == [
        "LD_PRELOAD=/l/libdarshan.so: Darshan stands between the program and its I/O"
    ]
    assert_remedies(found)


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("HDF5_USE_FILE_LOCKING", "false", "export HDF5_USE_FILE_LOCKING=FALSE"),
        ("HDF5_USE_FILE_LOCKING", "best_effort", "export HDF5_USE_FILE_LOCKING=BEST_EFFORT"),
        ("HDF5_USE_FILE_LOCKING", "no", "unset HDF5_USE_FILE_LOCKING"),
        ("ROMIO_HINTS", "/no/hints", "correct the path"),
        ("HDF5_PLUGIN_PATH", "/no/a:/no/b", "correct the path"),
    ],
)
def test_a_value_that_the_library_ignores_is_warned_of(name, value, remedy):
    (found,) = node.check_environment(a_subject(environ={name: value}))
    assert found.status == "warning"
    assert found.text.startswith(f"set, and without effect: {name}={value} (")
    assert remedy in found.remedy


@pytest.mark.parametrize("value", ["FALSE", "0", "TRUE", "1", "BEST_EFFORT"])
def test_the_words_of_hdf5_are_not_warned_of(value):
    (found,) = node.check_environment(a_subject(environ={"HDF5_USE_FILE_LOCKING": value}))
    assert found.status == "ok"


def test_where_libraries_lie_changes_no_io():
    """Modules name it, and the set-up of this project its launcher."""
    places = (
        "HOME", "HDF5_DIR", "HDF5_ROOT", "HDF5_INCLUDEDIR", "NETCDF_DIR", "NETCDF_FORTRAN_HOME",
        "PNETCDF_DIR", "DARSHAN_ROOT", "HDF5_VERSION", "HDF5_MPI", "PFFBENCH_MPIEXEC",
    )  # fmt: skip
    (found,) = node.check_environment(a_subject(environ=dict.fromkeys(places, "/x")))
    assert (found.status, found.text) == ("ok", "no variable is set that changes I/O")


def test_another_preloaded_library_is_not_said_to_do_io():
    (found,) = node.check_environment(a_subject(environ={"LD_PRELOAD": "/l/libjemalloc.so"}))
    assert "may stand between" in found.text


@pytest.mark.parametrize(("barrier", "status"), [(1e-5, "ok"), (0.15, "warning")])
def test_a_slow_barrier_is_warned_of(barrier, status):
    (found,) = node.check_clock(a_subject(floor=Floor(1e-7, barrier, 5e-8)))
    assert found.status == status
    assert "50 ns" in found.text


# --- what runs

WAYS = [("hdf5", "one-shared", "independent"), ("hdf5", "one-shared", "collective"),
        ("zarr", "one-per_rank", "independent")]  # fmt: skip
FAILURE = FailureEntry(
    phase="write",
    rank=1,
    host="b",
    error="OSError: it broke",
    traceback="",
    ranks_failed=1,
    repetition=0,
)


def trial_of(*entries, reasons=(), status="finished"):
    """Return what is said of a run of 2 ranks; each entry is what one of the ways adds."""
    run = RunRecord.load(REPOSITORY / "docs" / "results" / "default")
    usual = next(iter(run.cases.values()))
    cases = {
        "-".join(way): replace(
            usual,
            parameters={"backend": way[0], **keys_of(way[1]), "transfer": way[2]},
            **entry,
        )
        for way, entry in zip(WAYS, entries, strict=True)
    }
    return replace(run, cases=cases, ranks=2, status=status, reasons=list(reasons))


def test_the_ways_that_work_are_named_by_backend():
    hdf5, zarr = trial.judge_trial(trial_of({}, {}, {}))
    assert statuses([hdf5, zarr]) == ["ok", "ok"]
    assert hdf5.text.startswith("HDF5 through h5py: 2 ranks wrote and read")
    assert hdf5.text.endswith("one-shared independent, one-shared collective")


def test_a_way_that_fails_or_brings_wrong_bytes_is_a_problem():
    found = trial_of({}, {"failure": FAILURE}, {"invalid": "0 of 8 bytes verified"})
    worked, failed, wrong = trial.judge_trial(found)
    assert statuses([worked, failed, wrong]) == ["ok", "problem", "problem"]
    assert failed.text.endswith(
        "one-shared collective: write failed on rank 1 (b): OSError: it broke"
    )
    assert "MPI-IO" in failed.remedy
    assert "0 of 8 bytes verified" in wrong.text
    assert "MPI-IO" not in wrong.remedy


def test_a_run_that_is_not_valid_or_not_complete_is_a_problem():
    found = list(trial.judge_trial(trial_of({}, {}, {}, reasons=["the clock is broken"])))
    assert [f.text for f in found if f.status == "problem"] == ["the clock is broken"]
    found = list(trial.judge_trial(trial_of({}, {}, {}, status="interrupted")))
    assert statuses(found) == ["ok", "ok", "problem"]


def can(no_mpi=None, tried=(), refusal=""):
    """Return the transfers of each backend and kind of files."""
    found = trial.abilities(Topology.even(2, 1), no_mpi, dict(tried), refusal)
    return {(one.backend, one.files): one for one in found}


def test_what_runs_is_what_the_planner_plans(parallel):
    whole = can()
    assert whole["hdf5", "one-shared"].transfers == ["independent", "collective"]
    assert whole["zarr", "one-shared"].transfers == ["independent"]
    assert "cannot do transfer collective" in whole["zarr", "one-shared"].reason
    assert "null" not in {backend for backend, _ in whole}  # it keeps nothing
    parallel.add("netCDF4")
    import_module("pffbench.backends.shared_files").serial_library.cache_clear()
    assert can()["netcdf4", "per_rank"].transfers
    assert "without MPI" in can()["netcdf4", "one-per_rank"].reason
    assert not can("no MPI")["mpiio", "per_rank"].transfers


def test_what_runs_is_what_was_tried():
    tried = can(tried={("hdf5", "one-shared", "independent"): "",
                       ("zarr", "one-per_rank", "independent"): "",
                       ("hdf5", "one-shared", "collective"): "it broke"})  # fmt: skip
    assert tried["hdf5", "one-shared"].transfers == ["independent"]
    assert tried["hdf5", "one-shared"].reason == "it broke"
    assert tried["hdf5", "one-per_rank"].transfers == ["independent", "collective"]
    assert tried["zarr", "one-per_rank"].transfers == ["independent"]
    assert not can(tried={("hdf5", "one-per_rank", "independent"): "it broke"})[
        "hdf5", "one-per_rank"
    ].transfers
    assert not any(one.transfers for one in can(refusal="no h5py").values())


def test_what_runs_is_a_row_for_each_backend():
    head, hdf5, *_ = trial.table_of([
        trial.Ability("hdf5", "one-shared", ["independent", "collective"]),
        trial.Ability("hdf5", "one-per_rank", ["collective"]),
        trial.Ability("hdf5", "per_rank", []),
    ])  # fmt: skip
    assert head.split() == ["one-shared", "one-per_rank", "per_rank"]
    assert hdf5.split() == ["hdf5", "yes", "collective", "no"]
