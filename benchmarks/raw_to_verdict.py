"""From a raw file to a verdict: seconds and peak memory of each stage, beside what else there is.

For each size a file is written, then ``ingest``, ``plan``, ``run`` and ``features``, each a process
of its own, seen from outside. Half of the rows are of each class; 20 features are shifted by
``--shift`` standard deviations in one of them. Peers get the raw file: polars reads it and SciPy's
rank-sum test takes its columns, one after the other (``rank``), or scikit-learn's random forest
all at once (``forest``); PLINK 2 takes genotypes by ``--glm`` (``plink``). They are used where
they are there. The largest ``.npy`` is in Fortran order, as a table of features in rows is.

    python benchmarks/raw_to_verdict.py --folder FOLDER [--only 1000x80000.csv ...] [--cold]
        [--memory-mb 512] [--peers rank forest plink] [--keep] [--run-options TEXT]

``--cold`` drops what the page cache holds before ingest and before the run (needs root). What is
done is kept in FOLDER/raw.jsonl and not done again. The largest take 45 GB of disk for a while.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from measured import features_of, find_srs_ooc, measure

SIZES = {
    "1000x80000.csv": (),
    "1000x1000000.csv": (),
    "500x10000000.npy": (),
    "17000x450000.npy": ("--no-values",),
    "60000x5000.npy": (),
    "1000000x100.parquet": (),
    "200000x2000.parquet": (),
    "2500x1000000.bed": (),
    "1000x10000000.bed": (),
}
"""Each size, and more options of its ingest."""

MAKE = """
import sys
import numpy as np
path, n, p, shift = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
rng, kind = np.random.default_rng(0), path.rpartition(".")[2]
y = np.arange(n) % 2
causal = np.sort(rng.choice(p, 20, replace=False))
np.savetxt(path + ".truth", causal, "%d")
def rows(i, m):
    x = rng.standard_normal((m, p), np.float32)
    x[:, causal] += shift * y[i : i + m, None]
    return np.round(x, 3)
if kind == "npy":
    out = np.lib.format.open_memmap(path, "w+", np.float32, (n, p), n > 10_000 and p > 100_000)
    if out.flags.f_contiguous:
        for j in range(0, p, 1000):
            m = min(1000, p - j)
            block = rng.standard_normal((m, n), np.float32)
            for i in causal[(causal >= j) & (causal < j + m)] - j:
                block[i] += shift * y
            out.T[j : j + m] = np.round(block, 3)
        n = 0  # done
    step = max(1, 20_000_000 // p)
    for i in range(0, n, step):
        out[i : i + step] = rows(i, min(step, n - i))
    np.save(path + ".target.npy", y)
elif kind == "csv":
    texts = np.array(["%.3f" % (v / 1000) for v in range(-9000, 9001)])
    with open(path, "w") as file:
        file.write(",".join(f"f{j}" for j in range(p)) + ",y\\n")
        for i in range(n):
            cells = np.clip(np.rint(rows(i, 1)[0] * 1000).astype(int) + 9000, 0, 18_000)
            file.write(",".join(texts[cells].tolist()) + f",{y[i]}\\n")
elif kind == "parquet":
    import pyarrow as pa, pyarrow.parquet as pq
    names = [f"f{j}" for j in range(p)] + ["y"]
    schema = pa.schema([(name, pa.float32()) for name in names[:-1]] + [("y", pa.int64())])
    step = max(1, 50_000_000 // p)
    with pq.ParquetWriter(path, schema) as file:
        for i in range(0, n, step):
            m = min(step, n - i)
            block = np.ascontiguousarray(rows(i, m).T)
            file.write_table(pa.table([*block, y[i : i + m]], schema))
else:
    stem, line = path[: -len(".bed")], (n + 3) // 4
    with open(path, "wb") as bed, open(stem + ".bim", "w") as bim:
        bed.write(b"\\x6c\\x1b\\x01")
        for start in range(0, p, 1000):
            m = min(1000, p - start)
            share = np.repeat(rng.uniform(0.05, 0.4, (m, 1)).astype(np.float32), n, 1)
            for j in causal[(causal >= start) & (causal < start + m)] - start:
                share[j] += 0.15 * shift * y
            copies = (rng.random((m, n), np.float32) < share).astype(np.uint8)
            copies += rng.random((m, n), np.float32) < share
            bits = np.zeros((m, 4 * line), np.uint8)
            bits[:, :n] = np.array([3, 2, 0], np.uint8)[copies]
            bits[:, :n][rng.random((m, n), np.float32) < 0.01] = 1
            four = bits.reshape(m, line, 4)
            low = four[..., 0] | four[..., 1] << 2
            bed.write((low | four[..., 2] << 4 | four[..., 3] << 6).tobytes())
            bim.writelines(f"1\\tf{start + j}\\t0\\t{start + j + 1}\\tA\\tC\\n" for j in range(m))
    with open(stem + ".fam", "w") as fam:
        fam.writelines(f"F{i} I{i} 0 0 1 {1 + one}\\n" for i, one in enumerate(y.tolist()))
"""
FOREST = """
import sys
import numpy as np
from sklearn.ensemble import RandomForestClassifier
path, kind = sys.argv[1], sys.argv[1].rpartition(".")[2]
if kind == "npy":
    x, y = np.load(path), np.load(path + ".target.npy")
else:
    import polars
    table = polars.read_csv(path) if kind == "csv" else polars.read_parquet(path)
    y, x = table["y"].to_numpy(), table.drop("y").to_numpy().astype(np.float32)
    del table
forest = RandomForestClassifier(n_jobs=2, random_state=0).fit(x, y)
first = np.argsort(-forest.feature_importances_)[:20]
print(f'{np.isin(first, np.loadtxt(path + ".truth", int)).sum()} of its first 20 are true')
"""
RANK = """
import sys
import numpy as np
from scipy.stats import false_discovery_control, mannwhitneyu
path, kind = sys.argv[1], sys.argv[1].rpartition(".")[2]
if kind == "npy":
    table, y = np.load(path), np.load(path + ".target.npy")
    columns = (table[:, j] for j in range(table.shape[1]))
else:
    import polars
    table = polars.read_csv(path) if kind == "csv" else polars.read_parquet(path)
    y = table["y"].to_numpy()
    columns = (table[name].to_numpy() for name in table.columns if name != "y")
tests = [mannwhitneyu(x[y == 1], x[y == 0], method="asymptotic").pvalue for x in columns]
chosen = np.flatnonzero(false_discovery_control(tests) <= 0.1)
true = np.isin(chosen, np.loadtxt(path + ".truth", int)).sum()
print(f'{{"true": {true}, "false": {len(chosen) - true}}}')
"""
READ = """
import sys
path, kind = sys.argv[1], sys.argv[1].rpartition(".")[2]
if kind == "npy":
    import numpy
    numpy.load(path)
elif kind == "csv":
    import polars
    polars.read_csv(path)
elif kind == "parquet":
    import pyarrow.parquet as pq
    pq.read_table(path)
else:
    from bed_reader import open_bed
    with open_bed(path) as bed:
        for start in range(0, bed.sid_count, 10_000):
            bed.read((slice(None), slice(start, start + 10_000)), dtype="int8")
"""


def drop_caches() -> None:
    """Write what is dirty, and have the page cache forget all files."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3")


def stage(name: str, texts: list[object], limit: float) -> dict[str, object]:
    """Run a command, print what it took, and return it, what it wrote included."""
    with tempfile.NamedTemporaryFile("r") as out, tempfile.NamedTemporaryFile("r") as errors:
        command = [str(one) for one in texts]
        done = measure(command, limit_seconds=limit, out=out.name, errors=errors.name)
        if done.status not in (0, None):
            raise SystemExit(f"failed: {' '.join(command)}\n{errors.read()[-2000:]}")
        said = out.read()
    out_of_time = "" if done.status == 0 else ", out of time"
    print(f"  {name}: {done.seconds:.1f} s, CPU {done.cpu_seconds:.1f} s, "
          f"peak {done.peak_mb:.0f} MB{out_of_time}", flush=True)  # fmt: skip
    took = {"seconds": done.seconds, "cpu": done.cpu_seconds, "peak_mb": done.peak_mb}
    return {"stage": name, **took, "status": done.status, "said": said}


def nbytes_of(path: Path) -> int:
    """Return the bytes of a file, or of all files of a folder."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)


def found_by(run: Path, truth: set[int]) -> dict[str, int]:
    """Return how many of the selected features are true, and how many are not."""
    places = [int(one["name"].lstrip("f")) for one in features_of(run, "--selected")]
    true = len(truth.intersection(places))
    return {"true": true, "false": len(places) - true}


def one_size(size: str, options: argparse.Namespace) -> list[dict[str, object]]:
    """Write the file of a size, and take it all the way."""
    shape, kind = size.split(".")
    n, p = map(int, shape.split("x"))
    file, ours = options.folder / f"t{size}", find_srs_ooc()
    store, run = options.folder / "t.zarr", options.folder / "t.run"
    python, cap = [sys.executable, "-c"], ["--memory-mb", options.memory_mb]
    print(f"{size}", flush=True)
    if not file.exists():
        stage("(written)", [*python, MAKE, file, n, p, options.shift], 3600)
    truth = {int(line) for line in Path(f"{file}.truth").read_text().split()}
    target = ["--target-file", f"{file}.target.npy"] if kind == "npy" else ["--target", "y"]
    target = [] if kind == "bed" else target
    steps: list[dict[str, object]] = [{"stage": "file", "nbytes": nbytes_of(file)}]
    for path in (store, run):
        shutil.rmtree(path, ignore_errors=True)
    if options.cold:
        drop_caches()
    more = [*target, *SIZES[size], *cap]
    steps.append(stage("ingest", [ours, "ingest", file, store, *more], options.limit))
    steps[-1]["nbytes"] = nbytes_of(store)
    if options.cold:
        drop_caches()
    steps.append(stage("plan", [ours, "plan", store, *cap], options.limit))
    how = [*cap, "--out", run, *options.run_options.split()]
    steps.append(stage("run", [ours, "run", store, *how], options.limit))
    if steps[-1]["status"] == 0:
        steps.append(stage("features", [ours, "features", run], options.limit))
        steps[-1]["said"] = found_by(run, truth)
        print(
            f"  selected: {steps[-1]['said']}, store {nbytes_of(store) / 1e6:,.0f} MB", flush=True
        )
    shutil.rmtree(store)
    if "read" in options.peers:
        steps.append(stage("reader alone", [*python, READ, file], options.limit))
    if "rank" in options.peers and kind != "bed":
        steps.append(stage("polars, SciPy", [*python, RANK, file], options.limit))
        print(f"  {steps[-1]['said']}", flush=True)
    if "forest" in options.peers and kind != "bed":
        steps.append(stage("forest of scikit-learn", [*python, FOREST, file], options.limit))
        print(f"  {steps[-1]['said']}", flush=True)
    if "plink" in options.peers and kind == "bed" and (plink := shutil.which("plink2")):
        glm = ["--bfile", file.with_suffix(""), "--glm", "allow-no-covars", "--threads", 2]
        out = ["--memory", 4000, "--out", options.folder / "plink"]
        steps.append(stage("PLINK 2 --glm", [plink, *glm, *out], options.limit))
    if not options.keep:
        for path in options.folder.glob(f"{file.stem}*"):
            path.unlink()
    return steps


def main() -> None:
    """Take the sizes, one after the other."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--only", nargs="+", choices=list(SIZES), default=list(SIZES))
    parser.add_argument(
        "--peers", nargs="*", choices=["read", "rank", "forest", "plink"], default=[]
    )
    parser.add_argument("--memory-mb", type=int, default=512)
    parser.add_argument("--shift", type=float, default=0.5)
    parser.add_argument("--limit", type=float, default=3600, help="seconds of a command")
    parser.add_argument("--run-options", default="")
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--keep", action="store_true", help="keep the raw files")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    results = options.folder / "raw.jsonl"
    done = set()
    if results.exists():
        done = {json.loads(line)["size"] for line in results.read_text().splitlines()}
    for size in options.only:
        if size not in done:
            steps = one_size(size, options)
            with results.open("a") as file:
                file.write(json.dumps({"size": size, "cold": options.cold, "steps": steps}) + "\n")


if __name__ == "__main__":
    main()
