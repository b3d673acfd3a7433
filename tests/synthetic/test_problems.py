"""What every problem keeps, also those of the benchmarks: one table, however it is read."""

import json
import subprocess
import sys
from collections import Counter
from itertools import chain

import more_problems
import numpy as np
import pytest
import theory_examples as examples
from examples import given, st
from more_problems import PROBLEMS, Clique, Friedman, Imbalance, Linear, Marginal, Shift, write
from refusals import refused
from theory_trees import degree, strongly_relevant_features
from tree_reference import grow_tree

from srs_ooc.base.errors import UsageError
from srs_ooc.store.manifest import read_manifest
from srs_ooc.store.store import Store
from srs_ooc.synthetic import problems
from srs_ooc.synthetic.blocks import Blocks, Noise
from srs_ooc.synthetic.cells import CELL_LIMIT, STEPS
from srs_ooc.synthetic.chain import Chain
from srs_ooc.synthetic.madelon import FLIPPED, Madelon
from srs_ooc.synthetic.problems import Problem, columns, describe, rows
from srs_ooc.synthetic.table_files import truth_path
from srs_ooc.trees.response import TreeLimits

SMALL = {
    "madelon": {"n_rows": 97, "n_features": 60, "n_relevant": 20, "seed": 3},
    "chain": {"n_rows": 96, "n_features": 60, "n_relevant": 3, "seed": 3, "exact": True},
    "clique": {"n_rows": 90, "n_features": 60, "n_relevant": 4, "seed": 3, "exact": False},
    "blocks": {
        "n_rows": 97, "n_features": 61, "n_relevant": 3, "seed": 3, "block_size": 7,
        "correlation": 0.8,
    },
    "linear": {"n_rows": 97, "n_features": 60, "n_relevant": 5, "seed": 3},
    "shift": {"n_rows": 97, "n_features": 60, "n_relevant": 5, "seed": 3, "size": 2.0},
    "imbalance": {
        "n_rows": 97, "n_features": 60, "n_relevant": 5, "seed": 3, "size": 2.0, "share": 0.2,
    },
    "friedman": {"n_rows": 97, "n_features": 60, "seed": 3},
    "noise": {"n_rows": 97, "n_features": 60, "seed": 3, "blocks": True},
    "marginal": {"n_rows": 128, "n_features": 60, "n_relevant": 4, "seed": 3, "exact": True},
}  # fmt: skip


def whole_of(problem: Problem) -> np.ndarray:
    return rows(problem, 0, problem.n_rows)


@pytest.fixture(params=sorted(PROBLEMS))
def problem(request: pytest.FixtureRequest) -> Problem:
    return PROBLEMS[request.param](**SMALL[request.param])


@pytest.fixture(scope="module", params=sorted(PROBLEMS))
def whole(request: pytest.FixtureRequest) -> tuple[Problem, np.ndarray]:
    problem = PROBLEMS[request.param](**SMALL[request.param])
    return problem, whole_of(problem)


@pytest.mark.few(4)
@given(data=st.data())
def test_any_block_equals_the_table(whole: tuple[Problem, np.ndarray], data: st.DataObject) -> None:
    problem, table = whole
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, problem.n_rows)] * 2)))
    places = data.draw(st.lists(st.integers(0, problem.n_features - 1), unique=True))
    positions = np.array(places, dtype=np.uint32)
    np.testing.assert_array_equal(rows(problem, start, stop), table[start:stop])
    np.testing.assert_array_equal(columns(problem, positions), table[:, positions].T)


def test_pieces_do_not_show(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = whole_of(problem)
    monkeypatch.setattr(problems, "PIECE_CELLS", 100)
    again = PROBLEMS[problem.name](**SMALL[problem.name])
    positions = np.arange(problem.n_features, dtype=np.uint32)
    np.testing.assert_array_equal(columns(again, positions), whole.T)
    np.testing.assert_array_equal(rows(again, 0, problem.n_rows), whole)


def test_values_are_four_decimals_and_bounded(problem: Problem) -> None:
    table = whole_of(problem)
    assert np.array_equal(table, np.round(table, 4))
    assert np.abs(table).max() <= CELL_LIMIT / STEPS


def test_the_target_is_two_classes_or_bounded_numbers(problem: Problem) -> None:
    target = problem.target(0, problem.n_rows)
    if target.dtype == np.uint8:
        assert len(np.unique(target)) >= 2
    else:
        assert target.dtype == np.float64
        assert np.array_equal(target, np.round(target, 4))
        assert -10 < target.min() < target.max() < 100
    np.testing.assert_array_equal(problem.target(10, 20), target[10:20])


def test_a_seed_is_a_table(problem: Problem) -> None:
    other = PROBLEMS[problem.name](**SMALL[problem.name] | {"seed": 4})
    assert (rows(problem, 0, 9) != rows(other, 0, 9)).mean() > 0.9


def test_the_truth_is_a_record_of_the_relevant_features(problem: Problem) -> None:
    record = json.loads(json.dumps(describe(problem)))
    assert record["problem"] == problem.name
    assert record["parameters"] == SMALL[problem.name]
    listed = [name for names in record["roles"].values() for name in names]
    assert sorted(listed) == sorted(record["relevant"])
    assert record["relevant"] == [f"f{position}" for position in problem.relevant]


@pytest.mark.parametrize(
    ("change", "option"),
    [({"n_rows": 1}, "--rows"), ({"n_features": 0}, "--features"), ({"seed": -1}, "--seed")],
)
@pytest.mark.parametrize("name", sorted(PROBLEMS))
def test_an_impossible_table_is_refused(name: str, change: dict[str, int], option: str) -> None:
    refused(UsageError, f"{option}: expected .* found", PROBLEMS[name], **SMALL[name] | change)


def test_a_quarter_is_informative_and_five_span_all_twenty() -> None:
    problem = Madelon(2000, 200, 20, seed=0)
    assert len(problem.relevant) == 20
    assert len(problem.roles()["informative"]) == 5
    spectrum = np.linalg.svd(columns(problem, np.array(problem.relevant, dtype=np.uint32)))[1]
    assert spectrum[5] < 1e-3 * spectrum[4]


STANDARD = [(Madelon(20_000, 100, n, seed=1), 0.05) for n in (1, 4, 20, 40, 80)]


@pytest.mark.parametrize(("problem", "off"), [*STANDARD, (Blocks(20_000, 20, 1, 1), 0.03)])
def test_scale_tells_nothing(problem: Problem, off: float) -> None:
    table = whole_of(problem)
    assert np.abs(table.mean(axis=0)).max() < off
    assert np.abs(table.std(axis=0) - 1).max() < off


def test_irrelevant_features_know_nothing_of_the_class() -> None:
    problem = Madelon(4000, 500, 20, seed=2)
    labels = problem.target(0, problem.n_rows)
    irrelevant = np.setdiff1d(np.arange(500), problem.relevant).astype(np.uint32)
    values = columns(problem, irrelevant)
    shift = values[:, labels == 0].mean(axis=1) - values[:, labels == 1].mean(axis=1)
    scores = shift * np.sqrt(problem.n_rows) / 2
    assert abs(scores.std() - 1) < 0.15
    assert np.abs(scores).max() < 5


def neighbour_accuracy(values: np.ndarray, labels: np.ndarray) -> float:
    """Leave-one-out accuracy of the nearest neighbour."""
    squares = (values**2).sum(axis=1)
    distances = squares[:, None] + squares - 2 * values @ values.T
    np.fill_diagonal(distances, np.inf)
    return float((labels[distances.argmin(axis=1)] == labels).mean())


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_together_the_informative_features_tell_the_class_alone_they_do_not(seed: int) -> None:
    problem = Madelon(1000, 50, 20, seed=seed)
    labels = problem.target(0, problem.n_rows)
    places = np.array(problem.roles()["informative"], dtype=np.uint32)
    values = columns(problem, places).T
    assert neighbour_accuracy(values, labels) > 0.8
    assert max(neighbour_accuracy(values[:, [j]], labels) for j in range(5)) < 0.7


@pytest.mark.parametrize("seed", range(8))
def test_every_informative_feature_matters_even_in_two_dimensions(seed: int) -> None:
    """Of the balanced labellings of a square, those that leave a coordinate out are not used."""
    problem = Madelon(4000, 10, 8, seed=seed)
    labels = problem.target(0, problem.n_rows)
    values = columns(problem, np.array(problem.roles()["informative"], dtype=np.uint32)).T
    exclusive_or = (values[:, 0] > 0) ^ (values[:, 1] > 0)
    agreement = float((exclusive_or == labels).mean())
    assert max(agreement, 1 - agreement) > 0.85


def test_classes_are_balanced_and_a_hundredth_is_flipped() -> None:
    problem = Madelon(32_000, 20, 20, seed=5)
    labels = problem.target(0, problem.n_rows)
    assert abs(labels.mean() - 0.5) < 0.005
    clean = problem._cluster & 1
    assert abs((labels != clean).mean() - FLIPPED) < 0.003


def test_noise_does_not_depend_on_the_width() -> None:
    narrow, wide = Madelon(50, 40, 1, seed=6), Madelon(50, 400, 1, seed=6)
    shared = np.setdiff1d(np.arange(40), [*narrow.relevant, *wide.relevant])
    places = shared.astype(np.uint32)
    np.testing.assert_array_equal(columns(narrow, places), columns(wide, places))


def test_relevant_places_are_spread() -> None:
    places = [place for seed in range(50) for place in Madelon(2, 1000, 20, seed).relevant]
    counts = np.bincount(np.array(places) // 250, minlength=4)
    assert np.abs(counts - 250).max() < 60


KINDS = {"chain": Chain, "clique": Clique, "marginal": Marginal}


def table(kind, r, repetitions, *, p=12, seed=5):
    n_rows = repetitions * kind.n_cells(r)
    problem = kind(n_rows, p, r, seed, True)
    return problem, rows(problem, 0, n_rows), problem.target(0, n_rows)


@pytest.mark.parametrize("r", [1, 2, 3, 4])
@pytest.mark.parametrize("name", KINDS)
def test_every_cell_is_in_proportion(name, r):
    problem, values, labels = table(KINDS[name], r, 3)
    relevant = values[:, problem.positions].astype(int)
    found = Counter((tuple(x), int(y)) for x, y in zip(relevant.tolist(), labels, strict=True))
    expected = getattr(examples, name)(r)
    shares = {(x, y): w * len(labels) / expected.total for x, y, w in expected.cells}
    assert dict(found) == shares


def test_the_degrees_are_as_said():
    assert [degree(examples.chain(4), i) for i in range(4)] == [0, 1, 2, 3]
    assert [degree(examples.clique(4), i) for i in range(4)] == [3, 3, 3, 3]
    assert [degree(examples.marginal(4), i) for i in range(4)] == [0, 0, 0, 0]
    assert strongly_relevant_features(examples.marginal(4)) == {0, 1, 2, 3}


@pytest.mark.parametrize("name", KINDS)
def test_irrelevant_features_together_are_independent_of_the_rest(name):
    """The rows are the product of cells and repetitions."""
    problem, values, labels = table(KINDS[name], 3, 4)
    irrelevant = np.delete(values, problem.positions, axis=1)
    assert all(len(np.unique(column)) > 1 for column in irrelevant.T)
    rest = [(*x, y) for x, y in zip(values[:, problem.positions].tolist(), labels, strict=True)]
    pairs = Counter(zip(rest, map(tuple, irrelevant.tolist()), strict=True))
    n_each = Counter(rest)
    assert len(pairs) == len(n_each) * 4
    assert all(4 * count == n_each[cell] for (cell, _), count in pairs.items())


@pytest.mark.few(1)
@pytest.mark.parametrize("name", KINDS)
def test_no_tree_gives_an_irrelevant_feature_any_importance(name):
    problem, values, labels = table(KINDS[name], 3, 8)
    codes = np.array([np.unique(column, return_inverse=True)[1] for column in values.T])
    features = np.arange(12, dtype=np.uint32)
    irrelevant = np.delete(features, problem.positions)
    total = np.zeros(12, dtype=np.int64)
    for key in range(12):
        total += grow_tree(codes, labels, 2, features, key, TreeLimits(3 + key)).importance
    assert total[irrelevant].tolist() == [0] * 9
    assert (total[problem.positions] > 0).all()


def test_one_repetition_leaves_irrelevant_features_constant():
    problem, values, _ = table(Clique, 3, 1)
    irrelevant = np.delete(values, problem.positions, axis=1)
    assert (irrelevant == irrelevant[0]).all()


def test_sampled_rows_have_the_law_too():
    problem = Marginal(20_000, 6, 2, 1, False)
    values, labels = rows(problem, 0, 20_000), problem.target(0, 20_000)
    shares = [np.mean(labels == values[:, place]) for place in problem.positions]
    assert shares == pytest.approx([0.75, 0.75], abs=0.02)
    irrelevant = np.delete(values, problem.positions, axis=1)
    assert np.abs(np.corrcoef(irrelevant.T, labels)[-1, :-1]).max() < 0.03


def test_the_correlation_decays_inside_a_block_and_ends_with_it() -> None:
    problem = Blocks(20_000, 30, 1, 0, block_size=10, correlation=0.9)
    found = np.corrcoef(whole_of(problem).T)
    apart = np.abs(np.subtract.outer(np.arange(30), np.arange(30)))
    same = np.equal.outer(np.arange(30) // 10, np.arange(30) // 10)
    np.testing.assert_allclose(found, np.where(same, 0.9**apart, 0.0), atol=0.04)


def test_the_truth_lists_causes_and_their_blocks() -> None:
    problem = Blocks(10, 95, 5, 2, block_size=20)
    assert [*chain(*problem.blocks_with_cause)] == list(problem.relevant)
    assert problem.blocks_with_cause[-1] == tuple(range(80, 95))
    for cause, block in zip(problem.roles()["cause"], problem.blocks_with_cause, strict=True):
        assert cause in block
    assert len(problem.roles()["proxy"]) == 95 - 5
    assert describe(problem)["blocks"][0] == [f"f{i}" for i in range(20)]


def test_the_class_is_told_by_blocks_with_a_cause_and_by_no_other() -> None:
    problem = Blocks(4000, 400, 4, 3)
    labels = problem.target(0, 4000).astype(float)
    found = np.abs(np.corrcoef(np.vstack([labels, rows(problem, 0, 4000).T]))[0, 1:])
    relevant = np.isin(np.arange(400), problem.relevant)
    assert found[list(problem.roles()["cause"])].min() > 0.25
    assert found[~relevant].max() < 0.08


def test_causes_lie_anywhere_in_a_block() -> None:
    places = np.concatenate([Blocks(2, 2000, 20, seed).positions for seed in range(20)]) % 20
    counts = np.bincount(places, minlength=20)
    assert np.abs(counts - 20).max() < 16


SHIFTS = [Shift(8000, 60, 20, 0, 0.7), Imbalance(8000, 60, 20, 0, 0.7, 0.2)]


@pytest.mark.parametrize("problem", SHIFTS, ids=lambda problem: problem.name)
def test_the_shifted_features_are_shifted_and_no_other(problem: Shift) -> None:
    labels = problem.target(0, problem.n_rows)
    table = whole_of(problem)
    difference = table[labels == 1].mean(axis=0) - table[labels == 0].mean(axis=0)
    relevant = np.isin(np.arange(60), problem.relevant)
    assert relevant.sum() == 20
    np.testing.assert_allclose(np.abs(difference[relevant]), 0.7, atol=0.12)
    assert np.abs(difference[~relevant]).max() < 0.12
    assert 3 < (difference[relevant] > 0).sum() < 17
    assert np.abs(table[labels == 0].std(axis=0) - 1).max() < 0.05
    assert np.abs(table[labels == 1].std(axis=0) - 1).max() < 0.08


@pytest.mark.parametrize(
    ("problem", "n_ones"),
    [(Shift(72, 5, 1, 0), 36), (Imbalance(1000, 5, 1, 0), 50), (Imbalance(3, 5, 1, 0), 1)],
    ids=["shift", "imbalance", "one row at least"],
)
def test_classes_have_their_shares_in_random_order(problem: Shift, n_ones: int) -> None:
    labels = problem.target(0, problem.n_rows)
    assert labels.sum() == n_ones
    assert labels.tolist() not in (sorted(labels), sorted(labels)[::-1]) or problem.n_rows < 9


def test_the_target_is_the_function_and_unit_noise() -> None:
    problem = Friedman(4000, 30, 0)
    x = rows(problem, 0, 4000)[:, problem.positions]
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2
    noise = problem.target(0, 4000) - (y + 10 * x[:, 3] + 5 * x[:, 4])
    assert abs(noise.mean()) < 0.06
    assert noise.std() == pytest.approx(1, abs=0.05)
    assert np.abs(np.corrcoef(np.vstack([noise, x.T]))[0, 1:]).max() < 0.06


def test_features_are_uniform_and_independent() -> None:
    table = rows(Friedman(4000, 30, 1), 0, 4000)
    assert 0 <= table.min() < table.max() <= 1
    assert np.abs(table.mean(axis=0) - 0.5).max() < 0.02
    assert np.abs(table.var(axis=0) - 1 / 12).max() < 0.005
    assert np.abs(np.corrcoef(table.T) - np.eye(30)).max() < 0.08


def test_the_truth_names_the_terms() -> None:
    assert Friedman(6, 8, 0).positions.tolist() == [7, 4, 5, 3, 0]  # once published, for good
    problem = Friedman(10, 30, 2)
    places = problem.positions.tolist()
    assert problem.roles() == {
        "interaction": tuple(sorted(places[:2])),
        "quadratic": (places[2],),
        "linear": tuple(sorted(places[3:])),
    }


def test_the_store_of_a_regression_holds_its_numbers(tmp_path) -> None:
    problem = Friedman(40, 9, seed=1)
    write(problem, tmp_path / "t.zarr")
    manifest = read_manifest(tmp_path / "t.zarr")
    store = Store(tmp_path / "t.zarr", manifest)
    assert manifest.task == "regression"
    assert list(store.names.texts()) == [b"f%d" % i for i in range(9)]
    np.testing.assert_array_equal(store.target(), problem.target(0, 40))
    assert json.loads(truth_path(tmp_path / "t.zarr").read_text()) == describe(problem)


@pytest.mark.slow
def test_a_script_writes_any_problem(tmp_path) -> None:
    script = [sys.executable, more_problems.__file__, "shift", tmp_path / "t.zarr"]
    options = ("--rows", 30, "--features", 12, "--relevant", 3, "--size", 2)
    subprocess.run([*map(str, [*script, *options])], check=True)
    truth = json.loads(truth_path(tmp_path / "t.zarr").read_text())
    assert truth == describe(Shift(30, 12, 3, 0, 2.0))


def test_the_tails_are_those_of_half_a_t_with_two_degrees() -> None:
    table = np.abs(rows(Linear(2000, 100, 1, 0), 0, 2000))
    for value in (0.5, 2.0, 5.0, 9.0):
        beyond = 1 - 2 * value / np.sqrt(2 + 4 * value**2)
        assert (table > value).mean() == pytest.approx(beyond, rel=0.12)
    assert 0 < (table == table.max()).mean() < 0.004  # cut at the largest cell


def test_the_class_is_told_by_the_relevant_features_and_by_no_other() -> None:
    problem = Linear(4000, 300, 5, 1)
    labels = problem.target(0, 4000)
    higher = rows(problem, 0, 4000) > 0
    agreement = np.abs((higher == labels[:, None]).mean(axis=0) - 0.5)
    relevant = np.isin(np.arange(300), problem.relevant)
    assert agreement[relevant].min() > 0.08
    assert agreement[~relevant].max() < 0.04
    assert abs(labels.mean() - 0.5) < 0.03


def test_directions_differ() -> None:
    problem = Linear(3000, 40, 20, 2)
    relevant = rows(problem, 0, 3000)[:, list(problem.relevant)]
    agreement = ((relevant > 0) == problem.target(0, 3000)[:, None]).mean(axis=0)
    assert 3 < (agreement > 0.5).sum() < 17


@pytest.mark.parametrize("blocks", [False, True])
def test_no_feature_tells_anything_of_the_class(blocks: bool) -> None:
    problem = Noise(3000, 200, 0, blocks)
    labels = problem.target(0, 3000)
    table = rows(problem, 0, 3000)
    scores = (table[labels == 1].mean(axis=0) - table[labels == 0].mean(axis=0)) * np.sqrt(750)
    assert np.abs(scores).max() < 4.5
    assert problem.relevant == ()
    assert labels.sum() == 1500


def test_blocks_hold_neighbours_that_go_together() -> None:
    table = rows(Noise(2000, 60, 1, blocks=True), 0, 2000)
    near = [np.corrcoef(table[:, j], table[:, j + 1])[0, 1] for j in range(59)]
    inside = [r for j, r in enumerate(near) if (j + 1) % 20]
    assert min(inside) > 0.85
    assert max(abs(near[19]), abs(near[39])) < 0.1
    plain = rows(Noise(2000, 60, 1), 0, 2000)
    assert np.abs(np.corrcoef(plain.T) - np.eye(60)).max() < 0.12


GOOD = {"n_rows": 10, "n_features": 50, "n_relevant": 2, "seed": 0}
EXACT, NAN = {"n_features": 9, "exact": True}, float("nan")


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        (Madelon, {"n_features": 10, "n_relevant": 0}, "--relevant: expected 1 to .* found 0"),
        (Madelon, {"n_features": 10, "n_relevant": 11}, "--relevant: expected 1 to .* found 11"),
        (Madelon, {"n_features": 5000, "n_relevant": 1001}, "--relevant: .* 1 to .* found 1001"),
        (Linear, {"n_features": 10, "n_relevant": 0}, "--relevant: expected 1 to 10 .* found 0"),
        (Linear, {"n_features": 10, "n_relevant": 11}, "--relevant: expected 1 to 10 .* found 11"),
        (Chain, EXACT | {"n_rows": 25, "n_relevant": 3}, "multiple of 24"),
        (Clique, EXACT | {"n_rows": 20, "n_relevant": 3}, "multiple of 8"),
        (Clique, {"n_rows": 8, "n_features": 2, "n_relevant": 3}, "expected 1 to 2"),
        (Marginal, {"n_rows": 8, "n_features": 90, "n_relevant": 17}, "expected 1 to 16"),
        (Marginal, {"n_rows": 8, "n_features": 90, "n_relevant": 0}, "expected 1 to 16"),
        (Blocks, {"n_relevant": 0}, "--relevant: expected 1 to 3, the number of blocks, found 0"),
        (Blocks, {"n_relevant": 4}, "found 4"),
        (Blocks, {"block_size": 0}, "--block-size: expected 1 to 1000, found 0"),
        (Blocks, {"correlation": 1.0}, "--correlation: expected a number inside -1..1, found 1"),
        (Blocks, {"correlation": NAN}, "--correlation"),
        (Shift, {"size": 0.0}, "--size: expected a number above 0 and at most 5, found 0"),
        (Shift, {"size": NAN}, "--size"),
        (Imbalance, {"size": 5.5}, "--size"),
        (Imbalance, {"share": 0.0}, "--share: expected a number above 0 and at most 0.5, found 0"),
        (Imbalance, {"share": 0.6}, "--share"),
        (Shift, {"n_relevant": 0}, "--relevant"),
    ],
)
def test_impossible_parameters_are_refused(kind, change, message) -> None:
    refused(UsageError, message, kind, **GOOD | change)


def test_fewer_than_five_features_of_friedman_are_refused() -> None:
    refused(UsageError, r"--features: expected 5 or more, .* found 4", Friedman, 10, 4, 0)


@pytest.mark.parametrize(
    ("problem", "roles", "target", "first", "places", "cells"),
    [
        (
            Madelon(6, 12, 9, seed=0),
            {"informative": (0, 4), "redundant": (1, 2, 3, 6, 8, 9, 11)},
            [1, 1, 0, 0, 1, 0],
            2,
            [0, 1, 4, 5, 7, 10, 11],
            [
                [-1.1628, -1.4181, 1.405, -0.0118, 1.0953, 0.1399, -1.5807],
                [1.2416, 0.9058, -0.8912, -0.1932, -2.1663, -1.6288, 1.4579],
            ],
        ),
        (
            Blocks(6, 9, 2, 0, block_size=3),
            {"cause": (0, 4), "proxy": (1, 2, 3, 5)},
            [1, 0, 1, 0, 1, 1],
            0,
            [5, 0],
            [[1.1861, 1.4475], [1.4415, -0.5129], [0.6482, -1.5123]],
        ),
        (
            Shift(6, 8, 2, 0),
            {"shifted": (1, 3)},
            [1, 1, 0, 0, 0, 1],
            0,
            range(4),
            [[-0.4417, 1.5616, -1.9375, 2.0471], [1.2074, 1.3249, 0.2938, 0.3204]],
        ),
        (
            Friedman(6, 8, 0),
            {"interaction": (4, 7), "quadratic": (5,), "linear": (0, 3)},
            [19.7111, 5.8717, 10.7786, 17.3491, 9.7181, 7.6268],
            0,
            range(4),
            [[0.3068, 0.5862, 0.1698, 0.6431], [0.0551, 0.2589, 0.9874, 0.4566]],
        ),
        (
            Linear(6, 8, 3, 0),
            {"linear": (1, 3, 7)},
            [0, 0, 1, 1, 0, 1],
            0,
            range(4),
            [[0.8544, -0.0784, -0.2625, 3.0956], [0.2117, -0.384, -0.7001, 0.9484]],
        ),
        (
            Noise(6, 25, 0, blocks=True),
            {},
            [0, 0, 0, 1, 1, 1],
            0,
            [0, 1, 19, 20],
            [[0.4995, 0.5059, 0.4018, -0.9014], [-1.3087, -1.0721, 0.3521, 1.0267]],
        ),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_fixed_vectors(problem, roles, target, first, places, cells) -> None:
    """A seed once published names the same table for good."""
    assert problem.roles() == roles
    assert problem.target(0, 6).tolist() == target
    assert rows(problem, first, first + len(cells))[:, list(places)].tolist() == cells
