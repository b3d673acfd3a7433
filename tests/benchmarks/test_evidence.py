"""The tables of many kinds: what is planted is there, bounds are right, a campaign can stop."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from evidence import (
    TEST,
    beside,
    bound,
    bound_over,
    by_our_tests,
    by_peer,
    done_by,
    is_null,
    main,
    make_store,
    ours,
    pair_scan,
    report,
    table_of,
)
from evidence_designs import DESIGNS, PAIRS, SIMPLE, SYNTH, TESTS, Table, selected_by_test
from scipy import stats

import srs_ooc
from srs_ooc.base.records import Covariate
from srs_ooc.store.store import Store


@pytest.mark.few(4)
@pytest.mark.parametrize("design", [*DESIGNS, *SIMPLE, *SYNTH])
def test_tables_are_of_their_seed_and_name_who_is_relevant(design):
    table = table_of(design, 3)
    n, p = table.values.shape
    assert table.target.shape == (n,)
    assert all(0 <= feature < p for feature in table.relevant)
    assert bool(table.relevant) != is_null(design)
    assert {table.test, *table.also} <= {*TESTS, ""}
    again = table_of(design, 3)
    np.testing.assert_array_equal(table.values, again.values)
    np.testing.assert_array_equal(table.target, again.target)


@pytest.mark.few(3)
@pytest.mark.parametrize("design", [design for design in DESIGNS if not is_null(design)])
def test_the_simple_test_that_is_told_the_design_finds_what_is_planted(design):
    powers, shares = [], []
    for seed in range(3):
        table = table_of(design, seed)
        if not table.test:
            pytest.skip("no simple test sees it")
        found = selected_by_test(table, 0.1)
        n_true = len(np.intersect1d(found, table.relevant))
        powers.append(n_true / len(table.relevant))
        shares.append(1 - n_true / max(len(found), 1))
    assert np.mean(powers) > 0.3
    assert np.mean(shares) < 0.35


@pytest.mark.few(3)
@pytest.mark.parametrize("test", TESTS)
def test_p_values_of_the_simple_tests_are_uniform_where_nothing_is_relevant(test):
    rng = np.random.default_rng(1)
    values, target = rng.normal(size=(200, 2000)), np.arange(200) % 2
    if test in {"fisher", "levels", "recessive", "trend"}:
        values = rng.integers(0, 3, values.shape).astype(float)
    if test == "missing":
        values[rng.random(values.shape) < 0.3] = np.nan
    numbers = rng.exponential(size=200) if test in {"pearson", "spearman", "U-shape"} else target
    age = (Covariate("age", rng.normal(size=200)),)
    strata = np.arange(200) // 20
    found = TESTS[test](Table(values, numbers, strata=strata, covariates=age))
    assert found.shape == (2000,)
    assert np.mean(found <= 0.05) <= stats.binom.isf(1e-4, 2000, 0.05) / 2000
    if test not in {"fisher", "missing", "one class", "recessive"}:  # exact or sums, and so below
        assert np.mean(found <= 0.05) >= stats.binom.isf(1 - 1e-4, 2000, 0.05) / 2000


def test_permuted_targets_stay_within_strata_and_keep_their_classes():
    from evidence_designs import batches, permuted_rows

    made = batches(np.random.default_rng(2), 0.3)
    table = permuted_rows(np.random.default_rng(2), lambda rng: batches(rng, 0.3))
    assert table.relevant == ()
    assert (table.target != made.target).any()
    for stratum in range(8):
        inside = made.strata == stratum
        assert made.target[inside].sum() == table.target[inside].sum()


def test_the_scan_of_pairs_finds_a_pair_and_nothing_in_noise():
    assert pair_scan(table_of("XOR pair, 50 x 400", 1)) == [0, 1]
    nulls = [pair_scan(table_of("noise", seed)) for seed in range(5)]
    assert sum(map(bool, nulls)) <= 2
    assert len(PAIRS) == 12


def test_a_store_has_the_kinds_the_target_and_the_strata_of_its_table(tmp_path):
    for design in ("noise, categories", "noise, numbers", "noise, pairs"):
        table = table_of(design, 1)
        small = Table(table.values[:, :5], table.target, (), table.strata, "", table.categories)
        make_store(small, tmp_path / f"{design}.zarr")
        store = Store.open(tmp_path / f"{design}.zarr")
        assert bool(store.manifest.classes) == (design != "noise, numbers")
        assert (store.strata() is not None) == (design == "noise, pairs")
        assert store.manifest.kind_counts.get("categorical", 0) == 5 * table.categories


@pytest.mark.slow
def test_a_table_of_synth_gives_what_the_store_of_synth_gives(tmp_path):
    make_store(table_of("five-minute start", 1), tmp_path / "here.zarr")
    srs_ooc.synth("madelon", tmp_path / "synth.zarr", rows=500, features=3000, relevant=20, seed=1)
    stores = (tmp_path / "here.zarr", tmp_path / "synth.zarr")
    here, there = (list(srs_ooc.run(store, iterations=50).selected) for store in stores)
    assert here == there


@pytest.mark.slow
def test_what_is_done_is_not_done_again(tmp_path, monkeypatch, capsys):
    results = tmp_path / "results.jsonl"
    asked = ["evidence.py", "--results", str(results), "--designs", "noise, counts"]
    monkeypatch.setattr("sys.argv", [*asked, "--seeds", "0", "1"])
    main()
    first = results.read_text()
    assert json.loads(first)["found"]["ours"]["power"] is None
    main()
    assert results.read_text() == first
    assert "| noise, counts | 1 |" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", [*asked, "--seeds", "0", "1", "--peers", "ranksum"])
    main()
    added = json.loads(results.read_text().removeprefix(first))
    assert list(added["found"]) == ["ranksum"]
    assert added["found"]["ranksum"]["selected"] == json.loads(first)["found"][TEST]["selected"]


def test_our_tests_alone_are_done_once_and_kept_apart_from_runs(tmp_path, monkeypatch, capsys):
    results = tmp_path / "results.jsonl"
    asked = ["evidence.py", "--results", str(results), "--ours", "tests", "--seeds", "0", "1"]
    monkeypatch.setattr("sys.argv", [*asked, "--designs", "noise", "one of twelve classes"])
    main()
    first = results.read_text()
    main()
    assert results.read_text() == first
    lines = [json.loads(line) for line in first.splitlines()]
    assert [line["label"] for line in lines] == [", tests alone"] * 2
    assert set(lines[1]["found"]) == {"ours", TEST, "kruskal"}
    assert "| one of twelve classes | 1 |" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("design", ["12 values", "missing", "adjusted, one number", "10 batches"])
def test_our_tests_alone_find_what_a_run_finds_of_the_same_table(design):
    table = table_of(design, 3)
    alone, run = by_our_tests(table), ours(table, {"iterations": 20})
    assert alone["power"] == pytest.approx(run["power"], abs=0.07)


@pytest.mark.slow
def test_a_peer_that_fails_or_is_late_is_noted():
    table = table_of("500 x 50", 0)
    assert by_peer(table, "no_such", 0, 1.0) == {"failed": "KeyError: 'no_such'"}
    assert by_peer(table, "boruta", 0, 0.001) == {"failed": "out of time"}


def test_bounds_are_those_of_the_mean():
    values = [0.0, 0.1, 0.2, 0.3]
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.9).high
    assert bound(values) == pytest.approx(expected)
    middle, spread, highest = bound_over([values, [0.0, 0.0], [0.1, 0.3]])
    assert middle == pytest.approx((0.15 + 0.0 + 0.2) / 3)
    assert spread == pytest.approx(np.sqrt(np.var(values, ddof=1) / 4 + 0.01) / 3)
    assert highest == pytest.approx(middle + 1.6449 * spread, abs=1e-4)


def line(design, seed, **found):
    """Return a line as of a file of results: power, false share and selected by method."""
    names = ("power", "false", "selected", "cpu")
    runs = {who: dict(zip(names, (*what, 1.0), strict=True)) for who, what in found.items()}
    return {"design": design, "seed": seed, "label": "", "found": runs}


def test_the_report_judges_signals_nulls_and_peers():
    lines = [
        line("tied", 0, ours=(0.5, 0.0, 2), **{TEST: (0.7, 0.1, 3)}),
        line("tied", 1, ours=(1.0, 0.5, 4), **{TEST: (0.9, 0.3, 3)}),
        line("tied", 1, boruta=(0.4, 0.2, 9)),
        line("XOR", 0, ours=(1.0, 0.0, 2)),
        line("XOR", 1, ours=(1.0, 0.0, 2)),
        line("noise", 0, ours=(None, 0.0, 0), **{TEST: (None, 1.0, 1)}),
        line("noise", 1, ours=(None, 1.0, 3), **{TEST: (None, 0.0, 0)}),
    ]
    expected = [
        "| tied | 2 | 3.0 | 0.750 | 0.800 | 0.050 ± 0.150 | 0.250 ± 0.250 | **1.828** |",
        "| XOR | 2 | 2.0 | 1.000 |  |  | 0.000 ± 0.000 | 0.000 |  | 1.0 |",
        "false share over 2 families: 0.1250 ± 0.1250, 95% bound 0.3306 (criterion 0.125: e",
        "told test over 1 families: 0.0500 ± 0.1500, 95% bound 0.2967",
        "| noise | 2 | 1 | 0.975 | 1 of 2 | 1.0 |",
        "| all | 2 | 1 | 0.975 | 1 of 2 |  |",
        "| tied | 1 | 1.00 / 0.50 / 1.0 | 0.90 / 0.30 / 1.0 | 0.40 / 0.20 / 1.0 |",
    ]
    assert [line for line in expected if line not in report(lines)] == []


def test_what_was_found_before_stands_in_place_of_the_told_test():
    now = [line("tied", seed, ours=(0.5, 0.0, 2), **{TEST: (0.7, 0.1, 3)}) for seed in (0, 1)]
    before = line("tied", 1, ours=(0.6, 0.2, 4)) | {"label": "before"}
    both = beside(now, [*now, before], "before")
    assert both == [line("tied", 1, ours=(0.5, 0.0, 2), **{TEST: (0.6, 0.2, 4)})]


def test_only_what_is_left_is_done():
    asked = SimpleNamespace(options="{}", peers=[], peer_minutes=1.0, scan=True)
    assert list(done_by({"pair scan"}, "XOR pair, 50 x 200", 0, asked)["found"]) == ["pair scan"]
