"""Every format, ingested as a new user would, and what ``inspect`` says of each store.

Claim: one table of numbers gives the same codes from every format, and every table of
``SRS_OOC_DATA`` (``*.csv.gz``) becomes a store. Prints each command and the output of ``ingest``
and ``inspect``.

    SRS_OOC_DATA=FOLDER python benchmarks/every_format.py

Needs pandas, polars, PyArrow and SciPy, and ``backports.zstd`` before Python 3.14.
"""

import bz2
import gzip
import lzma
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from measured import find_srs_ooc

import srs_ooc
from srs_ooc.store.arrays import read_array
from srs_ooc.store.manifest import read_manifest

N_ROWS, N_FEATURES = 60, 12
NAMES = [f"f{j}" for j in range(1, N_FEATURES + 1)]


def make() -> tuple[np.ndarray, list[str]]:
    """Return a table of numbers of two decimals without zeros, and its labels."""
    rng = np.random.default_rng(0)
    values = np.round(rng.normal(size=(N_ROWS, N_FEATURES)), 2) + 10
    return values, [("case", "control")[i % 2] for i in range(N_ROWS)]


def csv_text(values: np.ndarray, labels: list[str], separator: str = ",") -> bytes:
    """Return the table as text, the target last."""
    lines = [separator.join([*NAMES, "y"])]
    lines += [
        separator.join([*map(repr, row), label])
        for row, label in zip(values.tolist(), labels, strict=True)
    ]
    return ("\n".join(lines) + "\n").encode()


def text_files(folder: Path, text: bytes, tabs: bytes) -> Iterator[tuple[Path, list[str]]]:
    """Write the text tables; yield each with its options."""
    from backports import zstd

    packed = {
        "plain.csv": text,
        "packed.csv.gz": gzip.compress(text),
        "packed.csv.xz": lzma.compress(text),
        "packed.csv.bz2": bz2.compress(text),
        "packed.csv.zst": zstd.compress(text),
        "tabs.tsv": tabs,
        "windows.csv": b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n"),
        "decimal_comma.csv": text.replace(b",", b";").replace(b".", b","),
    }
    for name, data in packed.items():
        (folder / name).write_bytes(data)
        yield folder / name, ["--decimal", "comma"] if name.startswith("decimal") else []


def feature_rows(folder: Path, values: np.ndarray, labels: list[str]) -> tuple[Path, list[str]]:
    """Write the table with a feature a row, and a sample table; return it with its options."""
    lines = ["\t".join(["probe", *(f"s{i}" for i in range(N_ROWS))])]
    lines += ["\t".join([n, *map(repr, c)]) for n, c in zip(NAMES, values.T.tolist(), strict=True)]
    (folder / "features.tsv").write_text("\n".join(lines) + "\n")
    pheno = [f"s{i},{label},b{i % 3}" for i, label in enumerate(labels)]
    (folder / "pheno.csv").write_text("Basename,Group,Batch\n" + "\n".join(pheno) + "\n")
    options = ["--orient", "features", "--samples", str(folder / "pheno.csv"), "--id", "Basename"]
    return folder / "features.tsv", [*options, "--target", "Group", "--strata", "Batch"]


def array_files(
    folder: Path, values: np.ndarray, labels: list[str]
) -> Iterator[tuple[Path, list[str]]]:
    """Write the binary files; yield each with its options."""
    import scipy.sparse
    from pyarrow import csv, feather, parquet

    table = csv.read_csv(folder / "plain.csv")
    parquet.write_table(table, folder / "table.parquet")
    feather.write_feather(table, str(folder / "table.feather"))
    yield folder / "table.parquet", []
    yield folder / "table.feather", []
    np.save(folder / "matrix.npy", values)
    np.savez(folder / "matrix.npz", X=values)
    scipy.sparse.save_npz(folder / "sparse.npz", scipy.sparse.csr_matrix(values))
    (folder / "names.txt").write_text("\n".join(NAMES) + "\n")
    (folder / "y.txt").write_text("\n".join(labels) + "\n")
    apart = ["--names", str(folder / "names.txt"), "--target-file", str(folder / "y.txt")]
    for name in ("matrix.npy", "matrix.npz", "sparse.npz"):
        yield folder / name, apart
    cells = (" ".join(f"{j}:{v!r}" for j, v in enumerate(row, 1)) for row in values.tolist())
    rows = [f"{label} {row}" for label, row in zip(labels, cells, strict=True)]
    (folder / "table.svm").write_text("\n".join(rows) + "\n")
    yield folder / "table.svm", []


def objects(folder: Path, values: np.ndarray, labels: list[str]) -> Iterator[tuple[str, Any, Any]]:
    """Yield objects in memory: what to call them, the object, the arguments."""
    import pandas
    import polars
    import pyarrow.csv
    import scipy.sparse

    apart = {"target": labels, "names": NAMES}
    yield "NumPy array", values, apart
    yield "SciPy sparse array", scipy.sparse.csc_array(values), apart
    yield "pandas DataFrame", pandas.read_csv(folder / "plain.csv"), {"target": "y"}
    yield "polars DataFrame", polars.read_csv(folder / "plain.csv"), {"target": "y"}
    yield "pyarrow Table", pyarrow.csv.read_csv(folder / "plain.csv"), {"target": "y"}


def command(*arguments: object, stdin: Path | None = None) -> None:
    """Run ``srs-ooc`` and print it as a user sees it; anything but success ends the script."""
    texts = [find_srs_ooc(), *map(str, arguments)]
    shown = [text.rsplit("/", 1)[-1] for text in texts]
    print("$", " ".join(shown), f"< {stdin.name}" if stdin else "", flush=True)
    data = stdin.read_bytes() if stdin else b""
    done = subprocess.run(texts, input=data, capture_output=True, check=False)
    print(done.stdout.decode(), done.stderr.decode() if done.returncode else "", flush=True)
    if done.returncode:
        raise SystemExit(f"failed with status {done.returncode}")


def codes_of(store: Path) -> tuple[int, list[int]]:
    """Return the checksum of the codes, and the classes of rows."""
    manifest = read_manifest(store)
    target = [manifest.classes[c] for c in np.asarray(read_array(store, manifest, "target"))]
    return manifest.checksums["codes/c/0/0"], [int(label == "case") for label in target]


def main() -> None:
    """Make, ingest, inspect and compare."""
    values, labels = make()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text, tabs = csv_text(values, labels), csv_text(values, labels, "\t")
        files = [*text_files(folder, text, tabs), *array_files(folder, values, labels)]
        files.append(feature_rows(folder, values, labels))
        stores = []
        for file, options in files:
            stores.append(folder / f"{file.name}.zarr")
            command("ingest", file, stores[-1], *options)
            command("inspect", stores[-1])
        stores.append(folder / "stdin.zarr")
        command("ingest", "-", stores[-1], stdin=folder / "plain.csv")
        command("inspect", stores[-1])
        for what, thing, arguments in objects(folder, values, labels):
            stores.append(folder / f"{what.replace(' ', '_')}.zarr")
            print(f">>> srs_ooc.ingest({what}, ...)", flush=True)
            srs_ooc.ingest(thing, stores[-1], memory_mb=2000, **arguments)
            command("inspect", stores[-1])
        wrong = [store.name for store in stores if codes_of(store) != codes_of(stores[0])]
        if wrong:
            raise SystemExit(f"other codes or classes than plain.csv: {', '.join(wrong)}")
        print(f"{len(stores)} stores, the same codes and classes in all\n", flush=True)
        for file in sorted(Path(os.environ.get("SRS_OOC_DATA", folder)).glob("*.csv.gz")):
            if file.parent != folder:
                command("ingest", file, folder / f"{file.name}.zarr")
                command("inspect", folder / f"{file.name}.zarr", "--verify")


if __name__ == "__main__":
    main()
