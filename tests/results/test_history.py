"""The course of a run, as a frame: the same after kills, blind before the verdict."""

import numpy as np
import pytest
from reports import N_FEATURES, report_of, run_of

import srs_ooc
from srs_ooc.evidence.tally import LEADING, RankingHistory
from srs_ooc.results.report import history_of

COUNTED = ("iterations", "trees", "found", "leading", "decoys", "unchanged")


def counted(result):
    return [{name: row[name] for name in COUNTED} for row in result.history("records")]


def test_a_run_with_decoys_shows_what_led_it():
    rows = srs_ooc.open_run(run_of("classes")).history("records")
    assert [row["iterations"] for row in rows] == [100, 134, 179, 239, 300]
    assert {row["leading"] for row in rows} == {LEADING}
    assert rows[0]["unchanged"] is None
    with report_of("classes") as report:
        kept = report.ledger.read_arrays(RankingHistory.name)["items"]
        selected = set(report.selected.tolist())
    for row, items in zip(rows, kept, strict=False):
        assert row["found"] == sum(item in selected for item in items.tolist())
        assert row["decoys"] == sum(item >= N_FEATURES for item in items.tolist())
        assert row["trees"] == row["iterations"]
    shared = len(np.intersect1d(kept[0], kept[1]))
    assert rows[1]["unchanged"] == shared
    seconds = [row["seconds"] for row in rows]
    assert seconds == sorted(seconds)
    assert all(row["memory_mb"] >= 0 for row in rows)


def test_nothing_is_said_of_decoys_before_the_verdict():
    run = srs_ooc.open_run(run_of("provisional"))
    assert run.is_provisional
    assert {(row["found"], row["decoys"]) for row in run.history("records")} <= {(None, None)}


def test_a_run_without_a_verdict_at_the_end_shows_its_kept_set():
    rows = srs_ooc.open_run(run_of("probe")).history("records")
    with report_of("probe") as report:
        entered = report.reading.kept.entered
    assert rows[0]["found"] == 0
    assert rows[-1]["iterations"] == 300
    assert rows[-1]["found"] == len(entered)
    for row in rows:
        assert row["found"] == np.count_nonzero(entered <= row["iterations"])
        assert row["leading"] is None


def test_it_is_the_same_after_a_run_was_stopped_and_resumed(tmp_path):
    whole = srs_ooc.open_run(run_of("classes"))
    given = {"iterations": 300, "q": 15, "memory_mb": 4000, "out": tmp_path / "again.run"}

    def stop(step):
        if step.done >= 150:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        srs_ooc.run(whole.store, progress=stop, **given)
    again = srs_ooc.resume(given["out"])
    assert counted(again) == counted(whole)


def test_a_run_that_kept_no_history_shows_where_it_ended(tmp_path):
    with report_of("classes") as report:
        whole = history_of(report.ledger, report.reading)
        report.ledger.read_arrays = lambda name: None
        assert history_of(report.ledger, report.reading)[-1].found == whole[-1].found
        assert len(report.points) == 1


def test_a_frame_has_a_row_a_point():
    pytest.importorskip("pandas")
    run = srs_ooc.open_run(run_of("classes"))
    frame = run.history()
    assert list(frame.columns)[:2] == ["iterations", "seconds"]
    assert frame["found"].iloc[-1] == run.history("records")[-1]["found"]
