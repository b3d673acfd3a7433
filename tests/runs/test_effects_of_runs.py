"""Runs say which way their features differ, and by how much: of each kind of table."""

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

import srs_ooc
from srs_ooc.cli import cli

N_ROWS = 240
"""No more than 254, so that codes keep all ranks."""
RNG = np.random.default_rng(0)
NOISE = RNG.standard_normal((N_ROWS, 60))
LABELS = RNG.integers(0, 3, N_ROWS)
OF_EFFECT = ("direction", "measure", "effect", "low", "high")


def run_on(folder, table, target, **given):
    srs_ooc.ingest(table, folder / "t.zarr", target=target, **given)
    return srs_ooc.run(folder / "t.zarr", out=folder / "t.run", iterations=60)


def by_name(result, **given):
    return {record["name"]: record for record in result.features("records", **given)}


def test_two_classes(tmp_path):
    is_case = LABELS > 0
    table = NOISE.copy()
    table[is_case, 0] += 1.5
    table[is_case, 1] *= 5
    table[is_case & (np.arange(N_ROWS) % 3 > 0), 2] = np.nan
    result = run_on(tmp_path, table, np.where(is_case, "case", "at rest").tolist())
    found = by_name(result, only_selected=True)
    first, spread, absent = (found[f"f{i}"] for i in range(3))
    assert (first["direction"], first["measure"]) == ("higher in case", "AUC")
    u = stats.mannwhitneyu(table[is_case, 0], table[~is_case, 0]).statistic
    assert first["effect"] == pytest.approx(u / (is_case.sum() * (~is_case).sum()))
    assert 0.5 < first["low"] < first["effect"] < first["high"]
    assert (spread["direction"], spread["measure"]) == ("more spread in case", "ratio of spreads")
    assert 1 < spread["low"] < spread["effect"]
    assert absent["direction"] == "more often missing in case"
    assert absent["measure"] == "difference of shares"
    shares = [np.isnan(table[side, 2]).mean() for side in (is_case, ~is_case)]
    assert absent["effect"] == pytest.approx(shares[0] - shares[1])
    every = by_name(result)
    unknown = next(one for one in every.values() if not one["selected"] and not one["passes_alone"])
    assert [unknown[name] for name in OF_EFFECT] == [None] * 5


def test_ten_classes_are_told_of_the_one_that_differs_most(tmp_path):
    labels = np.arange(N_ROWS) % 10
    table = NOISE.copy()
    table[labels == 7, 3] -= 4
    found = by_name(run_on(tmp_path, table, [f"k{label}" for label in labels]))["f3"]
    assert (found["direction"], found["measure"]) == ("lower in k7", "AUC")
    u = stats.mannwhitneyu(table[labels == 7, 3], table[labels != 7, 3]).statistic
    assert found["effect"] == pytest.approx(u / (24 * 216))


def test_numbers(tmp_path):
    target = -2 * NOISE[:, 4] + NOISE[:, 5] + RNG.standard_normal(N_ROWS)
    result = run_on(tmp_path, NOISE, target.tolist(), task="regression")
    found = by_name(result)
    assert found["f4"]["direction"] == "falls with the target"
    assert found["f5"]["direction"] == "rises with the target"
    expected = stats.spearmanr(NOISE[:, 4], target).statistic
    assert found["f4"]["effect"] == pytest.approx(expected)
    assert f"Spearman {expected:.2f} (" in result.why("f4")
    assert "likely overstated" in result.why("f4")


def test_why_says_that_a_column_is_constant(tmp_path):
    table = NOISE.copy()
    table[:, 3] = 7
    table[:, 4] = [np.nan, 1] * (N_ROWS // 2)
    result = run_on(tmp_path, table, np.where(table[:, 0] > 0, "a", "b").tolist())
    for name in ("f3", "f4"):
        assert result.why(name) == f"{name} is out: its values are all the same, or missing."
    assert "f5 is out" in result.why("f5")
    assert "all the same" not in result.why("f5")


def test_sparse_numbers(tmp_path):
    table = np.where(NOISE > 1.2, NOISE, 0)
    is_case = (table[:, 6] + 0.3 * RNG.standard_normal(N_ROWS)) > 0.3
    found = by_name(run_on(tmp_path, table, is_case.astype(int).tolist()))["f6"]
    u = stats.mannwhitneyu(table[is_case, 6], table[~is_case, 6]).statistic
    assert found["effect"] == pytest.approx(u / (is_case.sum() * (~is_case).sum()))
    assert found["direction"] == "higher in class 1"


def test_within_strata_what_they_differ_by_is_no_effect(tmp_path):
    strata = np.arange(N_ROWS) % 12
    is_case = (NOISE[:, 0] + strata / 6 + 0.5 * RNG.standard_normal(N_ROWS)) > 1
    table = NOISE + strata[:, None]
    given = {"target": is_case.astype(int).tolist(), "strata": strata.tolist()}
    found = by_name(run_on(tmp_path, table, **given))["f0"]
    total, weights = 0.0, 0.0
    for stratum in range(12):
        a, b = (table[(strata == stratum) & side, 0] for side in (is_case, ~is_case))
        if len(a) and len(b):
            w = len(a) * len(b) / (len(a) + len(b))
            total += w * stats.mannwhitneyu(a, b).statistic / (len(a) * len(b))
            weights += w
    assert found["effect"] == pytest.approx(total / weights)
    assert 0.5 < found["low"] < found["effect"] < found["high"] < 1


def test_effects_of_groups_are_of_their_means(tmp_path):
    """As of a table of one row a group, and within the sizes that trade places."""
    groups = np.arange(N_ROWS) // 4
    is_case = groups % 2 == 0
    table = NOISE + 2 * is_case[:, None] * (np.arange(60) < 2)
    given = {"target": is_case.astype(int).tolist(), "groups": groups.tolist()}
    result = run_on(tmp_path, table, **given)
    found = by_name(result)["f0"]
    assert found["selected"]
    ranks = stats.rankdata(table[:, 0]).reshape(-1, 4).mean(axis=1)
    cases = is_case[::4]
    count = stats.mannwhitneyu(ranks[cases], ranks[~cases]).statistic
    assert found["direction"] == "higher in class 1"
    assert found["effect"] == pytest.approx(count / np.sum(cases) / np.sum(~cases))
    assert found["low"] < found["effect"] <= found["high"]


def test_a_categorical_feature_has_no_direction_where_groups_are_tested(tmp_path):
    """Its levels are in no order, and so their mean ranks are not."""
    is_case = np.arange(N_ROWS) // 4 % 2 == 0
    groups = [f"patient {i // 4}" for i in range(N_ROWS)]
    result = categorical(tmp_path, is_case, is_case, groups)
    found = by_name(result)["colour"]
    assert found["selected"]
    for name in ("direction", "measure", "effect", "low", "high"):
        assert found[name] is None


def categorical(folder, target, is_red, groups=None):
    colours = np.where(is_red, "red", np.where(np.arange(N_ROWS) % 2, "blue", "green"))
    given = range(N_ROWS) if groups is None else groups
    with (folder / "t.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(f"f{i}" for i in range(20)), "colour", "y", "of"])
        for values, *others in zip(NOISE[:, :20].tolist(), colours, target, given, strict=True):
            writer.writerow([*values, *others])
    how = {"ignore": ["of"]} if groups is None else {"groups": "of"}
    srs_ooc.ingest(folder / "t.csv", folder / "t.zarr", target="y", **how)
    return srs_ooc.run(folder / "t.zarr", out=folder / "t.run", iterations=40)


def test_the_level_of_a_categorical_feature_is_named_without_the_store_too(tmp_path):
    is_red = (LABELS == 2) & (np.arange(N_ROWS) % 4 > 0)
    result = categorical(tmp_path, [f"k{label}" for label in LABELS], is_red)
    before = by_name(result)["colour"]
    assert before["direction"] == "level red is more frequent in k2"
    assert before["measure"] == "difference of shares"
    assert before["effect"] == pytest.approx(is_red[LABELS == 2].mean())
    (tmp_path / "t.zarr").rename(tmp_path / "elsewhere.zarr")
    done = CliRunner().invoke(cli, ["features", str(result.run), "--json"])
    assert json.loads(done.stdout)[0] == before
    said = CliRunner().invoke(cli, ["features", str(result.run), "--why", "colour"]).stdout
    assert "Alone, level red is more frequent in k2: difference of shares" in said


def test_with_numbers_a_level_has_targets_higher_or_lower(tmp_path):
    is_red = np.arange(N_ROWS) % 3 == 0
    target = RNG.standard_normal(N_ROWS) - 3 * is_red
    found = by_name(categorical(tmp_path, target.tolist(), is_red))["colour"]
    assert (found["direction"], found["measure"]) == ("target lower at level red", "AUC")
    u = stats.mannwhitneyu(target[is_red], target[~is_red]).statistic
    assert found["effect"] == pytest.approx(u / (80 * 160))


def test_what_shows_only_beside_another_has_its_effect_in_location(tmp_path):
    signs = np.random.default_rng(5).standard_normal((N_ROWS, 12))
    target = (signs[:, 0] > 0) ^ (signs[:, 1] > 0)
    found = by_name(run_on(tmp_path, signs, target.astype(int).tolist()))["f0"]
    assert found["selected"]
    assert not found["passes_alone"]
    u = stats.mannwhitneyu(signs[target, 0], signs[~target, 0]).statistic
    assert found["effect"] == pytest.approx(u / (target.sum() * (~target).sum()))
    assert found["low"] < 0.5 < found["high"]
