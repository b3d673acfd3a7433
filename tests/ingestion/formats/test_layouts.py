"""10x, loom, GCTX and BIOM 2.1 are read as scanpy, loompy, cmapPy and biom-format read them.

What is expected is what these gave of the same bytes: scanpy 1.11.5, loompy 3.0.8, cmapPy 4.0.1,
biom-format 2.1.18.
"""

import math

import numpy as np
import pytest
from command import check_least_cap, srs_ooc
from tables import data_file, opened

from srs_ooc import ingest
from srs_ooc.base.errors import InputError, UsageError
from srs_ooc.store.opening import open_store
from srs_ooc.testing import check_table

h5py = pytest.importorskip("h5py")
TEXT = h5py.string_dtype()
COUNTS = np.array([[0, 3, 0, 1, 0], [2, 0, 0, 0, 7], [0, 0, 0, 0, 0], [1, 1, 4, 0, 2]])
"""Samples x features."""
BARCODES = ["AAAC-1", "AAAG-1", "AACT-1", "AAGT-1"]
SYMBOLS = ["TBCE", "APP", "TBCE", "CD3", "CD19"]
NUMBERED = ["TBCE", "APP", "TBCE-1", "CD3", "CD19"]
IDS = ["ENSG1", "ENSG2", "ENSG3", "CD3_TotalA", "CD19_TotalA"]
TYPES = ["Gene Expression"] * 3 + ["Antibody Capture"] * 2


def lines(group, matrix, *, dtype="i4"):
    """Write a sparse matrix: indices of a line descend, and 7 is written as 3 and 4."""
    cells, indices, ends = [], [], [0]
    for line in matrix:
        for place in np.flatnonzero(line)[::-1].tolist():
            parts = [3, 4] if line[place] == 7 else [line[place]]
            cells.extend(parts)
            indices.extend([place] * len(parts))
        ends.append(len(cells))
    group["data"], group["indices"] = np.array(cells, dtype), np.array(indices, "i8")
    group["indptr"] = np.array(ends, "i8")


def tenx(path, counts=COUNTS, types=TYPES):
    with h5py.File(path, "w") as file:
        group = file.create_group("matrix")
        lines(group, counts)
        group["shape"] = np.array(counts.shape[::-1], "i4")
        group["barcodes"] = np.array(BARCODES, "S18")
        features = group.create_group("features")
        features["id"], features["name"] = np.array(IDS, "S15"), np.array(SYMBOLS, "S15")
        features["feature_type"], features["_all_tag_keys"] = np.array(types, "S"), [b"genome"]
        features["genome"] = np.array(["GRCh38"] * 3 + [""] * 2, "S12")
    return path


def tenx_v2(path, *genomes):
    with h5py.File(path, "w") as file:
        for genome in genomes:
            group = file.create_group(genome)
            lines(group, COUNTS)
            group["shape"], group["barcodes"] = np.array([5, 4], "i4"), np.array(BARCODES, "S18")
            group["genes"], group["gene_names"] = np.array(IDS, "S15"), np.array(SYMBOLS, "S15")
    return path


ROWS = {"CellID": BARCODES, "state": ["ill", "well", "ill", "well"], "age": [30, 41, 29, 57]}


def loom(path, rows=ROWS, columns=None):
    with h5py.File(path, "w") as file:
        file.create_dataset("matrix", data=COUNTS.T, chunks=(2, 3), compression="gzip")
        file["layers/spliced"] = COUNTS.T * 2.0
        columns = {"Gene": SYMBOLS, "Accession": IDS} if columns is None else columns
        for side, items in (("col_attrs", rows), ("row_attrs", columns)):
            group = file.create_group(side)
            for name, cells in items.items():
                group.create_dataset(name, data=cells, dtype=TEXT if name != "age" else None)
        file["col_attrs/umap"] = np.ones((4, 2))
    return path


def gctx(path):
    with h5py.File(path, "w") as file:
        matrix = COUNTS.astype("f4")
        matrix[0, 0], matrix[1, 1] = -666, np.nan
        file["0/DATA/0/matrix"] = matrix
        file["0/META/COL/id"] = np.array(["MCF7:DMSO:-666", "b", "c", "-666"], "S40")
        file["0/META/COL/cell"] = np.array(["MCF7", "-666", "A375", "MCF7"], "S8")
        file["0/META/COL/dose"] = np.array([10.5, -666, 1, 2], "f4")
        file["0/META/ROW/id"] = np.array(IDS, "S40")
        file["0/META/ROW/symbol"] = np.array(SYMBOLS, "S9")
    return path


def biom(path, sides=("observation", "sample")):
    names = {"observation": IDS, "sample": BARCODES}
    with h5py.File(path, "w") as file:
        for side, matrix in zip(sides, (COUNTS.T, COUNTS), strict=True):
            lines(file.create_group(f"{side}/matrix"), matrix, dtype="f8")
            file.create_dataset(f"{side}/ids", data=names[side], dtype=TEXT)
            file.create_group(f"{side}/metadata")
        file.create_dataset("sample/metadata/pH", data=["7.1", "6", "", "5"], dtype=TEXT)
        file.create_dataset("sample/metadata/a@@SLASH@@b", data=list("abab"), dtype=TEXT)
        taxa = [["k__B", f"p__{i}", ""] for i in range(5)]
        file.create_dataset("observation/metadata/taxonomy", data=taxa, dtype=TEXT)
        file.attrs["shape"], file.attrs["format-version"] = (5, 4), (2, 1)
    return path


COLUMNS = COUNTS.T.astype(float).tolist()


def test_each_keeps_the_contract(tmp_path):
    cells = {"barcodes": BARCODES}
    check_table(opened(tenx(tmp_path / "c3")), COLUMNS, NUMBERED, cells)
    check_table(opened(tenx_v2(tmp_path / "c2", "hg19")), COLUMNS, NUMBERED, cells)
    check_table(opened(loom(tmp_path / "loom")), COLUMNS, NUMBERED, ROWS)
    spliced = opened(tmp_path / "loom::layers/spliced")
    check_table(spliced, (2 * COUNTS.T).tolist(), NUMBERED, ROWS)
    otus = {"ids": BARCODES, "pH": ["7.1", "6", "", "5"], "a/b": list("abab")}
    check_table(opened(biom(tmp_path / "biom")), COLUMNS, IDS, otus)
    values = COUNTS.T.astype(float)
    values[0, 0], values[1, 1] = -666, math.nan
    plates = {"id": ["MCF7:DMSO:-666", "b", "c", "-666"], "cell": ["MCF7", None, "A375", "MCF7"]}
    plates["dose"] = [10.5, None, 1.0, 2.0]
    check_table(opened(gctx(tmp_path / "gctx")), values.tolist(), IDS, plates)


def test_features_are_named_as_asked_and_of_the_type_asked_for(tmp_path):
    path = tenx(tmp_path / "c.h5")
    check_table(opened(path, names_from="id"), COLUMNS, IDS)
    proteins = opened(path, feature_type="Antibody Capture")
    check_table(proteins, COLUMNS[3:], SYMBOLS[3:], {"barcodes": BARCODES})
    assert proteins.said.endswith(
        "feature type: Antibody Capture, of 'Gene Expression' 3, 'Antibody Capture' 2; names: name;"
        " --names-from id takes id"
    )
    genes = opened(path, feature_type="Gene Expression", names_from="symbol")
    check_table(genes, COLUMNS[:3], NUMBERED[:3])
    check_table(opened(loom(tmp_path / "l"), names_from="id"), COLUMNS, IDS)
    with pytest.raises(InputError, match=r"'ADT', found 'Gene Expression' 3, 'Antibody Capture' 2"):
        opened(path, feature_type="ADT")
    with pytest.raises(InputError, match="the symbol of each feature, found id, symbol"):
        opened(gctx(tmp_path / "g"), names_from="symbol")


def test_the_summary_says_what_was_taken_for_what(tmp_path):
    path, store = tenx(tmp_path / "c.h5"), tmp_path / "c.zarr"
    read_as = (
        "10x, /matrix, features x samples; row ids: barcodes; feature types: "
        "'Gene Expression' 3, 'Antibody Capture' 2, all taken; --feature-type NAME takes one; "
        "names: name, repeated ones end in -1, -2, ...; --names-from id takes id\n"
    )
    dry = srs_ooc("ingest", path, store, "--no-target", "--dry-run").stdout
    assert f"read as: HDF5, by its first bytes; {read_as}" in dry
    assert "scratch disk: 108 bytes, given back\n" in dry  # 12 each of 9 that are written
    assert ": codes 20 bytes, values 360 bytes\n" in dry
    assert f"read as: {read_as}" in srs_ooc("ingest", path, store, "--no-target").stdout
    made = open_store(store)
    assert (list(made.row_ids), list(made.names)) == (BARCODES, NUMBERED)


def test_columns_beside_are_roles_and_orient_features_changes_nothing(tmp_path):
    roles = ("--target", "state", "--covariates", "age", "--min-class-rows", "1")
    path = loom(tmp_path / "a.loom")
    srs_ooc("ingest", path, tmp_path / "a.zarr", *roles)
    made = open_store(tmp_path / "a.zarr")
    assert (made.manifest.target_name, made.manifest.classes) == ("state", ("ill", "well"))
    assert made.manifest.row_columns["covariates"] == ["age"]
    (tmp_path / "people.csv").write_text(
        "cell,y\n" + "".join(f"{one},{'ab'[i % 2]}\n" for i, one in enumerate(BARCODES))
    )
    people = ("--samples", tmp_path / "people.csv", "--id", "cell", "--target", "y")
    for file in (path, biom(tmp_path / "b.biom")):
        for orient in ("samples", "features"):
            how = ("--orient", orient, "--overwrite")
            srs_ooc("ingest", file, tmp_path / "b.zarr", *people, *how)
            assert set(open_store(tmp_path / "b.zarr").row_ids) == {*BARCODES}
    assert opened(f"{gctx(tmp_path / 'g')}::.T").shape == (4, 5)
    assert opened(tmp_path / "g::0/DATA/0/matrix.T").shape == (5, 4)


def test_what_has_no_layout_takes_no_names_from(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,u\n2,v\n")
    for option in ({"names_from": "id"}, {"feature_type": "Gene Expression"}):
        for table in (tmp_path / "t.csv", np.ones((2, 3))):
            with pytest.raises(UsageError, match="such as 10x, found another"):
                ingest(table, tmp_path / "t.zarr", no_target=True, **option)


def changed(path, place, items=None):
    with h5py.File(path, "a") as file:
        del file[place]
        if items is not None:
            file[place] = items
    return path


def test_lengths_that_contradict_are_refused(tmp_path):
    named = "expected 4 rows and {} columns, as are named, found /{} of 4 x {}"
    for made, place, items, said in (
        (tenx, "matrix/shape", [10**12, 4], named.format(5, "matrix", 10**12)),
        (tenx, "matrix/features/name", [b"a"] * 6, named.format(6, "matrix", 5)),
        (tenx, "matrix/shape", None, "expected shape in the file, found no shape"),
        (loom, "row_attrs/Gene", [b"a"] * 4, named.format(4, "matrix", 5)),
        (gctx, "0/META/ROW/id", [b"a"] * 4, named.format(4, "0/DATA/0/matrix", 5)),
        (biom, "observation/ids", [b"a"], named.format(1, "observation/matrix", 5)),
    ):
        with pytest.raises(InputError, match=said):
            opened(changed(made(tmp_path / "x"), place, items))
    with pytest.raises(InputError, match="expected one matrix of numbers, found /hg19, /mm10"):
        opened(tenx_v2(tmp_path / "two", "hg19", "mm10"))
    assert opened(tmp_path / "two::mm10").shape == (4, 5)
    linked = changed(loom(tmp_path / "x"), "col_attrs")
    with h5py.File(linked, "a") as file:
        file["col_attrs"] = h5py.ExternalLink(str(loom(tmp_path / "other")), "col_attrs")
    with pytest.raises(InputError, match="found a link or another file for col_attrs"):
        opened(linked)
    linked.unlink()
    broken = tenx(tmp_path / "x")
    with h5py.File(broken, "a") as file:
        file["matrix/indices"][0] = 5
    with pytest.raises(InputError, match="expected indices below 5, found 0 to 5"):
        opened(broken).read(np.arange(5), None)


def test_names_of_loom_may_be_numbers_escaped_or_elsewhere(tmp_path):
    cells = {"CellID": ["&#252;1", "c&d", "β", "&lt;"]}
    table = opened(loom(tmp_path / "a", cells, {"Gene": ["&#946;-tub", "é", "a", "b", "c"]}))
    assert list(table.annotations["CellID"]) == ["ü1", "c&d", "β", "&lt;"]
    assert list(table.names) == ["β-tub", "é", "a", "b", "c"]
    assert opened(loom(tmp_path / "b", {"age": [1, 1, 2, 2]}, {})).default_ids is None
    table = opened(loom(tmp_path / "c", {"state": list("abab"), "cell": BARCODES}, {"x": IDS}))
    assert (table.default_ids, list(table.names)) == ("cell", IDS)


def test_a_matrix_that_is_square_keeps_its_sides(tmp_path):
    path = changed(tenx_v2(tmp_path / "c", "hg19"), "hg19/indptr", [0, 1, 1, 1, 1, 1])
    for place, items in (("data", [9]), ("indices", [3]), ("shape", [5, 5])):
        changed(path, f"hg19/{place}", items)
    table = opened(changed(path, "hg19/barcodes", [b"b0", b"b1", b"b2", b"b3", b"b4"]))
    assert table.annotations.keys() == {"barcodes"}
    assert table.read(np.array([3]), None).tolist() == [[9, 0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("name", "shape", "total", "ids", "names"),
    [
        ("10x-v2.h5", (12, 343), 12, "AACACGTGTACGCTGC-1", "DSCAM"),
        ("10x-v3.h5", (1107, 507), 41549, "AAACCCAAGGAGAGTA-1", "CH507-9B2.2"),
        ("cells.loom", (200, 20), 0, None, "A"),
        ("n2x1203.gctx", (2, 1203), 0.0010869503021240234, "TS1",
         "ISO001_MCF10A.WTLP_24H:DMSO:-666"),
        ("otu-2.1.biom", (6, 5), 27, "Sample1", "GG_OTU_1"),
    ],
)  # fmt: skip
def test_files_of_the_tools_are_read(tmp_path, name, shape, total, ids, names):
    table = opened(data_file("files", name), scratch=tmp_path)
    assert table.shape == shape
    values = table.read(np.arange(shape[0 if table.by_rows else 1]), None)
    assert float(values.sum(dtype=float)) == pytest.approx(total)
    assert next(iter(table.names)) == names
    assert (table.default_ids and table.annotations[table.default_ids][0]) == ids


@pytest.mark.slow
def test_the_smallest_cap_that_is_named_works(tmp_path):
    counts = np.random.default_rng(0).poisson(0.05, (400, 20_000))
    with h5py.File(path := tmp_path / "c.h5", "w") as file:
        group = file.create_group("matrix")
        lines(group, counts)
        group["shape"] = counts.shape[::-1]
        group["barcodes"] = np.array([f"b{i}" for i in range(400)], "S")
        for name in ("id", "name"):
            group[f"features/{name}"] = np.array([f"{name}{i}" for i in range(20_000)], "S")
        group["features/feature_type"] = np.array(["a", "b"] * 10_000, "S")
    asked = ("ingest", path, tmp_path / "c.zarr", "--no-target", "--feature-type", "b")
    check_least_cap(*asked, too_small=60)
