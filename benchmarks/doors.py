"""Formats read where they lie: seconds and peak memory of ingest, beside the format's own reader.

Each measurement is a process of its own, seen from outside; files are in the page cache.

    python benchmarks/doors.py bed [--rows 2500] [--features 1000000] [--run]
    python benchmarks/doors.py h5ad [--rows 300000] [--features 20000]
    python benchmarks/doors.py zarr [--rows 1000] [--features 1000000]
    python benchmarks/doors.py vcf [--rows 2500] [--features 1000000]
    python benchmarks/doors.py raw [--rows 500] [--features 1000000]
    python benchmarks/doors.py geo [--rows 500] [--features 1300000]

``bed`` compares ingest (two bits a code), uint8 and ``--link`` with bed-reader, which reads all of
the file, and PLINK 2's ``--glm``; with ``--run`` runs of 300 iterations on the stores, too.
``h5ad`` (3% non-zero, CSR) and ``zarr`` (float32 in chunks of 4 MB) are beside what reads them
whole. ``vcf`` (packed by bgzip, if that is there, or gzip) is beside PLINK 2's ``--make-pgen``,
``raw`` (PLINK's text table, a sample a line) beside polars, which holds all, and ``geo`` (a series
matrix, packed: 2 GB) beside pandas, which holds all and leaves out what is known of the samples.
Peers are used if they are there.
"""

import argparse
import importlib.util
import os
import shutil
import sys
import tempfile
from pathlib import Path

from measured import find_srs_ooc, measure, subcommand

BED = """
import sys
import numpy as np
path, n, p = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng, line, liability = np.random.default_rng(0), (n + 3) // 4, np.zeros(n)
causal = set(rng.choice(p, 20, replace=False).tolist())
with open(path + ".bed", "wb") as bed, open(path + ".bim", "w") as bim:
    bed.write(b"\\x6c\\x1b\\x01")
    for start in range(0, p, 1000):
        m = min(1000, p - start)
        share = rng.uniform(0.05, 0.5, (m, 1)).astype(np.float32)
        copies = (rng.random((m, n), np.float32) < share).astype(np.uint8)
        copies += rng.random((m, n), np.float32) < share
        for j in causal.intersection(range(start, start + m)):
            liability += 0.3 * (copies[j - start] - copies[j - start].mean())
        bits = np.zeros((m, 4 * line), np.uint8)
        bits[:, :n] = np.array([3, 2, 0], np.uint8)[copies]
        bits[:, :n][rng.random((m, n), np.float32) < 0.01] = 1
        four = bits.reshape(m, line, 4)
        low = four[..., 0] | four[..., 1] << 2
        bed.write((low | four[..., 2] << 4 | four[..., 3] << 6).tobytes())
        bim.writelines(f"1\\trs{start + j}\\t0\\t{start + j + 1}\\tA\\tC\\n" for j in range(m))
ill = liability + rng.standard_normal(n) > 0
with open(path + ".fam", "w") as fam:
    fam.writelines(f"F{i} I{i} 0 0 {1 + i % 2} {1 + one}\\n" for i, one in enumerate(ill.tolist()))
"""
H5AD = """
import sys
import h5py
import numpy as np
path, n, p = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng, each = np.random.default_rng(0), max(1, int(0.03 * p))
with h5py.File(path, "w") as file:
    file.attrs["encoding-type"], file.attrs["encoding-version"] = "anndata", "0.1.0"
    x = file.create_group("X")
    x.attrs["encoding-type"], x.attrs["encoding-version"] = "csr_matrix", "0.1.0"
    x.attrs["shape"] = [n, p]
    x["indptr"] = np.arange(n + 1, dtype=np.int64) * each
    places = x.create_dataset("indices", (n * each,), "i4", chunks=(min(n * each, 1 << 18),))
    data = x.create_dataset("data", (n * each,), "f4", chunks=(min(n * each, 1 << 18),))
    gap = p // each
    for row in range(0, n, 1000):
        m = min(1000, n - row)
        at = slice(row * each, (row + m) * each)
        places[at] = (np.arange(each) * gap + rng.integers(0, gap, (m, each))).ravel()
        data[at] = np.log1p(rng.geometric(0.4, m * each))
    for name, size in (("obs", n), ("var", p)):
        frame = file.create_group(name)
        frame.attrs["encoding-type"], frame.attrs["encoding-version"] = "dataframe", "0.2.0"
        frame.attrs["_index"] = "_index"
        columns = ["state"] if name == "obs" else []
        frame.attrs.create("column-order", columns, dtype=h5py.string_dtype())
        frame["_index"] = np.array([f"{name}{i}" for i in range(size)], dtype=h5py.string_dtype())
        frame["_index"].attrs["encoding-type"] = "string-array"
    state = file["obs"].create_group("state")
    state.attrs["encoding-type"], state.attrs["ordered"] = "categorical", False
    state["codes"] = rng.integers(0, 2, n).astype("i1")
    state["categories"] = np.array(["rest", "stim"], dtype=h5py.string_dtype())
"""
ZARR = """
import sys
import numpy as np
import zarr
path, n, p = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
width = max(1, 1_000_000 // n)
array = zarr.create_array(path, shape=(n, p), chunks=(n, width), dtype="f4")
rng = np.random.default_rng(0)
for start in range(0, p, width):
    stop = min(p, start + width)
    array[:, start:stop] = rng.standard_normal((n, stop - start), np.float32)
np.save(path + ".target.npy", (rng.random(n) < 0.5).astype(np.int64))
"""
VCF = """
import gzip
import shutil
import subprocess
import sys
import numpy as np
path, n, p = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
bgzip = shutil.which("bgzip")
with open(path, "wb") as packed:
    if bgzip:
        command = [bgzip, "--threads", "2", "--compress-level", "1", "--stdout"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=packed)
    file = process.stdin if bgzip else gzip.open(packed, "wb", 1)
    head = ["##fileformat=VCFv4.3", "##contig=<ID=1>"]
    head.append('##FORMAT=<ID=GT,Number=1,Type=String,Description="">')
    names = "CHROM POS ID REF ALT QUAL FILTER INFO FORMAT".split() + [f"I{i}" for i in range(n)]
    file.write(("\\n".join(head) + "\\n#" + "\\t".join(names) + "\\n").encode())
    cells = np.frombuffer(b"\\t0/0\\t0/1\\t1/1\\t./.", np.uint32)
    rng = np.random.default_rng(0)
    for start in range(0, p, 1000):
        m = min(1000, p - start)
        share = rng.uniform(0.05, 0.5, (m, 1)).astype(np.float32)
        copies = (rng.random((m, n), np.float32) < share).astype(np.uint8)
        copies += rng.random((m, n), np.float32) < share
        copies[rng.random((m, n), np.float32) < 0.01] = 3
        for j, line in enumerate(cells[copies], start):
            file.write(b"1\\t%d\\trs%d\\tA\\tC\\t.\\t.\\t.\\tGT" % (j + 1, j))
            file.write(line.tobytes() + b"\\n")
    file.close()
    if bgzip and process.wait():
        sys.exit(1)
with open(path + ".samples", "w") as samples:
    samples.write("IID,ill\\n")
    samples.writelines(f"I{i},{one}\\n" for i, one in enumerate((rng.random(n) < 0.5).astype(int)))
"""
RAW = """
import sys
import numpy as np
path, n, p = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng, cells = np.random.default_rng(0), np.array([b"\\t0", b"\\t1", b"\\t2"])
with open(path, "wb") as file:
    file.write(b"FID\\tIID\\tPAT\\tMAT\\tSEX\\tPHENOTYPE")
    for start in range(0, p, 100_000):
        names = (f"\\trs{j}_A" for j in range(start, min(p, start + 100_000)))
        file.write("".join(names).encode())
    share = rng.uniform(0.05, 0.5, p).astype(np.float32)
    for i in range(n):
        copies = (rng.random(p, np.float32) < share).astype(np.uint8)
        copies += rng.random(p, np.float32) < share
        file.write(b"\\nF%d\\tI%d\\t0\\t0\\t%d\\t%d" % (i, i, 1 + i % 2, 1 + (i // 2) % 2))
        file.write(cells[copies].tobytes())
    file.write(b"\\n")
"""
GEO = """
import gzip
import sys
import numpy as np
path, n, p = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(0)
texts = np.array([b"\\t%.4f" % (i / 10_000) for i in range(100_000, 1_000_000)])
fields = {"geo_accession": [f"GSM{i}" for i in range(n)],
          "characteristics_ch1": [f"disease state: {('ill', 'well')[i % 2]}" for i in range(n)]}
with gzip.open(path, "wb", compresslevel=1) as file:
    file.write(b'!Series_title\\t"measured"\\n')
    for name, cells in fields.items():
        file.write(("!Sample_" + name + "".join(f'\\t"{one}"' for one in cells) + "\\n").encode())
    file.write(b"!series_matrix_table_begin\\n")
    file.write(('"ID_REF"' + "".join(f'\\t"GSM{i}"' for i in range(n)) + "\\n").encode())
    for start in range(0, p, 1000):
        m = min(1000, p - start)
        cells = (rng.standard_normal((m, n), np.float32) * 70_000).astype(np.int32) + 450_000
        for j, row in enumerate(texts[cells.clip(0, len(texts) - 1)], start):
            file.write(b'"%d_at"%b\\n' % (j, row.tobytes()))
    file.write(b"!series_matrix_table_end\\n")
"""
READ_BED = """
import sys
from bed_reader import open_bed
with open_bed(sys.argv[1]) as bed:
    for start in range(0, bed.sid_count, 10_000):
        bed.read((slice(None), slice(start, start + 10_000)), dtype="int8")
"""
READ_RAW = """
import sys
import polars
with open(sys.argv[1]) as file:
    types = [polars.String] * 6 + [polars.Int8] * (file.readline().count("\\t") - 5)
polars.read_csv(sys.argv[1], separator="\\t", null_values="NA", schema_overrides=types)
"""
READ_GEO = """
import sys
import pandas
pandas.read_csv(sys.argv[1], sep="\\t", comment="!", index_col=0)
"""
READ_ZARR = """
import sys
import zarr
array = zarr.open_array(sys.argv[1], mode="r")
for start in range(0, array.shape[1], array.chunks[1]):
    array[:, start : start + array.chunks[1]]
"""


def show(name: str, *command: object) -> None:
    """Run a command once, and print what it took."""
    with tempfile.NamedTemporaryFile("r") as errors:
        done = measure([str(one) for one in command], out=os.devnull, errors=errors.name)
        if done.status != 0:
            raise SystemExit(f"failed: {' '.join(map(str, command))}\n{errors.read()}")
    print(f"  {name}: {done.seconds:.1f} s, CPU {done.cpu_seconds:.1f} s, "
          f"peak {done.peak_mb:.0f} MB", flush=True)  # fmt: skip


def size_of(path: Path) -> str:
    """Return the megabytes of a file or a folder."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return f"{sum(file.stat().st_size for file in files) / 1e6:,.0f} MB"


def make(script: str, path: Path, options: argparse.Namespace) -> None:
    """Write a table by a process of its own."""
    command = [sys.executable, "-c", script, str(path), str(options.rows), str(options.features)]
    if measure(command).status != 0:
        raise SystemExit("failed: the table could not be made")


def options_of(rows: int, features: int) -> argparse.Namespace:
    """Read the options of a subcommand."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=rows)
    parser.add_argument("--features", type=int, default=features)
    parser.add_argument("--memory-mb", type=int, default=512)
    parser.add_argument("--folder", type=Path, help="where to work")
    parser.add_argument("--run", action="store_true", help="run on the stores, too")
    options = parser.parse_args()
    print(f"{options.rows:,} x {options.features:,}, --memory-mb {options.memory_mb}", flush=True)
    return options


def bed() -> None:
    """Measure a .bed file."""
    options = options_of(2500, 1_000_000)
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        stem, ours = Path(scratch) / "g", find_srs_ooc()
        file, cap = stem.with_suffix(".bed"), ("--memory-mb", options.memory_mb)
        make(BED, stem, options)
        print(f"  the .bed: {size_of(file)}")
        if importlib.util.find_spec("bed_reader"):
            show("bed-reader, 10,000 variants at a time", sys.executable, "-c", READ_BED, file)
        uint8 = ("--code-dtype", "uint8")
        for name, more in (("store", ()), ("uint8", uint8), ("linked", ("--link",))):
            made = Path(scratch) / f"{name}.zarr"
            show(f"ingest, {name}", ours, "ingest", file, made, *cap, *more)
            print(f"    {size_of(made)}")
        if plink := shutil.which("plink2"):
            glm = ("--bfile", stem, "--glm", "allow-no-covars", "--threads", 2)
            show("PLINK 2 --glm", plink, *glm, "--memory", 4000, "--out", stem)
        few = ("--threads", 2, "--iterations", 300, "--pairs", "none")
        for name in ("store", "uint8", "linked") if options.run else ():
            made = Path(scratch) / f"{name}.zarr"
            show(f"run, {name}", ours, "run", made, *cap, *few)


def h5ad() -> None:
    """Measure a sparse .h5ad file."""
    options = options_of(300_000, 20_000)
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        file, made = Path(scratch) / "c.h5ad", Path(scratch) / "c.zarr"
        make(H5AD, file, options)
        print(f"  the .h5ad: {size_of(file)}")
        if importlib.util.find_spec("anndata"):
            script = "import sys, anndata; anndata.read_h5ad(sys.argv[1])"
            show("anndata, whole", sys.executable, "-c", script, file)
        cap = ("--memory-mb", options.memory_mb)
        show("ingest", find_srs_ooc(), "ingest", file, made, "--target", "state", *cap)
        print(f"    {size_of(made)}")


def zarr() -> None:
    """Measure a Zarr array."""
    options = options_of(1000, 1_000_000)
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        array, made = Path(scratch) / "x.zarr", Path(scratch) / "made.zarr"
        make(ZARR, array, options)
        print(f"  the array: {size_of(array)}")
        show("zarr, chunk by chunk", sys.executable, "-c", READ_ZARR, array)
        target = ("--target-file", f"{array}.target.npy", "--memory-mb", options.memory_mb)
        show("ingest", find_srs_ooc(), "ingest", array, made, *target)
        print(f"    {size_of(made)}")


def vcf() -> None:
    """Measure a .vcf.gz file."""
    options = options_of(2500, 1_000_000)
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        file, made = Path(scratch) / "v.vcf.gz", Path(scratch) / "v.zarr"
        make(VCF, file, options)
        print(f"  the .vcf.gz: {size_of(file)}")
        if plink := shutil.which("plink2"):
            how = ("--make-pgen", "--threads", 2, "--memory", 4000, "--out", Path(scratch) / "v")
            show("PLINK 2 --make-pgen", plink, "--vcf", file, *how)
        target = ("--samples", f"{file}.samples", "--id", "IID", "--target", "ill")
        cap = ("--memory-mb", options.memory_mb)
        show("ingest", find_srs_ooc(), "ingest", file, made, *target, *cap)
        print(f"    {size_of(made)}")


def raw() -> None:
    """Measure a .raw file."""
    options = options_of(500, 1_000_000)
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        file, made = Path(scratch) / "r.raw", Path(scratch) / "r.zarr"
        make(RAW, file, options)
        print(f"  the .raw: {size_of(file)}")
        if importlib.util.find_spec("polars"):
            show("polars, whole", sys.executable, "-c", READ_RAW, file)
        cap = ("--memory-mb", options.memory_mb)
        show("ingest", find_srs_ooc(), "ingest", file, made, *cap)
        print(f"    {size_of(made)}")


def geo() -> None:
    """Measure a series matrix of GEO."""
    options = options_of(500, 1_300_000)
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        file, made = Path(scratch) / "G_series_matrix.txt.gz", Path(scratch) / "g.zarr"
        make(GEO, file, options)
        print(f"  the series matrix: {size_of(file)}")
        if importlib.util.find_spec("pandas"):
            show("pandas, whole", sys.executable, "-c", READ_GEO, file)
        how = ("--target", "disease state", "--memory-mb", options.memory_mb)
        show("ingest", find_srs_ooc(), "ingest", file, made, *how)
        print(f"    {size_of(made)}")


if __name__ == "__main__":
    subcommand(bed=bed, h5ad=h5ad, zarr=zarr, vcf=vcf, raw=raw, geo=geo)
