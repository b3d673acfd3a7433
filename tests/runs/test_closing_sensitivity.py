"""`--closing sensitivity`: part of a run's identity, resumed to the bit, blind to decoys."""

from itertools import count

import numpy as np
import pytest
from command import error_of, json_of, srs_ooc
from stores import make_store, noise_table

import srs_ooc as package
from srs_ooc.runs.inputs import spec_of
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.run_verdict import VERDICT
from srs_ooc.runs.session import open_or_create, work_on
from srs_ooc.runs.settling import Request
from srs_ooc.runs.spec import Options
from srs_ooc.samplers.elimination import TREES
from srs_ooc.store.store import Store

ASKED = Options(judge="decoy", subspace_size="40", decoys=1, closing="sensitivity")


def run_to(store, run, watch=lambda _: True, threads=1, iterations=100):
    request = Request(ASKED, iterations=iterations, memory_mb=4000, threads=threads)
    ledger = open_or_create(Store.open(store), run, request)
    try:
        work_on(ledger, Store.open(store), request, watch)
    finally:
        ledger.close()


def arrays_of(run, name):
    ledger = Ledger(run, writable=False)
    try:
        return ledger.read_arrays(name)
    finally:
        ledger.close()


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    values, labels = noise_table(60, 80)
    return make_store(tmp_path_factory.mktemp("closing") / "t.zarr", values, labels)


@pytest.fixture(scope="module")
def whole(store, tmp_path_factory):
    run = tmp_path_factory.mktemp("closing") / "whole.run"
    run_to(store, run)
    return run


@pytest.mark.slow
def test_stopped_in_its_closing_stage_it_goes_on_to_the_same_bits(store, whole, tmp_path):
    run = tmp_path / "parts.run"
    for most in (150, 500, TREES + 10):
        steps = count()

        def watch(step, steps=steps, most=most):
            return "closing" not in step.stage or next(steps) < most

        run_to(store, run, watch, threads=1 + most % 3)
        assert arrays_of(run, VERDICT) is None
    run_to(store, run, threads=2)
    for name in ("closing", VERDICT):
        found, expected = arrays_of(run, name), arrays_of(whole, name)
        assert found.keys() == expected.keys()
        for key, array in expected.items():
            np.testing.assert_array_equal(found[key], array, err_msg=key)


@pytest.mark.slow
def test_it_is_part_of_a_run_s_identity_and_others_are_as_they_were(store, whole, tmp_path):
    message = error_of("run", store, "--out", whole, "--closing", "impurity")
    assert "closing sensitivity (asked for: impurity)" in message
    assert json_of("status", whole, "--json")["closing"] == "sensitivity"
    plain = tmp_path / "plain.run"
    srs_ooc("run", store, "--out", plain, "--iterations", 20, "--q", 30, "--decoys", 1)
    srs_ooc("run", store, "--out", plain, "--closing", "impurity")
    message = error_of("run", store, "--out", plain, "--closing", "sensitivity")
    assert "closing impurity (asked for: sensitivity)" in message
    assert "--judge decoy" in error_of(
        "run", store, "--out", tmp_path / "no.run", "--judge", "probe", "--closing", "sensitivity"
    )
    ledger = Ledger(plain, writable=False)
    assert "closing" not in spec_of(ledger).to_json()
    ledger.close()


@pytest.mark.parametrize(
    "how",
    [
        {"decoys": 1, "fdr": 0.5},
        pytest.param({"permutations": 9}, marks=pytest.mark.slow),
    ],
    ids=["decoys", "permutations"],
)
def test_what_matters_is_selected(tmp_path, how):
    values, labels = noise_table(150, 60, n_relevant=2)
    store = make_store(tmp_path / "t.zarr", values, labels)
    result = package.run(store, out=tmp_path / "a.run", iterations=60, closing="sensitivity", **how)
    assert {"f0", "f1"} <= set(result.selected)


@pytest.mark.slow
def test_features_of_noise_rank_as_their_decoys_do(tmp_path):
    """Of all tables of noise together, about half of the leading places are decoys'."""
    leading = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        values = rng.integers(0, 2 + 8 * (seed % 2), (40, 60))
        store = make_store(tmp_path / f"{seed}.zarr", values, np.arange(60) % 2)
        run = tmp_path / f"{seed}.run"
        run_to(store, run, iterations=40)
        leading += (arrays_of(run, "closing")["items"][:30] >= 40).tolist()
    assert 15 < np.sum(leading) < 45  # of 60; 30 on the mean
