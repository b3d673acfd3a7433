"""What is said of a verdict: why features are in or out, and why nothing is selected."""

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import srs_ooc
from srs_ooc.base.errors import RunError
from srs_ooc.cli import cli
from srs_ooc.results.feature_record import explain, held_text, why_none
from srs_ooc.results.ranking import kept_records
from srs_ooc.runs import verdict as run_verdict
from srs_ooc.runs.feature_tests import NOBODY
from srs_ooc.runs.verdict import TABLE, Lines, Verdict


def verdict_of(order=(), **given):
    """Five features: three are selected, one of these is marginally significant."""
    arrays = {
        "stored": np.array([7, 3, 5, 9, 2], np.uint32),
        "selected": np.array([True, True, True, False, False]),
        "q_value": np.array([0.01, 0.05, 0.1, 1.0, 0.2]),
        "score": np.array([np.nan, 0.3, 0.2, 0.2, 0.1]),
        "tree_agreement": np.array([np.nan, 1.0, np.nan, 0.5, 0.0]),
        "cluster": np.array([1, 1, 2, 3, 0], np.int32),
        "p_value": np.array([1e-9, 0.5, 0.01, 0.5, 0.5]),
        "differs_in": np.array([1, 0, 2, 3, 0], np.uint8),
        "beside": np.full((5, 2), NOBODY, np.uint32),
        "measure": np.array([3, 1, 0, 0, 0], np.uint8),
        "toward": np.array([1, 1, -1, -1, -1], np.int32),
        "effect": np.array([2.5, 0.25, *[np.nan] * 3]),
        "low": np.array([1.5, 0.125, *[np.nan] * 3]),
        "high": np.array([4.0, 0.5, *[np.nan] * 3]),
    }
    facts: dict[str, Any] = {"marginal_cutoff": 0.001, "n_marginal": 1, "classes": ["k1", "k2"]}
    table = np.zeros(5, TABLE)
    for name, array in (arrays | given).items():
        table[name] = array
    shown = np.array(order, np.uint32) if len(order) else table["stored"]
    return Verdict(table, shown, facts, np.zeros(0, np.int64))


class Named(Lines):
    """The lines of a verdict without a ledger: its features are called f0, f1 and so on."""

    def __init__(self, verdict, n_drawn=9):
        self.verdict, self.n_iterations, self._unit = verdict, 9, 1.0
        self.tally = SimpleNamespace(n_drawn=np.full(10, n_drawn), importance=np.ones(10, int))
        self._categories = SimpleNamespace(of=lambda stored: ["a", "b", f"c of f{stored}"])

    def name(self, stored):
        return f"f{stored}"


def line_of(feature, **given):
    return Named(verdict_of(**given)).record(1, feature)


def why(feature, n_drawn=9, *, is_out=False, **given):
    verdict = verdict_of(**given)
    rank = 1 + [*verdict.order.tolist(), feature].index(feature)
    return explain(Named(verdict, n_drawn).record(rank, feature), "0.1", [], is_out=is_out)


def test_each_feature_has_its_reason():
    assert why(7).startswith("f7 is in: rank 1, q-value 0.01 (the smallest level at which it would")
    assert "It is marginally significant (p = " in why(7)
    assert why(3).startswith("f3 is in: rank 2, q-value 0.05 (")
    assert "be selected; 0.1 asked). It is" in why(3)
    assert why(5).startswith("f5 is in: rank 3, q-value 0.1 (")
    assert why(5, order=[3, 7, 9, 5, 2]).startswith("f5 is in: rank 4, q-value 0.1 (")
    assert "It is not marginally significant" in why(5)
    assert why(9).startswith("f9 is out: rank 4, q-value 1 (")
    assert why(2).startswith("f2 is out: rank 5, q-value 0.2 (")
    found = "neither among the best of the search nor among those with the strongest tests."
    assert why(4) == f"f4 is out: drawn 9 times, it was {found}"
    assert why(4, 0) == f"f4 is out: drawn 0 times, it was {found}"
    assert "told to leave it out" in why(4, 0, is_out=True)


def test_an_effect_whose_interval_has_both_directions_has_none():
    wide = np.array([4.0, 0.75, *[np.nan] * 3])
    assert "Alone, more spread in k2: ratio of spreads 2.50 (1.50 to 4.00)" in why(7)
    assert "Alone, no direction: AUC 0.25 (0.12 to 0.75)" in why(3, high=wide)
    unknown = np.full(5, np.nan)
    assert "Alone, lower in k2: AUC 0.25;" in why(3, low=unknown, high=unknown)


OTHERS = {
    "beside": np.array([[3, NOBODY], [9, 2], *[[NOBODY, NOBODY]] * 3], np.uint32),
}


def test_a_feature_says_beside_which_others_it_shows():
    assert " It shows beside f3. It is marginally significant" in why(7, **OTHERS)
    assert " It shows beside f9 and f2. It is not" in why(3, **OTHERS)
    assert "beside" not in why(5, **OTHERS)
    assert verdict_of(**OTHERS).n_beside_selected == 2
    assert verdict_of().n_beside_selected == 0


def test_places_that_were_not_grouped_are_said():
    assert verdict_of().clusters_selected == "2 clusters"
    assert verdict_of(cluster=np.array([1, 1, 0, 0, 0])).clusters_selected is None
    assert verdict_of(cluster=np.arange(1, 6)).clusters_selected is None  # one feature in each
    assert verdict_of(selected=np.zeros(5, bool)).clusters_selected is None


def test_why_nothing_is_selected():
    said = why_none(verdict_of(selected=np.zeros(5, bool)), "0.1")
    assert "the smallest q-value is 0.01, 0.1 was asked" in said


def test_the_level_that_holds_is_one_that_a_reader_can_check():
    assert held_text(verdict_of(), "0.1") == "Level 0.1, q-values of the selected up to 0.1"
    nothing = verdict_of(selected=np.zeros(5, bool))
    assert held_text(nothing, "0.1") == "Level 0.1, smallest q-value 0.01"


def test_selected_features_come_in_the_order_to_show():
    shown = verdict_of(order=np.array([5, 4, 7, 2, 3, 9], np.uint32))
    assert shown.order.tolist() == [5, 4, 7, 2, 3, 9]
    assert shown.selected().tolist() == [5, 7, 3]
    assert shown.n_selected == 3


def test_a_marginally_significant_feature_says_what_it_differs_in():
    assert "is marginally significant (p = 1e-09, it differs in spread)" in why(7)
    assert "is not marginally significant (p = 0.5)" in why(3)
    found = [line_of(feature).differs_in for feature in (7, 3, 5, 9)]
    assert found == ["spread", "location", "what is missing", None]


def test_a_feature_says_which_way_it_differs_and_by_how_much():
    """In --why too, and that this is overstated; the words and numbers of a record are these."""
    assert "Alone, more spread in k2: ratio of spreads 2.50 (1.50 to 4.00); likely" in why(7)
    assert "Alone, lower in k2: AUC 0.25 (0.12 to 0.50); likely overstated" in why(3)
    assert "Alone" not in why(5)
    found = line_of(7)
    names = "direction", "measure", "effect", "low", "high"
    assert [getattr(found, name) for name in names] == [
        "more spread in k2", "ratio of spreads", 2.5, 1.5, 4.0,
    ]  # fmt: skip
    unknown = np.full(5, np.nan)
    assert "Alone, lower in k2: AUC 0.25; likely" in why(3, low=unknown, high=unknown)
    neither = np.array([2.5, 0.5, *[np.nan] * 3])
    assert "Alone, no difference: AUC 0.50 (" in why(3, effect=neither)


def test_a_level_is_called_by_its_name():
    given = {"measure": np.full(5, 7, np.uint8), "toward": np.full(5, 2 * 2 + 1, np.int32)}
    assert line_of(7, **given).direction == "level c of f7 is more frequent in k2"
    assert line_of(7, **given).differs_in == "levels"


@pytest.fixture(scope="module")
def moved(tmp_path_factory):
    """What is said of a run with its store, and the run without it."""
    folder = tmp_path_factory.mktemp("moved")
    values = np.random.default_rng(0).standard_normal((100, 500))
    names = ["größe", *(f"f{i}" for i in range(1, 500))]
    target = (values[:, :3].sum(1) > 0).astype(int)
    srs_ooc.ingest(values, folder / "t.zarr", target=target, names=names)
    run = srs_ooc.run(folder / "t.zarr", out=folder / "a.run", iterations=200, q=10).run
    before = srs_ooc.open_run(run).features("records")
    (folder / "t.zarr").rename(folder / "elsewhere.zarr")
    return run, before


def called(*arguments):
    return CliRunner().invoke(cli, [str(a) for a in arguments])


def test_what_the_verdict_put_first_is_read_without_the_store(moved):
    run, before = moved
    done = called("features", run, "--json", "--memory-mb", 4000)
    found = json.loads(done.stdout)
    assert found == before[: len(found)]
    assert len(found) >= sum(record["selected"] for record in before) > 0
    assert "no longer at" in done.stderr
    some = json.loads(called("features", run, "--selected", "--json").stdout)
    assert some == [record for record in found if record["selected"]]
    assert called("features", run).stdout.count("\n") == 1 + min(50, len(found))


def test_why_needs_no_store_for_what_the_verdict_put_first(moved):
    run, before = moved
    known = json.loads(called("features", run, "--json").stdout)
    with_store = "--store", run.with_name("elsewhere.zarr")
    for record in [known[0], known[1], known[len(known) // 2], known[-1]]:
        said = called("features", run, "--why", record["name"])
        assert said.exit_code == 0
        assert said.stdout == called("features", run, "--why", record["name"], *with_store).stdout
        assert record["q_value"] is None or f": rank {record['rank']}" in said.stdout
    said = str(called("features", run, "--why", before[-1]["name"]).exception)
    assert "knows only the features that the verdict put first" in said


def test_the_reason_has_the_rank_of_the_list(moved):
    """Of any feature that was judged, also of those below the ones that are shown first."""
    run, before = moved
    found = srs_ooc.open_run(run, store=run.with_name("elsewhere.zarr"))
    judged = [record for record in before if record["q_value"] is not None]
    assert len(judged) > 50
    for record in judged[:: len(judged) // 8]:
        assert f": rank {record['rank']}" in found.why(record["name"])


def test_a_moved_store_is_named_to_export_as_to_others(moved, tmp_path):
    run, store = moved[0], moved[0].with_name("elsewhere.zarr")
    for name, arguments in (("a.csv", (run,)), ("b.csv", (store, run))):
        asked = () if name == "b.csv" else ("--store", store)
        done = called("export", *arguments, tmp_path / name, *asked)
        assert done.exit_code == 0, done.exception
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    both = called("export", store, run, tmp_path / "c.csv", "--store", store)
    assert "expected RUN and OUT, found 3 paths" in str(both.exception)


def test_status_begins_with_what_is_asked_first(moved):
    run, before = moved
    lines = [line.split(maxsplit=1) for line in called("status", run).stdout.splitlines()]
    n = sum(record["selected"] for record in before)
    assert lines.pop(2)[0] == "lambda"
    assert lines[:4] == [
        ["state", "finished"],
        ["selected", f"{n} features"],
        ["iterations", "200 of 200"],
        ["next", f"srs-ooc features {run}"],
    ]


def test_what_needs_the_store_says_so(moved):
    run, _ = moved
    assert isinstance(called("features", run, "--why", "nobody").exception, RunError)
    assert isinstance(called("features", run, "--store", run / "nowhere").exception, Exception)


def test_lines_take_bounded_room(tmp_path, monkeypatch):
    monkeypatch.setattr(run_verdict, "LINES_NBYTES", 1000)
    values = np.random.default_rng(0).standard_normal((60, 10))
    srs_ooc.ingest(values, tmp_path / "t.zarr", target=(values[:, 0] > 0).astype(int))
    run = srs_ooc.run(tmp_path / "t.zarr", iterations=50)
    with run._ledger() as ledger:
        kept = kept_records(ledger)
    assert 2 < len(kept) < 7
    assert [vars(line) for line in kept.values()] == run.features("records", top=len(kept))


# A feature that is too good to be true is said where the result is: by run, features and report.

ROWS = 80
RNG = np.random.default_rng(3)
NOISE = RNG.normal(size=(ROWS, 12))
SICK = np.arange(ROWS) % 2
TREND = np.linspace(0, 4, ROWS) + RNG.normal(size=ROWS)
TELLS = "'f3' alone tells the target of each row looked at"
COUNTS = "'f3' rises or falls from row to row"
LEAKS = {
    "a copy": (SICK, SICK, TELLS),
    "apart, with a gap": (SICK * 5 + NOISE[:, 0].clip(-2, 2), SICK, TELLS),
    "an id of sorted rows": (1000 + np.arange(ROWS), np.sort(SICK), TELLS),
    "three classes": (np.arange(ROWS) % 3, np.array(["a", "c", "b"])[np.arange(ROWS) % 3], TELLS),
    "a number's copy": (3 - 2 * TREND, TREND, TELLS),
    "an id beside a trend": (np.arange(ROWS), TREND, COUNTS),
    "an id that falls": (-np.arange(ROWS), SICK[::-1] * 0.1 + TREND, COUNTS),
    "one row is wrong": (np.where(np.arange(ROWS) == 7, 1 - SICK, SICK), SICK, None),
    "near the number": (TREND + 0.1 * NOISE[:, 1], TREND, None),
    "a row out of order": (np.roll(np.arange(ROWS), 1), TREND, None),
    "strong": (SICK * 2 + NOISE[:, 0], SICK, None),
}


@pytest.mark.parametrize("kind", LEAKS)
def test_a_feature_that_is_too_good_is_said(tmp_path, kind):
    column, target, expected = LEAKS[kind]
    values, store, run = NOISE.copy(), tmp_path / "t.zarr", str(tmp_path / "t.run")
    values[:, 3] = column
    srs_ooc.ingest(values, store, target=target)
    given = ["run", str(store), "--iterations", "120", "--memory-mb", "4000", "-q", "--judge"]
    commands = [
        [*given, "positive"],
        ["features", run, "--csv", "--memory-mb", "4000"],
        ["report", run, "--format", "md", "-o", "-", "--memory-mb", "4000"],
    ]
    said = [CliRunner().invoke(cli, command, catch_exceptions=False) for command in commands]
    assert [(expected or "Too good") in done.output for done in said] == 3 * [expected is not None]
    assert "Too good" not in said[1].stdout
    cautions = srs_ooc.open_run(run).cautions
    assert any(text.startswith("Too good to be true. ") for text in cautions[:1]) == bool(expected)
    assert expected is None or expected in cautions[0]
    page = said[2].stdout.replace("**", "")
    assert all(text.partition(". ")[0] in page for text in cautions)
    assert said[1].stdout.count("\n") == 13


def test_what_chance_does_in_few_rows_is_not_said(tmp_path):
    values = np.random.default_rng(0).normal(size=(8, 3000))
    srs_ooc.ingest(values, tmp_path / "t.zarr", target=np.arange(8) % 2)
    low, high = values[::2], values[1::2]
    assert ((low.min(0) > high.max(0)) | (low.max(0) < high.min(0))).any()
    given = ["run", str(tmp_path / "t.zarr"), "--judge", "none", "--memory-mb", "4000", "-q"]
    assert "Too good" not in CliRunner().invoke(cli, [*given, "--iterations", "300"]).output


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["constant", "few", "few of many"])
def test_the_cause_is_named_where_nothing_can_be_found(tmp_path, kind):
    values = np.ones((ROWS, 12)) if kind == "constant" else NOISE[: 40 if "many" in kind else 4]
    (tmp_path / "rows.txt").write_text("1\n2\n3\n4\n")
    rows = ("--rows", str(tmp_path / "rows.txt")) if "many" in kind else ()
    cause = "All features are constant" if kind == "constant" else "4 rows can have these targets"
    srs_ooc.ingest(values, tmp_path / "t.zarr", target=SICK[: len(values)])
    store, run = str(tmp_path / "t.zarr"), str(tmp_path / "t.run")
    for command in (
        ["plan", store, "--memory-mb", "4000", *rows],
        ["run", store, "--iterations", "60", "--memory-mb", "4000", "-q", *rows],
        ["report", run, "--format", "md", "-o", "-", "--memory-mb", "4000"],
    ):
        said = CliRunner().invoke(cli, command, catch_exceptions=False).output
        assert cause in said


# What no test knows of the rows is not claimed, and said.


def said_of(folder, *options, **given):
    """What run, features and report say of a table of ``given``; the result, and all of that."""
    values = given.pop("values")
    srs_ooc.ingest(values, folder / "t.zarr", **given)
    run = str(folder / "t.run")
    done = [
        called("run", folder / "t.zarr", "--memory-mb", 4000, "-q", *options),
        called("features", run, "--csv", "--memory-mb", 4000),
        called("report", run, "--format", "md", "-o", "-", "--memory-mb", 4000),
    ]
    assert [one.exit_code for one in done] == [0, 0, 0], done
    return srs_ooc.open_run(run), [one.output for one in done]


def test_features_are_tested_alone_where_whole_groups_are(tmp_path):
    """Ten rows of each person, alike in everything: every feature tells persons apart."""
    rng, person = np.random.default_rng(0), np.repeat(np.arange(12), 10)
    values = rng.normal(size=(12, 20))[person] + 0.3 * rng.normal(size=(120, 20))
    given = {"values": values, "target": person % 2, "groups": person}
    found, (ran, _, page) = said_of(tmp_path, "--iterations", 60, **given)
    records = found.features("records")
    assert None not in {record["p_value"] for record in records}
    assert "It is not marginally significant (p = " in found.why(records[0]["name"])
    assert "groups" not in ran
    assert "Rows come in groups" not in page


def cases_of_cautions():
    """A table, how it is ingested and run, and the caution it earns; None where it earns none."""
    rng = np.random.default_rng(1)
    noise, sick = rng.normal(size=(200, 60)), np.arange(200) % 2
    shifted = [noise + 1.5 * sick[:, None] * (np.arange(60) < n) for n in (6, 20)]
    gone = np.where(
        (rng.random((200, 60)) < 0.4 * sick[:, None]) & (np.arange(60) < 6), np.nan, noise
    )
    later, drift = np.arange(200) // 100, noise + np.linspace(0, 8, 200)[:, None]
    drift[:, 5:] = noise[:, 5:]
    signal = noise + 2 * later[:, None] * (np.arange(60) < 5)
    absent, many = "differs in what is missing", "More than a fifth of all features"
    order, weights = "Rows are in order", "Weights play no part in the tests"
    plain = {"values": shifted[0], "target": sick}
    dose = np.sort(rng.normal(size=200))
    follows = noise + dose[:, None] * (np.arange(60) < 6)
    mixed = rng.permutation(200)
    numbers = {"values": follows, "target": dose, "task": "regression"}
    return {
        "plain": (plain, (), None),
        "missing": ({"values": gone, "target": sick}, (), absent),
        "many": ({"values": shifted[1], "target": sick}, (), many),
        "in order": ({"values": drift, "target": later}, (), order),
        "in order, without a drift": ({"values": signal, "target": later}, (), None),
        "in order, strata": ({"values": drift, "target": later, "strata": sick}, (), None),
        "numbers in order": (numbers, (), order),
        "numbers in order, strata": (numbers | {"strata": sick}, (), None),
        "numbers": (numbers | {"values": follows[mixed], "target": dose[mixed]}, (), None),
        "weights": (plain | {"weights": 1.0 + sick}, (), weights),
        "class weights": (plain, ("--class-weight", "balanced"), weights),
        "weights, no level": (plain | {"weights": 1.0 + sick}, ("--judge", "positive"), None),
    }


CAUTIONS = cases_of_cautions()


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", CAUTIONS)
def test_what_may_void_a_selection_is_said(tmp_path, kind):
    given, options, expected = CAUTIONS[kind]
    found, said = said_of(tmp_path, "--iterations", 60, "--q", 20, *options, **given)
    cautions = found.cautions
    for title in {case[2] for case in CAUTIONS.values() if case[2] is not None}:
        assert [title in text for text in said] == 3 * [title == expected]
        assert any(title in text for text in cautions) == (title == expected)
    assert found.selected


FEW = {
    "classes": (np.arange(12) % 2, {}, 924),
    "uneven": (np.arange(12) % 3 == 0, {}, 495),
    "pairs": (np.arange(12) % 2, {"strata": np.arange(12) // 2}, 64),
    "numbers": (np.arange(7) * 0.9, {}, 5040),
    "enough": (np.arange(24) % 2, {}, None),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", FEW)
def test_rows_that_are_too_few_for_any_test_are_said_before_and_after(tmp_path, kind):
    target, given, n_ways = FEW[kind]
    values = np.random.default_rng(0).normal(size=(len(target), 5000))
    values[:, 0] = target
    srs_ooc.ingest(values, tmp_path / "t.zarr", target=target, **given)
    asked = (tmp_path / "t.zarr", "--memory-mb", 4000)
    planned, ran = called("plan", *asked), called("run", *asked, "-q", "--iterations", 60)
    result = srs_ooc.open_run(tmp_path / "t.run")
    few = f"with {len(target)} rows no single feature among 5,000 can be selected"
    is_few = n_ways is not None
    assert [few in text for text in (planned.output, ran.stderr)] == 2 * [is_few]
    if is_few:
        together = -(-5000 * 1000 // (90 * n_ways))
        assert f"in {n_ways:,} ways, so no p-value" in planned.output
        assert f"1 in 55,556 is needed; only {together:,} or more" in planned.output
        assert min(r["p_value"] for r in result.features("records", top=50)) >= 1 / n_ways
        assert result.selected == []
        assert few in ran.stdout
        assert any(few in text for text in result.cautions)


@pytest.mark.slow
def test_other_judges_are_not_said_to_need_more_rows(tmp_path):
    values = np.random.default_rng(0).normal(size=(12, 2000))
    srs_ooc.ingest(values, tmp_path / "t.zarr", target=np.arange(12) % 2)
    for options, said in (
        (("--fdr", "0.2"), "only 13 or more together, if all are as strong"),
        (("--fdr", "0.001"), "nor can all together"),
        (("--judge", "probe"), None),
    ):
        planned = called("plan", tmp_path / "t.zarr", "--memory-mb", 4000, *options).output
        assert ("with 12 rows no single feature among 2,000" in planned) == (said is not None)
        assert said is None or said in planned
