"""A CSV file becomes a store that holds exactly the table; what is often a mistake is said."""

import csv
import gzip
import io
import math
import random
import re
import shlex
from pathlib import Path

import numpy as np
import pandas
import pytest
import zarr
from click.testing import CliRunner
from examples import examples, given, st
from stores import values_of
from tables import data_file

import srs_ooc
from srs_ooc.base.errors import InputError
from srs_ooc.base.seeds import Purpose, derive_array, key_of
from srs_ooc.cli import cli
from srs_ooc.ingestion import formats
from srs_ooc.ingestion.csv import TextForm
from srs_ooc.ingestion.ingest_options import IngestOptions
from srs_ooc.ingestion.rows import FEW_ROWS, check_counts
from srs_ooc.ingestion.stages import ingest_table
from srs_ooc.store.arrays import Names, read_array
from srs_ooc.store.manifest import chunk_file, read_manifest
from srs_ooc.store.store import Store
from srs_ooc.store.values import code_columns


def make(folder: Path, text: str, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def twin(path: Path, target: str, skip: tuple[str, ...] = ()) -> tuple:
    """Feature names, values (n_features, n_rows) and labels, read with csv and float()."""
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
    header, *rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    columns = [i for i, name in enumerate(header) if name != target and name not in skip]
    number = {"": math.nan, "NA": math.nan}
    values = [
        [number[row[i]] if row[i] in number else float(row[i]) for row in rows] for i in columns
    ]
    labels = [row[header.index(target)] for row in rows]
    return [header[i] for i in columns], np.array(values), labels


def assert_holds(store: Path, names: list[str], values: np.ndarray, labels: list[str]) -> None:
    manifest = read_manifest(store)
    group = zarr.open_group(store, mode="r")
    positions = group["positions"][:].astype(int)
    p = len(names)
    keys = derive_array(key_of(Purpose.STORE_ORDER), np.arange(p))
    np.testing.assert_array_equal(positions, np.argsort(keys, kind="stable"))
    stored = values[positions]
    np.testing.assert_array_equal(group["values"][:], stored)
    codes = np.empty(stored.shape, manifest.code_dtype)
    facts = code_columns(np.ascontiguousarray(stored), codes)
    np.testing.assert_array_equal(group["codes"][:], codes)
    np.testing.assert_array_equal(group["n_missing"][:], facts.n_missing)
    np.testing.assert_array_equal(group["n_codes"][:], facts.n_codes)
    np.testing.assert_array_equal(group["exact"][:], facts.exact)
    assert manifest.n_missing_cells == np.isnan(values).sum()
    assert manifest.n_missing_features == np.isnan(values).any(axis=1).sum()
    assert [manifest.classes[c] for c in group["target"][:]] == labels
    assert manifest.class_counts == tuple(labels.count(c) for c in manifest.classes)
    assert list(Names(store, manifest, "names")) == names
    for name in manifest.small_arrays:
        np.testing.assert_array_equal(group[name][:], read_array(store, manifest, name))
    raw = b"".join((store / chunk_file(i)).read_bytes() for i in range(manifest.n_chunks))
    assert raw[: codes.nbytes] == codes.tobytes()
    assert set(raw[codes.nbytes :]) <= {255}
    Store.open(store).verify()


@given(
    st.integers(1, 9),
    st.integers(2, 40),
    st.sampled_from([b"\n", b"\r\n"]),
    st.sampled_from(["float32", "float64"]),
    st.integers(0, 2**32),
)
@examples(12)
def test_a_store_holds_the_table(tmp_path_factory, p, n, end, dtype, seed):
    rng = random.Random(seed)
    folder = tmp_path_factory.mktemp("t")
    digits = 1 if dtype == "float64" else 0
    cells = [
        [rng.choice(["", "NA", f"{rng.gauss(0, 9):.{digits}f}"]) for _ in range(p)]
        for _ in range(n)
    ]
    cells[0][0] = "0.1" if dtype == "float64" else "2"
    lines = [",".join([*(f"é{j}" for j in range(p)), "y"])]
    lines += [",".join([*row, "ba"[i % 2]]) for i, row in enumerate(cells)]
    path = folder / "t.csv"
    path.write_bytes(end.join(line.encode() for line in lines))
    manifest = ingest_table(path, folder / "t.zarr")
    assert manifest.values_dtype == dtype
    assert manifest == read_manifest(folder / "t.zarr")
    assert_holds(folder / "t.zarr", *twin(path, "y"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["arcene", "madelon", "tox_171", "isolet"])
def test_real_tables(tmp_path, name):
    path = data_file(f"{name}.csv.gz")
    ingest_table(path, tmp_path / "t.zarr", IngestOptions(memory_mb=512))
    with gzip.open(path, "rt") as file:
        target = file.readline().rstrip("\r\n").split(",")[-1].strip('"')
    assert_holds(tmp_path / "t.zarr", *twin(path, target))


def test_equal_bytes_give_an_equal_store_and_other_bytes_another(tmp_path):
    path = make(tmp_path, "a,b,y\n1,2,u\n3,4,v\n")
    first = ingest_table(path, tmp_path / "1.zarr").fingerprint
    assert ingest_table(path, tmp_path / "2.zarr").fingerprint == first
    make(tmp_path, "a,b,y\n1,2,u\n3,5,v\n")
    assert ingest_table(path, tmp_path / "3.zarr").fingerprint != first


def test_roles_row_ids_and_class_order(tmp_path):
    path = make(tmp_path, "\ufeffid , y,a,junk,b\nr1,10,1,x,2\n r2 ,9,3,,4\nr3,-1.5,5,z,6\n")
    asked = {"target": "y", "row_ids": "id", "ignore": ["junk"], "task": "classification"}
    options = IngestOptions(**asked, text=TextForm(separator=","))
    manifest = ingest_table(path, tmp_path / "t.zarr", options)
    assert manifest.classes == ("-1.5", "9", "10")
    assert (manifest.target_name, manifest.row_id_name) == ("y", "id")
    assert list(Names(tmp_path / "t.zarr", manifest, "row_ids")) == ["r1", "r2", "r3"]
    assert list(Names(tmp_path / "t.zarr", manifest, "names")) == ["a", "b"]
    assert manifest.inferred == {}


def test_defaults_last_column_numbered_rows_text_order(tmp_path):
    path = make(tmp_path, "a,y\n1,10\n2,9\n3,x\n")
    manifest = ingest_table(path, tmp_path / "t.zarr")
    assert manifest.inferred.pop("task") == "classification: its values are texts"
    assert manifest.inferred == {"target": "last column", "separator": "comma"}
    assert manifest.classes == ("10", "9", "x")
    assert list(Names(tmp_path / "t.zarr", manifest, "row_ids")) == ["1", "2", "3"]


def test_gzip_of_several_members_gives_the_same_table(tmp_path):
    text = "a,b,y\n" + "".join(f"{i},{i * 7 % 5},{'uv'[i % 2]}\n" for i in range(50_000))
    plain = make(tmp_path, text)
    packed = tmp_path / "t.csv.gz"
    half = len(text) // 2 + 3
    packed.write_bytes(gzip.compress(text[:half].encode()) + gzip.compress(text[half:].encode()))
    one = ingest_table(plain, tmp_path / "1.zarr")
    two = ingest_table(packed, tmp_path / "2.zarr")
    assert one.checksums == two.checksums
    assert two.source["format"] == "csv.gz"


def test_without_values_each_code_keeps_its_range(tmp_path):
    rows = "".join(f"{i % 300},{'uv'[i % 2]}\n" for i in range(600))
    path = make(tmp_path, "a,y\n" + rows)
    manifest = ingest_table(path, tmp_path / "t.zarr", IngestOptions(keep_values=False))
    group = zarr.open_group(tmp_path / "t.zarr", mode="r")
    assert manifest.values_dtype is None
    assert "values" not in group
    codes, column = group["codes"][0], np.arange(600) % 300
    lows, highs = group["code_lows"][0], group["code_highs"][0]
    for code in range(int(group["n_codes"][0])):
        mine = column[codes == code]
        assert (lows[code], highs[code]) == (mine.min(), mine.max())
    assert not group["exact"][0]


def test_wide_codes_tell_more_values_apart(tmp_path):
    rows = "".join(f"{i},{'uv'[i % 2]}\n" for i in range(1000))
    path = make(tmp_path, "a,y\n" + rows)
    manifest = ingest_table(path, tmp_path / "t.zarr", IngestOptions(code_dtype="uint16"))
    group = zarr.open_group(tmp_path / "t.zarr", mode="r")
    np.testing.assert_array_equal(group["codes"][0], np.arange(1000))
    assert manifest.missing_code == group["codes"].fill_value == 65535


def test_texts_are_found_by_name(tmp_path):
    path = make(tmp_path, ",".join([f"n{i}" for i in range(70_000)] + ["y"]) + "\n")
    with path.open("a") as file:
        for label in "uv":
            file.write("1," * 70_000 + label + "\n")
    manifest = ingest_table(path, tmp_path / "t.zarr")
    names = Names(tmp_path / "t.zarr", manifest)
    found = names.find(["n69999", "absent", "n0", "n65536", "n0"])
    assert found.tolist() == [69999, -1, 0, 65536, 0]
    assert (len(names), names[65536]) == (70_000, "n65536")
    with pytest.raises(IndexError):
        names[70_000]


# What of a table is often a mistake is said, or refused where it spoils the target.


N = 24
CLASSES = ["a", "b"] * (N // 2)


def ingested(folder, columns, *options, refuses=False):
    """Write a table and ingest it; return all that was said. It must be refused, or not."""
    rows = [columns, *zip(*columns.values(), strict=True)]
    (folder / "t.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    given = ["ingest", str(folder / "t.csv"), str(folder / "t.zarr"), "--memory-mb", "4000"]
    done = CliRunner().invoke(cli, [*given, *options])
    said = done.output + str(done.exception or "")
    assert bool(done.exit_code) == refuses, said
    return said


def missing(*words):
    return [text for word in ("", "NA", "nan", *words) for text in ("--missing", word)]


def numbers(seed=0):
    return np.random.default_rng(seed).standard_normal(N).round(3).tolist()


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "counter"])
def test_an_index_of_a_data_frame_is_pointed_out(tmp_path, name):
    """Of a column without a name one that neither counts from 0 or 1 nor holds texts."""
    index = range(N) if name == "counter" else range(2, N + 2)
    columns = {name: index, "x": numbers(), "y": CLASSES}
    assert "note: the first column" in ingested(tmp_path, columns)
    columns[name] = range(N)
    assert "note:" not in ingested(tmp_path, columns, "--ignore", name, "--overwrite")


@pytest.mark.parametrize("name", ["", '""', "Unnamed: 0"])
@pytest.mark.parametrize("first", [0, 1, "s"])
def test_a_first_column_without_a_name_holds_the_row_ids(tmp_path, name, first):
    """As R's write.csv and pandas' to_csv write row names; pandas reads '' as 'Unnamed: 0'."""
    ids = [f"s{i}" if first == "s" else str(first + i) for i in range(N)]
    columns = {name: ids, "x": numbers(), "y": CLASSES, "id": ids}
    said = ingested(tmp_path, columns, "--target", "y", "--ignore", "id")
    assert "row ids: first column, which has no name" in said
    assert f"{N} rows x 1 features" in said
    assert "note:" not in said
    assert list(Store.open(tmp_path / "t.zarr").row_ids) == ids
    more = ("--target", "y", "--overwrite")
    said = ingested(tmp_path, columns, *more, "--row-ids", "id")
    assert f"{N} rows x 1 features" in said
    assert "index: first column, which has no name, left out" in said
    named = name.strip('"')
    said = ingested(tmp_path, columns, *more, "--ignore", f"id,{named}" if named else "id")
    assert ("no name" in said) == (not named)
    ingested(tmp_path, columns, *more, "--ignore", "id", "--dry-run")


def test_a_table_of_quoted_fields_between_spaces_is_read_as_r_writes_it(tmp_path):
    (tmp_path / "t.txt").write_text('"a" "b" "y"\n"1" "3" "u"\n"2" "4" "v"\n')
    manifest = srs_ooc.ingest(tmp_path / "t.txt", tmp_path / "t.zarr")
    assert (manifest.n_features, manifest.inferred["separator"]) == (2, "space")


def days(form, n=N):
    return [form.format(1 + i) for i in range(n)]


Y = {"x": numbers(), "y": CLASSES}
UNKNOWN = {"x": numbers(), "y": [*numbers(1)[1:], "unknown"]}
WORDS = {"x": numbers(), "y": [*CLASSES[2:], "?", "NULL"]}
BESIDE = {"x": ["low", "high", "NULL", "X"] * 6, "z": numbers(), "y": [*CLASSES[2:], "?", "X"]}
TEXTS = {f"text{i}": [f"words {i} {j}" for j in range(N)] for i in range(3)} | Y
NO_FEATURES = {"day": days("2024-03-{:02d}"), "until": days("2024-03-{:02d}"), "id": days("p{}")}
MANY_DAYS = [str(day) for day in np.arange("2024-01-01", "2024-10-01", dtype="M8[D]")] * 2
OFTEN = {"day": MANY_DAYS, "x": np.arange(548), "y": ["a", "b"] * 274}
NINE = "-9"
DIED = {"x": numbers(), "days": range(1, 25), "died": ["0", "1", NINE] * 8}
GENES = {"gene": days("g{}"), "s1": numbers(1), "s2": numbers(2)}
THREE = {"x": numbers(), "y": [1, 2, 3] * 8}
FEW, SIX = ({name: cells[:n] for name, cells in {"z": numbers(1), **Y}.items()} for n in (4, 6))
CELLS = "Perhaps '-9' stands for missing values: empty such cells, or, of a text table"
REFUSED = {
    "ids": (
        {"": ["a", *days("s{}", N - 2), "a"]} | Y,
        "",
        "distinct row ids, found 'a' at 1 and 24",
    ),
    "classes": (UNKNOWN, "", "24 of 24 classes have fewer", "'unknown' stands for missing values"),
    "words": (WORDS, "", "Perhaps '?', 'NULL' stand for missing values"),
    "words beside": (BESIDE, "--missing X", "say --missing X --missing '?'. --min"),
    "texts": (TEXTS, "", "'text0'", "'text1'", "'text2'", "--orient features"),
    "no features": (
        NO_FEATURES | Y,
        "",
        "found what looks like dates ('2024-03-01'). The same holds of column",
        "Leave dates out with --ignore NAME,NAME, or turn such columns into numbers",
        "column 'id': expected a number, or a category that occurs more than once",
        *(f"column '{name}'" for name in NO_FEATURES),
    ),
    "many dates": (
        OFTEN,
        "",
        "expected numbers or categories, found what looks like dates ('2024-",
    ),
    "a date": (
        {"day": [*range(N - 1), "2024-01-01"]} | Y,
        "",
        "It looks like a date: turn such col",
    ),
    "one -9": ({"x": numbers(), "y": [*["1", "2"] * 11, "1", NINE]}, "", CELLS),
    "third event": (DIED, "--time days --event died", CELLS),
}
"""Tables, options, and what the refusal says."""


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_most_likely_a_mistake_is_refused(tmp_path, what):
    columns, options, *texts = REFUSED[what]
    said = ingested(tmp_path, columns, *options.split(), refuses=True)
    assert [text for text in texts if text not in said] == []
    if what == "no features":
        assert "row-ids" not in said.partition("column 'id'")[0]


SAID = {
    "nothing": ({"n": [3, 1, 2] * 8} | Y, "", "rows of each class: 'a' 12, 'b' 12"),
    "number": (UNKNOWN, shlex.join(missing("unknown")), "(regression)", "note:"),
    "words": (WORDS, "--min-class-rows 1", "'?' 1", "note: '?', 'NULL' stand for missing values"),
    "words beside": (
        BESIDE,
        "--missing X --min-class-rows 1",
        "note:",
        "say --missing X --missing '?', if",
        "say --missing X --missing NULL, if",
    ),
    "texts": (TEXTS, "--ignore text0,text1,text2"),
    "strands": ({"strand": ["+", "-"] * 12} | Y, ""),
    "constant": (
        {f"c{i}": [1] * N for i in range(3)} | {"y": CLASSES},
        "",
        "note: All features are",
    ),
    "few ways": (FEW, "", "note: 4 rows can have these targets in 6 ways only"),
    "enough ways": (SIX, ""),
    "steps": (
        THREE,
        "",
        "note: the 3 whole numbers of the target were taken for classes",
        "If they are steps of a score or a dose, say --task regression",
    ),
    "regression": (THREE, "--task regression"),
    "classification": (THREE, "--task classification"),
    "two numbers": ({"x": numbers(), "y": [1, 2] * 12}, ""),
    "three texts": ({"x": numbers(), "y": ["a", "b", "c"] * 8}, ""),
    "dates": (
        {"day": [f"2024-01-{1 + i % 5:02d}" for i in range(N)]} | Y,
        "",
        "note: 'day' holds da",
    ),
    "genes": (GENES, "--row-ids gene", "--orient features", "note:"),
}
"""Tables, options, and what is said; where no note is named there is none."""


@pytest.mark.parametrize("what", SAID)
def test_what_may_be_a_mistake_is_pointed_out(tmp_path, what):
    columns, options, *texts = SAID[what]
    said = ingested(tmp_path, columns, *shlex.split(options))
    assert [text for text in texts if text not in said] == []
    assert ("note:" in said) == any("note:" in text for text in texts)


@pytest.mark.parametrize(
    "day", ["2024-1-{}", "2024/01/{} 10:00", "{}.01.2024", "{}/1/24", "{}-Jan-2024", "{}jan2024"]
)
def test_dates_are_known_however_written(tmp_path, day):
    assert "looks like dates" in ingested(tmp_path, {"d": days(day)} | Y, refuses=True)


@pytest.mark.parametrize("word", ["missing", "unknown", "n/a", "?", "None", "NULL"])
def test_texts_for_missing_among_categories_are_pointed_out(tmp_path, word):
    table = {"stage": ["I", "II", word] * 8, "x": numbers(), "y": CLASSES}
    said = ingested(tmp_path, table)
    assert f"note: 'stage': {word!r} stands for missing values" in said
    said = ingested(tmp_path, table, *missing(word), "--overwrite")
    assert "note:" not in said
    assert "missing: 8 cells in 1 feature" in said


@pytest.mark.parametrize("number", ["-999", "-99", "999", "9999"])
def test_numbers_for_missing_are_pointed_out(tmp_path, number):
    some = {f"x{i}": [*numbers(i)[5:], *[number] * 5] for i in range(7)}
    table = {**some, "whole": [*range(30, 49), *[number] * 5], "z": numbers(), "y": CLASSES}
    said = ingested(tmp_path, table)
    found = re.search("note: 8 columns (.*): far from all other numbers, '(.*?)' stands", said)
    assert found[2] == number
    assert found[1].count("'") == 10
    said = ingested(tmp_path, table, *missing(number), "--overwrite")
    assert "note:" not in said
    assert "missing: 40 cells in 8 features" in said


CODED = {
    "classes": ["1", "2", NINE] * 8,
    "number": [*map(str, numbers()[4:]), *[NINE] * 4],
    "days": ["999", *map(str, range(1, 22)), "999", "999"],
    "age": [NINE if i % 5 == 0 else str(20 + 2 * i) for i in range(N)],
    "site": ["A", "B", NINE] * 8,
    "died": ["1", NINE] * 12,
    "many": [NINE if i % 5 == 0 else str(i % 4) for i in range(N)],
}
ROLES = {
    "classes": ["--target"], "number": ["--target"], "age": ["--target"], "many": ["--covariates"],
    "site": ["--covariates"], "days": ["--event", "seen=1", "--time"],
}  # fmt: skip


def note_of(said: str, name: str, number: str) -> re.Match[str] | None:
    stands = rf"'{number}' stands for missing values"
    return re.search(rf"note: \d columns? \(.*'{name}'.*\): far from all .*{stands}", said)


@pytest.mark.parametrize("name", ROLES)
def test_numbers_for_missing_are_pointed_out_of_rows_too(tmp_path, name):
    number = "999" if name == "days" else NINE
    table = {"x": numbers(), name: CODED[name], "seen": [0, 1] * 12, "y": CLASSES}
    given = [*ROLES[name], name, "--ignore", "seen,y"]
    if name == "days":
        given[-1] = "y"
    if "--covariates" in given:
        given[-1:] = ["seen", "--target", "y"]
    assert note_of(ingested(tmp_path, table, *given), name, number)
    said = ingested(tmp_path, table, *given, *missing(number), "--overwrite")
    assert "far from all" not in said


def test_a_number_for_an_event_that_is_not_known_is_pointed_out(tmp_path):
    table = {"x": numbers(), "days": range(1, 25), "died": CODED["died"]}
    said = ingested(tmp_path, table, "--time", "days", "--event", "died=1")
    assert note_of(said, "died", NINE)


@pytest.mark.parametrize("suffix", ["frame", "parquet"])
def test_of_other_formats_the_note_on_a_number_for_missing_names_what_works(
    tmp_path, caplog, suffix
):
    frame = pandas.DataFrame({"x": numbers(), "ill": np.array(CODED["classes"], int)})
    frame["age"] = np.array(CODED["age"], float)

    def ingest() -> int:
        caplog.clear()
        table, path = frame, tmp_path / f"t.{suffix}"
        if suffix == "parquet":
            frame.to_parquet(path)
        how = {"target": "ill", "covariates": ["age"], "overwrite": True}
        table = table if suffix == "frame" else path
        return srs_ooc.ingest(table, tmp_path / "t.zarr", **how).n_rows

    assert ingest() == N
    assert "2 columns ('age', 'ill'): far from all other numbers, '-9' stands" in caplog.text
    assert "missing, as by `frame.replace([-9.0, '-9'], float('nan'))`" in caplog.text
    assert "empty such cells" not in caplog.text
    frame = frame.replace(-9, float("nan"))
    assert ingest() == 16
    assert "far from all" not in caplog.text


HONEST = {
    "one alone": [*range(1, N), 999],
    "near the others": [*range(-990, -990 + 20), *[-999] * 4],
    "two values": [0, 999] * (N // 2),
    "a score to 99": [*range(80, 100), 99, 99, 99, 99],
    "far, and no nines": [*range(1, N - 4), *[500] * 5],
    "a long tail": [*range(1, 21), 50, 60, 99, 99],
    "a score from -9": [*[-9] * 4, *range(-8, 12)],
}


@pytest.mark.parametrize("kind", HONEST)
def test_honest_numbers_get_no_note(tmp_path, kind):
    order = np.random.default_rng(5).permutation(N)
    values = np.array(HONEST[kind])[order]
    assert "note:" not in ingested(tmp_path, {"z": numbers(), "x": values, "y": CLASSES})


def test_a_workbook_and_latin_1_say_what_to_do(tmp_path):
    (tmp_path / "t.xlsx").write_bytes(b"PK\x03\x04" + bytes(26) + b"[Content_Types].xml")
    (tmp_path / "l.csv").write_bytes("größe,y\n1,a\n2,b\n".encode("latin-1"))
    for name, expected in (("t.xlsx", "a workbook. Save the sheet"), ("l.csv", "iconv -f latin1")):
        done = CliRunner().invoke(cli, ["ingest", str(tmp_path / name), str(tmp_path / "t.zarr")])
        assert expected in str(done.exception)


def test_a_table_without_a_store_gets_the_command_to_copy(tmp_path):
    (tmp_path / "a b.csv").write_text("x,y\n")
    done = CliRunner().invoke(cli, ["ingest", str(tmp_path / "a b.csv")])
    assert f"srs-ooc ingest '{tmp_path}/a b.csv' '{tmp_path}/a b.zarr'" in str(done.exception)


@given(st.dictionaries(st.text("abc?", min_size=1, max_size=3), st.integers(1, 30), min_size=1))
def test_classes_of_one_row_are_refused_only_in_tables_of_some_rows(rows):
    if min(rows.values()) == 1 and sum(rows.values()) >= FEW_ROWS:
        with pytest.raises(InputError, match="expected classes of 2 rows or more"):
            check_counts("t.csv", rows)
    else:
        check_counts("t.csv", rows)
    check_counts("t.csv", rows, 1)


@pytest.mark.parametrize("name", ["ignore", "covariates", "strata"])
def test_a_name_does_for_a_list_of_one(tmp_path, name):
    frame = pandas.DataFrame({"n": ["u", "v"] * 12, "x": numbers(), "y": CLASSES})
    one = srs_ooc.ingest(frame, tmp_path / "t.zarr", **{name: "n"})
    assert (one.n_features, one.target_name) == (1, "y")
    assert one == srs_ooc.ingest(frame, tmp_path / "t.zarr", **{name: ("n",)}, overwrite=True)


@pytest.mark.parametrize("what", ["target", "weights", "groups", "row_ids"])
def test_what_each_row_has_may_be_a_tuple(tmp_path, what):
    values, items = np.arange(24.0).reshape(8, 3) % 7, [1, 2, 1, 2, 2, 1, 1, 2]
    given = {"target": items, what: list("abcdefgh") if what == "row_ids" else items}
    made = []
    for kind in (list, tuple):
        given[what] = kind(given[what])
        made.append(srs_ooc.ingest(values, tmp_path / f"{kind.__name__}.zarr", **given))
    assert made[0].checksums == made[1].checksums
    assert made[0].row_columns == made[1].row_columns


def test_covariates_may_be_a_list_of_names(tmp_path):
    frame = pandas.DataFrame({"n": ["u", "v"] * 12, "x": numbers(), "z": numbers(1), "y": CLASSES})
    found = srs_ooc.ingest(frame, tmp_path / "t.zarr", covariates=["n", "x"])
    assert found.row_columns == {"covariates": ["n", "x"]}


def test_whole_numbers_taken_for_classes_are_told_with_the_remedy_python_has(tmp_path, caplog):
    frame = pandas.DataFrame({"x": numbers(), "y": [0, 1, 2, 3] * 6})
    srs_ooc.ingest(frame, tmp_path / "t.zarr")
    said = "t.zarr: the 4 whole numbers of the target were taken for classes"
    assert said in caplog.text
    assert 'say task="regression"' in caplog.text


def test_python_logs_what_may_be_a_mistake(tmp_path, caplog):
    frame = pandas.DataFrame({"n": range(N), "code": ["0", "1", "2", "?"] * 6, "x": numbers()})
    srs_ooc.ingest(frame, tmp_path / "t.zarr", target=CLASSES)
    assert "the first column, 'n', counts up row by row" in caplog.text
    assert "leave it out: ignore 'n'" in caplog.text
    assert "'code': '?' stands for missing values: make such cells missing, as by" in caplog.text


HEADERS = ["0.13,-0.2,0.64,y", "400,402.5,405,y", "405,402.5,400,y", "0.13,b,0.64,y"]


@pytest.mark.parametrize("names", HEADERS)
def test_a_header_that_looks_like_cells_is_named(tmp_path, names):
    rows = "".join(f"{i % 7},{i % 5},{i % 3},{'ab'[i % 2]}\n" for i in range(30))
    (tmp_path / "t.csv").write_text(f"{names}\n{rows}")
    paths = [str(tmp_path / name) for name in ("t.csv", "t.zarr")]
    said = CliRunner().invoke(cli, ["ingest", *paths])
    assert (said.exit_code, "say --no-header" in said.output) == (0, names == HEADERS[0])


@pytest.mark.filterwarnings("error")
def test_the_largest_numbers_are_looked_at_without_a_warning(tmp_path):
    rows = [[1.7e308, -999.0], [-1.7e308, 1.7e308], [1.0, -1.7e308], [2.0, -999.0]]
    srs_ooc.ingest(np.tile(rows, (6, 1)), tmp_path / "t.zarr", target=CLASSES)


@pytest.mark.parametrize("word", ["missing", "<0.1", "> 25", "LOD", "<LLOQ"])
def test_words_for_missing_among_numbers_are_said_to_be_such(tmp_path, word):
    (tmp_path / "t.csv").write_text(f"x,y\n{word},a\n1,b\n")
    with pytest.raises(InputError, match="stands for a missing value, name it with --missing,"):
        srs_ooc.ingest(tmp_path / "t.csv", tmp_path / "t.zarr")


@pytest.mark.parametrize("suffix", ["npy", "csv"])
def test_the_store_does_not_depend_on_threads_and_cap(tmp_path, suffix):
    """Rows to columns, coding and compressing are shared by threads, as far as there is room."""
    values = np.random.default_rng(2).standard_normal((30, 9000)).astype(np.float32)
    target = np.arange(30) % 2
    table, given = tmp_path / f"t.{suffix}", dict[str, object](target=target)
    if suffix == "npy":
        np.save(table, values)
    else:
        header = ",".join([*(f"f{j}" for j in range(9000)), "y"])
        whole = np.column_stack([values, target])
        np.savetxt(table, whole, "%.9g", ",", header=header, comments="")
        given = {"target": "y"}
    found = []
    for threads, memory_mb in ((1, 512), (5, 512), (2, 90)):
        store = tmp_path / f"{threads}.zarr"
        srs_ooc.ingest(table, store, threads=threads, memory_mb=memory_mb, **given)
        files = sorted(path for path in store.rglob("*") if path.is_file())
        found.append({path.relative_to(store): path.read_bytes() for path in files})
    assert found[0] == found[1] == found[2]
    assert len(found[0]) > 20


# Names that repeat: refused, or numbered where that is asked.

REPEATED = ["a", "b", "a", "a-1", "a"]
NUMBERED = ["a", "b", "a-2", "a-1", "a-3"]
VALUES = np.arange(1.0, 101.0).reshape(20, 5) ** 2
LABELS = ["uv"[i % 2] for i in range(20)]


def unique_of(names: list[str]) -> list[str]:
    """What anndata.utils.make_index_unique makes of names, step by step."""
    taken, counts, out = set(names), dict.fromkeys(names, 0), []
    for name in names:
        if counts[name]:
            while f"{name}-{counts[name]}" in taken:
                counts[name] += 1
            out.append(f"{name}-{counts[name]}")
            taken.add(out[-1])
        else:
            out.append(name)
        counts[name] += 1
    return out


@examples(100)
@given(st.lists(st.sampled_from(["a", "b", "a-1", "a-2", "a-1-1", "b-1", ""]), max_size=12))
def test_repeated_names_are_numbered_as_anndata_does_and_then_distinct(names):
    numbered = list(formats.Names.numbered(names))
    assert numbered == unique_of(names)
    assert len(set(numbered)) == len(names)


def table_with_repeated_names(folder, kind):
    """A table whose names repeat, by the last of its options with the values beside."""
    lines = [",".join(map(str, row)) for row in VALUES.tolist()]
    options = {"target": LABELS, "rename_repeated": True}
    if kind == "csv":
        text = "".join(f"{line},{label}\n" for line, label in zip(lines, LABELS, strict=True))
        (folder / "t.csv").write_text(",".join([*REPEATED, "y"]) + "\n" + text)
        return folder / "t.csv", {"rename_repeated": True}
    if kind == "array":
        return VALUES, options | {"names": REPEATED}
    if kind == "names":
        np.save(folder / "t.npy", VALUES)
        (folder / "names.txt").write_text("\n".join(REPEATED) + "\n")
        return folder / "t.npy", options | {"names": str(folder / "names.txt")}
    if kind == "pandas":
        return pandas.DataFrame(VALUES, columns=REPEATED), options
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.Table.from_arrays([*map(pyarrow.array, VALUES.T)], names=REPEATED)
    if kind == "arrow":
        return table, options
    if kind == "parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table, folder / "t.parquet")
    else:
        pytest.importorskip("pyarrow.feather").write_feather(table, folder / "t.feather")
    return folder / f"t.{kind}", options


KINDS_OF_NAMES = ["csv", "array", "names", "pandas", "arrow", "parquet", "feather"]


@pytest.mark.parametrize("kind", KINDS_OF_NAMES)
def test_columns_whose_names_repeat_are_refused_or_renamed(tmp_path, kind):
    table, options = table_with_repeated_names(tmp_path, kind)
    refused = options | {"rename_repeated": False}
    with pytest.raises(InputError, match=r"distinct .* 'a' at 1 and 3.*rename_repeated of ingest"):
        srs_ooc.ingest(table, str(tmp_path / "no.zarr"), **refused)
    manifest = srs_ooc.ingest(table, str(tmp_path / "t.zarr"), **options)
    assert manifest.inferred["renamed"] == "2 columns of repeated names, to NAME-1, ..."
    store = Store.open(tmp_path / "t.zarr")
    assert list(store.names) == NUMBERED
    assert np.array_equal(values_of(tmp_path / "t.zarr"), VALUES.T)


def test_names_that_do_not_repeat_make_the_same_store_with_the_option(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,y\n" + "1,2.5,u\n3,4,v\n" * 9)
    plain = srs_ooc.ingest(tmp_path / "t.csv", tmp_path / "a.zarr")
    renamed = srs_ooc.ingest(tmp_path / "t.csv", tmp_path / "b.zarr", rename_repeated=True)
    assert plain.fingerprint == renamed.fingerprint


def test_a_role_takes_the_renamed_column_that_it_names(tmp_path):
    rows = "".join(f"{i},{i * i},{'uv'[i % 2]}\n" for i in range(20))
    (tmp_path / "t.csv").write_text("a,a,y\n" + rows)
    for target, left in (("a", ["a-1", "y"]), ("a-1", ["a", "y"])):
        store = tmp_path / f"{target}.zarr"
        srs_ooc.ingest(tmp_path / "t.csv", str(store), target=target, rename_repeated=True)
        assert list(Store.open(store).names) == left


def test_pieces_and_appended_rows_have_their_repeated_names_renamed(tmp_path):
    rows = [f"{i},{i * i},{'uv'[i % 2]}" for i in range(20)]
    (tmp_path / "t.csv").write_text("\n".join(["a,a,y", *rows]) + "\n")
    (tmp_path / "more.csv").write_text("\n".join(["b,b", *(f"{i},{i}" for i in range(20))]) + "\n")
    pieces = [tmp_path / "t.csv", tmp_path / "more.csv"]
    with pytest.raises(InputError, match="rename_repeated of ingest"):
        srs_ooc.ingest(pieces, str(tmp_path / "no.zarr"), target="y")
    both = srs_ooc.ingest(pieces, str(tmp_path / "p.zarr"), target="y", rename_repeated=True)
    assert list(Store.open(tmp_path / "p.zarr").names) == ["a", "a-1", "b", "b-1"]
    assert "renamed" in both.inferred
    srs_ooc.ingest(pieces[0], str(tmp_path / "t.zarr"), rename_repeated=True)
    more = {"append_rows": str(tmp_path / "t.zarr"), "rename_repeated": True}
    appended = srs_ooc.ingest(pieces[0], str(tmp_path / "a.zarr"), **more)
    assert appended.n_rows == 40
    assert list(Store.open(tmp_path / "a.zarr").names) == ["a", "a-1"]
