"""Scores of columns: what the formulas say, in any blocks, from codes and from values."""

import os
import subprocess

import numpy as np
import pytest
from command import command_line, environment
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from stores import make_store

from srs_ooc.base.errors import UsageError
from srs_ooc.ingestion.ingest_options import stored_positions
from srs_ooc.methods.less.leverage import Leverage, SketchedLeverage, SquaredNorm
from srs_ooc.samplers.column_scores import (
    LARGEST,
    block_columns,
    integer_weights,
    score_columns,
)
from srs_ooc.store.store import Scan, Store, code_numbers
from srs_ooc.testing import check_score

CENTRED = pytest.mark.parametrize("center", [True, False])


def exact_leverage(columns, rank, *, center):
    """Eq. 1 by the singular value decomposition of the whole table (n_columns, n_rows)."""
    columns = columns.astype(np.float64)
    table = columns - columns.mean(axis=1, keepdims=True) if center else columns
    vectors = np.linalg.svd(table, full_matrices=False)[0][:, :rank]
    return (vectors**2).sum(axis=1) / rank


def codes(n_columns=90, n_rows=40, n_directions=5, seed=0):
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((n_columns, n_directions)) @ rng.standard_normal(
        (n_directions, n_rows)
    )
    table += 0.5 * rng.standard_normal((n_columns, n_rows))
    return np.clip(np.rint(60 * table + 127), 1, 254).astype(np.float32)


@CENTRED
def test_leverage_and_norms_pass_the_conformance_suite(center):
    columns = codes()
    found = check_score(lambda n, d: Leverage(n, d, 5, center=center), columns)
    np.testing.assert_allclose(found, exact_leverage(columns, 5, center=center), atol=1e-8)
    assert found.sum() == pytest.approx(1, abs=1e-6)
    found = check_score(lambda n, d: SquaredNorm(n, d, center=center), columns)
    table = columns - columns.mean(axis=1, keepdims=True) if center else columns
    np.testing.assert_allclose(found, (table.astype(float) ** 2).sum(axis=1), rtol=1e-5)


@CENTRED
def test_the_sketch_passes_the_conformance_suite_and_is_near_the_exact_scores(center):
    columns = codes(300, 80)
    exact = exact_leverage(columns, 5, center=center)
    agreement = []
    for power_passes in (0, 1, 4):
        found = check_score(
            lambda n, d, q=power_passes: SketchedLeverage(
                n, d, 5, center=center, power_passes=q, key=7
            ),
            columns,
            has_symmetry=False,
        )
        agreement.append(np.corrcoef(found, exact)[0, 1])
    assert agreement[0] > 0.85
    assert agreement[2] > 0.999
    assert agreement == sorted(agreement)


@examples(30)
@given(st.integers(1, 30), st.integers(2, 30), st.integers(1, 40), st.booleans(), st.integers(0))
def test_leverage_of_any_shape_sums_to_one_and_equals_the_svd(n_columns, n_rows, rank, center, key):
    rng = np.random.default_rng(key)
    whole = rng.integers(0, 254, (n_columns, n_rows))
    columns = whole.astype(np.float32)
    found = score_columns(Leverage(n_rows, n_columns, rank, center=center), lambda: [(0, columns)])
    table = whole - whole.mean(axis=1, keepdims=True) if center else whole
    most = int(np.linalg.matrix_rank(table))
    if most == 0:
        assert not found.any()
        return
    assert found.sum() == pytest.approx(1, abs=1e-5)
    sizes = np.linalg.svd(table, compute_uv=False)
    if rank >= most or sizes[rank - 1] > 1.01 * sizes[rank]:
        expected = exact_leverage(columns, min(rank, most), center=center)
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_at_full_rank_with_fewer_columns_than_rows_all_scores_are_equal():
    """Every column of an orthonormal square matrix has length 1: Eq. 1 says nothing there."""
    columns = codes(20, 60, n_directions=20)
    found = score_columns(Leverage(60, 20, 50, center=True), lambda: [(0, columns)])
    np.testing.assert_allclose(found, 1 / 20, atol=1e-8)


def store_of(tmp_path, values, **form):
    store = make_store(tmp_path / "t.zarr", values, np.arange(values.shape[1]) % 2, **form)
    return Store.open(store)


def scanned(store, **how):
    n_rows = store.n_rows if how.get("rows") is None else len(how["rows"])
    scan = Scan(store, block_columns(n_rows), **how)
    return np.concatenate([block.copy() for _, block in scan.blocks()])


@pytest.mark.parametrize("code_dtype", ["uint8", "uint16"])
def test_a_scan_yields_all_columns_with_means_for_what_is_missing(tmp_path, code_dtype):
    rng = np.random.default_rng(0)
    values = rng.integers(0, 50, (700, 30)) * 0.5
    values[rng.random(values.shape) < 0.05] = np.nan
    values[3] = np.nan
    store = store_of(tmp_path, values, code_dtype=code_dtype)
    rows, excluded = np.arange(1, 30, 2, dtype=np.int32), np.array([5, 600], np.uint32)
    with np.errstate(all="ignore"):
        for how in ({}, {"rows": rows}, {"excluded": excluded}):
            found = scanned(store, values=True, **how)
            ranks = scanned(store, **how)
            assert found.shape == ranks.shape == (700, len(how.get("rows", range(30))))
            left_out = how.get("excluded", np.zeros(0, int))
            assert not found[left_out].any()
            assert not ranks[left_out].any()
    stored = values[stored_positions(700)]
    known = ~np.isnan(stored)
    np.testing.assert_array_equal(scanned(store, values=True)[known], stored[known])
    means = np.nan_to_num(
        [row[~np.isnan(row)].sum() / max(1, (~np.isnan(row)).sum()) for row in stored]
    )
    filled = scanned(store, values=True)
    for i in range(700):
        np.testing.assert_allclose(filled[i][~known[i]], means[i])


def test_missing_codes_are_the_mean_to_a_256th_of_a_code():
    found = code_numbers(np.array([[0, 1, 255, 1], [7, 7, 7, 7]], np.uint8), 255)
    assert found.dtype == np.float64
    assert found.tolist() == [[0, 1, round(2 / 3 * 256) / 256, 1], [7, 7, 7, 7]]
    assert code_numbers(np.array([[1, 2]], np.uint8), 255).dtype == np.float32


def test_values_too_large_to_square_are_refused(tmp_path):
    store = store_of(tmp_path, np.array([[1.0, 2.0, 1e200, 0.0]]))
    with pytest.raises(UsageError, match="matrix=codes"):
        scanned(store, values=True)


def test_weights_are_whole_numbers_in_units_of_the_largest():
    weights = integer_weights(np.array([0.0, 1e-300, 0.5, 1.0]))
    assert weights.dtype == np.uint32
    assert weights.tolist() == [0, 1, round(LARGEST / 2), LARGEST]
    for wrong in ([0.0, 0.0], [-1.0, 1.0], [np.nan, 1.0], [np.inf, 1.0]):
        with pytest.raises(UsageError):
            integer_weights(np.array(wrong))


@pytest.mark.slow
def test_what_is_printed_does_not_depend_on_the_threads_of_the_linear_algebra(tmp_path):
    """Eigenvectors, which threads would round otherwise, are found by one."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((900, 300))
    values[:50] += 3 * rng.standard_normal(300)
    values[7, 3] = np.nan
    store = store_of(tmp_path, values)

    def table(threads, *options):
        env = environment() | {"OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
        done = subprocess.run(
            command_line("scores", store.path, "--with", "rank=20", "--csv", *options),
            capture_output=True, env=env, check=True,
        )  # fmt: skip
        return done.stdout

    assert (os.cpu_count() or 1) < 2 or table("1") == table("2")
    assert table("1", "--with", "matrix=values") == table("2", "--with", "matrix=values")
