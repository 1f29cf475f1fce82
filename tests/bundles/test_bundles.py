"""Bundles: what is packed, which rules a result has to hold, and what is refused of strangers."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
import zipfile
from pathlib import Path

import h5py
import pytest
from msgspec.structs import replace

from launch import REPOSITORY, pffbench_cli
from pffbench import __version__
from pffbench.cli import main
from pffbench_bundles.rules import BUNDLE_RULES, RULES, RUN_RULES, examine

SHIPPED = REPOSITORY / "docs" / "results" / "default"
#: A part of that run, so that it is read in a moment.
PART = {
    name: entry
    for name, entry in json.loads((SHIPPED / "run.json").read_text())["cases"].items()
    if entry["parameters"]["layout"] == "file_per_process"
}
HDF5, COLD = [name for name in PART if name.startswith("hdf5")]


def run_cli(capsys, *words):
    """Run a command in this process; return its exit status and what it printed."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    return ended.value.code, capsys.readouterr()


@pytest.fixture(scope="module")
def part(tmp_path_factory):
    """A part of the run that the README shows, as a run."""
    place = Path(shutil.copytree(SHIPPED, tmp_path_factory.mktemp("part") / "run"))
    change_record(place, cases=PART)
    for name in ("samples.csv", "counters.csv"):
        head, *rows = (SHIPPED / name).read_text().splitlines(keepends=True)
        kept = [row for row in rows if row.partition(",")[0] in PART]
        (place / name).write_text("".join([head, *kept]))
    with h5py.File(SHIPPED / "ranks.h5") as source, h5py.File(place / "ranks.h5", "w") as target:
        for name in ("host", *PART):
            source.copy(name, target)
    return place


@pytest.fixture(scope="module")
def packed(part, tmp_path_factory):
    """The bundle of that run."""
    path = tmp_path_factory.mktemp("packed") / "run.zip"
    with pytest.raises(SystemExit) as ended:
        main(["bundle", str(part), "-o", str(path)])
    assert ended.value.code == 0
    return path


@pytest.fixture(scope="module")
def unpacked(packed):
    """The directory of its run."""
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(packed.parent / "unpacked")
    (directory,) = [path for path in (packed.parent / "unpacked").iterdir() if path.is_dir()]
    return directory


@pytest.fixture
def run(unpacked, tmp_path):
    """A copy of that directory, to be spoilt."""
    return Path(shutil.copytree(unpacked, tmp_path / "run"))


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """The directory of temporary files, which is empty again at the end."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield place
    assert not list(place.iterdir())


# A bundle


def test_a_bundle_holds_the_files_of_a_run_and_their_digests(part, packed, unpacked):
    with zipfile.ZipFile(packed) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        members = set(archive.namelist()) - {"manifest.json"}
        told = {name: hashlib.sha256(archive.read(name)).hexdigest() for name in members}
        assert {info.date_time[0] for info in archive.infolist()} == {1980}
    assert manifest["sha256"] == told
    assert {name.rpartition("/")[2] for name in members} == {
        "experiment.json", "run.json", "samples.csv", "ranks.h5", "counters.csv", "results.json",
    }  # fmt: skip
    for name in ("run.json", "samples.csv", "ranks.h5", "counters.csv"):
        assert (unpacked / name).read_bytes() == (part / name).read_bytes()


def test_the_run_of_the_readme_checks_clean_and_every_rule_has_something_to_look_at(
    unpacked, tmp_path, capsys, temporary
):
    assert run_cli(capsys, "bundle", SHIPPED, "-o", tmp_path / "run.zip")[0] == 0
    status, told = run_cli(capsys, "check", tmp_path / "run.zip")
    assert status == 0, told
    assert re.match(r"default-\S+: 16 of 16 rules hold \(\d{5} things", told.out)
    assert "nothing to look at" not in told.out
    assert "ANSWER  HDF5 is never shown slower" in told.out
    assert run_cli(capsys, "check", SHIPPED)[0] == 0
    assert all(found.looked_at for found in examine(unpacked))


def test_names_of_directories_and_hosts_are_masked_when_asked(run, tmp_path, capsys, temporary):
    for name in ("run.json", "samples.csv"):
        text = (
            (run / name)
            .read_text()
            .replace('"vm"', '"node7.x.org"')
            .replace(",vm,", ",node7.x.org,")
        )
        text = text.replace('"node7.x.org": {', '"vm": {').replace("/home/user/", "/home/alice/")
        text = text.replace("Which of HDF5", "\N{GRINNING FACE} Which of HDF5")
        text = text.replace('"remarks": [', '"remarks": ["slow on node7, see /data/alice/job/log",')
        text = text.replace('"MKL_NUM', '"SLURM_JOB_NODELIST": "node[7-8]", "MKL_NUM')
        (run / name).write_text(text)
    with h5py.File(run / "ranks.h5", "r+") as ranks:
        ranks["host"][:] = ["node7.x.org"] * 2
    status, told = run_cli(capsys, "bundle", run, "--mask", "-o", tmp_path / "masked.zip")
    assert (status, told.out) == (0, f"{tmp_path}/masked.zip\n"), told
    with zipfile.ZipFile(tmp_path / "masked.zip") as archive:
        texts = {name: archive.read(name) for name in archive.namelist()}
    for word in (b"node7", b"alice", b"node[7"):
        assert not [name for name, text in texts.items() if word in text], word
    record = json.loads(next(text for name, text in texts.items() if name.endswith("run.json")))
    assert record["remarks"][0] == "slow on host1, see /home/user/log"
    assert record["topology"]["hosts"] == ["host1", "host1"]
    assert run_cli(capsys, "check", tmp_path / "masked.zip")[0] == 0


def test_no_file_is_overwritten_and_no_run_that_goes_on_is_packed(run, tmp_path, capsys, temporary):
    (tmp_path / "mine.zip").write_text("precious")
    status, told = run_cli(capsys, "bundle", run, "-o", tmp_path / "mine.zip")
    assert (status, (tmp_path / "mine.zip").read_text()) == (2, "precious")
    assert "mine.zip: is there already; name a new file" in told.err
    change_record(run, status="running")
    status, told = run_cli(capsys, "bundle", run, "-o", tmp_path / "new.zip")
    assert (status, (tmp_path / "new.zip").exists()) == (2, False)
    assert "is not finished (running)" in told.err
    without_ranks = tmp_path / "without-ranks"
    shutil.copytree(SHIPPED, without_ranks, ignore=shutil.ignore_patterns("ranks.h5"))
    for words, why in (
        ([run, run, "-o", tmp_path / "new.zip"], "finished"),
        ([SHIPPED, SHIPPED, "-o", tmp_path / "new.zip"], "is given twice"),
        ([tmp_path, "-o", tmp_path / "new.zip"], "it holds no run.json"),
        ([SHIPPED, "-o", tmp_path / "new.tar"], "does not end in .zip"),
        ([without_ranks, "-o", tmp_path / "new.zip"], "ranks.h5: cannot be read: No such file"),
        ([without_ranks, "--mask", "-o", tmp_path / "new.zip"], "it holds no ranks.h5"),
    ):
        status, told = run_cli(capsys, "bundle", *words)
        assert (status, told.err.count("\n")) == (2, 1), told
        assert why in told.err
    assert not (tmp_path / "new.zip").exists()


def test_a_bundle_of_several_runs_is_checked_run_by_run(part, tmp_path, capsys, temporary):
    other = SHIPPED.parent / "example-datasets"
    assert run_cli(capsys, "bundle", part, other, "-o", tmp_path / "two.zip")[0] == 0
    status, told = run_cli(capsys, "check", tmp_path / "two.zip")
    assert (status, told.out.count("16 of 16 rules hold")) == (0, 2), told
    assert "nothing to look at: rule 19\n" in told.out
    for command in (["reproduce", tmp_path / "two.zip"], ["plan", tmp_path / "two.zip"]):
        done = pffbench_cli(*command, cwd=tmp_path)
        assert (done.status, done.stderr.count("\n")) == (2, 1), done.said
        assert "holds 2 runs, and one was expected" in done.stderr


# The rules of a result, each with a violation


def change_record(run, **keys):
    path = run / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | keys))


def changed(run, change):
    """Change `run.json` in place."""
    record = json.loads((run / "run.json").read_text())
    change(record)
    (run / "run.json").write_text(json.dumps(record))


def change_row(run, phase="write", number=5, case=HDF5, all_of_it=False, **cells):
    """Change cells of a phase of a repetition, or of all its phases; None takes the row away."""
    path = run / "samples.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    kept = []
    for row in rows:
        mine = (row["case"], row["repetition"]) == (case, str(number))
        if mine and (all_of_it or row["phase"] == phase):
            if not cells:
                continue
            row |= {key: str(value) for key, value in cells.items()}
        kept.append(row)
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(kept)


def position(run, case, number="5"):
    with (run / "samples.csv").open(newline="") as file:
        rows = csv.DictReader(file)
        return next(r["position"] for r in rows if (r["case"], r["repetition"]) == (case, number))


#: For each rule violations of it alone, or of it and others that follow from the same change.
PLANTED = {
    5: [
        lambda run: change_record(run, schema_version=9),
        lambda run: change_row(run, own_max=-1),
        lambda run: (run / "ranks.h5").write_bytes(b"x"),
        lambda run: (run / "counters.csv").write_text("a,b\n"),
    ],
    6: [
        lambda run: change_record(run, experiment_digest="0" * 64),
        lambda run: (run / "experiment.json").write_text('{"name": "other"}'),
    ],
    7: [
        lambda run: change_record(run, valid=False),
        lambda run: change_record(run, status="interrupted"),
        lambda run: change_row(run, "read", valid="false"),
        lambda run: changed(run, lambda r: r["cases"][HDF5].update(invalid="wrong data")),
        lambda run: (run / "samples.csv").open("a").write("hdf5"),
    ],
    8: [lambda run: change_row(run, all_of_it=True, number=9)],
    9: [lambda run: change_row(run, "sync")],
    10: [
        lambda run: change_row(run, all_of_it=True, warmup="true"),
        lambda run: change_row(run, all_of_it=True, position=position(run, COLD)),
    ],
    11: [lambda run: change_row(run, ranks=4), lambda run: change_row(run, backend="zarr")],
    12: [
        lambda run: change_row(run, "read", verified_bytes=1),
        lambda run: change_row(run, "read", verified_bytes=""),
    ],
    13: [
        lambda run: change_row(run, "read", resident=0.5),
        lambda run: change_row(run, "read", case=COLD, cache="unproved"),
        lambda run: change_row(run, "read", case=COLD, device_bytes=0),
    ],
    14: [lambda run: change_row(run, "write", bytes=1)],
    15: [lambda run: change_row(run, seconds=1e-6)],
    16: [
        lambda run: change_row(run, own_max=1e-6, own_median=1e-6, own_min=1e-6, seconds=1e-6),
        lambda run: change_row(run, all_of_it=True, number=9),
        lambda run: change_row(run, peak_memory=7),
    ],
    17: [
        lambda run: change_row(run, all_of_it=True, started="2020-01-01T00:00:00.000+00:00"),
        lambda run: change_row(run, "remove", own_max=1e4, synced_max=1e4, seconds=1e4),
    ],
    18: [
        lambda run: changed(run, lambda r: r["provenance"].update(hosts=[])),
        lambda run: changed(run, lambda r: r["provenance"]["software"].update(libraries={})),
    ],
    19: [lambda run: (run / "counters.csv").open("a").write(f"{HDF5},99,false,read,x,1,1\n")],
    20: [
        lambda run: change_results(run, lambda r: r["sentences"].pop()),
        lambda run: change_results(run, lambda r: r["answer"].update(sentence="Zarr is fastest.")),
        lambda run: change_results(run, lambda r: r["cases"][0].update(bytes=1)),
        lambda run: change_results(run, lambda r: r["cases"][0]["phases"][2].update(ratio=1.5)),
    ],
}  # fmt: skip


def change_results(run, change):
    data = json.loads((run / "results.json").read_text())
    change(data)
    (run / "results.json").write_text(json.dumps(data))


def test_each_rule_is_numbered_once_and_has_a_check_and_a_violation():
    numbers = [rule.number for rule in RULES]
    assert numbers == sorted(set(numbers))
    assert set(PLANTED) == {rule.number for rule in RUN_RULES}
    assert {number for number, _, _ in TAMPERED} == {rule.number for rule in BUNDLE_RULES}
    assert len(TAMPERED) >= 12
    assert len(RULES) == 20
    assert all(callable(rule.check) and rule.sentence.endswith(".") for rule in RULES)


@pytest.mark.parametrize(
    ("number", "plant"), [(number, plant) for number, some in PLANTED.items() for plant in some]
)
def test_a_planted_violation_is_found_by_its_rule(run, tmp_path, capsys, temporary, number, plant):
    plant(run)
    target = tmp_path / "planted.zip"
    pack(target, {f"run/{path.name}": path.read_bytes() for path in run.iterdir()})
    status, told = run_cli(capsys, "check", target)
    assert (status, told.err) == (1, ""), told
    assert re.search(rf"^rule {number} is broken: ", told.out, re.MULTILINE), told


def test_without_its_check_a_violation_of_a_rule_is_not_found(run, capsys, monkeypatch):
    change_row(run, "read", verified_bytes=1)
    assert [found.rule.number for found in examine(run) if found.broken] == [12]
    status, told = run_cli(capsys, "reproduce", run, "--with", SHIPPED)
    assert (status, told.err) == (
        2, f"pffbench: {run}: breaks rule 12 (pffbench check {run} says where)\n"
    )  # fmt: skip
    rules = [replace(r, check=lambda _: [""]) if r.number == 12 else r for r in RUN_RULES]
    monkeypatch.setattr("pffbench_bundles.rules.RUN_RULES", rules)
    assert not [found for found in examine(run) if found.broken]


def test_another_version_may_word_sentences_otherwise_but_not_give_other_numbers(
    packed, tmp_path, capsys, temporary
):
    members = members_of(packed)
    results = json.loads(members["run/results.json"])
    results["sentences"] = ["Said otherwise."]
    for number, status in ((results["cases"][0]["bytes"], 0), (1, 1)):
        results["cases"][0]["bytes"] = number
        members["run/results.json"] = json.dumps(results).encode()
        pack(tmp_path / "older.zip", members, lambda manifest: manifest.update(pffbench="0.0.9"))
        assert run_cli(capsys, "check", tmp_path / "older.zip")[0] == status


def test_the_page_of_the_rules_is_made_of_them():
    text = (REPOSITORY / "docs" / "rules.md").read_text()
    told = re.findall(r"^(\d+)\. (.*)$", text, re.MULTILINE)
    assert told == [(str(rule.number), rule.sentence) for rule in RULES]


# Tampered bundles


def pack(target, members, change=dict.copy, more=()):
    """Write a bundle of these members, with a manifest that agrees unless it is changed."""
    manifest = {"format": "pffbench bundle", "version": 1, "pffbench": __version__, "masked": False}
    manifest["sha256"] = {n: hashlib.sha256(d).hexdigest() for n, d in members.items()}
    change(manifest)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in [*members.items(), *more]:
            archive.writestr(name, data)
        if manifest:
            archive.writestr("manifest.json", json.dumps(manifest))


def members_of(packed):
    with zipfile.ZipFile(packed) as archive:
        names = [name for name in archive.namelist() if name != "manifest.json"]
        return {f"run/{name.rpartition('/')[2]}": archive.read(name) for name in names}


def by_bytes(change):
    return lambda packed, target: target.write_bytes(change(packed.read_bytes()))


def with_member(name, data):
    return lambda packed, target: pack(target, members_of(packed) | {name: data})


def with_manifest(change):
    return lambda packed, target: pack(target, members_of(packed), change)


def with_more(name, data=b"x"):
    return lambda packed, target: pack(target, members_of(packed), more=[(name, data)])


def link():
    info = zipfile.ZipInfo("x/counters.csv")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


def flipped(data):
    """Change a byte within the compressed data of the first members."""
    place = len(data) // 2
    return data[:place] + bytes([data[place] ^ 255]) + data[place + 1 :]


def encrypted(data):
    """Set the flag of encryption of the first member in the list."""
    place = data.index(b"PK\1\2") + 8
    return data[:place] + bytes([data[place] | 1]) + data[place + 1 :]


#: The rule that is broken, what is done, and the function that does it to a bundle.
TAMPERED = [
    (1, "no zip", by_bytes(lambda _: b"no archive" * 100)),
    (1, "empty", by_bytes(lambda _: b"")),
    (1, "cut", by_bytes(lambda data: data[:-1000])),
    (1, "something before it", by_bytes(lambda data: b"#!/bin/sh\n" + data)),
    (1, "something after it", by_bytes(lambda data: data + b"more")),
    (1, "a link", with_more(link(), b"/etc/passwd")),
    (1, "encrypted", by_bytes(encrypted)),
    (2, "a path out of it", with_more("../../evil")),
    (2, "an absolute path", with_more("/tmp/evil")),
    (2, "a path through a run", with_more("run/../run.json")),
    (2, "a directory of dots", with_more("../run.json")),
    (2, "an unknown member", with_more("run/setup.py")),
    (2, "another run in part", with_more("other/run.json")),
    (2, "a missing member", lambda packed, target: without(packed, target, "run/samples.csv")),
    (2, "no manifest", with_manifest(dict.clear)),
    (2, "a doubled member", lambda packed, target: doubled(packed, target)),
    (3, "zeros without end", with_member("run/samples.csv", b"\0" * 2**27)),
    (3, "too large", with_member("run/experiment.json", b" " * (2**20 + 1))),
    (4, "a changed byte", by_bytes(flipped)),
    (
        4,
        "a changed member",
        with_manifest(lambda m: m["sha256"].update({"run/run.json": "0" * 64})),
    ),
    (4, "another version", with_manifest(lambda m: m.update(version=2))),
    (4, "another format", with_manifest(lambda m: m.update(format="other"))),
    (4, "too many digests", with_manifest(lambda m: m["sha256"].update(x="0"))),
]


def doubled(packed, target):
    with pytest.warns(UserWarning, match="Duplicate name"):
        with_more("run/run.json")(packed, target)


def without(packed, target, name):
    members = members_of(packed)
    del members[name]
    pack(target, members)


@pytest.mark.parametrize(("number", "what", "tamper"), TAMPERED, ids=[t[1] for t in TAMPERED])
def test_a_tampered_bundle_is_refused_with_its_rule(
    packed, tmp_path, capsys, temporary, number, what, tamper
):
    target = tmp_path / "tampered.zip"
    tamper(packed, target)
    before = sorted(tmp_path.rglob("*"))
    status, told = run_cli(capsys, "check", target)
    assert (status, told.out) == (2, "")
    assert told.err.startswith(f"pffbench: {target}: rule {number}: "), told
    assert told.err.count("\n") == 1
    status, told = run_cli(capsys, "reproduce", target, "--with", SHIPPED)
    assert (status, told.out) == (2, "")
    assert f": rule {number}: " in told.err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("make", ["fifo", "directory", "missing"])
def test_what_is_no_file_is_said_at_once(tmp_path, capsys, make):
    target = tmp_path / "x.zip"
    if make == "fifo":
        os.mkfifo(target)
    elif make == "directory":
        target.mkdir()
    status, told = run_cli(capsys, "check", target)
    assert status == (1 if make == "directory" else 2)
    assert "x.zip" in told.out + told.err
    assert "Traceback" not in told.err


def test_a_long_list_of_members_is_not_read(tmp_path, capsys):
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
        for number in range(4000):
            archive.writestr(f"r{number}/run.json", b"")
    status, told = run_cli(capsys, "check", tmp_path / "many.zip")
    assert (status, "too long a list" in told.err) == (2, True)


# The experiment of a bundle


def test_the_experiment_of_a_bundle_can_be_planned(packed, tmp_path, capsys):
    status, told = run_cli(capsys, "plan", packed, "--ranks", 2, "--scratch", tmp_path)
    assert status == 0, told
    assert "24 cases" in told.out  # of the whole experiment


def test_commands_of_a_bundle_are_not_started(packed, tmp_path):
    members = members_of(packed)
    document = json.loads(members["run/experiment.json"])
    document["environments"] = [{"name": "a", "command": f"touch {tmp_path}/evil"}]
    members["run/experiment.json"] = json.dumps(document).encode()
    pack(tmp_path / "evil.zip", members)
    for command in ("plan", "run"):
        told = pffbench_cli(command, tmp_path / "evil.zip", cwd=tmp_path)
        assert (told.status, told.stderr.count("\n")) == (2, 1), told.said
        assert "commands of a bundle are not started" in told.stderr
    assert not (tmp_path / "evil").exists()
