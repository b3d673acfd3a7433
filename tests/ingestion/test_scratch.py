"""Panels give back what was put in, whatever their size; texts on disk behave like a list."""

from itertools import pairwise

import numpy as np
import pytest
from examples import given, st

from srs_ooc.ingestion import scratch
from srs_ooc.ingestion.formats import Texts, hash_text
from srs_ooc.ingestion.scratch import Panels, TextSpool, text_blocks


@given(st.integers(1, 12), st.integers(1, 30), st.integers(1, 40), st.data())
def test_panels_of_any_size_give_the_columns_back(tmp_path_factory, p, n, rows_held, data):
    table = np.random.default_rng(p * n).normal(size=(p, n))
    path = tmp_path_factory.mktemp("s") / "panels"
    with Panels(path, p, min(rows_held, n)) as spool:
        panel_rows = spool.panel.shape[1]
        for start in range(0, n, panel_rows):
            part = table[:, start : start + panel_rows]
            spool.panel[:, : part.shape[1]] = part
            spool.flush(part.shape[1])
        spool.seal()
        start = data.draw(st.integers(0, p - 1))
        stop = data.draw(st.integers(start + 1, p))
        np.testing.assert_array_equal(spool.read(start, stop), table[start:stop])
    assert not path.exists()


@pytest.mark.parametrize("wide", [0, 1 << 22])
@given(st.integers(1, 60), st.integers(0, 60), st.integers(1, 60), st.integers(1, 60), st.data())
def test_rows_become_columns_in_another_order(
    tmp_path_factory, wide, p, n_ignored, n, rows_held, data
):
    """Of wide rows, which are dealt first, and of others; by one thread or several."""
    dtypes = [data.draw(st.sampled_from([np.float32, np.float64])) for _ in range(2)]
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    table = rng.integers(-99, 99, (n, p + n_ignored)).astype(dtypes[0])
    columns = rng.permutation(p + n_ignored)[:p].astype(np.uint32)
    table[:, np.setdiff1d(np.arange(p + n_ignored), columns)] = np.inf  # are nobody's business
    path = tmp_path_factory.mktemp("s") / "panels"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scratch, "WIDE", wide)
        patch.setattr(scratch, "_COPY_NBYTES", data.draw(st.integers(1, 4000)))
        with Panels(path, p, min(rows_held, n), dtypes[1]) as spool:
            panel_rows = spool.panel.shape[1]
            for start in range(0, n, panel_rows):
                rows = table[start : start + panel_rows]
                cut = data.draw(st.integers(0, len(rows)))
                for first, part in (0, rows[:cut]), (cut, rows[cut:]):
                    assert spool.put(part, columns, first, 2) == (-1, True)
                spool.flush(len(rows))
            spool.seal()
            np.testing.assert_array_equal(spool.read(0, p), table[:, columns].T)


@pytest.mark.parametrize("wide", [0, 1 << 22])
def test_what_rows_hold_is_told(tmp_path, monkeypatch, wide):
    monkeypatch.setattr(scratch, "WIDE", wide)
    columns = np.array([4, 1, 0, 3], np.uint32)
    with Panels(tmp_path / "panels", 4, 6) as spool:
        rows = np.ones((3, 5))
        rows[0, 2] = np.inf  # goes nowhere
        assert spool.put(rows, columns, 0) == (-1, True)
        rows[1, 3] = 0.1
        assert spool.put(rows, columns, 0) == (-1, False)
        rows[1, 3] = 1e300
        assert spool.put(rows, columns, 0) == (-1, False)
        rows[1:, :2] = -np.inf
        assert spool.put(rows, columns, 0) == (5, False)
        spool.seal()


def as_texts(texts: list[str]) -> Texts:
    blocks = list(text_blocks(texts))
    blob, ends = blocks[0] if blocks else (b"", np.zeros(0, np.uint64))
    return Texts(blob, ends, np.array([hash_text(t.encode()) for t in texts], np.uint64))


@given(st.lists(st.text(max_size=4), max_size=20), st.integers(0, 20), st.data())
def test_text_spool_is_a_list(tmp_path_factory, texts, cut, data):
    spool = TextSpool(tmp_path_factory.mktemp("t"), "x")
    spool.append(as_texts(texts[:cut]))
    spool.append(as_texts(texts[cut:]))
    assert len(spool) == len(texts)
    assert [spool.get(i).decode() for i in range(len(texts))] == texts
    for text in [*texts, "never there"]:
        assert spool.find(text) == (texts.index(text) if text in texts else None)
    whole = [blob[: int(ends[-1])] for blob, ends in spool.blocks()]
    assert b"".join(whole) == "".join(texts).encode()
    repeated = [(texts.index(t), i) for i, t in enumerate(texts) if texts.index(t) < i]
    assert spool.duplicates(limit=100) == repeated
    skip = data.draw(st.frozensets(st.integers(0, max(0, len(texts) - 1)), max_size=3))
    kept = []
    for blob, ends in spool.blocks(skip):
        starts = [0, *ends.tolist()]
        kept += [blob[a:b].decode() for a, b in pairwise(starts)]
    assert kept == [t for i, t in enumerate(texts) if i not in skip]


@pytest.mark.slow
def test_blocks_of_long_texts_stay_small(tmp_path):
    texts = [str(i) * 200_000 for i in range(9)] + ["x"] * 40_000
    spool = TextSpool(tmp_path, "x")
    for text in texts:
        spool.append(as_texts([text]))
    sizes = [(len(blob), len(ends)) for blob, ends in spool.blocks()]
    assert max(size for size, _ in sizes) <= 1 << 20
    assert max(n for _, n in sizes) <= 1 << 14
    assert sum(n for _, n in sizes) == len(texts)
