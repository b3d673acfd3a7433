"""One table through every reader: equal stores, whatever is asked; and what is bad is refused.

Each maker writes the same matrix, names and ids as a format holds them; what a file cannot hold of
its rows stands in a table of samples beside it.
"""

import gzip
import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from bed_files import write_bed
from command import killed_in
from tables import here as srs_ooc
from tables import opened, said_here, write_lines

from srs_ooc.ingestion.formats import FORMATS, TEXT
from srs_ooc.ingestion.formats.files import known_of
from srs_ooc.store.opening import open_store
from srs_ooc.testing import check_table

RNG = np.random.default_rng(58)
N_ROWS, N_COLUMNS = 16, 9
VALUES = RNG.integers(0, 3, (N_ROWS, N_COLUMNS))
VALUES[:3, 0] = 0, 1, 2
PATIENTS = [i % 8 for i in range(N_ROWS)]
STATE = [("ill", "well")[one % 3 > 0] for one in PATIENTS]
VALUES[:, 2] = 0  # a column and a row of which a sparse file says nothing
VALUES[5] = 0
NAMES = [f"g{j}" for j in range(N_COLUMNS)]
IDS = [f"s{i:02}" for i in range(N_ROWS)]
BESIDE = {
    "state": STATE,
    "age": [str(20 + 3 * i) for i in range(N_ROWS)],
    "patient": [f"p{one}" for one in PATIENTS],
    "site": ["north" if one < 4 else "south" for one in PATIENTS],
}
ROLES = ("--target", "state", "--covariates", "age", "--groups", "patient", "--strata", "site",
         "--code-dtype", "uint8")  # fmt: skip
SIGNED = {"ill": 0, "well": 1}
COLUMNS = {"id": IDS, **dict(zip(NAMES, VALUES.T.tolist(), strict=True)), **BESIDE}
FAM = [f"F{i} {one} 0 0 1 {i % 2 + 1}" for i, one in enumerate(IDS)]


def lines_of(rows, separator="\t"):
    return "".join(separator.join(map(str, row)) + "\n" for row in rows)


def people(folder, rows=slice(None, None, -1)):
    """Return what names a table of the samples, in another order than theirs."""
    columns = {"id": IDS, **BESIDE}
    rows = [*zip(*columns.values(), strict=True)][rows]
    write_lines(folder / "people.csv", [columns, *rows])
    return ("--samples", folder / "people.csv", "--id", "id")


def features(values, names):
    """The rows of a table with a feature a row."""
    return ([name, *row] for name, row in zip(names, values.T.tolist(), strict=True))


def csv_file(folder, values, names):
    rows = zip(IDS, *values.T.tolist(), *BESIDE.values(), strict=True)
    write_lines(folder / "t.csv", [["id", *names, *BESIDE], *rows])
    return folder / "t.csv", ("--row-ids", "id")


def features_csv(folder, values, names):
    (folder / "t.tsv").write_text(lines_of([["", *IDS], *features(values, names)]))
    return folder / "t.tsv", ("--orient", "features", *people(folder))


def gzipped(folder, values, names):
    path, how = features_csv(folder, values, names)
    path.with_suffix(".gz").write_bytes(gzip.compress(path.read_bytes()))
    return path.with_suffix(".gz"), how


def raw(folder, values, names):
    rows = [[*one.split(), *cells] for one, cells in zip(FAM, values.tolist(), strict=True)]
    header = [*["FID", "IID", "PAT", "MAT", "SEX", "PHENOTYPE"], *(f"{one}_A" for one in names)]
    (folder / "t.raw").write_text(lines_of([header, *rows], " "))
    return folder / "t.raw", None  # its own columns are six


def traw(folder, values, names):
    header = ["CHR", "SNP", "(C)M", "POS", "COUNTED", "ALT"] + [f"0_{one}" for one in IDS]
    rows = ([1, name, 0, 1, "A", "G", *row] for name, *row in features(values, names))
    (folder / "t.traw").write_text(lines_of([header, *rows]))
    return folder / "t.traw", None  # row ids are FID_IID


def sqlite(folder, values, names):
    with sqlite3.connect(folder / "t.db") as file:
        columns = ["id", *names, *BESIDE]
        file.execute(f"create table t ({', '.join(columns)})")
        rows = zip(IDS, *values.T.tolist(), *BESIDE.values(), strict=True)
        file.executemany(f"insert into t values ({','.join('?' * len(columns))})", rows)
    file.close()
    return folder / "t.db", ("--query", "select * from t")


def duckdb(folder, values, names):
    library, (source, _) = pytest.importorskip("duckdb"), csv_file(folder, values, names)
    with library.connect(str(folder / "t.duckdb")) as file:
        file.execute(f"create table t as select * from read_csv('{source}')")
    return folder / "t.duckdb", ("--query", "select * from t")


def frame(values, names):
    arrow = pytest.importorskip("pyarrow")
    columns = [IDS, *values.T.copy(), *({**BESIDE, "age": [*map(float, BESIDE["age"])]}.values())]
    return arrow.Table.from_arrays([arrow.array(one) for one in columns], ["id", *names, *BESIDE])


def parquet(folder, values, names):
    table = frame(values, names)
    from pyarrow.parquet import write_table

    write_table(table, folder / "t.parquet")
    return folder / "t.parquet", ("--row-ids", "id")


def feather(folder, values, names):
    table = frame(values, names)
    from pyarrow.feather import write_feather

    write_feather(table, folder / "t.feather")
    return folder / "t.feather", ("--row-ids", "id")


def arrays(values, names):
    return {"X": values, "names": np.array(names), "ids": np.array(IDS)} | {
        name: np.array(cells, float if name == "age" else None) for name, cells in BESIDE.items()
    }


def npz(folder, values, names):
    np.savez(folder / "t.npz", **arrays(values, names))
    return folder / "t.npz", ()


def mat(folder, values, names):
    io = pytest.importorskip("scipy.io")
    given = arrays(values, names)
    io.savemat(folder / "t.mat", {k: v.astype(object) if v.dtype.kind == "U" else v
                                  for k, v in given.items()})  # fmt: skip
    return folder / "t.mat", ()


def npy(folder, values, names):
    np.save(folder / "t.npy", values)
    (folder / "names.txt").write_text("\n".join(names))
    (folder / "target.txt").write_text("\n".join(STATE))
    return folder / "t.npy", None  # no ids


def svmlight(folder, values, names):
    rows = (" ".join(f"{j + 1}:{x}" for j, x in enumerate(row) if x) for row in values.tolist())
    lines = [f"{SIGNED[one]} {row}" for one, row in zip(STATE, rows, strict=True)]
    (folder / "t.svm").write_text("\n".join([*lines, ""]))
    return folder / "t.svm", None


def sparse(group, matrix):
    rows, places = np.nonzero(matrix)
    group["data"], group["indices"] = matrix[rows, places].astype("i4"), places.astype("i8")
    group["indptr"] = np.concatenate([[0], np.cumsum((matrix != 0).sum(axis=1))])


def hdf5(folder, name):
    h5py = pytest.importorskip("h5py")
    return h5py.File(folder / name, "w"), h5py.string_dtype()


def ten_x(folder, values, names):
    with hdf5(folder, "t.h5")[0] as file:
        sparse(group := file.create_group("matrix"), values)
        group["shape"], group["barcodes"] = np.array(values.shape[::-1], "i4"), np.array(IDS, "S")
        for name in ("name", "id"):
            group[f"features/{name}"] = np.array(names, "S")
        group["features/feature_type"] = np.array(["Gene Expression"] * len(names), "S")
    return folder / "t.h5", people(folder)


def ten_x_2(folder, values, names):
    with hdf5(folder, "t2.h5")[0] as file:
        sparse(group := file.create_group("hg19"), values)
        group["shape"], group["barcodes"] = np.array(values.shape[::-1], "i4"), np.array(IDS, "S")
        group["genes"] = group["gene_names"] = np.array(names, "S")
    return folder / "t2.h5", people(folder)


def h5ad(folder, values, names, is_sparse=False):
    file, text = hdf5(folder, f"t{is_sparse}.h5ad")
    with file:
        if is_sparse:
            sparse(group := file.create_group("X"), values)
            group.attrs["encoding-type"], group.attrs["shape"] = "csr_matrix", values.shape
        else:
            file["X"] = values.astype("f4")
        for side, items in (("obs", {"_index": IDS, **BESIDE}), ("var", {"_index": names})):
            file.create_group(side).attrs["_index"] = "_index"
            for name, cells in items.items():
                kind = float if name == "age" else text
                file.create_dataset(f"{side}/{name}", data=np.array(cells, dtype=kind))
    return folder / f"t{is_sparse}.h5ad", ()


def sparse_h5ad(folder, values, names):
    return h5ad(folder, values, names, is_sparse=True)


def loom(folder, values, names):
    file, text = hdf5(folder, "t.loom")
    with file:
        file["matrix"] = values.T.astype("f4")
        file.create_dataset("row_attrs/Gene", data=names, dtype=text)
        for name, cells in {"CellID": IDS, **BESIDE}.items():
            file.create_dataset(f"col_attrs/{name}", data=cells, dtype=text)
    return folder / "t.loom", ()


def gctx(folder, values, names):
    with hdf5(folder, "t.gctx")[0] as file:
        file["0/DATA/0/matrix"] = values.astype("f4")
        file["0/META/ROW/id"] = np.array(names, "S")
        for name, cells in {"id": IDS, **BESIDE}.items():
            file[f"0/META/COL/{name}"] = np.array(cells, "S")
    return folder / "t.gctx", ()


def biom(folder, values, names):
    file, text = hdf5(folder, "t.biom")
    with file:
        for side, matrix, ids in (("observation", values.T, names), ("sample", values, IDS)):
            sparse(file.create_group(f"{side}/matrix"), matrix)
            file.create_dataset(f"{side}/ids", data=ids, dtype=text)
            file.create_group(f"{side}/metadata")
        for name, cells in BESIDE.items():
            file.create_dataset(f"sample/metadata/{name}", data=cells, dtype=text)
        file.attrs["shape"], file.attrs["format-version"] = values.T.shape, (2, 1)
    return folder / "t.biom", ()


def plain_hdf5(folder, values, names):
    file, text = hdf5(folder, "plain.h5")
    with file:
        file["x"] = values
        for name, cells in {"gene": names, "id": IDS, **BESIDE}.items():
            kind = float if name == "age" else text
            file.create_dataset(name, data=np.array(cells, dtype=kind))
    return folder / "plain.h5", ("--row-ids", "id")


def biom_json(folder, values, names):
    rows, places = np.nonzero(values.T)
    said = {
        "format_url": "http://biom-format.org",
        "matrix_type": "sparse",
        "matrix_element_type": "int",
        "shape": values.T.shape,
        "rows": [{"id": name, "metadata": None} for name in names],
        "columns": [
            {"id": one, "metadata": {name: cells[i] for name, cells in BESIDE.items()}}
            for i, one in enumerate(IDS)
        ],
        "data": np.array([rows, places, values.T[rows, places]]).T.tolist(),
    }
    (folder / "t.json").write_text(json.dumps(said))
    return folder / "t.json", ()


def biom_tsv(folder, values, names):
    text = lines_of([["#OTU ID", *IDS], *features(values, names)])
    (folder / "otus.txt").write_text(f"# Constructed from biom file\n{text}")
    return folder / "otus.txt", people(folder)


def gct(folder, values, names):
    head = [["#1.3"], [*values.T.shape, 0, len(BESIDE)], ["id", *IDS]]
    rows = ([name, *cells] for name, cells in BESIDE.items())
    (folder / "t.gct").write_text(lines_of([*head, *rows, *features(values, names)]))
    return folder / "t.gct", ()


def geo(folder, values, names):
    head = [["!Series_title", '"t"'], ["!Sample_geo_accession", *IDS]]
    for name, cells in BESIDE.items():
        head.append(["!Sample_characteristics_ch1", *(f'"{name}: {one}"' for one in cells)])
    rows = [["!series_matrix_table_begin"], ["ID_REF", *IDS], *features(values, names)]
    text = lines_of([*head, *rows, ["!series_matrix_table_end"]])
    (folder / "t_series_matrix.txt.gz").write_bytes(gzip.compress(text.encode()))
    return folder / "t_series_matrix.txt.gz", ()


def zarr(folder, values, names):
    library = pytest.importorskip("zarr")
    group = library.create_group(folder / "table.zarr")
    for name, cells, dims in (
        ("x", values, ("sample", "gene")),
        ("gene", np.array(names), ("gene",)),
        ("sample", np.array(IDS), ("sample",)),
        *((name, np.array(cells), ("sample",)) for name, cells in BESIDE.items()),
    ):
        kind = "str" if cells.dtype.kind == "U" else cells.dtype
        group.create_array(name, shape=cells.shape, dtype=kind, dimension_names=dims)[:] = cells
    return folder / "table.zarr::x", ()


def bed(folder, values, names):
    return write_bed(folder, values.astype(float), names, FAM), people(folder)


def pgen(folder, values, names):
    library, how = pytest.importorskip("pgenlib"), people(folder)
    size = (str(folder / "t.pgen").encode(), N_ROWS, len(names))
    with library.PgenWriter(size[0], size[1], variant_ct=size[2], nonref_flags=False) as file:
        for column in values.T:
            file.append_biallelic(np.ascontiguousarray(column, np.int8))
    variants = [[1, j, one, "A", "G"] for j, one in enumerate(names)]
    variants.insert(0, ["#CHROM", "POS", "ID", "REF", "ALT"])
    (folder / "t.pvar").write_text(lines_of(variants))
    (folder / "t.psam").write_text(lines_of([["#IID"], *([one] for one in IDS)]))
    return folder / "t.pgen", how


def vcf(folder, values, names):
    pytest.importorskip("cyvcf2")
    head = "##fileformat=VCFv4.2\n##contig=<ID=1>\n"
    head += '##FORMAT=<ID=GT,Number=1,Type=String,Description="">\n'
    header = [*["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT"], *IDS]
    called = (
        [1, j + 1, name, "A", "G", ".", ".", ".", "GT", *(("1/1", "0/1", "0/0")[x] for x in row)]
        for j, (name, *row) in enumerate(features(values, names))
    )
    (folder / "t.vcf").write_text(head + lines_of([header, *called]))
    return folder / "t.vcf", people(folder)


def bgen(folder, values, names):
    library = pytest.importorskip("bgen")
    how = {"n_samples": N_ROWS, "samples": IDS, "compression": "zlib", "layout": 2}
    with library.BgenWriter(str(folder / "t.bgen"), **how) as file:
        for j, (name, *row) in enumerate(features(values, names)):
            shares = np.eye(3)[2 - np.array(row)]  # of AA, AG and GG
            file.add_variant(varid="", rsid=name, chrom="1", pos=j + 1, alleles=["A", "G"],
                             genotypes=shares)  # fmt: skip
    return folder / "t.bgen", people(folder)


def mtx(folder, values, names):
    (folder := folder / "t.mtx").mkdir()
    entries = [(j + 1, i + 1, values[i, j]) for i, j in zip(*np.nonzero(values), strict=True)]
    head = [["%%MatrixMarket matrix coordinate integer general"], ["%"]]
    rows = [*head, [*values.T.shape, len(entries)], *entries]
    genes = lines_of([one, one, "Gene Expression"] for one in names)
    files = {"matrix.mtx": lines_of(rows, " "), "features.tsv": genes,
             "barcodes.tsv": lines_of([one] for one in IDS)}  # fmt: skip
    for name, text in files.items():
        (folder / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    return folder, people(folder.parent)


def arff(folder, values, names):
    kinds = [*("numeric" for _ in names), "{ill,well}", "numeric", "string", "{north,south}"]
    told = [f"@attribute {one} {kind}" for one, kind in zip([*names, *BESIDE], kinds, strict=True)]
    rows = zip(IDS, *values.T.tolist(), *BESIDE.values(), strict=True)
    text = "\n".join(["@relation t", "@attribute id string", *told, "@data\n"])
    (folder / "t.arff").write_text(text + lines_of(rows, ","))
    return folder / "t.arff", ("--row-ids", "id")


MAKERS = (csv_file, features_csv, gzipped, raw, traw, sqlite, duckdb, parquet, feather, npy, npz)
MAKERS += (mat, svmlight, plain_hdf5, h5ad, sparse_h5ad, ten_x, ten_x_2, loom, gctx, biom)
MAKERS += (biom_json, biom_tsv, gct, geo, zarr, bed, pgen, vcf, bgen, mtx, arff)
TEXTS = (csv_file, features_csv, gzipped, raw, traw, arff)
REFUSING = (csv_file, features_csv, gzipped, parquet, feather, npz, mat, zarr, arff)
REFUSING += (biom_json, biom_tsv, gct, geo)
"""Formats whose names are refused where they repeat: others are numbered, as their tools do."""


def made(make, folder, values=VALUES, names=NAMES):
    """Return the file of a maker and what reads it; skip what nothing reads yet."""
    path, how = make(folder, values, names)
    known = known_of(Path(str(path).partition("::")[0]))[0]
    assert known.reader
    assert known is not TEXT or make in TEXTS
    return path, how


def whole(make):
    """Whether a maker's file, and what stands beside it, holds all that the reference does."""
    return make not in (raw, traw, npy, svmlight)


every = pytest.mark.parametrize("make", MAKERS, ids=lambda one: one.__name__)
all_whole = pytest.mark.parametrize("make", [*filter(whole, MAKERS)], ids=lambda one: one.__name__)


def ingested(make, folder, *more, **given):
    path, how = made(make, folder, **given)
    if "--aggregate" in more:
        how = ("--ignore", "id") * (make is not plain_hdf5) if how == ("--row-ids", "id") else how
    srs_ooc("ingest", path, folder / "t.zarr", *how, *ROLES, *more)
    return open_store(folder / "t.zarr")


def facts(store, *parts):
    """What a store says, whatever it was made of, and however its values are packed."""
    manifest = store.manifest
    parts = parts or ("codes", "names", "kinds", "n_codes", "exact", "target", "feature/",
                      "row", "covariates")  # fmt: skip
    sums = {name: crc for name, crc in manifest.checksums.items() if name.startswith(parts)}
    covariates = [[one.name, one.levels] for one in store.each_covariate()]
    values = store.column_parts(np.arange(manifest.n_features))
    sums["values"] = [(i, row, some.tolist()) for i, row, some in values]
    return (sums, manifest.classes, covariates, dict(manifest.row_columns) | {"row_ids": 0})


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """A folder with the store of the CSV, another of a group a row, and a run with its trees."""
    folder = tmp_path_factory.mktemp("reference")
    ingested(csv_file, folder)
    aggregated = (*ROLES, "--ignore", "id", "--aggregate", "mean")
    srs_ooc("ingest", folder / "t.csv", folder / "g.zarr", *aggregated)
    srs_ooc("run", folder / "t.zarr", "--save-trees", "--iterations", 8, "--out", folder / "r.run")
    return folder


def test_each_format_that_is_read_is_made_here(tmp_path):
    found = set()
    for make in MAKERS:
        (folder := tmp_path / make.__name__).mkdir()
        try:
            path, _ = make(folder, VALUES, NAMES)
        except pytest.skip.Exception:
            continue
        found.add(known_of(Path(str(path).partition("::")[0]))[0])
    missing = {one for one in (*FORMATS, TEXT) if one.reader} - found
    assert {one.name for one in missing} <= {"MatrixMarket"}, "write a maker for each"


@all_whole
def test_the_store_is_that_of_the_csv_with_the_samples_in_any_order(tmp_path, reference, make):
    store, plain = ingested(make, tmp_path), open_store(reference / "t.zarr")
    assert facts(store) == facts(plain)
    assert list(store.row_ids) == IDS
    assert list(store.names) == NAMES


@pytest.mark.parametrize("make", [raw, traw, npy, svmlight], ids=lambda one: one.__name__)
def test_what_has_no_place_for_ids_or_columns_has_the_same_cells(tmp_path, reference, make):
    path, how = made(make, tmp_path)
    how = {
        raw: ("--no-target",),
        traw: ("--samples", tmp_path / "fam.csv", "--id", "id", "--target", "state"),
        npy: ("--names", tmp_path / "names.txt", "--target-file", tmp_path / "target.txt"),
        svmlight: ("--names", tmp_path / "names.txt"),
    }[make]
    (tmp_path / "names.txt").write_text("\n".join(NAMES))
    rows = [("id", "state"), *((f"0_{one}", s) for one, s in zip(IDS, STATE, strict=True))]
    (tmp_path / "fam.csv").write_text(lines_of(rows, ","))
    srs_ooc("ingest", path, tmp_path / "t.zarr", *how, "--code-dtype", "uint8")
    store, plain = open_store(tmp_path / "t.zarr"), open_store(reference / "t.zarr")
    parts = ("codes", "kinds", "n_codes", "exact", *["target"] * (make is not raw))
    assert facts(store, *parts)[0] == facts(plain, *parts)[0]
    assert [one.removesuffix("_A") for one in store.names] == NAMES
    numbers = [str(i + 1) for i in range(N_ROWS)]
    assert list(store.row_ids) in (IDS, [f"0_{one}" for one in IDS], numbers)


@pytest.mark.parametrize("make", [parquet, feather, h5ad, gct, npz, loom])
def test_samples_join_whatever_names_the_rows(tmp_path, reference, make):
    path, how = make(tmp_path, VALUES, NAMES)
    srs_ooc("ingest", path, tmp_path / "t.zarr", *how, *people(tmp_path), *ROLES)
    assert facts(open_store(tmp_path / "t.zarr")) == facts(open_store(reference / "t.zarr"))


@all_whole
def test_a_row_of_each_group_is_that_of_the_csv(tmp_path, reference, make):
    store = ingested(make, tmp_path, "--aggregate", "mean")
    assert facts(store) == facts(open_store(reference / "g.zarr"))
    assert list(store.row_ids) == [f"p{i}" for i in range(8)]


@every
def test_each_keeps_the_contract_of_a_table(tmp_path, make):
    if make in TEXTS:
        pytest.skip("texts are parsed straight into panels")
    path, how = made(make, tmp_path)
    table = opened(path, query=how[1] if how and how[0] == "--query" else None)
    cells, kept = VALUES.T.astype(float).tolist(), len(BESIDE) + 1
    if make in (parquet, feather):  # what stands beside are columns
        age = [*map(float, BESIDE["age"])]
        columns = [IDS, *cells, *(age if k == "age" else v for k, v in BESIDE.items())]
        check_table(table, columns, ["id", *NAMES, *BESIDE])
    elif make not in (sqlite, duckdb, svmlight):
        check_table(table, cells, None if make is npy else NAMES)
    else:
        assert table.shape[1] in (N_COLUMNS, N_COLUMNS - 1, N_COLUMNS + kept, N_COLUMNS + kept - 1)
    table.close()


@every
def test_trees_predict_a_file_as_they_predict_the_csv(tmp_path, reference, make):
    path, how = made(make, tmp_path)
    by = "t.csv" if make in TEXTS else "t.zarr"
    srs_ooc("predict", reference / "r.run", reference / by, tmp_path / "expected.csv")
    expected = (tmp_path / "expected.csv").read_text()
    ids = ("--row-ids", "id") if how == ("--row-ids", "id") and make is not csv_file else ()
    unnamed = make in (npy, svmlight, raw, traw, sqlite, duckdb, features_csv, gzipped)
    srs_ooc("predict", reference / "r.run", path, tmp_path / "o.csv", *ids, expect=2 * unnamed)
    if not unnamed:
        found = (tmp_path / "o.csv").read_text()
        assert found.partition("\n")[2] == expected.partition("\n")[2]


@all_whole
def test_named_features_show_the_same_in_a_store_of_each(tmp_path, reference, capsys, make):
    (tmp_path / "names.txt").write_text("g1\ng3\n")
    ingested(make, tmp_path)
    stores = (tmp_path / "t.zarr", reference / "t.zarr")
    said = [said_here(capsys, "assess", tmp_path / "names.txt", one, "--csv") for one in stores]
    assert said[0] == said[1]
    assert said[0].count("\n") == 3


@pytest.mark.slow
@pytest.mark.parametrize(("module", "name"), [("writer", "write_texts"), ("stages", "write_store")])
@all_whole
def test_killed_it_leaves_no_store_and_the_same_command_makes_it(
    tmp_path, reference, make, module, name
):
    path, how = made(make, tmp_path)
    call = ("ingest", path, tmp_path / "t.zarr", *how, *ROLES)
    killed_in(module, name, *call)
    assert not (tmp_path / "t.zarr").exists()
    srs_ooc(*call)
    assert facts(open_store(tmp_path / "t.zarr")) == facts(open_store(reference / "t.zarr"))
    assert not [*tmp_path.glob("*t.zarr?*")]


def refused(capsys, folder, path, how, *more):
    """Have an ingest refuse a file, and return what it said."""
    call = ("ingest", path, folder / "bad.zarr", *how, *(more or ROLES))
    said = said_here(capsys, *call, expect=2)
    assert "expected" in said or "The smallest cap that works" in said
    assert "Traceback" not in said
    assert not (folder / "bad.zarr").exists()
    return said


@pytest.mark.parametrize("part", [0.3, 0.7, 0.98])
@every
def test_a_file_that_is_cut_short_is_refused(tmp_path, capsys, make, part):
    path, how = made(make, tmp_path)
    files = [file for file in [path, *path.glob("matrix.mtx*")] if file.is_file()]
    if make is zarr or (part == 0.98 and make in (csv_file, raw, svmlight, arff)):
        pytest.skip("a chunk that is not there is a fill value, half a number a number")
    for file in files:
        file.write_bytes(file.read_bytes()[: int(part * file.stat().st_size)])
    refused(capsys, tmp_path, path, how or ("--no-target",), *(ROLES if how else ("--ignore", "")))


@all_whole
def test_names_that_repeat_are_refused_or_numbered(tmp_path, capsys, make):
    if make in (sqlite, duckdb):
        pytest.skip("a database has no such table")
    path, how = made(make, tmp_path, names=["g0", "g0", *NAMES[2:]])
    if make in REFUSING:
        assert "'g0'" in refused(capsys, tmp_path, path, how)
    else:
        srs_ooc("ingest", path, tmp_path / "t.zarr", *how, *ROLES)
        names = list(open_store(tmp_path / "t.zarr").names)
        assert len({*names}) == N_COLUMNS
        assert names[2:] == NAMES[2:] or make is plain_hdf5  # f0, f1, ..., as is said


MORE = (loom, gctx, biom, ten_x, ten_x_2, zarr, bed, npy, biom_json, mtx)
"""Formats whose names are those of the matrix; others say f0, f1, ... of names that do not fit."""


@pytest.mark.parametrize("make", MORE, ids=lambda one: one.__name__)
def test_a_name_more_than_there_are_columns_is_refused(tmp_path, capsys, make):
    path, how = made(make, tmp_path, names=[*NAMES, "more"])
    named = ("--names", tmp_path / "names.txt", "--no-target")
    refused(capsys, tmp_path, path, how or (), *(named if make is npy else ROLES))


@pytest.mark.parametrize(
    ("make", "old", "new"),
    [
        *((make, "\ts15\n", "\n") for make in (features_csv, gzipped, biom_tsv, gct, geo, vcf)),
        (csv_file, ",site\n", "\n"),
        (raw, " g8_A", ""),
        (traw, "\t0_s15", ""),
        (gct, "9\t16\t0\t4", "9\t17\t0\t4"),
        (gct, "9\t16\t0\t4", "8\t16\t0\t4"),
        (gct, "9\t16\t0\t4", "1000000\t1000000\t0\t4"),
        (gct, "9\t16\t0\t4", "9\t16\t0\t3"),
        (biom_json, "[9, 16]", "[9, 15]"),
        (biom_json, "[9, 16]", "[1000000, 1000000]"),
        (mtx, "9 16 ", "1000000 1000000 "),
        (mtx, "9 16 ", "9 15 "),
        (svmlight, " 2:", " 1000000000000:"),
        (arff, "@attribute site {north,south}\n", ""),
    ],
)
def test_counts_that_contradict_what_is_there_are_refused(tmp_path, capsys, make, old, new):
    path, how = made(make, tmp_path)
    file = path / "matrix.mtx.gz" if path.is_dir() else path
    is_packed = file.suffix == ".gz"
    text = (gzip.decompress(file.read_bytes()) if is_packed else file.read_bytes()).decode()
    assert old in text
    text = text[: text.rindex(old)] + new + text[text.rindex(old) + len(old) :]
    file.write_bytes(gzip.compress(text.encode()) if is_packed else text.encode())
    refused(capsys, tmp_path, path, how or (), *(ROLES if how else ["--ignore", ""]))


@pytest.mark.parametrize(
    "make", [npy, zarr, plain_hdf5, h5ad, loom, gctx], ids=lambda m: m.__name__
)
def test_a_trillion_cells_that_are_promised_are_refused_in_time(tmp_path, capsys, make):
    path, _ = made(make, tmp_path)
    big, places = (10**6, 10**6), {h5ad: "X", loom: "matrix", gctx: "0/DATA/0/matrix"}
    if make is npy:
        with path.open("wb") as file:
            header = {"descr": "<f8", "fortran_order": False, "shape": big}
            np.lib.format.write_array_header_1_0(file, header)
            file.write(bytes(800))
    elif make is zarr:
        library = pytest.importorskip("zarr")
        group = library.open_group(folder := tmp_path / "big.zarr", mode="w")
        group.create_array("x", shape=big, chunks=(1000, 1000), dtype="f8")
        path = folder
    else:
        with pytest.importorskip("h5py").File(path, "a") as file:
            del file[places.get(make, "x")]
            how = {"chunks": (1000, 1000), "dtype": "f4"}
            file.create_dataset(places.get(make, "x"), big, **how)
    refused(capsys, tmp_path, path, ("--no-target",), "--memory-mb", 4000)
