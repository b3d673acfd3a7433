"""Paging columns into blocks, from maps and from files, equals NumPy indexing."""

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from problems import block_of
from tree_reference import shuffled

from srs_ooc.evidence.decoys import Exchangeability
from srs_ooc.native import _native
from srs_ooc.trees.block import Block


@pytest.fixture(scope="module")
def chunks(tmp_path_factory):
    """Codes of both widths, in chunk files of 7 features, mapped and open."""
    folder = tmp_path_factory.mktemp("chunks")
    rng = np.random.default_rng(0)
    made = {}
    for dtype in (np.uint8, np.uint16):
        for n_rows in (1, 15, 16, 64, 201):
            codes = rng.integers(0, np.iinfo(dtype).max, (91, n_rows)).astype(dtype)
            parts = [codes[i : i + 7] for i in range(0, 91, 7)]
            files = []
            for i, part in enumerate(parts):
                file = folder / f"{np.dtype(dtype).name}-{n_rows}-{i}"
                part.tofile(file)
                files.append(file.open("rb"))
            made[np.dtype(dtype).itemsize, n_rows] = (codes, parts, files)
    yield made
    for _, _, files in made.values():
        for file in files:
            file.close()


@examples(120)
@given(
    st.sampled_from([1, 2]),
    st.sampled_from([1, 15, 16, 64, 201]),
    st.integers(0, 2),
    st.data(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_gather_equals_indexing(
    chunks, width, n_rows, n_families, data, ordered, tiled, mapped, subset
):
    codes, parts, files = chunks[width, n_rows]
    drawn = data.draw(
        st.lists(st.integers(0, 91 * (1 + n_families) - 1), min_size=1, max_size=250, unique=True)
    )
    items = np.array(sorted(drawn) if ordered else drawn, dtype=np.uint32)
    rows = np.arange(0, n_rows, 2, dtype=np.int32) if subset else np.zeros(0, dtype=np.int32)
    n_kept = len(rows) if subset else n_rows
    block = Block(len(items), n_kept, width, tiled=tiled)
    rows_of = Exchangeability(n_kept)
    families = np.array([rows_of.families(m, 1)[0] for m in range(n_families)], dtype=np.int32)
    shape = (91, families.reshape(-1), 7, n_rows, rows, width, tiled)
    if mapped:
        addresses = np.array([part.ctypes.data for part in parts], dtype=np.uint64)
        _native.gather_mapped(addresses, items, *shape, block.codes)
    else:
        descriptors = np.array([file.fileno() for file in files], dtype=np.int32)
        _native.gather_files(descriptors, items, *shape, block.codes)
    kept = codes[:, rows] if subset else codes
    everything = np.concatenate([kept, *(kept[:, family] for family in families)])
    np.testing.assert_array_equal(block.as_columns(), everything[items])


@pytest.mark.parametrize("tiled", [True, False])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_a_shuffled_column_is_the_reference_permutation_of_its_source(tiled, dtype):
    codes = np.random.default_rng(1).integers(0, 250, (70, 33)).astype(dtype)
    block = block_of(codes, tiled=tiled)
    block.shuffle_column(3, 69, key=12345)
    columns = block.as_columns()
    np.testing.assert_array_equal(columns[69], shuffled(codes[3], 12345))
    np.testing.assert_array_equal(columns[:69], codes[:69])
    assert sorted(columns[69]) == sorted(codes[3])


def test_shuffling_is_uniform_over_permutations():
    counts = {}
    for key in range(24_00):
        order = tuple(shuffled(np.arange(4), key))
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 24
    chi_square = sum((n - 100) ** 2 / 100 for n in counts.values())
    assert chi_square < 23 + 5 * np.sqrt(2 * 23)


def test_features_and_rows_outside_the_store_are_refused():
    part = np.zeros((7, 5), dtype=np.uint8)
    addresses = np.array([part.ctypes.data], dtype=np.uint64)
    block = Block(1, 5, 1, tiled=True)
    none = np.zeros(0, dtype=np.int32)
    first, decoy = np.array([0], dtype=np.uint32), np.array([7], dtype=np.uint32)
    outside = np.array([5], dtype=np.int32)
    with pytest.raises(ValueError, match="feature 7 is beyond the last chunk"):
        _native.gather_mapped(addresses, first, 8, none, 7, 5, none, 1, True, block.codes)
    with pytest.raises(ValueError, match="item 7 is of no family"):
        _native.gather_mapped(addresses, decoy, 7, none, 7, 5, none, 1, True, block.codes)
    with pytest.raises(ValueError, match="decoy's row 5"):
        _native.gather_mapped(
            addresses, decoy, 7, np.repeat(outside, 5), 7, 5, none, 1, True, block.codes
        )
    with pytest.raises(ValueError, match="row 5"):
        _native.gather_mapped(addresses, first, 7, none, 7, 5, outside, 1, True, block.codes)


def test_a_file_cut_short_is_an_error(tmp_path):
    file = tmp_path / "chunk"
    file.write_bytes(bytes(20))
    block = Block(4, 10, 1, tiled=True)
    with file.open("rb") as handle, pytest.raises(RuntimeError, match="end of the file"):
        _native.gather_files(
            np.array([handle.fileno()], dtype=np.int32),
            np.arange(4, dtype=np.uint32),
            4,
            np.zeros(0, dtype=np.int32),
            4,
            10,
            np.zeros(0, dtype=np.int32),
            1,
            True,
            block.codes,
        )
