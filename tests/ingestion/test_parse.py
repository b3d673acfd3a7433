"""The native CSV reader against its twin: Python's csv module and float()."""

import csv
import io
import math
import struct

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from srs_ooc.ingestion.csv import IGNORED, PLAIN, ROW_ID, TARGET, TableReader, parse_decimal
from srs_ooc.ingestion.formats import hash_text, split_texts
from srs_ooc.native import _native

TARGET_COLUMN, ID_COLUMN, IGNORED_COLUMN = 1, 3, 4


def twin(text: str, n_columns: int) -> list[list[str]]:
    rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    assert all(len(row) == n_columns for row in rows)
    return rows


def twin_number(cell: str) -> float:
    cell = cell.strip(" \t")
    return math.nan if cell in ("", "NA") else float(cell)


def read(text: bytes, slots: np.ndarray, cuts: list[int], panel_rows: int) -> tuple:
    """Read text cut at the given places; return values (n_features, n_rows), labels, ids."""
    reader = TableReader(slots.astype(np.int32))
    n_features = int((slots >= 0).sum())
    panels, labels, ids = [], [], []

    def flush() -> None:
        panels.append(reader._panel[:, : reader.n_panel_rows].copy())
        reader.set_panel(np.full((n_features, panel_rows), 77.0))

    reader.set_panel(np.full((n_features, panel_rows), 77.0))
    for start, stop in zip([0, *cuts], [*cuts, len(text)], strict=True):
        piece, at = text[start:stop], 0
        while at < len(piece):
            at = reader.feed(piece, at)
            assert reader.problem is None
            labels.extend(reader.take_texts(TARGET))
            ids.extend(reader.take_texts(ROW_ID))
            if reader.panel_is_full:
                flush()
    reader.finish()
    labels.extend(reader.take_texts(TARGET))
    ids.extend(reader.take_texts(ROW_ID))
    flush()
    assert reader.problem is None
    return np.hstack(panels), labels, ids, reader


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
texts = st.text(alphabet=' ab",\n\ré\t;', max_size=6)
labels = st.text(alphabet='ab",\né', min_size=1, max_size=3)


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, list[list[str]]]:
    rows = draw(
        st.lists(st.tuples(numbers, labels, numbers, texts, texts, numbers), min_size=1, max_size=6)
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
    assert reader.fits_float32 == survives.all()


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
    from fractions import Fraction

    tie = Fraction(2 * mantissa + 1) * Fraction(2) ** (exponent - 1)
    power = -18 + math.floor(math.log10(float(tie))) if tie else 0
    digits = math.floor(tie / Fraction(10) ** power) + nudge
    text = f"{digits}e{power}"
    found = parse_decimal(text.encode())
    assert found == float(text)


@pytest.mark.parametrize(
    "text", ["1_000", "0x10", "1e", "e5", ".", "+", "--1", "1 2", "\u0661", "1,5"]
)
def test_what_is_no_decimal_number_is_refused(text):
    reader = TableReader(np.array([0, TARGET], np.int32))
    reader.set_panel(np.zeros((1, 4)))
    reader.feed(f'1,a\n"{text}",b\n'.encode())
    assert reader.problem == ("not_a_number", 2, 0, text.encode())


@pytest.mark.parametrize("text", ["inf", "-Infinity", "1e999", "1.8e308", "9" * 400])
def test_infinity_is_refused_and_located(text):
    reader = TableReader(np.array([0, TARGET], np.int32))
    reader.set_panel(np.zeros((1, 4)))
    reader.feed(f"\n1,a\n{text},b\n".encode())
    assert reader.problem[:3] == ("infinite", 3, 0)


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
        reader = TableReader(np.array([0, 1, TARGET], np.int32))
        reader.set_panel(np.zeros((2, 9)))
        raw = text.encode()
        for start in range(0, len(raw), step):
            reader.feed(raw[start : start + step])
        reader.finish()
        assert reader.problem[:2] == (fault, line)
        assert column is None or reader.problem[2] == column


@given(st.lists(texts, min_size=1, max_size=5), st.integers(1, 9))
def test_header_names_and_where_the_rows_start(names, step):
    names[0] += "x"
    out = io.StringIO(newline="")
    csv.writer(out).writerow(names)
    raw = ("\r\n" + out.getvalue() + "1,2\r\n").encode()
    reader, found, at = _native.HeaderReader(PLAIN), [], 0
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
