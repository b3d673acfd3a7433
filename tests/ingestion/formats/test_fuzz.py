"""A short fuzz run: whatever the bytes, the parser ends, and cuts change nothing it finds."""

import math
from itertools import pairwise

import numpy as np
from examples import examples
from hypothesis import example, given
from hypothesis import strategies as st

from srs_ooc.ingestion.csv import (
    CATEGORIES,
    ROW_ID,
    TARGET,
    UNKNOWN,
    Dialect,
    HeaderReader,
    TableReader,
)

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
DIALECTS = st.builds(
    Dialect,
    st.sampled_from(",;\t "),
    st.sampled_from([None, "#"]),
    st.sampled_from(".,"),
    st.sampled_from([None, ("NA", "9" * 30), ("",)]),
).filter(lambda dialect: dialect.separator != dialect.point)  # refused before it is parsed


def parse(text: bytes, dialect: Dialect, cuts: list[int]) -> tuple:
    """Everything a reader says of a text cut at the given places."""
    reader = TableReader(
        np.array([0, 1, ROW_ID, TARGET], np.int32),
        dialect,
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
    fault = reader.problem and (reader.problem.fault, reader.problem.line, reader.problem.column)
    cells += reader.cells().tolist() if fault is None else []
    return cells, labels[: good.shape[1]], ids[: good.shape[1]], fault


@given(BYTES, DIALECTS, st.lists(st.integers(0, 120), max_size=5))
@example(b"1,2,r,u\r\n\r\n#\r3,4,s,v", Dialect(comment="#"), [9, 10, 12])
@examples(300)
def test_cuts_change_nothing(text, dialect, cuts):
    assert parse(text, dialect, cuts) == parse(text, dialect, [])


@given(BYTES, DIALECTS, st.integers(0, 120))
@examples(100)
def test_headers_of_any_bytes(text, dialect, cut):
    found = []
    for cuts in ([], [min(cut, len(text))]):
        reader, names = HeaderReader(dialect), []
        stops = [0, *cuts, len(text)]
        for start, stop in pairwise(stops):
            if not reader.done:
                reader.feed(text[start:stop])
                names += list(reader.take_names())
        reader.finish()
        found.append((names + list(reader.take_names()), reader.done, reader.place[0]))
    assert found[0] == found[1]
