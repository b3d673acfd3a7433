"""A table with features as rows, joined with its sample table, is the transposed table."""

import gzip
import json
import math

import numpy as np
import pytest
import zarr
from stores import values_of

from srs_ooc.cli import main
from srs_ooc.store.arrays import Categories, Names, read_array
from srs_ooc.store.manifest import read_manifest

MATRIX = "probe\ts1\ts2\ts3\ts4\ncg1\t0.5\t1\tNA\t4\n\ncg2\t-1\t2e3\t\t7\ncg3\t1\t2\t3\t5\n"
PHENO = "Basename,Age,Group\ns4,30,case\ns9,31,case\ns1,32,ctl\ns2,33,case\n"


@pytest.fixture
def ingest(tmp_path, capsys):
    """Ingest a matrix and a sample table on the command line; return status, stdout and stderr."""

    def run(matrix=MATRIX, pheno=PHENO, *more, target="Group", id_name="Basename"):
        raw = matrix if isinstance(matrix, bytes) else matrix.encode()
        (tmp_path / "m.tsv").write_bytes(raw)
        (tmp_path / "pheno.csv").write_text(pheno)
        command = ["ingest", tmp_path / "m.tsv", tmp_path / "t.zarr", "--orient", "features"]
        command += ["--samples", tmp_path / "pheno.csv", "--id", id_name, "--target", target, *more]
        with pytest.raises(SystemExit) as end:
            main([str(part) for part in command])
        return int(end.value.code or 0), *capsys.readouterr()

    return run


@pytest.mark.parametrize("pack", [str.encode, lambda text: gzip.compress(text.encode())])
def test_the_transposed_table(tmp_path, ingest, pack, monkeypatch):
    monkeypatch.setattr("srs_ooc.ingestion.feature_rows.PANEL_NBYTES", 8 * 3 * 2)
    status, out, err = ingest(pack(MATRIX))
    assert (status, err) == (0, "")
    assert "samples without a label, left out: 1 (s3)" in out
    assert "labels without a sample, left out: 1 (s9)" in out
    store = tmp_path / "t.zarr"
    manifest, group = read_manifest(store), zarr.open_group(store, mode="r")
    np.testing.assert_array_equal(values_of(store), [[0.5, 1, 4], [-1, 2000, 7], [1, 2, 5]])
    assert list(Names(store, manifest, "names")) == ["cg1", "cg2", "cg3"]
    assert list(Names(store, manifest, "row_ids")) == ["s1", "s2", "s4"]
    assert [manifest.classes[c] for c in group["target"][:]] == ["ctl", "case", "case"]
    assert (manifest.target_name, manifest.row_id_name) == ("Group", "Basename")
    inferred = json.loads(json.dumps(manifest.inferred))
    assert inferred.pop("named", "packed by gzip").count("packed by gzip")
    assert inferred == {
        "task": "classification: its values are texts",
        "samples_without_label": {"n": 1, "first": ["s3"]},
        "labels_without_sample": {"n": 1, "first": ["s9"]},
    }
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.tsv", "pheno.csv", "t.zarr"]


def test_kinds_of_rows_can_be_forced(tmp_path, ingest):
    mixed = "probe\ts1\ts2\ts4\nchr\t1\tX\t1\ncg2\t-1\t2.5\t7\n"
    status, _, err = ingest(mixed)
    assert status == 2
    assert "line 2: column 's2': expected a number" in err
    status, _, err = ingest(mixed, PHENO, "--kind", "chr=numeric")
    assert (status, "line 2: column 's2': expected a number" in err) == (2, True)
    status, _, err = ingest(mixed, PHENO, "--kind", "chr=categorical", "--kind", "cg2=integer")
    assert status == 2
    assert "line 3: sample 's2' of 'cg2': expected a whole number" in err
    status, _, err = ingest(MATRIX, PHENO, "--kind", "nothere=integer")
    assert (status, "no such column 'nothere'" in err) == (2, True)
    forced = ["--kind", "chr=categorical", "--kind", "Age=categorical", "--sample-features", "Age"]
    status, _, err = ingest(mixed, PHENO, *forced)
    assert (status, err) == (0, "")
    store = tmp_path / "t.zarr"
    manifest = read_manifest(store)
    assert manifest.kind_counts["categorical"] == 2
    stored = np.asarray(read_array(store, manifest, "positions")).tolist()
    assert Categories(store, manifest).of(stored.index(0)) == ["1", "X"]
    assert Categories(store, manifest).of(stored.index(2)) == ["30", "32", "33"]


def test_a_header_without_a_field_over_the_names(tmp_path, ingest):
    status, _, err = ingest(MATRIX.removeprefix("probe\t"))
    assert status == 0, err
    manifest = read_manifest(tmp_path / "t.zarr")
    assert list(Names(tmp_path / "t.zarr", manifest)) == ["cg1", "cg2", "cg3"]
    assert list(Names(tmp_path / "t.zarr", manifest, "row_ids")) == ["s1", "s2", "s4"]


def test_missing_cells_and_decimal_commas(tmp_path, ingest):
    pheno = "Basename;Group\ns1;a\ns2;b\ns3;a\ns4;b\n"
    status, out, err = ingest(MATRIX.replace(".", ","), pheno, "--decimal", "comma")
    assert status == 0, err
    assert "left out" not in out
    np.testing.assert_array_equal(values_of(tmp_path / "t.zarr")[0], [0.5, 1, math.nan, 4])


BAD = {
    "no such id": ({"id_name": "Sentrix"}, ["no such column 'Sentrix' (--id)", "'Basename'"]),
    "no such target": ({"target": "y"}, ["no such column 'y' (--target)"]),
    "no match": ({"pheno": PHENO.replace("\ns", "\nt")}, ["found none of them", "'s1'", "--id"]),
    "twice": ({"pheno": PHENO + "s4,1,ctl\n"}, ["pheno.csv, line 6", "'s4' again"]),
    "ragged pheno": ({"pheno": PHENO + "s3,1\n"}, ["pheno.csv, line 6", "3 fields", "found 2"]),
    "one class": ({"pheno": PHENO.replace("ctl", "case")}, ["two classes"]),
    "ragged": ({"matrix": MATRIX + "cg4\t1\n"}, ["m.tsv, line 6", "expected 5 fields", "found 2"]),
    "cell": ({"matrix": MATRIX + "cg4\t1\tx\t1\t1\n"}, ["line 6", "column 's2'", "found 'x'"]),
    "same samples": ({"matrix": MATRIX.replace("s2", "s1")}, ["distinct sample ids", "'s1'"]),
    "same features": ({"matrix": MATRIX.replace("cg2", "cg1")}, ["distinct column", "'cg1'"]),
    "no rows": ({"matrix": "p\ts1\ts2\n"}, ["expected rows after the header"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables_are_refused_and_leave_nothing(tmp_path, ingest, case):
    given, fragments = BAD[case]
    status, _, err = ingest(**given)
    assert status == 2, err
    for fragment in fragments:
        assert fragment in err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.tsv", "pheno.csv"]


def test_a_sample_without_a_label_is_dropped_or_refused(tmp_path, ingest):
    pheno = PHENO + "s3,1,\n"
    status, _, err = ingest(MATRIX, pheno, "--missing-target", "refuse")
    assert status == 2
    for fragment in ("pheno.csv, line 6", "'Group'", "expected a target", "an empty cell"):
        assert fragment in err
    assert ingest(MATRIX, pheno)[0] == 0
    manifest = read_manifest(tmp_path / "t.zarr")
    assert (manifest.n_rows, manifest.n_dropped_rows) == (3, 1)
    assert list(Names(tmp_path / "t.zarr", manifest, "row_ids")) == ["s1", "s2", "s4"]


def test_options_that_do_not_go_together(ingest):
    assert "--no-header" in ingest(MATRIX, PHENO, "--no-header")[2]
    assert ingest(MATRIX, PHENO, "--orient", "samples")[0] == 2
