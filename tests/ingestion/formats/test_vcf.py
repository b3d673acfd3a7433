"""VCF and BCF are read as PLINK 2 exports them: what it wrote for these files stands here."""

import bz2
import gzip
import lzma
import math
import shutil

import numpy as np
import pytest
from command import check_least_cap, error_of, srs_ooc
from refusals import refused
from tables import opened, write_columns

from srs_ooc.base.errors import InputError
from srs_ooc.ingestion.formats.files import format_of
from srs_ooc.store.opening import open_store
from srs_ooc.testing import check_table

cyvcf2 = pytest.importorskip("cyvcf2")
SAMPLES = [f"s{i}" for i in range(1, 7)]
HEAD = "##fileformat=VCFv4.3\n" + "".join(f"##contig=<ID={one}>\n" for one in ("1", "X", "Y", "MT"))
for one, number, kind in (("GT", 1, "String"), ("DS", "A", "Float"), ("DP", 1, "Integer")):
    HEAD += f'##FORMAT=<ID={one},Number={number},Type={kind},Description="">\n'
NA = math.nan
# position and names, cells, and the dosages that `plink2 --vcf FILE --vcf-half-call missing
# --export A` (2.00a3.5) writes
CALLS = """
1 100 rs1 A G GT 0/0 0/1 1/1 ./. 0|1 1|0 = 2 1 0 NA 1 1
1 110 rs2 A G GT 0/. ./1 1/. . 0/0 ./0 = NA NA NA NA 2 NA
1 120 . A G GT:DP 0/1:3 0/1:. 1/1 0/0:4 ./.:. 1/0 = 1 1 0 2 NA 1
1 130 rs1 A C,T GT 0/1 0/2 1/2 2/2 ./2 0/0 = 1 1 0 0 NA 2
1 140 m2 A C,T,G GT 3/3 1/3 0/3 0/0 ./. 2/1 = 0 0 1 2 NA 0
1 150 noalt A . GT 0/0 0/0 ./. 0/0 0/0 0/0 = 2 2 NA 2 2 2
1 160 star A G,* GT 0/0 0/2 1/2 2/2 1/1 0/0 = 2 1 0 0 0 2
1 170 other A G DP 1 2 3 4 5 6 = NA NA NA NA NA NA
1 180 three A G GT 0/0/1 0/1 . 0/1 0/0 1/1 = NA 1 NA 1 2 0
X 100000000 x1 A G GT 0 1 0/1 . 1/1 0/0 = 2 0 1 NA 0 2
Y 10000000 y1 A G GT 0 1 . 0/1 1/1 ./. = 2 0 NA 1 0 NA
MT 100 mt1 A G GT 0 1 . 0/1 1/1 ./. = 2 0 NA 1 0 NA
"""
NAMES = ["1:100:A:G", "rs2", "1:120:A:G", "1:130:A:C,T", "m2", "noalt", "star", "other", "three"]
NAMES += ["x1", "y1", "mt1"]
# of `plink2 --vcf FILE dosage=DS`, which writes four digits
DOSES = """
1 100 rs1 A G GT:DS 0/0:0.1 0/1:0.9 1/1:1.87654 ./.:. 0/1:. ./.:0.3 = 1.9 1.1 0.1235 NA 1 1.7
1 101 rs2 A G DS 0.123456 1 2 0 . 0.5 = 1.8765 1 0 2 NA 1.5
1 102 rs3 A G GT 0/0 0/1 1/1 ./. 0/. 1/0 = 2 1 0 NA NA 1
1 103 h A G GT:DS 0/.:0.1 0/.:. 1:0.7 1:. ./.:. 0/0/1:0.3 = 1.9 NA 0.6 0 NA 1.7
1 104 one A G GT:DS .:0.3 .:0.1 0/0:0.2 0/1:. 0:0.3 .:. = 1.4 1.8 1.8 1 1.4 NA
X 100000000 x1 A G GT:DS 0:0.2 1:0.8 0/1:1.2 .:. .:0.1 1/1:2 = 1.6 0.4 0.8 NA 1.8 0
MT 100 mt1 A G GT:DS 0:0.2 1:0.8 0/1:1.2 .:. .:0.1 0:. = 1.6 0.4 0.8 NA 1.8 2
"""


def written(folder, records, name="t.vcf", samples=SAMPLES, head=HEAD):
    lines = [line.partition(" = ")[0].split() for line in records.strip().splitlines()]
    cells = [[*line[:5], ".", ".", ".", *line[5:]] for line in lines]
    names = ["CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT"]
    rows = ["\t".join(row) + "\n" for row in [["#" + names[0], *names[1:], *samples], *cells]]
    (folder / name).write_text(head + "".join(rows))
    return folder / name


def expected(records):
    lines = [line.partition(" = ")[2].split() for line in records.strip().splitlines()]
    return [[NA if cell == "NA" else float(cell) for cell in line] for line in lines]


def people(folder, ill):
    """Write who is ill; return what joins it."""
    path = write_columns(folder / "people.csv", {"who": [*ill], "ill": [*ill.values()]})
    return ["--samples", path, "--id", "who", "--target", "ill", "--memory-mb", "110"]


def rewritten(path, name, mode):
    records = cyvcf2.VCF(str(path))
    writer = cyvcf2.Writer(str(path.parent / name), records, mode)
    for one in records:
        writer.write_record(one)
    writer.close()
    return path.parent / name


def read(path):
    table = opened(path)
    return table.read(np.arange(table.shape[1]), None)


@pytest.mark.parametrize("kind", ["text", "gzip", "bgzip", "bcf"])
def test_genotypes_are_what_plink_2_exports(tmp_path, kind):
    path = written(tmp_path, CALLS)
    if kind == "gzip":
        (tmp_path / "t.gz").write_bytes(gzip.compress(path.read_bytes()))
        path = tmp_path / "t.gz"
    elif kind != "text":
        path = rewritten(path, *{"bgzip": ("u.vcf.gz", "wz"), "bcf": ("u.bcf", "wb")}[kind])
    assert format_of(path).name == "VCF"
    table = opened(path)
    assert table.format == "vcf, dosages of REF by GT"
    check_table(table, expected(CALLS), NAMES, {"id": SAMPLES})


def test_dosages_are_what_plink_2_exports_in_its_steps(tmp_path):
    path = written(tmp_path, DOSES)
    found = read(f"{path}::DS")
    np.testing.assert_allclose(found, expected(DOSES), rtol=0, atol=5e-5 + 2**-15)
    np.testing.assert_array_equal(found * 2**14 % 1, np.where(np.isnan(found), NA, 0))
    assert read(path)[0].tolist()[:3] == [2, 1, 0]


def test_a_target_of_samples_by_the_command_line(tmp_path):
    path = written(tmp_path, CALLS)
    given = people(tmp_path, {f"s{i}": i % 2 for i in range(6, 0, -1)})
    said = srs_ooc("ingest", path, tmp_path / "t.zarr", *given).stdout
    assert "6 rows x 12 features" in said
    store = open_store(tmp_path / "t.zarr")
    assert (list(store.row_ids), list(store.names)) == (SAMPLES, NAMES)
    assert store.manifest.source["format"] == "vcf, dosages of REF by GT"
    said = srs_ooc("ingest", path, tmp_path / "u.zarr", *given, "--dry-run").stdout
    assert "columns: 12\nrows: 6\n" in said
    people(tmp_path, {f"s{i}": "-9" if i == 2 else i % 2 + 1 for i in range(1, 7)})
    said = srs_ooc("ingest", path, tmp_path / "v.zarr", *given).stdout  # as PLINK 2 has it
    assert "5 rows x 12 features" in said
    assert "2 classes" in said


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ("1 9 a A G GT 0/0 0/2 0/0 0/0 0/0 0/0", "t.vcf, 1:9: expected alleles 0 to 1, found 2"),
        ("1 9 a A G GT 0/0 0/0 0/0 0/0 0/0", "line 10: expected the genotypes of the 6 samples"),
        ("1 9 a A G GT 0 0 0 0 0 0 0", "line 10: expected the genotypes of the 6 .* found 7"),
        ("1 9 a A G DP 0 0 0 0 0 0", "expected GT, found none. Of dosages alone, name FILE::DS"),
        ("1 8 a A G GT 0 0 0 0 0 0\n1 x b A G GT 0 0 0 0 0 0", "after 1:8: expected a variant, fo"),
        ("1 8 a A G GT x 0 0 0 0 0", "after the header: expected a variant, found damage"),
        ("", "expected variants of samples, found 0 of 6"),
    ],
)
def test_what_is_wrong_is_told(tmp_path, capfd, records, message):
    refused(InputError, message, read, written(tmp_path, records))
    assert capfd.readouterr().err == ""


RANGE = "1:9: expected DS from 0 to 2, or to 1 where GT .* found"


@pytest.mark.parametrize(
    ("alt", "cell", "message"),
    [
        ("G", "0/0:2.01", f"{RANGE} 2.01"),
        ("G", "0:1.5", f"{RANGE} 1.5"),
        ("G", "0/0:-1", f"{RANGE} -1"),
        ("G", "0/0:1,1", "1:9: expected as DS a number of one ALT"),
        ("G,T", "0/0:1,1", "1:9: expected as DS a number of one ALT"),
    ],
)
def test_dosages_that_mean_nothing_are_refused(tmp_path, alt, cell, message):
    path = written(tmp_path, f"1 9 a A {alt} GT:DS 0/0:1 0/1:. {cell} . . .")
    refused(InputError, message, read, f"{path}::DS")


@pytest.mark.parametrize(
    ("name", "message"),
    [("DS", "expected as DS a number"), ("GP", "expected GT or DS after ::, found another")],
)
def test_dosages_that_are_no_numbers_are_refused(tmp_path, name, message):
    path = written(tmp_path, DOSES, head=HEAD.replace("Type=Float", "Type=String"))
    refused(InputError, message, read, f"{path}::{name}")


@pytest.mark.parametrize("name", ["u.vcf.gz", "u.bcf"])
def test_a_file_that_is_cut_is_refused(tmp_path, name):
    path = rewritten(written(tmp_path, CALLS), name, "wz" if name.endswith("gz") else "wb")
    data = path.read_bytes()
    for size in (len(data) - 1, len(data) - 28, len(data) // 2):
        path.write_bytes(data[:size])
        refused(InputError, "expected the block that ends a file of bgzip", read, path)
    path.write_bytes(data[:300] + b"\0" * 9 + data[309:])
    refused(InputError, "Get the file again", read, path)


def test_a_file_packed_otherwise_is_refused_with_what_unpacks_it(tmp_path):
    path = written(tmp_path, CALLS)
    for name, pack, how in (("t.vcf.xz", lzma.compress, "xz"), ("t.bz2", bz2.compress, "bzip2")):
        (tmp_path / name).write_bytes(pack(path.read_bytes()))
        expected = rf"{name}: expected VCF, found {how}. Unpack it: `{how} -dc FILE > NEW`"
        refused(InputError, expected, opened, tmp_path / name)


def test_chromosomes_are_pieces_of_one_table(tmp_path):
    lines = CALLS.strip().splitlines()
    whole, one, other = (
        written(tmp_path, "\n".join(some), name)
        for name, some in (("w.vcf", lines), ("a.vcf", lines[:9]), ("b.vcf", lines[9:]))
    )
    given = people(tmp_path, {f"s{i}": "" if i == 3 else i % 2 for i in range(1, 8)})
    for made, tables in (("w.zarr", [whole]), ("p.zarr", [one, other])):
        assert "5 rows x 12 features" in srs_ooc("ingest", *tables, tmp_path / made, *given).stdout
    first, second = (open_store(tmp_path / name).manifest for name in ("w.zarr", "p.zarr"))
    assert first.checksums == second.checksums
    for samples in (SAMPLES[::-1], [*SAMPLES[:5], "s7"]):
        other = written(tmp_path, "\n".join(lines[9:]), "b.vcf", samples)
        said = error_of("ingest", one, other, tmp_path / "q.zarr", *given)
        assert f"{other}: expected the row ids of {one}, found others. All pieces have the" in said
        shutil.rmtree(tmp_path / "q.zarr.pieces")
    said = error_of("ingest", one, other, tmp_path / "q.zarr", *given, "--sample-features", "x")
    assert "--sample-features" in said


def test_files_without_samples_or_a_header_are_refused(tmp_path, capfd):
    path = written(tmp_path, CALLS)
    lines = path.read_text().splitlines()
    path.write_text("".join("\t".join(line.split("\t")[:8]) + "\n" for line in lines))
    refused(InputError, "expected variants of samples, found 12 of 0", read, path)
    path.write_text("##fileformat=VCFv4.3\n")
    refused(InputError, "found a header that is none", read, path)
    assert capfd.readouterr().err == ""


def test_a_file_that_changes_is_told(tmp_path):
    path = written(tmp_path, CALLS)
    table = opened(path)
    path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\n")
    refused(InputError, "expected 12 variants, found 11", table.read, np.array([0]), None)


@pytest.mark.slow
@pytest.mark.parametrize(("n_samples", "n_variants"), [(60_000, 10), (10, 60_000)])
def test_the_smallest_cap_is_kept(tmp_path, n_samples, n_variants):
    rng = np.random.default_rng(1)
    cells = np.array(["0/0:0,9,90:0.01", "0/1:9,0,9:1.02", "1/1:90,9,0:2", "./.:.:."])
    head = HEAD + '##FORMAT=<ID=PL,Number=G,Type=Integer,Description="">\n'
    lines = (
        f"1 {j} . A G GT:PL:DS {' '.join(rng.choice(cells, n_samples).tolist())}"
        for j in range(n_variants)
    )
    names = [f"sample{i}" for i in range(n_samples)]
    path = written(tmp_path, "\n".join(lines), samples=names, head=head)
    for file in (path, f"{path}::DS"):
        given = ["ingest", file, tmp_path / "t.zarr", "--no-target", "--overwrite"]
        check_least_cap(*given, too_small=30)


def test_samples_as_plink_writes_them_are_found_by_family_and_person(tmp_path):
    """Of `plink2 --export vcf`, whose samples are FID_IID."""
    path = written(tmp_path, CALLS, samples=[f"F{i}_s{i}" for i in range(1, 7)])
    people = "".join(f"F{i} s{i} {i % 2 + 1} {i}\n" for i in range(1, 7))
    (tmp_path / "people.txt").write_text(f"FID IID ill age\n{people}")
    options = ["--samples", tmp_path / "people.txt", "--id", "IID", "--target", "age"]
    srs_ooc("ingest", path, tmp_path / "t.zarr", *options, "--task", "regression")
    store = open_store(tmp_path / "t.zarr")
    assert store.target().tolist() == [1, 2, 3, 4, 5, 6]
