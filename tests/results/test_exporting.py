"""Exported columns are the source's columns."""

import csv
import math
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from bed_files import DOSAGES, NAMES, write_bed
from command import error_of, peak_kb
from command import srs_ooc as command
from hypothesis import given
from hypothesis import strategies as st
from stores import make_store, noise_table

import srs_ooc
from srs_ooc.base.errors import BudgetError, RunError, StoreError, UsageError
from srs_ooc.ingestion.ingest_options import IngestOptions
from srs_ooc.ingestion.stages import ingest_table
from srs_ooc.results import exporting
from srs_ooc.results.exporting import export_columns, number_text
from srs_ooc.store.store import Store


def listing(folder):
    return sorted(path.name for path in folder.iterdir())


def csv_store(folder, n_rows=50, n_features=30, *, integers=False, **options):
    rng = np.random.default_rng(3)
    values = rng.normal(size=(n_rows, n_features)) * 10.0 ** rng.integers(-9, 9, n_features)
    if integers:
        values = np.round(rng.normal(size=values.shape) * 1000)
    values[rng.random(values.shape) < 0.1] = math.nan
    path = folder / "t.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *(f'f,"{j}"' for j in range(n_features)), "y"])
        for i, row in enumerate(values.tolist()):
            cells = ["" if math.isnan(v) else repr(v) for v in row]
            writer.writerow([f"r{i}", *cells, ("one, two", "three")[i % 2]])
    ingest_table(path, folder / "t.zarr", IngestOptions(row_ids="id", **options))
    return folder / "t.zarr", values


def read_back(path):
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    values = [[math.nan if cell == "" else float(cell) for cell in row[1:-1]] for row in rows]
    return header, np.array(values), [row[0] for row in rows], [row[-1] for row in rows]


@pytest.mark.parametrize("integers", [False, True])
@pytest.mark.parametrize("block_nbytes", [1, 500, 8_000_000])
def test_real_values_in_the_order_asked_for(tmp_path, monkeypatch, integers, block_nbytes):
    monkeypatch.setattr(exporting, "BLOCK_NBYTES", block_nbytes)
    store, values = csv_store(tmp_path, integers=integers)
    positions = np.array([29, 3, 0, 17, 3])
    export_columns(Store.open(store), positions, tmp_path / "out.csv")
    header, found, ids, labels = read_back(tmp_path / "out.csv")
    assert header == ["id", *(f'f,"{j}"' for j in positions), "y"]
    np.testing.assert_array_equal(found, values[:, positions])
    assert ids == [f"r{i}" for i in range(50)]
    assert labels == [("one, two", "three")[i % 2] for i in range(50)]
    assert listing(tmp_path) == ["out.csv", "t.csv", "t.zarr"]


def test_no_columns_and_numbered_rows(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("row_id,y\n7,u\n8,v\n")
    ingest_table(path, tmp_path / "t.zarr")
    export_columns(Store.open(tmp_path / "t.zarr"), np.array([0]), tmp_path / "one.csv")
    assert (tmp_path / "one.csv").read_text() == "_row_id,row_id,y\n1,7,u\n2,8,v\n"
    export_columns(Store.open(tmp_path / "t.zarr"), np.array([], int), tmp_path / "none.csv")
    assert (tmp_path / "none.csv").read_text() == "row_id,y\n1,u\n2,v\n"


def test_what_is_in_the_way_or_not_there_is_refused(tmp_path):
    store, _ = csv_store(tmp_path)
    out = tmp_path / "out.csv"
    with pytest.raises(UsageError, match=r"positions in 0 \.\. 29, found 5 \.\. 30"):
        export_columns(Store.open(store), np.array([5, 30]), out)
    with pytest.raises(StoreError, match="cannot be written"):
        export_columns(Store.open(store), np.array([5]), tmp_path / "none" / "out.csv")
    out.write_text("mine")
    with pytest.raises(UsageError, match="free"):
        export_columns(Store.open(store), np.array([5]), out)
    assert out.read_text() == "mine"


def test_damage_leaves_no_file(tmp_path):
    store, _ = csv_store(tmp_path)
    (store / "values" / "c" / "0" / "0").unlink()
    with pytest.raises(StoreError, match="values/c/0/0"):
        export_columns(Store.open(store), np.array([5]), tmp_path / "out.csv")
    assert listing(tmp_path) == ["t.csv", "t.zarr"]


def test_a_store_of_codes_only_says_so(tmp_path):
    store, _ = csv_store(tmp_path, keep_values=False)
    with pytest.raises(StoreError, match="keeps only codes"):
        export_columns(Store.open(store), np.array([5]), tmp_path / "out.csv")


KILLED = """
import os, signal, sys
import numpy as np
from pathlib import Path
from srs_ooc.results import exporting as export
from srs_ooc.store.store import Store
export.Exported.blocks = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
export.export_columns(Store.open(Path(sys.argv[1])), np.array([0, 1]), Path(sys.argv[2]))
"""


@pytest.mark.slow
def test_what_a_killed_export_left_is_cleared_by_the_next(tmp_path):
    store, values = csv_store(tmp_path)
    out = tmp_path / "out.csv"
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", KILLED, store, out], check=False)
        assert done.returncode == -signal.SIGKILL
    assert len(listing(tmp_path)) == 3  # what two of them left is one file
    export_columns(Store.open(store), np.array([0, 1]), out)
    assert listing(tmp_path) == ["out.csv", "t.csv", "t.zarr"]
    np.testing.assert_array_equal(read_back(out)[1], values[:, [0, 1]])


def test_a_file_made_while_columns_are_exported_is_not_written_over(tmp_path, monkeypatch):
    store, _ = csv_store(tmp_path)
    out, gather = tmp_path / "out.csv", exporting.gather_columns

    def gather_and_make(*arguments):
        gather(*arguments)
        out.write_text("mine")

    monkeypatch.setattr(exporting, "gather_columns", gather_and_make)
    with pytest.raises(UsageError, match="free"):
        export_columns(Store.open(store), np.array([5]), out)
    assert out.read_text() == "mine"
    assert listing(tmp_path) == ["out.csv", "t.csv", "t.zarr"]


N = 25


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    """Three columns of numbers, one with zeros and missing values, and two classes."""
    folder = tmp_path_factory.mktemp("formats")
    values = np.random.default_rng(0).standard_normal((N, 3))
    values[:5, 1], values[5:9, 1] = 0, np.nan
    target = np.where(np.arange(N) % 2, "ill", "well")
    srs_ooc.ingest(values, folder / "t.zarr", target=target, names=["a", "b,\u00e9", "c"])
    return Store.open(folder / "t.zarr"), values


@pytest.fixture(scope="module")
def coloured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("coloured")
    rows = [f"r{i},{i},{'' if i == 3 else 'xy'[i % 2]},{i / 4}" for i in range(N)]
    (folder / "t.csv").write_text("\n".join(["id,n,colour,y", *rows]) + "\n")
    srs_ooc.ingest(folder / "t.csv", folder / "t.zarr", row_ids="id", target="y")
    return Store.open(folder / "t.zarr")


def written(store, out, positions=(2, 0, 1)):
    export_columns(store, np.array(positions), out)
    return out


def test_npy_holds_the_values_alone(labelled, tmp_path, monkeypatch):
    monkeypatch.setattr(exporting, "BLOCK_NBYTES", 100)
    found = np.load(written(labelled[0], tmp_path / "x.npy"))
    np.testing.assert_array_equal(found, labelled[1][:, [2, 0, 1]])


def test_svmlight_reads_back(labelled, tmp_path):
    from sklearn.datasets import load_svmlight_file

    out = written(labelled[0], tmp_path / "x.svmlight")
    assert out.read_text().splitlines()[0] == "# classes: 0 'ill', 1 'well'"
    found, labels = load_svmlight_file(str(out), n_features=3, zero_based=False)
    np.testing.assert_array_equal(found.toarray(), labelled[1][:, [2, 0, 1]])
    assert labels.tolist() == [0.0 if i % 2 else 1.0 for i in range(N)]


@pytest.mark.parametrize("ending", [".parquet", ".feather"])
def test_arrow_files_hold_texts_numbers_and_missing_values(coloured, tmp_path, monkeypatch, ending):
    feather, pq = pytest.importorskip("pyarrow.feather"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(exporting, "BLOCK_NBYTES", 100)
    out = written(coloured, tmp_path / f"x{ending}", (1, 0))
    table = pq.read_table(out) if ending == ".parquet" else feather.read_table(out)
    found = table.to_pydict()
    assert list(found) == ["id", "colour", "n", "y"]
    assert found["id"] == [f"r{i}" for i in range(N)]
    assert found["colour"] == [None if i == 3 else "xy"[i % 2] for i in range(N)]
    assert found["n"] == list(range(N))
    assert found["y"] == [i / 4 for i in range(N)]


@pytest.mark.parametrize("ending", ["npy", "svm"])
def test_categories_are_refused_where_only_numbers_fit(coloured, tmp_path, ending):
    with pytest.raises(UsageError, match=r"expected columns of numbers.* found categories"):
        written(coloured, tmp_path / f"x.{ending}", (0, 1))
    assert list(tmp_path.iterdir()) == []


def test_names_are_listed_as_exclude_reads_them(labelled, tmp_path):
    out = written(labelled[0], tmp_path / "x.txt")
    assert out.read_text() == "c\na\nb,\u00e9\n"
    file = written(labelled[0], tmp_path / "some.txt", (2, 0))
    run = srs_ooc.run(labelled[0], exclude=file, iterations=2, judge="probe", out=tmp_path / "r")
    assert run.status.excluded.startswith("2 features")


def test_a_name_that_promises_another_format_is_refused(labelled, tmp_path):
    for name in ("x.xlsx", "x.json", "x.npz", "x.json.gz", "x.npy.gz"):
        with pytest.raises(UsageError, match=r"expected the name of a file that ends in \.csv"):
            written(labelled[0], tmp_path / name)
    with written(labelled[0], tmp_path / "x.tab").open(newline="") as file:
        assert next(csv.reader(file)) == ["row_id", "c", "a", "b,\u00e9", "target"]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_text_of_a_number_reads_back_as_the_same(value):
    assert float(number_text(value)) == value


WANTED = [7, 0, 3, 11, 9, 5]
CAP = 2_000_000_000
"""Roomy: of a process that has loaded whatever other tests need."""


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A store with columns of every kind, missing cells, and all that rows can have."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    table = {f"f{i}": rng.standard_normal(300) for i in range(12)}
    table["f3"] = np.where(rng.random(300) < 0.2, None, rng.choice(["b", "a, c", "ä"], 300))
    table["f5"] = rng.integers(0, 5, 300)
    table["f7"][rng.random(300) < 0.1] = np.nan
    table["f9"] = np.ones(300)
    table["f11"] = np.array([f"{i % 2}" for i in range(300)])
    table["y"] = np.where(rng.random(300) < 0.02, None, rng.choice(["ill", "well"], 300))
    for name, items in (("id", [f"r{i}" for i in range(300)]), ("w", rng.random(300) + 0.1)):
        table[name] = items
    table["plate"], table["person"] = rng.integers(0, 3, 300), rng.integers(0, 90, 300)
    path = tmp_path_factory.mktemp("mixed") / "t.zarr"
    srs_ooc.ingest(
        pandas.DataFrame(table), path, target="y", row_ids="id", weights="w",
        strata="plate", groups="person", kinds={"f5": "numeric", "f11": "categorical"},
    )  # fmt: skip
    return Store.open(path)


def by_name(store, array):
    """What a store holds of each feature: of codes, all of its line."""
    if array == "codes":
        flat = np.fromfile(store.path / "codes" / "c" / "0" / "0", store.manifest.code_dtype)
        items = flat.reshape(-1, store.n_rows).tolist()
    elif array == "categories":
        items = [store.categories().of(i) for i in range(store.n_features)]
    else:
        items = store.array(array).tolist()
    positions = np.asarray(store.array("positions")).tolist()
    return {store.names[source]: items[i] for i, source in enumerate(positions)}


def test_columns_and_rows_are_as_they_were(mixed, tmp_path):
    export_columns(mixed, np.array(WANTED), tmp_path / "s.zarr", cap_nbytes=CAP)
    small = Store.open(tmp_path / "s.zarr")
    small.verify()
    assert list(small.names) == [f"f{i}" for i in WANTED]
    assert list(small.row_ids) == list(mixed.row_ids)
    for name in ("target", "weights", "strata", "groups"):
        np.testing.assert_array_equal(getattr(small, name)(), getattr(mixed, name)())
    for array in ("kinds", "n_missing", "n_codes", "exact", "codes", "categories"):
        before = by_name(mixed, array)
        assert by_name(small, array) == {name: before[name] for name in small.names}
    read, before = (srs_ooc.read(store, list(small.names)) for store in (small, mixed))
    assert read.equals(before)
    assert small.manifest.source["fingerprint"] == mixed.fingerprint


def test_of_all_columns_every_file_is_the_same_but_where_it_came_from(mixed, tmp_path):
    out = tmp_path / "s.zarr"
    export_columns(mixed, np.arange(mixed.n_features), out, cap_nbytes=CAP)
    files = {path.relative_to(mixed.path) for path in mixed.path.rglob("*") if path.is_file()}
    assert {path.relative_to(out) for path in out.rglob("*") if path.is_file()} == files
    for file in files:
        if "zarr.json" not in file.name:
            assert (mixed.path / file).read_bytes() == (out / file).read_bytes(), file
    assert replace(Store.open(out).manifest, source={}) == replace(mixed.manifest, source={})


@pytest.mark.slow
def test_a_smaller_store_runs_and_the_command_and_the_call_make_the_same(tmp_path):
    values, labels = noise_table(150, 60, seed=3)
    store = make_store(tmp_path / "t.zarr", values, labels)
    result = srs_ooc.run(store, iterations=50, q=20, judge="probe")
    made = result.export(tmp_path / "a.zarr", top=9)
    command("export", result.run, tmp_path / "b.zarr", "--top", 9)
    (tmp_path / "names.txt").write_text("f3\nf1\n")
    command("export", store, result.run, tmp_path / "c.zarr", "--names", tmp_path / "names.txt")
    named = result.export(tmp_path / "d.zarr", names=["f3", "f1"])
    a, b, c, d = (Store.open(tmp_path / f"{name}.zarr").fingerprint for name in "abcd")
    assert a == b != c == d
    ranked = result.features("records", top=9)
    assert list(Store.open(made).names) == [record["name"] for record in ranked]
    assert list(Store.open(named).names) == ["f3", "f1"]
    assert srs_ooc.run(made, iterations=20, judge="probe").n_iterations == 20


def test_what_cannot_be_made_leaves_nothing(mixed, tmp_path, monkeypatch):
    out = tmp_path / "s.zarr"
    with pytest.raises(BudgetError, match=r"The smallest cap that works.* --memory-mb \d+\.$"):
        export_columns(mixed, np.array(WANTED), out, cap_nbytes=1_000_000)
    monkeypatch.setattr(exporting, "Merging", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        export_columns(mixed, np.array([0]), out)
    assert list(tmp_path.iterdir()) == []
    out.mkdir()
    with pytest.raises(UsageError, match="free"):
        export_columns(mixed, np.array([0]), out)


def test_names_that_are_none_or_come_twice_are_refused(tmp_path):
    values, labels = noise_table(40, 8)
    store = make_store(tmp_path / "t.zarr", values, labels)
    result = srs_ooc.run(store, iterations=3, method="rase")
    for names, message in ((["f1", "g"], "1 that are not"), (["f1", "f1"], "each feature once")):
        with pytest.raises(UsageError, match=message):
            result.export(tmp_path / "o.zarr", names=names)
    with pytest.raises(UsageError, match="found both"):
        result.export(tmp_path / "o.zarr", names=["f1"], top=1)
    with pytest.raises(RunError, match="only ranks features"):
        result.export(tmp_path / "o.zarr")
    assert "expected RUN and OUT" in error_of("export", result.run)


@pytest.mark.slow
def test_it_works_at_the_smallest_cap_named(tmp_path):
    rng = np.random.default_rng(0)
    values = rng.standard_normal((20_000, 60))
    store = make_store(tmp_path / "t.zarr", values, (values[0] > 0).astype(int))
    result = srs_ooc.run(store, iterations=2, judge="probe")
    export = ("export", result.run, tmp_path / "s.zarr", "--top", 15_000)
    cap = int(error_of(*export, "--memory-mb", 9).rsplit("--memory-mb ", 1)[1].rstrip("."))
    assert peak_kb(*export, "--memory-mb", cap) * 1024 / 1e6 < cap
    assert Store.open(tmp_path / "s.zarr").n_features == 15_000


# Back into the files of the field.


def test_genotypes_go_back_as_plink_extracts_them(tmp_path):
    """PLINK 1.9 with --extract --keep-allele-order wrote these bytes of such files."""
    bed = write_bed(tmp_path, DOSAGES, [".", *NAMES[1:]])
    srs_ooc.ingest(bed, tmp_path / "g.zarr")
    export_columns(Store.open(tmp_path / "g.zarr"), np.array([7, 0, 31]), tmp_path / "o.bed")
    lines = np.frombuffer(bed.read_bytes()[3:], np.uint8).reshape(len(NAMES), -1)
    found = (tmp_path / "o.bed").read_bytes()
    assert found == bed.read_bytes()[:3] + lines[[0, 7, 31]].tobytes()
    wanted = bed.with_suffix(".bim").read_text().splitlines()
    assert (tmp_path / "o.bim").read_text().splitlines() == [wanted[i] for i in (0, 7, 31)]
    people = [f"0\tI{i}\t0\t0\t0\t{2 - i % 2}" for i in range(len(DOSAGES))]
    assert (tmp_path / "o.fam").read_text().splitlines() == people


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["no", "yes"], ["-9", "-9"]),
        (["0", "1"], ["1", "2"]),
        (["control", "case"], ["1", "2"]),
        ([1.25, 3.5], ["1.25", "3.5"]),
    ],
)
def test_phenotypes_are_what_plink_takes_them_for(tmp_path, cells, expected):
    bed = write_bed(tmp_path)
    target = [cells[i % 2] for i in range(len(DOSAGES))]
    task = "regression" if cells[0] == 1.25 else "auto"
    srs_ooc.ingest(bed, tmp_path / "g.zarr", target=target, task=task)
    export_columns(Store.open(tmp_path / "g.zarr"), np.array([0]), tmp_path / "o.bed")
    found = [line.split()[5] for line in (tmp_path / "o.fam").read_text().splitlines()]
    assert found[:2] == expected


def test_what_is_no_genotype_is_refused_and_leaves_nothing(tmp_path):
    store, _ = csv_store(tmp_path)
    srs_ooc.ingest(write_bed(tmp_path), tmp_path / "g.zarr")
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5ad", "w") as file:
        file["X"] = [[0, 1], [2, 3.5]]
        for frame in ("obs", "var"):
            file[f"{frame}/_index"] = np.array(["a", "b"], "S")
            file[frame].attrs["_index"] = "_index"
        for name in ("chromosome", "position", "counted_allele", "other_allele"):
            file[f"var/{name}"] = np.array(["1", "2"], "S")
    srs_ooc.ingest(tmp_path / "a.h5ad", tmp_path / "a.zarr", no_target=True)
    for one, name in ((store, "f,"), (tmp_path / "a.zarr", "b")):
        before = listing(tmp_path)
        with pytest.raises(UsageError, match=f"of .{name}.*Ingest the .bed"):
            export_columns(Store.open(one), np.array([0, 1]), tmp_path / "o.bed")
        assert listing(tmp_path) == before
    (tmp_path / "o.fam").touch()
    with pytest.raises(UsageError, match=r"o\.fam exists"):
        export_columns(Store.open(tmp_path / "g.zarr"), np.array([0]), tmp_path / "o.bed")


def test_cells_go_back_as_anndata_reads_them(tmp_path, labelled, coloured):
    """That anndata 0.12.19 reads such a file, cell by cell, was seen."""
    h5py = pytest.importorskip("h5py")
    bed = write_bed(tmp_path)
    srs_ooc.ingest(bed, tmp_path / "g.zarr")
    export_columns(Store.open(tmp_path / "g.zarr"), np.array([9, 4]), tmp_path / "o.h5ad")
    with h5py.File(tmp_path / "o.h5ad") as file:
        assert dict(file.attrs) == {"encoding-type": "anndata", "encoding-version": "0.1.0"}
        assert sorted(file) == ["X", "layers", "obs", "obsm", "obsp", "uns", "var", "varm", "varp"]
        np.testing.assert_array_equal(file["X"][:], DOSAGES[:, [9, 4]])
        assert file["X"].dtype == np.float32
        obs, var = file["obs"], file["var"]
        assert obs["_index"].asstr()[:3].tolist() == ["I0", "I1", "I2"]
        assert obs["phenotype/categories"].asstr()[:].tolist() == ["case", "control"]
        assert obs["phenotype/codes"][:3].tolist() == [0, 1, 0]
        assert list(obs.attrs["column-order"]) == ["phenotype"]
        assert var["_index"].asstr()[:].tolist() == ["rs9", "rs4"]
        assert var["position"].asstr()[:].tolist() == ["109", "104"]
        assert dict(var["position"].attrs)["encoding-type"] == "string-array"
    written(labelled[0], tmp_path / "l.h5ad")
    with pytest.raises(UsageError, match=r"numbers to export as .h5ad"):
        written(coloured, tmp_path / "c.h5ad", (0, 1))
