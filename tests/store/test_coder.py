"""The native coder against its NumPy twin."""

import numpy as np
import pytest
from examples import given, st
from hypothesis.extra import numpy as hnp

from srs_ooc.store.manifest import BOOLEAN, CONSTANT, INTEGER, NUMERIC, max_codes
from srs_ooc.store.values import LONG_ROWS, CodeFacts, code_columns


def twin(column: np.ndarray, dtype: type) -> tuple[np.ndarray, int, int, bool]:
    """Codes, missing cells, codes in use, exact: as the definition says."""
    n_bins = max_codes(dtype)
    valid = np.sort(column[~np.isnan(column)]) + 0.0
    distinct = np.unique(valid)
    exact = len(distinct) <= n_bins
    if exact:
        edges = distinct[1:]
    else:
        at = [k * len(valid) // n_bins for k in range(1, n_bins)]
        edges = np.unique(valid[at])
        edges = edges[edges > valid[0]]
    codes = np.searchsorted(edges, column + 0.0, side="right").astype(dtype)
    codes[np.isnan(column)] = np.iinfo(dtype).max
    return codes, len(column) - len(valid), len(edges) + 1 if len(valid) else 0, exact


def check(values: np.ndarray, dtype: type) -> None:
    width = min(max_codes(dtype), values.shape[1])
    # By counting, by counting unless an eighth or more are no zeros, by sorting.
    for long_rows in (1, values.shape[1], LONG_ROWS):
        codes = np.empty(values.shape, dtype)
        facts = code_columns(values, codes, ranges=width, long_rows=long_rows)
        compare(values, codes, facts)


def compare(values: np.ndarray, codes: np.ndarray, facts: CodeFacts) -> None:
    dtype = codes.dtype
    for j, column in enumerate(values):
        expected, n_missing, n_codes, exact = twin(column, dtype)
        np.testing.assert_array_equal(codes[j], expected)
        assert (facts.n_missing[j], facts.n_codes[j], facts.exact[j]) == (n_missing, n_codes, exact)
        for code in range(n_codes):
            mine = column[codes[j] == code]
            assert (facts.lows[j, code], facts.highs[j, code]) == (mine.min(), mine.max())
        assert np.isnan(facts.lows[j, n_codes:]).all()


small = st.one_of(
    st.floats(width=32, allow_infinity=False), st.sampled_from([0.0, -0.0, np.nan, 1.0, -1.0])
)


@given(
    hnp.arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(1, 20)), elements=small),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from([np.uint8, np.uint16]),
)
def test_few_rows_are_coded_by_exact_ranks(values, value_dtype, code_dtype):
    check(values.astype(value_dtype), code_dtype)


@given(
    st.integers(-(2**24), 2**24),
    st.sampled_from([1, 2, 3, 200, 253, 254, 255, 256, 4095, 4096, 4097, 70_000]),
    st.lists(st.integers(0, 2**20), min_size=1, max_size=400),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from([np.uint8, np.uint16]),
)
def test_whole_numbers_that_lie_close_are_coded_as_any(low, span, draws, value_dtype, code_dtype):
    values = np.array([low + draw % span for draw in draws], value_dtype)
    gaps = np.where(np.arange(len(values)) % 5 == 3, np.nan, values)
    check(np.stack([values, gaps, np.where(values == low, -0.0, gaps)]), code_dtype)


@pytest.mark.parametrize("value_dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_rows", [127, 128, 254, 255, 256, 300, 2000])
@pytest.mark.parametrize("n_distinct", [1, 2, 253, 254, 255, 256, 1500])
def test_both_sides_of_each_limit(value_dtype, n_rows, n_distinct):
    rng = np.random.default_rng(n_rows * 10_000 + n_distinct)
    values = rng.integers(-n_distinct // 2, n_distinct - n_distinct // 2, (4, n_rows)) / 8.0
    values[1, rng.random(n_rows) < 0.3] = np.nan
    values[2] = np.where(rng.random(n_rows) < 0.7, 0.0, values[2] * 1e30)  # a heavy tie
    values[3] = np.nan
    check(values.astype(value_dtype), np.uint8)


@pytest.mark.parametrize("value_dtype", [np.float32, np.float64])
@pytest.mark.parametrize("share", [0.003, 0.1, 0.5, 0.999])
def test_zeros_are_coded_as_any_other_value(value_dtype, share):
    rng, shape = np.random.default_rng(int(1000 * share)), (6, 3000)
    values = np.where(rng.random(shape) < share, rng.normal(size=shape), 0.0)
    values[1:3] = np.abs(values[1:3])
    values[3:5] = -np.abs(values[3:5])
    values[2::2, rng.random(shape[1]) < 0.2] = np.nan
    values[5] *= 2.0**-1060 if value_dtype is np.float64 else 2.0**-140  # next to zero
    check(values.astype(value_dtype), np.uint8)


@pytest.mark.few(1)
@pytest.mark.parametrize("value_dtype", [np.float32, np.float64])
def test_long_features_of_every_distribution(value_dtype):
    rng, n_rows = np.random.default_rng(3), 150_000
    normal = rng.normal(size=n_rows)
    values = np.array(
        [
            normal,
            np.round(normal, 2),
            rng.integers(0, 300, n_rows),  # a little too many values for exact ranks
            np.where(rng.random(n_rows) < 0.7, 0, normal),  # most of them tied
            1 + rng.integers(0, 100_000, n_rows) * 2.0**-45,  # close together
            np.where(rng.random(n_rows) < 1e-4, 1e30, 1 + rng.integers(0, 999, n_rows) * 2.0**-52),
            np.where(rng.random(n_rows) < 0.5, np.nan, normal**9),
            rng.integers(0, 2, n_rows) * 2.0**-60 + 1e-30,
            np.full(n_rows, 7.0),
            np.full(n_rows, np.nan),
        ]
    ).astype(value_dtype)
    check(values, np.uint8)


def test_the_kinds_of_long_features_are_those_of_short_ones():
    values = np.array([[0, 1, np.nan, 0], [0, 2, 3, 0], [0.5, 1, 1, 1], [4, 4, np.nan, 4]], float)
    for rows in (1, 4, 5):
        facts = code_columns(values, np.empty(values.shape, np.uint8), long_rows=rows)
        assert facts.kinds.tolist() == [BOOLEAN, INTEGER, NUMERIC, CONSTANT]


def test_wide_codes_use_quantiles_beyond_their_limit():
    values = np.random.default_rng(1).normal(size=(2, 70_000))
    values[1] = np.round(values[1], 3)
    codes = np.empty(values.shape, np.uint16)
    facts = code_columns(values, codes)
    for j, column in enumerate(values):
        expected, _, n_codes, exact = twin(column, np.uint16)
        np.testing.assert_array_equal(codes[j], expected)
        assert (facts.n_codes[j], facts.exact[j]) == (n_codes, exact)
    assert facts.exact.tolist() == [False, True]


def test_arguments_of_another_layout_are_refused():
    values = np.zeros((4, 4))
    with pytest.raises(TypeError):
        code_columns(values.T[::2], np.empty((2, 4), np.uint8))
    with pytest.raises(TypeError):
        code_columns(values, np.empty((4, 4), np.int8))
