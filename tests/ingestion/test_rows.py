"""Tasks, weights, strata, groups, kinds and categories: found, forced, refused, and read back."""

import csv
from pathlib import Path

import numpy as np
import psutil
import pytest
from refusals import refused
from tables import said_here

import srs_ooc
from srs_ooc.base.errors import BudgetError, InputError, UsageError
from srs_ooc.ingestion.formats import Texts, hash_text
from srs_ooc.ingestion.ingest_options import FREE, ForcedKinds, IngestOptions
from srs_ooc.ingestion.scratch import TextSpool, texts_of
from srs_ooc.ingestion.stages import ingest_table
from srs_ooc.results.exporting import export_columns
from srs_ooc.store.arrays import Categories, Names, read_array
from srs_ooc.store.manifest import BOOLEAN, INTEGER, NAMES, NUMERIC, Manifest, read_manifest
from srs_ooc.store.store import Store
from srs_ooc.store.values import ValuesReader

TABLE = """id,site,chrom,flag,count,x,one,w,batch,sex,who,y
r1,lung,1,0,7,0.5,3,1,a,m,p1,1.5
r2,skin,X,1,2,1e3,3,0.5,b,m,p1,2
r3,,2,1,-4,,3,2,a,f,p2,
r4,bone,X,0,7,2,3,1e-3,a,m,p3,-1e-3
r5,lung,1,,9,1,3,4,b,m,p3,7
"""


def ingest(folder: Path, text: str = TABLE, **options) -> tuple[Path, Manifest]:
    path, store = folder / "t.csv", folder / f"{len(list(folder.iterdir()))}.zarr"
    path.write_text(text)
    options = {"memory_mb": 4000} | options  # of this process, which is large
    manifest = ingest_table(path, store, IngestOptions(**options))
    Store.open(store).verify()
    return store, manifest


FULL = {
    "row_ids": "id",
    "weights": "w",
    "strata": ("batch", "sex"),
    "groups": "who",
    "kinds": ForcedKinds((("chrom", "categorical"),)),
}


def kinds_by_name(store: Path) -> dict[str, str]:
    manifest = read_manifest(store)
    names, positions = Names(store, manifest), read_array(store, manifest, "positions")
    kinds = Store.open(store).kinds()
    return {names[int(p)]: NAMES[k] for p, k in zip(positions, kinds, strict=True)}


def stored(store: Path, name: str) -> int:
    manifest = read_manifest(store)
    position = int(Names(store, manifest).find([name])[0])
    return read_array(store, manifest, "positions").tolist().index(position)


def test_all_that_a_table_says_of_rows_and_features(tmp_path):
    store, manifest = ingest(tmp_path, **FULL)
    assert (manifest.task, manifest.classes, manifest.class_counts) == ("regression", (), ())
    assert (manifest.n_rows, manifest.n_dropped_rows) == (4, 1)
    assert manifest.inferred["task"] == "regression: numbers that are not all whole"
    assert Store(store, manifest).target().tolist() == [1.5, 2, -1e-3, 7]
    assert Store(store, manifest).weights().tolist() == [1, 0.5, 1e-3, 4]
    assert Store(store, manifest).strata().tolist() == [0, 1, 0, 1]
    assert Store(store, manifest).groups().tolist() == [0, 0, 1, 1]
    names = {"weights": ["w"], "strata": ["batch", "sex"], "groups": ["who"]}
    assert manifest.row_columns == names
    assert list(Names(store, manifest, "row_ids")) == ["r1", "r2", "r4", "r5"]
    kinds = "categorical", "categorical", "boolean", "integer", "numeric", "constant"
    names = "site", "chrom", "flag", "count", "x", "one"
    assert kinds_by_name(store) == dict(zip(names, kinds, strict=True))
    assert manifest.kind_counts == dict.fromkeys(NAMES, 1) | {"categorical": 2}
    assert Categories(store, manifest).of(stored(store, "site")) == ["bone", "lung", "skin"]
    assert Categories(store, manifest).of(stored(store, "chrom")) == ["1", "X"]
    assert Categories(store, manifest).of(stored(store, "x")) is None
    found = {i: part for i, _, part in ValuesReader(store, manifest).columns(np.arange(6))}
    assert found[stored(store, "site")].tolist() == [1, 2, 0, 1]


def test_export_prints_categories_and_targets(tmp_path):
    store, manifest = ingest(tmp_path, **FULL)
    positions = Names(store, manifest).find(["x", "chrom", "site"])
    export_columns(Store.open(store), positions, tmp_path / "o.csv")
    assert list(csv.reader((tmp_path / "o.csv").read_text().splitlines())) == [
        ["id", "x", "chrom", "site", "y"],
        ["r1", "0.5", "1", "lung", "1.5"],
        ["r2", "1000", "X", "skin", "2"],
        ["r4", "2", "X", "bone", "-0.001"],
        ["r5", "1", "1", "lung", "7"],
    ]


def test_rows_are_numbered_as_in_the_source(tmp_path):
    store, manifest = ingest(tmp_path, "a,y\n1,\n2,u\n3,NA\n4,v\n5,nan\n6,u\n")
    assert list(Names(store, manifest, "row_ids")) == ["2", "4", "6"]
    assert (manifest.n_dropped_rows, manifest.class_counts) == (3, (2, 1))
    with pytest.raises(InputError, match=r"t.csv, line 2: column 'y': expected a target"):
        ingest(tmp_path, "a,y\n1,\n2,u\n4,v\n", missing_target="refuse")


@pytest.mark.parametrize(
    ("cells", "task"),
    [
        (["a", "1"], "classification"),
        (["0.5", "1.5"], "classification"),
        (["0.5", "1.5", "3"], "regression"),
        (["1", "2", "3"] * 2, "classification"),
        (["1", "2", "3"], "regression"),
        ([str(i % 100) for i in range(400)], "classification"),
        ([str(i % 101) for i in range(400)], "regression"),
        ([str(i) for i in range(12_000)], "regression"),
    ],
)
def test_the_task_is_found(tmp_path, cells, task):
    rows = "".join(f"{i % 3},{cell}\n" for i, cell in enumerate(cells))
    store, manifest = ingest(tmp_path, "a,y\n" + rows)
    assert manifest.task == task
    assert manifest.inferred["task"].startswith(task)
    if task == "regression":
        assert Store(store, manifest).target().tolist() == [float(cell) for cell in cells]


def test_a_task_that_is_said(tmp_path):
    text = "a,y\n1,1\n2,2\n3,1\n4,inf\n5,-Infinity\n"
    store, manifest = ingest(tmp_path, text, task="regression")
    assert Store(store, manifest).target().tolist() == [1, 2, 1]
    assert "task" not in manifest.inferred
    _, manifest = ingest(tmp_path, text, task="classification")
    assert manifest.classes == ("-Infinity", "1", "2", "inf")
    with pytest.raises(InputError, match=r"line 3: column 'y': expected a number, .* found 'u'"):
        ingest(tmp_path, "a,y\n1,1\n2,u\n", task="regression")
    many = "a,y\n" + "".join(f"1,c{i}\n" for i in range(10_002))
    for said in ({"task": "classification"}, {}):
        refused(InputError, r"line 10003: .* at most 10000 classes", ingest, tmp_path, many, **said)
    with pytest.raises(InputError, match="two different numbers, found only 3"):
        ingest(tmp_path, "a,y\n1,3\n2,3\n", task="regression")


@pytest.mark.parametrize("unit", ["e38", "e-81"])
def test_a_target_that_single_precision_or_squares_cannot_hold(tmp_path, unit):
    rows = "".join(f"{i % 3},{i + 0.5}{unit}\n" for i in range(9))
    with pytest.raises(
        InputError, match=r"1e38 in size, 1e-80 apart, .* Write them in another unit"
    ):
        ingest(tmp_path, "a,y\n" + rows)
    for well in ("e37", "e-80"):
        assert ingest(tmp_path, "a,y\n" + rows.replace(unit, well))[1].task == "regression"


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (("2,a,f", "0,a,f"), None),  # its row has no target
        ((",0.5,b", ",0,b"), r"line 3: column 'w' \(--weights\): expected a positive.*found '0'"),
        ((",0.5,b", ",inf,b"), "positive finite number, found 'inf'"),
        ((",0.5,b", ",,b"), "found an empty cell"),
        (("b,m,p1", ",m,p1"), r"line 3: column 'batch' \(--strata\): expected a text"),
        (("p1,2\n", "NA,2\n"), r"line 3: column 'who' \(--groups\): .*found 'NA', a missing"),
    ],
)
def test_bad_row_columns(tmp_path, change, match):
    text = TABLE.replace(*change)
    assert text != TABLE
    if match is None:
        assert ingest(tmp_path, text, **FULL)[1].n_rows == 4
        return
    refused(InputError, match, ingest, tmp_path, text, **FULL)


FORCED = "a,b,y\n1,0,u\n2,1,v\n1,1,u\n2,0,u\n"


@pytest.mark.parametrize("kind", ["numeric", "integer", "categorical"])
def test_forced_kinds_from_options_file_and_python(tmp_path, kind):
    store, _ = ingest(tmp_path, FORCED, kinds=ForcedKinds((("a", kind),)))
    assert kinds_by_name(store) == {"a": kind, "b": "boolean"}
    (tmp_path / "k.csv").write_text(f"name,kind\na,{kind}\n")
    other, _ = ingest(tmp_path, FORCED, kinds=ForcedKinds(file=tmp_path / "k.csv"))
    assert read_manifest(store) == read_manifest(other)
    array = np.array([[1, 2, 1, 2], [0, 1, 1, 0]], float).T
    for i, table in enumerate((array, np.asfortranarray(array))):
        third = tmp_path / f"array{i}.zarr"
        made = srs_ooc.ingest(
            table, third, names=["a", "b"], target=list("uvuu"), kinds={"a": kind}
        )
        assert made.checksums == read_manifest(store).checksums


FALSE = "line 3: column 'a': expected 0 or 1, .*found '2'"
BAD_KINDS = [
    (FORCED, [("a", "boolean")], InputError, rf"t\.csv, {FALSE}"),
    ("a,y\n1,\n2,u\n1.50,v\n", [("a", "integer")], InputError, r"line 4: .*a whole .*'1\.50'"),
    ("a,y\n7,u\n7,v\n", [("a", "boolean")], InputError, "line 2: .* expected 0 or 1, .*found '7'"),
    (FORCED, [("z", "boolean")], InputError, r"no such column 'z' \(--kind\)"),
    (FORCED, [("a", "numeric"), ("a", "integer")], UsageError, "found 'a' twice"),
    (FORCED, [("a", "constant")], UsageError, "of the kinds numeric, .*found 'constant'"),
    ("a,y\np,u\np,v\n", [("a", "numeric")], InputError, "line 2: column 'a': expected a number"),
]


@pytest.mark.parametrize(("text", "pairs", "error", "match"), BAD_KINDS)
def test_kinds_that_cannot_be(tmp_path, text, pairs, error, match):
    refused(error, match, lambda: ingest(tmp_path, text, kinds=ForcedKinds(tuple(pairs))))


def test_names_of_equal_hash_are_told_apart(tmp_path):
    header = TextSpool(tmp_path, "header")
    alike = np.full(3, hash_text(b"b"), np.uint64)
    header.append(Texts(b"abc", np.array([1, 2, 3], np.uint64), alike))
    forced = ForcedKinds((("b", "integer"),)).settle("t.csv", header)
    assert forced.tolist() == [FREE, INTEGER, FREE]
    with pytest.raises(InputError, match="no such column 'd'"):
        ForcedKinds((("b", "integer"), ("d", "boolean"))).settle("t.csv", header)


def test_many_forced_kinds_are_read_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr("srs_ooc.ingestion.ingest_options._PAIRS_AT_A_TIME", 2)
    (tmp_path / "kinds.csv").write_text("name,kind\n\nc,integer\na,boolean\nb,numeric\n")
    header = TextSpool(tmp_path, "header")
    header.append(texts_of("abc"))
    kinds = ForcedKinds((), tmp_path / "kinds.csv")
    assert kinds.settle("t", header).tolist() == [BOOLEAN, NUMERIC, INTEGER]
    twice = ForcedKinds((("b", "numeric"),), tmp_path / "kinds.csv")
    refused(UsageError, "found 'b' twice", twice.settle, "t", header)
    refused(UsageError, "found 'b' twice", twice.by_name)
    (tmp_path / "kinds.csv").write_text("a,boolean\nb\n")
    with pytest.raises(InputError, match=r"kinds\.csv, line 2: expected a name and a kind"):
        kinds.settle("t", header)


def test_files_of_kinds_and_of_samples_count_against_the_cap(tmp_path):
    (tmp_path / "t.csv").write_text("id,s0,s1\na,1,2\nb,2,3\n")
    samples = {"samples": (tmp_path / "pheno.csv",), "id_name": "id"}

    def named(n_samples, n_kinds):
        lines = "".join(f"s{i},{'uv'[i % 2]}\n" for i in range(n_samples))
        (tmp_path / "pheno.csv").write_text(f"id,y\n{lines}")
        (tmp_path / "kinds.csv").write_text("".join(f"c{i},integer\n" for i in range(n_kinds)))
        kinds = ForcedKinds((), tmp_path / "kinds.csv")
        options = IngestOptions(target="y", kinds=kinds, memory_mb=1, **samples)
        with pytest.raises(BudgetError) as refused:
            ingest_table(tmp_path / "t.csv", tmp_path / "t.zarr", options)
        return int(str(refused.value).rsplit("--memory-mb ", 1)[1].rstrip("."))

    assert named(20_000, 9) - named(9, 9) in range(5, 12)  # MB
    assert named(9, 10_000) - named(9, 9) in range(4, 8)


def test_categories_that_are_no_utf8_are_found(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a,b,y\np,q,u\np,\xff,v\nz,q,u\n")
    with pytest.raises(InputError, match=r"line 3: column 'b': expected a category as UTF-8"):
        ingest_table(tmp_path / "t.csv", tmp_path / "t.zarr", IngestOptions(memory_mb=4000))


def test_texts_of_frames_that_are_forced_to_be_numbers(tmp_path):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"x": [1, 2, 3], "a": [None, "p", "q"], "y": ["u", "v", "u"]})
    other = frame.with_columns(x=polars.Series([0, 1, 3])).drop("a")
    for table, kinds, match in (
        (frame, {"a": "numeric"}, "row 2: column 'a': expected a number, .*found 'p'"),
        (other, {"x": "boolean"}, "row 3: column 'x': expected 0 or 1, .*found '3'"),
    ):
        with pytest.raises(InputError, match=match):
            srs_ooc.ingest(table, tmp_path / "t.zarr", kinds=kinds, memory_mb=4000)


def test_too_many_strata(tmp_path, monkeypatch):
    monkeypatch.setattr("srs_ooc.ingestion.rows.MOST_TUPLES", 2)
    with pytest.raises(InputError, match="--strata: expected columns that combine to at most 2"):
        ingest(tmp_path, "a,s,t,y\n1,p,q,u\n2,p,r,v\n3,m,n,u\n", strata=("s", "t"))


def test_too_many_categories_and_too_little_memory(tmp_path):
    rows = [f"c{i % 300:03},{'uv'[i % 2]}" for i in range(600)]
    text = "a,y\n" + "\n".join(rows)
    with pytest.raises(
        InputError, match=r"line 256: column 'a': .*254 categories, .*\('c254'\).*uint16"
    ):
        ingest(tmp_path, text)
    store, manifest = ingest(tmp_path, text, code_dtype="uint16")
    assert Categories(store, manifest).of(0) == [f"c{i:03}" for i in range(300)]
    long = "a,b,y\n" + "".join(f"{'x' * 50_000}{i},p,{'uv'[i % 2]}\n" for i in range(300))
    with pytest.raises(BudgetError, match=r"line \d+: column 'a': .*categories whose texts fit"):
        ingest(tmp_path, long, memory_mb=psutil.Process().memory_info().rss / 1e6 + 60)


def test_frames_with_texts_and_samples_with_everything(tmp_path):
    polars = pytest.importorskip("polars")
    (tmp_path / "t.csv").write_text(TABLE)
    frame = polars.read_csv(tmp_path / "t.csv")
    options = dict(FULL) | {"kinds": {"chrom": "categorical"}, "memory_mb": 4000}
    made = srs_ooc.ingest(frame, tmp_path / "f.zarr", target="y", **options)
    _, manifest = ingest(tmp_path, **FULL)
    assert made.checksums == manifest.checksums
    parts = {key: frame[key] for key in ("y", "w", "who", "id")}
    apart = srs_ooc.ingest(
        frame.drop("y", "w", "who", "id", "sex"),
        tmp_path / "g.zarr",
        target=parts["y"],
        weights=parts["w"].to_numpy(),
        groups=parts["who"].to_list(),
        row_ids=parts["id"],
        strata="batch",
        kinds={"chrom": "categorical"},
        memory_mb=4000,
    )
    assert Store(tmp_path / "g.zarr", apart).weights().tolist() == [1, 0.5, 1e-3, 4]
    assert apart.checksums["codes/c/0/0"] == manifest.checksums["codes/c/0/0"]


MATRIX = "name,s1,s2,s3,s4\ncg1,0.5,1,NA,4\nsnp,AA,AG,AG,AA\n"
PHENO = "id,age,batch,sex,w,who,site\ns4,30,1,f,2,a,lung\ns2,31,1,f,1,a,\ns1,32.5,2,f,1,b,lung\n"


def test_a_sample_table_gives_all_of_it(tmp_path, capsys):
    (tmp_path / "m.csv").write_text(MATRIX)
    (tmp_path / "p.csv").write_text(PHENO)
    command = ["ingest", tmp_path / "m.csv", tmp_path / "t.zarr", "--orient", "features"]
    command += ["--samples", tmp_path / "p.csv"]
    command += ["--id", "id", "--target", "age", "--strata", "batch,sex", "--weights", "w"]
    command += ["--groups", "who", "--sample-features", "site,w", "--memory-mb", "4000"]
    out = said_here(capsys, *command)
    assert "target: 'age' (regression)" in out
    assert "kinds: 1 numeric, 1 integer, 2 categorical" in out
    assert "strata: 'batch', 'sex'" in out
    store, manifest = tmp_path / "t.zarr", read_manifest(tmp_path / "t.zarr")
    assert Store(store, manifest).target().tolist() == [32.5, 31, 30]
    assert Store(store, manifest).strata().tolist() == [0, 1, 1]
    assert Store(store, manifest).groups().tolist() == [0, 1, 1]
    assert Store(store, manifest).weights().tolist() == [1, 1, 2]
    kinds = {"cg1": "numeric", "snp": "categorical", "site": "categorical", "w": "integer"}
    assert kinds_by_name(store) == kinds
    assert Categories(store, manifest).of(stored(store, "snp")) == ["AA", "AG"]
