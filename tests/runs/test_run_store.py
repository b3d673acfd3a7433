"""A run keeps to the store it was made on, whatever comes to lie at the store's path."""

import shutil

import numpy as np
import pytest
from command import error_of, json_of, srs_ooc
from in_process import work_on_run
from stores import make_store, noise_table

from srs_ooc.base.errors import RunError, StoreError, UsageError
from srs_ooc.ensemble import panels
from srs_ooc.ensemble.prediction import predict
from srs_ooc.results import exporting
from srs_ooc.results.exporting import export_columns
from srs_ooc.runs import run_verdict as conclusion
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.permutation_runs import BESTS
from srs_ooc.runs.run_verdict import VERDICT, verdict_on
from srs_ooc.runs.session import work_on
from srs_ooc.runs.settling import Request
from srs_ooc.runs.spec import Options
from srs_ooc.store.store import Store

N_ROWS, N_FEATURES, ITERATIONS = 120, 150, 300


def shifted_store(path, seed, n_features=N_FEATURES):
    labels = np.arange(N_ROWS) % 2
    values = np.random.default_rng(seed).standard_normal((n_features, N_ROWS))
    values[:12] += 2.5 * labels
    return make_store(path, values, labels)


def unrelated_store(path, n_features=N_FEATURES):
    values, labels = noise_table(N_ROWS, n_features)
    return make_store(path, np.roll(values, 3, axis=0), np.roll(labels, 7))


@pytest.fixture
def stores(tmp_path):
    """The store of a run, and another of the same shape."""
    return shifted_store(tmp_path / "t.zarr", 1), unrelated_store(tmp_path / "other.zarr")


class Swap:
    """Puts another store in a store's place, and back."""

    def __init__(self, store, other):
        self.store, self.other, self.away = store, other, store.with_name("away.zarr")

    def swap(self):
        self.store.rename(self.away)
        shutil.copytree(self.other, self.store)

    def back(self):
        shutil.rmtree(self.store)
        self.away.rename(self.store)


def request(**given):
    asked = Options(judge="decoy", subspace_size="40", seed=3, **given)
    return Request(asked, iterations=ITERATIONS, memory_mb=4000, threads=1)


def verdict_of(run):
    ledger = Ledger(run, writable=False)
    try:
        return ledger.read_arrays(VERDICT), ledger.read_arrays(BESTS)
    finally:
        ledger.close()


def at(stage, act):
    """A watch that acts once, at the first step of a stage."""
    done = []

    def watch(step):
        if step.stage == stage and not done:
            done.append(stage)
            act()
        return True

    return watch


def assert_same(run, other):
    for one, two in zip(verdict_of(run), verdict_of(other), strict=True):
        assert (one is None) == (two is None)
        for name in one or {}:
            np.testing.assert_array_equal(one[name], two[name], err_msg=name)


CASES = [
    ("decoys", "screening"),
    ("decoys", "screening, closing"),
    ("permutations", "screening, closing"),
    ("permutations", "permutation run 1 of 4"),
    ("permutations", "permutation run 2 of 4, closing"),
]


@pytest.mark.few(1)
@pytest.mark.parametrize(("kind", "stage"), CASES)
def test_a_store_replaced_while_a_run_works_gives_no_verdict(stores, tmp_path, kind, stage):
    store, other = stores
    asked = request(permutations=4, fdr="0.2") if kind == "permutations" else request()
    work_on_run(store, tmp_path / "whole.run", asked)
    swap = Swap(store, other)
    with pytest.raises(StoreError, match=r"expected the store with fingerprint .* was replaced"):
        work_on_run(store, tmp_path / "t.run", asked, at(stage, swap.swap))
    verdict, bests = verdict_of(tmp_path / "t.run")
    assert verdict is None
    assert bests is None or stage.startswith("permutation run 2")
    with pytest.raises(RunError, match="another store"):
        work_on_run(store, tmp_path / "t.run", asked)
    swap.back()
    work_on_run(store, tmp_path / "t.run", asked)
    assert_same(tmp_path / "t.run", tmp_path / "whole.run")
    assert np.count_nonzero(verdict_of(tmp_path / "t.run")[0]["is_selected"]) >= 3


@pytest.mark.slow
def test_a_store_replaced_during_the_survey_gives_no_verdict(stores, tmp_path, monkeypatch):
    store, other = stores
    swap = Swap(store, other)

    def swapped(*arguments):
        swap.swap()
        return verdict_on(*arguments)

    monkeypatch.setattr(conclusion, "verdict_on", swapped)
    with pytest.raises(StoreError, match="was replaced"):
        work_on_run(store, tmp_path / "t.run", request())
    assert verdict_of(tmp_path / "t.run")[0] is None


def test_a_store_written_over_in_place_gives_no_verdict(stores, tmp_path):
    """The files that are open are the same ones: what is in them is not."""
    store, other = stores
    over = at("screening, closing", lambda: shutil.copytree(other, store, dirs_exist_ok=True))
    with pytest.raises(StoreError, match="was replaced"):
        work_on_run(store, tmp_path / "t.run", request(), over)
    assert verdict_of(tmp_path / "t.run")[0] is None


@pytest.mark.slow
def test_a_wrong_store_is_not_noted_as_the_place_of_a_run(stores, tmp_path):
    store, other = stores
    run = tmp_path / "t.run"
    work_on_run(store, run, request(), at("screening", lambda: None))
    ledger = Ledger(run, writable=True)
    before = ledger.meta("store")
    with pytest.raises(RunError, match="another store"):
        work_on(ledger, Store.open(other), Request(iterations=ITERATIONS + 50))
    assert ledger.meta("store") == before
    assert ledger.meta("iterations") == ITERATIONS
    ledger.close()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    store = shifted_store(folder / "t.zarr", 1)
    asked = ("--judge", "probe", "--iterations", 200, "--q", 40, "--save-trees")
    srs_ooc("run", store, "--out", folder / "t.run", *asked)
    return store, folder / "t.run"


@pytest.fixture
def copied(finished, tmp_path):
    """The store and the run of a finished run, to be done anything to."""
    store, run = tmp_path / "t.zarr", tmp_path / "t.run"
    shutil.copytree(finished[0], store)
    shutil.copytree(finished[1], run)
    (run / "splits.bin").unlink(missing_ok=True)
    ledger = Ledger(run, writable=True)
    ledger.set_meta("store", [str(store), "../t.zarr"])
    ledger.close()
    return store, run


@pytest.mark.slow
@pytest.mark.parametrize("n_features", [N_FEATURES, N_FEATURES + 30])
def test_no_names_of_another_store_stand_beside_a_runs_numbers(copied, tmp_path, n_features):
    store, run = copied
    other = unrelated_store(tmp_path / "other.zarr", n_features)
    commands = [
        ("features", run, "--store", other),
        ("export", other, run, tmp_path / "o.csv", "--top", 3),
        ("predict", run, store, tmp_path / "o.csv", "--store", other),
    ]
    for command in commands:
        assert "run on another store" in error_of(*command)
    Swap(store, other).swap()
    commands = [
        ("features", run),
        ("features", run, "--json"),
        ("resume", run),
        ("run", store, "--out", run),
        ("predict", run, other, tmp_path / "o.csv"),
    ]
    for command in commands:
        message = error_of(*command)
        assert "run on another store" in message
        assert "damaged" not in message


@pytest.mark.slow
def test_features_are_read_from_the_store_at_its_new_place(copied, tmp_path):
    store, run = copied
    before = json_of("features", run, "--json")
    store.rename(tmp_path / "moved.zarr")
    assert "no longer at" in error_of("features", run)
    assert json_of("features", run, "--json", "--store", tmp_path / "moved.zarr") == before
    srs_ooc("run", tmp_path / "moved.zarr", "--out", run)  # notes the place, finished or not
    assert json_of("features", run, "--json") == before


@pytest.mark.slow
def test_the_store_beside_a_run_is_found_though_another_lies_at_the_first_place(copied, tmp_path):
    store, run = copied
    before = json_of("features", run, "--json")
    away = tmp_path / "away"
    away.mkdir()
    store.rename(away / "t.zarr")
    run.rename(away / "t.run")
    unrelated_store(store, N_FEATURES + 30)
    assert json_of("features", away / "t.run", "--json") == before


@pytest.mark.parametrize("name", ["o.csv", "o.zarr"])
def test_no_columns_are_exported_of_a_store_replaced_meanwhile(stores, tmp_path, monkeypatch, name):
    store, other = stores
    gather = exporting.gather_columns

    def gather_and_swap(*arguments):
        Swap(store, other).swap()
        gather(*arguments)

    for module in (exporting, exporting):
        monkeypatch.setattr(module, "gather_columns", gather_and_swap)
    with pytest.raises((StoreError, UsageError), match="was replaced"):
        export_columns(Store.open(store), np.arange(3), tmp_path / name)
    assert not list(tmp_path.glob(f"*{name}*"))


@pytest.mark.few(1)
@pytest.mark.parametrize("is_training", [True, False])
def test_nothing_is_predicted_of_a_store_replaced_meanwhile(
    copied, tmp_path, monkeypatch, is_training
):
    store, run = copied
    data = store if is_training else shifted_store(tmp_path / "new.zarr", 2)
    other = shifted_store(tmp_path / "other.zarr", 5)
    srs_ooc("predict", run, data, tmp_path / "first.csv")
    facts = panels.row_facts

    def swap_and_facts(*arguments):
        Swap(data, other).swap()
        return facts(*arguments)

    monkeypatch.setattr(panels, "row_facts", swap_and_facts)
    with pytest.raises(StoreError, match=r"was replaced|damaged"):
        predict(run, data, tmp_path / "o.csv", memory_nbytes=10**10)
    assert not list(tmp_path.glob("*o.csv*"))
