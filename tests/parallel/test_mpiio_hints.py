"""Hints under real MPI: asked, read back from the open file, and seen in who writes."""

from __future__ import annotations

import json
import re

import pytest

from launch import only_with_open_mpi, pffbench_cli, run_experiment

pytestmark = pytest.mark.parallel

RANKS = 4
#: Each rank's block lies in many pieces between those of the others, so that they collect.
BLOCKS = {"workload": "hyperslab", "shape": [16, 16, 16], "decomposition": "block",
          "transfer": "collective", "chunks": "contiguous"}  # fmt: skip
LIBRARIES = ("hdf5", "netcdf4", "mpiio")
#: All ranks of a node may collect: otherwise ROMIO takes one of each node, whatever cb_nodes says.
OF_ROMIO = {"romio_cb_write": "enable", "romio_cb_read": "enable", "cb_config_list": "*:*"}


def run_hints(directory, hints, env=None, ranks=RANKS, backends=LIBRARIES, **options):
    own = {name: {"hints": hints, **options} for name in backends}
    case = {**BLOCKS, "backend": list(backends), **own}
    return run_experiment(directory, ranks, cases=[case], counters=True, env=env)


def hints_of(done):
    """Return backend, hints asked for and facts of each case."""
    return {
        name: (e["parameters"]["backend"], e["options"]["hints"], e.get("transfer_facts", {}))
        for name, e in done.record["cases"].items()
    }


def movers(done):
    """Return the ranks counted to write, and to read, by case."""
    found = {}
    for row in done.counts:
        if row["counter"] in ("writing_ranks", "reading_ranks"):
            found.setdefault(row["case"], {})[row["phase"]] = float(row["total"])
    return found


@pytest.fixture(scope="module")
def ompio(tmp_path_factory):
    only_with_open_mpi("OMPIO is part of Open MPI")
    hints = {"cb_nodes": [1, 4], "romio_ds_write": "disable"}
    return run_hints(
        tmp_path_factory.mktemp("ompio"), hints, {"OMPI_MCA_io": "ompio"},
        striping={"count": 2, "size": "1 MiB"},
    )  # fmt: skip


def test_with_ompio_as_many_ranks_write_as_cb_nodes_says(ompio):
    assert ompio.status == 0, ompio.said
    counted = movers(ompio)
    for name, (backend, hints, _) in hints_of(ompio).items():
        wanted = hints["cb_nodes"]
        assert counted[name] == {"write": wanted, "read": wanted}, (backend, hints)


def test_a_hint_of_romio_is_named_as_ignored_by_ompio(ompio):
    for backend, _, facts in hints_of(ompio).values():
        assert facts["mpi_io_component"] == "ompio", backend
        assert "hints" not in facts  # it reports none
        assert facts["hints_unconfirmed"].startswith("cb_nodes=")
        assert "romio_ds_write=disable (unknown to ompio)" in facts["not_in_force"]
    told = "not in force: .*romio_ds_write=disable (unknown to ompio)"
    assert re.search(told.replace("(", r"\(").replace(")", r"\)"), ompio.stdout)
    assert any("romio_ds_write=disable" in remark for remark in ompio.record["remarks"])


def test_striping_without_lustre_is_told_as_not_applied_and_the_run_goes_on(ompio):
    said = {facts["not_in_force"] for _, _, facts in hints_of(ompio).values()}
    assert all(re.match(r"striping_factor=2 striping_unit=1048576 \(\w+ is not Lustre\), ", told)
               for told in said)  # fmt: skip
    assert "\nVALID: every byte verified, " in ompio.stdout


@pytest.fixture(scope="module")
def romio(tmp_path_factory):
    env = {"OMPI_MCA_io": "^ompio", "ROMIO_PRINT_HINTS": "1"}
    return run_hints(tmp_path_factory.mktemp("romio"), {"cb_nodes": [1, 4], **OF_ROMIO}, env)


def romio_gets(done):
    """Whether the MPI library hands ROMIO the hints of a program: Open MPI 5 does not."""
    mpi_io = done.record["provenance"]["mpi_io"]
    return mpi_io["library"] != "Open MPI" or int(mpi_io["library_version"].split(".")[0]) < 5


@pytest.mark.full
def test_with_romio_as_many_ranks_write_as_cb_nodes_says(romio):
    assert romio.status == 0, romio.said
    counted = movers(romio)
    for name, (backend, hints, facts) in hints_of(romio).items():
        assert "hints_unconfirmed" not in facts
        if romio_gets(romio):
            assert counted[name]["write"] == hints["cb_nodes"], (backend, hints)
            assert "not_in_force" not in facts
        else:
            assert counted[name]["write"] == 1, (backend, hints)
            told = re.findall(r"(\w+)=\S+ \(romio\d+ has ", facts["not_in_force"])
            assert set(told) == {*OF_ROMIO, *(["cb_nodes"] if hints["cb_nodes"] != 1 else [])}


def printed_hints(text):
    """Return the lists of hints that ROMIO printed itself, one for each file that it opened."""
    found = []
    for key, value in re.findall(r"key = (\S+) +value = (.*)", text):
        if key == "cb_buffer_size":
            found.append({})
        found[-1][key] = value.strip()
    return found


@pytest.mark.full
def test_the_hints_in_force_are_those_that_romio_prints(romio):
    own = printed_hints(romio.stdout)
    for backend, hints, facts in hints_of(romio).values():
        assert facts["mpi_io_component"].startswith("romio")
        told = dict(pair.split("=", 1) for pair in facts["hints"].split("; "))
        assert told in own, backend
        assert told["cb_nodes"] == str(hints["cb_nodes"] if romio_gets(romio) else 1)


@pytest.mark.full
def test_a_number_that_romio_does_not_take_is_named(tmp_path):
    """ROMIO has one rank of each node collect, unless cb_config_list says otherwise."""
    done = run_hints(tmp_path, {"cb_nodes": 2}, {"OMPI_MCA_io": "^ompio"}, backends=["mpiio"])
    ((_, _, facts),) = hints_of(done).values()
    assert re.fullmatch(r"cb_nodes=2 \(romio\d* has 1\)", facts["not_in_force"])


@pytest.mark.full
def test_a_file_that_is_opened_with_other_hints_for_reading_is_named(tmp_path):
    """A job writes with ROMIO, which takes the hint if it gets it; another reads with OMPIO."""
    only_with_open_mpi("OMPIO is part of Open MPI")
    own = {name: {"hints": {"romio_ds_read": "disable"}} for name in LIBRARIES}
    cases = [{**BLOCKS, "backend": list(LIBRARIES), "cache": "separate", **own}]
    env = {"OMPI_MCA_io": "^ompio"}
    wrote = run_experiment(tmp_path, 2, "--stage", "write", cases=cases, env=env)
    assert wrote.status == 0, wrote.said
    for _, _, facts in hints_of(wrote).values():
        assert ("not_in_force" in facts) != romio_gets(wrote)
    record = wrote.out / "run.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"wrote_on": ["another-host"]}))
    read = pffbench_cli(
        "run", "--resume", wrote.out, "--stage", "read", ranks=2, out=wrote.out, cwd=tmp_path,
        env={"OMPI_MCA_io": "ompio"},
    )  # fmt: skip
    assert read.status == 0, read.said
    for _, _, facts in hints_of(read).values():
        assert ("romio_ds_read=disable" in facts["hints"]) == romio_gets(wrote)
        assert facts["not_in_force_reading"] == "romio_ds_read=disable (unknown to ompio)"
    told = r"not in force: .*in reading: romio_ds_read=disable \(unknown to ompio"
    assert re.search(told, read.stdout)


@pytest.mark.slow
def test_the_lines_for_job_scripts_do_what_the_hints_do(tmp_path):
    """Those that `pffbench` prints for OMPIO and ROMIO; no hints are given here."""
    file = tmp_path / "romio-hints"
    file.write_text("".join(f"{k} {v}\n" for k, v in {"cb_nodes": 3, **OF_ROMIO}.items()))
    for number, env in enumerate((
        {"OMPI_MCA_io": "ompio", "OMPI_MCA_io_ompio_num_aggregators": "2"},
        {"OMPI_MCA_io": "^ompio", "ROMIO_HINTS": str(file)},
    )):  # fmt: skip
        if not number:
            only_with_open_mpi("OMPIO is part of Open MPI")
        place = tmp_path / str(number)
        place.mkdir()
        (counted,) = movers(run_hints(place, {}, env, backends=["hdf5"])).values()
        assert counted["write"] == 2 + number
