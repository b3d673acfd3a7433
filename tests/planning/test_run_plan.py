"""Plans: memory by the run's own formulas, T from the table alone, and what is advised."""

import re
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from command import srs_ooc as command
from scipy import stats
from stores import make_store, noise_table

import srs_ooc
from srs_ooc.base.budget import PROCESS_NBYTES, total_nbytes
from srs_ooc.base.errors import BudgetError, UsageError
from srs_ooc.base.text import MB
from srs_ooc.cli import cli
from srs_ooc.evidence.rank_tests import Contrast, RankTarget, contrasts_log_p
from srs_ooc.methods.theory.paper_theory import Setting, expected_time
from srs_ooc.planning import speed
from srs_ooc.planning.run_plan import (
    degree_times,
    plan_values,
    power_of,
)
from srs_ooc.planning.speed import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    cold_seconds,
    measured_speed,
    memory_plan,
    recommended_iterations,
)
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.request import Request
from srs_ooc.runs.run_memory import (
    fixed_leases,
    largest_subspace,
    work_nbytes,
)
from srs_ooc.samplers.base import method_of
from srs_ooc.store.store import Store


@pytest.fixture(autouse=True)
def short_probe(monkeypatch):
    monkeypatch.setattr(speed, "PROBE_SECONDS", 0.01)


def drafted(n_rows=200, n_features=20_000, memory_mb=1000, threads=1, **options):
    asked = {"judge": "probe"} | options
    return Plan.of_numbers(
        Request(options=asked, memory_mb=memory_mb, threads=threads), n_rows, n_features
    )


def test_every_megabyte_is_accounted_for_by_the_runs_own_formulas():
    planned = drafted(memory_mb=2000, threads=2)
    memory = memory_plan(planned)
    assert total_nbytes(memory.leases) + memory.free_nbytes == 2000 * MB
    spec, shape = planned.spec, planned.shape
    work = work_nbytes(spec, shape, spec.subspace_size + 1, saves=False)
    leases = [lease.n_bytes for lease in memory.leases]
    fixed = [lease.n_bytes for lease in fixed_leases(spec, shape) if lease.n_bytes]
    assert leases == [PROCESS_NBYTES, *fixed, work, work, shape.codes_nbytes]
    assert (memory.n_workers, memory.mapped) == (2, True)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 1200),
        ({"subspace_size": "500"}, 2400),
        ({"subspace_size": "500", "keep": 0}, 1200),
        ({"subspace_size": "500", "alpha": "0"}, 1200),
        ({"alpha": "0"}, MIN_ITERATIONS),
    ],
)
def test_a_run_with_a_verdict_draws_every_feature_often_in_each_lane(options, expected):
    """30 times in each of both lanes of 20,000 features, or in one."""
    iterations, reason = recommended_iterations(drafted(judge="tests", **options))
    assert iterations == expected
    assert "last stage" in reason


def test_the_largest_subspace_just_fits():
    asked = {"n_rows": 20_000, "memory_mb": 400, "judge": "positive"}
    planned = drafted(**asked)
    spec, shape = planned.spec, planned.shape
    q = largest_subspace(spec, shape, 400 * MB)
    assert 64 < q < 20_000
    assert drafted(**asked, subspace_size="max").spec.subspace_size == q
    room = 400 * MB - PROCESS_NBYTES - total_nbytes(fixed_leases(spec, shape))
    assert work_nbytes(spec, shape, q, saves=False) <= room
    assert work_nbytes(spec, shape, q + 1, saves=False) > room


def test_a_cap_too_small_is_refused_as_by_the_run():
    with pytest.raises(BudgetError, match="smallest cap that works"):
        plan_values(drafted(n_rows=100_000, memory_mb=65))


def test_t_follows_the_table_and_not_the_machine():
    base = drafted(subspace_size="500")
    t = recommended_iterations(base)[0]
    for other in (
        replace(base, request=replace(base.request, threads=8)),
        replace(base, request=replace(base.request, memory_mb=10_000)),
        replace(base, shape=replace(base.shape, n_classes=20)),
    ):
        assert recommended_iterations(other)[0] == t


@pytest.mark.parametrize(
    ("options", "expected", "why"),
    [
        ({"subspace_size": "20000"}, MIN_ITERATIONS, "too few draws"),
        ({"subspace_size": "1000"}, 1380, "even while as many features are held as alpha allows"),
        ({"subspace_size": "100"}, MAX_ITERATIONS, "takes 14,107"),
        ({"subspace_size": "1000", "alpha": "0"}, MIN_ITERATIONS, "too few draws"),
        ({"subspace_size": "600", "alpha": "0"}, 1167, r"probability 0.99 by then$"),
        ({"subspace_size": "1000", "alpha": "1"}, MAX_ITERATIONS, "no place"),
    ],
)
def test_t_is_enough_draws_within_its_bounds(options, expected, why):
    found, reason = recommended_iterations(drafted(**options))
    assert found == pytest.approx(expected, rel=0.01)
    assert re.search(why, reason)


def test_a_stricter_probe_takes_more_iterations():
    few, many = (recommended_iterations(drafted(probe_min_draws=n))[0] for n in (10, 60))
    assert few < many


def test_degrees_are_those_of_the_theory():
    planned = drafted(subspace_size="500", alpha="0.3")
    for time in degree_times(planned):
        for alpha, found in (("0", time["rs"]), ("0.3", time["srs"])):
            setting = Setting("chain", 20_000, 500, time["degree"] + 1, alpha)
            assert found == float(expected_time(setting))
    assert [time["srs"] for time in degree_times(drafted(subspace_size="2"))][2:] == [None, None]


def test_advice_gives_a_reason_for_everything():
    plan = plan_values(drafted(alpha="0", judge="positive"))
    advice = {item["name"]: item for item in plan["advice"]}
    assert list(advice) == [
        "iterations", "alpha", "max_features", "trees_per_subspace", "draw_block", "judge",
    ]  # fmt: skip
    assert all(len(item["reason"]) > 20 for item in plan["advice"])
    assert (advice["alpha"]["value"], advice["alpha"]["planned"]) == ("0.5", "0")
    assert (advice["judge"]["value"], advice["judge"]["planned"]) == ("tests", "positive")
    whole = plan_values(drafted(n_features=90))
    assert {item["name"]: item["value"] for item in whole["advice"]}["alpha"] == "0"


@pytest.mark.parametrize("method", ["srs", "rs", "less"])
def test_advice_is_of_options_that_the_method_has(method):
    names = [said["name"] for said in plan_values(drafted(method=method))["advice"]]
    for option in ("alpha", "draw_block"):
        assert (option in names) == (option in method_of(method).options())


@pytest.mark.slow
def test_blocks_are_advised_where_the_store_does_not_fit_the_cap():
    def planned(*sizes, **options):
        draft = drafted(*sizes, **options)
        plan = plan_values(draft)
        by_name = {item["name"]: (item["value"], item["planned"]) for item in plan["advice"]}
        return draft, plan, by_name

    large = {"n_features": 2_000_000, "memory_mb": 250}
    assert planned(**large, subspace_size="2500")[0].spec.draw_block == 64
    draft, single, advice = planned(**large, subspace_size="2500", draw_block=1)
    assert not single["mapped"]
    assert advice["draw_block"] == ("64", "1")
    other, blocks, advice = planned(
        **large, subspace_size="2500", draw_block=64, trees_per_subspace=2
    )
    assert advice["draw_block"] == ("64", "64")
    assert advice["trees_per_subspace"][1] == "2"
    assert (single["reads_per_iteration"], blocks["reads_per_iteration"]) == (2500, 40)
    assert cold_seconds(other, 64) < cold_seconds(draft, 1) / 10
    assert single["draws"]["every"] == blocks["draws"]["every"]
    # 32 blocks at least
    assert planned(**large, subspace_size="1000")[2]["draw_block"][0] == "16"
    assert planned(**large, subspace_size="20")[2]["draw_block"][0] == "1"
    assert planned()[2]["draw_block"][0] == "1"
    # Columns of 200 kB are long reads by themselves.
    tall = planned(200_000, 20_000, memory_mb=2000, subspace_size="20")[2]
    assert tall["draw_block"][0] == "1"


def test_twice_the_memory_is_planned_as_a_run_with_it_would_be():
    plan = plan_values(drafted(n_rows=20_000, memory_mb=80))
    found = {other["what"]: other for other in plan["alternatives"]}
    more, planned = found["twice the memory"], found["as planned"]
    assert more["subspace_size"] > planned["subspace_size"]
    twice = drafted(n_rows=20_000, memory_mb=160)
    assert more["subspace_size"] == twice.spec.subspace_size
    assert more["iterations"] == recommended_iterations(twice)[0]
    assert found["twice the memory, --q max"]["memory_mb"] == 160


@pytest.mark.slow
def test_a_store_is_measured_and_numbers_are_estimated(tmp_path):
    values, labels = noise_table(60, 150)
    store = make_store(tmp_path / "t.zarr", values, labels)
    before = sorted(tmp_path.rglob("*"))
    planned = Plan.of(Store.open(store), Request(options={"subspace_size": "20"}, threads=2))
    plan, of_numbers = plan_values(planned), plan_values(drafted())
    assert sorted(tmp_path.rglob("*")) == before
    assert plan["seconds_measured"]
    assert planned.class_counts == (30, 30)
    assert not of_numbers["seconds_measured"]
    for one in (plan, of_numbers):
        assert one["seconds_per_iteration"] > 0
        stages = one["stage_seconds"]
        assert stages["iterations"] == one["iterations"] * one["seconds_per_iteration"]
        assert one["total_seconds"] == sum(stages.values())
    assert list(plan["stage_seconds"]) == ["iterations", "closing", "tests"]
    assert all(plan["stage_seconds"].values())
    assert list(of_numbers["stage_seconds"]) == ["iterations"]  # judged by a probe


def test_a_regression_has_no_classes_on_some_of_its_rows_either(tmp_path):
    values, labels = noise_table(60, 150)
    srs_ooc.ingest(values.T, tmp_path / "t.zarr", target=values[0] + labels, task="regression")
    rows = tmp_path / "rows.txt"
    rows.write_text("\n".join(map(str, range(1, 41))))
    planned = Plan.of(Store.open(tmp_path / "t.zarr"), Request(rows_file=rows))
    assert planned.shape.n_rows == 40
    assert planned.class_counts == ()


def test_slow_iterations_are_not_waited_for_long(tmp_path, monkeypatch):
    """With no time to spend, as many iterations as there are subspaces ahead are timed."""
    values, labels = noise_table(60, 150)
    store = make_store(tmp_path / "t.zarr", values, labels)
    monkeypatch.setattr(speed, "PROBE_SECONDS", 0.0)
    planned = Plan.of(Store.open(store), Request(threads=2))
    assert measured_speed(planned).how.startswith("3 real iterations")


def test_a_store_that_cannot_be_run_cannot_be_planned(tmp_path):
    values, labels = noise_table(60, 150)
    store = make_store(tmp_path / "t.zarr", values, labels)
    with pytest.raises(UsageError, match="subspace-size"):
        Plan.of(Store.open(store), Request(options={"subspace_size": "151"}))


def test_the_values_are_json_ready():
    import json

    values = json.loads(json.dumps(plan_values(drafted())))
    assert values["iterations"] == int(values["advice"][0]["value"])
    assert sum(lease["mb"] for lease in values["leases"]) + values["free_mb"] == pytest.approx(1000)


def test_an_estimate_counts_columns_candidates_or_the_models_of_an_iteration():
    def seconds(n_columns, **options):
        return speed.seconds_of_trees(drafted(n_features=5000, **options), n_columns)

    assert seconds(200) == pytest.approx(2 * seconds(100))
    few = {"max_features": "2"}
    assert seconds(200, **few) == seconds(100, **few) < seconds(100)
    assert seconds(100, splitter="best") > seconds(100)
    judging = {"method": "rase", "judge": "none", "max_size": 6}
    one, ten = (seconds(50, candidates=n, **judging) for n in (40, 400))
    assert ten == pytest.approx(10 * one, rel=0.1)


@pytest.mark.parametrize(("iterations", "is_said"), [(10**9, True), (10, False)])
def test_a_run_that_will_take_long_says_so_as_it_begins(tmp_path, monkeypatch, iterations, is_said):
    store = make_store(tmp_path / "t.zarr", *noise_table(40, 30))
    monkeypatch.setattr("srs_ooc.cli.run._work", lambda *_: None)
    said = CliRunner().invoke(cli, ["run", str(store), "--iterations", str(iterations)]).output
    assert bool(re.search(r"about [\d.,]+ (h|days|years) by an ESTIMATE", said)) == is_said


# Power: by the t-test and chi-squared, against simulations.


@pytest.mark.parametrize(("n0", "n1", "p"), [(15, 15, 40), (8, 20, 25), (40, 40, 1000)])
@pytest.mark.parametrize(("power", "name"), [(0.5, "half"), (0.95, "most")])
def test_the_shift_is_found_as_often_as_said(n0, n1, p, power, name):
    rng, shift = np.random.default_rng(1), power_of((n0, n1), p, 0.1)[name]
    first, second = rng.standard_normal((4000, n0)), rng.standard_normal((4000, n1)) + shift
    share = np.mean(stats.ttest_ind(first, second, axis=1).pvalue <= 0.1 / p)
    assert share == pytest.approx(power, abs=0.06)


def share_found(columns, target, bar, contrast, categorical=None):
    log_p = contrasts_log_p(columns, 255, target, categorical=categorical)[:, contrast]
    return np.mean(log_p <= np.log(bar))


GROUPS = [(36, 36, 1000), (100, 100, 300), (200, 800, 10_000), (500, 500, 1000)]
SIXTH = 1 / 6


@pytest.mark.slow
@pytest.mark.parametrize(("n0", "n1", "p"), GROUPS)
def test_a_category_and_what_is_missing_are_found_as_often_as_said(n0, n1, p):
    rng, seen = np.random.default_rng(3000), power_of((n0, n1), p, 0.1)
    is_second = np.arange(n0 + n1) >= n0
    target, g = RankTarget.of_classes(is_second.astype(np.int32), 2), n1 / (n0 + n1)

    # half of the values are commoner in the second class
    off = np.sqrt(seen["category"]["explained"] * g * (1 - g))
    up = np.where(is_second, (g + off) / g, (1 - g - off) / (1 - g)) / 2
    half = rng.random((3000, n0 + n1)) < up
    codes = (2 * rng.integers(0, 6, half.shape) + half).astype(np.uint8)
    found = share_found(codes, target, 0.1 / p, Contrast.LOCATION, np.ones(3000, bool))
    assert found == pytest.approx(0.5, abs=0.05)

    share = np.where(is_second, 0.1 + seen["missing"]["difference"], 0.1)
    codes = rng.integers(0, 200, (3000, n0 + n1)).astype(np.uint8)
    codes[rng.random(codes.shape) < share] = 255
    found = share_found(codes, target, 0.1 / p * SIXTH, Contrast.ABSENCE)
    assert found == pytest.approx(0.5, abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(("sizes", "p"), [((50,) * 12, 1000), ((100,) * 3, 10_000)])
def test_one_of_several_classes_is_found_as_often_as_said(sizes, p):
    rng, seen = np.random.default_rng(3000), power_of(sizes, p, 0.1)
    classes = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    is_one, target = classes == 0, RankTarget.of_classes(classes, len(sizes))

    values = rng.standard_normal((3000, len(classes))) + seen["half"] * is_one
    codes = np.clip(100 + 25 * values, 0, 250).astype(np.uint8)
    found = share_found(codes, target, 0.1 / p, Contrast.LOCATION)
    assert found == pytest.approx(0.5, abs=0.1)

    share = 0.1 + seen["missing"]["difference"] * ~is_one
    codes[rng.random(codes.shape) < share] = 255
    found = share_found(codes, target, 0.1 / p * SIXTH, Contrast.ABSENCE)
    assert found == pytest.approx(0.5, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "p"), [(400, 300), (1000, 10_000)])
def test_of_numbers_they_are_found_as_often_as_said(n, p):
    rng, seen = np.random.default_rng(3000), power_of((n // 2, n // 2), p, 0.1, has_classes=False)
    explained, shift = seen["category"]["explained"], seen["missing"]["shift"]
    scores = np.linspace(-1, 1, 12) / np.std(np.linspace(-1, 1, 12))
    by_value, by_missing = [], []
    for _ in range(1500):
        noise, codes = rng.standard_normal(n), rng.integers(0, 12, n).astype(np.uint8)
        values = np.sqrt(explained) * scores[codes] + np.sqrt(1 - explained) * noise
        one, is_category = RankTarget.of_numbers(values), np.ones(1, bool)
        by_value.append(share_found(codes[None], one, 0.1 / p, Contrast.LOCATION, is_category))

        codes[rng.random(n) < 0.1] = 255
        one = RankTarget.of_numbers(noise + shift * (codes == 255))
        by_missing.append(share_found(codes[None], one, 0.1 / p * SIXTH, Contrast.ABSENCE))
    assert np.mean(by_value) == pytest.approx(0.5, abs=0.05)
    assert np.mean(by_missing) == pytest.approx(0.5, abs=0.05)


def test_what_no_category_and_no_missing_cells_can_show_is_not_said():
    assert power_of((29, 30), 10, 0.1)["category"]["explained"] is None  # fewer than 5 rows a value
    assert power_of((30, 30), 10, 0.1)["category"]["explained"] < 1
    assert power_of((30, 30), 10**9, 0.1)["category"]["explained"] is None
    assert power_of((20, 20), 10**9, 0.1)["missing"]["difference"] is None
    assert power_of((20, 20), 10**4, 0.1)["missing"]["difference"] < 0.9


def test_more_rows_and_fewer_features_show_smaller_shifts():
    shifts = [power_of(counts, p, 0.1)["half"] for counts, p in [
        ((36, 36), 850_000), ((36, 36), 1000), ((72, 72), 850_000), ((5000, 5000), 850_000)
    ]]  # fmt: skip
    assert shifts[0] > shifts[1] > shifts[3]
    assert shifts[0] > shifts[2] > shifts[3] > 0


@pytest.mark.slow
def test_power_says_that_it_takes_rows_of_groups_as_independent(tmp_path):
    rows, said = np.arange(60), "they come in groups"
    values = np.random.default_rng(0).normal(size=(60, 20))
    for name, groups in (("plain", None), ("grouped", rows // 2)):
        path = tmp_path / f"{name}.zarr"
        srs_ooc.ingest(values, path, target=rows // 2 % 2, groups=groups)
        plan = command("plan", path, "--memory-mb", 4000).stdout
        assert (said in plan) == (groups is not None)


def test_too_few_rows_show_nothing_and_say_why():
    seen = power_of((10, 10), 10**6, 0.1)
    assert seen["half"] is seen["most"] is None
    assert "10 rows against 10" in seen["reason"]
    assert "10.8 of 1,000,000" in seen["reason"]  # 10**6 * 2/C(20, 10)


def test_the_class_most_easily_distinguished_from_the_others_is_taken():
    assert power_of((10, 60, 30), 100, 0.1)["groups"] == (60, 40)
    two = power_of((40, 60), 600, 0.1)  # each of three classes has a third of half of the level
    assert power_of((10, 60, 30), 100, 0.1)["half"] == two["half"]
