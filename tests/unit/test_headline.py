"""The headline: which comparisons it makes, what it says of them, and in which words."""

from __future__ import annotations

import itertools
import math
import re
import shlex

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from drawn_runs import AUTO, FLOOR, a_case, a_run, timed_run
from drawn_times import by_block, drawn
from pffbench.summary.answer import answer_of
from pffbench.summary.cautions import cautions
from pffbench.summary.conclusions import (
    command_to_decide,
    interval,
    sentences,
    subject,
    undecided,
    validity,
    verdict_lines,
)
from pffbench.summary.headline import (
    ComparisonKey,
    Design,
    absences,
    answers,
    comparison_key,
    takes_part,
    undecided_cases,
)
from pffbench.summary.inference import planned_looks
from pffbench.summary.legend import legend_lines
from pffbench.summary.rank_test import ALPHA
from pffbench.summary.summary import summarise

pytestmark = pytest.mark.long

DESIGN = Design(planned_looks(40))
#: Backend, median seconds and what else sets the case apart.
FORMATS = (("hdf5", 0.1), ("netcdf4", 0.2), ("zarr", 0.3))


def an_entry(backend, **more):
    """Return the entry of a case in `run.json`; what is no parameter is of the entry itself."""
    of_entry = {key: more.pop(key) for key in ("group", "raw", "failure", "invalid", "stored_as")
                if key in more}  # fmt: skip
    settings_ = more.pop("settings", "matched")
    _, entry = a_case(backend, **more)
    entry["parameters"]["settings"] = settings_
    return entry | of_entry


def asked(told, blocks=20, cv=0.03, seed=0, noise="normal", resolution=1e-6, **how):
    """Ask what is fastest at writing of cases with these medians.

    Parameters
    ----------
    told : sequence of (str, float) or (str, float, dict)
        Backend, median seconds and parameters of each case; its name is its place and backend.
    """
    generator = np.random.default_rng(seed)
    cases, times = {}, {}
    for place, (backend, median, *more) in enumerate(told):
        name = f"{place}.{backend}"
        cases[name] = an_entry(backend, **(more[0] if more else {}))
        times[name] = by_block(median * drawn(noise, 1, blocks, generator, cv)[0])
    return answers(cases, {"write_total": times}, DESIGN, resolution, **how)


def standings_of(answer):
    return {other.name: other.standing for other in answer.others}


# Which comparisons there are


def test_cases_are_compared_by_group_settings_and_whether_they_are_compressed():
    def key(**more):
        return comparison_key(an_entry("hdf5", group="g", **more))

    assert key() == ComparisonKey("g", "matched", compressed=False)
    assert key(settings="defaults") == ComparisonKey("g", "defaults", compressed=False)
    assert key(codec="zstd").compressed
    assert not key(codec="auto").compressed
    # What is really in the file counts, not what was asked for.
    assert key(codec="auto", stored_as={"codec": "blosc-zstd 3 byte"}).compressed
    assert not key(codec="zstd", stored_as={"codec": "none"}).compressed


def test_compressed_and_uncompressed_files_have_an_answer_each():
    told = [(b, s * (5 if codec else 1), {"codec": codec or "none"})
            for b, s in FORMATS for codec in ("", "zstd")]  # fmt: skip
    found = asked(told)
    assert {answer.key.compressed for answer in found} == {True, False}
    assert all(answer.name == "hdf5" and answer.decided for answer in found)
    for answer in found:
        assert all(1.5 < other.ratio.value < 4 for other in answer.others)


def test_defaults_are_in_the_headline_only_where_nothing_matched_is_compared():
    defaults = [(b, s, {"settings": "defaults"}) for b, s in FORMATS]
    assert {a.key.settings for a in asked([*FORMATS, *defaults])} == {"matched"}
    assert {a.key.settings for a in asked(defaults)} == {"defaults"}
    assert {a.key.settings for a in asked([FORMATS[0], *defaults])} == {"defaults"}


def test_cases_of_a_single_format_are_compared_with_each_other():
    (answer,) = asked([("hdf5", 0.1), ("hdf5", 0.2, {"transfer": "collective"})])
    assert answer.name == answer.case == "0.hdf5"
    assert standings_of(answer) == {"1.hdf5": "slower"}


def test_where_formats_are_compared_a_group_with_one_of_them_says_nothing():
    alone = [("hdf5", s, {"group": "other", "transfer": t})
             for s, t in ((0.1, "independent"), (0.2, "collective"))]  # fmt: skip
    (answer,) = asked([*FORMATS, *alone])
    assert answer.key.group != "other"


def test_one_case_is_compared_with_nothing():
    assert asked(FORMATS[:1]) == []
    assert asked([]) == []


@pytest.mark.parametrize("spoilt", [{"invalid": "lost data"}, {"failure": {"phase": "write"}}])
def test_cases_that_failed_or_read_wrong_data_take_part_in_nothing(spoilt):
    assert not takes_part(an_entry("hdf5", **spoilt))
    (answer,) = asked([("hdf5", 1e-3, spoilt), *FORMATS[1:]])
    assert answer.name == "netcdf4"
    assert set(standings_of(answer)) == {"zarr"}
    assert asked([("hdf5", 1e-3, spoilt), FORMATS[1]]) == []


def test_raw_bytes_are_no_competitor():
    (answer,) = asked([*FORMATS, ("mpiio", 0.01)])
    assert answer.name == "hdf5"
    assert "mpiio" not in standings_of(answer)


# What is said of them


def test_a_format_that_is_shown_to_be_faster_than_all_is_the_fastest():
    (answer,) = asked(FORMATS)
    assert answer.fastest == ("hdf5",)
    assert standings_of(answer) == {"netcdf4": "slower", "zarr": "slower"}
    assert [other.name for other in answer.others] == ["netcdf4", "zarr"]
    assert answer.others[0].ratio.low < 2 < answer.others[0].ratio.high
    assert answer.decided
    assert undecided_cases([answer]) == set()


def test_formats_within_the_margin_are_equally_fast():
    (answer,) = asked([("hdf5", 0.1), ("netcdf4", 0.1), ("zarr", 0.3)], cv=0.01)
    assert set(answer.fastest) == {"hdf5", "netcdf4"}
    assert standings_of(answer)["zarr"] == "slower"
    assert answer.decided


def test_what_is_not_decided_goes_on_and_what_is_slower_than_all_candidates_does_not():
    (answer,) = asked([("hdf5", 0.1), ("netcdf4", 0.101), ("zarr", 0.3)], cv=0.2, ended=False)
    (open_,) = [other for other in answer.others if other.standing == "undecided"]
    assert not answer.decided
    assert open_.needed > 20
    assert undecided_cases([answer]) == {"0.hdf5", "1.netcdf4"}


def test_a_case_goes_on_that_is_not_shown_to_be_slower_than_a_candidate():
    """Zarr is slower than HDF5, but perhaps not than netCDF-4, which may be the fastest."""
    found = [
        asked([("hdf5", 0.1), ("netcdf4", 0.115), ("zarr", 0.14)], cv=0.18, seed=seed)[0]
        for seed in range(20)
    ]
    chosen = [a for a in found if standings_of(a).get("zarr") == "slower" and not a.decided]
    running = [undecided_cases([answer]) for answer in chosen]
    assert {"0.hdf5", "1.netcdf4", "2.zarr"} in running
    assert all({"0.hdf5", "1.netcdf4"} <= names for names in running)


def test_a_format_is_faster_only_when_it_is_faster_than_each_case_of_the_other():
    """The slow case of a format does not make it slower, and needs no more repetitions."""
    zarr = [("zarr", 0.1005, {}), ("zarr", 0.3, {"transfer": "collective"})]
    (answer,) = asked([("hdf5", 0.1), *zarr], cv=0.15)
    (other,) = answer.others
    assert (other.standing, other.open_cases) == ("undecided", ("1.zarr",))
    assert undecided_cases([answer]) == {"0.hdf5", "1.zarr"}


def test_a_format_with_more_cases_has_no_advantage():
    """Six equal cases of one format against one of another: the best of six proves nothing."""
    more = [("hdf5", 0.1, {"layout": "shared", "chunks": i, "group": "g"}) for i in range(6)]
    runs = 150
    false = sum(
        standings_of(asked([*more, ("zarr", 0.1, {"group": "g"})], cv=0.2, seed=seed)[0])
        not in ({"zarr": "undecided"}, {"hdf5": "undecided"})
        for seed in range(runs)
    )
    assert false <= binom.ppf(0.999, runs, ALPHA)


def test_what_is_below_resolution_is_too_short_and_needs_no_more_repetitions():
    (answer,) = asked(FORMATS, resolution=0.15)
    assert answer.too_short
    assert answer.decided
    assert undecided_cases([answer]) == set()


def test_a_total_that_some_cases_lack_is_compared_among_the_others():
    names = [f"{i}.{b}" for i, (b, _) in enumerate(FORMATS)]
    cases = {name: an_entry(name[2:]) for name in names}
    times = {name: by_block(s * drawn("normal", 1, 20, np.random.default_rng(i), 0.03)[0])
             for i, (name, (_, s)) in enumerate(zip(names, FORMATS, strict=True))}  # fmt: skip
    reads = {names[0]: times[names[0]], names[1]: times[names[1]], names[2]: {}}
    written, read = answers(cases, {"write_total": times, "read_total": reads}, DESIGN, 1e-6)
    assert set(standings_of(written)) == {"netcdf4", "zarr"}
    assert set(standings_of(read)) == {"netcdf4"}


def test_an_answer_is_the_same_whatever_order_cases_are_in():
    before = asked(FORMATS, cv=0.3)[0]
    names = [f"{i}.{b}" for i, (b, _) in enumerate(FORMATS)]
    generator = np.random.default_rng(0)
    times = {name: by_block(s * drawn("normal", 1, 20, generator, 0.3)[0])
             for name, (_, s) in zip(names, FORMATS, strict=True)}  # fmt: skip
    for order in itertools.permutations(names):
        cases = {name: an_entry(name[2:]) for name in order}
        (after,) = answers(cases, {"write_total": {n: times[n] for n in order}}, DESIGN, 1e-6)
        assert (after.name, standings_of(after), set(after.running)) == (
            before.name, standings_of(before), set(before.running),
        )  # fmt: skip


def test_the_design_is_that_of_the_experiment():
    assert Design.of_experiment(AUTO) == Design(planned_looks(40), 0.1)
    assert Design.of_experiment({"repetitions": 12, "margin": 0.02}) == Design((12,), 0.02)
    assert Design.of_experiment({}).margin == 0.1


# In words


def a_timed(place, told, blocks=20, cv=0.03, seed=0, experiment=AUTO, **record):
    """Write and summarise a run; `told` has backend, seconds, and parameters of each case."""
    generator = np.random.default_rng(seed)
    cases, seconds = {}, {}
    for number, (backend, took, *more) in enumerate(told):
        parameters = dict(more[0]) if more else {}
        group, cost = parameters.pop("group", None), parameters.pop("cost", None)
        invalid = parameters.pop("invalid", None)
        name, entry = a_case(backend, **parameters)
        name = f"{name}.{number}"
        cases[name] = entry | ({"group": group} if group else {})
        cases[name] |= {"invalid": invalid} if invalid else {}
        cases[name] |= {"cost": cost} if cost else {}
        both = took if isinstance(took, tuple) else (took, took)
        seconds[name] = [median * drawn("normal", 1, blocks, generator, cv)[0] for median in both]
    return summarise(timed_run(place, seconds, cases, experiment=experiment, **record))


def test_a_decided_run_says_what_is_fastest_and_by_how_much(tmp_path):
    told = [("hdf5", (0.1, 0.3)), ("netcdf4", (0.2, 0.1)), ("zarr", (0.3, 0.2))]
    writing, reading, verdict = verdict_lines(a_timed(tmp_path, told))
    assert writing.startswith("Writing (to the device): HDF5 is fastest; netCDF-4 takes ")
    assert reading.startswith("Reading (from the page cache): netCDF-4 is fastest; Zarr takes ")
    first, second = writing.partition("; ")[2].split(", ")
    assert first.startswith("netCDF-4 takes ")
    assert first.endswith("] as long (medians)")
    assert second.startswith("Zarr takes ")
    low, high = map(float, first[first.index("[") + 1 : first.index("]")].split("–"))
    assert 1.8 < low < 2 < high < 2.2
    assert verdict == "VALID: every byte read was verified; 3 cases, 20 repetitions each"
    assert "±" not in "".join((writing, reading, verdict))


def test_roof_and_ratio_are_over_the_blocks_that_both_cases_have(tmp_path):
    """A machine that becomes 1.6 times slower: the case that stopped early met its fast part."""
    cases = dict([a_case("hdf5"), a_case("zarr"), a_case("mpiio")])
    hdf5, zarr, raw = cases
    machine = np.repeat([1.0, 1.6], 20)
    quick, slow, bound = (median * machine for median in (0.1, 0.13, 0.09))
    seconds = {hdf5: (quick, quick), zarr: (slow[:10], slow[:10]), raw: (bound, bound)}
    summary = summarise(timed_run(tmp_path / "run", seconds, cases, experiment=AUTO))
    phases = {case.sample.backend: case.phases["write_total"] for case in summary.cases}
    assert phases["zarr"].roofline == pytest.approx(0.09 / 0.13, rel=1e-3)
    assert phases["hdf5"].roofline == pytest.approx(0.9, rel=1e-3)
    assert phases["zarr"].ratio.value == pytest.approx(1.3, rel=1e-3)
    medians = phases["zarr"].seconds.median / phases["hdf5"].seconds.median
    assert medians == pytest.approx(1.0, rel=1e-3)
    assert any(line.startswith("where n differs, ×best and roof") for line in legend_lines(summary))


def test_sums_that_contradict_the_medians_are_a_warning(tmp_path):
    """Of netCDF-4's reads one in seven takes four times as long, for which the user pays."""
    generator = np.random.default_rng(3)
    cases = dict([a_case("hdf5"), a_case("netcdf4")])
    steady, spiky = (0.1 * drawn("normal", 1, 28, generator, 0.03)[0] for _ in range(2))
    spiky[::7] *= 4
    seconds = dict(zip(cases, [(steady, steady), (steady[::-1], spiky)], strict=True))
    summary = summarise(timed_run(tmp_path / "run", seconds, cases, experiment=AUTO))
    (told,) = [text for text in cautions(summary) if "by the sum" in text]
    assert re.match(
        r"warning: reading: netCDF-4 takes 1\.4\d times as long as HDF5 by the sum of the times, "
        r"1\.0\d times by the medians: 4 of 28 repetitions took 3\.\d–4\.\d times the median of "
        r"netCDF-4$",
        told,
    ), told


def test_a_format_that_becomes_slower_during_the_run_is_a_warning(tmp_path):
    told = [("hdf5", 0.1), ("netcdf4", 0.12), ("zarr", 0.2)]
    assert not [t for t in cautions(a_timed(tmp_path / "a", told)) if "second half" in t]
    generator = np.random.default_rng(4)
    cases = dict(a_case(name) for name, _ in told)
    rows = [median * drawn("normal", 1, 28, generator, 0.03)[0] for _, median in told]
    rows[2][14:] *= 1.5
    seconds = {name: (row, row) for name, row in zip(cases, rows, strict=True)}
    summary = summarise(timed_run(tmp_path / "b", seconds, cases, experiment=AUTO))
    (warning,) = [text for text in cautions(summary) if "second half" in text]
    assert "Zarr 1.3" in warning
    assert "repetitions depend on each other" in warning


def test_equal_formats_are_said_to_be_equal_within_the_margin(tmp_path):
    told = [("hdf5", 0.1), ("netcdf4", 0.1), ("zarr", 0.3)]
    for line in sentences(a_timed(tmp_path, told, cv=0.01)):
        assert " and " in line
        assert "are equally fast within 10%; Zarr takes 3.0" in line


def test_what_is_not_decided_names_what_would_decide_it(tmp_path):
    told = [("hdf5", 0.1), ("netcdf4", 0.105), ("zarr", 0.4)]
    summary = a_timed(tmp_path / "auto", told, cv=0.25)
    writing, reading = sentences(summary)
    for line in (writing, reading):
        assert ": not decided between HDF5 and netCDF-4 (1." in line
        assert "Zarr takes " in line
    (open_,) = undecided(summary)
    needed = max(o.needed for a in summary.answers for o in a.others)
    assert open_.startswith(f"Open (?): 2 of 4 comparisons; about {needed} repetitions")
    auto = shlex.split(command_to_decide(summary, needed))
    assert auto[-2:] == ["--set", f"max_repetitions={needed}"]
    fixed = a_timed(tmp_path / "fixed", told, cv=0.25, experiment={"repetitions": 20})
    assert shlex.split(command_to_decide(fixed, 50))[-1] == "repetitions=50"
    limited = {**AUTO, "time_budget": 60.0}
    budget = a_timed(tmp_path / "budget", told, cv=0.25, experiment=limited)
    *_, more = shlex.split(command_to_decide(budget, 41))
    assert re.fullmatch(r"time_budget=\d+", more)
    assert command_to_decide(fixed, 1001) == ""


def test_fewer_than_seven_repetitions_ask_for_seven_and_no_more(tmp_path):
    """How many would decide cannot be told from so few."""
    summary = a_timed(tmp_path, FORMATS, blocks=4)
    (line,) = undecided(summary)
    assert line.endswith("; at least 7 repetitions are needed, and no case has more than 4.")


def test_what_no_number_of_repetitions_decides_is_said_to_be_so(tmp_path):
    cases = [a_case("hdf5"), a_case("netcdf4")]
    wild = drawn("normal", 1, 12, np.random.default_rng(1), 4.0)[0]
    seconds = {
        name: (wild[::step], wild[::step]) for (name, _), step in zip(cases, (1, -1), strict=True)
    }
    (line,) = undecided(summarise(timed_run(tmp_path, seconds, cases, experiment=AUTO)))
    assert "more than 1000 repetitions would be needed, or larger arrays" in line


def test_minutes_that_are_missing_follow_from_what_the_run_took(tmp_path):
    told = [("hdf5", 0.1), ("netcdf4", 0.105)]
    times = {"started": "2026-01-01T12:00:00+00:00", "finished": "2026-01-01T12:10:30+00:00"}
    summary = a_timed(tmp_path, told, cv=0.25, **times)
    needed = max(o.needed for a in summary.answers for o in a.others)
    minutes = 10.5 / 42 * 2 * (needed - 20)  # two cases with 20 repetitions and a warm-up each
    expected = f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
    (line,) = undecided(summary)
    assert f"repetitions ({expected} more) would decide" in line
    assert validity(summary).endswith(", 10 min")


def test_comparisons_with_different_winners_are_named(tmp_path):
    told = [
        (backend, seconds, {"layout": layout, "group": layout})
        for layout, both in (("shared", (0.1, 0.2)), ("own", (0.2, 0.1)))
        for backend, seconds in zip(("hdf5", "zarr"), both, strict=True)
    ]
    for line in sentences(a_timed(tmp_path, told)):
        assert "HDF5 is fastest with layout shared; Zarr takes " in line
        assert ". Zarr is fastest with layout own; HDF5 takes " in line


def test_many_comparisons_are_counted(tmp_path):
    told = [
        (backend, seconds, {"group": f"g{i}", "source": f"s{i}"})
        for i in range(6)
        for backend, seconds in (("hdf5", 0.1), ("zarr", 0.2 if i else 0.05))
    ]
    for line in sentences(a_timed(tmp_path, told)):
        assert "HDF5 is fastest in 5 of 6 comparisons; Zarr takes 1." in line
        # One is few enough to be named.
        assert ". Zarr is fastest with source s0; HDF5 takes" in line
    same = a_timed(tmp_path / "same", [t for t in told if t[2]["group"] != "g0"])
    assert all("HDF5 is fastest in all 5 comparisons" in line for line in sentences(same))


@pytest.mark.parametrize(
    ("cache", "said"),
    [
        ("warm", "Reading (from the page cache):"),
        ("shifted", "Reading (from the page cache, written by another rank):"),
        ("copied", "Reading (from the page cache, a copy):"),
        ("dropped", "Reading (from the device, or a cache beyond this kernel):"),
        ("separate", "Reading (by another job):"),
        ("unproved", "Reading (with a page cache in an unproved state):"),
    ],
)
def test_where_data_were_read_from_is_said(tmp_path, cache, said):
    told = [(b, s, {"cache": cache, "group": "g"}) for b, s in FORMATS]
    assert sentences(a_timed(tmp_path, told))[1].startswith(said)


def test_several_states_of_the_cache_are_not_taken_for_one(tmp_path):
    told = [(b, s, {"cache": cache}) for cache in ("warm", "dropped") for b, s in FORMATS]
    assert sentences(a_timed(tmp_path, told))[1].startswith("Reading (mixed caches): ")


EXTRA = {"experiment": AUTO | {"cold_reads": "extra"}}


def test_extra_cold_reads_have_a_sentence_of_their_own_and_change_no_other(tmp_path):
    warm = [(b, s, {"group": "g"}) for b, s in FORMATS]
    cold = [(b, 1 - s, {"group": "h", "cache": "dropped"}) for b, s in FORMATS]
    alone = sentences(a_timed(tmp_path / "alone", warm))
    summary = a_timed(tmp_path / "both", [*warm, *cold], **EXTRA)
    *others, last = sentences(summary)
    assert [line.split(";")[0] for line in others] == [line.split(";")[0] for line in alone]
    assert last.startswith(
        "Reading (from the device, or a cache beyond this kernel, layout shared): Zarr is fastest; "
    )
    assert [a.total for a in summary.cold_answers] == ["read_total"]
    assert not list(undecided(summary))


def test_undecided_extra_cold_reads_ask_for_no_more_repetitions(tmp_path):
    warm = [(b, s, {"group": "g"}) for b, s in FORMATS]
    cold = [(b, 1.0 + s / 10, {"group": "h", "cache": "dropped"}) for b, s in FORMATS]
    summary = a_timed(tmp_path, [*warm, *cold], cv=0.1, **EXTRA)
    assert "not decided" in sentences(summary)[-1]
    (open_,) = undecided(summary)
    assert re.fullmatch(
        r"Open \(\?\): [12] of 6 comparisons; measure reads from disk alone with "
        r"--set cache=dropped\.", open_
    )  # fmt: skip
    answer = answer_of(summary)
    assert any("?" in row[-1] for row in answer.rows)
    assert (answer.open, answer.command) == (open_, "")


def test_open_reads_from_disk_are_counted_and_the_command_decides_the_others(tmp_path):
    warm = [("hdf5", 0.1, {"group": "g"}), ("zarr", 0.105, {"group": "g"})]
    cold = [(b, s, {"group": "h", "cache": "dropped"}) for b, s, _ in warm]
    summary = a_timed(tmp_path, [*warm, *cold], cv=0.25, **EXTRA)
    (open_,) = undecided(summary)
    assert open_.startswith("Open (?): 3 of 3 comparisons; about ")
    assert open_.endswith(" decide 2.")


def test_extra_cold_reads_go_on_until_they_are_decided():
    generator = np.random.default_rng(0)
    cases, times = {}, {}
    for cache, second in (("warm", 0.5), ("dropped", 0.101)):
        for backend, median in (("hdf5", 0.1), ("zarr", second)):
            name = f"{cache}.{backend}"
            cases[name] = an_entry(backend, cache=cache, group=cache)
            times[name] = by_block(median * drawn("normal", 1, 10, generator, 0.2)[0])
    design = Design(planned_looks(40), extra_cold_reads=True)
    found = answers(cases, {"read_total": times}, design, 1e-6, ended=False)
    assert undecided_cases(found) == {"dropped.hdf5", "dropped.zarr"}


SIZED = {"dtype": "float32", "chunks": [4, 512, 512]}


def cases_of_size(group, mib, factor=1.0, **more):
    """Return cases of the formats that move so many MiB; Zarr takes so many times as long."""
    cost = {"cost": {"nbytes": mib * 2**20}}
    return [(b, s * (factor if b == "zarr" else 1.0), SIZED | more | cost | {"group": group})
            for b, s in FORMATS]  # fmt: skip


def test_sentences_begin_with_what_was_measured_and_say_how_far_they_carry(tmp_path):
    writing, reading, reach = sentences(a_timed(tmp_path, cases_of_size("g", 48)))
    assert writing.startswith(
        "48 MiB in chunks of 4 MiB, 2 ranks, writing (to the device): HDF5 is fastest; netCDF-4 "
    )
    assert reading.startswith("48 MiB in chunks of 4 MiB, 2 ranks, reading (from the page cache): ")
    assert reach == "Other sizes, chunks and numbers of ranks were not measured and may differ."


def test_sentences_over_several_sizes_name_them(tmp_path):
    told = [
        *cases_of_size("g", 48),
        *cases_of_size("h", 8, 2.0),
        *cases_of_size("i", 48, 0.1, layout="own"),
    ]
    told += cases_of_size("j", 48, chunks=[2, 256, 256])
    summary = a_timed(tmp_path, told, cv=0.001)
    writing, _, reach = sentences(summary)
    start = "8 MiB and 48 MiB in chunks of 512 KiB and 4 MiB, 2 ranks, writing (to the device): "
    assert writing.startswith(start)
    assert "HDF5 is fastest with layout shared, layout shared 8 MiB and layout shared chunks " in (
        writing
    )
    assert "Zarr is fastest with layout own;" in writing
    assert reach.startswith("Other sizes, ")
    assert len(verdict_lines(summary)) <= 6


def test_a_run_of_cold_reads_alone_has_them_in_its_headline(tmp_path):
    cold = [(b, s, {"group": "h", "cache": "dropped"}) for b, s in FORMATS]
    summary = a_timed(tmp_path, cold, **EXTRA)
    assert len(summary.answers) == 2
    assert not summary.cold_answers


@pytest.mark.parametrize(
    ("durability", "said"),
    [("close", "until close"), ("flush", "until the flush"), ("sync", "to the device")],
)
def test_how_durably_was_written_is_said(tmp_path, durability, said):
    told = [(b, s, {"durability": durability, "group": "g"}) for b, s in FORMATS]
    assert sentences(a_timed(tmp_path, told))[0].startswith(f"Writing ({said}): HDF5")


def test_several_durabilities_are_not_taken_for_one(tmp_path):
    told = [(b, s, {"durability": d, "group": d}) for d in ("close", "sync") for b, s in FORMATS]
    (writing, _) = sentences(a_timed(tmp_path, told))
    assert writing.startswith("Writing (as durably as each asks for): ")


def test_cases_of_one_format_are_named_by_what_sets_them_apart(tmp_path):
    told = [("hdf5", 0.1), ("hdf5", 0.2, {"transfer": "collective"})]
    for line in sentences(a_timed(tmp_path, told)):
        assert "HDF5 independent is fastest; HDF5 collective takes 2.0" in line


def test_an_invalid_case_is_in_no_sentence_and_the_run_is_invalid(tmp_path):
    told = [("hdf5", 1e-3, {"invalid": "lost data"}), *FORMATS[1:]]
    summary = a_timed(tmp_path, told, valid=False, reasons=["hdf5: lost data", "also this"])
    *lines, verdict = verdict_lines(summary)
    assert all("netCDF-4 is fastest" in line and "hdf5" not in line for line in lines)
    assert verdict == "INVALID: hdf5: lost data (and 1 more reason)"
    (spoilt,) = [case for case in summary.cases if case.invalid]
    assert all(p.ratio is None and p.roofline is None for p in spoilt.phases.values())
    best = [c.phases["write_total"].ratio.value for c in summary.cases if not c.invalid]
    assert min(best) == 1


#: Formats of which one has two transfers, that would be compared if they were alone.
ALONE = [("hdf5", 0.1), ("hdf5", 0.2, {"transfer": "collective"})]


@pytest.mark.parametrize(
    "spoilt",
    [{"invalid": "lost\n data"}, {"failure": {"phase": "write", "error": "no\nspace"}}],
)
def test_what_is_left_of_one_format_is_no_comparison_of_its_transfers(spoilt):
    told = [*ALONE, ("zarr", 0.3, spoilt)]
    assert asked(told) == []
    cases = {
        str(i): an_entry(backend, **(more[0] if more else {}))
        for i, (backend, _, *more) in enumerate(told)
    }
    (absent,) = absences(cases)
    assert (absent.name, absent.missed, absent.planned) == ("zarr", 1, 1)
    assert absent.why in ("lost data", "failed in write: no space")
    assert [answer.name for answer in asked(ALONE)] == ["0.hdf5"]
    assert absences({name: entry for name, entry in cases.items() if name != "2"}) == []


def test_a_format_that_takes_no_part_is_named_with_the_reason(tmp_path):
    spoilt = {"invalid": "lost data"}
    alone = a_timed(tmp_path / "alone", [*ALONE, ("zarr", 0.3, spoilt)])
    assert sentences(alone) == ["Nothing is compared: Zarr takes no part (lost data)."]
    assert cautions(alone) == []
    beside = a_timed(tmp_path / "beside", [*ALONE, ("netcdf4", 0.3), ("zarr", 0.3, spoilt)])
    assert all("HDF5 is fastest; netCDF-4" in line for line in sentences(beside))
    assert cautions(beside)[0] == "warning: Zarr takes no part (lost data)"
    told = [(b, s, {"group": g, "layout": g} | (spoilt if (b, g) == ("zarr", "own") else {}))
            for b, s in FORMATS for g in ("shared", "own")]  # fmt: skip
    partly = a_timed(tmp_path / "partly", told)
    assert cautions(partly)[0] == "warning: Zarr takes no part in 1 of 2 comparisons (lost data)"
    one_left = a_timed(tmp_path / "whole", [("hdf5", 0.1, spoilt), *ALONE[1:], ("zarr", 0.3)])
    assert all("HDF5 is fastest; Zarr takes" in line for line in sentences(one_left))
    assert not any("takes no part" in line for line in cautions(one_left))


def test_the_table_and_the_sentence_have_the_same_ratios(tmp_path):
    """Both print the interval of the decision; other pairs have one of their own."""
    told = [(b, s * f, {"transfer": t, "group": "g"}) for b, s in FORMATS
            for f, t in ((1, "independent"), (1.1, "collective"))]  # fmt: skip
    summary = a_timed(tmp_path, told, blocks=20, cv=0.1, experiment=AUTO)
    cases = {case.sample.case: case for case in summary.cases}
    assert {answer.total for answer in summary.answers} == {"write_total", "read_total"}
    for answer in summary.answers:
        (line,) = (x for x in sentences(summary) if x.startswith(subject(summary, answer.total)))
        assert cases[answer.case].phases[answer.total].ratio.value == 1
        assert len(answer.ratios) == 4  # the cases of the two other formats
        for name, ratio in answer.ratios.items():
            assert cases[name].phases[answer.total].ratio == ratio
        for other in answer.others:
            assert other.ratio == answer.ratios[other.case]
            assert interval(cases[other.case].phases[answer.total].ratio) in line
        # Cases of the fastest format are compared in the table alone.
        (own,) = (c for c in cases if c not in answer.ratios and c != answer.case)
        assert cases[own].phases[answer.total].ratio.value > 1


@pytest.mark.parametrize("text", ["nan", "inf", "-1.0", "-inf"])
def test_seconds_that_are_none_are_refused_with_their_place(tmp_path, text):
    a_timed(tmp_path, FORMATS)
    path = tmp_path / "samples.csv"
    lines = path.read_text().splitlines()
    header = lines[0].split(",")
    place = next(i for i, line in enumerate(lines) if ",3,false,0,write," in line)
    cells = lines[place].split(",")
    for column in ("seconds", "own_max"):
        cells[header.index(column)] = text
    path.write_text("\n".join([*lines[:place], ",".join(cells), *lines[place + 1 :]]) + "\n")
    with pytest.raises(ValueError, match=rf"samples.csv line {place + 1}: \w+ is {text}, which"):
        summarise(tmp_path)


def test_times_of_a_clock_that_ran_backwards_are_left_out(tmp_path):
    a_timed(tmp_path, FORMATS)
    path = tmp_path / "samples.csv"
    lines = path.read_text().splitlines()
    header = lines[0].split(",")
    place = next(i for i, line in enumerate(lines) if ",3,false,0,write," in line)
    cells = lines[place].split(",")
    for column, text in (("seconds", "-1.0"), ("own_max", "-1.0"), ("valid", "false")):
        cells[header.index(column)] = text
    path.write_text("\n".join([*lines[:place], ",".join(cells), *lines[place + 1 :]]) + "\n")
    (case,) = (case for case in summarise(tmp_path).cases if case.sample.case == cells[0])
    assert 3 not in case.phases["write_total"].by_block
    assert 3 in case.phases["read_total"].by_block


def test_what_is_too_short_is_not_compared(tmp_path):
    summary = a_timed(tmp_path, FORMATS, floor=FLOOR | {"own": 0.01, "synced": 0.01})
    assert all(
        line.endswith(
            "too short to measure (under 100 × the overhead of measuring); use larger arrays."
        )
        for line in sentences(summary)
    )
    assert list(undecided(summary)) == []


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (
            {"valid": None, "status": "running"},
            "NOT FINISHED: the run goes on, or was killed elsewhere; repetitions are missing",
        ),
        (
            {"valid": None, "status": "interrupted"},
            "KILLED: repetitions are missing; pffbench run --resume goes on with them",
        ),
        (
            {"valid": None, "status": "written"},
            "WRITTEN: nothing has been read and verified yet",
        ),
        (
            {"status": "interrupted"},
            "INTERRUPTED: every byte read was verified; 3 cases, 20 repetitions each",
        ),
    ],
)
def test_runs_that_are_not_valid_yet_say_so(tmp_path, record, said):
    summary = a_timed(tmp_path, FORMATS, **record)
    assert verdict_lines(summary)[-1] == said
    assert sentences(summary)


def test_one_case_has_a_verdict_and_nothing_else(tmp_path):
    (line,) = verdict_lines(a_timed(tmp_path, FORMATS[:1]))
    assert line == "VALID: every byte read was verified; 1 case, 20 repetitions"
    lines = verdict_lines(summarise(a_run(tmp_path / "drawn", [a_case("hdf5")], repetitions=1)))
    assert lines == ["VALID: every byte read was verified; 1 case, 1 repetition"]


RUNS = st.lists(
    st.tuples(
        st.sampled_from(["hdf5", "netcdf4", "zarr", "mpiio"]),
        st.sampled_from([1e-6, 0.1, 0.101, 0.15, 0.4]),
        st.fixed_dictionaries(
            {},
            optional={
                "layout": st.sampled_from(["shared", "own"]),
                "transfer": st.sampled_from(["independent", "collective"]),
                "codec": st.sampled_from(["none", "zstd"]),
                "durability": st.sampled_from(["close", "sync"]),
                "cache": st.sampled_from(["warm", "dropped", "unproved"]),
                "invalid": st.just("lost data"),
                "group": st.sampled_from(["a", "b", "c"]),
            },
        ),
    ),
    min_size=1,
    max_size=10,
)


@settings(max_examples=40)
@given(
    RUNS,
    st.integers(1, 12),
    st.sampled_from([0.01, 0.3, 2.0]),
    st.sampled_from([{}, {"valid": False, "reasons": ["a", "b", "c"]}, {"status": "interrupted"}]),
)
def test_the_verdict_has_five_lines_at_most_and_is_the_last_of_them(
    tmp_path_factory, told, blocks, cv, record
):
    summary = a_timed(tmp_path_factory.mktemp("run"), told, blocks, cv, **record)
    lines = verdict_lines(summary)
    assert 1 <= len(lines) <= 5
    assert lines[-1] == validity(summary)
    assert all(line and "\n" not in line and "nan" not in line for line in lines)
    for answer in summary.answers:
        assert answer.decided or answer.running
        for other in answer.others:
            assert other.standing != "undecided" or answer.too_short or other.needed > blocks
            assert not math.isnan(other.ratio.value)
