"""Objects whose cells are not what their dtype says: masks, Python objects, damaged matrices."""

import datetime
import math
import re
import warnings
from decimal import Decimal

import numpy as np
import pandas
import pytest
from refusals import refused

import srs_ooc
from srs_ooc.base.errors import InputError
from srs_ooc.ingestion.formats.in_memory import ArrayTable
from srs_ooc.store.arrays import Categories, read_array
from srs_ooc.store.store import Store
from srs_ooc.store.values import ValuesReader

LABELS = ["u", "v"] * 3


def series(*cells):
    """A frame of one column of Python objects."""
    return pandas.DataFrame({"a": pandas.Series([*cells], dtype=object)})


def feature(folder, thing, **options):
    """Ingest, and return the kind of the one feature, and its values."""
    options = {"target": LABELS} | options
    manifest = srs_ooc.ingest(thing, folder / "t.zarr", **options)
    assert manifest.n_features == 1
    chunks = ValuesReader(folder / "t.zarr", manifest).columns(np.arange(1))
    values = np.concatenate([part for _, _, part in chunks]).tolist()
    categories = Categories(folder / "t.zarr", manifest).of(0)
    if categories:
        values = [None if math.isnan(v) else categories[int(v)] for v in values]
    return int(Store.open(folder / "t.zarr").kinds()[0]), values


def test_masked_cells_are_missing(tmp_path):
    array = np.ma.MaskedArray(np.arange(12).reshape(6, 2), mask=np.zeros((6, 2), bool))
    array[1, 0] = array[4, 1] = np.ma.masked
    array.data[1, 0] = 2**60  # what is hidden is not looked at
    manifest = srs_ooc.ingest(array, tmp_path / "t.zarr", task="classification")
    assert (manifest.n_rows, manifest.n_dropped_rows, manifest.n_missing_cells) == (5, 1, 1)
    assert manifest.classes == ("1", "3", "5", "7", "11")
    manifest = srs_ooc.ingest(np.ma.array(array.data % 7), tmp_path / "u.zarr", target=LABELS)
    assert manifest.n_missing_cells == 0


def test_a_target_in_a_matrix_object(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        matrix = np.asmatrix([[0.5, 1], [1.5, 0], [2.5, 1]])
    manifest = srs_ooc.ingest(matrix, tmp_path / "t.zarr")
    assert manifest.classes == ("0", "1")
    assert Store(tmp_path / "t.zarr", manifest).target().tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        ([1.5, 2, None, np.int64(3), np.float32(1.5), True], 0, [1.5, 2, math.nan, 3, 1.5, 1]),
        ([True, False, None, True, True, False], 2, [1, 0, math.nan, 1, 1, 0]),
        (["p", "q", None, b"p", "q", math.nan], 3, ["p", "q", None, "p", "q", None]),
        ([None] * 6, 4, [math.nan] * 6),
    ],
)
def test_python_objects_in_pandas_columns(tmp_path, cells, kind, values):
    found = feature(tmp_path, series(*cells))
    assert found[0] == kind
    np.testing.assert_array_equal(found[1], values)


def test_numbers_and_texts_in_one_column_take_a_word(tmp_path):
    frame = series(1, "X", 1, "X", 2, 2)
    with pytest.raises(InputError, match=r"column 'a', row 2: expected a number .* found 'X'"):
        feature(tmp_path, frame)
    kind, values = feature(tmp_path, frame, kinds={"a": "categorical"})
    assert (kind, values) == (3, ["1", "X", "1", "X", "2", "2"])
    mixed = frame.assign(b=range(6))
    srs_ooc.ingest(mixed, tmp_path / "u.zarr", target="a")  # no feature, so of no kind


@pytest.mark.parametrize(
    ("cells", "match"),
    [
        ([b"\xff", "a"] * 3, r"row 1: expected a number or UTF-8 text, found b'\\xff'"),
        (["a", "\ud800"] * 3, r"row 2: expected a number or UTF-8 text, found '\\ud800'"),
        ([[1], [2]] * 3, r"row 1: expected numbers or texts, found \[1\]"),
        ([1, 2**53 + 1] * 3, "row 2: expected integers of at most 2.*found 9007199254740993"),
        ([datetime.date(2020, 1, 1)] * 6, "row 1: expected numbers or texts"),
    ],
)
def test_objects_that_are_neither(tmp_path, cells, match):
    refused(InputError, f"column 'a', {match}", feature, tmp_path, series(*cells))
    assert list(tmp_path.iterdir()) == []


def test_the_missing_value_of_integers_of_r_is_refused(tmp_path):
    cells = np.arange(12, dtype=np.int32).reshape(6, 2)
    cells[2, 1] = np.iinfo(np.int32).min
    with pytest.raises(InputError, match=r"found -2147483648, .*`numpy.*; in R, `x \+ 0`"):
        srs_ooc.ingest(cells, tmp_path / "r.zarr", target=[0, 1] * 3)
    assert list(tmp_path.iterdir()) == []


def test_dtypes_by_other_names(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"a": pandas.interval_range(0, 6)})
    refused(InputError, r"column 'a': expected numbers, found interval", feature, tmp_path, frame)
    half = pandas.array([0.5, None, 1, 2, 3, 4], dtype=pandas.ArrowDtype(arrow.float16()))
    values = feature(tmp_path, pandas.DataFrame({"a": half}))[1]
    np.testing.assert_array_equal(values, [0.5, math.nan, 1, 2, 3, 4])


def test_columns_of_dates_are_refused_with_the_line_that_makes_days_of_them(tmp_path):
    days = pandas.to_datetime(["2024-01-03", "2024-01-01", None] * 2)
    frame = pandas.DataFrame({"d": days, "x": range(6), "e": days.tz_localize("UTC")})
    expected = r"column 'd': .* The same holds of 'e' \(datetime"
    said = refused(InputError, expected, feature, tmp_path, frame)
    line = 'df["d"] = (df["d"] - df["d"].min()).dt.days'.replace('"', "'")
    assert f"As numbers, by pandas: {line}." in said
    scope = {"df": frame.drop(columns="e")}
    exec(line, scope)
    assert feature(tmp_path, scope["df"][["d"]])[1][:2] == [2, 0]


def mended(tmp_path, frame, **scope):
    """A frame after the lines that its refusal proposes."""
    expected = r"expected numbers, found .* As numbers, by"
    said = refused(InputError, expected, feature, tmp_path, frame, overwrite=True)
    scope["df"] = frame
    for line in re.findall(r"As numbers, by \w+: (.*?)\.(?= As numbers| Or )", said):
        exec(line, scope)
    return scope["df"]


def test_columns_of_dates_times_durations_and_decimals_of_polars_and_arrow(tmp_path):
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    cells = {
        "date": [datetime.date(2024, 1, day) for day in (3, 1, 2)] * 2,
        "moment": [datetime.datetime(2024, 1, day) for day in (3, 1, 2)] * 2,
        "duration": [datetime.timedelta(days=day) for day in (3, 1, 2)] * 2,
        "time": [datetime.time(hour) for hour in (3, 1, 2)] * 2,
        "decimal": [Decimal(one) for one in (3, 1, 2)] * 2,
    }
    for name, items in cells.items():
        frame = polars.DataFrame({name: items})
        for one in (frame, frame.to_arrow(), arrow.table({name: items})):
            values = feature(tmp_path, mended(tmp_path, one, pl=polars), overwrite=True)[1]
            assert np.argsort(values[:3]).tolist() == [1, 2, 0], (name, type(one))


def test_sparse_columns_durations_periods_and_intervals_of_pandas_are_mended_at_once(tmp_path):
    lengths = pandas.to_timedelta([3, 1, None] * 2, "D")
    columns = {
        "a sparse": pandas.arrays.SparseArray([3.0, 1.0, math.nan] * 2),
        "a period": pandas.PeriodIndex(["2024-03", "2024-01", "2024-02"] * 2, freq="M"),
        "an interval": pandas.arrays.IntervalArray.from_breaks(range(7)),
        "a length": lengths,
    }
    found = mended(tmp_path, pandas.DataFrame(columns))
    assert found["a sparse"][:2].tolist() == [3, 1]
    assert found["a length"][:2].tolist() == [3 * 86400, 86400]
    assert np.diff(found["a period"][:3]).tolist() == [-2, 1]
    for name in found:
        feature(tmp_path, found[[name]], overwrite=True)


def test_columns_of_type_null_are_missing(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    assert feature(tmp_path, arrow.table({"a": arrow.nulls(6)}))[0] == 4
    with pytest.raises(InputError, match=r"column 'a': expected numbers, found struct<"):
        feature(tmp_path.parent, arrow.table({"a": [{"b": 1}] * 6}))


def test_integers_of_128_bits_in_polars(tmp_path):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"a": polars.Series(range(6), dtype=polars.Int128)})
    refused(InputError, "column 'a': expected numbers, found int128", feature, tmp_path, frame)


@pytest.mark.parametrize(
    ("target", "match"),
    [
        (np.ones((6, 1)), r"target: expected a sequence of items, found the shape \(6, 1\)"),
        (np.array(3), r"found the shape \(\)"),
        (5, "found int"),
        ({"u": 1}, "found dict"),
        ({"u", "v"}, "found set"),
        ([[1], [2]] * 3, r"target, item 1: expected a number or UTF-8 text, found \[1\]"),
        ([b"u", b"\xff"] * 3, "target, item 2: expected a number or UTF-8 text"),
    ],
)
def test_targets_that_are_no_list_of_items(tmp_path, target, match):
    refused(InputError, match, srs_ooc.ingest, np.ones((6, 2)), tmp_path / "t.zarr", target=target)
    assert list(tmp_path.iterdir()) == []


def test_names_by_the_path_of_their_file(tmp_path):
    (tmp_path / "names.txt").write_text("a\nb\n")
    names = str(tmp_path / "names.txt")
    array = np.arange(12.0).reshape(6, 2)
    manifest = srs_ooc.ingest(array, tmp_path / "t.zarr", target=LABELS, names=names)
    assert bytes(read_array(tmp_path / "t.zarr", manifest, "names_bytes")) == b"ab"
    with pytest.raises(InputError, match=r"names\.txt: expected 3 names, one for each column"):
        srs_ooc.ingest(np.ones((6, 3)), tmp_path / "u.zarr", target=LABELS, names=names)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr"])
def test_indices_outside_a_sparse_matrix_are_refused(tmp_path, kind):
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.coo_matrix(np.arange(12.0).reshape(6, 2)).asformat(kind)
    index = matrix.col if kind == "coo" else matrix.indices
    index[-1] = 1000
    with pytest.raises(InputError, match=r"expected a sparse matrix with indices within .*damage"):
        srs_ooc.ingest(matrix, tmp_path / "t.zarr", target=LABELS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("by_rows", [False, True])
@pytest.mark.parametrize("wide", [0.1, 1e39])
def test_a_promise_of_float32_that_is_broken_is_refused(tmp_path, by_rows, wide):
    """Cells are looked at before they are made float32, by rows and by columns."""

    class Promising(ArrayTable):
        narrow = True

        def read(self, positions, pool):
            return self._array[positions] if self.by_rows else super().read(positions, pool)

    cells = np.arange(18.0).reshape(6, 3)
    cells[4, 1] = wide
    table = Promising(cells, "it")
    table.by_rows, table.narrow = by_rows, True
    with pytest.raises(InputError, match="survive the round trip through float32"):
        srs_ooc.ingest(table, tmp_path / "t.zarr", target=LABELS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.bool_])
def test_narrow_cells_make_the_store_that_doubles_make(tmp_path, dtype):
    """Rows that are left out, categories that are forced and groups, too."""
    cells = np.random.default_rng(1).normal(0, 3, (6, 40)).astype(dtype)
    labels = [None, *LABELS[1:]]
    for name, more in (
        ("plain", {"target": LABELS}),
        ("dropped", {"target": labels}),
        ("forced", {"target": LABELS, "kinds": {"f3": "categorical"}}),
        ("groups", {"target": LABELS, "groups": [0, 1, 0, 1, 2, 3], "aggregate": "mean"}),
    ):
        for form, table in (("narrow", cells), ("wide", cells.astype(float))):
            np.save(path := tmp_path / f"{form}.npy", table)
            srs_ooc.ingest(path, tmp_path / f"{form}.zarr", overwrite=True, **more)
        narrow, wide = (Store.open(tmp_path / f"{form}.zarr") for form in ("narrow", "wide"))
        assert narrow.manifest.checksums == wide.manifest.checksums, name
        assert narrow.manifest.values_dtype == wide.manifest.values_dtype, name
