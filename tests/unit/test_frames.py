"""Raw results as pandas frames."""

from __future__ import annotations

import pytest

from drawn_runs import PHASES, RANKS, USUAL, append_ranks
from pffbench.record.ranks import RanksFile
from pffbench.summary.summary import summarise
from pffbench_analysis import Run

pytest.importorskip("pandas")


def test_samples(run):
    pd = pytest.importorskip("pandas")
    frame = Run.load(run).samples
    assert len(frame) == len(USUAL) * 5 * len(PHASES)
    assert frame.warmup.dtype == bool
    assert frame.started.dt.tz is not None
    assert frame.disk_files.dtype == pd.Int64Dtype()
    assert frame.disk_files.notna().sum() == len(USUAL) * 5
    counted = frame[~frame.warmup & (frame.phase == "write") & (frame.case == USUAL[0][0])]
    median = summarise(run).cases[0].phases["write"].seconds.median
    assert counted.seconds.median() == pytest.approx(median)


def test_load_ranks(run):
    from pffbench_analysis.frames import load_ranks

    frame = load_ranks(run, USUAL[0][0])
    assert len(frame) == 5 * len(PHASES) * RANKS
    by_rank = frame.groupby("rank")
    assert by_rank.host.first().tolist() == ["a", "b"]
    assert by_rank.peak_memory.first().tolist() == [10, 20]
    job = frame.groupby(["repetition", "phase"]).own.max()
    samples = Run.load(run).samples
    same = samples[samples.case == USUAL[0][0]].set_index(["repetition", "phase"]).own_max
    assert (job.sort_index() == same.sort_index()).all()
    with pytest.raises(ValueError, match="no case 'nothing'"):
        load_ranks(run, "nothing")


def test_load_ranks_keeps_the_last_of_a_repetition_done_again(run):
    from pffbench_analysis.frames import load_ranks

    name = USUAL[0][0]
    append_ranks(RanksFile(str(run / "ranks.h5"), []), name, 4, [9.0] * len(PHASES))
    frame = load_ranks(run, name)
    assert len(frame) == 5 * len(PHASES) * RANKS
    assert set(frame[(frame.repetition == 4) & (frame["rank"] == 0)].own) == {9.0}


def test_loading_nothing_is_an_error(tmp_path):
    from pffbench_analysis.frames import load_ranks

    with pytest.raises(ValueError, match=r"ranks\.h5 cannot be read"):
        load_ranks(tmp_path, "some")
