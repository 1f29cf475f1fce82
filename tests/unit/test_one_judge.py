"""One function decides what is faster: every door gives its answer, no other code has a rule."""

from __future__ import annotations

import ast

import numpy as np
import pytest
from msgspec.structs import astuple
from pffbench.summary.inference import ComparisonTable, Decision, decide, planned_looks
from test_architecture import MODULES

from drawn_runs import AUTO, a_case, timed_run
from drawn_times import drawn
from pffbench.results.document import Results
from pffbench.results.summary import summarise
from pffbench_analysis.recommend.advice import advise

#: Functions of tests and intervals; whoever calls them could claim something by a rule of its own.
TOOLS = {
    "p_value", "shift_interval", "studentised_p", "smallest_p", "enough_for", "repetitions_for",
    "smallest_ratio", "Starts", "is_equivalent", "student_tail", "student_quantile",
}  # fmt: skip
#: Files that make decisions, or the tools for them. `shifts` of dependence finds drift in a run;
#: `bisect` asks on which side of the half-way point a version is, not whether it is faster.
JUDGE = {
    "inference.py", "rank_test.py", "starts.py", "student.py", "dependence.py", "judging.py",
}  # fmt: skip


def names_in(path):
    """Return the names that a module uses."""
    tree = ast.parse(path.read_text())
    found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return found | {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def test_only_the_judge_has_tests_and_intervals_at_hand():
    others = [path for path in MODULES if path.name not in JUDGE]
    assert len(others) < len(MODULES)
    assert {str(path): used for path in others if (used := names_in(path) & TOOLS)} == {}


def test_only_the_judge_makes_decisions():
    def claims(path):
        calls = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)]
        return [
            call.lineno
            for call in calls
            if isinstance(call.func, ast.Name) and call.func.id == "Decision"
            and (len(call.args) > 2 or any(k.arg in CLAIMS for k in call.keywords))
        ]  # fmt: skip

    assert {str(p): at for p in MODULES if p.name not in JUDGE and (at := claims(p))} == {}


CLAIMS = {"longer", "shorter", "equivalent"}


@pytest.mark.parametrize(
    ("true", "cv", "standing"),
    [(2.0, 0.05, "slower"), (1.0, 0.02, "equal"), (1.1, 0.3, "undecided")],
)
def test_every_door_gives_the_answer_of_the_judge(tmp_path, true, cv, standing):
    generator = np.random.default_rng(2)
    cases = dict([a_case("hdf5"), a_case("zarr")])
    base, other = (0.1 * drawn("normal", 1, 20, generator, cv)[0] for _ in range(2))
    other *= true * np.median(base) / np.median(other)
    hdf5, zarr = cases
    run = timed_run(
        tmp_path / "run", {hdf5: (base, base), zarr: (other, other)}, cases, experiment=AUTO
    )
    summary = summarise(run)
    told = {case.sample.case: case.phases["write_total"].by_block for case in summary.cases}
    assert [len(times) for times in told.values()] == [20, 20]
    tables = [
        ComparisonTable(told, ((zarr, hdf5),), kinds={zarr: "zarr", hdf5: "hdf5"})
        for _ in ("write", "read")
    ]
    judged = decide(tables, planned_looks(40))[0, zarr, hdf5]
    assert standing_of(judged) == standing
    # The headline, the table, the JSON document.
    for answer in summary.answers:
        (contender,) = answer.others
        assert contender.standing == standing
        of = contender.ratio if contender.case == zarr else contender.ratio.inverse
        if answer.total == "write_total":
            assert (of.value, of.low, of.high) == pytest.approx(astuple(judged.ratio)[1:4])
    document = Results.of(summary)
    assert {o.standing for c in document.comparisons for o in c.others} == {standing}
    # The recommendation.
    advice = advise(run)
    assert {
        STANDINGS[placed.standing.name]
        for work in advice.works
        for found in work.answers
        for placed in found.placed[1:]
    } == {standing}


STANDINGS = {"SLOWER": "slower", "EQUAL": "equal", "OPEN": "undecided"}


def standing_of(decision: Decision) -> str:
    """Return the word of the headline for a decision."""
    if decision.different:
        return "slower"
    return "equal" if decision.equivalent else "undecided"
