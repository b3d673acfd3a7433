"""The smallest cap that an ingest names works, one MB less is refused with the same number.

The whole grid takes minutes: ``pytest tests/ingestion/test_smallest_cap.py -m slow``.
"""

import re
import shutil

import numpy as np
import pytest
from command import error_of, peak_kb, srs_ooc

from srs_ooc.base.budget import growth_counted
from srs_ooc.base.errors import BudgetError
from srs_ooc.base.text import MB
from srs_ooc.ingestion.ingest import forecast, ingest_table
from srs_ooc.ingestion.ingest_options import IngestOptions, SideColumns

SHAPES = {"small": (60, 40), "wide": (12, 120_000), "tall": (400_000, 4)}
KINDS = ["csv", "csv.gz", "csv.xz", "npy", "fortran.npy", "npz", "sparse.npz", "parquet"]
KINDS += ["feather", "svmlight", "features.csv"]
QUICK = {("small", k) for k in ("csv", "npy", "sparse.npz", "parquet", "svmlight", "features.csv")}
MEASURED = {("small", "features.csv"), ("small", "parquet")}
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
    lines = [",".join([*(f"f{i}" for i in range(values.shape[1])), "y"])]
    lines += [
        ",".join([*map(str, row.tolist()), label])
        for row, label in zip(values, labels, strict=True)
    ]
    compressed(path, "\n".join(lines) + "\n", kind)


def as_features(path, values, labels):
    ids = [f"s{i}" for i in range(len(values))]
    with path.open("w") as file:
        file.write("id," + ",".join(ids) + "\n")
        file.writelines(
            f"f{i}," + ",".join(map(str, column.tolist())) + "\n"
            for i, column in enumerate(values.T)
        )
    lines = [f"{i},{label}\n" for i, label in zip(ids, labels, strict=True)]
    (path.parent / "samples.csv").write_text("id,y\n" + "".join(lines))


def as_svmlight(path, values, labels):
    with path.open("w") as file:
        for row, label in zip(values, labels, strict=True):
            cells = " ".join(f"{i + 1}:{value:g}" for i, value in enumerate(row) if value)
            file.write(f"{int(label == 'u')} {cells}\n")


def as_frame(path, values, kind):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    columns = {f"f{i}": column for i, column in enumerate(values.T)}
    table = arrow.table(columns)
    if kind == "feather":
        feather.write_feather(table, path)
    else:
        parquet.write_table(table, path)


def write(folder, shape, kind):
    """Write a table; return its path and the options of the command line."""
    n_rows, n_features = SHAPES[shape]
    values = np.random.default_rng(0).integers(0, 9, (n_rows, n_features)).astype(np.float64) / 8
    labels = ["uv"[i % 2] for i in range(n_rows)]
    path, target = folder / f"t.{kind}", folder / "y.txt"
    if kind.startswith("csv"):
        as_csv(path, values, labels, kind)
        return path, ()
    if kind == "features.csv":
        as_features(path, values, labels)
        samples = ("--samples", folder / "samples.csv", "--id", "id", "--target", "y")
        return path, ("--orient", "features", *samples)
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
    side = SideColumns()
    if "--target-file" in given:
        side = SideColumns(columns={"target": [("target", given["--target-file"])]})
    samples = {"samples": given["--samples"], "id_name": "id"} if "--samples" in given else {}
    return IngestOptions(memory_mb=cap, target=given.get("--target"), **samples), side


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
        settled, side = asked(tmp_path, options, cap)
        return ingest_table(path, store, settled, side=side)

    def foretell(cap):
        settled, side = asked(tmp_path, options, cap)
        with growth_counted():
            return list(forecast(path, store, settled, side))[-1]

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
    arguments = ("ingest", path, tmp_path / "t.zarr", *options, "--memory-mb")
    named = r"--memory-mb (\d+)\.$"
    least = int(re.search(named, error_of(*arguments, 9))[1])
    assert int(re.search(named, error_of(*arguments, least - 1))[1]) == least
    assert peak_kb(*arguments, least) * 1024 / MB < least
    shutil.rmtree(tmp_path / "t.zarr")
    foretold = srs_ooc(*arguments, least, "--dry-run").stdout
    assert f"--memory-mb {least} or more; {least} is enough" in foretold
