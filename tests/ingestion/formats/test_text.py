"""Text tables of every dialect and compression become the same store as plain CSV."""

import bz2
import gzip
import importlib
import io
import lzma
import math
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import zarr
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from srs_ooc.base.errors import BudgetError, InputError, UsageError
from srs_ooc.ingestion.csv import TARGET, TableReader, TextForm, find_separator
from srs_ooc.ingestion.ingest import ingest_table
from srs_ooc.ingestion.ingest_options import IngestOptions
from srs_ooc.ingestion.sources import decoded, decoder_of
from srs_ooc.store.arrays import Names
from srs_ooc.store.manifest import Manifest

PLAIN = "a b,c,y\n1.5,2,u\n-3,,v\n4e3,6.25,u\n"


def ingest(folder, text, form=None, name="t.txt", **options) -> tuple[Manifest, np.ndarray, list]:
    """Ingest a text; return the manifest, the values in source order and the feature names."""
    path, store = folder / name, folder / f"{len(list(folder.iterdir()))}.zarr"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    manifest = ingest_table(path, store, IngestOptions(text=form or TextForm(), **options))
    group = zarr.open_group(store, mode="r")
    values = np.empty(group["values"].shape)
    values[group["positions"][:].astype(int)] = group["values"][:]
    return manifest, values, list(Names(store, manifest, "names"))


@pytest.mark.parametrize("mark", [",", "\t", ";", "|"])
def test_the_separator_is_found_and_noted(tmp_path, mark):
    manifest, values, names = ingest(tmp_path, PLAIN.replace(",", mark))
    assert names == ["a b", "c"]
    np.testing.assert_array_equal(values, [[1.5, -3, 4000], [2, math.nan, 6.25]])
    named = {",": "comma", "\t": "tab", ";": "semicolon", "|": "pipe"}
    assert manifest.inferred == {
        "target": "last column",
        "separator": named[mark],
        "task": "classification: its values are texts",
    }


def test_runs_of_spaces_are_one_separator_and_none_at_the_ends_of_a_line(tmp_path):
    text = ' a   b y \n  1 2   u\n\n   \n"3"  NA v  \r\n 5 6 u'
    manifest, values, names = ingest(tmp_path, text)
    assert names == ["a", "b"]
    np.testing.assert_array_equal(values, [[1, 3, 5], [2, math.nan, 6]])
    assert manifest.inferred["separator"] == "space"


def test_a_named_separator_wins(tmp_path):
    manifest, values, names = ingest(tmp_path, "a;x:b:y\n1:2:u\n3:4:v\n", TextForm(separator=":"))
    assert names == ["a;x", "b"]
    assert "separator" not in manifest.inferred
    assert values.tolist() == [[1, 3], [2, 4]]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("a,b;c,d;y\n1;2;u\n", ";"),
        ('"a;b;c;d",b,y\n1,2,u\n', ","),
        ("# x;y;z;w\na,b,y\n1,2,u\n", ","),
        ("a|b,c|d,y\n1,2,u\n", ","),
        ("only\nu\n", ","),
        ("gene one\tgene two\ty\n1\t2", "\t"),
        ("a,b,c," * 100, ","),
        ("a b c", " "),
        ("a,b,y\n1,2,u\n1,u\n", ","),
    ],
)
def test_find_separator(start, expected):
    assert find_separator(start, "#", ".") == expected


def test_decimal_comma_exactly(tmp_path):
    cells = ["1,5", "-0,1", ",25", "3,", "12345678901234567890,123456789", "4,9e-324", "7"]
    text = "a;y\n" + "".join(f"{cell};{'uv'[i % 2]}\n" for i, cell in enumerate(cells))
    _, values, _ = ingest(tmp_path, text, TextForm(decimal="comma"))
    assert values[0].tolist() == [float(cell.replace(",", ".")) for cell in cells]


def test_comments_and_missing_texts(tmp_path):
    text = '# about "it\na,b,y\n#1,2\n-9,2,u\n# end\r\n1,?,v\n-9.0,3,u\n#'
    form = TextForm(comment="#", missing=("-9", "?"))
    manifest, values, _ = ingest(tmp_path, text, form)
    np.testing.assert_array_equal(values, [[math.nan, 1, -9], [2, math.nan, 3]])
    assert manifest.n_missing_cells == 2


def test_the_missing_list_replaces_the_default(tmp_path):
    with pytest.raises(InputError, match=r"line 3: column 'a'.*'\?' for a missing.*found ''"):
        ingest(tmp_path, "a,y\n?,u\n,v\n", TextForm(missing=("?",)))


def test_lines_are_counted_past_comments(tmp_path):
    with pytest.raises(InputError, match=r"line 5: column 'a'.*found '1,5'.*--decimal comma"):
        ingest(tmp_path, "#\r\n#\r\na;y\r\n#\r\n1,5;u\r\n", TextForm(comment="#"))


@pytest.mark.parametrize("text", ["a,b,y\n1,2,u,\n3,4,v,\n", "y,a\nu,1,"])
def test_separators_at_the_ends_of_lines_are_not_taken_for_row_names(tmp_path, text):
    with pytest.raises(InputError, match=r"the last of them empty. Remove the comma"):
        ingest(tmp_path, text)
    manifest, values, _ = ingest(tmp_path, "a,y\nr1,1,\nr2,2,v\nr3,3,u\n")
    assert (manifest.row_id_name, values.tolist()) == ("row_names", [[2, 3]])


def test_without_a_header_columns_are_numbered_and_the_first_row_is_data(tmp_path):
    form = TextForm(header=False)
    text = "\ufeff1,2,u\n3,4,v\n"
    manifest, values, names = ingest(tmp_path, text, form)
    assert (names, manifest.target_name) == (["f0", "f1"], "f2")
    assert values.tolist() == [[1, 3], [2, 4]]
    manifest, _, names = ingest(tmp_path, "1,2\n3,4\n", form, target="f0")
    assert (names, manifest.classes) == (["f1"], ("1", "3"))


def test_a_first_column_that_the_header_does_not_name(tmp_path):
    """As R's write.table writes row names."""
    text = '"a" "b" "y"\n"r 1" 1.5 2 "u"\n"r 2" 3 NA "v"\n'
    manifest, values, names = ingest(tmp_path, text)
    assert names == ["a", "b"]
    np.testing.assert_array_equal(values, [[1.5, 3], [2, math.nan]])
    assert manifest.inferred["row_ids"] == "first column, over which the header has no field"
    store = tmp_path / "0.zarr"
    assert list(Names(store, manifest, "row_ids")) == ["r 1", "r 2"]
    with pytest.raises(InputError, match="line 3: expected 4 fields"):
        ingest(tmp_path, "a,b,y\nr,1,2,u\n3,4,v\n")
    with pytest.raises(InputError, match="line 3: expected 3 fields"):
        ingest(tmp_path, "a,b,y\n1,2,u\nr,3,4,v\n")


def _zst(data: bytes) -> bytes:
    return importlib.import_module("zstandard").compress(data)


PACK = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress, "zst": _zst}


@pytest.mark.slow
@pytest.mark.parametrize("kind", PACK)
def test_compressed_tables_in_several_members(tmp_path, kind):
    if kind == "zst":
        pytest.importorskip("zstandard")
    rows = "".join(f"{i},{i * 7 % 5},{'uv'[i % 2]}\n" for i in range(60_000))
    text = ("a,b,y\n" + rows).encode()
    half = len(text) // 2 + 3
    packed = PACK[kind](text[:half]) + PACK[kind](text[half:])
    one, _, _ = ingest(tmp_path, text)
    two, _, _ = ingest(tmp_path, packed)
    assert one.checksums == two.checksums
    assert two.source["format"] == f"csv.{kind}"
    with pytest.raises(InputError, match="damage"):
        ingest(tmp_path, packed[:-9])
    broken = bytearray(packed)
    broken[len(broken) // 4] ^= 0x55
    with pytest.raises(InputError):
        ingest(tmp_path, bytes(broken))


@pytest.mark.parametrize("kind", PACK)
@given(
    st.lists(st.tuples(st.binary(max_size=300), st.integers(1, 4000)), min_size=1, max_size=3),
    st.integers(1, 5000),
)
@examples(20)
def test_decoding_gives_the_bytes_back_in_bounded_pieces(kind, parts, step):
    if kind == "zst":
        pytest.importorskip("zstandard")
    texts = [data * times for data, times in parts]
    packed = b"".join(PACK[kind](text) for text in texts)
    decoder = decoder_of(packed[:4096])
    assert decoder is not None
    pieces = (packed[i : i + step] for i in range(0, len(packed), step))
    found = list(decoded(decoder[2], pieces))
    assert b"".join(found) == b"".join(texts)
    assert all(len(piece) <= 1 << 18 for piece in found)


def test_a_cap_that_cannot_hold_the_decoder_is_refused(tmp_path):
    packed = lzma.compress(PLAIN.encode(), preset=9)
    with pytest.raises(BudgetError, match=r"decompressing .* --memory-mb \d+"):
        ingest(tmp_path, packed, memory_mb=150)
    assert ingest(tmp_path, packed, memory_mb=900)[0].n_rows == 3


def test_standard_input(tmp_path, monkeypatch):
    data = gzip.compress(PLAIN.encode())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    manifest = ingest_table(Path("-"), tmp_path / "t.zarr")
    assert (manifest.source["name"], manifest.source["format"]) == ("-", "csv.gz")
    assert manifest.checksums == ingest(tmp_path, PLAIN)[0].checksums
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"a,y\n1,u\nx,v\n")))
    with pytest.raises(InputError, match=r"^standard input, line 3: column 'a'"):
        ingest_table(Path("-"), tmp_path / "u.zarr")


@pytest.mark.parametrize(
    "options",
    [
        {"separator": "ab"},
        {"separator": "é"},
        {"separator": '"'},
        {"separator": ",", "decimal": "comma"},
        {"separator": "#", "comment": "#"},
        {"comment": ""},
    ],
)
def test_marks_that_cannot_be(options):
    with pytest.raises(UsageError, match="expected"):
        TextForm(**options)


@given(
    st.lists(
        st.lists(
            st.floats(allow_nan=False, allow_infinity=False) | st.none(), min_size=3, max_size=3
        ),
        min_size=1,
        max_size=9,
    ),
    st.sampled_from(";\t| "),
    st.lists(st.integers(0, 400), max_size=6),
    st.data(),
)
@examples(80)
def test_any_dialect_cut_anywhere_reads_the_numbers(rows, mark, cuts, data):
    """Comments and blanks between rows, any separator, decimal commas, cut at any byte."""
    text = ""
    for row in rows:
        text += data.draw(st.sampled_from(["", "\n", "#;,\n", "#\r\n"]))
        cells = ["NA" if cell is None else repr(cell).replace(".", ",") for cell in row]
        text += mark.join([*cells, "u"]) + data.draw(st.sampled_from(["\n", "\r\n"]))
    raw = text.encode()
    form = TextForm(mark, "#", "comma", ("NA",))
    stream = SimpleNamespace(form=form, marks=f"{mark}#,".encode(), place=(1, False))
    reader = TableReader(np.array([0, 1, 2, TARGET], np.int32), stream)
    panel = np.zeros((3, len(rows) + 1))
    reader.set_panel(panel)
    stops = sorted({min(cut, len(raw)) for cut in cuts} | {0, len(raw)})
    for start, stop in pairwise(stops):
        assert reader.feed(raw[start:stop]) == stop - start
    reader.finish()
    assert reader.problem is None
    expected = np.array([[math.nan if c is None else c for c in row] for row in rows]).T
    np.testing.assert_array_equal(panel[:, : len(rows)], expected)
