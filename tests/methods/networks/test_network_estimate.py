"""What a network says that it will take, by a few of its own targets."""

import pytest
from genes import METHODS, N_GENES
from hypothesis import given
from hypothesis import strategies as st

from srs_ooc.methods.networks import network_run as planning
from srs_ooc.methods.networks.network_run import NetworkRequest, settle_network, work_on_network
from srs_ooc.methods.networks.weighing import FEW_TREES, of_all
from srs_ooc.store.store import Store


def test_every_method_is_among_those_estimated_here():
    assert {settle_network(options).method for options in METHODS.values()} == {*planning.METHODS}


@pytest.mark.parametrize("name", METHODS)
def test_a_network_says_what_it_will_take_before_it_begins(folder, tmp_path, name):
    params = settle_network(METHODS[name])
    request = NetworkRequest(tmp_path / "edges.csv", params)
    notes, begun = [], []

    def watch(step):
        begun.append(len(notes))
        return True

    work_on_network(Store.open(folder / "t.zarr"), request, watch, notes.append, 0.01)
    assert f"for {N_GENES} targets on" in notes[-1]
    assert "an ESTIMATE (measured: " in notes[-1]
    assert begun[0] == len(notes)


@given(
    st.floats(0, 1),
    st.floats(1e-6, 1),
    st.integers(FEW_TREES, 1000),
    st.integers(1, 10**6),
)
def test_a_cost_of_so_much_and_so_much_a_tree_is_extrapolated_exactly(own, tree, n_trees, more):
    most = n_trees + more
    found = of_all(own + tree, own + n_trees * tree, n_trees, most)
    assert found == pytest.approx(own + most * tree)


@given(own=st.floats(0, 1), tree=st.floats(1e-6, 1), n_trees=st.integers(1, FEW_TREES - 1))
def test_few_trees_never_promise_less_than_all_take(own, tree, n_trees):
    found = of_all(own + tree, own + n_trees * tree, n_trees, 1000)
    assert found >= (own + 1000 * tree) * (1 - 1e-9)
