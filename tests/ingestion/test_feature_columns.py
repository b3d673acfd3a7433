"""What a file says of its features beside their names is kept, and stays with its feature.

What is expected of real files is what their tools gave: scanpy 1.11.5, biom-format 2.1.18, cmapPy
4.0.1. Of h5ad it is what anndata 0.12.19 wrote.
"""

import csv
import shutil

import numpy as np
import pytest
from bed_files import DOSAGES, NAMES, write_bed
from command import srs_ooc as command
from tables import data_file, opened

import srs_ooc
from srs_ooc.base.errors import StoreError
from srs_ooc.base.urls import place_of
from srs_ooc.ingestion.ingest_options import ForcedKinds, IngestOptions
from srs_ooc.ingestion.stages import ingest_table
from srs_ooc.results.exporting import export_columns
from srs_ooc.store.opening import open_store
from srs_ooc.store.store import Store
from srs_ooc.testing import check_table

OF_VARIANTS = "chromosome", "id", "cM", "position", "counted_allele", "other_allele"
BACTERIA = "k__Bacteria; p__Cyanobacteria; c__Nostocophycideae; o__Nostocales; f__Nostocaceae"
SECOND = {
    "10x-v3.h5": ("CH507-9B2.1", "ENSG00000277117", "Gene Expression", "GRCh38_chr21"),
    "otu-2.1.biom": ("GG_OTU_2", f"{BACTERIA}; g__Dolichospermum; s__"),
    "otu-1.0.biom": ("GG_OTU_2", f"{BACTERIA}; g__Dolichospermum; s__"),
    "n5x10-1.2.gct": ("218597_s_at", "CISD1"),
    "mini-1.3.gct": (
        "MISC003_A375_24H:TRT_CP:BRD-K93918653:3.33", "13|14|13", "3", "6.8915205", "", "population"
    ),
}  # fmt: skip
"""Of the second feature of each file its name, and what is said of it."""


def told(store):
    """Return what a store says of each feature by name."""
    columns = store.manifest.feature_columns
    cells = (dict(zip(columns, some, strict=True)) for some in store.feature_cells())
    return dict(zip(store.names, cells, strict=True))


def of(j, name=None):
    return dict(
        zip(OF_VARIANTS, ("7", name or f"rs{j}", "0", str(100 + j), "A", "ACG"), strict=True)
    )


@pytest.mark.parametrize("name", SECOND)
def test_columns_of_real_files_are_those_of_their_tools(tmp_path, name):
    path = data_file("files", name)
    if not name.endswith("gct"):
        pytest.importorskip("h5py")
    srs_ooc.ingest(path, tmp_path / "t.zarr", no_target=True)
    store = open_store(tmp_path / "t.zarr")
    assert (store.names[1], *next(store.feature_cells([1]))) == SECOND[name]
    store.verify()


def test_of_10x_named_by_ids_the_other_column_is_the_symbol(tmp_path):
    pytest.importorskip("h5py")
    path = data_file("files", "10x-v3.h5")
    srs_ooc.ingest(path, tmp_path / "t.zarr", no_target=True, names_from="id")
    found = told(open_store(tmp_path / "t.zarr"))["ENSG00000277117"]
    assert found == {
        "symbol": "CH507-9B2.1",
        "feature_type": "Gene Expression",
        "genome": "GRCh38_chr21",
    }


def test_what_stands_before_the_samples_forces_no_kind(tmp_path):
    """Columns are read as texts, and a feature's own name alone says its kind."""
    rows = ["1\trs1\t0.5\t100\tA\tG\t0\t1\t2\t1", "X\trs2\t0\t200\trs1\tNA\t2\t2\tNA\t0"]
    header = "CHR SNP (C)M POS COUNTED ALT F_a F_b F_c F_d".replace(" ", "\t")
    (tmp_path / "t.traw").write_text("\n".join([header, *rows]) + "\n")
    (tmp_path / "p.txt").write_text("FID IID ill\nF a 1\nF b 2\nF c 1\nF d 2\n")
    form = IngestOptions(
        samples=(tmp_path / "p.txt",),
        id_name="IID",
        target="ill",
        kinds=ForcedKinds((("rs1", "categorical"),)),
    )
    ingest_table(tmp_path / "t.traw", tmp_path / "t.zarr", form)
    store = open_store(tmp_path / "t.zarr")
    columns = ("chromosome", "cM", "position", "counted_allele", "other_allele")
    assert told(store) == {
        "rs1": dict(zip(columns, ("1", "0.5", "100", "A", "G"), strict=True)),
        "rs2": dict(zip(columns, ("X", "0", "200", "rs1", ""), strict=True)),
    }
    assert store.manifest.kind_counts["categorical"] == 1


def write_h5ad(path, names):
    h5py = pytest.importorskip("h5py")
    n = len(names)
    with h5py.File(path, "w") as file:
        file["X"] = np.arange(4.0 * n).reshape(4, n) % 5
        for frame, index in (("obs", [f"c{i}" for i in range(4)]), ("var", names)):
            group = file.create_group(frame)
            group["_index"] = np.array(index, "S")
            group.attrs["_index"], group.attrs["column-order"] = "_index", []
        file["obs/ill"] = [0, 1, 0, 1]
        var = file["var"]
        var["symbol"] = np.array([f"S{j}" for j in range(n)], "S")
        var["start"], var["mean"], var["used"] = np.arange(n), np.ones(n), np.ones(n, bool)
        var["chrom/codes"], var["chrom/categories"] = (
            [1, -1, *[0] * (n - 2)],
            np.array(["1", "X"], "S"),
        )
        var["chrom"].attrs["encoding-type"] = "categorical"
    return path


def test_of_anndata_texts_and_whole_numbers_are_kept(tmp_path):
    path = write_h5ad(tmp_path / "a.h5ad", ["a", "b", "a"])
    table = opened(path, scratch=tmp_path)
    assert {name: list(cells) for name, cells in table.feature_columns.items()} == {
        "_index": ["a", "b", "a"],  # names are a, b, a-1
        "chrom": ["X", None, "1"],
        "start": [0, 1, 2],
        "symbol": ["S0", "S1", "S2"],
    }
    table.close()
    srs_ooc.ingest(path, tmp_path / "t.zarr", target="ill", ignore=["a"])
    found = told(open_store(tmp_path / "t.zarr"))
    assert found["a-1"] == {"_index": "a", "chrom": "1", "start": "2", "symbol": "S2"}
    assert found["b"] == {"_index": "b", "chrom": "", "start": "1", "symbol": "S1"}


@pytest.fixture(scope="module")
def genotypes(tmp_path_factory):
    """A .bed whose first variant has no id of its own, and its store."""
    folder = tmp_path_factory.mktemp("genotypes")
    bed = write_bed(folder, DOSAGES, [".", *NAMES[1:]])
    srs_ooc.ingest(bed, folder / "g.zarr")
    return bed, folder / "g.zarr"


EVERY = {"7:100:ACG:A": of(0, ".")} | {f"rs{j}": of(j) for j in range(1, 40)}


@pytest.mark.parametrize(
    "how", [{}, {"ignore": ["rs3", "rs5"]}, {"code_dtype": "uint8"}, {"link": True}]
)
def test_variants_keep_theirs_whatever_is_left_out(genotypes, tmp_path, how):
    manifest = srs_ooc.ingest(genotypes[0], tmp_path / "g.zarr", **how)
    gone = how.get("ignore", ())
    store = open_store(tmp_path / "g.zarr")
    assert told(store) == {name: said for name, said in EVERY.items() if name not in gone}
    assert manifest.format == 6
    store.verify()


def test_the_contract_of_a_table_holds_of_them(genotypes, tmp_path):
    table = opened(genotypes[0], scratch=tmp_path)
    check_table(table, DOSAGES.T.tolist(), [*EVERY])
    table.feature_columns = {"short": ["one"]}
    with pytest.raises(AssertionError, match="feature_columns: short"):
        check_table(table, DOSAGES.T.tolist(), [*EVERY])


def test_they_go_with_features_into_smaller_and_larger_stores(genotypes, tmp_path):
    _, path = genotypes
    fam = [f"F J{i} 0 0 0 {1 + i % 2}" for i in range(23)]
    more = write_bed(tmp_path, DOSAGES, [".", *NAMES[1:]], fam)
    srs_ooc.ingest(more, tmp_path / "rows.zarr", append_rows=path)
    assert told(open_store(tmp_path / "rows.zarr")) == EVERY
    export_columns(open_store(path), np.array([5, 0, 9]), tmp_path / "s.zarr")
    small = {name: EVERY[name] for name in ("rs5", "7:100:ACG:A", "rs9")}
    assert told(open_store(tmp_path / "s.zarr")) == small
    plain = tmp_path / "plain.csv"
    plain.write_text("id,p\n" + "".join(f"I{i},{i % 7}\n" for i in range(23)))
    srs_ooc.ingest(plain, tmp_path / "b.zarr", append_features=tmp_path / "s.zarr", row_ids="id")
    both = open_store(tmp_path / "b.zarr")
    assert told(both) == small | {"p": dict.fromkeys(OF_VARIANTS, "")}
    both.verify()


def test_pieces_have_the_columns_of_each(genotypes, tmp_path):
    names = [f"x{j}" for j in range(6)]
    more = write_bed(tmp_path, DOSAGES[:, :6], names, name="more")
    srs_ooc.ingest([genotypes[0], more], tmp_path / "p.zarr", target="phenotype")
    found = told(open_store(tmp_path / "p.zarr"))
    assert found == EVERY | {name: of(j, name) for j, name in enumerate(names)}


def test_a_store_at_a_url_has_them(genotypes, tmp_path, monkeypatch):
    pytest.importorskip("obstore")
    monkeypatch.setenv("SRS_OOC_CACHE_DIR", str(tmp_path / "cache"))
    url = place_of("memory://feature-columns/g.zarr")
    srs_ooc.ingest(genotypes[0], url, code_dtype="uint8")
    assert told(open_store(url)) == EVERY


def test_damage_is_found(genotypes, tmp_path):
    shutil.copytree(genotypes[1], tmp_path / "g.zarr")
    file = tmp_path / "g.zarr" / "feature_columns_bytes" / "c" / "0"
    file.write_bytes(file.read_bytes().replace(b"ACG", b"ACT", 1))
    with pytest.raises(StoreError, match=r"feature_columns_bytes.*expected CRC-32"):
        Store.open(tmp_path / "g.zarr").verify()
    with pytest.raises(StoreError, match=r"feature_columns_bytes.*expected CRC-32"):
        next(Store.open(tmp_path / "g.zarr").feature_cells([2]))


def test_lists_have_them_after_their_own(genotypes, tmp_path):
    run = tmp_path / "g.run"
    command("run", str(genotypes[1]), "--out", str(run), "--iterations", "20")
    rows = list(csv.DictReader(command("features", str(run), "--csv").stdout.splitlines()))
    assert list(rows[0])[-7:] == ["censoring_p", *OF_VARIANTS]
    assert {row["name"]: {one: row[one] for one in OF_VARIANTS} for row in rows} == EVERY
    records = srs_ooc.open_run(run).features("records", top=3)
    assert [one["other_allele"] for one in records] == ["ACG"] * 3
    frame = srs_ooc.open_run(run).features(top=3)
    assert list(frame.columns) == list(records[0])


def test_names_that_a_list_has_itself_are_numbered(tmp_path):
    h5ad = write_h5ad(tmp_path / "a.h5ad", [f"g{j}" for j in range(5)])
    h5py = pytest.importorskip("h5py")
    with h5py.File(h5ad, "a") as file:
        file["var"].move("symbol", "rank")
    srs_ooc.ingest(h5ad, tmp_path / "t.zarr", target="ill")
    run = tmp_path / "t.run"
    command("run", str(tmp_path / "t.zarr"), "--out", str(run), "--iterations", "5")
    rows = csv.DictReader(command("features", str(run), "--csv").stdout.splitlines())
    assert {row["name"]: (row["rank-1"], row["start"]) for row in rows} == {
        f"g{j}": (f"S{j}", str(j)) for j in range(5)
    }
