"""A store is opened once: what is read is its own, and as NumPy indexes; no cut kills."""

import mmap
import os
import shutil
import signal
import sys
from collections import Counter

import numpy as np
import psutil
import pytest
import zarr
from command import finished
from examples import examples, given, st
from problems import block_of
from refusals import refused
from stores import make_store, noise_table
from tree_reference import shuffled

import srs_ooc
from srs_ooc.base.errors import StoreError
from srs_ooc.ingestion.ingest_options import IngestOptions
from srs_ooc.ingestion.stages import ingest_table
from srs_ooc.native import _native
from srs_ooc.store.manifest import small_file
from srs_ooc.store.store import Store
from srs_ooc.trees.block import Block
from srs_ooc.trees.kernel import instruction_sets

N_ROWS, N_FEATURES = 40, 12


@pytest.fixture
def path(tmp_path):
    values, labels = noise_table(N_ROWS, N_FEATURES)
    return make_store(tmp_path / "t.zarr", values, labels)


@pytest.fixture
def other(tmp_path):
    values, labels = noise_table(N_ROWS, N_FEATURES, seed=1)
    return make_store(tmp_path / "other.zarr", values, labels)


def replace(path, other):
    shutil.rmtree(path)
    shutil.copytree(other, path)


def test_opening_reads_the_manifest_alone(path):
    for file in path.iterdir():
        if file.name != "zarr.json":
            shutil.rmtree(file)
    store = Store.open(path)
    assert (store.n_rows, store.n_features) == (N_ROWS, N_FEATURES)
    with pytest.raises(StoreError, match="names_offsets"):
        store.names[0]


def test_another_fingerprint_is_refused(path, other):
    found = Store.open(other).fingerprint
    with pytest.raises(StoreError, match=f"expected the store with fingerprint {found[:16]}"):
        Store.open(path, found)
    assert Store.open(path, Store.open(path).fingerprint).n_rows == N_ROWS


def test_a_block_refuses_a_store_that_was_replaced_before_it(path, other):
    store, begun = Store.open(path), []
    replace(path, other)
    with pytest.raises(StoreError, match="was replaced"), store.unchanged():
        begun.append(True)
    assert not begun


def test_a_block_refuses_a_store_that_is_replaced_within_it(path, other):
    store = Store.open(path)
    with pytest.raises(StoreError, match="was replaced"), store.unchanged():
        replace(path, other)


def written(file, mode):
    with file.open(mode) as out:
        out.write(b"1")


def map_and_write(file, _):
    with file.open("r+b") as out, mmap.mmap(out.fileno(), 0) as view:
        view[0] ^= 1


CHANGES = {
    "written over": lambda file, _: written(file, "r+b"),
    "written by a map": map_and_write,
    "grown": lambda file, _: written(file, "ab"),
    "removed": lambda file, _: file.unlink(),
    "renamed over by the same bytes": lambda file, there: shutil.move(
        shutil.copy(file, there), file
    ),
    "touched": lambda file, _: file.touch(),
    "mode": lambda file, _: file.chmod(0o640),
    "hard link": lambda file, there: there.hardlink_to(file),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_block_refuses_codes_that_are_changed_within_it(path, tmp_path, change):
    store, file = Store.open(path), path / "codes" / "c" / "0" / "0"
    with store.unchanged(), store.columns(mapped=True):
        file.read_bytes()
    with pytest.raises(StoreError, match=r"codes/c/0/0: expected codes"), store.unchanged():
        CHANGES[change](file, tmp_path / "there")
    refused(StoreError, r"codes/c/0/0: expected codes", store.check_unchanged)
    if change not in ("grown", "removed"):  # opened anew, it is what it is now
        with Store.open(path).unchanged():
            pass


@pytest.mark.parametrize("mapped", [True, False])
def test_a_store_exchanged_and_put_back_between_two_looks_is_noticed(path, other, tmp_path, mapped):
    store, away, n_open = Store.open(path), tmp_path / "away.zarr", psutil.Process().num_fds()

    def opened_while_away():
        path.rename(away)
        other.rename(path)
        try:
            store.columns(mapped=mapped)
        finally:
            path.rename(other)
            away.rename(path)

    with pytest.raises(StoreError, match="expected codes"), store.unchanged():
        opened_while_away()
    assert psutil.Process().num_fds() == n_open
    store.check_unchanged()


def test_damage_that_comes_of_another_store_is_not_called_damage(path, other):
    store = Store.open(path)

    def read():
        replace(path, other)
        store.target()

    with pytest.raises(StoreError, match="was replaced"), store.unchanged():
        read()


def test_damage_of_the_store_itself_is_named(path):
    store, file = Store.open(path), small_file(path, "target")
    file.write_bytes(bytes(file.stat().st_size))
    with pytest.raises(StoreError, match=r"target.*damaged"), store.unchanged():
        store.target()


def test_names_stay_those_of_the_store_they_were_opened_of(path, other):
    store = Store.open(path)
    assert len(store.names) == N_FEATURES
    replace(path, other)
    assert list(store.names) == [f"f{i}" for i in range(N_FEATURES)]


def test_rows_say_what_a_zarr_client_reads(tmp_path):
    values, labels = noise_table(N_ROWS, N_FEATURES)
    rows = np.arange(N_ROWS)
    srs_ooc.ingest(
        values.T, tmp_path / "t.zarr", target=labels,
        weights=1.0 + rows, strata=rows // 10, groups=rows // 2,
    )  # fmt: skip
    store, group = Store.open(tmp_path / "t.zarr"), zarr.open_group(tmp_path / "t.zarr", mode="r")
    for name in ("target", "weights", "strata", "groups", "kinds"):
        np.testing.assert_array_equal(getattr(store, name)(), group[name][:])
    np.testing.assert_array_equal(store.array("positions"), group["positions"][:])
    pieces = dict(store.pieces("n_missing"))
    np.testing.assert_array_equal(np.concatenate(list(pieces.values())), group["n_missing"][:])
    assert list(store.row_ids) == group["row"][:].tolist()


@pytest.mark.parametrize("keep_values", [True, False])
def test_numbers_of_features_are_their_values_and_positions_their_places(tmp_path, keep_values):
    path = tmp_path / "t.zarr"
    values = noise_table(40, 30)[0].round(1)  # each has a code of its own
    values[4, 7] = np.nan
    srs_ooc.ingest(values.T, path, target=np.arange(40) % 2, keep_values=keep_values)
    store = Store.open(path)
    some = np.array([2, 3, 17, 29], np.uint32)
    positions = store.positions_of(some)
    assert positions.tolist() == np.asarray(store.array("positions"))[some].tolist()
    np.testing.assert_array_equal(store.numbers_of(some), values[positions])


def test_a_store_without_weights_strata_and_groups_has_none(path):
    store = Store.open(path)
    assert store.weights() is store.strata() is store.groups() is None


# Paging columns into blocks, from maps and from files, equals NumPy indexing.


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
    st.data(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, slice(0, None, 2), slice(5, None, 29), slice(None, None, -2)]),
    st.sampled_from(instruction_sets()),
)
def test_gather_equals_indexing(chunks, width, n_rows, data, ordered, tiled, mapped, subset, isa):
    codes, parts, files = chunks[width, n_rows]
    drawn = data.draw(st.lists(st.integers(0, 90), min_size=1, max_size=91, unique=True))
    features = np.array(sorted(drawn) if ordered else drawn, dtype=np.uint32)
    everywhere = np.arange(n_rows, dtype=np.int32)
    rows = everywhere[:0] if subset is None else everywhere[subset].copy()
    kept = codes[:, rows] if len(rows) else codes
    block = Block(len(features), kept.shape[1], width, tiled=tiled)
    shape = (91, 7, n_rows, rows, width, tiled)
    if mapped:
        addresses = np.array([part.ctypes.data for part in parts], dtype=np.uint64)
        _native.gather_mapped(addresses, features, *shape, block.codes, isa)
    else:
        descriptors = np.array([file.fileno() for file in files], dtype=np.int32)
        _native.gather_files(descriptors, features, *shape, block.codes, isa)
    np.testing.assert_array_equal(block.as_columns(), kept[features])


@pytest.mark.few(1)
@pytest.mark.parametrize("isa", instruction_sets())
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("step", [1, 2])
def test_a_block_larger_than_the_caches_is_laid_out_alike(dtype, step, isa, tmp_path):
    n_rows, width = 140_007, np.dtype(dtype).itemsize
    codes = np.random.default_rng(2).integers(0, 250, (129, n_rows), dtype)
    rows = np.arange(0, n_rows, step, dtype=np.int32) if step > 1 else np.zeros(0, np.int32)
    kept = codes[:, ::step]
    block = Block(129, kept.shape[1], width, tiled=True)
    shape = np.arange(129, dtype=np.uint32), 129, 129, n_rows, rows, width, True
    address = np.array([codes.ctypes.data], dtype=np.uint64)
    _native.gather_mapped(address, *shape, block.codes, isa)
    np.testing.assert_array_equal(block.as_columns(), kept)
    codes.tofile(file := tmp_path / "chunk")

    def gather(n_threads):
        with file.open("rb") as handle:
            descriptor = np.array([handle.fileno()], dtype=np.int32)
            _native.gather_files(descriptor, *shape, block.codes, isa, n_threads)

    for n_threads in (1, 2, 5):
        block.codes[:] = 0
        gather(n_threads)
        np.testing.assert_array_equal(block.as_columns(), kept)
    os.truncate(file, 64 * n_rows * width)  # of the last tile, which the second thread reads
    refused(RuntimeError, "end of the file", gather, 2)


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
    counts = Counter(tuple(shuffled(np.arange(4), key)) for key in range(24_00))
    assert len(counts) == 24
    chi_square = sum((n - 100) ** 2 / 100 for n in counts.values())
    assert chi_square < 23 + 5 * np.sqrt(2 * 23)


def test_features_and_rows_outside_the_store_are_refused():
    part, block = np.zeros((7, 5), dtype=np.uint8), Block(1, 5, 1, tiled=True)
    addresses = np.array([part.ctypes.data], dtype=np.uint64)
    for feature, n_features, rows, message in (
        (0, 8, [], "feature 7 is beyond the last chunk"),
        (7, 7, [], r"features\[0\]: .* found 7"),
        (0, 7, [5], r"rows\[0\]: .* found 5"),
    ):
        asked = np.array([feature], np.uint32), n_features, 7, 5, np.array(rows, np.int32)
        refused(ValueError, message, _native.gather_mapped, addresses, *asked, 1, True, block.codes)


def test_a_file_cut_short_is_an_error(tmp_path):
    (file := tmp_path / "chunk").write_bytes(bytes(20))
    block, none = Block(4, 10, 1, tiled=True), np.zeros(0, dtype=np.int32)
    asked = np.arange(4, dtype=np.uint32), 4, 4, 10, none, 1, True, block.codes
    with file.open("rb") as handle, pytest.raises(RuntimeError, match="end of the file"):
        _native.gather_files(np.array([handle.fileno()], dtype=np.int32), *asked)


# A chunk file cut short while it is mapped is an error of the gather, not of the process.


GATHER = """
import faulthandler, os, signal, sys, threading
from pathlib import Path
import numpy as np
from srs_ooc.base.errors import StoreError
from srs_ooc.store.store import Store
from srs_ooc.trees.block import Block

path, then = Path(sys.argv[1]), sys.argv[2]
if then == "faulthandler":
    faulthandler.enable()
with Store.open(path).columns(mapped=True) as store:
    block = Block(70, store.manifest.n_rows, 1, tiled=True)
    features = np.arange(70, dtype=np.uint32)
    rows = np.arange(9, dtype=np.int32)
    store.gather(features, block)
    if then.startswith("later"):  # in the place of the guard, which takes it back
        faulthandler.enable()
    seen = []
    if then == "own":
        signal.signal(signal.SIGBUS, lambda *_: seen.append(then))
    before = block.codes.copy()
    file = path / "codes" / "c" / "0" / "0"
    whole = file.read_bytes()
    os.truncate(file, 5000)
    found = []
    def gather(**how):
        try:
            store.gather(features, block, **how)
        except StoreError as error:
            found.append(str(error))
    for _ in range(3):
        gather()
    gather(rows=rows)
    threads = [threading.Thread(target=gather) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 12 and len(set(found)) == 1, found
    print(found[0])
    file.write_bytes(whole)  # the same file, whole again
    store.gather(features, block)
    assert np.array_equal(before, block.codes)
if "other" in then:
    os.kill(os.getpid(), signal.SIGBUS)
if then == "own":  # each goes to the user's handler, not the first alone
    for n in range(1, 4):
        os.kill(os.getpid(), signal.SIGBUS)
        assert len(seen) == n
"""


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "then", ["nothing", "own", "faulthandler", "later", "other", "later, other"]
)
def test_a_chunk_cut_short_under_a_mapped_store_is_a_store_error(tmp_path, then):
    rng = np.random.default_rng(0)
    values = rng.standard_normal((70, 1000))
    store = make_store(tmp_path / "t.zarr", values, np.arange(1000) % 2)
    done = finished([sys.executable, "-c", GATHER, store, then])
    # a SIGBUS that is none of a gather still ends the process, as without us
    expected = -signal.SIGBUS if "other" in then else 0
    assert done.returncode == expected, done.stderr
    if "other" not in then:  # what was printed is lost with the process
        assert "chunk file 0: expected 70000 bytes, found that it was cut short" in done.stdout


SMALL = """
import os, sys
from pathlib import Path
from srs_ooc.base.errors import StoreError
from srs_ooc.store.store import Store

store = Store.open(Path(sys.argv[1]))
read = lambda: [store.target(), store.weights(), store.strata(), store.groups(), store.kinds(),
                store.array("positions"), store.array("n_missing")]
arrays = read()
expected = [array.copy() for array in arrays]
names, ids, categories = store.names, store.row_ids, store.categories()
pieces = store.pieces("positions")
for name in store.manifest.small_arrays:
    os.truncate(store.path / name / "c" / "0", 1)
assert all((a == b).all() for a, b in zip(arrays, expected, strict=True))
uses = [lambda: names[1], lambda: list(ids), lambda: names.find(["a"]), lambda: next(pieces),
        lambda: [categories.of(i) for i in range(store.n_features)], read, store.check_files]
for use in uses:
    try:
        use()
    except StoreError as error:
        print(error)
"""


def test_small_arrays_cut_short_while_they_are_in_use_are_store_errors(tmp_path):
    rows = "".join(f"r{i},{i},{'pqr'[i % 3]},{i + 1},{i // 3},{i // 2},{i % 2}\n" for i in range(9))
    (tmp_path / "t.csv").write_text("id,a,c,w,s,g,y\n" + rows)
    options = IngestOptions("y", weights="w", strata=("s",), groups="g", row_ids="id")
    ingest_table(tmp_path / "t.csv", tmp_path / "t.zarr", options)
    done = finished([sys.executable, "-c", SMALL, tmp_path / "t.zarr"])
    assert done.returncode == 0, done.stderr
    found = done.stdout.splitlines()
    assert len(found) == 7, found
    assert all("/c/0: expected" in line for line in found), found
