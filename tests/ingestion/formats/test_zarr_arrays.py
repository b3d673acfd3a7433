"""Zarr arrays, and VCF Zarr, become the store of the table that they hold."""

import json

import numpy as np
import pytest
import zarr
from command import error_of
from command import srs_ooc as program
from object_server import serving
from refusals import refused
from tables import opened as opened_by
from tables import write_columns

import srs_ooc
from srs_ooc.base.errors import BudgetError, InputError, UsageError
from srs_ooc.base.urls import Url
from srs_ooc.store.arrays import Names
from srs_ooc.store.objects import Objects
from srs_ooc.testing import check_table

pytestmark = [
    pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning"),
    pytest.mark.filterwarnings("ignore:Consolidated metadata"),
]
ROWS, GENES = [f"s{i}" for i in range(23)], [f"g{i}" for i in range(11)]
VALUES = np.random.default_rng(1).standard_normal((23, 11)).round(2)
VALUES[3, 4] = VALUES[7, 0] = np.nan
LABELS = ["u", "v", "v"] * 7 + ["u", "u"]
CHUNKS = [(23, 1), (23, 4), (5, 11), (5, 3), (1, 1), (40, 40)]


def as_csv(folder, values=VALUES, names=GENES):
    """Ingest the table as CSV, and return the manifest."""
    columns = dict(zip(names, values.T.tolist(), strict=True))
    write_columns(folder / "t.csv", {"id": ROWS, **columns, "y": LABELS})
    return srs_ooc.ingest(folder / "t.csv", folder / "csv.zarr", row_ids="id", target="y")


def as_array(path, values, **more):
    array = zarr.create_array(path, shape=values.shape, dtype=values.dtype, **more)
    array[...] = values
    return array


def opened(path, scratch):
    return opened_by(path, scratch=scratch)


def dataset(folder, form, values=VALUES, dims=("sample", "gene"), **more):
    """Write the table as xarray does, with its names and labels."""
    xarray = pytest.importorskip("xarray")
    cells = values if dims[0] == "sample" else values.T
    found = xarray.Dataset(
        {"x": (dims, cells, more), "y": ("sample", LABELS), "age": ("sample", range(23))},
        coords={"sample": ROWS, "gene": GENES},
    )
    path = folder / f"d{form}.zarr"
    chunks = {"x": {"chunks": (5, 4)}}
    found.to_zarr(path, zarr_format=form, encoding=chunks)
    return path


@pytest.mark.parametrize("form", [2, 3])
@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("turned", [False, True])
def test_arrays(tmp_path, form, chunks, turned):
    expected = as_csv(tmp_path)
    values, chunks = (VALUES.T, chunks[::-1]) if turned else (VALUES, chunks)
    as_array(tmp_path / "a.zarr", values, chunks=chunks, zarr_format=form)
    path = tmp_path / ("a.zarr::.T" if turned else "a.zarr")
    check_table(opened(path, tmp_path / "scratch"), VALUES.T.tolist())
    made = srs_ooc.ingest(path, tmp_path / "z.zarr", names=GENES, target=LABELS, row_ids=ROWS)
    assert made.checksums == expected.checksums
    assert made.source == {"name": path.name, "format": "zarr"}


@pytest.mark.few(1)
@pytest.mark.parametrize("form", [2, 3])
@pytest.mark.parametrize("dims", [("sample", "gene"), ("gene", "sample")])
def test_names_that_xarray_gives(tmp_path, form, dims):
    expected, path = as_csv(tmp_path), dataset(tmp_path, form, dims=dims)
    check_table(opened(path, tmp_path / "scratch"), VALUES.T.tolist(), GENES)
    said = program("ingest", path, tmp_path / "z.zarr", "--target", "y", "--covariates", "age")
    assert "row ids: 'sample' of the file" in said.stdout
    store = srs_ooc.open_store(tmp_path / "z.zarr")
    assert list(Names(store.path, store.manifest, "names")) == GENES
    assert list(store.covariates()[0].values) == list(range(23))
    for array in ("codes/c/0/0", "names_bytes", "target", "values/c/0/0"):
        if array in expected.checksums:
            assert store.manifest.checksums[array] == expected.checksums[array]
    made = srs_ooc.ingest(path, tmp_path / "y.zarr", target="y")
    assert made.checksums == expected.checksums


def test_the_only_texts_along_the_rows_are_no_ids_where_they_are_the_target(tmp_path):
    group = zarr.create_group(tmp_path / "g.zarr")
    array = group.create_array("x", shape=(23, 11), dtype="f8", dimension_names=("row", "gene"))
    array[:] = VALUES
    labels = group.create_array("y", shape=(23,), dtype="str", dimension_names=("row",))
    labels[:] = np.array(LABELS)
    made = srs_ooc.ingest(tmp_path / "g.zarr", tmp_path / "z.zarr", target="y")
    assert (made.target_name, made.row_id_name) == ("y", None)
    assert made.classes == ("u", "v")


def test_a_sample_table_is_joined(tmp_path):
    expected, path = as_csv(tmp_path), dataset(tmp_path, 3)
    lines = [f"{row},{label}" for row, label in zip(ROWS, LABELS, strict=True)]
    (tmp_path / "s.csv").write_text("\n".join(["name,ill", *lines[::-1]]) + "\n")
    samples = ["--samples", tmp_path / "s.csv", "--id", "name", "--target", "ill"]
    program("ingest", path, tmp_path / "z.zarr", *samples)
    made = srs_ooc.open_store(tmp_path / "z.zarr").manifest
    assert made.checksums == expected.checksums


@pytest.mark.parametrize("form", [2, 3])
@pytest.mark.parametrize("dtype", ["int16", "float32"])
def test_what_an_attribute_marks_is_missing(tmp_path, form, dtype):
    values = np.arange(23 * 11, dtype=dtype).reshape(23, 11)
    path = dataset(tmp_path, form, values, _FillValue=np.dtype(dtype).type(12))
    wanted = np.where(values == 12, np.nan, values.astype(float))
    check_table(opened(path, tmp_path / "scratch"), wanted.T.tolist(), GENES)


@pytest.mark.parametrize("form", [2, 3])
@pytest.mark.parametrize(
    ("dtype", "attrs"),
    [
        ("int8", {"_Unsigned": "true"}),
        ("int8", {"_Unsigned": "true", "scale_factor": 0.5, "add_offset": 10.0}),
        ("uint8", {"_Unsigned": "false"}),
        ("int16", {"scale_factor": 0.1}),
        ("int32", {"scale_factor": 3, "add_offset": -2}),
        ("int32", {"missing_value": [12, 13]}),
        ("int16", {"missing_value": 12}),
    ],
)
@pytest.mark.filterwarnings("ignore:variable 'x' has")
def test_attributes_are_taken_as_xarray_takes_them(tmp_path, form, dtype, attrs):
    xarray = pytest.importorskip("xarray")
    path = dataset(tmp_path, form, np.arange(23 * 11).reshape(23, 11).astype(dtype), **attrs)
    wanted = xarray.open_zarr(path)["x"].values
    table = opened(path, tmp_path / "scratch")
    check_table(table, wanted.T.tolist(), GENES)
    assert table.narrow == ("scale_factor" not in attrs and dtype != "int32")


def test_what_lies_beside_is_decoded_and_a_bad_attribute_refused_where_it_is_needed(tmp_path):
    path = dataset(tmp_path, 3)
    group = zarr.open_group(path, mode="r+")
    group["age"].attrs["missing_value"] = 3
    group["y"].attrs["missing_value"] = "u"
    zarr.consolidate_metadata(path)
    known = opened(path, tmp_path / "scratch").annotations
    assert [*known["age"]] == [None if age == 3 else age for age in range(23)]
    assert [*known["y"]] == [None if label == "u" else label for label in LABELS]
    for wrong in ([1, 2], "two", {"a": 1}):
        group["age"].attrs["scale_factor"] = wrong
        zarr.consolidate_metadata(path)
        known = opened(path, tmp_path / "other").annotations
        refused(InputError, "age: expected one number as scale_factor, found", list, known["age"])


def test_packed_numbers_are_unpacked_and_absent_chunks_are_filled(tmp_path):
    array = as_array(tmp_path / "a.zarr", np.full((4, 3), 7, "int16"), chunks=(2, 3))
    array.attrs.update({"scale_factor": 0.5, "add_offset": 1, "missing_value": [9]})
    array[3, 2] = 9
    wanted = np.full((4, 3), 4.5)
    wanted[3, 2] = np.nan
    check_table(opened(tmp_path / "a.zarr", tmp_path / "scratch"), wanted.T.tolist())
    (tmp_path / "a.zarr/c/0/0").unlink()
    wanted[:2] = 1
    check_table(opened(tmp_path / "a.zarr", tmp_path / "other"), wanted.T.tolist())


def test_one_of_several_is_named(tmp_path):
    group = zarr.create_group(tmp_path / "g.zarr")
    as_array(tmp_path / "g.zarr/a", VALUES, chunks=(5, 5), shards=(10, 10))
    group.create_array("texts", shape=(3, 2), dtype=str)
    check_table(opened(tmp_path / "g.zarr", tmp_path / "a"), VALUES.T.tolist())
    as_array(tmp_path / "g.zarr/in/b", VALUES + 1)
    as_array(tmp_path / "g.zarr/c", VALUES + 2)
    check_table(opened(tmp_path / "g.zarr::in/b", tmp_path / "b"), (VALUES + 1).T.tolist())
    zarr.create_group(tmp_path / "g.zarr/in")
    check_table(opened(tmp_path / "g.zarr::in/b.T", tmp_path / "t"), (VALUES + 1).tolist())
    check_table(opened(tmp_path / "g.zarr::in", tmp_path / "i"), (VALUES + 1).T.tolist())
    for place, message in (
        ("g.zarr", r"found .*a \(23, 11\).*Name one: .*g\.zarr::NAME"),
        ("g.zarr::d", "expected an array 'd', found"),
        ("g.zarr::texts", r"expected numbers .* found"),
    ):
        refused(InputError, message, opened, tmp_path / place, tmp_path / "c")


@pytest.mark.slow
def test_what_is_no_table_is_refused(tmp_path):
    as_csv(tmp_path)
    assert "found a store of srs-ooc" in error_of("ingest", tmp_path / "csv.zarr", tmp_path / "z")
    zarr.create_array(tmp_path / "wide.zarr", shape=(10**7, 10**7), dtype="f8", chunks=(10, 10))
    assert "at most 1,000,000,000,000 cells" in error_of(
        "ingest", tmp_path / "wide.zarr", tmp_path / "z"
    )
    zarr.create_array(tmp_path / "chunk.zarr", shape=(9, 9), dtype="f8", chunks=(10**5, 10**5))
    refused(BudgetError, "cannot hold", srs_ooc.ingest, tmp_path / "chunk.zarr", tmp_path / "z")
    as_array(tmp_path / "c.zarr", np.ones((3, 3), complex))
    refused(InputError, "found complex128", opened, tmp_path / "c.zarr", tmp_path / "scratch")
    (tmp_path / "c.zarr/zarr.json").write_text('{"zarr_format": 3, "node_type": "array"}')
    with pytest.raises(InputError, match=r"could not read it.*Get the folder again"):
        opened(tmp_path / "c.zarr", tmp_path / "scratch")
    (tmp_path / "plain").mkdir()
    assert "found a folder" in error_of("ingest", tmp_path / "plain", tmp_path / "z")
    assert "could not read it" in error_of("ingest", tmp_path / "plain::a", tmp_path / "z")


def test_a_damaged_chunk_is_refused(tmp_path):
    for chunks in [(23, 11), (5, 11)]:
        path = tmp_path / f"{chunks[0]}.zarr"
        as_array(path, VALUES, chunks=chunks)
        (path / "c/0/0").write_bytes(b"no zstd")
        with pytest.raises(InputError, match="could not read it"):
            srs_ooc.ingest(path, tmp_path / "z.zarr", no_target=True)


@pytest.mark.parametrize("role", ["compressor", "filters", "dtype"])
def test_codecs_that_run_code_are_refused(tmp_path, role):
    as_array(tmp_path / "a.zarr", VALUES, zarr_format=2)
    said = json.loads((tmp_path / "a.zarr/.zarray").read_text())
    changed = {"compressor": {"id": "pickle"}, "filters": [{"id": "pickle"}], "dtype": "|O"}
    categories = {"id": "categorize", "labels": [], "dtype": "<U1"}
    plain = {"dtype": "<f8", "filters": None, "compressor": categories}
    for change in ({role: changed[role]}, plain):
        (tmp_path / "a.zarr/.zarray").write_text(json.dumps(said | change))
        with pytest.raises(InputError, match=r"could not read it|may run code"):
            opened(tmp_path / "a.zarr", tmp_path / "scratch")


def test_names_of_another_length_are_refused(tmp_path):
    path = dataset(tmp_path, 3)
    group = zarr.open_group(path, mode="r+", use_consolidated=False)
    group["gene"].resize((12,))
    said = json.loads((path / "zarr.json").read_text())
    said.pop("consolidated_metadata", None)
    (path / "zarr.json").write_text(json.dumps(said))
    with pytest.raises(InputError, match="expected 11 items along 'gene' in 'gene', found 12"):
        opened(path, tmp_path / "scratch")


# VCF Zarr.

CALLS = np.array(
    [
        [[0, 0], [0, 1], [1, 1], [-1, -1], [0, -2]],
        [[1, -2], [-1, 1], [2, 1], [0, 2], [-2, -2]],
        [[0, 0], [0, 0], [0, 1], [1, 0], [1, 1]],
        [[0, 1], [0, 1], [0, 1], [1, 0], [0, 0]],
    ],
    "int8",
)
NAN = np.nan
DOSAGES = [[0, 1, 2, NAN, 0], [1, NAN, 2, 1, NAN], [0, 0, 1, 1, 2], [1, 1, 1, 1, 0]]
VARIANTS = ["rs1", "2:20:C:G,T", "1:30:A:T", "1:40:A:T"]


def vcf_zarr(folder, form=3, **left_out):
    path = folder / "v.vcz"
    group = zarr.create_group(path, zarr_format=form, attributes={"vcf_zarr_version": "0.4"})
    arrays = {
        "call_genotype": (CALLS, ["variants", "samples", "ploidy"]),
        "sample_id": (["a", "b", "c", "d", "e"], ["samples"]),
        "sample_age": (np.array([30, 40, 50, 60, 70]), ["samples"]),
        "variant_id": (["rs1", ".", "rs2", "rs2"], ["variants"]),
        "variant_contig": (np.array([0, 1, 0, 0], "int8"), ["variants"]),
        "variant_position": (np.array([10, 20, 30, 40], "int32"), ["variants"]),
        "variant_allele": ([["A", "T", ""], ["C", "G", "T"], *[["A", "T", ""]] * 2],
                           ["variants", "alleles"]),
        "contig_id": (["1", "2"], ["contigs"]),
    }  # fmt: skip
    for name, (given, dims) in arrays.items():
        if name in left_out:
            continue
        values = np.asarray(given)
        kind = str if values.dtype.kind == "U" else values.dtype
        more = {"dimension_names": dims} if form == 3 else {}
        chunks = (2, 3, 2) if values.ndim == 3 else "auto"
        array = group.create_array(name, shape=values.shape, dtype=kind, chunks=chunks, **more)
        array[...] = values
        if form == 2:
            array.attrs["_ARRAY_DIMENSIONS"] = dims
    return path


@pytest.mark.slow
@pytest.mark.parametrize("form", [2, 3])
def test_vcf_zarr(tmp_path, form):
    path = vcf_zarr(tmp_path, form)
    check_table(opened(path, tmp_path / "scratch"), DOSAGES, VARIANTS)
    lines = [f"{one},{label}" for one, label in zip("edcba", "uuvvv", strict=True)]
    (tmp_path / "s.csv").write_text("\n".join(["id,ill", *lines]) + "\n")
    (tmp_path / "y.txt").write_text("v\nv\nv\nu\nu\n")
    samples = ["--samples", tmp_path / "s.csv", "--id", "id", "--target", "ill"]
    program("ingest", path, tmp_path / "z.zarr", *samples)
    store = srs_ooc.open_store(tmp_path / "z.zarr")
    assert list(Names(store.path, store.manifest, "names")) == VARIANTS
    assert list(Names(store.path, store.manifest, "row_ids")) == list("abcde")
    assert store.manifest.source["format"].startswith("vcf zarr, dosages of all alleles but")
    covariates = ["--target-file", tmp_path / "y.txt", "--covariates", "sample_age"]
    program("ingest", path, tmp_path / "y.zarr", *covariates)
    other = srs_ooc.open_store(tmp_path / "y.zarr")
    assert list(other.covariates()[0].values) == [30, 40, 50, 60, 70]
    data = {"id": list("abcde"), **dict(zip(VARIANTS, DOSAGES, strict=True)), "ill": list("vvvuu")}
    write_columns(tmp_path / "t.csv", data)
    expected = srs_ooc.ingest(tmp_path / "t.csv", tmp_path / "csv.zarr", row_ids="id")
    assert store.manifest.checksums == expected.checksums


def test_vcf_zarr_of_other_shapes_is_refused(tmp_path):
    path = vcf_zarr(tmp_path, variant_allele=True)
    with pytest.raises(InputError, match="expected variant_allele, by which variants are named"):
        srs_ooc.ingest(path, tmp_path / "z.zarr", target=list("uvuvu"))
    zarr.open_group(path, mode="r+")["sample_id"].resize((6,))
    with pytest.raises(InputError, match="expected 5 items along 'samples' in 'sample_id'"):
        opened(path, tmp_path / "scratch")
    group = zarr.create_group(tmp_path / "w.vcz")
    group.create_array("sample_id", shape=(5,), dtype=str)
    as_array(tmp_path / "w.vcz/call_genotype", np.ones((4, 5)))
    with pytest.raises(InputError, match="expected integers of variants x samples x ploidy"):
        opened(tmp_path / "w.vcz", tmp_path / "scratch")


# At a URL.


@pytest.mark.slow
@pytest.mark.parametrize("form", [2, 3])
def test_a_dataset_at_a_url_is_that_of_the_folder(tmp_path, form):
    pytest.importorskip("obstore")
    folder = dataset(tmp_path, form)
    here = srs_ooc.ingest(folder, tmp_path / "here.zarr", target="y")
    with serving(tmp_path) as server:
        url = f"{server.url}/{folder.name}"
        there = srs_ooc.ingest(url, tmp_path / "there.zarr", target="y")
        again = srs_ooc.ingest(f"{url}::x", tmp_path / "again.zarr", target="y")
        said = program("ingest", url, str(tmp_path / "no.zarr"), "--target", "y", "--dry-run")
    assert here.checksums == there.checksums == again.checksums
    assert there.source["name"] == folder.name
    assert "columns: 11" in said.stdout


def test_a_lone_array_at_a_url_and_one_of_this_process(tmp_path):
    pytest.importorskip("obstore")
    expected = as_csv(tmp_path)
    as_array(tmp_path / "a.zarr", VALUES, chunks=(5, 4))
    given = {"names": GENES, "target": LABELS, "row_ids": ROWS}
    with serving(tmp_path) as server:
        made = srs_ooc.ingest(f"{server.url}/a.zarr", tmp_path / "z.zarr", **given)
    assert made.checksums == expected.checksums
    objects = Objects(Url("memory://tables/a.zarr"))
    for file in (one for one in (tmp_path / "a.zarr").rglob("*") if one.is_file()):
        objects.write(file.relative_to(tmp_path / "a.zarr").as_posix(), file)
    made = srs_ooc.ingest("memory://tables/a.zarr", tmp_path / "m.zarr", **given)
    assert made.checksums == expected.checksums


@pytest.mark.slow
def test_a_server_that_fails_now_and_then_is_asked_again(tmp_path):
    pytest.importorskip("obstore")
    folder = dataset(tmp_path, 2)
    here = srs_ooc.ingest(folder, tmp_path / "here.zarr", target="y")
    with serving(tmp_path) as server:
        server.fault = lambda number, path, part: "503" if number % 5 == 4 else None
        made = srs_ooc.ingest(f"{server.url}/{folder.name}", tmp_path / "z.zarr", target="y")
    assert here.checksums == made.checksums


@pytest.mark.slow
def test_what_is_no_table_at_a_url_is_refused(tmp_path):
    pytest.importorskip("obstore")
    as_csv(tmp_path)
    zarr.create_group(tmp_path / "unlisted.zarr").create_array("x", data=VALUES)
    with serving(tmp_path) as server:
        for name, found in (
            ("unlisted.zarr", "expected arrays of Zarr"),
            ("csv.zarr", "found a store of srs-ooc"),
            ("t.csv", "expected arrays of Zarr"),
            ("nothing.zarr", "expected arrays of Zarr"),
        ):
            with pytest.raises(InputError, match=found):
                srs_ooc.ingest(f"{server.url}/{name}", tmp_path / "z.zarr", target="y")
    with pytest.raises(UsageError, match="found ftp://"):
        srs_ooc.ingest("ftp://there/a.zarr", tmp_path / "z.zarr", target="y")
    assert not (tmp_path / "z.zarr").exists()
