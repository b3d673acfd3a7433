"""Files that other programs wrote: those inside bed-reader's wheel, and some of public projects."""

import csv
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr
from tables import data_file, here, write_lines

import srs_ooc
from srs_ooc.base.errors import InputError
from srs_ooc.ingestion.formats import FORMATS
from srs_ooc.ingestion.formats.files import File
from srs_ooc.ingestion.formats.genotypes import BedTable
from srs_ooc.ingestion.ingest_options import IngestOptions
from srs_ooc.store.store import Store

WHOLE = ["plink_sim_10s_100v_10pmiss", "small", "some_missing", "sparse", "toydata.5chrom"]
REFUSED = {
    "badfile": "expected badfile.bim in the same folder",
    "empty": "expected empty.bim in the same folder",
    "small_no_bim": "expected small_no_bim.bim in the same folder",
    "small_no_fam": "expected small_no_fam.fam in the same folder",
    "small_too_short": "expected 7 bytes for the 4 variants",
    "smallmode0": "samples one after another",
}


def opened(path):
    plink = next(one for one in FORMATS if one.name == "PLINK 1")
    return BedTable(File(plink, path, "", path.parent, IngestOptions()))


def inside_bed_reader(name: str) -> Path:
    bed_reader = pytest.importorskip("bed_reader")
    return Path(bed_reader.__file__).parent / "tests" / "data" / f"{name}.bed"


@pytest.mark.parametrize("name", WHOLE)
def test_files_in_bed_reader_s_wheel_are_read_as_it_reads_them(name):
    path = inside_bed_reader(name)
    from bed_reader import open_bed

    with open_bed(path, num_threads=1) as bed:
        expected, ids = bed.read(dtype="float64", num_threads=1), bed.sid.tolist()
    table = opened(path)
    np.testing.assert_array_equal(table.read(np.arange(len(ids)), None).T, expected)
    if len(set(ids)) == len(ids):
        assert list(table.names) == ids


@pytest.mark.parametrize("name", REFUSED)
def test_its_damaged_files_are_refused_with_the_reason(name):
    with pytest.raises(InputError, match=REFUSED[name]):
        opened(inside_bed_reader(name))


def test_regenie_s_example_is_found_as_regenie_found_it(tmp_path):
    folder = data_file("regenie-example")
    people = {}
    for name in ("phenotype_bin.txt", "covariates.txt"):
        with (folder / name).open() as file:
            for row in csv.DictReader(file, delimiter=" "):
                people.setdefault(row["IID"], {}).update(row)
    names = ["IID", "Y1", "V1", "V2", "V3"]
    rows = [[row[one] for one in names] for row in people.values()]
    write_lines(tmp_path / "people.csv", [names, *rows])
    joined = ["--samples", tmp_path / "people.csv", "--id", "IID", "--target", "Y1"]
    joined += ["--covariates", "V1,V2,V3", "--link"]
    here("ingest", folder / "example.bed", tmp_path / "y.zarr", *joined)
    with (folder / "example.test_bin_out_firth_Y1.regenie").open() as file:
        theirs = {row["ID"]: float(row["LOG10P"]) for row in csv.DictReader(file, delimiter=" ")}
    store = Store.open(tmp_path / "y.zarr")
    assert (store.n_rows, store.n_features) == (500, 1000)
    srs_ooc.run(store.path, out=tmp_path / "y.run", iterations=20, pairs="none", adjust="all")
    records = srs_ooc.Result(tmp_path / "y.run").features("records", top=1000)
    ours = {record["name"]: -np.log10(record["p_value"]) for record in records}
    shared = sorted(ours.keys() & theirs.keys())
    assert len(shared) > 900
    assert spearmanr([ours[one] for one in shared], [theirs[one] for one in shared])[0] > 0.6


@pytest.mark.parametrize("matrix", ["", "::layers/sparse", "::layers/array"])
def test_an_archive_of_anndata_0_7_is_read(tmp_path, matrix):
    h5py = pytest.importorskip("h5py")
    path = data_file("anndata-archives", "v0.7.0-adata.h5ad")
    roles = {"target": "obs_cat", "covariates": ["float64"], "min_class_rows": 1}
    manifest = srs_ooc.ingest(f"{path}{matrix}", tmp_path / "a.zarr", **roles)
    with h5py.File(path) as file:
        codes = file["obs/obs_cat"][:]
        assert manifest.n_rows == (codes >= 0).sum()
        assert manifest.n_features == 20
        assert set(Store.open(tmp_path / "a.zarr").names) == set(file["var/_index"].asstr()[:])


def test_an_archive_of_anndata_0_7_on_zarr_is_read(tmp_path):
    with zipfile.ZipFile(data_file("anndata-archives", "v0.7.8-adata.zarr.zip")) as archive:
        archive.extractall(tmp_path / "a")
    roles = {"target": "obs_cat", "covariates": ["float64"], "min_class_rows": 1}
    manifest = srs_ooc.ingest(tmp_path / "a", tmp_path / "a.zarr", **roles)
    assert (manifest.n_features, manifest.kind_counts["categorical"]) == (20, 0)
    assert manifest.source["format"] == "anndata zarr /X"


def doors(folder: Path, values, names, target):
    """Yield the path of a table in each form that a door reads, and what names its target."""
    h5py, zarr = pytest.importorskip("h5py"), pytest.importorskip("zarr")
    text = h5py.string_dtype()
    for turned in (False, True):
        cells = values.T if turned else values
        path = folder / f"plain{turned}.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=cells, chunks=(100, 100), compression="gzip")
            file.create_dataset("gene", data=names, dtype=text)
            file.create_dataset("class", data=target, dtype=text)
        yield Path(f"{path}::/x{'.T' * turned}"), "class"
        group = zarr.create_group(folder / f"t{turned}.zarr")
        dims = ("gene", "sample")[:: 1 if turned else -1]
        array = group.create_array("x", shape=cells.shape, dtype="f8", chunks=(100, 100),
                                   dimension_names=dims)  # fmt: skip
        array[:] = cells
        for name, items, dim in (("gene", names, "gene"), ("class", target, "sample")):
            one = group.create_array(name, shape=(len(items),), dtype="str", dimension_names=(dim,))
            one[:] = np.array(items)
        yield folder / f"t{turned}.zarr::x", "class"
    for kind in ("csr", "csc", "dense"):
        with h5py.File(path := folder / f"{kind}.h5ad", "w") as file:
            if kind == "dense":
                file.create_dataset("X", data=values)
            else:
                lines = values if kind == "csr" else values.T
                group = file.create_group("X")
                group.attrs["encoding-type"], group.attrs["shape"] = f"{kind}_matrix", values.shape
                group["data"], group["indices"] = lines[lines != 0], np.nonzero(lines)[1]
                group["indptr"] = np.concatenate([[0], np.cumsum((lines != 0).sum(axis=1))])
            obs, var = file.create_group("obs"), file.create_group("var")
            obs.attrs["_index"], var.attrs["_index"] = "id", "gene"
            obs.create_dataset("id", data=[str(i + 1) for i in range(len(target))], dtype=text)
            obs.create_dataset("class", data=target, dtype=text)
            var.create_dataset("gene", data=names, dtype=text)
        yield path, "class"


def test_madelon_is_one_table_through_every_door(tmp_path):
    rows = np.loadtxt(data_file("madelon.csv.gz"), delimiter=",", dtype=str)
    names, target = rows[0, :-1].tolist(), rows[1:, -1].tolist()
    values = rows[1:, :-1].astype(float)
    plain = srs_ooc.ingest(data_file("madelon.csv.gz"), tmp_path / "csv.zarr", memory_mb=512)
    n_doors = 0
    for path, named in doors(tmp_path, values, names, target):
        made = srs_ooc.ingest(path, tmp_path / "made.zarr", target=named, overwrite=True)
        parts = ("codes", "values", "names", "kinds", "n_codes", "exact", "target", "feature/")
        own, others = (
            {name: crc for name, crc in one.checksums.items() if name.startswith(parts)}
            for one in (made, plain)
        )
        assert own == others, path
        assert made.classes == plain.classes
        n_doors += 1
    assert n_doors == 7
