"""What of a table is often a mistake is said, or refused where it spoils the target."""

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import srs_ooc
from srs_ooc.base.errors import InputError
from srs_ooc.cli import cli
from srs_ooc.ingestion.rows import FEW_ROWS, check_counts

N = 24
CLASSES = ["a", "b"] * (N // 2)


def ingested(folder, columns, *options):
    """Write a table, ingest it, and return the exit code and all that was said."""
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    given = ["ingest", str(folder / "t.csv"), str(folder / "t.zarr"), "--memory-mb", "4000"]
    done = CliRunner().invoke(cli, [*given, *options])
    return done.exit_code, done.output + str(done.exception or "")


def numbers(seed=0):
    return np.random.default_rng(seed).standard_normal(N).round(3).tolist()


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "counter"])
def test_an_index_of_a_data_frame_is_pointed_out(tmp_path, name):
    code, said = ingested(tmp_path, {name: range(N), "x": numbers(), "y": CLASSES})
    assert code == 0
    assert "note: the first column" in said
    code, said = ingested(
        tmp_path, {name: range(N), "x": numbers(), "y": CLASSES}, "--ignore", name, "--overwrite"
    )
    assert code == 0
    assert "note:" not in said


def test_a_table_with_nothing_unusual_gets_no_note(tmp_path):
    _, said = ingested(tmp_path, {"n": [3, 1, 2] * 8, "x": numbers(), "y": CLASSES})
    assert "note:" not in said
    assert "rows of each class: 'a' 12, 'b' 12" in said


def test_a_number_with_an_unknown_cell_is_not_a_class_a_row(tmp_path):
    y = [*numbers(1)[1:], "unknown"]
    code, said = ingested(tmp_path, {"x": numbers(), "y": y})
    assert code
    assert "24 of 24 classes have fewer" in said
    assert "If the target is a number, 'unknown' stands for missing values" in said
    words = ("", "NA", "nan", "unknown")
    options = [text for word in words for text in ("--missing", word)]
    code, said = ingested(tmp_path, {"x": numbers(), "y": y}, *options)
    assert code == 0
    assert "(regression)" in said


def test_words_for_missing_are_not_taken_for_classes_unasked(tmp_path):
    table = {"x": numbers(), "y": [*CLASSES[2:], "?", "NULL"]}
    code, said = ingested(tmp_path, table)
    assert code
    assert "Perhaps '?', 'NULL' stand for missing values" in said
    code, said = ingested(tmp_path, table, "--min-class-rows", "1")
    assert code == 0
    assert "'?' 1" in said
    assert "note: '?', 'NULL' stand for missing values" in said


def test_all_columns_of_texts_are_named_at_once(tmp_path):
    texts = {f"text{i}": [f"words {i} {j}" for j in range(N)] for i in range(3)}
    code, said = ingested(tmp_path, {**texts, "x": numbers(), "y": CLASSES})
    assert code
    assert all(f"'text{i}'" in said for i in range(3))
    assert "--orient features" in said
    code, _ = ingested(
        tmp_path, {**texts, "x": numbers(), "y": CLASSES}, "--ignore", "text0,text1,text2"
    )
    assert code == 0


def test_dates_are_pointed_out(tmp_path):
    days = [f"2024-01-{1 + i % 5:02d}" for i in range(N)]
    _, said = ingested(tmp_path, {"day": days, "x": numbers(), "y": CLASSES})
    assert "note: 'day' holds dates" in said


def test_genes_as_rows_that_become_a_regression_are_pointed_out(tmp_path):
    table = {"gene": [f"g{i}" for i in range(N)], "s1": numbers(1), "s2": numbers(2)}
    code, said = ingested(tmp_path, table, "--row-ids", "gene")
    assert code == 0
    assert "--orient features" in said


def test_a_workbook_and_latin_1_say_what_to_do(tmp_path):
    (tmp_path / "t.xlsx").write_bytes(b"PK\x03\x04 and so on")
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


def test_python_logs_what_may_be_a_mistake(tmp_path, caplog):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"n": range(N), "code": ["0", "1", "2", "?"] * 6, "x": numbers()})
    srs_ooc.ingest(frame, tmp_path / "t.zarr", target=CLASSES)
    assert "the first column, 'n', counts up row by row" in caplog.text
    assert "leave it out: ignore 'n'" in caplog.text
    assert "'code' holds numbers and texts such as '?'" in caplog.text
