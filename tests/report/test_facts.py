"""What a report says is what the run, its store and its ledger say."""

import shlex

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reports import KINDS, N_FEATURES, N_ROWS, run_of, source_of

import srs_ooc
from srs_ooc.cli import cli
from srs_ooc.results.curves import (
    bins_of,
    cut_of,
    draws_of,
    ends_of,
    held_out_of,
    profiles_of,
    usage_of,
)
from srs_ooc.results.facts import FEW_DRAWS, cautions_of, facts_of, repeat_of


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", KINDS)
def test_a_report_lists_what_is_selected_or_else_the_first_by_rank(kind):
    result = srs_ooc.open_run(run_of(kind))
    with source_of(kind) as source:
        facts = facts_of(source)
    names = [record.name for record in facts.features]
    assert len(facts.summary) == 3
    if kind in ("nothing", "provisional"):
        assert facts.n_selected == 0
        assert names == [record["name"] for record in result.features("records")]
    else:
        assert names == result.selected
        assert facts.n_selected == len(names) > 0


def test_profiles_count_the_rows_of_each_class_by_value():
    with source_of("classes") as source:
        profiles = profiles_of(source, np.arange(N_FEATURES))
        target, classes = source.store.target(), source.manifest.classes
        positions = source.reading.positions
        codes = source.store.array("n_codes")
        missing = np.asarray(source.store.array("n_missing"))
    assert profiles.legend.classes == list(classes)
    assert profiles.legend.class_rows == np.bincount(target).tolist()
    for i in range(N_FEATURES):
        counts = profiles.counts(i)
        assert counts.sum(axis=1).tolist() == profiles.legend.class_rows
        assert counts[:, -1].sum() == missing[i]
    three = int(np.flatnonzero(positions == 6)[0])
    assert codes[three] == 3
    found = profiles.counts(three)[:, :3]
    assert found.sum(axis=0).tolist() == [N_ROWS / 3] * 3


def test_few_classes_are_told_apart_and_the_others_counted_together():
    with source_of("many") as source:
        legend = profiles_of(source, np.arange(3)).legend
    assert len(legend.classes) == 13
    assert legend.classes[-1] == "3 other classes"
    assert sum(legend.class_rows) == N_ROWS


def test_profiles_of_a_regression_place_rows_and_follow_the_mean():
    with source_of("numbers") as source:
        stored = int(np.flatnonzero(source.reading.positions == 0)[0])
        profiles = profiles_of(source, np.array([stored]))
        values = srs_ooc.read(source.store, [source.reading.name(stored)], kind="records")
        target = source.store.target()
    column = np.array(
        [np.nan if v is None else v for v in (next(iter(r.values())) for r in values)]
    )
    column = column.astype(float)
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
    with source_of("classes") as source:
        draws = draws_of(source)
        drawn = source.reading.tally.n_drawn[:N_FEATURES]
        n_selected = len(source.selected)
    assert sum(draws.features) == N_FEATURES
    assert sum(draws.selected) == n_selected
    assert draws.edges[0] <= drawn.min() == draws.least
    assert draws.edges[-1] > drawn.max()
    assert abs(draws.median - np.median(drawn)) <= 1


def test_the_cut_shows_decoys_only_of_a_run_with_a_verdict():
    with source_of("classes") as source:
        cut, levels = cut_of(source), source.reading.verdict.levels
        n_selected = source.reading.n_selected
    assert any(cut.is_decoy)
    assert cut.n_selected == n_selected
    assert cut.places[0] == 1
    assert cut.levels == [float(f"{v:.4g}") for v in levels[: len(cut.levels)]]
    with source_of("provisional") as source:
        assert not any(cut_of(source).is_decoy)


def test_usage_is_what_the_ledger_noted():
    with source_of("classes") as source:
        usage = usage_of(source)
        assert usage.iterations[-1] == source.reading.n_iterations
        assert usage.cap_mb == 4000
        assert usage.total_seconds == source.status.seconds
        assert usage.is_growth


def titles_of(kind, **changed):
    with source_of(kind) as source:
        for name, value in changed.items():
            setattr(source, name, value)
        records = list(source.reading.records(source.listed))
        found = cautions_of(source, records, draws_of(source), held_out_of(source))
    return {caution.title: caution.text for caution in found}


def test_warnings_name_what_to_do():
    nothing = titles_of("nothing")
    assert "resume" in nothing["Nothing was selected"]
    assert "--iterations" in nothing["Few draws"]
    assert "No verdict yet" in titles_of("provisional")
    assert "compact" in titles_of("classes")["Accuracy was not measured"]
    many = titles_of("classes", selected=np.arange(1000) % N_FEATURES)
    assert "compact" in many["1,000 features were selected"]


def test_few_draws_name_iterations_that_are_enough():
    with source_of("nothing") as source:
        draws = draws_of(source)
        assert draws.median < FEW_DRAWS
    text = titles_of("nothing")["Few draws"]
    asked = int(text.split("--iterations ")[1].split("`")[0])
    assert asked * draws.median >= FEW_DRAWS * 5


def test_small_classes_are_named(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.repeat(["a", "b", "rare"], [30, 30, 3])
    srs_ooc.ingest(rng.standard_normal((63, 10)), tmp_path / "t.zarr", target=labels)
    run = srs_ooc.run(tmp_path / "t.zarr", iterations=50, judge="positive").run
    result = srs_ooc.open_run(run)
    with result._source() as source:
        titles = {c.title: c.text for c in facts_of(source).cautions}
    assert "rare (3)" in titles["1 class of 5 rows or fewer"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["classes", "probe"])
def test_the_command_to_repeat_a_run_repeats_it(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with source_of(kind) as source:
        command = repeat_of(source).commands[0]
    words = shlex.split(command)
    assert words[0] == "srs-ooc"
    assert cli.main(words[1:], prog_name="srs-ooc", standalone_mode=False) in (None, 0)
    again = srs_ooc.open_run(tmp_path / words[words.index("--out") + 1])
    first = srs_ooc.open_run(run_of(kind))
    assert again.features("records") == first.features("records")


def test_accuracy_on_rows_held_out_is_that_of_compact(tmp_path):
    from srs_ooc.runs.verification import FoldRecord, Records

    with source_of("classes") as source:
        assert held_out_of(source) is None
        records = Records(Records.folder_of(source.ledger.run, source.reading.n_iterations, 5))
        try:
            for fold, score in enumerate([0.5, 0.7]):
                scores = {"1": score, "2": score + 0.2}
                records.keep_fold(FoldRecord(0, fold, 3, [1, 2], scores))
            found = held_out_of(source)
            assert found.sizes == [1, 2]
            assert found.scores == [0.6, 0.8]
            assert (found.chosen, found.n_folds) == (2, 2)
        finally:
            for file in records.folder.iterdir():
                file.unlink()
            records.folder.rmdir()


def test_ends_name_values_as_the_table_has_them():
    with source_of("classes") as source:
        features = np.arange(N_FEATURES)
        found = ends_of(source, features)
        names = [source.reading.name(i) for i in features]
        table = srs_ooc.read(source.store, names, kind="records")
    for name, (low, high) in zip(names, found, strict=True):
        values = [row[name] for row in table if row[name] is not None]
        values = [value for value in values if value == value]
        assert (low, high) == (float(f"{min(values):.4g}"), float(f"{max(values):.4g}"))
