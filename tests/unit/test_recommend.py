"""`pffbench recommend`: the right way is named, no more is claimed than was shown."""

from __future__ import annotations

import io
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
from msgspec import to_builtins
from msgspec.structs import replace
from rich.console import Console
from test_answer_table import a_contest

from drawn_runs import FLOOR, PHASES, a_case, a_run, a_sample
from launch import pffbench_cli
from pffbench.cli import make_parser
from pffbench.commands.recommend import print_markdown
from pffbench.experiment.load import from_data
from pffbench.record.samples import SamplesLog
from pffbench.summary.answer import answer_of
from pffbench.summary.labels import format_title
from pffbench.summary.rank_test import FEWEST
from pffbench.summary.results import as_data
from pffbench.summary.statistics import LoadSummary
from pffbench.summary.summary import summarise
from pffbench_analysis.page.build import render
from pffbench_analysis.recommend import Filters, OwnData, Weights, advise, recommend
from pffbench_analysis.recommend.advice import advice_of
from pffbench_analysis.recommend.candidates import Candidate
from pffbench_analysis.recommend.code import code_for
from pffbench_analysis.recommend.text import lines_of

pytestmark = pytest.mark.long

CASES = [a_case("hdf5"), a_case("netcdf4"), a_case("zarr"), a_case("mpiio")]


def timed_run(directory, seconds, cases=CASES, repetitions=8, **record):
    """Write a run of cases that take these seconds to write and to read, in each repetition."""
    a_run(directory, cases, repetitions=0, **record)
    (directory / "samples.csv").unlink()
    rows = []
    for name, entry in cases:
        write, read = seconds[name]
        for number in range(repetitions):
            took = {"write": float(write[number]), "read": float(read[number])}
            rows += [a_sample(name, entry, number + 1, p, took.get(p, 1e-9)) for p in PHASES]
    SamplesLog(str(directory / "samples.csv")).append(rows)
    return directory


def noisy(generator, factors, cases=CASES, repetitions=8, noise=0.03, load=0.2):
    """Draw seconds with noise, and load that all cases of a block share."""
    load = np.exp(generator.normal(0, load, repetitions))
    return {
        name: [
            factor * load * np.exp(generator.normal(0, noise, repetitions))
            for factor in factors[entry["parameters"]["backend"]]
        ]
        for name, entry in cases
    }


def answers_of(run, weights=None):
    (one,) = advise(run, weights).works
    return one.answers


def of(places):
    return [placed.candidate.backend for placed in places]


@pytest.mark.parametrize(("load", "found"), [(0.02, True), (0.2, False)])
def test_a_difference_of_ten_percent_is_found_unless_the_load_varies_more(tmp_path, load, found):
    generator = np.random.default_rng(2)
    factors = {"hdf5": (1.0, 1.1), "netcdf4": (1.1, 1.0), "zarr": (1.3, 1.3), "mpiio": (0.1, 0.1)}
    seconds = noisy(generator, factors, repetitions=12, noise=0.01, load=load)
    run = timed_run(tmp_path, seconds, repetitions=12)
    writing, reading, both = answers_of(run, Weights(1, 10))
    assert of(writing.placed)[0] == "hdf5"
    assert of(reading.placed)[0] == of(both.placed)[0] == "netcdf4"
    assert (writing.taken is not None) == found
    beside = writing.placed[1]
    assert beside.candidate.backend == "netcdf4"
    assert beside.ratio.low < 1.1 < beside.ratio.high
    if found:
        assert of(writing.slower) == ["netcdf4", "zarr"]
    else:
        assert of(writing.best)[:2] == ["hdf5", "netcdf4"]


def test_where_there_is_no_difference_none_is_claimed(tmp_path):
    factors = dict.fromkeys(("hdf5", "netcdf4", "zarr", "mpiio"), (1.0, 1.0))
    false = 0
    for seed in range(100):
        seconds = noisy(np.random.default_rng(seed), factors, repetitions=8)
        run = timed_run(tmp_path / str(seed), seconds, repetitions=8)
        *_, both = answers_of(run)
        false += bool(both.slower)
    assert false <= 5


def test_weights_decide_between_fast_writing_and_fast_reading(tmp_path):
    factors = {"hdf5": (1.0, 2.0), "netcdf4": (3.0, 1.0), "zarr": (9, 9), "mpiio": (1, 1)}
    run = timed_run(tmp_path, noisy(np.random.default_rng(2), factors, load=0.02))
    for told, backend in (("1:0", "hdf5"), ("1:1", "hdf5"), ("1:10", "netcdf4")):
        done = pffbench_cli("recommend", run, "--weight", told)
        assert done.status == 0, done.said
        assert f"- **Take** {format_title(backend)}, one shared array" in done.stdout, told
    assert pffbench_cli("recommend", run, "--reads", "10").stdout == done.stdout


def test_raw_bytes_are_never_recommended(tmp_path):
    run = timed_run(tmp_path, noisy(np.random.default_rng(3), dict.fromkeys(
        ("hdf5", "netcdf4", "zarr"), (1.0, 1.0)) | {"mpiio": (0.1, 0.1)}))  # fmt: skip
    assert "mpiio" not in "\n".join(recommend([run]).lines())


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"valid": False, "reasons": ["bytes were wrong"]}, "INVALID: bytes were wrong"),
        ({"valid": None, "status": "running"}, "it is not finished"),
        ({"valid": None, "status": "finished"}, "no verdict was given"),
    ],
)
def test_runs_that_nothing_follows_from_are_refused(tmp_path, record, reason):
    factors = dict.fromkeys(("hdf5", "netcdf4", "zarr", "mpiio"), (1.0, 1.0))
    bad = timed_run(tmp_path / "bad", noisy(np.random.default_rng(4), factors), **record)
    done = pffbench_cli("recommend", bad)
    assert done.status == 2
    assert reason in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    good = timed_run(tmp_path / "good", noisy(np.random.default_rng(4), factors))
    lines = recommend([bad, good]).lines()
    assert reason in lines[0]
    assert any(line.startswith("- **Not decided,**") for line in lines)


def test_few_repetitions_and_short_phases_claim_nothing(tmp_path):
    factors = {"hdf5": (1.0, 1.0), "netcdf4": (2.0, 2.0), "zarr": (3.0, 3.0), "mpiio": (1.0, 1.0)}
    for few in (4, FEWEST - 1):
        seconds = noisy(np.random.default_rng(5), factors, repetitions=few)
        run = timed_run(tmp_path / str(few), seconds, repetitions=few)
        assert all(not answer.slower for answer in answers_of(run))
        text = "\n".join(recommend([run]).lines())
        assert "### Because" not in text
        answer = answer_of(summarise(run))
        assert f"- **NO ANSWER** at least {FEWEST} repetitions are needed" in text
        assert answer.word == "NO ANSWER"
        assert f"- **NO ANSWER** {answer.sentence}." in text
        assert_nothing_is_taken(run, "- **NO ANSWER** ")
    short = timed_run(
        tmp_path / "short",
        noisy(np.random.default_rng(5), factors),
        floor=FLOOR | {"own": 1.0, "synced": 1.0},
    )
    sentence = answer_of(summarise(short)).sentence
    assert sentence.startswith("the times are too short to measure")
    text = "\n".join(recommend([short]).lines())
    assert f"- **NO ANSWER** {sentence}." in text
    assert "too short to measure (under 100 ×" in text
    assert recommend([short]).data()["runs"][0]["no_answer"] == sentence


def assert_nothing_is_taken(run, first="- **Not decided,** for writing once and reading once: "):
    """Assert that text, JSON, program, page and results of a run name no format to take."""
    text = "\n".join(recommend([run]).lines())
    assert first in text
    assert not re.search(r"Take|fastest|```|∞|\binf\b|smallest median", text), text
    found = json.loads(pffbench_cli("recommend", run, "--json").stdout)
    (work,) = found["runs"][0]["works"]
    assert work["take"] is work["program"] is None
    assert "Take" not in "".join(work["sentences"])
    assert work["answers"][-1]["ways"][0]["standing"] == "not decided"
    summary = summarise(run)
    assert 'class="choice"' not in render(summary, run, {})
    assert [one["take"] for one in as_data(summary)["recommendation"]] == [(), ()]


def test_of_equal_formats_none_is_taken(tmp_path):
    factors = dict.fromkeys(("hdf5", "netcdf4", "zarr", "mpiio"), (1.0, 1.0))
    run = timed_run(tmp_path, noisy(np.random.default_rng(8), factors, noise=0.2))
    assert_nothing_is_taken(run)
    told = r"\*\*NO ANSWER\*\* nothing is decided; (about|more than) \d+"
    assert re.search(told, recommendation_of(run))


def test_a_decided_format_is_taken_everywhere(tmp_path):
    cases = [a_case(backend, shape_per_rank=[4, 6]) for backend in ("hdf5", "netcdf4", "zarr")]
    factors = {"hdf5": (1.0, 1.0), "netcdf4": (2.0, 2.0), "zarr": (3.0, 3.0)}
    seconds = noisy(np.random.default_rng(9), factors, cases, repetitions=12, load=0.02)
    run = timed_run(tmp_path, seconds, cases, 12, experiment={"repetitions": 12})
    assert "- **Take** HDF5, one shared array" in recommendation_of(run)
    assert "Writing: HDF5 is fastest, " in recommendation_of(run)
    (work,) = json.loads(pffbench_cli("recommend", run, "--json").stdout)["runs"][0]["works"]
    assert work["take"].startswith("hdf5.")
    assert "import h5py" in work["program"]
    assert work["answers"][-1]["ways"][0]["standing"] == "fastest"
    summary = summarise(run)
    assert 'class="choice"' in render(summary, run, {})
    assert [one["take"] for one in as_data(summary)["recommendation"]] == [("hdf5",), ("hdf5",)]


def test_a_busy_machine_gives_no_answer(tmp_path):
    factors = dict.fromkeys(("hdf5", "netcdf4", "zarr", "mpiio"), (1.0, 1.0))
    run = timed_run(tmp_path, noisy(np.random.default_rng(8), factors, noise=0.2))
    load = LoadSummary(blocks=8, busy=8, busy_others=0.85)
    advice = advice_of(replace(summarise(run), load=load), run)
    text = "\n".join(lines_of(advice))
    assert "- **NO ANSWER** BUSY: others used 85% of the processors in 8 of 8" in text
    assert not re.search("```|slower", text)
    assert text.split("What makes this doubtful")[1].lstrip().startswith("- BUSY: ")


def test_the_only_way_is_not_called_the_best(tmp_path):
    (hdf5, *_) = CASES
    seconds = {hdf5[0]: [np.full(8, 1.0)] * 2}
    text = recommendation_of(timed_run(tmp_path, seconds, [hdf5]))
    assert "**Only measured:** HDF5, one shared array" in text
    assert not re.search(r"Take|fastest|as good|Avoid", text)


def recommendation_of(run):
    return "\n".join(recommend([run]).lines())


def test_what_bounds_an_answer_is_told(tmp_path):
    factors = {"hdf5": (1.0, 1.0), "netcdf4": (2.0, 2.0), "zarr": (3.0, 3.0), "mpiio": (1.0, 1.0)}
    cases = [*CASES]
    cases[0][1]["failure"] = None
    run = timed_run(
        tmp_path,
        noisy(np.random.default_rng(6), factors),
        provenance={"filesystem": {"type": "tmpfs", "in_memory": True}},
    )
    text = "\n".join(recommend([run]).lines())
    for told in (
        "the files were in memory (tmpfs)",
        "came from the page cache",
        "layouts own, file_per_process, file_per_group",
        "transfers collective",
        "formats Zarr (TensorStore)",
        "settings defaults",
        "codecs gzip, zstd, blosc, szip, lz4",
        "cache states shifted, dropped, separate",
        "other sizes than 2 ranks on 2 nodes",
    ):
        assert told in text, told


def test_several_runs_are_answered_apart_and_compared(tmp_path):
    runs = []
    for name, factor in (("small", 1.0), ("large", 3.0)):
        factors = {"hdf5": (factor, factor), "netcdf4": (2.0, 2.0), "zarr": (4, 4), "mpiio": (1, 1)}
        runs.append(timed_run(tmp_path / name, noisy(np.random.default_rng(7), factors)))
    text = "\n".join(recommend(runs).lines())
    assert text.count("**Take** HDF5") == text.count("**Take** netCDF-4") == 1
    assert "The runs do not recommend the same" in text
    assert "All runs recommend the same: HDF5" in "\n".join(recommend([runs[0], runs[0]]).lines())


@pytest.mark.parametrize("told", ["2", "1:2:3", "0:0", "-1:1", "a:b", "1:inf", "nan:1"])
def test_weights_that_make_no_sense_are_refused(capsys, told):
    with pytest.raises(SystemExit) as ended:
        make_parser().parse_args(["recommend", "run", f"--weight={told}"])
    assert ended.value.code == 2
    assert "is not a weight of writing and reading" in capsys.readouterr().err


LAYOUTS = [
    a_case("hdf5"), a_case("zarr"), a_case("hdf5", "collective"),
    a_case("hdf5", layout="file_per_process"), a_case("mpiio"),
]  # fmt: skip


def a_run_of_layouts(directory):
    """Make a run in which a file for each process is fastest, and Zarr slowest."""
    seconds = {}
    for name, entry in LAYOUTS:
        p = entry["parameters"]
        took = 0.5 if p["layout"] == "file_per_process" else 4.0 if p["backend"] == "zarr" else 1.0
        seconds[name] = [np.full(8, took)] * 2
    return timed_run(directory, seconds, LAYOUTS)


def test_the_first_lines_are_the_choice_and_what_to_avoid(tmp_path):
    lines = recommend([a_run_of_layouts(tmp_path)]).lines()
    first = [line for line in lines if line.startswith("- **")]
    assert lines.index(first[-1]) < lines.index("### Because")
    assert first[0].startswith("- **Take** HDF5, one shared array")
    assert first[1].startswith("- **As good here:** HDF5, collective transfer (1.00 times as long")
    assert first[2].startswith("- **Avoid:** Zarr, independent transfer (4.00 times as long")


def test_a_layout_is_another_question_unless_several_are_named(tmp_path):
    run = a_run_of_layouts(tmp_path)
    shared, alone = advise(run).works
    assert shared.choice.layout == "shared"
    assert alone.choice.layout == "file_per_process"
    assert "layouts own" in "\n".join(recommend([run]).lines())
    named = Filters(layouts=("shared", "file_per_process"))
    (both,) = advise(run, filters=named).works
    assert both.choice.layout == "file_per_process"
    assert [p.candidate.layout for p in both.answers[0].slower] == ["shared"] * 3


def test_only_ways_that_pass_the_filters_are_compared(tmp_path):
    run = a_run_of_layouts(tmp_path)
    for given, labels in (
        (["--one-file", "--format", "hdf5"], {"HDF5": 2}),
        (["--layout", "shared", "--transfer", "independent"], {"HDF5": 1, "Zarr": 1}),
    ):
        done = pffbench_cli("recommend", run, "--json", *given)
        assert done.status == 0, done.said
        (work,) = json.loads(done.stdout)["runs"][0]["works"]
        ways = [way["label"].split(",")[0] for way in work["answers"][0]["ways"]]
        assert {name: ways.count(name) for name in set(ways)} == labels
    for given, told in (
        (["--format", "netcdf4"], "--format netcdf4: the run has hdf5, zarr"),
        (["--format", "zarr", "--layout", "file_per_process"], "no way of the run is left"),
    ):
        done = pffbench_cli("recommend", run, *given)
        assert done.status == 2
        assert told in done.stderr


def test_json_has_the_content_of_the_text(tmp_path):
    run = a_run_of_layouts(tmp_path)
    told = json.loads(pffbench_cli("recommend", run, "--json").stdout)
    assert (told["format"], told["version"]) == ("pffbench recommend", 1)
    text = "\n".join(recommend([run]).lines(every=True)).replace("**", "")
    for work in told["runs"][0]["works"]:
        for sentence in (*work["sentences"], *work["doubts"], *work["not_tested"]):
            assert sentence in text
        assert work["no_program"] in text
        assert work["take"] in {way["case"] for way in work["answers"][0]["ways"]}
    slower = told["runs"][0]["works"][0]["answers"][0]["ways"][-1]
    assert slower["standing"] == "slower"
    assert slower["times_as_long"]["value"] == pytest.approx(4)


def test_one_work_is_answered_with_one_program_and_the_others_in_a_line(tmp_path):
    run = a_run_of_layouts(tmp_path)
    text = pffbench_cli("recommend", run).stdout
    assert text.count("### The program") == text.count("**Take**") == 1
    assert "- **Also in this run** (all with --all): layout file_per_process: HDF5." in text
    everything = pffbench_cli("recommend", run, "--all").stdout
    assert everything.count("### The program") == 2
    assert "**Only measured:** HDF5, a file for each process" in everything
    assert "Also in this run" not in everything


def test_what_the_run_tested_in_another_work_is_not_called_untested(tmp_path):
    cases = [a_case("hdf5", cache=cache) for cache in ("warm", "dropped")]
    cases += [a_case("hdf5", layout="own"), a_case("hdf5", codec="gzip", dtype="int16")]
    seconds = {name: [np.full(8, 1.0)] * 2 for name, _ in cases}
    text = recommendation_of(timed_run(tmp_path, seconds, cases))
    assert "- cache states shifted, separate" in text
    assert "- layouts file_per_process" in text
    assert "- codecs zstd, blosc, szip, lz4" in text


def test_the_time_of_the_users_own_program_is_told(tmp_path):
    run = a_run_of_layouts(tmp_path)
    given = ("--bytes", "8.388608G", "--steps", "36")  # 1000 times the 8 MiB of the run, each
    done = pffbench_cli("recommend", run, *given)
    # 1 s to write, 1 s to read: 2 s; Zarr takes 4 times as long.
    line = next(line for line in done.stdout.splitlines() if "Your program" in line)
    assert "36 steps of 8.389 GB take in all, if time grows as bytes, 20.0 h with HDF5" in line
    assert line.endswith("Zarr, independent transfer 60.0 h to 60.0 h more.")
    works = json.loads(pffbench_cli("recommend", run, "--json", *given).stdout)["runs"][0]["works"]
    assert works[0]["sentences"][-1].startswith("Your program: 36 steps")
    for wrong in (("--steps", "3"), ("--bytes", "600X"), ("--bytes", "1G", "--steps", "0")):
        assert pffbench_cli("recommend", run, *wrong).status == 2


@pytest.mark.parametrize("api", ["low_level", "high_level"])
def test_the_program_makes_the_calls_that_were_measured(tmp_path, api):
    apis = ("low_level", "high_level")
    cases = [with_options(a_case("hdf5", shape_per_rank=[4, 6]), api=name) for name in apis]
    seconds = {
        name: [np.linspace(1, 1.01, 12) * (1 if entry["options"]["api"] == api else 1.5)] * 2
        for name, entry in cases
    }
    text = recommendation_of(
        timed_run(tmp_path, seconds, cases, 12, experiment={"repetitions": 12})
    )
    assert ("dset.id.write(" in text) == (api == "low_level")
    assert ("dset[part] = data" in text) == (api == "high_level")
    assert ("With slices of h5py it takes 1.50 times as long" in text) == (api == "low_level")
    assert not re.search(r"range\(1\)|= \{\}", text)


def with_options(case, **options):
    name, entry = case
    return f"{name}-{options}", {**entry, "options": options}


def test_on_a_terminal_no_mark_of_markdown_is_left(tmp_path):
    out = io.StringIO()
    console = Console(file=out, width=60, force_terminal=True, color_system=None)
    print_markdown(recommend([a_run_of_layouts(tmp_path)]).lines(), console)
    shown = out.getvalue()
    assert "**" not in shown
    assert "```" not in shown
    assert "# " not in re.sub(r".*import|.*# yours|  .*#.*", "", shown)
    assert max(map(len, re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines())) <= 60 + 2
    assert "• Take HDF5, one shared array" in shown


def test_a_program_is_not_cut_at_the_width_of_the_terminal():
    out = io.StringIO()
    program = f"x = 1  # {'long ' * 30}end"
    print_markdown(["```python", program, "```"], Console(file=out, width=40))
    assert out.getvalue().rstrip("\n") == program


def test_a_case_of_an_environment_has_a_program(tmp_path):
    case = {"workload": "hyperslab", "backend": "hdf5", "shape": [[8, 8]]}
    ((_, case), *_) = from_data({"name": "x", "cases": [case], "roofline": False}, "x").cases
    told = {"workload": "hyperslab", **to_builtins(case.parameters, enc_hook=int)}
    options = to_builtins(case.options, enc_hook=int)
    summary = SimpleNamespace(sample=SimpleNamespace(backend="hdf5"))
    plain = code_for(Candidate(summary, told, options, None), 2)
    there = Candidate(summary, {**told, "environment": "new"}, options, None)
    assert code_for(there, 2) == plain
    assert "import h5py" in plain


def test_units_of_the_bytes_of_a_step_are_those_that_people_write(tmp_path, capsys):
    run = a_run(tmp_path / "run", [a_case("hdf5"), a_case("zarr")], repetitions=20)
    for text, told in {
        "600G": "600 GB", "600g": "600 GB", "600GB": "600 GB", "2k": "2 kB", "2K": "2 kB",
        "600GiB": "644.2 GB", "600Gi": "644.2 GB", "600 GiB": "644.2 GB", "1.5T": "1.5 TB",
        "600": "600 B", "1e3": "1 kB",
    }.items():  # fmt: skip
        given = make_parser("recommend").parse_args(["recommend", str(run), f"--bytes={text}"])
        done = recommend([run], own=OwnData(given.bytes)).lines()
        assert any(f"1 step of {told} takes in all" in line for line in done), text
    for text in ("0", "0G", "-5", "-5G", "words", "", "inf", "nan", "0.3B", "1e99", "9999PiB", "G"):
        with pytest.raises(SystemExit):
            make_parser("recommend").parse_args(["recommend", str(run), f"--bytes={text}"])
        assert f"argument --bytes: {text!r} is " in capsys.readouterr().err


def test_where_nothing_is_decided_the_words_are_those_of_the_run(tmp_path):
    factors = {"hdf5": (1, 1), "zarr": (1.02, 1.02)}
    run = a_contest(tmp_path / "run", factors, spread=0.5)
    sentence = answer_of(summarise(run)).sentence
    assert sentence.startswith("nothing is decided; ")
    lines = recommend([run]).lines()
    assert lines[2] == f"**NO ANSWER** {sentence}."
    assert any(line.startswith("- **Not decided,**") for line in lines)
    assert not any("Settings:" in line for line in lines)
    assert recommend([run]).data()["runs"][0]["no_answer"] == sentence
