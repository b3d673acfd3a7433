"""The smallest cap that an ingest names works, peaks stay under it, one MB less is refused.

The whole grid takes minutes: ``pytest tests/ingestion/test_ingest_memory.py -m campaign``.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command import check_least_cap, error_of, least_cap
from command import srs_ooc as run_command
from examples import given, st
from tables import write_columns, write_lines

import srs_ooc
from srs_ooc.base.budget import growth_counted, total_nbytes
from srs_ooc.base.errors import BudgetError
from srs_ooc.base.text import MB
from srs_ooc.ingestion import ingest_memory
from srs_ooc.ingestion.ingest_memory import (
    PIECE_NBYTES,
    SLACK_NBYTES,
    IngestMemory,
    StoreForm,
    batch_nbytes,
    fit_batch,
    smallest_batch,
)
from srs_ooc.ingestion.ingest_options import IngestOptions
from srs_ooc.ingestion.stages import forecast, ingest_table
from srs_ooc.store.manifest import Shape

SHAPES = {
    "small": (60, 40),
    "wide": (12, 120_000),
    "tall": (400_000, 4),
    "long": (60_000, 12),
    "broad": (12, 20_000),
}
KINDS = ["csv", "csv.gz", "csv.xz", "npy", "fortran.npy", "npz", "sparse.npz", "parquet"]
KINDS += ["feather", "svmlight", "features.csv"]
QUICK = {("small", k) for k in ("csv", "npy", "sparse.npz", "parquet", "svmlight", "features.csv")}
MEASURED = {("small", "features.csv"), ("broad", "parquet"), ("long", "parquet")}
EVERY = [(shape, kind) for shape in SHAPES for kind in KINDS]


def pairs(quick):
    return pytest.mark.parametrize(
        ("shape", "kind"),
        [pytest.param(*p, marks=[] if p in quick else [pytest.mark.campaign]) for p in EVERY],
    )


def compressed(path, text, kind):
    import gzip
    import lzma

    opened = {"csv": open, "csv.gz": gzip.open, "csv.xz": lzma.open}[kind](path, "wb")
    with opened as file:
        file.write(text.encode())


def as_csv(path, values, labels, kind):
    head = [*(f"f{i}" for i in range(values.shape[1])), "y"]
    rows = ([*row, label] for row, label in zip(values.tolist(), labels, strict=True))
    compressed(path, "".join(",".join(map(str, row)) + "\n" for row in [head, *rows]), kind)


def as_features(path, columns, labels, *more):
    """Write columns as rows, and a table of samples beside them."""
    ids = [f"s{i}" for i in range(len(labels))]
    write_lines(path, [["id", *ids], *([f"f{i}", *cells] for i, cells in enumerate(columns))])
    write_columns(path.parent / "samples.csv", {"id": ids, "y": labels, **dict(more)})
    samples = ("--samples", path.parent / "samples.csv", "--id", "id", "--target", "y")
    return path, ("--orient", "features", *samples)


def as_svmlight(path, values, labels):
    with path.open("w") as file:
        for row, label in zip(values, labels, strict=True):
            cells = " ".join(f"{i + 1}:{value:g}" for i, value in enumerate(row) if value)
            file.write(f"{int(label == 'u')} {cells}\n")


def as_frame(path, values, kind):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    columns = values if isinstance(values, dict) else None
    columns = columns or {f"f{i}": column for i, column in enumerate(values.T)}
    table = arrow.table(columns)
    if kind == "feather":
        feather.write_feather(table, path)
    else:
        parquet.write_table(table, path)


def write(folder, shape, kind):
    """Write a table; return its path and the options of the command line."""
    n_rows, n_features = SHAPES[shape]
    values = np.random.default_rng(0).integers(0, 99, (n_rows, n_features)).astype(np.float64) / 8
    labels = ["uv"[i % 2] for i in range(n_rows)]
    path, target = folder / f"t.{kind}", folder / "y.txt"
    if kind.startswith("csv"):
        as_csv(path, values, labels, kind)
        return path, ()
    if kind == "features.csv":
        return as_features(path, values.T.tolist(), labels)
    if kind == "svmlight":
        as_svmlight(path, values, labels)
        return path, ()
    target.write_text("\n".join(labels) + "\n")
    if kind in ("npy", "fortran.npy"):
        np.save(path, np.asfortranarray(values) if kind == "fortran.npy" else values)
    elif kind == "npz":
        np.savez(path, values)
    elif kind == "sparse.npz":
        sparse = pytest.importorskip("scipy.sparse")
        sparse.save_npz(path, sparse.csr_matrix(values * (values > 0.6)))
    else:
        as_frame(path, values, kind)
    return path, ("--target-file", target)


def asked(folder, options, cap):
    """The same options in Python."""
    given = dict(zip(options[::2], options[1::2], strict=True))
    beside = {}
    if "--target-file" in given:
        beside = {"target": [("target", given["--target-file"])]}
    samples = {"samples": (given["--samples"],), "id_name": "id"} if "--samples" in given else {}
    return IngestOptions(memory_mb=cap, target=given.get("--target"), beside=beside, **samples)


def named_by(call):
    with pytest.raises(BudgetError) as refusal, growth_counted():
        call()
    return int(re.search(r"--memory-mb (\d+)\.$", str(refusal.value))[1])


def foretold(foretell, cap):
    """The cap that a dry run names, as an error where the table is loaded to be looked at."""
    try:
        said = foretell(cap)
    except BudgetError as error:
        return int(str(error).rsplit("--memory-mb ", 1)[1].rstrip("."))
    assert said.endswith(f"; {cap} is NOT enough")
    return int(re.search(r"--memory-mb (\d+) or more", said)[1])


@pairs(QUICK)
def test_one_number_is_named_and_it_works(tmp_path, shape, kind):
    path, options = write(tmp_path, shape, kind)
    store = tmp_path / "t.zarr"

    def ingest(cap):
        return ingest_table(path, store, asked(tmp_path, options, cap))

    def foretell(cap):
        with growth_counted():
            return list(forecast(path, store, asked(tmp_path, options, cap)))[-1]

    least = named_by(lambda: ingest(1))
    assert named_by(lambda: ingest(least - 1)) == least
    assert foretold(foretell, least - 1) == least
    assert foretell(least).endswith(f"; {least} is enough")
    with growth_counted():
        made = ingest(least)
    assert (made.n_rows, made.n_features) == SHAPES[shape]


@pytest.mark.slow
@pairs(MEASURED)
def test_the_peak_stays_under_the_cap_that_is_named(tmp_path, shape, kind):
    path, options = write(tmp_path, shape, kind)
    arguments = ("ingest", path, tmp_path / "t.zarr", *options)
    least = check_least_cap(*arguments)
    assert least_cap(*arguments, "--overwrite", too_small=least - 1) == least
    shutil.rmtree(tmp_path / "t.zarr")
    foretold = run_command(*arguments, "--memory-mb", least, "--dry-run").stdout
    assert f"--memory-mb {least} or more; {least} is enough" in foretold


@pytest.mark.slow
@pytest.mark.parametrize("how", ["mean", "median"])
def test_covariates_and_groups_that_become_rows_are_counted(tmp_path, how):
    n_rows, n_groups = 300_000, 40_000
    group = np.arange(n_rows) % n_groups
    values = np.random.default_rng(0).integers(0, 99, (n_rows, 3)) / 8
    with (tmp_path / "t.csv").open("w") as file:
        file.write("a,b,c,who,sex,age,y\n")
        for row, who in zip(values.tolist(), group.tolist(), strict=True):
            cells = ",".join(map(str, row))
            file.write(f"{cells},p{who},{'mf'[who % 2]},{row[0] * 3},{'uv'[who // 2 % 2]}\n")
    options = ("--groups", "who", "--covariates", "sex,age", "--target", "y", "--aggregate", how)
    check_least_cap("ingest", tmp_path / "t.csv", tmp_path / "t.zarr", *options)


# Texts of categories count, too: the cap that is named works, or the refusal names one that does.

# rows, columns, different texts of each, letters, and rows before the first text
TEXTS = {"few": (200, 3, 5, 8, 0), "many": (1500, 120, 240, 8, 0), "long": (300, 10, 30, 2000, 0)}
TEXTS |= {"ids": (6000, 2, 3000, 12, 0), "late": (2000, 300, 200, 20, 1500)}
TEXTS |= {"unknown": (2000, 300, 200, 20, 1500), "longest": (1000, 100, 200, 500, 700)}


def write_texts(folder, shape, kind):
    """Write a table of texts, of ``unknown`` and ``late`` ones beyond what is looked at first."""
    n_rows, n_columns, n_texts, width, first = TEXTS[shape]
    drawn = np.random.default_rng(0).integers(0, n_texts, (n_rows, n_columns))
    if shape == "ids":
        drawn = np.arange(n_rows)[:, None] // 2 + np.zeros((1, n_columns), np.int64)
    early = "" if shape == "unknown" else "z" * (width if shape == "late" else 1)
    lines = [
        [early if i < first else f"c{j}v{text:0{width}d}" for j, text in enumerate(row)]
        for i, row in enumerate(drawn.tolist())
    ]
    path, uint16 = folder / f"t.{kind}", ("--code-dtype", "uint16")
    labels = ["uv"[i % 2] for i in range(n_rows)]
    if kind == "features.csv":
        towns = "town", [f"t{i // 2}" for i in range(n_rows)]
        _, beside = as_features(path, zip(*lines, strict=True), labels, towns)
        return path, (*uint16, *beside, "--sample-features", "town")
    if kind in ("parquet", "feather"):
        columns = {f"f{j}": column for j, column in enumerate(zip(*lines, strict=True))}
        as_frame(path, columns, kind)
        (folder / "y.txt").write_text("\n".join(labels) + "\n")
        return path, (*uint16, "--target-file", folder / "y.txt")
    mark = "\t" if kind == "tsv" else ","
    head = [*(f"f{j}" for j in range(n_columns)), "y"]
    rows = [head, *([*cells, label] for cells, label in zip(lines, labels, strict=True))]
    text = "".join(mark.join(row) + "\n" for row in rows)
    compressed(path, text, kind if kind.startswith("csv.") else "csv")
    return path, uint16


TIME = Path("/usr/bin/time")
needs_time = pytest.mark.skipif(not TIME.exists(), reason="no /usr/bin/time to measure with")
TEXT_KINDS = ("csv", "csv.gz", "tsv", "features.csv", "parquet", "feather")
QUICK_TEXTS = {("few", "csv"), ("many", "csv"), ("late", "csv"), ("late", "features.csv")}
QUICK_TEXTS |= {("few", "parquet")}


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        pytest.param(s, k, marks=[] if (s, k) in QUICK_TEXTS else [pytest.mark.campaign])
        for s in TEXTS
        for k in TEXT_KINDS
    ],
)
@needs_time
def test_the_cap_that_is_named_holds_the_texts_of_categories(tmp_path, shape, kind):
    path, options = write_texts(tmp_path, shape, kind)
    arguments = ("ingest", path, tmp_path / "t.zarr", *options)
    least, foretold, error = works_at_the_cap_named(path, tmp_path / "t.zarr", *options)
    if foretold == least:
        dry_run = run_command(*arguments, "--memory-mb", least, "--dry-run")
        assert f"; {least} is enough" in dry_run.stdout
    else:  # texts were found that are not looked at before
        assert error_of(*arguments, "--memory-mb", foretold, "--dry-run") in error
        assert shape in ("late", "unknown", "longest") or kind in TEXT_KINDS[3:]


@pytest.mark.parametrize(
    "kind",
    ["npy", *(pytest.param(k, marks=pytest.mark.campaign) for k in ("fortran.npy", "parquet"))],
)
@needs_time
def test_numbers_that_are_categories_beyond_the_cap_name_the_one_that_holds_them(tmp_path, kind):
    numbers = np.random.default_rng(0).integers(0, 2**50, (15_000, 8)).astype(np.float64)
    path, values = tmp_path / f"t.{kind}", np.repeat(numbers, 2, axis=0)
    if kind == "parquet":
        as_frame(path, values, kind)
    else:
        np.save(path, np.asfortranarray(values) if kind == "fortran.npy" else values)
    (tmp_path / "y.txt").write_text("u\nv\n" * len(numbers))
    options = ["--code-dtype", "uint16", "--target-file", tmp_path / "y.txt"]
    options += [text for i in range(8) for text in ("--kind", f"f{i}=categorical")]
    least, foretold, _ = works_at_the_cap_named(path, tmp_path / "t.zarr", *options)
    assert foretold < least


def works_at_the_cap_named(path, store, *options):
    """Ingest with the cap that is named first, or then; return it, the first one, and what failed.

    The second one holds texts that are found beyond what is looked at first.
    """
    foretold = least = least_cap("ingest", path, store, *options)
    status, peak, error = measured(path, store, least, *options)
    refusal = error
    if status:
        assert (status, peak < least * MB) == (2, True)
        assert "expected categories whose texts fit" in error
        named = re.search(r"The smallest cap that works is --memory-mb (\d+)\.$", error, re.M)
        least = int(named[1])
        status, peak, error = measured(path, store, least, *options)
    assert (status, peak < least * MB) == (0, True), error
    return least, foretold, refusal


@pytest.mark.parametrize(
    "shape", ["few", *(pytest.param(s, marks=pytest.mark.campaign) for s in ("long", "ids"))]
)
def test_the_cap_that_a_piece_names_holds_all_of_them_put_together(tmp_path, shape):
    first, options = write_texts(tmp_path, shape, "csv")
    second = tmp_path / "more.csv"
    lines = (line.rsplit(",", 1)[0] for line in first.read_text().splitlines())
    second.write_text("".join(f"{line}\n" for line in lines).replace("f", "g"))
    store = tmp_path / "t.zarr"
    arguments = ("ingest", first, second, store, *options, "--target", "y")
    least = least_cap(*arguments)
    assert least_cap(*arguments, too_small=least - 1) == least
    assert check_least_cap(*arguments) == least


# Peak resident memory stays under the cap, measured from outside; too small a cap is refused.


def write_table(path: Path, n_rows: int, n_features: int, *, digits: int = 6) -> None:
    pool = [f"{v:.{digits}f}" for v in np.random.default_rng(0).normal(size=30_011)]
    pool = (pool * (n_features // len(pool) + 2))[: n_features + 30_011]
    with path.open("w") as file:
        file.write(",".join(f"feature_{j}" for j in range(n_features)) + ",y\n")
        for i in range(n_rows):
            start = i * 7919 % 30_011
            file.write(",".join(pool[start : start + n_features]) + f",{'ab'[i % 2]}\n")


def plan(cap, n_columns, n_rows, form=None, *, drops_rows=False) -> IngestMemory:
    return IngestMemory(cap * MB, n_columns, n_rows, form or StoreForm(), drops_rows)


def measured(source: Path, store: Path, cap: int, *options: str | Path) -> tuple[int, int, str]:
    """Return exit status, peak resident bytes and stderr."""
    command = [TIME, "-f", "peak %M", sys.executable, "-m", "srs_ooc", "ingest", source, store]
    done = subprocess.run(
        [*map(str, (*command, *options, "--memory-mb", cap))],
        capture_output=True,
        text=True,
        check=False,
    )
    peak = re.search(r"peak (\d+)", done.stderr)
    assert peak
    return done.returncode, int(peak[1]) * 1024, done.stderr


@pytest.mark.parametrize(
    ("n_rows", "n_features", "cap"),
    [(200, 1_000_000, 96), (1_000_000, 200, 98), (20_000, 20_000, 96), (5_000_000, 200, 192)],
)
def test_caps_that_the_shapes_are_promised(n_rows, n_features, cap):
    with growth_counted():  # which is not of this process
        assert plan(cap, n_features + 1, n_rows).least_mb <= cap


@pytest.mark.slow
@needs_time
@pytest.mark.parametrize(("n_rows", "n_features"), [(900, 20_000), (20, 200_000), (300_000, 13)])
def test_peak_stays_under_the_smallest_cap_and_under_128(tmp_path, n_rows, n_features):
    source = tmp_path / "t.csv"
    write_table(source, n_rows, n_features, digits=5 if n_rows < 9999 else 2)
    status, peak, error = measured(source, tmp_path / "least.zarr", 30)
    assert (status, peak <= 100 * MB) == (2, True)
    assert not (tmp_path / "least.zarr").exists()
    least = int(re.search(r"--memory-mb (\d+)\.$", error, re.MULTILINE)[1])
    for cap in (least, 128):
        status, peak, error = measured(source, tmp_path / f"{cap}.zarr", cap)
        assert status == 0, error
        assert peak <= cap * MB


def shared(monkeypatch, cap, shape, form):
    """What is shared out where the process holds 50 MB."""
    monkeypatch.setattr(ingest_memory, "resident_nbytes", lambda: 50 * MB)
    monkeypatch.setattr(ingest_memory, "own_nbytes", lambda: 50 * MB)
    return plan(cap, shape.n_features, shape.n_rows, form).shared(shape)


def test_what_is_shared_out_stays_within_what_the_cap_leaves(monkeypatch):
    form = StoreForm("uint16", "float64")
    for shape in (Shape(1000, 20_000), Shape(50, 1_000_000), Shape(300_000, 30), Shape(1, 1)):
        for cap in (130, 200, 512, 4000):
            memory = shared(monkeypatch, cap, shape, form)
            spare = cap * MB - 50 * MB - SLACK_NBYTES
            assert 1 <= memory.panel_rows <= shape.n_rows
            assert memory.panel_rows * shape.n_features * 8 <= spare
            batch, n_threads = memory.writing(shape, form, 0, shape.n_rows, 2)
            assert batch_nbytes(shape, form, batch, n_threads) <= spare
            assert batch % smallest_batch(shape, form) == 0
            # of a third of the rows more features make a chunk
            kept, apart = Shape(max(1, shape.n_rows // 3), shape.n_features), 0
            if kept.n_rows < shape.n_rows:
                apart = max(PIECE_NBYTES, 8 * shape.n_rows)
            batch, n_threads = memory.writing(kept, form, 0, shape.n_rows, 2)
            assert batch % smallest_batch(kept, form) == 0
            assert batch_nbytes(kept, form, batch, n_threads, apart=apart) <= spare


def test_batches_are_whole_chunks_of_what_is_written():
    shape = Shape(777, 50_000)
    for form in (StoreForm(), StoreForm(values_dtype="float32"), StoreForm(values_dtype=None)):
        batch, _ = fit_batch(shape, form, 90 * MB)
        assert batch % smallest_batch(shape, form) == 0


def test_the_refusal_names_both_numbers_and_the_stage():
    with pytest.raises(BudgetError) as refusal:
        plan(96, 10**6 + 1, 5_000_000, drops_rows=True).check("t.csv")
    text = str(refusal.value)
    assert "--memory-mb 96 cannot hold the ingest of t.csv" in text
    assert "coding a batch of features" in text
    least = int(re.search(r"--memory-mb (\d+)\.$", text)[1])
    plan(least, 10**6 + 1, 5_000_000, drops_rows=True).check("t.csv")


@given(st.integers(1, 10**7), st.integers(1, 10**7), st.integers(1, 10**7), st.booleans())
def test_more_rows_or_columns_never_take_less(n_columns, n_rows, more, keeps):
    form = StoreForm(values_dtype="float64" if keeps else None)

    def needed(n_columns, n_rows, drops_rows=True):
        return total_nbytes(plan(1, n_columns, n_rows, form, drops_rows=drops_rows).leases())

    assert needed(n_columns, n_rows) <= needed(n_columns + more, n_rows)
    assert needed(n_columns, n_rows) <= needed(n_columns, n_rows + more)
    assert needed(n_columns, n_rows, drops_rows=False) <= needed(n_columns, n_rows)


def test_a_call_from_python_counts_growth_only(tmp_path):
    held = np.ones(20_000_000)  # 160 MB, more than the cap
    table = np.random.default_rng(0).normal(size=(60, 500))
    made = srs_ooc.ingest(table, tmp_path / "t.zarr", target=[0, 1] * 30, memory_mb=100)
    assert made.n_features == 500
    assert held.all()
