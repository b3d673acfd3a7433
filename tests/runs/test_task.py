"""What a run learns from is read once; a permuted target changes nothing else."""

import contextlib
import math

import numpy as np
import pytest
from command import error_of, json_of
from command import srs_ooc as command
from hypothesis import given
from hypothesis import strategies as st
from stores import make_store, noise_table

import srs_ooc
from srs_ooc.base.errors import UsageError
from srs_ooc.base.text import MB
from srs_ooc.runs.inputs import Inputs
from srs_ooc.runs.run_memory import TrainingShape
from srs_ooc.runs.session import open_or_create, work_on
from srs_ooc.runs.settling import Request, settle
from srs_ooc.runs.spec import Options
from srs_ooc.runs.task import Task, training_response
from srs_ooc.store.store import Store

N_ROWS, N_FEATURES = 60, 20
ROWS = np.arange(0, N_ROWS, 2, dtype=np.int32)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("task") / "t.zarr"
    values, labels = noise_table(N_ROWS, N_FEATURES)
    rows = np.arange(N_ROWS)
    srs_ooc.ingest(
        values.T, path, target=labels, weights=1.0 + rows % 7, strata=rows // 30, groups=rows // 2
    )
    return Store.open(path)


@pytest.mark.parametrize("rows", [None, ROWS])
def test_it_holds_the_training_rows(store, rows):
    task = Task.of(store, Inputs(None, rows), exchanges=True)
    kept = slice(None) if rows is None else rows
    assert task.n_rows == len(np.arange(N_ROWS)[kept])
    for name in ("target", "weights", "strata", "groups"):
        np.testing.assert_array_equal(getattr(task, name), getattr(store, name)()[kept])


@pytest.mark.parametrize("rows", [None, ROWS])
def test_no_array_is_a_map_of_the_store(store, rows):
    """A map of a file that is cut short kills the process."""
    task = Task.of(store, Inputs(None, rows), exchanges=True)
    for array in (task.target, task.weights, task.strata, task.groups):
        assert array.flags.owndata


def test_strata_and_groups_are_read_only_where_rows_trade_places(store):
    task = Task.of(store, Inputs())
    assert task.strata is task.groups is None
    assert task.weights is not None


@given(seed=st.integers(0, 2**32 - 1), balanced=st.booleans())
def test_a_permuted_target_moves_labels_and_leaves_weights(store, seed, balanced):
    order = np.random.default_rng(seed).permutation(N_ROWS).astype(np.int32)
    task = Task.of(store, Inputs(), "none", exchanges=True)
    permuted = task.permuted(order)
    before, after = training_response(task), training_response(permuted)
    np.testing.assert_array_equal(after.labels, before.labels[order])
    np.testing.assert_array_equal(after.channels, before.channels)
    assert permuted.strata is task.strata
    assert permuted.groups is task.groups
    if balanced:  # weights of classes go with the labels
        plain = Task(task.inputs, N_FEATURES, task.classes, "balanced", task.target)
        np.testing.assert_array_equal(
            training_response(plain.permuted(order)).channels,
            training_response(plain).channels[:, order],
        )


def test_items_left_out_are_left_out_with_their_decoys(store):
    task = Task.of(store, Inputs(np.array([3, 5], np.uint32)))
    left = np.setdiff1d(np.arange(N_FEATURES), [3, 5])
    expected = np.concatenate([left, left + N_FEATURES, left + 2 * N_FEATURES])
    np.testing.assert_array_equal(task.candidates(2), expected)
    assert Task.of(store, Inputs()).candidates(2) is None


def test_strata_that_hold_the_target_are_refused(tmp_path):
    values, labels = noise_table(N_ROWS, N_FEATURES)
    srs_ooc.ingest(values.T, tmp_path / "t.zarr", target=labels, strata=labels)
    task = Task.of(Store.open(tmp_path / "t.zarr"), Inputs(), exchanges=True)
    with pytest.raises(UsageError, match="all have the same one"):
        task.check_exchangeable(spec_with_decoys())


def spec_with_decoys():
    shape = TrainingShape(N_ROWS, N_FEATURES, N_FEATURES, 2, 1)
    return settle(Options(judge="decoy"), shape, "", 4000 * MB)


@pytest.mark.slow
def test_the_target_is_read_once_for_all_stages_of_a_run(tmp_path, monkeypatch):
    """Screen, closing stage, nine permutation runs and the tests of each."""
    values, labels = noise_table(N_ROWS, N_FEATURES)
    store = Store.open(make_store(tmp_path / "t.zarr", values, labels))
    options = Options(judge="decoy", permutations=9, subspace_size="10", seed=3)
    request = Request(options, iterations=20, memory_mb=4000, threads=1)
    with contextlib.closing(open_or_create(store, tmp_path / "t.run", request)) as ledger:
        reads, read = [], Store.target

        def counted(self):
            reads.append(self)
            return read(self)

        monkeypatch.setattr(Store, "target", counted)
        work_on(ledger, store, request)
        assert ledger.read_arrays("verdict") is not None
    assert len(reads) == 1


# Weights of classes and of rows: what is refused, and how.


@pytest.fixture(scope="module")
def weighted(tmp_path_factory):
    """Two classes, and weights of rows that leave little room for others."""
    folder = tmp_path_factory.mktemp("responses")
    rows = [f"{i % 7},{i % 3},{'1e300' if i % 2 else '1e-300'},{'ab'[i % 2]}" for i in range(40)]
    (folder / "t.csv").write_text("x,y,w,group\n" + "\n".join(rows) + "\n")
    command("ingest", "t.csv", "t.zarr", "--weights", "w", cwd=folder)
    return folder / "t.zarr"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("weights", "parts"),
    [
        ("b=1e300", ["finite", "1e+300 times 1e+300", "nearer to 1"]),
        ("a=1e-300", ["1e-300 times 1e-300"]),
        ("a=2,a=3", ["each class once", "'a'"]),
        ("a=0", ["above 0", "'a=0'", "--rows"]),
        ("z=2", ["'z=2'", "a, b"]),
    ],
)
def test_class_weights_that_make_no_weight_are_refused(weighted, tmp_path, weights, parts):
    message = error_of("run", weighted, "--out", tmp_path / "r", "--class-weight", weights)
    assert all(part in message for part in parts), message


@pytest.mark.slow
def test_weights_of_any_size_are_taken(weighted, tmp_path):
    """Those of class b are 10^600 times those of class a: importances are numbers all the same."""
    run = tmp_path / "r"
    command("run", weighted, "--out", run, "--iterations", 3, "--judge", "positive")
    assert json_of("status", run, "--json")["iterations"] == 3
    importance = {row["name"]: row["importance"] for row in json_of("features", run, "--json")}
    assert set(importance) == {"x", "y"}
    assert all(0 < value < math.inf for value in importance.values()), importance
