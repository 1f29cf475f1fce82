"""Commands that need no MPI: they start fast, load nothing heavy and write nothing."""

import json
import os
import re
import signal
import subprocess
import sys

import jsonschema
import pytest
import yaml

from launch import (
    REPOSITORY,
    SHIPPED,
    entries_below,
    environment,
    lack_of_mpi,
    pffbench_cli,
    pffbench_here,
    run,
)
from pffbench.cli import make_parser, with_command
from pffbench.commands import command_module, command_names

pytestmark = pytest.mark.long

HEAVY = ("mpi4py.MPI", "h5py", "netCDF4", "zarr", "pandas")


def modules_of(*arguments):
    """Run the command line in a new process and return the modules that it imported."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "pffbench", *map(str, arguments)],
        capture_output=True, text=True, timeout=300, env=environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines() if "|" in line}


#: Runs commands as a program does, and names the first after which something heavy is loaded.
IN_TURN = f"""
import json, runpy, sys
for sys.argv in json.loads(sys.argv[1]):
    sys.path.insert(0, "")  # which the program takes away
    try:
        runpy.run_module("pffbench", run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        assert not ended.code, sys.argv
    found = sys.modules.keys() & {{*{HEAVY}}}
    assert not found, (sys.argv, found)
"""
LIGHT = [
    ["--help"], ["--version"], ["run", "--help"], ["plan", "--ranks", "64"], ["keys", "--schema"],
    ["report", "--help"], ["doctor", "--help"], ["keys"], ["keys", "slices", "zarr"],
    ["plan", str(REPOSITORY / "configs" / "many-datasets.yaml")],
]  # fmt: skip


def test_light_commands_load_nothing_heavy():
    done = run(["-c", IN_TURN, json.dumps([["pffbench", *arguments] for arguments in LIGHT])])
    assert done.status == 0, done.said
    assert done.stdout.count("usage: ") >= 4


def test_a_run_loads_only_the_libraries_of_its_backends(tmp_path):
    case = {"workload": "hyperslab", "backend": "hdf5", "shape": [4, 4]}
    told = {"name": "x", "repetitions": 1, "warmup": 0, "cases": [case]}
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(told))
    modules = modules_of("run", tmp_path / "x.yaml", "--out", tmp_path / "out",
                         "--scratch", tmp_path)  # fmt: skip
    assert {"h5py", "mpi4py.MPI"} <= modules
    assert not modules & {"zarr", "numcodecs", "netCDF4", "pandas"}


@pytest.mark.parametrize("command", ["run", "plan", "doctor", "report", "compare", "keys"])
def test_every_option_with_a_value_has_help_with_an_example(command):
    text = pffbench_here(command, "--help").stdout
    for part in re.split(r"\n  (?=-)|\n\n", text)[1:]:
        words = part.split()
        if words and words[0].startswith("-") and re.match(r"[A-Z\[{]", words[1]):
            assert "example:" in " ".join(words), part


#: Variables of launchers, which the shell of the tests may have too.
NO_LAUNCHER = dict.fromkeys(
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_SIZE", "PMI_RANK", "PMIX_RANK",
     "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)  # fmt: skip


def test_the_program_alone_says_what_people_do_with_it(tmp_path):
    done = pffbench_cli(cwd=tmp_path, env=NO_LAUNCHER)
    assert (done.status, done.stderr) == (0, "")
    for command in ("run", "plan", "report", "recommend", "compare", "doctor"):
        assert f"pffbench {command} " in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert entries_below(tmp_path) == []


@pytest.mark.parametrize(
    ("launcher", "expected"),
    [
        ({}, []),
        ({"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4", "SLURM_PROCID": "0",
          "SLURM_STEP_ID": "4294967291"}, []),  # a batch script
        ({"SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "64"}, ["run"]),
        ({"OMPI_COMM_WORLD_SIZE": "1"}, ["run"]),
        ({"PMI_SIZE": "4", "PMI_RANK": "0"}, ["run"]),
        ({"PMIX_RANK": "0"}, ["run"]),
        ({"ALPS_APP_PE": "3"}, ["run"]),
    ],
)  # fmt: skip
def test_under_a_launcher_the_program_alone_runs(monkeypatch, launcher, expected):
    for name in NO_LAUNCHER:
        monkeypatch.delenv(name, raising=False)
    for name, value in launcher.items():
        monkeypatch.setenv(name, value)
    assert with_command([]) == expected


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["rn"], "run"),
        (["recomend", "results"], "recommend"),
        (["plan", "--rank-s", "3"], "--ranks"),
        (["run", "--scrach", "/tmp"], "--scratch"),
        (["run", "--quiet", "--output", "results"], "--out"),
        (["plan", "defualt.yaml"], "default.yaml"),
        (["report", "result"], "results"),
        (["plan", "--set", "bakend=hdf5"], "backend"),
        (["plan", "--set", "hdf5.api_=low_level"], "api"),
    ],
)
def test_what_was_probably_meant_is_named(arguments, meant, tmp_path):
    (tmp_path / "default.yaml").touch()
    (tmp_path / "results").mkdir()
    done = pffbench_here(*arguments, cwd=tmp_path)
    assert done.status == 2
    assert f"did you mean {meant!r}?" in done.stderr


@pytest.mark.parametrize("module", ["argparse", "msgspec", "yaml"])
def test_an_interrupt_while_modules_are_loaded_leaves_no_traceback(tmp_path, module):
    (tmp_path / f"{module}.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGINT)")
    env = environment()
    env["PYTHONPATH"] = os.pathsep.join([str(tmp_path), env["PYTHONPATH"]])
    command = [sys.executable, "-m", "pffbench", "plan", "quick"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, env=env,
        # In the background of a shell Ctrl-C is ignored, and so it would be here.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_the_exit_statuses_are_told_once():
    told = pffbench_cli("help", "exit").stdout
    assert re.findall(r"^ *(\d+)  \S", told, re.MULTILINE) == [*"012345", "130"]
    for arguments in (["--help"], ["help", "run"], ["compare", "--help"]):
        assert pffbench_here(*arguments).stdout.endswith("explains the exit status.\n")


def test_every_command_is_listed_by_its_task():
    told = pffbench_here("help").stdout
    assert sorted(re.findall(r"^    ([a-z]+) +\S", told, re.MULTILINE)) == sorted(command_names())


def test_an_unknown_flag_is_refused_with_the_usage():
    done = pffbench_here("plan", "--rank", "many")
    assert done.status == 2
    assert "'many' is not a number of ranks" in done.stderr


# plan


@pytest.mark.parametrize("config", SHIPPED, ids=lambda path: path.stem)
def test_shipped_experiments_can_be_planned(config, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    plan = command_module("plan")
    monkeypatch.setattr(plan, "reason_against_mpi", lack_of_mpi)
    told = ["plan", str(config), "--ranks", "4", "--scratch", str(tmp_path)]
    assert plan.main(make_parser("plan").parse_args(told)) == 0
    assert " on 4 ranks, " in capsys.readouterr().out
    assert entries_below(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("default", ["--ranks", "1"]), ("default", ["default"]),
     ("library-defaults", ["library-defaults"]),
     ("nightly", ["nightly"]), ("quick", ["quick"]),
     ("questions/writers", ["question:writers"]), ("studies/updates", ["study:updates"])],
    ids=["none", "default", "library-defaults", "nightly", "quick", "question", "study"],
)  # fmt: skip
def test_an_experiment_is_planned_by_its_name_as_from_its_file(name, arguments, tmp_path):
    shipped = REPOSITORY / "configs" / f"{name}.yaml"
    plans = (pffbench_here("plan", *told, cwd=tmp_path) for told in (arguments, [shipped]))
    # The last line tells the free space of the moment.
    told, same = (plan.stdout.splitlines()[:-1] for plan in plans)
    assert told
    assert told == same


def test_a_plan_tells_bytes_files_memory_and_what_is_left_out(tmp_path):
    entry = {"workload": "hyperslab", "backend": ["hdf5", "zarr"], "shape_per_rank": [256, 1024],
             "transfer": ["independent", "collective"]}  # fmt: skip
    told = {"name": "x", "unsupported": "skip", "cases": [entry], "repetitions": 3}
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(told))
    text = pffbench_here("plan", "x.yaml", "--ranks", "8", cwd=tmp_path).stdout
    assert len(re.findall(r"^ *(?:hdf5|zarr|mpiio)\.\S+.* 8 MiB ", text, re.MULTILINE)) == 5
    assert "5 cases on 8 ranks, 4 times each (1 of them to warm up): 160 MiB written" in text
    assert "left out: zarr.hyperslab.one-shared.collective" in text
    assert "cannot do transfer collective" in text


def test_a_plan_shows_so_many_cases_as_somebody_reads_and_counts_all(tmp_path):
    entry = {"workload": "datasets", "backend": "null", "shape": [4], "level": [1, 2],
             "codec": ["gzip", "szip"], "source": ["uniform", "smooth"],
             "datasets": list(range(1, 61))}  # fmt: skip
    told = {"name": "x", "unsupported": "skip", "cases": [entry]}
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(told))
    short = pffbench_here("plan", "x.yaml", cwd=tmp_path).stdout
    whole = pffbench_here("plan", "x.yaml", "--all", cwd=tmp_path).stdout
    for text, cases in ((short, 200), (whole, 240)):
        assert len(re.findall(r"^ ?null\.\S+(?: \S+=\S+)* +\d", text, re.MULTILINE)) == cases
        assert text.count("left out: null.") == 1  # for one reason
        assert "(120 cases): backend null cannot do codec szip" in text
        assert "240 cases on 1 rank," in text
    assert "40 more cases are not shown; --all shows them" in short
    assert "not shown" not in whole


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["shape_per_rank=10"], "shape_per_rank: it must be a list or null; it is 10\n"),
        (["time_budget=ten"], "time_budget: 'ten' is not a duration (write it like '90 s')\n"),
        (["codec=auto", "shuffle=byte", "unsupported=refuse"], "codec auto compresses nothing"),
        (["shape_per_rank=null", "shape=[48,512,512]", "chunks=[48,512,512]"],
         "larger than the array of a rank [24, 512, 512]"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_explained_once_and_in_words_of_an_experiment(changes, said):
    sets = [word for change in changes for word in ("--set", change)]
    done = pffbench_here("plan", "--ranks", "2", *sets)
    assert done.status == 2
    assert said in done.stderr


def test_a_plan_refuses_what_a_run_refuses(tmp_path):
    (tmp_path / "x.yaml").write_text("name: x\ncases: [{backend: hdf5, workload: hyperslap}]\n")
    done = pffbench_here("plan", "x.yaml", cwd=tmp_path)
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr.startswith("pffbench: x.yaml: cases[0].workload: unknown workload")


# schema


@pytest.fixture(scope="module")
def schema():
    return json.loads(pffbench_cli("keys", "--schema").stdout)


def resolve(schema, node):
    while "$ref" in node:
        name = node["$ref"].removeprefix("#/$defs/")
        node = schema["$defs"][name]
    return node


def references(node):
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def test_every_reference_in_the_schema_leads_somewhere(schema):
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    found = set(references(schema))
    assert found
    for reference in found:
        assert reference.removeprefix("#/$defs/") in schema["$defs"], reference


def test_the_schema_knows_every_key_of_the_shipped_experiments(schema):
    top = resolve(schema, schema)
    entries = [resolve(schema, e) for e in top["properties"]["cases"]["items"]["anyOf"]]
    common = top["properties"]["common"]["properties"]
    for config in SHIPPED:
        content = yaml.safe_load(config.read_text())
        assert set(content) <= set(top["properties"]), config
        assert set(content.get("common", {})) <= set(common), config
        for case in content["cases"]:
            assert any(set(case) <= set(entry["properties"]) for entry in entries), config


def test_the_shipped_experiments_fit_the_schema(schema):
    """What all cases have in common may be of any workload, and mean another thing in each."""
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)  # once: it takes longer than all experiments
    for config in SHIPPED:
        validator(schema).validate(yaml.safe_load(config.read_text()))


def test_the_schema_allows_a_scalar_and_a_list_of_it(schema):
    top = resolve(schema, schema)
    entry = resolve(schema, top["properties"]["cases"]["items"]["anyOf"][0])
    assert entry["additionalProperties"] is False
    one, several = entry["properties"]["durability"]["anyOf"]
    assert set(one["enum"]) == {"close", "flush", "sync"}
    assert several["type"] == "array"
    assert several["items"] == one


# keys


def test_the_keys_of_workloads_and_backends_are_told_by_name():
    text = pffbench_here("keys", "slices", "hdf5").stdout
    assert text.startswith("slices: ")
    assert "\nhyperslab: " not in text
    assert re.search(r"hdf5\.alignment: .*default none.*\n +Objects of at least", text)
    done = pffbench_here("keys", "hdf", "zarr")
    assert done.status == 2
    assert "'hdf' is not a workload or a backend (" in done.stderr
    assert "did you mean 'hdf5'?" in done.stderr
    assert pffbench_here("keys", "zarr", "--schema").status == 2


def test_without_a_name_the_common_keys_and_all_names_are_told():
    text = pffbench_here("keys").stdout
    for key in ("repetitions: auto", "durability: close", "hdf5: HDF5 ", "datasets: N datasets"):
        assert f"\n  {key}" in text


def test_output_that_nobody_reads_to_its_end_is_no_error():
    code = "import subprocess, sys; p = subprocess.Popen([sys.executable, '-m', 'pffbench', " \
           "'keys', '--schema'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True); " \
           "p.stdout.read(10); p.stdout.close(); e = p.stderr.read(); " \
           "print(p.wait(), repr(e))"  # fmt: skip
    assert run(["-c", code]).stdout == "0 ''\n"
