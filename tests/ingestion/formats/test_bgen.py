"""BGEN is read as PLINK 2 reads it: a file that it wrote, and what it exported, stand here."""

import base64
import math

import numpy as np
import pytest
from command import check_least_cap, srs_ooc
from refusals import refused
from tables import opened, write_lines

from srs_ooc.base.errors import InputError
from srs_ooc.ingestion.formats.files import format_of
from srs_ooc.store.opening import open_store
from srs_ooc.testing import check_table

bgen = pytest.importorskip("bgen")
NA = math.nan
SAMPLES = [f"s{i}" for i in range(1, 7)]
TWO = [(one, one[1]) for one in SAMPLES]
# by `plink2 --vcf FILE dosage=DS --export bgen-1.2` (2.00a3.5): phased, unphased, 0 and 1 alleles
WRITTEN = base64.b64decode("""
NAAAABQAAAAHAAAABgAAAGJnZW4JAACAIAAAAAYAAAACAHMxAgBzMgIAczMCAHM0AgBzNQIAczYAAAMAcnMxAQAxZAAAAAIA
AQAAAEcBAAAAQScAAAAoAAAAeJwFwLENgDAAA8HDBTUjRyz+0YvZtv3b84HjVAFVXHEmCaIAAAEALgEAMXgAAAACAAEAAABH
AQAAAEEwAAAAKAAAAHicY2NgYGBiYGJiYmJiamJiEGBgSH/GYfP9cPqzGZIMDCIMEPD/PwBzOQgEAAACAHBoAQAxlgAAAAIA
AQAAAEcBAAAAQSYAAAAoAAAAeJw1xKEBACAQACG8YHZmF3+TBDZSVbd1gJmZP/AAfoYIogAAAwByczEBADGgAAAAAgABAAAA
RwEAAABBJgAAACgAAAB4nD3BoRHAMAADMd2D4s6cxR0W6UOq6uQHto3NcwFrfwajAAACAHgxAQBYAOH1BQIAAQAAAEcBAAAA
QSUAAAAiAAAAeJxFw7ENACAMAzAnAzMvc3kZa8kHlSZ9rcvMhg9TtwafAAACAHkxAQBZgJaYAAIAAQAAAEcBAAAAQScAAAAY
AAAAeJwBGADn/wYAAAACAAABAQGAAQGAABAAAP//AID//x2bBZoAAAMAbXQxAgBNVGQAAAACAAEAAABHAQAAAEErAAAAHAAA
AHicARwA4/8GAAAAAgABAQEBgQEBgQAQAAD//wAAAAD//wAALL4FHQ==
""")
SAMPLE = """ID_1 ID_2 missing sex
0 0 0 D
0 s1 0 1
0 s2 0 1
0 s3 0.166667 2
0 s4 0.285714 1
0 s5 0.5 2
0 s6 0.166667 2
"""
# what `plink2 --bgen FILE ref-last --sample FILE --export A` makes of it, with four digits
EXPORTED = [
    [2, 1, 0, NA, 1, 1],
    [1.1, 0.7655, 0.1, 1.9997, NA, 1],
    [2, 1, 1, 0, NA, 2],
    [2, 1, 0, 0, NA, 2],
    [2, 0, 1, NA, 0, 2],
    [2, 0, NA, 1, 0, NA],
    [2, 0, NA, 2, 0, NA],
]
NAMES = ["1:100:A:G", "1:120:A:G", "ph", "1:160:A:G", "x1", "y1", "mt1"]


def read(path):
    table = opened(path)
    return table.read(np.arange(table.shape[1]), None)


def written(folder, genotypes, alleles=("A", "G"), ids=("a", "b", "c"), **how):
    """Write a variant, or a list of them."""
    ids = {"samples": list(ids)} if ids else {}
    layout = how.pop("layout", 2)
    compression = how.pop("compression", "zlib")
    ids |= {"compression": compression, "layout": layout}
    with bgen.BgenWriter(str(folder / "t.bgen"), n_samples=3, **ids) as file:
        for i, one in enumerate(genotypes):
            place = {"varid": "", "rsid": f"rs{i}", "chrom": "1", "pos": i, "alleles": [*alleles]}
            file.add_variant(**place, genotypes=np.array(one, float), **how)
    return folder / "t.bgen"


def test_dosages_are_what_plink_2_exports(tmp_path):
    path = tmp_path / "t.bgen"
    path.write_bytes(WRITTEN)
    assert format_of(path).name == "BGEN"
    last = type(path)(f"{path}::ref-last")
    table = opened(last)
    assert table.format == "bgen, dosages of the last allele"
    found = read(last)
    np.testing.assert_allclose(found, EXPORTED, rtol=0, atol=5e-5 + 2**-15)
    check_table(table, found, NAMES, {"id": SAMPLES})
    table = opened(path)
    assert table.format == "bgen, dosages of the first allele"
    names = [name.replace("A:G", "G:A") for name in NAMES]
    check_table(table, 2 - found, names, {"id": SAMPLES})


@pytest.mark.parametrize(
    ("how", "step"),
    [
        ({"bit_depth": 16, "compression": "zstd"}, 2**-14),
        ({"bit_depth": 8, "compression": None}, 2 / 255),
        ({"layout": 1}, 2**-14),
    ],
)
def test_each_kind_of_bgen_is_read(tmp_path, how, step):
    cells = [[[1, 0, 0], [0.25, 0.5, 0.25], [NA] * 3], [[0, 0, 1], [0, 1, 0], [0.3, 0.6, 0.1]]]
    if how.get("layout") == 1:
        cells[0][2] = [0, 0, 0]
    ids = () if "layout" in how else ("a", "b", "c")
    path = written(tmp_path, cells, ids=ids, **how)
    if not ids:
        refused(InputError, r"expected ids of samples, or t.sample, found none", opened, path)
        (tmp_path / "t.sample").write_text("ID\n0\na\nb\nc\n")
    assert list(opened(path).annotations["id"]) == ["a", "b", "c"]
    np.testing.assert_allclose(read(path), [[2, 1, NA], [0, 1, 1.2]], rtol=0, atol=step)


PHASED = [[0.5, 0.5, 0, 0, 0, 1], [1, 0, 0, 0.25, 0, 0.75], [NA] * 6]


@pytest.mark.parametrize(
    ("cells", "how", "first", "last"),
    [  # of three alleles: 0/0 0/1 1/1 0/2 1/2 2/2
        ([[0.1, 0.2, 0.3, 0.4, 0, 0], [0, 0, 0, 0, 0.5, 0.5], [NA] * 6], {}, [0.8, 0], [0.4, 1.5]),
        (PHASED, {"phased": True}, [0.5, 1.25], [1, 0.75]),
    ],
)
def test_other_alleles_are_one(tmp_path, cells, how, first, last):
    path = written(tmp_path, [cells], "ACT", bit_depth=16, **how)
    for inner, expected in (("", first), ("::ref-last", last)):
        found = read(f"{path}{inner}")
        np.testing.assert_allclose(found, [[*expected, NA]], rtol=0, atol=2**-13)


def test_genotypes_of_three_alleles_are_missing(tmp_path):
    path = written(tmp_path, [[[1, 0, 0, 0], [0, 0, 1, 0], [NA] * 4]], bit_depth=8, ploidy=3)
    assert np.isnan(read(path)).all()


def test_a_sample_file_says_what_samples_are(tmp_path):
    path = tmp_path / "t.bgen"
    path.write_bytes(WRITTEN)
    (tmp_path / "t.sample").write_text(SAMPLE)
    table = opened(path)
    assert table.annotations["sex"] == ["male", "male", "female", "male", "female", "female"]
    assert (table.annotations["id"], table.default_target) == (SAMPLES, None)
    lines = SAMPLE.replace("missing sex", "missing sex ill age").replace("D\n", "D B C\n")
    more = (f"{one} {i % 2} 4{i}" for i, one in enumerate(SAMPLE.splitlines()[2:]))
    lines = [*lines.splitlines()[:2], *more]
    (tmp_path / "t.sample").write_text("\n".join([*lines[:-1], lines[-1].replace("1 45", "NA 45")]))
    assert opened(path).default_target == "ill"
    store = tmp_path / "t.zarr"
    given = ["--covariates", "age", "--memory-mb", "110"]
    said = srs_ooc("ingest", f"{path}::ref-last", store, *given).stdout
    assert "5 rows x 7 features" in said
    found = open_store(store)
    assert (found.manifest.classes, list(found.row_ids)) == (("case", "control"), SAMPLES[:5])
    (tmp_path / "t.sample").unlink()
    write_lines(tmp_path / "people.txt", [["FID", "IID", "y"], *(["0", *s] for s in TWO)], " ")
    given = ["--samples", tmp_path / "people.txt", "--id", "IID", "--target", "y"]
    said = srs_ooc("ingest", path, store, *given, "--task", "regression", "--overwrite").stdout
    assert "6 rows x 7 features" in said


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0 s6 0.166667 2\n", "", "and 6 samples, found 5, or other kinds"),
        ("0 s6 0.166667 2", "0 s6 2", "t.sample, line 8: expected 4 fields, found 3"),
        ("0 0 0 D\n", "", "kinds .0, D, B, C or P. and 6 samples, found 5"),
        ("s6", "s7", "the ids of t.sample, in its order, found others. Put the t.sample o"),
        ("0 s1 0 1\n0 s2 0 1\n", "0 s2 0 1\n0 s1 0 1\n", "expected the ids of t.sample, in its"),
        (SAMPLE, "", "and 6 samples, found 0"),
    ],
)
def test_a_sample_file_of_others_is_refused(tmp_path, old, new, message):
    path = tmp_path / "t.bgen"
    path.write_bytes(WRITTEN)
    (tmp_path / "t.sample").write_text(SAMPLE.replace(old, new))
    refused(InputError, message, opened, path)


def test_what_is_wrong_is_told(tmp_path):
    path = tmp_path / "t.bgen"
    path.write_bytes(WRITTEN)
    with pytest.raises(InputError, match="expected ref-first or ref-last after ::, found another"):
        opened(f"{path}::GT")
    for size in (30, 70, len(WRITTEN) // 2, len(WRITTEN) - 1):
        path.write_bytes(WRITTEN[:size])
        refused(InputError, r"a BGEN file, could not read it: .* Get the", read, path)
    path.write_bytes(WRITTEN[:8] + b"\6" + WRITTEN[9:])
    refused(InputError, "expected the 6 variants of its header, found 7", opened, path)
    path = written(tmp_path, [[[1, 0, 0]] * 3], compression=None, bit_depth=8)
    path.write_bytes(path.read_bytes()[:-6] + b"\xc8" * 6)
    refused(InputError, "1:0: expected probabilities that sum to 1, found others", read, path)


@pytest.mark.slow
@pytest.mark.parametrize(("n_samples", "n_variants"), [(60_000, 10), (10, 60_000)])
def test_the_smallest_cap_is_kept(tmp_path, n_samples, n_variants):
    cells = np.random.default_rng(1).dirichlet([1, 1, 1], (10, n_samples))
    ids = [f"sample{i}" for i in range(n_samples)]
    path = tmp_path / "t.bgen"
    with bgen.BgenWriter(str(path), n_samples=n_samples, samples=ids) as file:
        for j in range(n_variants):
            place = {"varid": "", "rsid": ".", "chrom": "1", "pos": j, "alleles": ["A", "G"]}
            file.add_variant(**place, genotypes=cells[j % 10], bit_depth=8)
    given = ["ingest", path, tmp_path / "t.zarr", "--no-target", "--overwrite"]
    check_least_cap(*given, too_small=30)
