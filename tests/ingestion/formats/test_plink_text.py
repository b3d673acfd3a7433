"""PLINK's text tables, as PLINK 1.9 (b6.26) and PLINK 2 (a3.5) wrote them, have their roles."""

import gzip
import math
import re

import numpy as np
import pytest
from command import error_of
from command import srs_ooc as command
from stores import values_of

import srs_ooc
from srs_ooc.base.errors import InputError
from srs_ooc.ingestion.formats.genotypes import is_plink
from srs_ooc.store.store import Store

NAN = math.nan
A1 = np.array(
    [[0, 1, 2, 0, NAN, 0, 1], [1, 0, 2, NAN, 0, 1, 0], [NAN, 0, 1, 2, 1, 0, 0]]
)  # as bed-reader has it of the .bed that these were made of
IDS = ["fA 1", "fA 2", "fB 1", "fB 2", "fC 1", "fC 3", "fD 1"]
KEPT = [0, 1, 2, 4, 5, 6]
RAW_1 = """FID IID PAT MAT SEX PHENOTYPE rs1_C 1:200,A;x_A rs3_T
fA 1 0 0 1 2 0 1 NA
fA 2 0 0 2 1 1 0 0
fB 1 0 0 0 2 2 2 1
fB 2 0 0 1 -9 0 NA 2
fC 1 0 0 2 1 NA 0 1
fC 3 0 0 2 2 0 1 0
fD 1 0 0 1 1 1 0 0
"""
RAW_2 = """FID IID PAT MAT SEX PHENOTYPE rs1_A 1:200,A;x_C rs3_G
fA 1 0 0 1 2 2 1 NA
fA 2 0 0 2 1 1 2 2
fB 1 0 0 0 2 0 0 1
fB 2 0 0 1 -9 2 NA 0
fC 1 0 0 2 1 NA 2 1
fC 3 0 0 2 2 2 1 2
fD 1 0 0 1 1 1 2 2
""".replace(" ", "\t")
TRAW = """CHR SNP (C)M POS COUNTED ALT fA_1 fA_2 fB_1 fB_2 fC_1 fC_3 fD_1
1 rs1 0 100 C A 0 1 2 0 NA 0 1
1 1:200,A;x 0 200 A C 1 0 2 NA 0 1 0
2 rs3 0 300 T G NA 0 1 2 1 0 0
""".replace(" ", "\t")
ILL = [2, 1, 2, -9, 1, 2, 1]
AGES = [40, 50, 60, 70, -9, 45, 55]


def write(folder, name, text):
    path, data = folder / name, text.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def of_people(folder, name, cells, header="", join=" ".join):
    rows = (join([*one.split(), str(cell)]) for one, cell in zip(IDS, cells, strict=True))
    return write(folder, name, "".join(f"{line}\n" for line in (*header.splitlines(), *rows)))


def asked(folder, *names):
    return [text for name in names for text in ("--samples", folder / name)] + ["--id", "IID"]


def ids_of(store):
    return list(Store.open(store).row_ids)


@pytest.mark.parametrize(
    ("name", "text", "names", "values"),
    [
        ("p.raw", RAW_1, ["rs1_C", "1:200,A;x_A", "rs3_T"], A1),
        ("p.raw.gz", RAW_1, ["rs1_C", "1:200,A;x_A", "rs3_T"], A1),
        ("p2.txt", RAW_2, ["rs1_A", "1:200,A;x_C", "rs3_G"], 2 - A1),
    ],
)
def test_a_raw_file_has_the_roles_of_a_fam(tmp_path, name, text, names, values):
    said = command("ingest", write(tmp_path, name, text), tmp_path / "g.zarr").stdout
    assert "6 rows x 3 features" in said
    assert "target: 'PHENOTYPE' of the file (classification, 2 classes)" in said
    assert "1 row with -9 as 'PHENOTYPE': missing, as PLINK has it" in said
    assert "alleles: counted is the one that names end in, ID_ALLELE" in said
    store = Store.open(tmp_path / "g.zarr")
    assert (list(store.names), store.manifest.classes) == (names, ("case", "control"))
    assert ids_of(tmp_path / "g.zarr") == [IDS[i].replace(" ", ":") for i in KEPT]  # IIDs repeat
    np.testing.assert_array_equal(values_of(tmp_path / "g.zarr"), values[:, KEPT])


def test_what_an_option_names_of_a_raw_file_has_the_role_it_names(tmp_path):
    path = write(tmp_path, "p.raw", RAW_1.replace("fA 2", "fA 9").replace("C 1 ", "C 4 "))
    text = path.read_text().replace("fB 1", "0 5").replace("fB 2", "0 6").replace("D 1", "D 7")
    path.write_text(text)
    options = {"target": "PHENOTYPE,SEX", "groups": "FID", "task": "classification"}
    manifest = srs_ooc.ingest(path, tmp_path / "g.zarr", **options)
    assert ids_of(tmp_path / "g.zarr") == ["1", "9", "5", "4", "3", "7"]
    assert manifest.n_features == 3
    assert manifest.inferred["plink"] == {
        "with -9 as 'PHENOTYPE': missing, as PLINK has it": 1,
        "with 0 as 'FID', which is none: each stands alone": 2,
    }
    ((name, values, levels),) = Store.open(tmp_path / "g.zarr").added("target")
    assert (name, levels) == ("SEX", ("female", "male"))
    np.testing.assert_array_equal(values, [1, 0, NAN, 0, 0, 1])
    manifest = srs_ooc.ingest(path, tmp_path / "n.zarr", no_target=True, covariates="SEX")
    assert (manifest.n_rows, manifest.n_features, manifest.levels) == (7, 3, (("female", "male"),))


def test_a_raw_file_is_predicted_and_joined_as_it_is_ingested(tmp_path):
    rng = np.random.default_rng(0)
    lines = [
        f"f{i} p{i} 0 0 1 {(1, 2, -9)[i % 3]} {i % 3} {rng.integers(3)} {rng.integers(3)}"
        for i in range(60)
    ]
    header = "FID IID PAT MAT SEX PHENOTYPE a_A b_C c_T"
    path = write(tmp_path, "p.raw", "\n".join([header, *lines]) + "\n")
    store, run = tmp_path / "g.zarr", tmp_path / "run"
    command("ingest", path, store)
    command("run", store, "--out", run, "--save-trees", "--iterations", "30")
    said = command("predict", run, path, tmp_path / "out.csv").stdout
    assert "accuracy 1.0" in said
    assert "20 rows without" in said
    assert (tmp_path / "out.csv").read_text().splitlines()[1].startswith("p0,control,")
    for part, columns in enumerate((slice(6, 7), slice(7, 9))):
        rows = (one.split() for one in (header, *lines))
        text = "".join(" ".join([*row[:6], *row[columns]]) + "\n" for row in rows)
        write(tmp_path, f"{part}.raw", text)
    pieces = [tmp_path / "0.raw", tmp_path / "1.raw"]
    joined = srs_ooc.ingest(pieces, tmp_path / "j.zarr", target="PHENOTYPE")
    assert joined.checksums == Store.open(store).manifest.checksums


def test_sample_tables_beside_a_raw_file_are_joined_by_family_and_person(tmp_path):
    path = write(tmp_path, "p.raw", RAW_1)
    of_people(tmp_path, "ph.txt", [*ILL[:-1], -9], "FID IID ill")
    of_people(tmp_path, "covar.txt", AGES, "FID IID age")
    given = [*asked(tmp_path, "ph.txt", "covar.txt"), "--covariates", "age,SEX", "--groups", "FID"]
    said = command("ingest", path, tmp_path / "g.zarr", *given, "--target", "ill").stdout
    assert "5 rows x 3 features" in said
    assert "2 rows with -9 as 'ill': missing, as PLINK has it" in said
    store = Store.open(tmp_path / "g.zarr")
    kept = KEPT[:-1]
    assert ids_of(tmp_path / "g.zarr") == [IDS[i].replace(" ", ":") for i in kept]
    assert store.manifest.row_columns == {"groups": ["FID"], "covariates": ["SEX", "age"]}
    np.testing.assert_array_equal(values_of(tmp_path / "g.zarr"), A1[:, kept])
    write(tmp_path, "g.traw", TRAW)  # of which SEX is not known
    of_people(tmp_path, "sex.txt", ["1", "2", "NA", "1", "2", "2", "1"], "FID IID SEX")
    given = [*asked(tmp_path, "ph.txt", "covar.txt", "sex.txt"), *given[6:]]
    command("ingest", tmp_path / "g.traw", tmp_path / "t.zarr", *given, "--target", "ill")
    found = Store.open(tmp_path / "t.zarr").manifest.checksums
    same = [name for name in found if name.startswith(("target", "groups"))]
    assert [store.manifest.checksums[name] for name in same] == [found[name] for name in same]
    for option in (["--row-ids", "IID"], ["--aggregate", "mean"]):
        refused = error_of("ingest", path, tmp_path / "h.zarr", *given, "--target", "ill", *option)
        assert "expected no --row-ids or --aggregate beside --samples" in refused
    small = ("ingest", path, tmp_path / "h.zarr", *given, "--target", "ill", "--memory-mb", "30")
    assert "the samples" in error_of(*small)


def test_a_traw_file_is_turned_and_joined_by_family_and_person(tmp_path):
    of_people(tmp_path, "ph.txt", ILL, "FID IID ill")
    write(tmp_path, "g.traw", TRAW)
    store = tmp_path / "g.zarr"
    options = (*asked(tmp_path, "ph.txt"), "--target", "ill")
    said = command("ingest", tmp_path / "g.traw", store, *options).stdout
    assert "alleles: counted is that of column COUNTED" in said
    assert "1 row with -9 as 'ill': missing, as PLINK has it" in said
    assert list(Store.open(store).names) == ["rs1", "1:200,A;x", "rs3"]
    assert ids_of(store) == [IDS[i].replace(" ", "_") for i in KEPT]
    np.testing.assert_array_equal(values_of(store), A1[:, KEPT])
    assert is_plink(Store.open(store).manifest.source)
    kinds = ("--kind", "rs3=categorical", "--overwrite")
    options = (*asked(tmp_path, "ph.txt"), "--target", "ill", *kinds)
    command("ingest", write(tmp_path, "g.traw.gz", TRAW), store, *options)
    assert Store.open(store).manifest.kind_counts["categorical"] == 1
    of_people(tmp_path, "age.txt", AGES)
    said = command("targets", store, tmp_path / "age.txt", "--id", "IID", "--target", "PHENO1")
    assert "target 'PHENO1' (numbers): 5 of 6 rows" in said.stdout


def test_a_traw_file_without_samples_is_refused(tmp_path):
    path = write(tmp_path, "g.traw", TRAW)
    refused = error_of("ingest", path, tmp_path / "g.zarr")
    assert "expected --samples beside a .traw, a variant a line, found none. Say --samp" in refused
    with pytest.raises(InputError, match=r"expected --samples beside a .traw, a variant a line"):
        srs_ooc.ingest(path, tmp_path / "g.zarr")
    of_people(tmp_path, "ph.txt", ILL, "FID IID ill")
    cut = write(tmp_path, "cut.traw", TRAW[:-9])
    options = (*asked(tmp_path, "ph.txt"), "--target", "ill")
    refused = error_of("ingest", cut, tmp_path / "g.zarr", *options)
    assert "line 4: expected 13 fields as in the first row, found 9" in refused
    write(tmp_path, "none.traw", "\t".join(TRAW.split("\t")[:6]) + "\n")
    refused = error_of("ingest", tmp_path / "none.traw", tmp_path / "g.zarr", *options)
    assert "expected a header of a first field and sample ids" in refused


@pytest.mark.parametrize(
    ("header", "join"),
    [
        ("FID IID x", " ".join),
        ("#FID IID x", "\t".join),
        ("FID IID x ", lambda row: " ".join([*row, ""])),  # as --write-covar of PLINK 1.9
        (" FID      IID  x", "   ".join),
        ("FID\t IID  x", " \t".join),
        ("IID x", None),
        ("#IID\tx", None),
        ("FID,IID,x", ",".join),
    ],
)
def test_tables_of_people_are_read_as_plink_reads_them(tmp_path, header, join):
    text = TRAW
    if join:
        of_people(tmp_path, "ph.txt", ILL, header, join)
    else:  # the family is 0
        text = re.sub(r"f(.)_(.)", r"0_\1\2", TRAW)
        lines = [f"{one[1]}{one[3:]} {ill}" for one, ill in zip(IDS, ILL, strict=True)]
        write(tmp_path, "ph.txt", "\n".join([header, *lines]).replace(" ", header[-2]) + "\n")
    options = (*asked(tmp_path, "ph.txt"), "--target", "x")
    command("ingest", write(tmp_path, "g.traw", text), tmp_path / "g.zarr", *options)
    store = Store.open(tmp_path / "g.zarr")
    assert [store.manifest.classes[int(code)] for code in store.target()] == list("212121")


def test_columns_of_tables_without_a_header_are_named_by_their_place(tmp_path):
    of_people(tmp_path, "ph.txt", [f"{one} {i}.5" for i, one in enumerate(ILL)])
    of_people(tmp_path, "cov.txt", AGES, join="\t".join)
    write(tmp_path, "g.traw", TRAW)
    options = (*asked(tmp_path, "ph.txt", "cov.txt"), "--target", "PHENO2", "--covariates")
    said = command("ingest", tmp_path / "g.traw", tmp_path / "g.zarr", *options, "COVAR1").stdout
    found = [f"{tmp_path / 'ph.txt'} has no header: FID, IID, PHENO1, PHENO2"]
    found += [f"{tmp_path / 'cov.txt'} has no header: FID, IID, COVAR1"]
    assert f"samples: {'; '.join(found)}" in said
    store = Store.open(tmp_path / "g.zarr")
    assert store.target().tolist() == [i + 0.5 for i in range(7)]
    ((_, ages, _),) = store.each_covariate()
    np.testing.assert_array_equal(ages, [NAN if age == -9 else age for age in AGES])
    refused = error_of("ingest", tmp_path / "g.traw", tmp_path / "h.zarr", *options, "age")
    assert "no such column 'age' (--covariates)" in refused
    options = (*asked(tmp_path, "ph.txt"), "--target", "bmi")
    refused = error_of("ingest", tmp_path / "g.traw", tmp_path / "h.zarr", *options)
    assert "no such column 'IID' (--id)" in refused
    assert "Without a header: PHENO1, COVAR1." in refused


def test_several_tables_of_samples_are_joined_by_id(tmp_path):
    write(tmp_path, "t.csv", "gene,a,b,c,d\nx,1,2,3,4\ny,4,3,3,1\n")
    write(tmp_path, "one.csv", "id,y\na,u\nb,v\nd,u\n")
    write(tmp_path, "two.tsv", "id\tage\tsite\nd\t40\ts\na\t30\ts\ne\t9\ts\n")
    options = ["--samples", tmp_path / "one.csv", "--samples", tmp_path / "two.tsv", "--id", "id"]
    options += ["--orient", "features", "--target", "y", "--covariates"]
    said = command("ingest", tmp_path / "t.csv", tmp_path / "t.zarr", *options, "age").stdout
    assert "samples without a label, left out: 1 (c)" in said
    assert "labels without a sample, left out: 1 (e)" in said
    store = Store.open(tmp_path / "t.zarr")
    assert ids_of(tmp_path / "t.zarr") == ["a", "b", "d"]
    ((_, ages, _),) = store.each_covariate()
    np.testing.assert_array_equal(ages, [30, NAN, 40])
    two = (tmp_path / "two.tsv").read_text()
    for change, said in (
        (("site", "y"), "and .*two.tsv: expected column 'y' in one of them. Rename the others."),
        (("id\t", "ID\t"), r"two.tsv: no such column 'id' \(--id\); expected one of 'ID', 'age'"),
        (("e\t9\ts", "a\t9\ts"), "two.tsv, line 4: expected distinct ids in column 'id'"),
        (("a\t30\ts", "a\t-30\ts"), r"one.csv, line 2; .*two.tsv, line 3: .*'age' \(--weights\)"),
    ):
        (tmp_path / "two.tsv").write_text(two.replace(*change))
        again = ("ingest", tmp_path / "t.csv", tmp_path / "t.zarr", "--overwrite", *options, "site")
        assert re.search(said, error_of(*again, "--weights", "age"))


@pytest.mark.parametrize(
    "text",
    [
        '"","y","age"\n"a","u",30\n"b","v",31\n"c","u",32\n"d","v",33\n',  # write.csv
        '"y"\t"age"\n"a"\t"u"\t30\n"b"\t"v"\t31\n"c"\t"u"\t32\n"d"\t"v"\t33\n',  # write.table
    ],
)
def test_names_of_rows_as_r_writes_them_are_ids_without_a_name(tmp_path, text):
    write(tmp_path, "t.csv", "gene,a,b,c,d\nx,1,2,3,4\ny,4,3,3,1\n")
    write(tmp_path, "people", text)
    options = ["--orient", "features", "--samples", tmp_path / "people", "--id", ""]
    options += ["--target", "y", "--covariates", "age"]
    command("ingest", tmp_path / "t.csv", tmp_path / "t.zarr", *options)
    store = Store.open(tmp_path / "t.zarr")
    assert ids_of(tmp_path / "t.zarr") == ["a", "b", "c", "d"]
    ((_, ages, _),) = store.each_covariate()
    assert (store.target().tolist(), ages.tolist()) == ([0, 1, 0, 1], [30, 31, 32, 33])
    write(tmp_path, "people", text.replace(",31", ",31,").replace("\t30", "\t30\t"))
    refused = error_of("ingest", tmp_path / "t.csv", tmp_path / "u.zarr", *options)
    assert "fields as in the header" in refused or "no such column ''" in refused


def test_a_raw_file_of_many_short_lines_is_read_in_blocks(tmp_path):
    """A block may end between a family and its person."""
    lines = (f"f{i} p{i // 2} 0 0 1 {1 + i % 2} {i % 3}\n" for i in range(40_000))
    path = write(tmp_path, "p.raw", "FID IID PAT MAT SEX PHENOTYPE a_A\n" + "".join(lines))
    manifest = srs_ooc.ingest(path, tmp_path / "g.zarr", groups="FID")
    assert (manifest.n_rows, manifest.classes) == (40_000, ("case", "control"))
    assert ids_of(tmp_path / "g.zarr") == [f"f{i}:p{i // 2}" for i in range(40_000)]
