"""Hints, striping and alignment: what is asked, what is refused, what is said of them."""

from __future__ import annotations

import os
import re
import struct

import pytest

from drawn_runs import a_case, timed_run
from pffbench.backends.hints import (
    FileHints,
    Hint,
    asked_hints,
    hint_facts,
    hints_of_one_writer,
    idle_hints,
    read_hints,
    uncounted_writers,
)
from pffbench.errors import UserError
from pffbench.experiment.check import make_plan
from pffbench.experiment.load import from_data
from pffbench.mpi import open_file
from pffbench.results.export import write_summary
from pffbench.results.summary import summarise

SLAB = {"workload": "hyperslab", "shape_per_rank": [4, 4], "transfer": "collective"}


def loaded(**case):
    data = {"name": "x", "roofline": False, "cases": [SLAB | case]}
    return from_data(data, "exp.yaml")


def options(**case):
    return [case.options for _, case in loaded(**case).cases]


# What is asked for


def test_hints_are_told_as_mpi_knows_them():
    (found,) = options(
        backend="hdf5",
        hdf5={"hints": {"cb_nodes": 4, "cb_buffer_size": "16 MiB", "romio_no_indep_rw": True},
              "striping": {"count": -1, "size": "4 MiB"}},
    )  # fmt: skip
    assert asked_hints(found) == {
        "cb_nodes": "4", "cb_buffer_size": str(2**24), "romio_no_indep_rw": "true",
        "striping_factor": "-1", "striping_unit": str(2**22),
    }  # fmt: skip


@pytest.mark.parametrize("backend", ["hdf5", "netcdf4", "mpiio"])
def test_hints_and_striping_sweep_as_a_whole_and_inside(backend):
    whole = {"hints": [{}, {"cb_nodes": 1}, {"romio_ds_write": "disable"}]}
    inside = {"hints": {"cb_nodes": [1, 4], "romio_ds_write": "disable"},
              "striping": {"count": [1, 2], "size": "1 MiB"}}  # fmt: skip
    assert [o.hints for o in options(backend=backend, **{backend: whole})] == whole["hints"]
    found = options(backend=backend, **{backend: inside})
    assert [(o.hints["cb_nodes"], o.striping.count) for o in found] == [
        (1, 1), (1, 2), (4, 1), (4, 2),
    ]  # fmt: skip
    assert {o.hints["romio_ds_write"] for o in found} == {"disable"}


def test_lists_inside_hints_advance_together():
    name = "hdf5.hints"
    zipped = options(
        backend="hdf5", hdf5={"hints": {"cb_nodes": [1, 4], "cb_buffer_size": [10, 20]}},
        zip=[f"{name}.cb_nodes", f"{name}.cb_buffer_size"],
    )  # fmt: skip
    assert [o.hints for o in zipped] == [
        {"cb_nodes": 1, "cb_buffer_size": 10}, {"cb_nodes": 4, "cb_buffer_size": 20},
    ]  # fmt: skip


def test_alignment_has_a_threshold_of_its_own():
    same, own = options(
        backend="hdf5", hdf5={"alignment": "1 MiB", "alignment_threshold": ["1 MiB", "64 KiB"]}
    )
    assert (same.alignments, own.alignments) == ((2**20, 2**20), (2**16, 2**20))


REFUSED = {
    "no text": ({"hints": {"cb_nodes": ""}}, r"hints\.cb_nodes: '' is not a valid hint \(allowed"),
    "no number": ({"hints": {"cb_nodes": 1.5}}, r"hints.*must be true or false or a whole"),
    "a mapping": ({"hints": {"cb_nodes": {"a": 1}}}, r"hints.*it must be true or false"),
    "two lines": ({"hints": {"cb_nodes": "1\n2"}}, r"hints\.cb_nodes: .* is not a valid hint"),
    "too long": ({"hints": {"cb_nodes": "9" * 256}}, r"hints\.cb_nodes: .* is not a valid hint"),
    "no name": ({"hints": {"": 1}}, r"'' is not a valid name of a hint \(allowed: 1 to 35"),
    "a blank": ({"hints": {"cb nodes": 1}}, r"'cb nodes' is not a valid name of a hint"),
    "long name": ({"hints": {"x" * 36: 1}}, r"is not a valid name of a hint"),
    "no mapping": ({"hints": "cb_nodes=4"}, r"hints: it must be a mapping; it is"),
    "no stripes": ({"striping": {}}, r"striping: give count .* size, or both"),
    "stripes of none": ({"striping": {"count": 0}}, r"striping: give count"),
    "too many": ({"striping": {"count": 10_000}}, r"striping\.count: .*<= 9999"),
    "odd stripes": ({"striping": {"size": "100 kB"}}, r"striping: size: .* not a multiple of 64"),
    "unknown word": ({"striping": {"pool": "x"}}, r"striping: .*unknown field pool"),
    "twice": ({"striping": {"count": 2}, "hints": {"striping_factor": 2}},
              r"hints\.striping_factor and striping say the same"),
    "inside a sweep": ({"hints": {"cb_nodes": [1, ""]}}, r"cb_nodes: .* is not a valid hint"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("backend", ["hdf5", "netcdf4", "mpiio"])
def test_what_is_no_hint_is_refused_in_a_sentence(name, backend):
    own, says = REFUSED[name]
    with pytest.raises(UserError, match=rf"exp\.yaml: cases\[0\]\.{backend}.*{says}") as told:
        options(backend=backend, **{backend: own})
    assert len(str(told.value).splitlines()) == 1


def test_a_threshold_alone_is_refused():
    with pytest.raises(UserError, match="alignment_threshold: it goes with alignment"):
        options(backend="netcdf4", netcdf4={"alignment_threshold": 1})


@pytest.mark.parametrize("key", ["hints", "striping"])
def test_files_that_mpi_io_does_not_open_have_no_hints(key):
    own = {"hints": {"cb_nodes": 1}, "striping": {"count": 2}}[key]
    case = {"backend": "hdf5", "files": "per_rank", "transfer": "independent"}
    with pytest.raises(UserError, match=rf"hdf5\.{key} is for files that MPI-IO opens"):
        make_plan(loaded(**case, hdf5={key: own}), ranks=2)


# What is in force, with planted answers of MPI and of the file system


class Planted:
    """A file of an MPI library that says what a test wants."""

    def __init__(self, monkeypatch, component, in_force, known=None):
        monkeypatch.setattr(open_file, "io_component", lambda _: component)
        monkeypatch.setattr(open_file, "hints_in_force", lambda _: in_force)
        monkeypatch.setattr(open_file, "is_known_hint", lambda *_: known)


def facts(tmp_path, **own):
    path = tmp_path / "x.h5"
    path.touch()
    (asked,) = options(backend="hdf5", hdf5=own)
    found = read_hints(None, str(path), asked)
    return hint_facts([found] if found else [], [])


def test_a_hint_with_another_value_is_not_in_force(monkeypatch, tmp_path):
    Planted(monkeypatch, "romio", {"cb_nodes": "1", "romio_ds_write": "DISABLE"})
    asked = {"cb_nodes": 4, "romio_ds_write": "disable", "made_up": 1}
    assert facts(tmp_path, hints=asked) == {
        "mpi_io_component": "romio",
        "hints": "cb_nodes=1; romio_ds_write=DISABLE",
        "not_in_force": "cb_nodes=4 (romio has 1), made_up=1 (unknown to romio)",
    }


@pytest.mark.parametrize("known", [True, None])
def test_a_hint_whose_value_nobody_tells_is_not_called_in_force(monkeypatch, tmp_path, known):
    Planted(monkeypatch, "ompio", None, known)
    assert facts(tmp_path, hints={"cb_nodes": 4}) == {
        "mpi_io_component": "ompio", "hints_unconfirmed": "cb_nodes=4",
    }  # fmt: skip


def test_nothing_is_looked_at_where_nothing_was_asked(tmp_path):
    assert facts(tmp_path) == {}


def layout(count, size, magic=0x0BD10BD0):
    return struct.pack("<IIQQIHH", magic, 1, 0, 0, size, count, 0)


STRIPES = {
    "as asked": ({"count": 4, "size": 2**20}, layout(4, 2**20), None),
    "all servers": ({"count": -1}, layout(7, 2**20), None),
    "fewer": ({"count": 4}, layout(2, 2**20), r"striping_factor=4 \(the file has .*factor=2 "),
    "another size": ({"size": 2**20}, layout(2, 2**22), r"=1048576 \(the file has .*4194304"),
    "several parts": ({"count": 4}, layout(4, 1, 0x0BD60BD0), "layout of several parts"),
    "torn": ({"count": 4}, b"\xd0", "unknown layout"),
    "no Lustre": ({"count": 4}, None, r"striping_factor=4 \(\w+ is not Lustre\)"),
}


@pytest.mark.parametrize("name", STRIPES)
def test_stripes_are_those_that_the_file_has(monkeypatch, tmp_path, name):
    striping, told, says = STRIPES[name]
    Planted(monkeypatch, "romio", {})
    if told is not None:
        monkeypatch.setattr(os, "getxattr", lambda *_: told)
    found = facts(tmp_path, striping=striping).get("not_in_force")
    if says is None:
        assert found is None
    else:
        assert re.search(says, found)


def test_the_count_of_writers_is_held_against_what_was_asked():
    def found(counted, file=(), **hints):
        (asked,) = options(backend="hdf5", hdf5={"hints": hints})
        return hint_facts([FileHints(file)], [], uncounted_writers(asked, counted))

    assert found(4, cb_nodes=4) == {}
    assert found(0, cb_nodes=4) == {}  # not counted
    assert found(2, cb_buffer_size=4) == {}
    assert found(2, cb_nodes="4") == {"not_in_force": "cb_nodes=4 (2 ranks wrote)"}
    known = (Hint("cb_nodes", "4", False, "romio has 1"),)
    assert found(1, known, cb_nodes=4) == {"not_in_force": "cb_nodes=4 (romio has 1)"}


@pytest.mark.parametrize(
    ("transfer", "hints", "idle"),
    [
        ("independent", {"cb_nodes": 2, "romio_cb_write": "enable", "romio_ds_write": "disable"},
         {"cb_nodes=2": "no transfer is collective",
          "romio_cb_write=enable": "no transfer is collective"}),
        ("collective", {"cb_nodes": 9, "cb_buffer_size": 9}, {"cb_nodes=9": "there are 4 ranks"}),
        ("collective", {"cb_nodes": 4}, {}),
        ("collective", {}, {}),
    ],
)  # fmt: skip
def test_hints_that_can_have_no_effect_are_named_with_the_reason(transfer, hints, idle):
    case = {"backend": "hdf5", "hdf5": {"hints": hints}, "transfer": transfer}
    found = make_plan(loaded(**case), ranks=4)
    (planned,) = found.cases
    known = idle_hints(planned.options, planned.parameters, 4)
    assert {str(hint): hint.why for hint in known} == idle
    name = f"hdf5.hyperslab.one-shared.{transfer}.matched"
    assert found.remarks == tuple(
        f"{name}: the hint {hint} has no effect ({why})" for hint, why in idle.items()
    )
    unknown = FileHints((Hint("x", "1", False, "unknown to ompio"),))
    told = hint_facts([unknown], [], known)["not_in_force"]
    assert told.startswith("x=1 (unknown to ompio)")
    for hint, why in idle.items():
        assert re.search(rf"{hint}[^(]* \({why}\)", told)
    assert hint_facts([unknown], [unknown], known) == {"not_in_force": told}
    # A job that only reads leaves what the job that wrote has recorded.
    assert hint_facts([], [unknown], known) == {"not_in_force_reading": "x=1 (unknown to ompio)"}


def test_files_with_the_same_end_of_a_hint_name_it_once():
    """Each file of a case reports its hints, and files differ in some of them."""
    ignored = Hint("cb_nodes", "4", False, "romio has 1")
    files = [
        FileHints((ignored, Hint("b", "1", True)), "romio", (("b", "1"), ("cb_nodes", "1"))),
        FileHints((ignored, Hint("b", "1", False, "romio has 2")), "romio", (("b", "2"),)),
    ]
    assert hint_facts([*files, files[0]], []) == {
        "mpi_io_component": "romio",
        "hints": "b=1; cb_nodes=1 | b=2",
        "not_in_force": "cb_nodes=4 (romio has 1), b=1 (romio has 2)",
    }
    assert hint_facts(files[:1], files[1:]) == hint_facts(files[:1], []) | {
        "hints_reading": "b=2",
        "not_in_force_reading": "cb_nodes=4 (romio has 1), b=1 (romio has 2)",
    }


def test_hints_of_a_file_with_one_writer_share_their_reason():
    (asked,) = options(backend="hdf5", hdf5={"hints": {"a": 1, "b": True}})
    assert hint_facts([hints_of_one_writer(asked)], []) == {
        "not_in_force": "a=1 b=true (one writer opens the file without MPI-IO)"
    }


def test_options_of_a_backend_that_no_case_has_are_named():
    entry = SLAB | {"backend": ["posix", "mpiio"], "transfer": "independent"}
    data = {"name": "x", "roofline": False, "common": {"zarr": {"format": 2}, "posix": {}},
            "cases": [entry | {"hdf5": {"hints": {"cb_nodes": 1}}, "mpiio": {}}]}  # fmt: skip
    assert make_plan(from_data(data, "exp.yaml"), ranks=2).remarks == (
        "exp.yaml: cases[0].hdf5: no case of it has backend hdf5, so it has no effect",
        "exp.yaml: common.zarr: no case of it has backend zarr, so it has no effect",
    )


# What is concluded


def test_hints_that_are_not_in_force_are_not_recommended(tmp_path):
    """Half the time would be worth it, but the hint that the way is named by did nothing."""
    seconds, cases = {}, []
    for hints, factor in ((None, 1.0), ({"cb_nodes": 2}, 0.5), ({"cb_nodes": 4}, 0.9)):
        _, entry = a_case("hdf5", "collective")
        entry.options = {"hints": hints}
        if factor == 0.5:
            entry.transfer_facts = {"not_in_force": "cb_nodes=2 (romio has 1)"}
        case = f"hdf5.{len(cases)}"
        cases.append((case, entry))
        seconds[case] = [[factor * (1 + 0.01 * (i % 5)) for i in range(20)]] * 2
    run = timed_run(tmp_path, seconds, cases)
    summary = summarise(run)
    assert summary.answer.way == {"hdf5.hints": "{cb_nodes: 4}"}
    (note,) = [note for note in summary.answer.notes if "not in force" in note]
    assert note.startswith("HDF5, hints {cb_nodes: 2} takes no part: not in force: cb_nodes=2")
    write_summary(summary, run)
    assert "not in force: cb_nodes=2 (romio has 1)" in (run / "summary.md").read_text()
