"""Pairs: what is shown of them is what the rows say, in each kind of table."""

import csv
import io

import numpy as np
import pytest
from command import json_of
from command import srs_ooc as command
from reports import run_of

import srs_ooc
from srs_ooc.evidence.effects import wide_enough
from srs_ooc.results.pair_record import PairRecord

N_ROWS = 400
RNG = np.random.default_rng(0)
TABLE = RNG.standard_normal((N_ROWS, 20))
TABLE[:4, 2] = np.nan
HIGH = np.nanmedian(TABLE, axis=0) < TABLE
XOR = HIGH[:, 2] ^ HIGH[:, 3]
IS_WRONG = RNG.random(N_ROWS) < 0.1
CELLS = ("low_low", "low_high", "high_low", "high_high")


def run_on(folder, target, **given):
    srs_ooc.ingest(TABLE, folder / "t.zarr", target=target, **given)
    return srs_ooc.run(folder / "t.zarr", iterations=200, q=10)


def two_of(result):
    """The pair of f2 and f3, the first beside the second and the other way round."""
    found = {one["name"]: one for one in result.pairs("records", only_selected=True)}
    assert found.keys() == {"f2", "f3"}
    assert (found["f2"]["beside"], found["f3"]["beside"]) == ("f3", "f2")
    return found["f2"], found["f3"]


def assert_cells(of, values):
    known = ~np.isnan(TABLE[:, 2])
    for name, first, second in zip(CELLS, (0, 0, 1, 1), (0, 1, 0, 1), strict=True):
        rows = known & (HIGH[:, 2] == first) & (HIGH[:, 3] == second)
        assert of[f"n_{name}"] == rows.sum()
        assert of[name] == pytest.approx(values[rows].mean())
    of_cells = [of[name] for name in CELLS]
    assert of["effect"] == pytest.approx(of_cells[3] - of_cells[2] - of_cells[1] + of_cells[0])
    assert of["low"] < of["effect"] < of["high"]


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    target = np.where(XOR ^ IS_WRONG, "sick", "fit")
    return run_on(tmp_path_factory.mktemp("classes"), target)


def test_a_pair_of_classes_has_the_share_of_the_second_in_four_cells(classes):
    first, second = two_of(classes)
    assert_cells(first, XOR ^ IS_WRONG)
    assert first["measure"] == "share of sick"
    assert first["effect"] < -1
    assert first["effect"] == second["effect"]
    assert first["low_high"] == second["high_low"]
    assert first["within"] is None
    verdict = {one["name"]: one for one in classes.features("records")}
    for one in (first, second):
        assert one["q_value"] == verdict[one["name"]]["q_value"]
        assert one["p_value"] < one["q_value"] < 0.1  # that of the search among all features, too
    shown = [one for one in verdict.values() if one["selected"] or one["passes_alone"]]
    z = wide_enough(len(shown), TABLE.shape[1])
    n = np.array([first[f"n_{name}"] for name in CELLS])
    p = (np.array([first[name] for name in CELLS]) * n + 0.5) / (n + 1)
    width = 2 * z * np.sqrt((p * (1 - p) / (n + 1)).sum())
    assert first["high"] - first["low"] == pytest.approx(width)


def test_selected_pairs_come_first_and_others_are_told_apart(classes):
    found = classes.pairs("records")
    assert [one["selected"] for one in found][:2] == [True, True]
    assert not any(one["selected"] for one in found[2:])
    assert classes.pairs("records", only_selected=True) == found[:2]


@pytest.mark.slow
def test_the_command_and_the_result_say_the_same_in_every_form(classes):
    pytest.importorskip("pandas")
    records = classes.pairs("records")
    assert list(records[0]) == list(PairRecord.__annotations__)
    assert json_of("pairs", classes.run, "--json") == records
    rows = list(csv.DictReader(io.StringIO(command("pairs", classes.run, "--csv").stdout)))
    assert [row["name"] for row in rows] == [one["name"] for one in records]
    assert float(rows[0]["effect"]) == records[0]["effect"]
    assert list(classes.pairs().columns) == list(records[0])
    shown = command("pairs", classes.run, "--selected").stdout.splitlines()
    assert [line.split()[0] for line in shown] == ["name", records[0]["name"], records[1]["name"]]
    assert len(command("pairs", classes.run, "--top", 1).stdout.splitlines()) == 3


def test_the_end_of_a_run_lists_q_values_and_beside_which_other_a_feature_shows(classes):
    said = command("resume", classes.run).stdout
    for one in classes.pairs("records", only_selected=True):
        assert f"\n  {one['name']}  (q-value {one['q_value']:.4g}, beside {one['beside']})" in said
    by_probe = command("resume", run_of("probe")).stdout
    assert "(importance " in by_probe


def test_a_pair_of_numbers_has_the_means_of_the_target(tmp_path):
    target = 10 + 2 * XOR + RNG.standard_normal(N_ROWS)
    first, _ = two_of(run_on(tmp_path, target, task="regression"))
    assert_cells(first, target)
    assert first["measure"] == "mean of target"
    assert first["high"] < -2


def test_a_pair_of_many_classes_is_told_of_the_one_that_differs_most(tmp_path):
    target = np.where(XOR ^ IS_WRONG, "c", np.array(["a", "b"])[np.arange(N_ROWS) % 2])
    first, _ = two_of(run_on(tmp_path, target))
    assert first["measure"] == "share of c"
    assert_cells(first, target == "c")


def test_a_pair_of_times_has_means_of_scores(tmp_path):
    rng = np.random.default_rng(2)
    died, left = rng.exponential(np.where(XOR, 0.3, 5.0)), rng.exponential(5.0, N_ROWS)
    times, events = np.minimum(died, left), died <= left
    result = run_on(tmp_path, None, time=times, event=events)
    first, _ = two_of(result)
    assert first["measure"] == "mean score"
    assert first["high"] < 0 < min(first["low_high"], first["high_low"])


def test_effects_of_a_pair_are_within_strata(tmp_path):
    strata = np.arange(N_ROWS) % 4
    target = 5 * strata + 2 * XOR + 0.5 * RNG.standard_normal(N_ROWS)
    first, _ = two_of(run_on(tmp_path, target, task="regression", strata=strata))
    assert first["effect"] == pytest.approx(-4, abs=0.5)
    assert first["high"] - first["low"] < 1


def test_a_pair_of_groups_counts_groups(tmp_path):
    groups = np.arange(N_ROWS) // 2
    table = np.repeat(TABLE[::2], 2, axis=0)
    xor = (table[:, 2] > np.nanmedian(table[:, 2])) ^ (table[:, 3] > np.median(table[:, 3]))
    srs_ooc.ingest(table, tmp_path / "t.zarr", target=xor.astype(int), groups=groups)
    first, _ = two_of(srs_ooc.run(tmp_path / "t.zarr", iterations=200, q=10))
    assert sum(first[f"n_{name}"] for name in CELLS) == N_ROWS // 2 - 2


def test_beside_two_others_a_feature_has_a_line_for_each_half_of_the_second(tmp_path):
    target = (XOR ^ HIGH[:, 4] ^ IS_WRONG).astype(int)
    result = run_on(tmp_path, target)
    found = result.pairs("records", only_selected=True)
    assert "within" in command("pairs", result.run).stdout.splitlines()[0]
    assert len(found) == 6
    for low, high in zip(found[::2], found[1::2], strict=True):
        assert low["name"] == high["name"]
        assert {low["name"], low["beside"], low["within"][-2:]} == {"f2", "f3", "f4"}
        assert low["within"].replace("lower", "upper") == high["within"]
        assert low["effect"] * high["effect"] < -1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "says"), [("classes", "No selected feature shows more"), ("probe", "no verdict")]
)
def test_a_run_without_pairs_has_an_empty_table_and_says_so(kind, says):
    run = run_of(kind)
    shown = command("pairs", run, "--selected").stdout.splitlines()
    assert len(shown) == 2
    assert says in shown[1]
    assert command("pairs", run, "--selected", "--csv").stdout.count("\n") == 1
    assert json_of("pairs", run, "--selected", "--json") == []
    assert srs_ooc.open_run(run).pairs("records", only_selected=True) == []


def test_a_run_of_a_version_that_kept_no_such_p_values_has_none(classes, monkeypatch):
    from srs_ooc.runs.verdict import Verdict

    of = Verdict.of

    def older(ledger):
        verdict = of(ledger)
        verdict.facts.pop("p_beside")
        return verdict

    monkeypatch.setattr(Verdict, "of", older)
    assert two_of(srs_ooc.open_run(classes.run))[0]["p_value"] is None


def panels(run, plt):
    """What is drawn of a run's pairs."""
    ax = run.plot_pairs(plt.figure().subplots())
    ax.figure.canvas.draw()
    return ax.child_axes


@pytest.fixture
def plt():
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot as plt

    yield plt
    plt.close("all")


def test_a_pair_of_classes_is_drawn_once_with_share_and_rows_of_each_cell(classes, plt):
    (panel,) = panels(classes, plt)
    first = classes.pairs("records")[0]
    assert (panel.get_ylabel(), panel.get_xlabel()) == (first["name"], first["beside"])
    assert panel.get_title() == first["measure"]
    for text, name in zip(panel.texts, CELLS, strict=True):
        assert text.get_text() == f"{first[name]:.0%}\n{first[f'n_{name}']} rows"


def test_features_of_three_levels_are_drawn_by_level(tmp_path, plt):
    rng = np.random.default_rng(3)
    table = TABLE.copy()
    table[:, 5:7] = rng.integers(0, 3, (N_ROWS, 2))
    sick = (table[:, 5] > 0) ^ (table[:, 6] > 0) ^ IS_WRONG
    srs_ooc.ingest(table, tmp_path / "t.zarr", target=sick.astype(int))
    (panel,) = panels(srs_ooc.run(tmp_path / "t.zarr", iterations=200, q=10), plt)
    across, down = (int(name[1:]) for name in (panel.get_xlabel(), panel.get_ylabel()))
    assert {across, down} == {5, 6}
    texts = [text.get_text() for text in panel.texts]
    for i, text in enumerate(texts):
        rows = (table[:, down] == i // 3) & (table[:, across] == i % 3)
        assert text == f"{sick[rows].mean():.0%}\n{rows.sum()} rows"
    assert len(texts) == 9


def test_a_pair_of_numbers_is_drawn_as_boxes_by_half(tmp_path, plt):
    target = 10 + 2 * XOR + RNG.standard_normal(N_ROWS)
    result = run_on(tmp_path, target, task="regression")
    (panel,) = panels(result, plt)
    first, known = result.pairs("records")[0], ~np.isnan(TABLE[:, 2])
    one, other = (HIGH[:, int(name[1:])] for name in (first["name"], first["beside"]))
    medians = [line.get_ydata()[0] for line in panel.lines if line.get_color() == "#1d2229"]
    halves = ((0, 0), (0, 1), (1, 0), (1, 1))
    expected = [np.median(target[known & (one == a) & (other == b)]) for a, b in halves]
    assert medians == pytest.approx(expected)
    labels = [text.get_text() for text in panel.get_legend().get_texts()]
    assert labels == [f"{half} half of {first['beside']}" for half in ("lower", "upper")]
    assert panel.get_title() == "target"


def test_beside_two_others_both_halves_of_the_second_are_drawn(tmp_path, plt):
    result = run_on(tmp_path, (XOR ^ HIGH[:, 4] ^ IS_WRONG).astype(int))
    found = panels(result, plt)
    assert len(found) == 4
    assert "lower half of" in found[0].get_title()
    assert "upper half of" in found[1].get_title()


def test_a_report_has_the_figure_of_pairs_where_there_are_some(classes, plt, tmp_path):
    page = classes.report(tmp_path / "a.html").read_text()
    assert 'id="figure-pairs"' in page
    without = srs_ooc.open_run(run_of("classes"))
    assert 'id="figure-pairs"' not in without.report(tmp_path / "b.html").read_text()
    said = without.plot_pairs(plt.figure().subplots()).texts[0].get_text()
    assert said == "No selected feature shows more beside another than alone."
