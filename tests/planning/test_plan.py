"""Plans: memory by the run's own formulas, T from the table alone, and what is advised."""

import re
from dataclasses import replace

import pytest
from click.testing import CliRunner
from stores import make_store, noise_table

import srs_ooc
from srs_ooc.base.budget import PROCESS_NBYTES
from srs_ooc.base.errors import BudgetError, UsageError
from srs_ooc.base.text import MB
from srs_ooc.cli import cli
from srs_ooc.planning import speed
from srs_ooc.planning.iterations import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    recommended_iterations,
    subject_of_numbers,
)
from srs_ooc.planning.paper_theory import Setting, expected_time
from srs_ooc.planning.run_plan import degree_times, make_plan, plan_values
from srs_ooc.planning.speed import measured_speed, memory_plan
from srs_ooc.runs.session import RunDraft
from srs_ooc.runs.settling import Request
from srs_ooc.runs.spec import Options, fixed_nbytes, work_nbytes
from srs_ooc.store.store import Store


@pytest.fixture(autouse=True)
def short_probe(monkeypatch):
    monkeypatch.setattr(speed, "PROBE_SECONDS", 0.01)


def subject(n_rows=200, n_features=20_000, memory_mb=1000, threads=1, **options):
    asked = Options(**{"judge": "probe"} | options)
    return subject_of_numbers(n_rows, n_features, 2, asked, memory_mb * MB, threads)


def test_every_megabyte_is_accounted_for_by_the_runs_own_formulas():
    planned = subject(memory_mb=2000, threads=2)
    memory = memory_plan(planned)
    assert memory.needed_nbytes + memory.free_nbytes == 2000 * MB
    work = work_nbytes(planned.shape, planned.spec.subspace_size + 1)
    leases = [lease.n_bytes for lease in memory.leases]
    fixed = [n for _, n in fixed_nbytes(planned.spec, planned.shape)]
    assert leases == [PROCESS_NBYTES, *fixed, work, work, planned.codes_nbytes]
    assert (memory.n_workers, memory.mapped) == (2, True)


@pytest.mark.parametrize(
    ("options", "n_items", "n_lanes", "n_draws"),
    [
        ({}, 160_000, 2, 30),
        ({"decoys": 1}, 40_000, 2, 100),
        ({"decoys": 3}, 80_000, 2, 60),
        ({"permutations": 9}, 20_000, 2, 100),
        ({"keep": 0}, 160_000, 1, 30),
        ({"alpha": "0"}, 160_000, 1, 30),
    ],
)
def test_a_run_with_a_verdict_draws_every_item_often_in_each_lane(
    options, n_items, n_lanes, n_draws
):
    planned = subject(judge="decoy", **options)
    iterations, reason = recommended_iterations(planned)
    assert planned.n_items == n_items
    assert iterations == max(1000, n_lanes * n_draws * n_items // planned.spec.subspace_size)
    assert "closing stage" in reason
    memory = memory_plan(planned)
    assert sum(lease.n_bytes for lease in memory.leases) + memory.free_nbytes == 1000 * MB


def test_the_largest_subspace_just_fits():
    q = subject(n_rows=20_000, memory_mb=400, judge="positive").largest_subspace
    assert 64 < q < 20_000
    asked = {"n_rows": 20_000, "memory_mb": 400, "judge": "positive"}
    assert subject(**asked, subspace_size="max").spec.subspace_size == q
    planned = subject(**asked)
    whole = fixed_nbytes(planned.spec, planned.shape)
    room = 400 * MB - PROCESS_NBYTES - sum(n for _, n in whole)
    assert work_nbytes(subject(**asked).shape, q + 1) <= room
    assert work_nbytes(subject(**asked).shape, q + 2) > room


def test_a_cap_too_small_is_refused_as_by_the_run():
    with pytest.raises(BudgetError, match="smallest cap that works"):
        make_plan(subject(n_rows=100_000, memory_mb=65), Options())


def test_t_follows_the_table_and_not_the_machine():
    base = subject(subspace_size="500")
    t = recommended_iterations(base)[0]
    for other in (
        replace(base, threads=8),
        replace(base, cap_nbytes=10 * base.cap_nbytes),
        replace(base, class_counts=(1, 199)),
    ):
        assert recommended_iterations(other)[0] == t


@pytest.mark.parametrize(
    ("options", "expected", "why"),
    [
        ({"subspace_size": "20000"}, MIN_ITERATIONS, "too few draws"),
        ({"subspace_size": "1000"}, 1380, "even when R is full"),
        ({"subspace_size": "100"}, MAX_ITERATIONS, "takes 14,107"),
        ({"subspace_size": "1000", "alpha": "1"}, MAX_ITERATIONS, "no place"),
    ],
)
def test_t_is_enough_draws_within_its_bounds(options, expected, why):
    found, reason = recommended_iterations(subject(**options))
    assert found == pytest.approx(expected, rel=0.01)
    assert why in reason


def test_a_stricter_probe_takes_more_iterations():
    few, many = (recommended_iterations(subject(probe_min_draws=n))[0] for n in (10, 60))
    assert few < many


def test_degrees_are_those_of_the_theory():
    planned = subject(subspace_size="500", alpha="0.3")
    for time in degree_times(planned):
        for alpha, found in (("0", time.rs), ("0.3", time.srs)):
            setting = Setting.of("chain", 20_000, 500, time.degree + 1, alpha)
            assert found == expected_time(setting).value
    assert [time.srs for time in degree_times(subject(subspace_size="2"))][2:] == [None, None]


def test_advice_gives_a_reason_for_everything():
    plan = make_plan(subject(alpha="0", judge="positive"), Options(alpha="0", judge="positive"))
    advice = {item.name: item for item in plan.advice}
    assert list(advice) == [
        "iterations", "alpha", "max_features", "trees_per_subspace", "draw_block", "judge",
    ]  # fmt: skip
    assert all(len(item.reason) > 20 for item in plan.advice)
    assert (advice["alpha"].value, advice["alpha"].planned) == ("0.5", "0")
    assert (advice["judge"].value, advice["judge"].planned) == ("decoy", "positive")
    whole = make_plan(subject(n_features=90), Options())
    assert {item.name: item.value for item in whole.advice}["alpha"] == "0"


@pytest.mark.slow
def test_blocks_are_advised_where_the_store_does_not_fit_the_cap():
    def planned(**options):
        made = make_plan(
            subject(n_features=2_000_000, memory_mb=250, **options), Options(**options)
        )
        return made, {item.name: item for item in made.advice}

    assert planned(subspace_size="2500")[0].subject.spec.draw_block == 64
    single, advice = planned(subspace_size="2500", draw_block=1)
    assert not single.memory.mapped
    assert (advice["draw_block"].value, advice["draw_block"].planned) == ("64", "1")
    blocks, advice = planned(subspace_size="2500", draw_block=64, trees_per_subspace=2)
    assert (advice["draw_block"].value, advice["draw_block"].planned) == ("64", "64")
    assert advice["trees_per_subspace"].planned == "2"
    assert (single.n_reads, blocks.n_reads) == (2500, 40)
    assert blocks.cold_seconds < single.cold_seconds / 10
    assert single.draws.every == blocks.draws.every
    assert blocks.draws.every_least is None
    assert planned(subspace_size="1000")[1]["draw_block"].value == "16"  # 32 blocks at least
    assert planned(subspace_size="20")[1]["draw_block"].value == "1"
    fitting = {item.name: item for item in make_plan(subject(), Options()).advice}
    assert fitting["draw_block"].value == "1"
    # Columns of 200 kB are long reads by themselves.
    tall = make_plan(subject(200_000, 20_000, memory_mb=2000, subspace_size="20"), Options())
    assert {item.name: item.value for item in tall.advice}["draw_block"] == "1"


def test_twice_the_memory_is_planned_as_a_run_with_it_would_be():
    options = Options(judge="probe")
    plan = make_plan(subject(n_rows=20_000, memory_mb=80), options)
    found = {other.what: other for other in plan.alternatives}
    assert found["twice the memory"].subspace_size > found["as planned"].subspace_size
    twice = subject(n_rows=20_000, memory_mb=160)
    assert found["twice the memory"].subspace_size == twice.spec.subspace_size
    assert found["twice the memory"].iterations == recommended_iterations(twice)[0]
    assert found["twice the memory, --q max"].memory_mb == 160


@pytest.mark.slow
def test_a_store_is_measured_and_numbers_are_estimated(tmp_path):
    values, labels = noise_table(60, 150)
    store = make_store(tmp_path / "t.zarr", values, labels)
    before = sorted(tmp_path.rglob("*"))
    planned = RunDraft.of(Store.open(store), Request(Options(subspace_size="20"), threads=2))
    plan = make_plan(planned, Options(subspace_size="20"))
    assert sorted(tmp_path.rglob("*")) == before
    assert plan.speed.measured
    assert planned.class_counts == (30, 30)
    assert not make_plan(subject(), Options()).speed.measured
    for one in (plan, make_plan(subject(), Options())):
        assert one.speed.seconds > 0
        assert one.total_seconds == one.iterations * one.speed.seconds


def test_a_regression_has_no_classes_on_some_of_its_rows_either(tmp_path):
    values, labels = noise_table(60, 150)
    srs_ooc.ingest(values.T, tmp_path / "t.zarr", target=values[0] + labels, task="regression")
    rows = tmp_path / "rows.txt"
    rows.write_text("\n".join(map(str, range(1, 41))))
    planned = RunDraft.of(Store.open(tmp_path / "t.zarr"), Request(rows_file=rows))
    assert planned.shape.n_rows == 40
    assert planned.class_counts == ()


def test_slow_iterations_are_not_waited_for_long(tmp_path, monkeypatch):
    """With no time to spend, as many iterations as there are subspaces ahead are timed."""
    values, labels = noise_table(60, 150)
    store = make_store(tmp_path / "t.zarr", values, labels)
    monkeypatch.setattr(speed, "PROBE_SECONDS", 0.0)
    planned = RunDraft.of(Store.open(store), Request(threads=2))
    assert measured_speed(planned).how.startswith("3 real iterations")


def test_a_store_that_cannot_be_run_cannot_be_planned(tmp_path):
    values, labels = noise_table(60, 150)
    store = make_store(tmp_path / "t.zarr", values, labels)
    with pytest.raises(UsageError, match="subspace-size"):
        RunDraft.of(Store.open(store), Request(Options(subspace_size="151")))


def test_the_values_are_json_ready():
    import json

    values = json.loads(json.dumps(plan_values(make_plan(subject(), Options()))))
    assert values["iterations"] == int(values["advice"][0]["value"])
    assert sum(lease["mb"] for lease in values["leases"]) + values["free_mb"] == pytest.approx(1000)


def test_an_iteration_that_judges_candidates_is_timed_by_them(monkeypatch):
    judged = []

    def second(work, _):
        judged.append(work(0))
        return 1.0

    monkeypatch.setattr(speed, "_mean_seconds", second)
    planned = subject(n_features=500, method="rase", judge="none", candidates=40, max_size=6)
    found = speed.estimated_speed(planned, memory_plan(planned))
    assert len(judged[0].losses) == speed.JUDGED_CANDIDATES
    n_models = planned.spec.sampler.models_each(500, planned.spec.subspace_size)
    of_all = n_models / (speed.JUDGED_CANDIDATES * speed.JUDGED_SPLITS)
    assert found.seconds == pytest.approx(of_all, rel=0.05)
    assert "an iteration, the most there can be" in found.how


@pytest.mark.parametrize(("iterations", "is_said"), [(10**9, True), (10, False)])
def test_a_run_that_will_take_long_says_so_as_it_begins(tmp_path, monkeypatch, iterations, is_said):
    store = make_store(tmp_path / "t.zarr", *noise_table(40, 30))
    monkeypatch.setattr("srs_ooc.cli.run._work", lambda *_: None)
    said = CliRunner().invoke(cli, ["run", str(store), "--iterations", str(iterations)]).output
    assert bool(re.search(r"about [\d.,]+ (h|days|years) by a quick ESTIMATE", said)) == is_said
