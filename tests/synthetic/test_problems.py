"""What every problem of the registry keeps: one table, however and in whatever order it is read."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from srs_ooc.base.errors import UsageError
from srs_ooc.synthetic import problem_tables as problems
from srs_ooc.synthetic.problem_tables import CELL_LIMIT, STEPS, Problem, columns, describe, rows
from srs_ooc.synthetic.problems import PROBLEMS

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


@pytest.fixture(params=sorted(PROBLEMS))
def problem(request: pytest.FixtureRequest) -> Problem:
    return PROBLEMS[request.param](**SMALL[request.param])


@pytest.fixture(scope="module", params=sorted(PROBLEMS))
def whole(request: pytest.FixtureRequest) -> tuple[Problem, np.ndarray]:
    problem = PROBLEMS[request.param](**SMALL[request.param])
    return problem, rows(problem, 0, problem.n_rows)


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
    whole = rows(problem, 0, problem.n_rows)
    monkeypatch.setattr(problems, "PIECE_CELLS", 100)
    again = PROBLEMS[problem.name](**SMALL[problem.name])
    positions = np.arange(problem.n_features, dtype=np.uint32)
    np.testing.assert_array_equal(columns(again, positions), whole.T)
    np.testing.assert_array_equal(rows(again, 0, problem.n_rows), whole)


def test_values_are_four_decimals_and_bounded(problem: Problem) -> None:
    table = rows(problem, 0, problem.n_rows)
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
    assert record["relevant"] == [f"f{position}" for position in problem.truth().relevant]


@pytest.mark.parametrize(
    ("change", "option"),
    [({"n_rows": 1}, "--rows"), ({"n_features": 0}, "--features"), ({"seed": -1}, "--seed")],
)
@pytest.mark.parametrize("name", sorted(PROBLEMS))
def test_an_impossible_table_is_refused(name: str, change: dict[str, int], option: str) -> None:
    with pytest.raises(UsageError, match=f"{option}: expected .* found"):
        PROBLEMS[name](**SMALL[name] | change)
