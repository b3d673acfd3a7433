"""What a report says is what the run, its store and its ledger say."""

import json
import re
import shlex
import shutil
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reports import KINDS, N_FEATURES, N_ROWS, report_of, run_of

import srs_ooc
from srs_ooc.cli import cli
from srs_ooc.evidence.tally import RankingHistory
from srs_ooc.results.facts import (
    FEW_DRAWS,
    answers_of,
    cautions_of,
    json_of,
    markdown_of,
    words_of,
)
from srs_ooc.results.report import Report, bins_of, ends_of, history_of, profiles_of
from srs_ooc.runs.run import Run


def answers(report):
    return [" ".join(sentences) for sentences in answers_of(report).values()]


@pytest.mark.slow
def test_what_was_not_measured_names_a_command_that_measures_it(tmp_path):
    """On a copy of the run: the commands are run as they are given."""
    shutil.copytree(run_of("classes"), tmp_path / "a run.run")
    result = srs_ooc.open_run(tmp_path / "a run.run")
    with result._report() as report:
        before, n_rows = answers(report), report.task.n_rows
    for answer in before[2:]:
        assert answer.startswith("Not measured.")
        words = shlex.split(answer.split("`")[1].replace(" 20", " 4"))
        assert cli.main(words[1:], prog_name="srs-ooc", standalone_mode=False) in (None, 0)
    with result._report() as report:
        after, curve, halves = answers(report), report.held_out, result.halves
        data = json.loads(json_of(report))
    assert after[:2] == before[:2]
    assert "Not measured" not in " ".join(after)
    size = curve.smallest()
    low, high = curve.interval(size, n_rows)
    share = curve.means[curve.sizes.index(size)]
    assert f"{size} feature" in after[2]
    assert f" {share:.0%} of held-out rows right (95% interval {low:.0%} to {high:.0%})" in after[2]
    assert data["held_out"]["interval"] == pytest.approx([low, high], abs=1e-4)
    assert list(data["answers"].values())[3][0] == f"{halves}."
    often = sum(2 * record["halves"] >= 1 for record in data["features"])
    assert f"Half of them or more select {often} of the {len(data['features'])}" in after[3]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (
            "classes",
            ["selected at level 0.1", "expect at most", "`srs-ooc compact", "--halves 20`"],
        ),
        ("nothing", ["No feature was selected", "bounds no share", "Not measured", "Not measured"]),
        ("ranked", ["none is selected", "orders features", "cannot be", "cannot be"]),
        ("provisional", ["no verdict yet", "Nothing is sure", "finished", "finished"]),
    ],
)
def test_the_first_answers_are_those_of_the_run(kind, said):
    with report_of(kind) as report:
        found = answers(report)
    for text, answer in zip(said, found, strict=True):
        assert text in answer


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", KINDS)
def test_a_report_lists_what_is_selected_or_else_the_first_by_rank(kind):
    result = srs_ooc.open_run(run_of(kind))
    with report_of(kind) as report:
        names = [record.name for record in report.records]
        assert len(answers_of(report)) == 4
        n_selected = report.n_selected
    if kind in ("nothing", "provisional"):
        assert n_selected == 0
        assert names == [record["name"] for record in result.features("records")]
    else:
        assert names == result.selected
        assert n_selected == len(names) > 0


def test_profiles_count_the_rows_of_each_class_by_value():
    with report_of("classes") as report:
        profiles = profiles_of(report, np.arange(N_FEATURES))
        target, classes = report.store.target(), report.manifest.classes
        positions = report.reading.positions
        codes = report.store.array("n_codes")
        missing = np.asarray(report.store.array("n_missing"))
    assert profiles.classes == list(classes)
    assert profiles.class_rows == np.bincount(target).tolist()
    for i in range(N_FEATURES):
        counts = profiles.counts(i)
        assert counts.sum(axis=1).tolist() == profiles.class_rows
        assert counts[:, -1].sum() == missing[i]
    three = int(np.flatnonzero(positions == 6)[0])
    assert codes[three] == 3
    found = profiles.counts(three)[:, :3]
    assert found.sum(axis=0).tolist() == [N_ROWS / 3] * 3


def test_few_classes_are_told_apart_and_the_others_counted_together():
    with report_of("many") as report:
        profiles = profiles_of(report, np.arange(3))
    assert len(profiles.classes) == 13
    assert profiles.classes[-1] == "3 other classes"
    assert sum(profiles.class_rows) == N_ROWS


def test_profiles_of_a_regression_place_rows_and_follow_the_mean():
    with report_of("numbers") as report:
        stored = int(np.flatnonzero(report.reading.positions == 0)[0])
        profiles = profiles_of(report, np.array([stored]))
        name = report.reading.name(stored)
        values = srs_ooc.read(report.store, [name], kind="records")
        target = report.store.target()
    column = np.array([np.nan if row[name] is None else row[name] for row in values], float)
    places = profiles.scatter(0)
    assert np.array_equal(np.isnan(places), np.isnan(column))
    known = ~np.isnan(column)
    assert np.all(np.diff(places[known][np.argsort(column[known])]) >= 0)
    unit = (target.max() - target.min()) / 254
    assert abs(profiles.trend(0)[-1] - target[~known].mean()) <= unit
    assert profiles.trend(0)[0] < profiles.trend(0)[-2]


@given(st.integers(1, 300), st.integers(1, 40))
def test_bins_keep_the_order_of_codes_and_use_the_first_and_the_last(n_codes, n_bins):
    codes = np.append(np.arange(n_codes), 65535)[None]
    bins = bins_of(codes, np.array([n_codes]), n_bins, 65535)[0]
    used = min(n_codes, n_bins)
    assert bins[-1] == n_bins
    assert np.array_equal(np.unique(bins[:-1]), np.arange(used))
    assert np.all(np.diff(bins[:-1]) >= 0)


def test_draws_are_those_of_the_tally():
    with report_of("classes") as report:
        median, n_never = report.draws
        drawn = report.reading.tally.n_drawn[:N_FEATURES]
    assert n_never == np.count_nonzero(drawn == 0)
    assert abs(median - np.median(drawn)) <= 1


def titles_of(kind, **changed):
    with report_of(kind) as report:
        for name, value in changed.items():
            setattr(report, name, value)
        return dict(cautions_of(report))


def test_warnings_name_what_to_do():
    nothing = titles_of("nothing")
    assert "resume" in nothing["Nothing was selected"]
    assert "--iterations" in nothing["Few draws"]
    assert "No verdict yet" in titles_of("provisional")
    many = titles_of("classes", selected=np.arange(1000) % N_FEATURES)
    assert "compact" in many["1,000 features were selected"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["classes", "many", "numbers", "probe", "nothing", "ranked"])
def test_no_report_rests_the_level_on_trees(kind):
    with report_of(kind) as report:
        said = markdown_of(report).partition("## Features")[0]
        whys = [] if report.reading.verdict is None else map(report.reading.explain, ("f7", "f8"))
        said = " ".join([said, *whys])
    assert re.findall("tree agreement|trees agree", said) == []


@pytest.mark.parametrize(("kind", "is_tested"), [("classes", True), ("nothing", False)])
def test_features_hardly_drawn_are_said_to_be_tested_alone_where_they_are(kind, is_tested):
    never = titles_of(kind, draws=(FEW_DRAWS, 2))
    said = never["2 features never drawn"]
    assert said.startswith("They were tested alone." if is_tested else "Nothing is known of them.")
    few = titles_of(kind, draws=(3, 2))["Few draws"]
    assert few.startswith("Half of the features were drawn 3 times or less, 2 of them never. ")
    assert ("What trees propose to test beside others, and ranks" in few) == is_tested
    assert ("Ranks are mostly chance" in few) != is_tested


def test_few_draws_name_iterations_that_are_enough():
    with report_of("nothing") as report:
        median, _ = report.draws
        assert median < FEW_DRAWS
    text = titles_of("nothing")["Few draws"]
    asked = int(text.split("--iterations ")[1].split("`")[0])
    assert asked * median >= FEW_DRAWS * 5


def test_small_classes_are_named(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.repeat(["a", "b", "rare"], [30, 30, 3])
    srs_ooc.ingest(rng.standard_normal((63, 10)), tmp_path / "t.zarr", target=labels)
    run = srs_ooc.run(tmp_path / "t.zarr", iterations=50, judge="positive").run
    result = srs_ooc.open_run(run)
    with result._report() as report:
        titles = dict(cautions_of(report))
    assert "rare (3)" in titles["1 class of 5 rows or fewer"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["classes", "probe"])
def test_the_command_to_repeat_a_run_repeats_it(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with report_of(kind) as report:
        command = words_of(report)["commands"][0]
    words = shlex.split(command)
    assert words[0] == "srs-ooc"
    assert cli.main(words[1:], prog_name="srs-ooc", standalone_mode=False) in (None, 0)
    again = srs_ooc.open_run(tmp_path / words[words.index("--out") + 1])
    first = srs_ooc.open_run(run_of(kind))
    assert again.features("records") == first.features("records")


def test_accuracy_on_rows_held_out_is_that_of_compact(tmp_path):
    from srs_ooc.ensemble.compaction import COMPACTED, FoldRecord, Records

    with report_of("classes") as report:
        assert report.held_out is None
        store = report.store
    copy = shutil.copytree(run_of("classes"), tmp_path / "copy.run")
    with closing(Run(copy, writable=True)) as ledger:
        ledger.set_meta(COMPACTED, [5, 2])
        records = Records(ledger, 5)
        for fold, score in enumerate([0.5, 0.7]):
            scores = {"1": score, "2": score + 0.2}
            records.keep(records.of_fold(0, fold), FoldRecord(0, fold, 3, [1, 2], scores))
        found = json.loads(json_of(Report(ledger, store)))["held_out"]
    assert found["sizes"] == [1, 2]
    assert found["scores"] == [0.6, 0.8]
    assert (found["chosen"], found["n_folds"], found["is_regression"]) == (2, 2, False)


def test_ends_name_values_as_the_table_has_them():
    with report_of("classes") as report:
        features = np.arange(N_FEATURES)
        found = ends_of(report, features)
        names = [report.reading.name(i) for i in features]
        table = srs_ooc.read(report.store, names, kind="records")
    for name, (low, high) in zip(names, found, strict=True):
        values = [row[name] for row in table if row[name] is not None]
        values = [value for value in values if value == value]
        assert (low, high) == (float(f"{min(values):.4g}"), float(f"{max(values):.4g}"))


COUNTED = ("iterations", "trees", "found", "leading", "unchanged")


def counted(result):
    return [{name: row[name] for name in COUNTED} for row in result.history("records")]


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_a_run_with_a_verdict_shows_what_led_it(kind):
    """Of all features, where these are fewer than lead."""
    rows = srs_ooc.open_run(run_of(kind)).history("records")
    assert [row["iterations"] for row in rows] == [100, 134, 179, 239, 300]
    assert {row["leading"] for row in rows} == {N_FEATURES}
    assert rows[0]["unchanged"] is None
    with report_of(kind) as report:
        kept = report.ledger.read_arrays(RankingHistory.name)["features"]
        selected = set(report.selected.tolist())
    for row, features in zip(rows, kept, strict=False):
        assert row["found"] == sum(feature in selected for feature in features.tolist())
        assert row["trees"] == row["iterations"]
    shared = len(np.intersect1d(kept[0], kept[1]))
    assert rows[1]["unchanged"] == shared
    seconds = [row["seconds"] for row in rows]
    assert seconds == sorted(seconds)
    assert all(row["memory_mb"] >= 0 for row in rows)


def test_nothing_is_found_before_the_verdict():
    run = srs_ooc.open_run(run_of("provisional"))
    assert run.is_provisional
    assert {row["found"] for row in run.history("records")} <= {None}


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
