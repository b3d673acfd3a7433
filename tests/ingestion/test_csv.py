"""Text tables: read as Python's csv and float() read them, of every dialect and compression."""

import bz2
import csv
import gzip
import importlib
import io
import lzma
import math
import os
import shutil
import struct
import subprocess
import sys
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from examples import example, examples, given, st
from refusals import refused
from stores import values_of

from srs_ooc.base.errors import BudgetError, InputError, UsageError
from srs_ooc.ingestion import sources
from srs_ooc.ingestion.csv import (
    CATEGORIES,
    IGNORED,
    ROW_ID,
    TARGET,
    UNKNOWN,
    TableReader,
    TextForm,
    parse_decimal,
)
from srs_ooc.ingestion.formats import hash_text, split_texts
from srs_ooc.ingestion.ingest_options import IngestOptions
from srs_ooc.ingestion.sources import SourceFile, decoded, decoder_of
from srs_ooc.ingestion.stages import ingest_table
from srs_ooc.native import _native
from srs_ooc.store.arrays import Names
from srs_ooc.store.manifest import Manifest

TABLE = "a b,c,y\n1.5,2,u\n-3,,v\n4e3,6.25,u\n"


def ingest(folder, text, form=None, name="t.txt", **options) -> tuple[Manifest, np.ndarray, list]:
    """Ingest a text; return the manifest, the values in source order and the feature names."""
    path, store = folder / name, folder / f"{len(list(folder.iterdir()))}.zarr"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    manifest = ingest_table(path, store, IngestOptions(text=form or TextForm(), **options))
    return manifest, values_of(store), list(Names(store, manifest, "names"))


@pytest.mark.parametrize("mark", [",", "\t", ";", "|"])
def test_the_separator_is_found_and_noted(tmp_path, mark):
    manifest, values, names = ingest(tmp_path, TABLE.replace(",", mark))
    assert names == ["a b", "c"]
    np.testing.assert_array_equal(values, [[1.5, -3, 4000], [2, math.nan, 6.25]])
    named = {",": "comma", "\t": "tab", ";": "semicolon", "|": "pipe"}
    assert manifest.inferred.pop("task") == "classification: its values are texts"
    assert manifest.inferred == {"target": "last column", "separator": named[mark]}


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
    assert TextForm(comment="#").separator_of(start) == expected


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


ENDS = "the last of them empty. Remove the comma"
BAD = [
    ("a,y\n?,u\n,v\n", {"missing": ("?",)}, r"line 3: column 'a'.*'\?' for a missing.*found ''"),
    (
        "#\r\n#\r\na;y\r\n#\r\n1,5;u\r\n",  # lines are counted past comments
        {"comment": "#"},
        r"line 5: column 'a'.*found '1,5'.*--decimal comma",
    ),
    ("a,b,y\n1,2,u,\n3,4,v,\n", {}, ENDS),
    ("y,a\nu,1,", {}, ENDS),
    ("a,b,y\nr,1,2,u\n3,4,v\n", {}, "line 3: expected 4 fields"),
    ("a,b,y\n1,2,u\nr,3,4,v\n", {}, "line 3: expected 3 fields"),
]


@pytest.mark.parametrize(("text", "form", "match"), BAD)
def test_texts_that_are_no_table_are_refused_with_the_line(tmp_path, text, form, match):
    refused(InputError, match, ingest, tmp_path, text, TextForm(**form))


def test_separators_at_the_ends_of_lines_are_not_taken_for_row_names(tmp_path):
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


ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"


def _zst(data: bytes) -> bytes:
    return importlib.import_module(ZSTD).compress(data)


PACK = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress, "zst": _zst}


@pytest.mark.slow
@pytest.mark.parametrize("kind", PACK)
def test_compressed_tables_in_several_members(tmp_path, kind):
    if kind == "zst":
        pytest.importorskip(ZSTD)
    rows = "".join(f"{i},{i * 7 % 5},{'uv'[i % 2]}\n" for i in range(60_000))
    text = ("a,b,y\n" + rows).encode()
    half = len(text) // 2 + 3
    packed = PACK[kind](text[:half]) + PACK[kind](text[half:])
    one, _, _ = ingest(tmp_path, text)
    two, _, _ = ingest(tmp_path, packed)
    assert one.checksums == two.checksums
    assert two.source["format"] == f"csv.{kind}"
    refused(InputError, "damage", ingest, tmp_path, packed[:-9])
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
        pytest.importorskip(ZSTD)
    texts = [data * times for data, times in parts]
    packed = b"".join(PACK[kind](text) for text in texts)
    decoder = decoder_of(packed[:4096])
    assert decoder is not None
    pieces = (packed[i : i + step] for i in range(0, len(packed), step))
    found = [text for text, _ in decoded(decoder[2], pieces)]
    assert b"".join(found) == b"".join(texts)
    assert all(len(piece) <= 1 << 18 for piece in found)


def test_a_cap_that_cannot_hold_the_decoder_is_refused(tmp_path):
    packed = lzma.compress(TABLE.encode(), preset=9)
    with pytest.raises(BudgetError, match=r"decompressing .* --memory-mb \d+"):
        ingest(tmp_path, packed, memory_mb=150)
    assert ingest(tmp_path, packed, memory_mb=900)[0].n_rows == 3


def test_standard_input(tmp_path, monkeypatch):
    data = gzip.compress(TABLE.encode())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    manifest = ingest_table(Path("-"), tmp_path / "t.zarr")
    assert (manifest.source["name"], manifest.source["format"]) == ("-", "csv.gz")
    assert manifest.checksums == ingest(tmp_path, TABLE)[0].checksums
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"a,y\n1,u\nx,v\n")))
    with pytest.raises(InputError, match=r"^standard input, line 3: column 'a'"):
        ingest_table(Path("-"), tmp_path / "u.zarr")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(({"separator": mark}, "expected") for mark in ("ab", "é", '"')),
        ({"separator": ",", "decimal": "comma"}, "expected"),
        ({"separator": "#", "comment": "#"}, "expected"),
        ({"comment": ""}, "expected"),
        *(
            ({"separator": mark}, "no quote, no line end and in no number")
            for mark in ("5", "e", "-", "+", '"', "ab", "\n")
        ),
    ],
)
def test_marks_that_cannot_be(options, message):
    refused(UsageError, message, TextForm, **options)


NUMBER = st.floats(allow_nan=False, allow_infinity=False) | st.none()


@given(
    st.lists(st.lists(NUMBER, min_size=3, max_size=3), min_size=1, max_size=9),
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
    stream = stream_of(mark, "#", ",", ("NA",))
    reader, panel = reader_of([0, 1, 2, TARGET], len(rows) + 1, stream)
    stops = sorted({min(cut, len(raw)) for cut in cuts} | {0, len(raw)})
    for start, stop in pairwise(stops):
        assert reader.feed(raw[start:stop]) == stop - start
    reader.native.finish()
    assert reader.native.problem is None
    expected = np.array([[math.nan if c is None else c for c in row] for row in rows]).T
    np.testing.assert_array_equal(panel[:, : len(rows)], expected)


# The native CSV reader against its twin: Python's csv module and float().


TARGET_COLUMN, ID_COLUMN, IGNORED_COLUMN = 1, 3, 4


def twin(text: str, n_columns: int) -> list[list[str]]:
    rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    assert all(len(row) == n_columns for row in rows)
    return rows


def twin_number(cell: str) -> float:
    cell = cell.strip(" \t")
    return math.nan if cell in ("", "NA") else float(cell)


def reader_of(slots, n_rows, stream=None):
    """A reader, and the panel that it fills."""
    reader = TableReader(np.array(slots, np.int32), stream or stream_of(","))
    panel = np.zeros((sum(slot >= 0 for slot in slots), n_rows))
    reader.set_panel(panel)
    return reader, panel


class Taken:
    """The labels and ids that were taken from a reader."""

    def __init__(self):
        self.labels, self.ids = [], []

    def take(self, reader):
        self.labels += reader.take_texts(TARGET)
        self.ids += reader.take_texts(ROW_ID)


def read(text: bytes, slots: np.ndarray, cuts: list[int], panel_rows: int) -> tuple:
    """Read text cut at the given places; return values (n_features, n_rows), labels, ids.

    They are the same however many rows go to a panel together.
    """
    first, *others = (read_staged(text, slots, cuts, panel_rows, n) for n in (0, 1, 3, 8))
    for values, *texts, _ in others:
        assert same_bits(values, first[0])
        assert texts == list(first[1:-1])
    return first


def read_staged(text, slots, cuts, panel_rows, staged_rows) -> tuple:
    reader = TableReader(slots.astype(np.int32), stream_of(","), staged_rows=staged_rows)
    n_features = int((slots >= 0).sum())
    panels, taken = [], Taken()

    def flush() -> None:
        panels.append(reader._panel[:, : reader.native.panel_row].copy())
        reader.set_panel(np.full((n_features, panel_rows), 77.0))

    reader.set_panel(np.full((n_features, panel_rows), 77.0))
    for start, stop in zip([0, *cuts], [*cuts, len(text)], strict=True):
        piece, at = text[start:stop], 0
        while at < len(piece):
            at = reader.feed(piece, at)
            assert reader.native.problem is None
            taken.take(reader)
            if reader.panel_is_full:
                flush()
    reader.native.finish()
    taken.take(reader)
    flush()
    assert reader.native.problem is None
    return np.hstack(panels), taken.labels, taken.ids, reader


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    a, b = np.ascontiguousarray(a, float), np.ascontiguousarray(b, float)
    both_nan = np.isnan(a) & np.isnan(b)
    return a.shape == b.shape and bool(((a.view("u8") == b.view("u8")) | both_nan).all())


numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1e6, 1e6).map(lambda x: f"{x:.5f}"),
    st.integers(-(10**25), 10**25).map(str),
    st.sampled_from(["", "NA", "nan", "NaN", "-nan", " 1.5 ", "+.5", "5.", "1e-400", "-0", "0e9"]),
    st.from_regex(r"[+-]?[0-9]{1,30}\.[0-9]{0,30}([eE][+-]?[0-9]{1,2})?", fullmatch=True),
)
words = st.text(alphabet=' ab",\n\ré\t;', max_size=6)
labels = st.text(alphabet='ab",\né', min_size=1, max_size=3)


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, list[list[str]]]:
    rows = draw(
        st.lists(st.tuples(numbers, labels, numbers, words, words, numbers), min_size=1, max_size=6)
    )
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    out = io.StringIO(newline="")
    breaks = any(set("\r\n") & set(cell) for row in rows for cell in row)
    minimal = not breaks and draw(st.booleans())
    quoting = csv.QUOTE_MINIMAL if minimal else csv.QUOTE_ALL
    writer = csv.writer(out, lineterminator=end, quoting=quoting)
    for row in rows:
        writer.writerow(row)
        if draw(st.booleans()):
            out.write(end)
    text = out.getvalue()
    return (text.rstrip("\r\n") if draw(st.booleans()) else text), [list(row) for row in rows]


SLOTS = np.array([2, TARGET, 0, ROW_ID, IGNORED, 1])


@given(tables(), st.data(), st.integers(1, 4))
def test_reads_what_csv_and_float_read_wherever_the_bytes_are_cut(table, data, panel_rows):
    text = table[0]
    rows = twin(text, len(SLOTS))
    raw = text.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    values, found_labels, ids, reader = read(raw, SLOTS, cuts, panel_rows)
    expected = np.array([[twin_number(row[c]) for row in rows] for c in (2, 5, 0)])
    assert same_bits(values, expected)
    assert [label.decode() for label in found_labels] == [row[1].strip(" \t") for row in rows]
    assert [i.decode() for i in ids] == [row[3].strip(" \t") for row in rows]
    with np.errstate(over="ignore"):
        survives = np.isnan(expected) | (expected.astype(np.float32) == expected)
    assert reader.native.fits_float32 == survives.all()


def test_every_single_cut_and_every_byte_apart():
    text = '1.25e-3,"a ""q"", b",  NA ,id1,"x\r\ny",-7\r\n\r\n 12345678901234567890.5,c,,id2,,1e22'
    raw = text.encode()
    rows = twin(text, 6)
    expected = np.array([[twin_number(row[c]) for row in rows] for c in (2, 5, 0)])
    every = [[cut] for cut in range(len(raw) + 1)] + [list(range(1, len(raw)))]
    for cuts in every:
        values, found, ids, _ = read(raw, SLOTS, cuts, 1)
        assert same_bits(values, expected), cuts
        assert found == [b'a "q", b', b"c"]
        assert ids == [b"id1", b"id2"]


@given(st.integers(0, 2**64 - 1))
def test_shortest_texts_of_doubles_are_exact(bits):
    value = struct.unpack("d", struct.pack("Q", bits))[0]
    if math.isfinite(value):
        found = parse_decimal(repr(value).encode())
        assert struct.pack("d", found) == struct.pack("d", value)


@given(st.integers(0, 10**19 - 1), st.integers(-360, 300))
@example(9007199254740993, 0)  # a tie: rounds to even
@example(9007199254740993, 1)
@example(9999999999999999999, -27)
@example(1, -345)
@example(2470328229206232721, -342)  # just above half the least double
def test_digits_times_a_power_of_ten_are_exact(digits, power):
    text = f"{digits}e{power}"
    found = parse_decimal(text.encode())
    assert found == float(text)


@given(st.integers(2**52, 2**53 - 1), st.integers(-20, 8), st.integers(-2, 2))
def test_numbers_next_to_a_tie_are_exact(mantissa, exponent, nudge):
    tie = Fraction(2 * mantissa + 1) * Fraction(2) ** (exponent - 1)
    power = -18 + math.floor(math.log10(float(tie))) if tie else 0
    digits = math.floor(tie / Fraction(10) ** power) + nudge
    text = f"{digits}e{power}"
    found = parse_decimal(text.encode())
    assert found == float(text)


DECIMALS = st.from_regex(
    r"[+-]?([0-9]{1,20}\.?|[0-9]{0,3}\.[0-9]{1,26})([eE][+-]?[0-9]{1,2})?", fullmatch=True
)


@given(st.lists(DECIMALS, min_size=2, max_size=30), st.sampled_from(".,"))
@example(["0.12345678901234567", "9007199254740993", "0.9007199254740993", "-0e0"], ".")
@example(["1." + "0" * 21 + "1", "9" * 19, "9" * 20, "1" + "0" * 18 + ".5", "." + "0" * 24], ",")
def test_a_column_of_numbers_is_read_as_float_reads_them(texts, point):
    """Also as they are read where a column has numbers and much of the text is in memory."""
    reader, panel = reader_of([0], len(texts), stream_of(";", None, point, ("NA",)))
    cells = "\n".join([text.replace(".", point) for text in texts])
    reader.feed(f"{cells}\n{' ' * 64}".encode())
    assert reader.native.problem is None
    assert same_bits(panel[0], np.array([float(text) for text in texts]))


NO_DECIMALS = ["1_000", "0x10", "1e", "e5", ".", "+", "--1", "1 2", "\u0661", "1,5"]


@pytest.mark.parametrize("text", NO_DECIMALS)
def test_what_is_no_decimal_number_is_refused(text):
    reader, _ = reader_of([0, TARGET], 4)
    reader.feed(f'1,a\n"{text}",b\n'.encode())
    assert reader.native.problem == ("not_a_number", 2, 0, text.encode())


@pytest.mark.parametrize("text", ["inf", "-Infinity", "1e999", "1.8e308", "9" * 400])
def test_infinity_is_refused_and_located(text):
    reader, _ = reader_of([0, TARGET], 4)
    reader.feed(f"\n1,a\n{text},b\n".encode())
    assert reader.native.problem[:3] == ("infinite", 3, 0)


@pytest.mark.parametrize(
    ("text", "fault", "line", "column"),
    [
        ("1,2,a\n1,a\n", "ragged", 2, 2),
        ("x,2,a,4\n", "ragged", 1, 4),
        ('1,2,a\n1,"2,a\n', "open_quote", 2, None),
        ("1,2,a\n1,2," + "a" * 1_100_000 + "\n", "long_field", 2, 2),
        ('1,2,"a\nb"\n1,zz,a\n', "not_a_number", 3, 1),
    ],
)
def test_faults_name_line_and_column(text, fault, line, column):
    for step in (100_000, 7):
        reader, _ = reader_of([0, 1, TARGET], 9)
        raw = text.encode()
        for start in range(0, len(raw), step):
            reader.feed(raw[start : start + step])
        reader.native.finish()
        assert reader.native.problem[:2] == (fault, line)
        assert column is None or reader.native.problem[2] == column


@given(st.lists(words, min_size=1, max_size=5), st.integers(1, 9))
def test_header_names_and_where_the_rows_start(names, step):
    names[0] += "x"
    out = io.StringIO(newline="")
    csv.writer(out).writerow(names)
    raw = ("\r\n" + out.getvalue() + "1,2\r\n").encode()
    reader, found, at = _native.HeaderReader(b",\0."), [], 0
    while not reader.done:
        at += reader.feed(np.frombuffer(raw[at : at + step], np.uint8), 0)
        blob, ends, hashes = reader.take_names()
        taken = list(split_texts(blob, np.frombuffer(ends, np.uint64)))
        found.extend(taken)
        assert np.frombuffer(hashes, np.uint64).tolist() == [hash_text(text) for text in taken]
    assert [name.decode() for name in found] == [name.strip(" \t") for name in names]
    assert raw[at:].lstrip(b"\n") == b"1,2\r\n"
    assert reader.line == out.getvalue().count("\n") + 2
    assert reader.after_return


# A short fuzz run: whatever the bytes, the parser ends, and cuts change nothing it finds.


PIECES = b'1|-2.5|1e|nan|NA|inf|,|;| |\t|#|"|""|\n|\r|\r\n|\xff|\xc3\xa9|\0|.|u'.split(b"|")
PIECES += [b"9" * 30, b"1,5,r,u\n"]
BYTES = st.lists(st.sampled_from(PIECES) | st.binary(max_size=3), max_size=40).map(b"".join)


def stream_of(separator, comment=None, point=".", missing=None):
    """What a reader asks of the stream of a table."""
    form = TextForm(separator, comment, "comma" if point == "," else "point", missing)
    marks = f"{separator}{comment or chr(0)}{point}".encode()
    return SimpleNamespace(form=form, marks=marks, place=(1, False))


STREAMS = (
    st.tuples(
        st.sampled_from(",;\t "),
        st.sampled_from([None, "#"]),
        st.sampled_from(".,"),
        st.sampled_from([None, ("NA", "9" * 30), ("",)]),
    )
    .filter(lambda marks: marks[0] != marks[2])  # refused before it is parsed
    .map(lambda marks: stream_of(*marks))
)


def parse(text: bytes, stream: SimpleNamespace, cuts: list[int], staged_rows: int = 0) -> tuple:
    """Everything a reader says of a text cut at the given places."""
    reader = TableReader(
        np.array([0, 1, ROW_ID, TARGET], np.int32),
        stream,
        kinds=np.array([UNKNOWN, CATEGORIES, UNKNOWN, UNKNOWN], np.uint8),
        max_category_nbytes=700,
        staged_rows=staged_rows,
    )
    panel = np.full((2, 50), 77.0)
    reader.set_panel(panel)
    taken = Taken()
    stops = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    for start, stop in pairwise(stops):
        at = 0
        while at < stop - start and reader.native.problem is None and not reader.panel_is_full:
            at = reader.feed(text[start:stop], at)
        taken.take(reader)
    reader.native.finish()
    taken.take(reader)
    good = panel[:, : reader.native.panel_row] if reader.native.problem is None else panel[:, :0]
    assert not np.isinf(good).any()
    cells = [None if math.isnan(cell) else cell for cell in good.ravel().tolist()]
    fault = reader.native.problem and reader.native.problem[:3]
    cells += reader.cells().tolist() if fault is None else []
    return cells, taken.labels[: good.shape[1]], taken.ids[: good.shape[1]], fault


@given(BYTES, STREAMS, st.lists(st.integers(0, 120), max_size=5))
@example(b"1,2,r,u\r\n\r\n#\r3,4,s,v", stream_of(",", "#"), [9, 10, 12])
@examples(300)
def test_cuts_change_nothing(text, stream, cuts):
    whole = parse(text, stream, [])
    for staged_rows in (0, 1, 5):
        assert parse(text, stream, cuts, staged_rows) == whole


@given(BYTES, STREAMS, st.integers(0, 120))
@examples(100)
def test_headers_of_any_bytes(text, stream, cut):
    found = []
    for cuts in ([], [min(cut, len(text))]):
        reader, names = _native.HeaderReader(stream.marks), []
        stops = [0, *cuts, len(text)]
        for start, stop in pairwise(stops):
            if not reader.done:
                reader.feed(np.frombuffer(text[start:stop], np.uint8), 0)
                names.append(reader.take_names()[0])
        reader.finish()
        names.append(reader.take_names()[0])
        found.append((b"".join(names), reader.done, reader.line))
    assert found[0] == found[1]


CELLS = st.text('ab",\n', max_size=4)


@examples(150)
@given(
    st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=8), st.integers(1, 60)
)
def test_the_ends_of_a_long_text_are_whole_rows_of_it(tmp_path_factory, rows, n_end):
    folder = tmp_path_factory.mktemp("ends")
    with (folder / "t.csv").open("w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_MINIMAL, lineterminator="\n").writerows(rows)
    size = (folder / "t.csv").stat().st_size
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "_END_NBYTES", min(n_end, size // 2))
        found = sources.part_of(SourceFile(folder / "t.csv"), size, len(rows), folder)
    with found.path.open(newline="") as file:
        there = [row for row in csv.reader(file) if row]
    n_first = next(n for n in range(len(there) + 1) if n == len(there) or there[n] != rows[n])
    assert there[n_first:] == rows[len(rows) - len(there) + n_first :]
    assert str(found).startswith(f"{folder}/t.csv, first and last")


# The CSV reader under address and undefined-behaviour sanitizers; its numbers against float().


TESTS = Path(__file__).parents[1]
SOURCES = TESTS.parent / "srs_ooc" / "native"
SECONDS = float(os.environ.get("SRS_OOC_FUZZ_SECONDS", "3"))
SEED = os.environ.get("SRS_OOC_FUZZ_SEED", "1")
FLAGS = ["-std=c++17", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def compiled(compiler: str, source: Path, program: Path) -> subprocess.CompletedProcess:
    command = [compiler, *FLAGS, f"-I{SOURCES}", str(source), "-o", str(program)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def program(tmp_path):
    names = [os.environ.get("CXX"), "c++", "g++", "clang++"]
    compiler = next((shutil.which(name) for name in names if name and shutil.which(name)), None)
    if compiler is None:
        pytest.skip("no C++ compiler here")
    trivial = tmp_path / "trivial.cpp"
    trivial.write_text("int main() { return 0; }")
    if compiled(compiler, trivial, tmp_path / "trivial").returncode:
        pytest.skip(f"{compiler} has no address and undefined-behaviour sanitizers")
    built = compiled(compiler, TESTS / "fuzz" / "fuzz_parse.cpp", tmp_path / "fuzz")
    assert built.returncode == 0, built.stderr
    return tmp_path / "fuzz"


@pytest.mark.slow
def test_made_up_texts_under_sanitizers(program):
    how = {"capture_output": True, "text": True, "timeout": 3600 + 3 * SECONDS}
    done = subprocess.run([program, SEED, str(SECONDS)], **how, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    lines = done.stdout.splitlines()
    assert len(lines) > 20
    for line in lines:
        text, bits = line.split()
        value = struct.unpack(">d", bytes.fromhex(bits))[0]
        assert struct.pack("d", value) == struct.pack("d", float(text)), text
