"""Every command on small stores: exit status, what it says, and the files it makes."""

from pathlib import Path

import numpy as np
import pytest
from access import digests_of_store
from digests import digest_of_array, digest_of_json
from pinned_tables import run_table
from scripts import cells_of, masked, played

_ROLES = ("weight", "batch", "family", "amount", "family_label", "grade", "label")
_SHORT = "-q --threads 1 --iterations 60 --q 20"
_TESTED = "run t.zarr --out a.run --threads 1 --iterations 60 --q 20"
_TREES = "-q --threads 1 --judge probe --iterations 80 --q 12 --probe-min-wins 0.7 --save-trees"


def write_table(file, *, n_rows=100, n_features=60, target="label", without=_ROLES, **form):
    table = run_table(n_rows, n_features, **form)
    unused = [name for name in without if name != target]
    file.write_text(table.without(*unused).text(), encoding="utf-8")


def _tables(folder):
    write_table(folder / "table.csv", missing=True, categories=True)
    write_table(folder / "numbers.csv")
    write_table(folder / "amounts.csv", target="amount")
    (folder / "some.txt").write_text("g3\ng0\ng7\n")
    (folder / "regulators.txt").write_text("".join(f"g{i}\n" for i in range(8)))
    (folder / "targets.txt").write_text("g4\ng9\ng10\n")
    (folder / "rows.txt").write_text("".join(f"r{i}\n" for i in range(100) if i % 4))
    (folder / "others.txt").write_text("".join(f"r{i}\n" for i in range(0, 100, 4)))


_STORE = "ingest table.csv t.zarr --target label --row-ids id -q"
_NUMBERS = "ingest numbers.csv n.zarr --target label --row-ids id -q"
_AMOUNTS = "ingest amounts.csv m.zarr --target amount --task regression --row-ids id -q"
_RUN = f"run t.zarr --out a.run {_SHORT}"
_WITH_TREES = f"run n.zarr --out trees.run {_TREES} --bootstrap"
_PROBLEMS = ("blocks", "chain", "madelon", "noise", "shift")
_SIZES = {
    "blocks": "--rows 30 --features 12 --relevant 2 --block-size 4",
    "noise": "--rows 30 --features 12",
}
_SIZE = "--rows 30 --features 12 --relevant 3"
_FORMATS = ("csv", "csv.gz", "parquet", "feather", "svmlight", "npy", "txt", "zarr")
_NETWORK = "network n.zarr --regulators regulators.txt --targets targets.txt -q --threads 1"
_PRS = (
    "--with models=6 --with folds=2 --with epochs=8 --with inclusion=0.2 --with learning_rate=0.02"
)

SCRIPTS = {
    "stores": [
        _STORE, _STORE, f"{_STORE} --overwrite --json", f"{_STORE} --overwrite",
        "ingest table.csv dry.zarr --target label --row-ids id --dry-run -q",
        "inspect t.zarr", "inspect t.zarr --json", "inspect t.zarr --names",
        "inspect t.zarr --row-ids",
        _AMOUNTS, "inspect m.zarr", "inspect m.zarr --json",
        "verify t.zarr", "verify t.zarr --json", "runs", "runs --json",
        "ingest numbers.csv free.zarr --no-target --ignore label --row-ids id -q",
        "inspect free.zarr", f"run free.zarr {_SHORT}",
    ],
    "scores": [
        _STORE, _NUMBERS, "components n.zarr -k 2 -o pcs.csv",
        "scores n.zarr --top 5", "scores n.zarr --top 5 --csv",
        "scores t.zarr --json", "scores t.zarr --with scores=norm --top 5",
        "scores n.zarr --with rank=3 --with center=no --with matrix=values --top 5 "
        "--safe-csv --csv",
    ],
    "plans": [
        _STORE, "plan --n-rows 500 --n-features 300 --threads 2 --method prs",
        "plan --n-rows 500 --n-features 300 --threads 2 --method rase",
        "plan --n-rows 500 --n-features 300 --threads 2 --method less --json",
        "plan --n-rows 500", "plan t.zarr --n-rows 500",
        "plan --n-rows 72 --n-features 850000 --threads 2",
        "plan --n-rows 72 --n-features 850000 --threads 2 --json",
    ],
    "runs": [
        _STORE, _RUN, _RUN, f"run t.zarr --out b.run {_SHORT} --seed 1",
        "status a.run", "status a.run --json", "features a.run --top 5",
        "features a.run --top 5 --csv", "features a.run --json", "features a.run --selected",
        "features a.run --why g0", "features a.run --why g11", "features a.run --why g999",
        "compare a.run b.run", "compare a.run b.run --json", "resume a.run -q",
        "resume a.run -q --iterations 50", "resume b.run -q --iterations 70 --threads 1",
        "verify a.run", "verify a.run --json", "runs", "runs --json",
        "run t.zarr --out a.run -q --alpha 0.25", "run t.zarr --out a.run -q --iterations 20",
        "remove b.run", "remove b.run --yes",
        "remove b.run --yes",
    ],
    "tests": [
        _STORE, _TESTED, "status a.run", "status a.run --json", "features a.run --top 5",
        "features a.run --top 5 --csv", "features a.run --json", "features a.run --why g0",
        "features a.run --why g11", "report a.run --format md -o -",
        "report a.run --format json -o -", "verify a.run --json",
    ],
    "reports": [
        _STORE, _RUN, "report a.run --format md -o -", "report a.run --format json -o -",
        "report a.run --format json -o a.json", "report a.run --format json -o a.json",
        f"run t.zarr --out probe.run {_TREES}", "report probe.run --format json -o -",
        "report probe.run --format md -o -",
    ],
    "exports": [
        _STORE, _NUMBERS, _AMOUNTS, f"run n.zarr --out n.run {_SHORT}", _RUN,
        f"run m.zarr --out m.run {_SHORT}",
        *(f"export n.run numbers.out.{end}" for end in _FORMATS),
        *(f"export a.run mixed.out.{end} --top 7" for end in ("csv", "parquet", "svmlight")),
        *(f"export m.run amounts.out.{end} --top 3" for end in ("csv", "npy", "svmlight", "zarr")),
        "export a.run named.out.csv --names some.txt --safe-csv",
        "export a.run both.out.csv --names some.txt --top 3", "export a.run mixed.out.csv",
    ],
    "predictions": [
        _STORE, _NUMBERS, _AMOUNTS, _WITH_TREES, _RUN,
        "predict trees.run numbers.csv new.out.csv", "predict trees.run n.zarr store.out.csv",
        "predict trees.run numbers.csv json.out.csv --json",
        f"run m.zarr --out m.run {_TREES} --rows rows.txt",
        "predict m.run amounts.csv amounts.out.csv --json", "predict a.run table.csv x.out.csv",
        "sensitivity trees.run --top 5 --threads 1",
        "sensitivity trees.run --csv --top 5 --threads 1",
        "sensitivity trees.run --json --threads 1 --flip mirror",
        "sensitivity m.run --rows others.txt --flip permute --repeats 2 --json --threads 1",
        "sensitivity m.run", "sensitivity a.run",
        f"run n.zarr --out prs.run -q --threads 1 --method prs --save-trees {_PRS}",
        "predict prs.run numbers.csv prs.out.csv --json",
        "features prs.run --top 4", "features prs.run --top 4 --csv", "status prs.run",
    ],
    "compact": [
        _NUMBERS, f"run n.zarr --out n.run {_SHORT} --iterations 40",
        "compact n.run --folds 2 --repeats 1 --threads 1",
        "compact n.run --folds 2 --repeats 1 --threads 1 --json",
        "compact n.run --folds 2 --repeats 1 --threads 1 --csv --max-features 2",
        "compact n.run --folds 200",
    ],
    "networks": [
        _NUMBERS, f"{_NETWORK} --with trees=10 --out genie3.out.csv",
        f"{_NETWORK} --with trees=10 --out genie3.out.csv --json", "status genie3.out.csv.network",
        "status genie3.out.csv.network --json",
        f"{_NETWORK} --with trees=10 --with ensemble=extra-trees --k all "
        "--out extra.out.csv --json",
        f"{_NETWORK} --with trees=10 --with thresholds=value --k 0.5 "
        "--out value.out.parquet --json",
        f"{_NETWORK} --with trees=10 --rows rows.txt --seed 3 --top 4 --out some.out.csv --json",
        f"{_NETWORK} --method srs --with trees=40 --q 4 --out srs.out.csv --json",
        f"{_NETWORK} --method srs --with trees=40 --q 4 --alpha 0 --out rs.out.csv --json",
        f"{_NETWORK} --method prs {_PRS} --out prs.out.csv --json",
        f"{_NETWORK} --method prs {_PRS} --with thresholds=rank --with patience=2 "
        "--out rank.out.csv --json",
        f"{_NETWORK} --method prs {_PRS} --with joint=0.01 --out joint.out.csv --json",
        f"{_NETWORK} --method prs {_PRS} --with joint=0.01 --with sparsity=0.1 "
        "--out few.out.csv --json",
        "network n.zarr --targets targets.txt --with trees=4 -q --out all.out.csv --threads 2",
        f"{_NETWORK} --with trees=11 --out genie3.out.csv",
        f"{_NETWORK} --with trees=10 --with joint=0.1 --out x.out.csv", "runs",
    ],
    "tables": [
        *(f"synth {name} {name}.out.csv {_SIZES.get(name, _SIZE)}" for name in _PROBLEMS),
        "synth chain chain.zarr --rows 30 --features 12 --relevant 3 --seed 4",
        "inspect chain.zarr", "synth chain x.out.csv --rows 30 --features 2 --relevant 3",
    ],
    "theory": [
        "theory chain -p 1000 -q 50 -r 3", "theory clique -p 1000 -q 50 -r 3 --json",
        "theory marginal -p 1000 -q 50 -r 3 --alpha 0.5",
        "theory chain -p 1000 -q 50 -r 3 --json",
        "theory chain -p 10 -q 50 -r 3",
    ],
    "refusals": [
        "", "--version", "rum", "run", "run no.zarr", "status no.run", "inspect table.csv",
        "verify no", "ingest no.csv x.zarr", "ingest table.csv x.zarr --target no",
        "ingest table.csv x.zarr --kind g0=odd", "ingest table.csv x.zarr --memory-mb 0",
        _STORE, f"run t.zarr --judge odd {_SHORT}", f"run t.zarr --method odd {_SHORT}",
        "run t.zarr -q --fdr 2", "run t.zarr -q --judge probe --fdr 0.1", "run t.zarr --q 0",
        "run t.zarr --q 9999 -q", "run t.zarr --model odd -q", "run t.zarr --no-such",
        "run t.zarr --config no.toml", "run t.zarr --exclude some-not.txt",
        "run t.zarr --method prs --judge tests",
        "run t.zarr --method rase --with criterion=ebic --model knn", "features t.zarr",
        "scores t.zarr --with rank=0", "network t.zarr", "report no.run", "export no.run x.csv",
        "compact no.run", "predict no.run x y", "sensitivity no.run", "compare no.run no.run",
        "remove no.run --yes", "resume no.run", "theory odd -p 10 -q 5 -r 3", "synth odd x.csv",
    ],
}  # fmt: skip


def pin_of_script(name, folder):
    """What each line says, and every file called ``*.out.*`` that the lines left."""
    if any(".parquet" in line for line in SCRIPTS[name]):
        pytest.importorskip("pyarrow")
    _tables(folder)
    found = played(folder, SCRIPTS[name])
    made = sorted(path for path in folder.iterdir() if ".out." in path.name)
    files = {path.name: _file(path) for path in made if not path.name.endswith(".network")}
    return {"lines": found, "files": files} if files else {"lines": found}


def _file(path):
    """What is in a file, whatever the library says that wrote it."""
    if path.is_dir():
        return {"store": digests_of_store(path)["codes"]}
    read = _READERS.get(path.suffix)
    return read(path) if read else path.read_text(encoding="utf-8").splitlines()[:5]


def _csv(path):
    return cells_of(path.read_text(encoding="utf-8"))


def _gz(path):
    import gzip

    return cells_of(gzip.decompress(path.read_bytes()).decode())


def _frame(path):
    if path.suffix == ".parquet":
        from pyarrow.parquet import read_table
    else:
        from pyarrow.feather import read_table
    table = read_table(path)
    columns = {field.name: str(field.type) for field in table.schema}
    rows = [columns, *table.to_pylist()]
    digest = digest_of_json(rows)
    return {
        "columns": list(map(list, columns.items()))[:8],
        "rows": len(rows) - 1,
        "sha256": digest,
    }


_READERS = {
    ".csv": _csv,
    ".gz": _gz,
    ".parquet": _frame,
    ".feather": _frame,
    ".npy": lambda path: digest_of_array(np.load(path)),
    ".json": lambda path: masked(path.read_text(), Path(path.parent))[:2000],
}
