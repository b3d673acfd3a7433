import pytest

from srs_ooc.base.errors import UsageError
from srs_ooc.planning.paper_theory import SCENARIOS, Setting, round_cost


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("alpha", ["0", "0.05", "1"])
def test_rounds_of_one_cost_nothing(scenario, alpha):
    cost = round_cost(Setting(scenario, 5000, 100, 5, alpha), 1)
    assert cost["n_lost"] == pytest.approx(0, abs=1e-9 * cost["n_iterations"])
    assert cost["speedup"] == pytest.approx(1)


def test_larger_rounds_lose_iterations_and_win_time_on_a_chain():
    sizes = (1, 4, 16, 64)
    costs = [round_cost(Setting("chain", 5000, 100, 5, 1), size) for size in sizes]
    assert [c["n_lost"] for c in costs] == sorted(c["n_lost"] for c in costs)
    assert [c["speedup"] for c in costs] == sorted(c["speedup"] for c in costs)
    assert all(c["speedup"] < size for c, size in zip(costs[1:], sizes[1:], strict=True))


def test_late_accumulation_spares_marginal_features_iterations():
    # Nearly all of q is held at the end: a round drawn before they were found explores more.
    cost = round_cost(Setting("marginal", 1000, 20, 20, 1), 64)
    assert cost["n_lost"] < 0


def test_random_subspace_loses_less_than_one_round():
    for scenario in SCENARIOS:
        cost = round_cost(Setting(scenario, 500, 50, 3), 32)
        assert 0 <= cost["n_lost"] < 32


def test_wrong_sizes_are_refused():
    with pytest.raises(UsageError, match="round size"):
        round_cost(Setting("chain", 100, 10, 2), 0)
    with pytest.raises(UsageError, match="1,000 relevant"):
        round_cost(Setting("marginal", 10**5, 10**4, 2000), 2)


def test_never_found_is_none():
    assert round_cost(Setting("clique", 100, 5, 6), 4) is None
    assert round_cost(Setting("clique", 10**9, 100, 90), 4) is None
