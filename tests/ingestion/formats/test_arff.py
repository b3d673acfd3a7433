"""ARFF is read as Weka 3.6.14, liac-arff 2.5.0 and SciPy 1.16 read it; where these differ, refused.

Expected values are theirs; of quotes, escapes and sparse rows those of Weka and liac-arff.
"""

import csv
import gzip
import io
import math
import subprocess
from pathlib import Path

import numpy as np
import pytest
from command import command_line, error_of, srs_ooc
from stores import values_of

import srs_ooc as package
from srs_ooc.base.errors import InputError
from srs_ooc.ingestion.sources import PieceReader, SourceFile
from srs_ooc.store.store import Store

HEAD = """% a comment

@RELATION 'r 1'
@attribute a\treal
 @Attribute 'it\\'s' {x , "y, z",'no  '}
% between
@ATTRIBUTE "b c" STRING
@attribute code {1,2}
@attribute day date "yyyy-MM-dd"
@data
"""
ROWS = """1, x, hello, 1, "2020-01-02"
% 2
-2.5,'y, z','say \\"hi\\", 50\\% off\\n', 2 ,?

?,'no  ',"it's",1,'2021-03-04'
1e3,?,c:\\dir,?,?
"""
NAMES = ["a", "it's", "b c", "code", "day"]
CELLS = [
    ["1", "x", "hello", "1", "2020-01-02"],
    ["-2.5", "y, z", 'say "hi", 50% off\n', "2", "?"],
    ["?", "no  ", "it's", "1", "2021-03-04"],
    ["1e3", "?", "c:\\dir", "?", "?"],
]


def written(folder, rows=ROWS, head=HEAD, name="t.arff"):
    path, data = folder / name, (head + rows).encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def as_csv(path):
    text = b"".join(PieceReader(SourceFile(path)).pieces()).decode()
    return [row for row in csv.reader(io.StringIO(text, newline="")) if row]


def store_of(folder, table, **options):
    package.ingest(table, folder / "s.zarr", overwrite=True, **options)
    return Store.open(folder / "s.zarr")


@pytest.mark.parametrize("name", ["t.arff", "t.arff.gz", "t.csv"])
def test_attributes_are_names_and_kinds_whatever_the_file_is_called(tmp_path, name):
    assert as_csv(written(tmp_path, name=name)) == [NAMES, *CELLS]
    store = store_of(tmp_path, written(tmp_path, name=name), no_target=True, ignore="day")
    kinds = store.kinds()[np.argsort(store.array("positions"))].tolist()
    assert list(store.names) == NAMES[:4]
    assert [kind == kinds[1] for kind in kinds] == [False, True, True, True]
    np.testing.assert_array_equal(values_of(tmp_path / "s.zarr")[0], [1, -2.5, math.nan, 1000])
    labels = {store.names[int(store.array("positions")[at])]: at for at in range(4)}
    assert store.categories().of(labels["it's"]) == ["no", "x", "y, z"]
    assert store.categories().of(labels["code"]) == ["1", "2"]
    assert store.manifest.source["format"] == "arff" + ".gz" * name.endswith(".gz")


def test_the_last_attribute_is_the_target_as_of_csv_and_one_declared_is_of_classes(tmp_path):
    head = "@relation r\n@attribute a numeric\n@attribute n {1,2,3}\n@attribute y {10,2,9}\n@data\n"
    path = written(tmp_path, "1,1,10\n2,2,2\n3,1,9\n4.5,?,?\n", head)
    store = store_of(tmp_path, path)
    assert (store.manifest.target_name, store.manifest.classes) == ("y", ("2", "9", "10"))
    assert store.manifest.inferred["task"] == ("classification: its column is declared categorical")
    said = srs_ooc("ingest", path, tmp_path / "n.zarr", "--dry-run").stdout
    assert said.startswith("read as: ARFF, by its first bytes; a line holds a row; names: its ")
    assert "target: 'y', the last column" in said
    assert "kind of target: 3 classes, in 4 rows '10' 1, '2' 1, '9' 1" in said
    assert store_of(tmp_path, path, covariates="n", target="a").manifest.levels == (("1", "2"),)
    assert store_of(tmp_path, path, kinds={"n": "numeric"}).kinds().max() < 3


def test_sparse_rows_leave_out_zeros_and_first_levels(tmp_path):
    head = "@relation r\n@attribute a numeric\n@attribute b {'x 1',y}\n@attribute c real\n@data\n"
    path = written(tmp_path, "{0 1, 1 y}\n{}\n{ 2\t-3.5 , }\n{1 ?,2 ?}\n5,y,6\n", head)
    expected = [["1", "y", "0"], ["0", "x 1", "0"], ["0", "x 1", "-3.5"], ["0", "?", "?"]]
    with pytest.raises(InputError, match=r"t.arff, line 8: expected values between commas"):
        as_csv(path)
    path.write_text(path.read_text().replace(" , }", "}"))
    assert as_csv(path)[1:] == [*expected, ["5", "y", "6"]]


def test_the_same_table_as_csv_dense_and_sparse_makes_equal_stores(tmp_path):
    rng = np.random.default_rng(0)
    cells = np.where(rng.random((60, 7)) < 0.3, rng.standard_normal((60, 7)).round(3), 0)
    y = ["ill" if one > 0 else "well" for one in rng.standard_normal(60)]
    named = [f"g{i}" for i in range(7)]
    head = "@relation r\n" + "".join(f"@attribute {name} numeric\n" for name in named)
    head += "@attribute y {well,ill}\n@data\n"
    lines = [f"{','.join(map(str, row))},{one}\n" for row, one in zip(cells, y, strict=True)]
    sparse = (
        ", ".join([*(f"{i} {row[i]}" for i in np.flatnonzero(row)), *["7 ill"] * (one == "ill")])
        for row, one in zip(cells, y, strict=True)
    )
    tables = {
        "t.csv": ",".join([*named, "y\n"]) + "".join(lines),
        "d.arff": head + "".join(lines),
        "s.arff.gz": head + "".join(f"{{{one}}}\n" for one in sparse),
    }
    stores = []
    for name, text in tables.items():
        stores.append(store_of(tmp_path, written(tmp_path, text, "", name)))
        np.testing.assert_array_equal(values_of(tmp_path / "s.zarr"), cells.T)
        stores[-1] = (stores[-1].kinds().tolist(), stores[-1].target().tolist())
    assert stores[0] == stores[1] == stores[2]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("1,x,it's,1,?", "expected values between commas, if with spaces, quotes or % in quotes"),
        ("1,x,a b,1,?", "found 'a b,1,?'"),
        ("1,x,50%,1,?", "found '50%,1,?'"),
        ("1,x,a,1,?,{5}", "no weights, found '{5}'"),
        ("1,x,a,1", "expected 5 values, as there are attributes, found 4"),
        ("1,x,,1,?", "expected a value, or ?, of attribute 2, counted from 0, found nothing"),
        ("1,X,a,1,?", "a value that attribute 1, counted from 0, declares, found 'X'"),
        ("1,x,'?',1,?", "expected ? without quotes, for a missing value, found it in quotes"),
        ("1,x,'\\u0041',1,?", "expected values between commas"),
        ("{0 1, 2 a}", "expected a value, or ?, of attribute 4, counted from 0, found nothing"),
        ("{2 a, 4 ?", "if with spaces, quotes or % in quotes, no weights, found '{2 a, 4 ?'"),
        ("{2 a, 1 x, 4 ?}", "numbers of attributes that ascend, below 5, found 1"),
        ("{2 a, 2 b, 4 ?}", "numbers of attributes that ascend, below 5, found 2"),
        ("{2 a, 4 ?, 5 1}", "numbers of attributes that ascend, below 5, found 5"),
        ("q,x,a,1,?", "column 'a': expected a number (or '?' for a missing value)"),
    ],
)
def test_what_programs_read_differently_is_refused_with_its_line(tmp_path, row, said):
    path = written(tmp_path, f"1,x,a,1,?\n{row}\n")
    with pytest.raises(InputError) as error:
        store_of(tmp_path, path, no_target=True, ignore="day")
    assert f"{path}, line 12: " in str(error.value)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("@relation r\n@attribute a relational\n@data\n", "line 2: expected @attribute, a name,"),
        ("@relation r\n@attribute a,b real\n@data\n", "line 2: expected @attribute, a name,"),
        ("@relation r\n@attribute a {x y}\n@data\n", "line 2: expected values between commas"),
        ("@relation r\n@attribute a real\n", "expected a line @data, and rows, found the end"),
        ("@relation r\n@attribute a real\n@attribute a real\n@data\n", "expected distinct column"),
        ("@relation r\n@data\n", "expected a header and rows"),
    ],
)
def test_headers_that_are_none(tmp_path, head, said):
    with pytest.raises(InputError, match=said):
        store_of(tmp_path, written(tmp_path, "", head), no_target=True)


def test_a_target_or_covariate_declared_numeric_holds_numbers(tmp_path):
    head = "@relation r\n@attribute a real\n@attribute b real\n@attribute y numeric\n@data\n"
    path = written(tmp_path, "1,1,1\n2,1,two\n3,5,3\n", head)
    for options in ({}, {"target": "a", "covariates": "y"}):
        with pytest.raises(InputError, match=r"line 7: column 'y': expected a number .*'two'"):
            store_of(tmp_path, path, **options)


def test_options_of_text_tables(tmp_path):
    asked = ("ingest", written(tmp_path), tmp_path / "s.zarr", "--no-target", "--ignore", "day")
    for given in (["--separator", ";"], ["--comment", "#"], ["--decimal=comma"], ["--no-header"]):
        assert "of ARFF, which says it itself" in error_of(*asked, *given)
    srs_ooc(*asked, "--missing", "-2.5")
    assert np.isnan(values_of(tmp_path / "s.zarr")[0]).sum() == 2


def test_standard_input_and_what_a_cap_must_hold(tmp_path):
    path, store = written(tmp_path), tmp_path / "s.zarr"
    asked = [*command_line("ingest", "-", store), "--no-target", "--ignore", "day"]
    subprocess.run(asked, input=path.read_bytes(), check=True)
    assert list(Store.open(store).names) == NAMES[:4]
    assert "rows of ARFF, and what it declares" in error_of(
        "ingest", path, tmp_path / "n", "--memory-mb", 90
    )


def test_files_of_openml_that_scikit_learn_carries(tmp_path):
    folder = pytest.importorskip("sklearn.datasets.tests").__path__[0]
    liac = pytest.importorskip("sklearn.externals._arff")
    for path in sorted(Path(folder).glob("data/openml/*/*.arff.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            found = liac.load(file)
        names, *rows = as_csv(path)
        assert [name.strip() for name in names] == [name.strip() for name, _ in found["attributes"]]
        for row, expected in zip(rows, found["data"], strict=True):
            plain = ("?" if one is None else one for one in expected)
            for cell, one in zip(row, plain, strict=True):
                assert cell == one or (isinstance(one, int | float) and float(cell) == one)
