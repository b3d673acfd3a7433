"""PLINK's .bed becomes the store of its CSV; what .fam says takes roles; damage is found."""

import math
from pathlib import Path

import numpy as np
import pytest
import zarr
from bed_files import DOSAGES, N_ROWS, N_VARIANTS, NAMES, RNG, STATUS, write_bed
from examples import examples, given, st
from refusals import refused
from stores import values_of
from tables import here, opened, said_here

import srs_ooc
from srs_ooc.base.errors import InputError
from srs_ooc.ingestion.formats.genotypes import is_plink
from srs_ooc.store.arrays import Names
from srs_ooc.store.bed import BedFile
from srs_ooc.store.manifest import read_manifest
from srs_ooc.store.store import Store
from srs_ooc.testing import check_table

BESIDE = [f"feature_columns_{one}/c/0" for one in ("bytes", "offsets")]
"""What a store of variants has that one of a table without such facts lacks."""


def write_csv(folder: Path) -> Path:
    lines = [",".join(["id", *NAMES, "status"])]
    for i, row in enumerate(DOSAGES.tolist()):
        cells = ["" if math.isnan(cell) else f"{cell:g}" for cell in row]
        lines.append(",".join([f"I{i}", *cells, {"2": "case", "1": "control"}[STATUS[i]]]))
    (folder / "twin.csv").write_text("\n".join(lines))
    return folder / "twin.csv"


def test_a_bed_file_becomes_the_store_of_its_csv(tmp_path):
    bed, twin = write_bed(tmp_path), tmp_path / "twin.zarr"
    manifest = srs_ooc.ingest(bed, tmp_path / "g.zarr", code_dtype="uint8")
    twin = srs_ooc.ingest(write_csv(tmp_path), twin, row_ids="id")
    assert all(map(manifest.checksums.pop, BESIDE))
    assert manifest.checksums == twin.checksums
    assert manifest.source["format"] == "bed, dosages of A1"
    assert manifest.inferred["target"] == "'phenotype' of the file"
    assert manifest.inferred["row_ids"] == "'id' of the file"
    np.testing.assert_array_equal(values_of(tmp_path / "g.zarr"), DOSAGES.T)


@examples(25)
@given(st.integers(1, 9), st.integers(2, 12), st.integers(0, 2**16))
def test_it_keeps_the_contract_of_a_table(tmp_path_factory, n_variants, n_rows, seed):
    rng, folder = np.random.default_rng(seed), tmp_path_factory.mktemp("bed")
    dosages = rng.choice([0.0, 1.0, 2.0, math.nan], (n_rows, n_variants + 1))
    names = [f"rs{j}" for j in range(n_variants + 1)]
    check_table(opened(write_bed(folder, dosages, names)), dosages.T.tolist(), names)


def test_dosages_are_those_of_bed_reader(tmp_path):
    bed_reader = pytest.importorskip("bed_reader")
    path = write_bed(tmp_path)
    with bed_reader.open_bed(path) as bed:
        expected = bed.read(dtype="float64")
    table = opened(path)
    found = table.read(np.arange(N_VARIANTS), None)
    np.testing.assert_array_equal(found.T, expected)


def test_columns_of_fam_take_the_roles_that_are_named(tmp_path, capsys):
    path = write_bed(tmp_path)
    options = ["--target", "sex", "--groups", "FID", "--covariates", "phenotype"]
    said = said_here(capsys, "ingest", path, tmp_path / "g.zarr", *options)
    group = zarr.open_group(tmp_path / "g.zarr", mode="r")
    manifest = read_manifest(tmp_path / "g.zarr")
    assert manifest.classes == ("female", "male")
    assert len(np.unique(group["groups"][:])) == (N_ROWS + 1) // 2
    assert "covariates: 'phenotype'" in said
    assert manifest.n_features == N_VARIANTS


def test_a_variant_can_be_the_target(tmp_path):
    manifest = srs_ooc.ingest(
        write_bed(tmp_path), tmp_path / "g.zarr", target="rs3", task="classification"
    )
    assert (manifest.n_features, manifest.classes) == (N_VARIANTS - 1, ("0", "1", "2"))


def test_samples_are_joined_by_id(tmp_path, capsys):
    path, table = write_bed(tmp_path), tmp_path / "people.tsv"
    rows = [f"I{i}\t{i % 5}.5\t{40 + i}" for i in reversed(range(2, N_ROWS))]
    table.write_text("\n".join(["IID\tweight\tage", *rows, "stranger\t1.5\t2"]))
    store = tmp_path / "g.zarr"
    options = ["--samples", table, "--id", "IID", "--covariates", "age"]
    said = said_here(capsys, "ingest", path, store, "--target", "weight", *options)
    manifest = read_manifest(store)
    assert manifest.n_rows == N_ROWS - 2
    assert list(Names(store, manifest, "row_ids")) == [f"I{i}" for i in range(2, N_ROWS)]
    assert Store.open(store).target().tolist() == [i % 5 + 0.5 for i in range(2, N_ROWS)]
    assert "left out" in said


def test_columns_that_samples_lack_are_those_of_the_file(tmp_path):
    path, table = write_bed(tmp_path), tmp_path / "people.tsv"
    rows = [f"I{i}\t{40 + i}\tx" for i in range(N_ROWS)]
    table.write_text("\n".join(["IID\tage\tFID", *rows]))
    command = ["ingest", path, "--samples", table, "--id", "IID", "--covariates"]
    here(*command, "age,sex", tmp_path / "g.zarr")
    manifest = read_manifest(tmp_path / "g.zarr")
    assert list(manifest.row_columns["covariates"]) == ["age", "sex"]
    assert manifest.target_name == "phenotype"
    here(*command, "age", "--strata", "FID", tmp_path / "f.zarr")  # of the samples
    assert set(zarr.open_group(tmp_path / "f.zarr", mode="r")["strata"][:]) == {0}


def test_samples_that_match_no_id_or_stand_beside_a_text_are_refused(tmp_path, capsys):
    path, table = write_bed(tmp_path), tmp_path / "people.csv"
    table.write_text("IID,weight\nx,1\ny,2\n")
    beside = ["--samples", table, "--id", "IID", "--target", "weight"]
    np.save(tmp_path / "x.npy", DOSAGES)
    for source, more, message in (
        (path, [], "expected row ids as in column 'IID'"),
        (write_csv(tmp_path), [], "--orient features"),
        (path, ["--row-ids", "IID"], "expected no --row-ids or --sample-features"),
        (tmp_path / "x.npy", [], "expected row ids, by which --samples is joined"),
    ):
        command = ["ingest", source, tmp_path / "g.zarr", *beside, *more]
        assert message in said_here(capsys, *command, expect=2)


def test_ids_that_repeat_or_are_not_there_are_made_distinct(tmp_path):
    names = [".", ".", "rs7", "rs7", *NAMES[4:]]
    fam = [f"F{i} same 0 0 0 {i}.5" for i in range(N_ROWS)]
    table = opened(write_bed(tmp_path, names=names, fam=fam))
    assert list(table.names)[:5] == [
        "7:100:ACG:A", "7:101:ACG:A", "rs7:102:ACG:A", "rs7:103:ACG:A", "rs4",
    ]  # fmt: skip
    assert table.annotations["id"][:2] == ["F0:same", "F1:same"]
    assert table.annotations["sex"] == [None] * N_ROWS
    assert table.annotations["phenotype"][1] == "1.5"


def test_without_a_phenotype_a_target_is_asked_for(tmp_path):
    fam = [f"F{i} I{i} 0 0 1 -9" for i in range(N_ROWS)]
    path = write_bed(tmp_path, fam=fam)
    with pytest.raises(InputError, match=r"expected target.*id, FID, IID, father"):
        srs_ooc.ingest(path, tmp_path / "g.zarr")
    manifest = srs_ooc.ingest(path, tmp_path / "g.zarr", no_target=True)
    assert manifest.n_features == N_VARIANTS


def test_a_zero_is_an_unknown_status_but_a_value_of_numbers(tmp_path):
    lines = [f"F{i} I{i} 0 0 1 {i % 3}" for i in range(N_ROWS)]
    status = opened(write_bed(tmp_path, fam=lines)).annotations["phenotype"]
    assert status[:3] == [None, "control", "case"]
    lines[5] = "F5 I5 0 0 1 7"
    numbers = opened(write_bed(tmp_path, fam=lines)).annotations["phenotype"]
    assert numbers[:3] == ["0", "1", "2"]


@pytest.mark.parametrize("suffix", [".bim", ".fam"])
def test_a_file_that_is_missing_or_ragged_is_named(tmp_path, suffix):
    path = write_bed(tmp_path)
    beside = path.with_suffix(suffix)
    beside.write_text(beside.read_text() + "one two\n")
    with pytest.raises(InputError, match=rf"{beside.name}, line \d+: expected 6 fields, found 2"):
        srs_ooc.ingest(path, tmp_path / "g.zarr")
    beside.unlink()
    with pytest.raises(InputError, match=rf"expected {beside.name} in the same folder"):
        srs_ooc.ingest(path, tmp_path / "g.zarr")
    assert not (tmp_path / "g.zarr").exists()


@pytest.mark.parametrize(
    ("head", "cut", "message"),
    [
        *(("6c1b01", slice(size), "expected") for size in (2, 3, 4, 100, -1)),
        ("6c1b00", slice(None), "samples one after another.*--make-bed"),
    ],
)
def test_a_damaged_file_or_one_by_samples_is_refused(tmp_path, head, cut, message):
    path = write_bed(tmp_path)
    path.write_bytes((bytes.fromhex(head) + path.read_bytes()[3:])[cut])
    refused(InputError, message, srs_ooc.ingest, path, tmp_path / "g.zarr")


def test_a_file_cut_while_it_is_read_is_refused(tmp_path):
    table = opened(path := write_bed(tmp_path))
    path.write_bytes(path.read_bytes()[:50])
    refused(InputError, "Leave the file alone", table.read, np.array([N_VARIANTS - 1]), None)


def test_options_of_text_tables_are_refused(tmp_path, capsys):
    command = ["ingest", "--separator", "comma", write_bed(tmp_path), tmp_path / "g.zarr"]
    assert "only for text tables" in said_here(capsys, *command, expect=2)


# PLINK 2.

DOSES = np.array([0, 0.25, 1, 1.5, 2, math.nan])[RNG.integers(0, 6, (N_ROWS, N_VARIANTS))]
HEADER = "##source=test\n#CHROM\tPOS\tID\tREF\tALT\tINFO\n"
PSAM = "#IID\tSEX\tPHENO1\tage\n"


def write_pgen(folder: Path, doses=DOSES, names=NAMES, header=HEADER, alt="A") -> Path:
    """Write the three files of a table; return the .pgen."""
    pgenlib = pytest.importorskip("pgenlib")
    n_rows, n_variants = doses.shape
    path = folder / "g.pgen"
    with pgenlib.PgenWriter(
        bytes(path), n_rows, variant_ct=n_variants, nonref_flags=False, dosage_present=True
    ) as writer:
        for column in doses.T:
            writer.append_dosages(np.where(np.isnan(column), -9, column).astype(np.float32))
    lines = [f"7\t{100 + j}\t{one}\tACG\t{alt}\tAC=1;B\n" for j, one in enumerate(names)]
    path.with_suffix(".pvar").write_text(header + "".join(lines))
    sexes = [("1", "2", "NA")[i % 3] for i in range(n_rows)]
    people = [f"I{i}\t{sexes[i]}\t{STATUS[i % N_ROWS]}\t{40 + i}\n" for i in range(n_rows)]
    path.with_suffix(".psam").write_text(PSAM + "".join(people))
    return path


def test_a_pgen_file_becomes_the_store_of_its_array(tmp_path):
    path = write_pgen(tmp_path)
    manifest = srs_ooc.ingest(path, tmp_path / "g.zarr", covariates=["age", "sex"])
    status = [{"2": "case", "1": "control"}[one] for one in STATUS]
    ids = [f"I{i}" for i in range(N_ROWS)]
    covariates = {"age": np.arange(N_ROWS) + 40, "sex": ["male", "female", None] * 8}
    covariates["sex"] = covariates["sex"][:N_ROWS]
    twin = srs_ooc.ingest(
        DOSES, tmp_path / "twin.zarr", target=status, names=NAMES, row_ids=ids,
        covariates=covariates,
    )  # fmt: skip
    assert all(map(manifest.checksums.pop, BESIDE))
    assert manifest.checksums == twin.checksums
    assert manifest.source["format"] == "pgen, dosages of ALT, phase left out"
    assert manifest.inferred["target"] == "'phenotype' of the file"


@examples(15)
@given(st.integers(1, 9), st.integers(2, 12), st.integers(0, 2**16))
def test_a_pgen_file_keeps_the_contract_of_a_table(tmp_path_factory, n_variants, n_rows, seed):
    rng, folder = np.random.default_rng(seed), tmp_path_factory.mktemp("pgen")
    doses = rng.choice([0.0, 0.5, 1.0, 2.0, math.nan], (n_rows, n_variants))
    names = [(".", "rs1", f"rs{j}")[rng.integers(3)] for j in range(n_variants)]
    n_each = {one: names.count(one) for one in names}
    made = [
        f"{'7' if one == '.' else one}:{100 + j}:ACG:A" if one == "." or n_each[one] > 1 else one
        for j, one in enumerate(names)
    ]
    table = opened(write_pgen(folder, doses, names))
    check_table(table, doses.T.tolist(), made)


def test_files_of_plink_2_without_headers_are_as_those_of_plink_1(tmp_path):
    path = write_pgen(tmp_path)
    bed = write_bed(tmp_path, name="b")
    path.with_suffix(".pvar").write_bytes(bed.with_suffix(".bim").read_bytes())
    path.with_suffix(".psam").write_bytes(bed.with_suffix(".fam").read_bytes())
    table, twin = opened(path), opened(bed)
    assert list(table.names) == list(twin.names)
    assert table.annotations == twin.annotations


def test_a_damaged_pgen_file_is_refused(tmp_path):
    path = write_pgen(tmp_path)
    data = path.read_bytes()
    for damaged in (data[:3], data[:20], data[: len(data) // 2], data[:2] + b"\x77" + data[3:]):
        path.write_bytes(damaged)
        refused(InputError, "expected", srs_ooc.ingest, path, tmp_path / "g.zarr")
    assert not (tmp_path / "g.zarr").exists()


def test_variants_of_more_alleles_and_files_of_others_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"two alleles, found 'rs0:100:ACG:A,G'.*--max-alleles 2"):
        srs_ooc.ingest(write_pgen(tmp_path, alt="A,G"), tmp_path / "g.zarr")
    path = write_pgen(tmp_path, header=HEADER.replace("ALT", "OTHER"))
    with pytest.raises(InputError, match="ALT, CHROM, ID, POS, REF in a header"):
        srs_ooc.ingest(path, tmp_path / "g.zarr")
    path = write_pgen(tmp_path)
    for suffix in (".pvar", ".psam"):
        beside = path.with_suffix(suffix)
        text = beside.read_text()
        beside.write_text(text[: text[:-1].rindex("\n") + 1])
        refused(InputError, "belong together", srs_ooc.ingest, path, tmp_path / "g.zarr")
        beside.unlink()
        with pytest.raises(InputError, match=f"expected {beside.name} in the same folder"):
            srs_ooc.ingest(path, tmp_path / "g.zarr")
        beside.write_text(text)


def test_a_file_that_ends_before_what_is_asked_for_is_told(tmp_path):
    path = write_bed(tmp_path)
    bed = BedFile(path, N_ROWS, N_VARIANTS)
    found = bed.lines(np.array([5, 2, 3, 0]))
    path.write_bytes(path.read_bytes()[: bed.nbytes - N_VARIANTS])
    np.testing.assert_array_equal(bed.lines(np.array([5, 2, 3, 0])), found)
    with pytest.raises(InputError, match="expected as many bytes as when it was opened"):
        bed.lines(np.array([0, N_VARIANTS - 1]))


# What PLINK takes for missing: -9, and 0 where it is a status, a family or a parent.


def said_of(capsys, *command) -> str:
    return said_here(capsys, "ingest", "--overwrite", *command)


def people_of(folder: Path, columns: dict[str, list]) -> list:
    """Write a table of samples; return the options that name it."""
    table = {"IID": [f"I{i}" for i in range(N_ROWS)], **columns}
    rows = zip(*table.values(), strict=True)
    lines = ["\t".join(table), *("\t".join(map(str, row)) for row in rows)]
    (folder / "people.tsv").write_text("\n".join(lines) + "\n")
    return ["--samples", folder / "people.tsv", "--id", "IID"]


CODES = [("1", "2", "-9", "-9.0")[i % 4] for i in range(N_ROWS)]
NUMBERS = [f"{i}.5" if i % 3 else "-9" for i in range(N_ROWS)]
N_CODES, N_NUMBERS = sum(one[0] == "-" for one in CODES), NUMBERS.count("-9")


@pytest.mark.parametrize("write", ["bed", "pgen"])
def test_minus_nine_of_samples_is_missing_in_targets_and_covariates(tmp_path, capsys, write):
    """PLINK 1.9 and 2 take it so in --pheno and in --covar, -9.0 too, but not -9.5."""
    path = write_bed(tmp_path) if write == "bed" else write_pgen(tmp_path)
    ages = ["-9" if i == 4 else "-9.5" if i == 5 else str(40 + i) for i in range(N_ROWS)]
    options = people_of(tmp_path, {"ill": CODES, "bmi": NUMBERS, "age": ages})
    store = tmp_path / "g.zarr"
    said = said_of(capsys, path, store, *options, "--target", "ill,bmi", "--covariates", "age")
    assert f"{N_CODES} rows with -9 as 'ill': missing, as PLINK has it" in said
    assert f"{N_NUMBERS} rows with -9 as 'bmi'" in said
    assert "1 row with -9 as 'age'" in said
    opened = Store.open(store)
    assert opened.manifest.classes == ("1", "2")
    assert opened.n_rows == N_ROWS - N_CODES
    (bmi,), (age,) = opened.added("target"), opened.each_covariate()
    kept = [i for i in range(N_ROWS) if CODES[i] in "12"]
    assert np.isnan(bmi.values).tolist() == [NUMBERS[i] == "-9" for i in kept]
    assert age.values[3] == -9.5
    assert np.isnan(age.values).sum() == (4 in kept)
    said_of(capsys, path, store, *options, "--target", "bmi")
    assert Store.open(store).target().min() == 1.5


def test_minus_nine_of_targets_added_to_genotypes_is_missing(tmp_path, capsys):
    store, twin = tmp_path / "g.zarr", tmp_path / "c.zarr"
    options = people_of(tmp_path, {"ill": CODES, "bmi": NUMBERS})
    added = [options[1], "--id", "IID", "--target", "ill,bmi"]
    said_of(capsys, write_bed(tmp_path), store)
    said = said_here(capsys, "targets", store, *added)
    assert f"{N_CODES} rows with -9 as 'ill': missing, as PLINK has it" in said
    assert f"target 'bmi' (numbers): {N_ROWS - N_NUMBERS} of {N_ROWS} rows" in said
    said_of(capsys, write_csv(tmp_path), twin, "--row-ids", "id", "--target", "status")
    said = said_here(capsys, "targets", twin, *added)
    assert "note: 2 columns ('bmi', 'ill'): far from all other numbers, '-9' stands for" in said
    assert f"target 'bmi' (numbers): {N_ROWS} of {N_ROWS} rows" in said
    said = said_here(capsys, "targets", twin, *added, "--missing", "-9", "--missing", "-9.0")
    assert "note:" not in said
    assert f"target 'ill' (2 levels): {N_ROWS - N_CODES} of {N_ROWS} rows" in said


def test_minus_nine_as_the_phenotype_of_a_raw_file_is_missing(tmp_path, capsys):
    header = "FID IID PAT MAT SEX PHENOTYPE rs0_A rs1_A\n"
    rows = [
        f"{(0, 'A', 'B')[i % 3]} I{i} 0 0 1 {(1, 2, -9)[i % 3]} {i % 2} NA" for i in range(N_ROWS)
    ]
    (tmp_path / "g.raw").write_text(header + "\n".join(rows) + "\n")
    options = ["--target", "PHENOTYPE", "--ignore", "IID", "--groups", "FID"]
    said = said_of(capsys, tmp_path / "g.raw", tmp_path / "g.zarr", *options)
    assert "7 rows with -9 as 'PHENOTYPE': missing, as PLINK has it" in said
    assert "8 rows with 0 as 'FID', which is none: each stands alone" in said
    assert Store.open(tmp_path / "g.zarr").manifest.classes == ("case", "control")
    (tmp_path / "g.csv").write_text(header.replace("MAT ", "Mat ") + "\n".join(rows) + "\n")
    said = said_of(capsys, tmp_path / "g.csv", tmp_path / "g.zarr", *options)
    assert "as PLINK has it" not in said
    assert (
        "'-9' stands for missing values: empty such cells, or, of a text table, say --missing ''"
        in said
    )


def test_a_zero_is_missing_where_the_other_phenotypes_are_one_and_two(tmp_path, capsys):
    """PLINK 2 takes it so in each column of .psam, and for a number among other numbers."""
    store, path = tmp_path / "g.zarr", write_pgen(tmp_path)
    psam = path.with_suffix(".psam")
    header, *rows = psam.read_text().splitlines()
    more = [f"{row}\t{i % 3}\t{i % 4}\t{i % 2}\n" for i, row in enumerate(rows)]
    psam.write_text(f"{header}\till\tsteps\tsmoker\n" + "".join(more))
    said = said_of(capsys, path, store, "--target", "ill", "--covariates", "smoker")
    assert "8 rows with -9 or 0 as 'ill': missing, as PLINK has it" in said
    assert Store.open(store).manifest.classes == ("1", "2")
    assert "as 'smoker'" not in said
    said_of(capsys, path, store, "--target", "ill", "--task", "regression")
    assert Store.open(store).n_rows == N_ROWS
    for name, classes in (("steps", ("0", "1", "2", "3")), ("smoker", ("0", "1"))):
        said_of(capsys, path, store, "--target", name, "--task", "classification")
        assert Store.open(store).manifest.classes == classes
    said_of(capsys, path, store, "--target", "sex", "--covariates", "ill")
    (covariate,) = Store.open(store).each_covariate()
    assert not np.isnan(covariate.values).any()  # as of PLINK 2, where it is one


def test_a_zero_of_samples_is_missing_as_a_status_alone(tmp_path, capsys):
    """Where it is 0 and 1 it is a class, in a table that need not be PLINK's."""
    columns = {
        "status": ["0", "1", "2", "NA", "-9"],
        "coded": ["0", "1", "0", "NA", "1"],
        "steps": ["0", "1", "2", "3", "NA"],
    }
    some = {name: [cells[i % 5] for i in range(N_ROWS)] for name, cells in columns.items()}
    store, options = tmp_path / "g.zarr", people_of(tmp_path, some)
    for name, classes in (("status", "12"), ("coded", "01"), ("steps", "0123")):
        said = said_of(capsys, write_bed(tmp_path), store, *options, "--target", name)
        assert Store.open(store).manifest.classes == tuple(classes)
        assert ("-9 or 0 as" in said) == (name == "status")


def test_a_zero_of_a_raw_file_is_a_number_in_whatever_block_it_is(tmp_path, capsys):
    doses = ["0", "1", "2"] * 4000 + ["3.5", "-9"] * 40
    rows = [f"F{i} I{i} 0 0 1 {one} {i % 2}\n" for i, one in enumerate(doses)]
    (tmp_path / "g.raw").write_text("FID IID PAT MAT SEX PHENOTYPE rs0_A\n" + "".join(rows))
    options = ["--target", "PHENOTYPE", "--ignore", "FID,IID"]
    said_of(capsys, tmp_path / "g.raw", tmp_path / "g.zarr", *options)
    found = Store.open(tmp_path / "g.zarr").target()
    assert found.tolist() == [float(one) for one in doses if one != "-9"]


def test_samples_without_a_line_have_no_family_that_is_known(tmp_path, capsys):
    options = people_of(tmp_path, {"FID": ["A"] * N_ROWS})
    lines = options[1].read_text().splitlines()
    options[1].write_text("\n".join(lines[:-1]) + "\n")
    command = ("ingest", write_bed(tmp_path), tmp_path / "g.zarr", *options, "--groups", "FID")
    said = said_here(capsys, *command, expect=2)
    assert "(--groups): expected a text, found an empty cell" in said


@pytest.mark.parametrize("given", ["file", "values"])
def test_a_target_given_apart_stands_for_phenotypes_that_are_missing(tmp_path, given):
    path = write_bed(tmp_path, fam=[f"F{i} I{i} 0 0 1 -9" for i in range(N_ROWS)])
    if given == "values":
        manifest = srs_ooc.ingest(path, tmp_path / "g.zarr", target=np.arange(N_ROWS) % 2)
    else:
        (tmp_path / "y.txt").write_text("\n".join(STATUS))
        here("ingest", path, tmp_path / "g.zarr", "--target-file", tmp_path / "y.txt")
        manifest = read_manifest(tmp_path / "g.zarr")
    assert len(manifest.classes) == 2


@pytest.mark.parametrize("one", [-9, 0])
def test_where_all_phenotypes_are_missing_others_are_offered(tmp_path, one):
    path = write_bed(tmp_path, fam=[f"0 I{i} 0 0 {1 + i % 2} {one}" for i in range(N_ROWS)])
    for target in (None, "phenotype"):
        call = srs_ooc.ingest, path, tmp_path / "g.zarr"
        said = refused(InputError, "'phenotype', in all rows missing", *call, target=target)
        offered = said.partition("Name one of")[2]
        assert "phenotype," not in offered
        assert "samples FILE" in offered
        assert "no_target" in offered


def test_phenotypes_of_zero_and_one_are_refused_with_the_remedy(tmp_path):
    path = write_bed(tmp_path, fam=[f"F{i} I{i} 0 0 1 {i % 2}" for i in range(N_ROWS)])
    with pytest.raises(InputError, match=r"control or missing.*0 is missing: `plink2 --1"):
        srs_ooc.ingest(path, tmp_path / "g.zarr")


FAMILIES = ["0" if i % 3 else f"F{i // 6}" for i in range(N_ROWS)]
N_ALONE = FAMILIES.count("0")
N_FAMILIES = len({*FAMILIES}) - 1


def test_who_has_no_family_is_a_group_of_his_own(tmp_path, capsys):
    fam = [f"{FAMILIES[i]} I{i} 0 0 {1 + i % 2} {STATUS[i]}" for i in range(N_ROWS)]
    path, store = write_bed(tmp_path, fam=fam), tmp_path / "g.zarr"
    words = f"{N_ALONE} rows with 0 as 'FID', which is none: "
    own = people_of(tmp_path, {"#FID": [one.replace("0", ".") for one in FAMILIES]})
    for name, options in (("FID", ()), ("#FID", own)):
        for what in ("groups", "strata"):
            said = said_of(capsys, path, store, f"--{what}", name, *options)
            assert f"{words.replace('FID', name)}each stands alone" in said
            found = getattr(Store.open(store), what)()
            assert len(np.unique(found)) == N_ALONE + N_FAMILIES
    assert words + "each" in said_of(capsys, path, store, "--groups", "FID,sex")
    assert len(np.unique(Store.open(store).groups())) > N_ALONE + N_FAMILIES
    whole = ["--no-target", "--code-dtype", "uint8", "--aggregate", "mean"]
    said_of(capsys, path, store, *whole, "--groups", "FID")
    assert list(Store.open(store).row_ids)[:3] == ["F0", "0:I1", "0:I2"]
    said = said_of(capsys, path, store, "--groups", "father")
    assert f"{N_ROWS} rows with 0 as 'father', which is none: each stands alone" in said
    assert words + "missing" in said_of(capsys, path, store, "--covariates", "FID")
    (covariate,) = Store.open(store).each_covariate()
    assert np.isnan(covariate.values).sum() == N_ALONE


def test_missing_texts_are_said_of_samples_beside_genotypes(tmp_path, capsys):
    path, store = write_bed(tmp_path), tmp_path / "g.zarr"
    table = people_of(tmp_path, {"dose": ["-99" if i == 3 else str(i) for i in range(N_ROWS)]})
    options = [path, store, *table, "--target", "dose", "--task", "regression"]
    said_of(capsys, *options, "--missing", "-99", "--missing", "0")
    assert Store.open(store).target().tolist() == [i for i in range(1, N_ROWS) if i != 3]
    text = table[1].read_text().splitlines()
    table[1].write_text("\n".join(text[:-2]) + "\n")  # rows that it lacks are missing as well
    said_of(capsys, *options, "--missing", "-99")
    assert Store.open(store).n_rows == N_ROWS - 3
    said = said_here(capsys, "ingest", *options, "--overwrite", "--no-header", expect=2)
    assert "only for text tables" in said


@pytest.mark.parametrize("name", ["study.bed-pheno.csv", "study.bed (1).csv", "my.pgen~"])
def test_a_text_table_is_not_taken_for_genotypes_by_its_name(tmp_path, name):
    rows = "".join(f"p{i},{i % 3},{i % 2}\n" for i in range(24))
    (tmp_path / name).write_text(f"IID,g,y\n{rows}")
    srs_ooc.ingest(tmp_path / name, tmp_path / "t.zarr", row_ids="IID")
    assert not is_plink(Store.open(tmp_path / "t.zarr").manifest.source)


def test_what_is_made_of_genotypes_is_known_to_be(tmp_path):
    source = {"format": "bed, dosages of A1", "name": "STUDY.BED"}
    assert is_plink(source)
    assert is_plink({"format": "store", "plink": True})
    assert not is_plink({"format": "csv", "name": "t.csv"})
