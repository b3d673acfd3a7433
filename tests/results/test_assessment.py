"""What a run selected is tested again in another store: by name, the same way, at its own level."""

import re

import numpy as np
import pytest
from command import error_of, json_of
from command import srs_ooc as command
from scipy import stats

import srs_ooc
from srs_ooc.base.errors import InputError, RunError
from srs_ooc.results.assessment import LEVEL, assess_named
from srs_ooc.store.store import Store

N_FEATURES = 20
NAMES = [f"f{j}" for j in range(N_FEATURES)]


def cohort(seed, n=300, flips=0.05, sign=1.0):
    """Two shifted features, an XOR pair; classes well and ill."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, N_FEATURES))
    is_ill = (values[:, 2] > 0) ^ (values[:, 3] > 0) ^ (rng.random(n) < flips)
    values[:, 0] += sign * is_ill
    values[:, 1] -= is_ill
    return values, np.where(is_ill, "ill", "well")


def store_of(folder, values, target, names=NAMES, **options):
    srs_ooc.ingest(values, folder, target=list(target), names=names, **options)
    return folder


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("first")
    result = srs_ooc.run(store_of(folder / "a.zarr", *cohort(1)), iterations=200, q=10)
    assert {"f0", "f1", "f2", "f3"} <= set(result.selected)
    return result


def by_name(records):
    return {record["name"]: record for record in records}


def test_what_is_there_shows_again_whatever_the_order_of_columns(found, tmp_path):
    values, target = cohort(2)
    order = np.random.default_rng(0).permutation(N_FEATURES)
    names = [NAMES[j] for j in order]
    store = store_of(tmp_path / "b.zarr", values[:, order], target, names)
    records = by_name(found.assess(store, "records"))
    assert list(records) == found.selected
    assert all(records[name]["shows_again"] for name in ("f0", "f1", "f2", "f3"))
    shift = records["f0"]
    ill, well = (values[target == label, 0] for label in ("ill", "well"))
    expected = stats.mannwhitneyu(well, ill)
    assert shift["measure"] == "AUC"
    assert shift["effect_there"] == pytest.approx(
        expected.statistic / len(ill) / len(well), rel=2e-3
    )
    assert np.log(shift["p_value"]) == pytest.approx(np.log(expected.pvalue), rel=0.1)
    assert shift["low_there"] < shift["effect_there"] < shift["high_there"]
    assert shift["same_way"]
    pair = records["f2"]
    assert pair["beside"] == "f3"
    assert pair["measure"] == "share of well"
    assert pair["effect_there"] > 1.5
    assert pair["same_way"]


def test_another_way_is_no_showing_again(found, tmp_path):
    store = store_of(tmp_path / "b.zarr", *cohort(3, sign=-1.0))
    record = by_name(found.assess(store, "records"))["f0"]
    assert record["p_value"] < 1e-6
    assert record["same_way"] is False
    assert not record["shows_again"]
    said = command("assess", found.run, store).stdout
    assert re.search(r"\d of \d show as clearly the other way: look whether both stores\s", said)


@pytest.mark.slow
def test_features_that_are_named_are_tested_alone(tmp_path):
    values, target = cohort(2, n=120)
    store = store_of(tmp_path / "b.zarr", values, target)
    (names := tmp_path / "names.txt").write_text("f0\nnowhere\nf7\nf0\n")
    records = by_name(json_of("assess", names, store, "--json"))
    assert list(records) == ["f0", "nowhere", "f7"]
    ill, well = (values[target == label, 0] for label in ("ill", "well"))
    auc = stats.mannwhitneyu(well, ill).statistic / (len(ill) * len(well))
    assert records["f0"]["effect_there"] == pytest.approx(auc)
    assert records["f0"]["shows_again"]
    assert not records["f7"]["shows_again"]
    assert not records["nowhere"]["is_there"]
    assert "2 of 3 named features are in the other store." in command("assess", names, store).stdout
    names.write_text("no\nnone\n")
    said = error_of("assess", names, store)
    assert "by the names that were given, such as 'no', 'none', found none of the 2" in said


def test_p_values_of_named_features_hold_where_nothing_goes_with_the_target(tmp_path):
    """The best of three contrasts, paid for: no more small ones than there should be."""
    p_values = []
    for seed in range(12):
        values, target = cohort(30 + seed, n=90)
        np.random.default_rng(seed).shuffle(target)
        store = Store.open(store_of(tmp_path / f"{seed}.zarr", values, target))
        p_values += [one.p_value for one in assess_named(NAMES, store)]
    assert len(p_values) == 12 * N_FEATURES
    for level in (0.01, 0.05, 0.2):
        n_below = np.count_nonzero(np.array(p_values) <= level)
        assert stats.binom.sf(n_below - 1, len(p_values), level) > 1e-3


def test_where_nothing_goes_with_the_target_p_values_are_uniform(found, tmp_path):
    p_values = []
    for seed in range(12):
        values, target = cohort(10 + seed, n=120)
        np.random.default_rng(seed).shuffle(target)
        store = store_of(tmp_path / f"{seed}.zarr", values, target)
        p_values += [one["p_value"] for one in found.assess(store, "records")]
    assert stats.kstest(p_values, "uniform").pvalue > 1e-3
    assert np.mean(np.array(p_values) <= LEVEL) < 0.2


def test_features_that_are_not_there_are_said(found, tmp_path):
    values, target = cohort(2)
    store = store_of(tmp_path / "b.zarr", values[:, :3], target, NAMES[:3])
    records = by_name(found.assess(store, "records"))
    assert records["f0"]["is_there"]
    assert not records["f2"]["is_there"]  # as f3 is not
    assert records["f2"]["p_value"] is None
    assert not records["f2"]["shows_again"]
    done = command("assess", found.run, store)
    n = len(found.selected)
    assert f"2 of {n} selected features are in the other store." in done.stdout
    assert "2 of 2 go the same way; 1 would by chance" in done.stdout
    assert "2 of 2 show again: p at most 0.05 / 2" in done.stdout


def test_the_command_says_what_python_does(found, tmp_path):
    store = store_of(tmp_path / "b.zarr", *cohort(2))
    assert json_of("assess", found.run, store, "--json") == found.assess(store, "records")


@pytest.mark.parametrize(
    ("target", "names", "said"),
    [
        (["sick", "well"], NAMES, "expected a target as the run's (ill, well), found sick, well"),
        ([1.5, 2.5], NAMES, "found regression"),
        (["ill", "well"], [f"g{j}" for j in range(N_FEATURES)], "expected features by the names"),
    ],
)
def test_another_target_or_no_feature_is_refused(found, tmp_path, target, names, said):
    values, _ = cohort(2, n=40)
    store = store_of(tmp_path / "b.zarr", values, [target[i % 2] for i in range(40)], names,
                     task="regression" if target[0] == 1.5 else "classification")  # fmt: skip
    with pytest.raises(InputError, match=said.replace("(", r"\(").replace(")", r"\)")):
        found.assess(store)


def test_a_run_without_tests_is_refused(tmp_path):
    store = store_of(tmp_path / "a.zarr", *cohort(1))
    result = srs_ooc.run(store, judge="probe", iterations=50, q=10)
    with pytest.raises(RunError, match="expected a run with a verdict by tests"):
        result.assess(store)


def test_numbers_strata_and_groups_are_compared_as_a_run_would(tmp_path):
    rng = np.random.default_rng(5)
    values = np.repeat(rng.normal(size=(150, N_FEATURES)), 2, axis=0)
    target = values[:, 4] + 0.3 * values[:, 5] + np.repeat(rng.normal(size=150), 2)
    groups = np.repeat(np.arange(150), 2).astype(str)
    first = store_of(tmp_path / "a.zarr", values, target)
    result = srs_ooc.run(first, iterations=100, q=10)
    assert "f4" in result.selected
    with pytest.raises(InputError, match="expected a store of other rows"):
        result.assess(first)
    same = store_of(tmp_path / "d.zarr", values, target, row_ids=[f"r{i}" for i in range(300)])
    alone = by_name(result.assess(same, "records"))["f4"]
    grouped = store_of(tmp_path / "b.zarr", values, target, groups=list(groups))
    parted = store_of(tmp_path / "c.zarr", values, target, strata=list(groups))
    assert alone["effect"] == pytest.approx(alone["effect_there"])
    assert by_name(result.assess(grouped, "records"))["f4"]["p_value"] > alone["p_value"] ** 0.8
    assert by_name(result.assess(parted, "records"))["f4"]["p_value"] == 1  # nothing differs within


# What the panel predicts.


def test_the_panel_predicts_another_cohort_and_its_interval_holds_what_many_rows_say(
    found, tmp_path
):
    order = np.random.default_rng(0).permutation(N_FEATURES)
    few, many = cohort(5, n=200), cohort(6, n=4000)
    scores = []
    for name, (values, target) in (("few", few), ("many", many)):
        names = [NAMES[j] for j in order]
        store = store_of(tmp_path / f"{name}.zarr", values[:, order], target, names)
        scores.append({s["measure"]: s for s in found.panel_scores(store, "records")})
        assert {s["n_rows"] for s in scores[-1].values()} == {len(target)}
    for measure in ("share predicted right", "AUC"):
        one, all_ = (score[measure] for score in scores)
        assert one["low"] <= all_["score"] <= one["high"]
        assert all_["score"] > 0.8
        assert one["n_features"] == len(found.selected)


def test_a_shuffled_target_is_predicted_by_chance_and_missing_features_are_left_out(
    found, tmp_path, capsys
):
    values, target = cohort(7, n=600)
    shuffled = np.random.default_rng(1).permutation(target)
    store = store_of(tmp_path / "s.zarr", values, shuffled)
    area = found.panel_scores(store, "records")[1]
    assert area["low"] < 0.5 < area["high"]
    store = store_of(tmp_path / "l.zarr", values[:, 1:], target, NAMES[1:])
    assert found.panel_scores(store, "records")[0]["n_features"] == len(found.selected) - 1
    said = command("assess", found.run, store).stdout
    assert "predicts there: share predicted right 0." in said
    assert "AUC 0." in said
    store = store_of(tmp_path / "v.zarr", values, target, keep_values=False)
    assert found.panel_scores(store, "records") == []
    store = store_of(tmp_path / "n.zarr", values, np.arange(600.0), task="regression")
    with pytest.raises(InputError, match="expected a target as the run's"):
        found.panel_scores(store)


def test_on_its_own_rows_the_panel_says_what_the_same_codes_say(tmp_path):
    """Values of categories and numbers get the codes that they have in the store."""
    rng = np.random.default_rng(2)
    n = 240
    color, number = rng.choice(["red", "green", "blue"], n), rng.normal(size=n)
    y = np.where((color == "red") | (number > 1), 5.0, 0.0) + rng.normal(size=n) / 3
    lines = [f"{a},{b!r},{c!r}" for a, b, c in zip(color, number.tolist(), y.tolist(), strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(["color,number,y", *lines]))
    b = ["\n".join(["number,color,y", *(",".join([b, a, c]) for a, b, c in
                                        (one.split(",") for one in reversed(lines)))])]  # fmt: skip
    (tmp_path / "b.csv").write_text("".join(b))
    for name in "ab":
        srs_ooc.ingest(tmp_path / f"{name}.csv", tmp_path / f"{name}.zarr", task="regression")
    result = srs_ooc.run(tmp_path / "a.zarr", iterations=60)
    assert set(result.selected) == {"color", "number"}
    (score,) = result.panel_scores(tmp_path / "b.zarr", "records")
    assert score["measure"] == "rank correlation"
    assert score["score"] > 0.75
