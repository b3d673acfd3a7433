"""The Zarr group of a store: what zarr and xarray make of it, and what ``verify`` compares."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import zarr
from examples import examples, given, st
from refusals import refused
from stores import make_store
from tables import write_lines
from zarr.codecs import BloscCodec, Crc32cCodec

import srs_ooc
from srs_ooc.base.errors import StoreError, UsageError
from srs_ooc.base.urls import place_of
from srs_ooc.ingestion.ingest_options import IngestOptions
from srs_ooc.ingestion.stages import ingest_table
from srs_ooc.store import writing
from srs_ooc.store.manifest import (
    ATTRIBUTE,
    COORDINATE_CHUNK,
    FEATURE_ARRAYS,
    SHA256,
    SMALL_ARRAYS,
    make_group,
    read_manifest,
)
from srs_ooc.store.objects import Objects
from srs_ooc.store.store import Store

FIXTURES = Path(__file__).parents[1] / "fixtures" / "format-3"
N_FEATURES, N_ROWS = 23, 7


@pytest.fixture
def store(tmp_path):
    values = np.arange(N_FEATURES)[:, None] * 100.0 + np.arange(N_ROWS)
    return make_store(tmp_path / "t.zarr", values, np.arange(N_ROWS) % 2)


def assert_pairs(names, ids, values):
    """Each value is that of its feature and row: 100 f + r."""
    features = np.array([int(name.removeprefix("f")) for name in names])
    rows = np.array([int(text) for text in ids]) - 1
    np.testing.assert_array_equal(values, features[:, None] * 100.0 + rows)
    assert features.tolist() != sorted(features)  # in stored order, which is none of the source


def test_zarr_reads_names_in_the_order_of_values(store):
    group = srs_ooc.open_zarr(store)
    assert_pairs(group["feature"][:], group["row"][:], group["values"][:])
    assert group["codes"].metadata.dimension_names == ("feature", "row")
    arrays = {"codes", "values", "feature", "row", *read_manifest(store).small_arrays}
    assert set(group.array_keys()) == arrays


def test_the_group_is_read_and_not_written(store):
    group = srs_ooc.open_zarr(str(store))
    assert group.read_only
    assert group.metadata.consolidated_metadata is not None
    for change in (
        lambda: group["codes"].__setitem__(0, 1),
        lambda: group.create_array("more", shape=(1,), dtype="u1"),
        lambda: group.attrs.__setitem__("srs_ooc", 1),
    ):
        refused(ValueError, r"read.only", change)
    Store.open(store).verify()


def test_what_is_no_store_is_not_opened_as_one(store, tmp_path):
    zarr.create_group(tmp_path / "other.zarr")
    (store / "zarr.json").write_text("{")
    for place, error, found in (
        (tmp_path / "none.zarr", StoreError, "found nothing there"),
        (tmp_path / "other.zarr", StoreError, "another kind of Zarr group"),
        (store, StoreError, r"zarr\.json: expected the manifest of a store"),
        (3, UsageError, "expected a path"),
    ):
        refused(error, found, srs_ooc.open_zarr, place)


def edited(file, change):
    """Change a zarr.json."""
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("codes", lambda d: d["shape"].reverse()),
        ("codes", lambda d: d.update(data_type="int8", fill_value=-1)),
        ("codes", lambda d: d.update(fill_value=0)),
        ("codes", lambda d: d["chunk_grid"]["configuration"]["chunk_shape"].reverse()),
        ("codes", lambda d: d["dimension_names"].reverse()),
        ("values", lambda d: d["codecs"].pop()),
        ("values", lambda d: d["codecs"][1]["configuration"].update(shuffle="shuffle")),
        ("positions", lambda d: d.update(attributes={})),
        ("feature", lambda d: d.update(node_type="group")),
        ("feature", lambda d: d.clear()),
        ("", lambda d: d["attributes"].update(more=1)),
        ("", lambda d: d["consolidated_metadata"]["metadata"]["codes"]["shape"].reverse()),
        ("", lambda d: d["consolidated_metadata"]["metadata"].pop("codes")),
    ],
)
def test_metadata_that_do_not_follow_from_the_manifest_are_found(store, name, change):
    edited(store / name / "zarr.json", change)
    for look in (srs_ooc.open_zarr, lambda place: Store.open(place).verify()):
        refused(StoreError, r"zarr\.json: expected the metadata that follows", look, store)


ODD = st.sampled_from([None, True, -1, 0, 1.0, 2**70, "", "x", [], {}, [[]], {"name": "bytes"}])


def mutated(document, data):
    """A document with one thing in it removed, replaced or added."""
    places = [()]
    for place in places:  # grows as it is walked
        inner = value_at(document, place)
        if isinstance(inner, dict | list):
            keys = inner if isinstance(inner, dict) else range(len(inner))
            places.extend((*place, key) for key in keys)
    place = data.draw(st.sampled_from(places))
    if not place:
        return data.draw(ODD)
    inner, key = value_at(document, place[:-1]), place[-1]
    how = data.draw(st.sampled_from(["remove", "replace", "add", "as a fraction"]))
    if how == "remove":
        del inner[key]
    elif how == "as a fraction" and type(inner[key]) is int:
        inner[key] = float(inner[key])
    elif how == "add" and isinstance(inner, dict):
        inner["more"] = data.draw(ODD)
    else:
        inner[key] = data.draw(ODD)
    return document


def value_at(document, place):
    for key in place:
        document = document[key]
    return document


def garbled(text, data):
    """A text cut, flipped, doubled or replaced."""
    at = data.draw(st.integers(0, len(text) - 1))
    return data.draw(
        st.sampled_from([
            b"", text[:at], text[:at] + bytes([text[at] ^ 1 << at % 8]) + text[at + 1 :],
            text + text, b"[" * 100_000, b"9" * 5000, b"\xff", b"null", text.replace(b"0", b"NaN"),
        ])
    )  # fmt: skip


def said_by(group):
    """All that the metadata of a group say, of its arrays too."""
    arrays = {name: array.metadata.to_dict() for name, array in group.arrays()}
    return repr((group.metadata.to_dict(), arrays))


@examples(150)
@given(data=st.data())
def test_a_group_with_damaged_metadata_is_opened_as_it_was_or_refused_by_name(
    tmp_path_factory, data
):
    """Never an error of zarr's, and never another shape, dtype, order or name."""
    store = make_store(tmp_path_factory.mktemp("d") / "t.zarr", np.ones((3, 4)), [0, 1, 0, 1])
    before = said_by(srs_ooc.open_zarr(store))
    file = data.draw(st.sampled_from(sorted(store.rglob("zarr.json"))))
    how = data.draw(st.sampled_from(["remove", "folder", "text", *["document"] * 5]))
    text = file.read_bytes()
    if how in ("remove", "folder"):
        file.unlink()
        if how == "folder":
            file.mkdir()
    elif how == "text":
        file.write_bytes(garbled(text, data))
    else:
        file.write_text(json.dumps(mutated(json.loads(text), data)))
    try:
        found = said_by(srs_ooc.open_zarr(store))
    except StoreError as error:
        refusal = str(error)
        assert f"{store}" in refusal
        assert "expected" in refusal or "could not be read" in refusal
        assert "ingest" in refusal or "try again" in refusal
    else:
        left_out = file.parent == store and b"consolidated_metadata" not in file.read_bytes()
        assert found == before or left_out


def test_metadata_at_a_url_are_compared_too(store):
    target = Objects(place_of("memory://damaged/t.zarr"))
    for file in store.rglob("*"):
        if file.is_file():
            target.write(file.relative_to(store).as_posix(), file)
    assert "codes" in srs_ooc.open_zarr("memory://damaged/t.zarr")
    target.write("kinds/zarr.json", b"{}")
    said = "memory://damaged/t.zarr/kinds/zarr.json: expected"
    refused(StoreError, f"{said} the", srs_ooc.open_zarr, "memory://damaged/t.zarr")
    target.remove(["kinds/zarr.json"])
    refused(StoreError, f"{said} a f", srs_ooc.open_zarr, "memory://damaged/t.zarr")


def test_an_array_without_metadata_is_found(store):
    (store / "kinds" / "zarr.json").unlink()
    refused(StoreError, r"kinds/zarr\.json: expected a file, found none", Store.open(store).verify)


def test_a_store_without_consolidated_metadata_is_whole(store):
    edited(store / "zarr.json", lambda document: document.pop("consolidated_metadata"))
    Store.open(store).verify()
    assert "codes" in srs_ooc.open_zarr(store)


def made_by_zarr(folder, manifest, about):
    """Have zarr itself write the metadata of a store."""
    n_features, n_rows = manifest.n_features, manifest.n_rows
    row_arrays = ("target", "target_values", "weights", "strata", "groups", "events")
    attributes = {ATTRIBUTE: manifest.to_json(), SHA256: manifest.fingerprint}
    group = zarr.create_group(folder, zarr_format=3, attributes=attributes)

    def add(name, shape, chunks, dtype, dimensions, **more):
        given = {"fill_value": 0, "filters": None, "compressors": None} | more
        laid_out = {"shape": shape, "chunks": chunks, "dtype": dtype}
        group.create_array(name, dimension_names=dimensions, **laid_out, **given)

    chunks, fill = (manifest.chunk_features, n_rows), manifest.missing_code
    dimensions = ("feature", "row")
    add("codes", (n_features, n_rows), chunks, manifest.code_dtype, dimensions, fill_value=fill)
    for name in manifest.small_arrays:
        length = manifest.lengths[name]
        dimension = "feature" if name in FEATURE_ARRAYS else f"{name}_item"
        dimension = "row" if name in row_arrays else dimension
        more = {"attributes": {"description": about[name]}} if name in about else {}
        add(name, (length,), (length,), SMALL_ARRAYS[name], (dimension,), **more)
    for name, n_items in manifest.float_arrays.items():
        size = np.dtype(manifest.float_dtype).itemsize
        blosc = BloscCodec(typesize=size, cname="lz4", clevel=5, shuffle="bitshuffle", blocksize=0)
        dimensions = ("feature", "row" if name == "values" else "code")
        shape, chunks = (n_features, n_items), manifest.values_chunk
        packed = {"fill_value": np.nan, "compressors": [blosc, Crc32cCodec()]}
        add(name, shape, chunks, manifest.float_dtype, dimensions, **packed)
    for name, n in (("feature", n_features), ("row", n_rows)):
        add(name, (n,), (min(n, COORDINATE_CHUNK),), "string", (name,), fill_value="")
    with pytest.warns(UserWarning, match="Consolidated metadata"):
        zarr.consolidate_metadata(group.store)


@pytest.mark.parametrize(
    "options",
    [
        IngestOptions(row_ids="ö"),
        IngestOptions(target="b", task="regression", weights="w", row_ids="ö"),
        IngestOptions("b", censored=True, event="t", covariates=("w",), row_ids="ö"),
        IngestOptions(
            row_ids="ö", keep_values=False, strata=("t",), groups="b", code_dtype="uint16"
        ),
    ],
)
def test_metadata_are_byte_by_byte_what_zarr_writes(tmp_path, options):
    rows = [f"r{i},{i},{i + 0.1},{('no', 'yes')[i % 2]},{i % 3},{'uü'[i % 2]}" for i in range(7)]
    (tmp_path / "t.csv").write_text("\n".join(["ö,b,w,t,x,'é\"'", *rows, ""]), encoding="utf-8")
    store = tmp_path / "t.zarr"
    manifest = ingest_table(tmp_path / "t.csv", store, options)
    about = {
        name: json.loads((store / name / "zarr.json").read_text())["attributes"]["description"]
        for name in ("names_bytes", "names_offsets", "positions")
    }
    made_by_zarr(tmp_path / "by-zarr", manifest, about)
    files = sorted(file.relative_to(store) for file in store.rglob("zarr.json"))
    assert len(files) > 10
    for file in files:
        assert (store / file).read_bytes() == (tmp_path / "by-zarr" / file).read_bytes(), file


def test_a_store_written_before_has_the_metadata_that_are_written_now(tmp_path):
    zipfile.ZipFile(FIXTURES / "stores.zip").extractall(tmp_path)
    stores = sorted(file.parent for file in tmp_path.glob("*/zarr.json"))
    assert stores
    for store in stores:
        manifest = read_manifest(store)
        make_group(tmp_path / "now" / store.name, manifest)
        again = read_manifest(tmp_path / "now" / store.name)
        assert again.fingerprint == manifest.fingerprint
        before, now = (
            {file.parent.relative_to(folder).as_posix(): json.loads(file.read_text())
             for file in folder.rglob("zarr.json")}
            for folder in (store, tmp_path / "now" / store.name)
        )  # fmt: skip
        del now["."]["consolidated_metadata"]
        for name in ("feature", "row"):
            assert now[name]["codecs"][0].pop("configuration") == {}
        assert now == before
        assert Store.open(store).verify().nbytes > 0


@pytest.mark.slow
def test_xarray_selects_values_and_codes_by_name(store):
    xarray = pytest.importorskip("xarray")
    table = xarray.open_zarr(store, chunks=None)
    assert_pairs(table.feature.values, table.row.values, table["values"].values)
    assert float(table["values"].sel(feature="f17", row="3")) == 1702
    assert int(table.codes.sel(feature="f17", row="3")) == 2
    assert table.exact.sel(feature=["f3", "f1"]).values.all()
    assert table.target.sel(row="2") == 1


def test_texts_of_several_chunks_and_of_any_size_are_written_alike(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "MB", 40)
    path = tmp_path / "t.csv"
    names = [f"n{'é' * (i % 7)}{i}" for i in range(13)]
    rows = ([f"r{i}", *range(13), "ab"[i % 2]] for i in range(6))
    write_lines(path, [["id", *names, "y"], *rows])
    found = []
    for limit, of_each in ((8_000_000, 0), (0, 0), (0, 40)):
        monkeypatch.setattr(writing, "TEXTS_HELD_NBYTES", limit)
        monkeypatch.setattr(writing, "TEXT_HELD_NBYTES", of_each)
        out = tmp_path / f"{limit}-{of_each}.zarr"
        for module in ("manifest", "writing"):
            monkeypatch.setattr(f"srs_ooc.store.{module}.COORDINATE_CHUNK", 5)
        ingest_table(path, out, IngestOptions(row_ids="id"))
        Store.open(out).verify()
        group = zarr.open_group(out, mode="r")
        found.append(group["feature"][:].tolist())
        assert group["row"][:].tolist() == [f"r{i}" for i in range(6)]
        assert [names[i] for i in group["positions"][:]] == found[-1]
    assert found[0] == found[1] == found[2]


def test_a_store_of_codes_alone_opens_too(tmp_path):
    xarray = pytest.importorskip("xarray")
    path = tmp_path / "t.csv"
    path.write_text("a,b,c,y\n1,5,x,u\n2,6,y,v\n2,7,x,u\n")
    ingest_table(path, tmp_path / "t.zarr", IngestOptions(keep_values=False))
    Store.open(tmp_path / "t.zarr").verify()
    table = xarray.open_zarr(tmp_path / "t.zarr", consolidated=False, chunks=None)
    assert table.code_lows.sel(feature="b").values.tolist() == [5, 6, 7]
    assert table.codes.sel(feature="a").values.tolist() == [0, 1, 1]
