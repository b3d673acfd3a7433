"""verify reads every byte that a command or a Zarr client could use; sealed nonsense is found."""

import json
import re
import shutil
import zlib
from contextlib import contextmanager, suppress

import numpy as np
import pandas
import pytest
from command import check_least_cap, error_of, json_of, srs_ooc
from examples import examples, given, st
from stores import make_store

from srs_ooc import ingest
from srs_ooc import run as run_of
from srs_ooc.base.errors import StoreError
from srs_ooc.ingestion.ingest_options import ForcedKinds, IngestOptions
from srs_ooc.ingestion.stages import ingest_table
from srs_ooc.results.exporting import export_columns, values_of
from srs_ooc.store import store as store_module
from srs_ooc.store.arrays import Categories, Names, check_files, read_array
from srs_ooc.store.manifest import SHA256, SMALL_ARRAYS, read_manifest, sha256_of, verify_group
from srs_ooc.store.store import Store
from srs_ooc.store.values import ValuesReader, encode

N_ROWS, N_FEATURES = 6, 5
CSV = "id,a,b,c,d,e,w,s,g,y\n" + "".join(
    f"r{i},{i},{i % 2},{'pqr'[i % 3]},{'' if i == 2 else i * 0.1},7,{i + 1},{i // 3},{i // 2},"
    f"{'uv'[i % 2]}\n"
    for i in range(N_ROWS)
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    (folder / "t.csv").write_text(CSV)
    options = IngestOptions("y", weights="w", strata=("s",), groups="g", row_ids="id")
    ingest_table(folder / "t.csv", folder / "t.zarr", options)
    return folder / "t.zarr"


@pytest.fixture(scope="module")
def store(whole):
    """A copy to be damaged, and mended by whoever damages it."""
    return shutil.copytree(whole, whole.with_name("damaged.zarr"))


@pytest.fixture(scope="module")
def censored(whole):
    """A store of times with events and covariates: w and b are numbers, c and s categories."""
    options = IngestOptions(
        "w", censored=True, event="b", covariates=("e", "c", "d", "s"), ignore=("g", "y"),
        kinds=ForcedKinds((("s", "categorical"),)), row_ids="id",
    )  # fmt: skip
    path = whole.with_name("censored.zarr")
    ingest_table(whole.with_name("t.csv"), path, options)
    return path


def many_chunks(tmp_path, monkeypatch, *, keep_values=True, n_features=4):
    """Write a store whose values, or code ranges, are a chunk a feature, or several."""
    monkeypatch.setattr("srs_ooc.store.manifest.VALUES_CHUNK_NBYTES", 16)
    rows = [[*(f"{i * j + 0.3}" for j in range(n_features)), "uv"[i % 2]] for i in range(4)]
    lines = [",".join(row) for row in ([*map(str, range(n_features)), "y"], *rows)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    out = tmp_path / "t.zarr"
    ingest_table(tmp_path / "t.csv", out, IngestOptions(keep_values=keep_values))
    return out


@contextmanager
def mended(*files):
    """Put the bytes of files back whatever was written to them meanwhile."""
    kept = [file.read_bytes() for file in files]
    try:
        yield kept[0]
    finally:
        for file, data in zip(files, kept, strict=True):
            file.write_bytes(data)


def exchange(one, other):
    kept = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(kept)


def seal(store, record):
    """Write a manifest with its own checksum, as the code that made it would have."""
    document = json.loads((store / "zarr.json").read_bytes())
    document["attributes"] = {"srs_ooc": record, SHA256: sha256_of(record)}
    (store / "zarr.json").write_text(json.dumps(document))


def record_of(store):
    return json.loads((store / "zarr.json").read_bytes())["attributes"]["srs_ooc"]


@pytest.mark.slow
def test_verify_says_what_it_read(whole):
    found = json_of("verify", whole, "--json")
    sizes = [file.stat().st_size for file in whole.rglob("*") if file.is_file()]
    assert found["nbytes"] == sum(sizes)
    assert sum(found["files"].values()) == len(sizes)
    assert "all as written" in srs_ooc("verify", whole).stdout


@pytest.mark.slow
def test_every_byte_of_every_file_is_covered(store, monkeypatch):
    for file in sorted(file for file in store.rglob("*") if file.is_file()):
        found = verify_group if file.name == "zarr.json" else lambda *_: (0, 0)
        monkeypatch.setattr(store_module, "verify_group", found)  # which takes longest
        data = file.read_bytes()
        meaning = json.loads(data) if file.name == "zarr.json" else None
        step = 1 if meaning is None else 29 if len(data) < 2000 else 229
        for at in range(0, len(data), step):
            changed = data[:at] + bytes([data[at] ^ 1 << 5]) + data[at + 1 :]
            file.write_bytes(changed)
            try:
                Store.open(store).verify()
            except StoreError:
                continue
            assert meaning is not None, (file, at)
            assert json.loads(changed) == meaning, (file, at)
        file.write_bytes(data)
    monkeypatch.undo()
    Store.open(store).verify()


@pytest.mark.slow
@pytest.mark.parametrize("keep_values", [True, False])
def test_chunks_that_traded_places_are_found(tmp_path, monkeypatch, keep_values):
    store = many_chunks(tmp_path, monkeypatch, keep_values=keep_values)
    Store.open(store).verify()
    name = "values" if keep_values else "code_lows"
    one, other = (store / name / "c" / str(i) / "0" for i in (1, 2))
    exchange(one, other)
    message = f"{one}: expected a chunk of 1 x 2 values, found a chunk that was written elsewhere"
    assert message in error_of("verify", store)
    if keep_values:
        with pytest.raises(StoreError, match="written elsewhere"):
            export_columns(Store.open(store), np.arange(4), tmp_path / "out.csv")
        assert not (tmp_path / "out.csv").exists()
    exchange(one, other)
    Store.open(store).verify()


@pytest.mark.slow
def test_the_metadata_of_an_array_and_arrays_of_others_are_found(store):
    file = store / "values" / "zarr.json"
    with mended(file) as kept:
        file.write_bytes(kept.replace(b'"bitshuffle"', b'"shuffle"'))
        assert f"{file}: expected the metadata that follows" in error_of("verify", store)
    other = store / "other"
    shutil.copytree(store / "exact", other)
    assert f"{other}: expected the arrays of a store" in error_of("verify", store)
    shutil.rmtree(other)


def test_a_chunk_that_unpacks_to_more_than_its_place_holds_is_refused_unread(store):
    file = store / "values" / "c" / "0" / "0"
    with mended(file):
        file.write_bytes(b"".join(encode(np.zeros(1 << 22))))
        with pytest.raises(StoreError, match=r"values/c/0/0: .* found"):
            Store.open(store).verify()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2**65) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


def use(store):
    """Read what the commands read."""
    manifest = read_manifest(store)
    check_files(store, manifest)
    Store.open(store).verify()
    return manifest


TOLD_BY_THE_MANIFEST_ALONE = {
    "n_dropped_rows", "order_key", "target_name", "row_id_name", "inferred", "source",
    "classes", "row_columns", "levels",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("which", ["store", "censored"])
@given(data=st.data())
@examples(300)
def test_a_sealed_manifest_that_cannot_be_is_an_error(store, censored, which, data):
    store = store if which == "store" else censored
    record = record_of(store)
    name = data.draw(st.sampled_from(sorted(record)))
    value = record[name]
    near = [JSON]
    if type(value) is int:
        near += [st.sampled_from([-1, 0, value - 1, value + 1, float(value), str(value), [value]])]
    elif isinstance(value, list) and value:
        near += [st.sampled_from([value[:-1], [*value, value[0]], value[::-1]])]
    elif isinstance(value, dict) and value:
        key = data.draw(st.sampled_from(sorted(value)))
        near += [st.builds(lambda new: value | {key: new}, JSON)]
        near += [st.just({k: v for k, v in value.items() if k != key})]
    changed = record | {name: data.draw(st.one_of(near))}
    with mended(store / "zarr.json"), suppress(StoreError):
        seal(store, changed)
        manifest = use(store)
        assert changed == record or name in TOLD_BY_THE_MANIFEST_ALONE, (name, changed[name])
        assert json.loads(json.dumps(manifest.to_json())) == changed


@pytest.mark.slow
def test_a_flipped_bit_of_the_manifest_is_an_error_or_means_the_same(store):
    file = store / "zarr.json"
    kept = json.loads(file.read_bytes())
    meaning = kept["attributes"]["srs_ooc"]
    data = json.dumps({k: v for k, v in kept.items() if k != "consolidated_metadata"}).encode()
    n_same = 0
    for at in range(len(data)):
        bit = at * 5 % 8
        file.write_bytes(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :])
        try:
            found = read_manifest(store)
        except StoreError:
            continue
        n_same += 1
        assert json.loads(json.dumps(found.to_json())) == meaning, (at, bit)
    file.write_text(json.dumps(kept))
    assert n_same < len(data)  # spaces, and what the group says besides


CENSORED = {"target_values", "covariates", "events"}
"""Arrays of the second store; the first has the others."""
OF_LINKED = {"linked_rows", "present"}  # tests/store/test_linked.py
OF_FEATURES = {"feature_columns_bytes", "feature_columns_offsets"}  # test_feature_columns.py
RANGES = {"code_lows_crc32c", "code_highs_crc32c"}
THERE = sorted(set(SMALL_ARRAYS) - RANGES - OF_LINKED - OF_FEATURES)


def read_all(store, out):
    """Read an array as the commands do, and what is said by means of it."""
    manifest = read_manifest(store)
    for which in ("names", "row_ids"):
        list(Names(store, manifest, which))
        Names(store, manifest, which).find(["a"])
    categories = Categories(store, manifest)
    for feature in range(manifest.n_features):
        categories.of(feature)
    for name in manifest.small_arrays:
        read_array(store, manifest, name)
    out.unlink(missing_ok=True)
    export_columns(Store.open(store), np.arange(manifest.n_features), out)


def sealed(store, name, garbage):
    """Put other bytes of the same length into a small array, with their checksum."""
    (store / name / "c" / "0").write_bytes(garbage)
    record = record_of(store)
    record["checksums"][f"{name}/c/0"] = zlib.crc32(garbage)
    seal(store, record)


@pytest.mark.parametrize(
    ("name", "at", "item", "found"),
    [
        ("target", 0, 2, r"expected 0 \.\. 1, found 2"),
        ("target", 0, -1, r"expected 0 \.\. 1, found -1"),
        ("target", 0, 1, r"expected counts \[3, 3\]"),
        ("weights", 1, np.nan, "expected finite positive numbers"),
        ("weights", 1, 0, "expected finite positive numbers"),
        ("strata", 5, N_ROWS, "expected 0"),
        ("groups", 0, -1, "expected 0"),
        ("kinds", 0, 5, "expected 0"),
        ("kinds", slice(None), 0, "expected counts"),
        ("positions", slice(0, 2), 1, "expected each feature once"),
        ("positions", 0, N_FEATURES, "expected 0"),
        ("n_codes", 0, N_ROWS + 1, "expected 0"),
        ("n_missing", 0, 4, "expected counts"),
        ("exact", 0, 2, "expected 0"),
        ("names_offsets", 1, 4, "expected offsets that do not descend"),
        ("names_offsets", 0, 1, "expected 0 as the first offset"),
        ("row_ids_offsets", -1, 1 << 60, "bytes of texts"),
        ("names_bytes", 2, 0xFF, "can't decode"),
        ("row_ids_bytes", 2, 0xFF, "can't decode"),
        ("categories_bytes", 2, 0xFF, "can't decode"),
        ("categories_first", slice(1, -1), 0, "categories of feature"),
        ("values_crc32c", 0, 1, "written elsewhere"),
        ("events", 0, 2, "expected 0"),
        ("covariates", 0, np.inf, "expected finite numbers, or places of levels"),
        ("covariates", N_ROWS, 3, "expected finite numbers, or places of levels, found 3"),
        ("covariates", -1, 0.5, "expected finite numbers, or places of levels, found 0.5"),
        ("covariates", -1, -1, "expected finite numbers, or places of levels, found -1"),
    ],
)
def test_sealed_items_that_cannot_be_are_named(store, censored, tmp_path, name, at, item, found):
    store = censored if name in CENSORED else store
    flags = ("exact", "events")
    with mended(store / name / "c" / "0", store / "zarr.json") as kept:
        items = np.frombuffer(kept, "|u1" if name in flags else SMALL_ARRAYS[name]).copy()
        items[at] = item
        sealed(store, name, items.tobytes())
        with pytest.raises(StoreError, match=rf"{name}/c/0: .*{found}|values/c/0/0: .*{found}"):
            Store.open(store).verify()
        with pytest.raises(StoreError):
            read_all(store, tmp_path / "out.csv")


def test_a_signalling_nan_of_a_sealed_covariate_is_no_warning(censored, tmp_path):
    signalling = (0x7FF1 << 48).to_bytes(8, "little")
    with mended(censored / "covariates" / "c" / "0", censored / "zarr.json") as kept:
        sealed(censored, "covariates", signalling + kept[8:])
        read_all(censored, tmp_path / "out.csv")


@pytest.mark.few(4)
@pytest.mark.parametrize("name", THERE)
@given(data=st.data())
@examples(25)
def test_sealed_garbage_in_a_small_array_is_a_store_error_or_can_be_read(
    store, censored, name, data
):
    store = censored if name in CENSORED else store
    with mended(store / name / "c" / "0", store / "zarr.json") as kept, suppress(StoreError):
        garbage = data.draw(st.binary(min_size=len(kept), max_size=len(kept)))
        start = data.draw(st.integers(0, len(kept)))
        sealed(store, name, kept[:start] + garbage[start:])
        read_all(store, store.parent / "out.csv")


def sealed_values(store, name, column):
    """Write the values of a feature anew, with right checksums."""
    manifest = read_manifest(store)
    names = list(Names(store, manifest))
    stored = read_array(store, manifest, "positions").tolist().index(names.index(name))
    reader, file = ValuesReader(store, manifest), store / "values" / "c" / "0" / "0"
    chunk = reader.read_chunk(0)[0].copy()
    chunk[stored, : len(column)] = column
    data = b"".join(encode(chunk))
    file.write_bytes(data)
    crcs = store / "values_crc32c" / "c" / "0"
    crc = int.from_bytes(data[-4:], "little")
    crcs.write_bytes(np.array([crc], SMALL_ARRAYS["values_crc32c"]).tobytes())
    record = record_of(store)
    record["checksums"]["values_crc32c/c/0"] = zlib.crc32(crcs.read_bytes())
    seal(store, record)


@pytest.mark.parametrize("code", [3.0, -1.0, 0.5, np.inf])
def test_a_value_that_is_no_category_is_an_error_that_names_feature_and_row(whole, tmp_path, code):
    store = shutil.copytree(whole, tmp_path / "t.zarr")
    sealed_values(store, "c", [0, 1, code, 2, np.nan, 1])
    message = f"feature 'c', row 3: expected codes of its 3 categories, found {code:g}"
    opened = Store.open(store)
    for use in (
        opened.verify,
        lambda: export_columns(opened, np.arange(N_FEATURES), tmp_path / "out.csv"),
        lambda: values_of(opened, np.arange(N_FEATURES)),
    ):
        with pytest.raises(StoreError, match=re.escape(message)):
            use()
    assert not (tmp_path / "out.csv").exists()


# ``verify`` stays under its cap, which it names where it is too small.


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wide")
    values = np.random.default_rng(0).integers(0, 9, (60_000, 8)).astype(np.float32)
    store = make_store(folder / "t.zarr", values, np.arange(8) % 2)
    run = folder / "t.run"
    run_of(store, out=run, iterations=3, subspace_size=50, threads=1, memory_mb=512)
    return store, run


@pytest.mark.slow
@pytest.mark.parametrize("which", [0, 1], ids=["store", "run"])
def test_verify_works_at_the_smallest_cap_it_names_and_at_none_smaller(places, which):
    check_least_cap("verify", places[which])


@pytest.mark.slow
def test_texts_of_categories_do_not_take_the_cap(tmp_path):
    frame = {f"c{i}": [f"text {i} {j % 3}" for j in range(9)] for i in range(3_000)}
    store = tmp_path / "t.zarr"
    ingest(pandas.DataFrame(frame), store, target=[0, 1, 2] * 3, memory_mb=700)
    check_least_cap("verify", store)
