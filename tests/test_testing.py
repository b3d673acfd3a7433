"""Every table format passes the conformance suite, and the suite sees what is wrong."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from tables import opened

import srs_ooc
from srs_ooc.ingestion.csv import TextForm
from srs_ooc.ingestion.feature_rows import FeatureRows, open_stream
from srs_ooc.ingestion.formats.in_memory import ArrayTable, open_object
from srs_ooc.ingestion.ingest_options import IngestOptions
from srs_ooc.ingestion.scratch import TextSpool
from srs_ooc.ingestion.sources import SourceFile
from srs_ooc.testing import check_table

COLUMNS = [[1.5, math.nan, -3.0], [0.0, 2.0, 0.0], [7.0, 8.0, 1e30]]
MATRIX = np.array(COLUMNS).T
NAMES = ["a", "b", "c"]
MIXED = [[1.5, math.nan, -3.0], ["x", None, "y"]]


@pytest.mark.parametrize("order", "CF")
def test_arrays_and_npy(tmp_path, order):
    array = np.array(MATRIX, order=order)
    check_table(ArrayTable(array, "it"), COLUMNS)
    np.save(tmp_path / "t.npy", array)
    check_table(opened(tmp_path / "t.npy"), COLUMNS)
    np.savez(tmp_path / "t.npz", array)
    check_table(opened(tmp_path / "t.npz"), COLUMNS)


def test_sparse_and_svmlight(tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    check_table(open_object(sparse.csr_array(MATRIX)), COLUMNS)
    (tmp_path / "t.svm").write_text("u 1:1.5 3:7\nv 2:2 3:8\nu 1:-3 3:1e30\n")
    full = [[1.5, 0.0, -3.0], *COLUMNS[1:]]
    labels = {"label": ["u", "v", "u"]}
    check_table(opened(tmp_path / "t.svm"), full, ["f1", "f2", "f3"], labels)


@pytest.mark.few(1)
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames(library):
    module = pytest.importorskip(library)
    make = module.table if library == "pyarrow" else module.DataFrame
    columns = {"a": [1.5, None, -3.0], "t": ["x", None, "y"]}
    check_table(open_object(make(columns)), MIXED, ["a", "t"])


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_arrow_files(tmp_path, kind):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    table = arrow.table({"a": [1.5, None, -3.0], "t": ["x", None, "y"]})
    write = parquet.write_table if kind == "parquet" else feather.write_feather
    write(table, tmp_path / "t")
    check_table(opened(tmp_path / "t"), MIXED, ["a", "t"])


def feature_rows(folder: Path) -> FeatureRows:
    (folder / "t.csv").write_text("p,s1,s2,s3\na,1.5,,-3\nt,x,NA,y\n")
    header = TextSpool(folder, "samples")
    stream = open_stream(SourceFile(folder / "t.csv"), TextForm(), header)
    return FeatureRows(stream, header, np.ones(3, np.bool_), folder, lambda *_: None, 10_000)


def test_features_as_rows_and_covariates(tmp_path):
    table = feature_rows(tmp_path)
    check_table(table, MIXED, ["a", "t"])
    more = [("age", ["4", "", "5"]), ("sex", ["y", "z", ""])]
    table.append_features(more, str, IngestOptions())
    columns = [*MIXED, [4.0, math.nan, 5.0], ["y", "z", None]]
    check_table(table, columns, ["a", "t", "age", "sex"])


def test_the_format_that_the_docs_show(tmp_path):
    text = (Path(__file__).parents[1] / "docs" / "extending.md").read_text()
    section = text.partition("## A format")[2].partition("\n## ")[0]
    blocks = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    path, known = tmp_path / "t.json", {}
    for block in blocks:
        exec(block, known)
    features = '{"age": [30, null, 2.5], "sex": ["m", "f", "m"], "y": ["u", "v", "u"]}'
    path.write_text(f'{{"id": [1, 2, 3], "ill": [0, 1, 0], "features": {features}}}')
    made = srs_ooc.ingest(known["JsonTable"](path), tmp_path / "t.zarr", memory_mb=4000)
    assert (made.n_rows, made.n_features, made.classes) == (3, 3, ("0", "1"))
    assert made.source["format"] == "json"


class _Shifted(ArrayTable):
    """Reads the wrong column once several are asked for."""

    def read(self, positions, pool):
        return super().read(np.roll(positions, len(positions) < 3), pool)


class _Narrow(ArrayTable):
    def read(self, positions, pool):
        return super().read(positions, pool).astype(np.float32)


class _Annotated(ArrayTable):
    def __init__(self, **said):
        super().__init__(MATRIX, "it")
        vars(self).update({"names": NAMES, "annotations": {"id": ["p", "q", "r"]}} | said)


@pytest.mark.parametrize(
    ("said", "match"),
    [
        ({}, "annotations"),
        ({"annotations": {"sex": ["m", "f", "f"]}}, "annotations: sex"),
        ({"annotations": {"sex": ["m", "f"]}}, "annotations: sex"),
        ({"annotations": {"sex": ["m", None, "f"]}, "default_ids": "id"}, "default_ids: none"),
        ({"annotations": {"sex": ["m", None, "f"]}, "index_names": ["d"]}, "index_names"),
        ({"annotations": {"sex": ["m", None, "f"]}, "narrow": np.full(3, True)}, "narrow"),
        ({"annotations": {"sex": ["m", None, "f"]}, "cell_nbytes": 4}, "cell_nbytes"),
        ({"annotations": {"sex": ["m", None, "f"]}, "levels": lambda _: ["u"]}, "levels"),
    ],
)
def test_the_suite_sees_what_a_table_says_of_itself_wrongly(said, match):
    with pytest.raises(AssertionError, match=match):
        check_table(_Annotated(**said), COLUMNS, NAMES, {"sex": ["m", None, "f"]})


@pytest.mark.parametrize(
    ("table", "columns", "match"),
    [
        (_Shifted(MATRIX, "it"), COLUMNS, "differ from what reading all gave"),
        (_Narrow(MATRIX, "it"), COLUMNS, "dtype float32"),
        (ArrayTable(MATRIX, "it"), COLUMNS[:2], "shape"),
        (ArrayTable(MATRIX, "it"), [*COLUMNS[:2], [7.0, 8.0, 1.0]], "read: column 2"),
        (ArrayTable(MATRIX, "it"), [*COLUMNS[:2], ["u", "v", "w"]], "text_columns"),
    ],
)
def test_the_suite_sees_what_is_wrong(table, columns, match):
    with pytest.raises(AssertionError, match=match):
        check_table(table, columns)
