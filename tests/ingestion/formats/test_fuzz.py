"""A short fuzz run: whatever the bytes, the parser ends, and cuts change nothing it finds."""

import math
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
from examples import examples
from hypothesis import example, given
from hypothesis import strategies as st

from srs_ooc.ingestion.csv import (
    CATEGORIES,
    ROW_ID,
    TARGET,
    UNKNOWN,
    TableReader,
    TextForm,
)
from srs_ooc.native import _native

PIECES = [b"1", b"-2.5", b"1e", b"9" * 30, b"nan", b"NA", b"inf", b",", b";", b" ", b"\t", b"#"]
PIECES += [
    b'"',
    b'""',
    b"\n",
    b"\r",
    b"\r\n",
    b"\xff",
    b"\xc3\xa9",
    b"\0",
    b".",
    b"u",
    b"1,5,r,u\n",
]
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


def parse(text: bytes, stream: SimpleNamespace, cuts: list[int]) -> tuple:
    """Everything a reader says of a text cut at the given places."""
    reader = TableReader(
        np.array([0, 1, ROW_ID, TARGET], np.int32),
        stream,
        kinds=np.array([UNKNOWN, CATEGORIES, UNKNOWN, UNKNOWN], np.uint8),
        by_row=False,
        max_category_nbytes=700,
    )
    panel = np.full((2, 50), 77.0)
    reader.set_panel(panel)
    labels, ids = [], []
    stops = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    for start, stop in pairwise(stops):
        at = 0
        while at < stop - start and reader.problem is None and not reader.panel_is_full:
            at = reader.feed(text[start:stop], at)
        labels += list(reader.take_texts(TARGET))
        ids += list(reader.take_texts(ROW_ID))
    reader.finish()
    labels += list(reader.take_texts(TARGET))
    ids += list(reader.take_texts(ROW_ID))
    good = panel[:, : reader.n_panel_rows] if reader.problem is None else panel[:, :0]
    assert not np.isinf(good).any()
    cells = [None if math.isnan(cell) else cell for cell in good.ravel().tolist()]
    fault = reader.problem and reader.problem[:3]
    cells += reader.cells().tolist() if fault is None else []
    return cells, labels[: good.shape[1]], ids[: good.shape[1]], fault


@given(BYTES, STREAMS, st.lists(st.integers(0, 120), max_size=5))
@example(b"1,2,r,u\r\n\r\n#\r3,4,s,v", stream_of(",", "#"), [9, 10, 12])
@examples(300)
def test_cuts_change_nothing(text, stream, cuts):
    assert parse(text, stream, cuts) == parse(text, stream, [])


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
