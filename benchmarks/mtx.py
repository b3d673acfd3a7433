"""What a folder of 10x takes as MatrixMarket: time beside scanpy's reader, peak memory, disk.

    python benchmarks/mtx.py [--cells 30000] [--genes 30000] [--python PYTHON-WITH-SCANPY]

The entries are made here: a gene is in a share of the cells that follows a gamma distribution, 3%
on average; counts are one and a Poisson number. They go to a gzipped file cell by cell. Ours makes
a finished store under ``--memory-mb 512``; scanpy's reader keeps the matrix in memory. 300,000
cells take a gigabyte for the file, 17 for scratch and store; scanpy 18 of memory.
"""

import argparse
import gzip
import io
import subprocess
import sys
import tempfile
from pathlib import Path

from measured import MB, find_srs_ooc, measure

_BLOCK = 2000
_SHARE = 0.03
_READ = "import sys, scanpy; scanpy.read_10x_mtx(sys.argv[1], gex_only=False)"


def make(folder: Path, n_cells: int, n_genes: int) -> None:
    """Write a folder of 10x, and a table of its cells."""
    import numpy as np
    from scipy import io as scipy_io
    from scipy import sparse

    rng = np.random.default_rng(0)
    share = rng.gamma(0.3, 1, n_genes)
    for _ in range(5):
        share = np.minimum(share * (_SHARE / share.mean()), 0.97)
    folder.mkdir(exist_ok=True)
    n_entries, body = 0, folder / "body.gz"
    with body.open("wb") as file:  # members of gzip may follow one another
        for start in range(0, n_cells, _BLOCK):
            n = min(_BLOCK, n_cells - start)
            cells, genes = np.nonzero(rng.random((n, n_genes), np.float32) < share)
            counts = 1 + rng.poisson(3 * share[genes])
            part = sparse.coo_array((counts, (genes, start + cells)), shape=(n_genes, n_cells))
            text = io.BytesIO()
            scipy_io.mmwrite(text, part)
            lines = text.getvalue().split(b"\n", 3)[-1].lstrip(b"%\n")
            file.write(gzip.compress(lines, 6))
            n_entries += len(cells)
    head = f"%%MatrixMarket matrix coordinate integer general\n{n_genes} {n_cells} {n_entries}\n"
    with (folder / "matrix.mtx.gz").open("wb") as file:
        file.write(gzip.compress(head.encode()))
        with body.open("rb") as entries:
            while piece := entries.read(1 << 20):
                file.write(piece)
    body.unlink()
    barcodes = [f"C{i:07d}-1" for i in range(n_cells)]
    features = (f"ENSG{i:011d}\tG{i}\tGene Expression\n" for i in range(n_genes))
    with gzip.open(folder / "features.tsv.gz", "wt") as file:
        file.writelines(features)
    with gzip.open(folder / "barcodes.tsv.gz", "wt") as file:
        file.writelines(f"{one}\n" for one in barcodes)
    kinds = rng.integers(0, 2, n_cells).tolist()
    with (folder / "cells.csv").open("w") as file:
        file.write("cell,kind\n")
        file.writelines(f"{one},{'ab'[kind]}\n" for one, kind in zip(barcodes, kinds, strict=True))


def nbytes(path: Path) -> int:
    """Return the bytes of the files of a folder."""
    return sum(one.stat().st_size for one in path.rglob("*") if one.is_file())


def main() -> None:
    """Make the file, and print a line for each reader."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cells", type=int, default=30_000)
    parser.add_argument("--genes", type=int, default=30_000)
    parser.add_argument("--python", help="one with scanpy; none is measured if not given")
    parser.add_argument("--folder", type=Path, help="where to work; a temporary one by default")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.make:
        make(given.make, given.cells, given.genes)
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as work:
        folder, store = Path(work) / "tenx", Path(work) / "t.zarr"
        sizes = ["--cells", str(given.cells), "--genes", str(given.genes)]
        command = [sys.executable, __file__, "--make", str(folder), *sizes]
        subprocess.run(command, check=True)
        packed = (folder / "matrix.mtx.gz").stat().st_size
        print(f"{given.cells:,} x {given.genes:,}: {packed / MB:,.0f} MB gzipped", flush=True)
        joined = ["--samples", str(folder / "cells.csv"), "--id", "cell", "--target", "kind"]
        command = [find_srs_ooc(), "ingest", str(folder), str(store), *joined, "--memory-mb", "512"]
        subprocess.run([*command, "--dry-run"], check=True)
        ours = measure([*command, "-q"])
        said = f"{ours.seconds:,.0f} s ({ours.cpu_seconds:,.0f} CPU), peak {ours.peak_mb:,.0f} MB"
        codes, values = (nbytes(store / one) / MB for one in ("codes", "values"))
        print(f"ours: {said}; codes {codes:,.0f} MB, values {values:,.0f} MB", flush=True)
        if given.python:
            theirs = measure([given.python, "-W", "ignore", "-c", _READ, str(folder)])
            said = f"{theirs.seconds:,.0f} s ({theirs.cpu_seconds:,.0f} CPU)"
            print(
                f"scanpy: {said}, peak {theirs.peak_mb:,.0f} MB; ratio of seconds "
                f"{ours.seconds / theirs.seconds:.1f}, of CPU "
                f"{ours.cpu_seconds / theirs.cpu_seconds:.1f}"
            )


if __name__ == "__main__":
    main()
