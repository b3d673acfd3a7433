"""Caps: each command at the smallest one it names works, and its peak stays under it.

The cap is the one that the command names where 1 MB is given. Peaks are measured from outside, on
processes started afresh (``measured.py``).
"""

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from measured import Measured, measure

from attack_parts.forks import Words
from attack_parts.ground import METHODS, NETWORKS, Tally, fresh

MANY_TEXTS = "texts, many rows"
"""The table with columns of more texts than codes of one byte tell apart."""
TALL = "tall"
"""The table on which halves of the rows, and folds, take the most beside what came before."""
SEVERAL_THREADS = ("long", "long, 20 classes", "a hundred classes")
"""Tables on which threads and tests beside others take the most beside what is counted."""
LONG_TEXTS, PIECES = "long texts", "pieces"
"""Tables of texts that are far longer than numbers, and of files that are one table."""
N_CHOSEN = 40
"""Features that a network is made of."""


@dataclass(frozen=True)
class Table:
    """A table that was written into a folder, in every format that suits it."""

    folder: Path
    name: str

    @property
    def is_text(self) -> bool:
        """Return whether its columns are categories."""
        return self.name.startswith("texts")

    def ingests(self) -> Iterator[tuple[str, Words]]:
        """Yield each format with the sources and options of its ingest."""
        target = ("--target-file", self.folder / "y.txt")
        wider = ("--code-dtype", "uint16") if self.name == MANY_TEXTS else ()
        for kind in ("csv", "csv.gz", "features.csv", "npy", "npz", "parquet", "svmlight"):
            path = self.folder / f"t.{kind}"
            if self.is_text and kind not in ("csv", "csv.gz", "parquet"):
                continue
            if kind == "features.csv":
                samples = ("--samples", self.folder / "samples.csv", "--id", "id", "--target", "y")
                yield kind, (path, "--orient", "features", *samples)
            else:
                labels = () if kind in ("csv", "csv.gz", "svmlight") else target
                yield kind, (path, *labels, *wider)


def _write(
    folder: Path,
    n_rows: int,
    n_features: int,
    name: str = "f{}",
    share: float = 1,
    n_classes: int = 2,
) -> None:
    """Write one table; ``share`` of its cells are not 0."""
    import numpy as np

    rng = np.random.default_rng(0)
    values = rng.integers(0, 99, (n_rows, n_features)) / 8
    values[rng.random(values.shape) >= share] = 0
    labels = [f"c{i % n_classes}" for i in range(n_rows)]
    values[::2, : min(3, n_features)] += 9
    names = [name.format(i) for i in range(n_features)]
    (folder / "y.txt").write_text("\n".join(labels) + "\n")
    (folder / "chosen.txt").write_text("\n".join(names[:N_CHOSEN]) + "\n")
    _texts(folder, values.tolist(), names, labels)
    _binaries(folder, values, names, is_sparse=share < 1)


def _write_texts(folder: Path, n_rows: int, n_features: int) -> None:
    """Write a table of categories, a third of them a text of its own in each row."""
    import gzip
    from random import Random

    import pyarrow as pa
    from pyarrow import parquet

    random = Random(0)  # noqa: S311
    names = [f"f{i}" for i in range(n_features)]
    kinds = [(5, 40, n_rows)[i % 3] for i in range(n_features)]
    labels = ["uv"[i % 2] for i in range(n_rows)]
    rows = [[f"{label}{random.randrange(n)} of {n}" for n in kinds] for label in labels]
    columns = [*zip(*rows, strict=True), labels]
    text = "\n".join(",".join(row) for row in [[*names, "y"], *zip(*columns, strict=True)]) + "\n"
    (folder / "y.txt").write_text("\n".join(labels) + "\n")
    (folder / "t.csv").write_text(text)
    (folder / "t.csv.gz").write_bytes(gzip.compress(text.encode(), 1))
    columns_of = dict(zip(names, map(list, columns), strict=False))
    parquet.write_table(pa.table(columns_of), folder / "t.parquet")


def _write_long_texts(folder: Path) -> None:
    """Write tables of which few texts, or the names, take most of the bytes."""
    import sqlite3

    import h5py
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    names = [f"f{i}_".ljust(1500, "x") for i in range(20_000)]
    texts = ["abc"[i % 3] * 20_000 for i in range(8_000)]
    (folder / "y.txt").write_text("u\nv\n" * 4_000)
    with sqlite3.connect(folder / "t.sqlite") as database:
        database.execute("create table wide (id text, y double, a double, x text)")
        rows = ((f"r{i}", i % 2, i / 3, text) for i, text in enumerate(texts))
        database.executemany("insert into wide values (?, ?, ?, ?)", rows)
        database.execute("create table long (id text, f text, v double)")
        cells = ((f"r{i}", name, i) for i in range(30) for name in names[:2_000])
        database.executemany("insert into long values (?, ?, ?)", cells)
    with h5py.File(folder / "t.h5ad", "w") as file:
        file["X"] = np.zeros((30, 20_000), "f4") + np.arange(30, dtype="f4")[:, None]
        for frame, index in (("obs", [f"r{i}" for i in range(30)]), ("var", names)):
            file.create_group(frame).attrs["_index"] = "_index"
            file[frame].create_dataset("_index", data=index, dtype=h5py.string_dtype())
        file["obs/label"] = np.array([b"u", b"v"] * 15)
    columns = {"a": np.arange(8_000.0), "x": texts}
    parquet.write_table(pa.table(columns), folder / "t.parquet")


def _write_pieces(folder: Path) -> None:
    """Write a small first piece and wide ones after it, all of the same rows."""
    import numpy as np

    for at, n_features in enumerate((40, 40_000, 200_000)):
        names = ",".join(f"p{at}_{i}" for i in range(n_features)) + ",y" * (at == 0)
        line = ",".join(map(str, np.arange(n_features) % 7))
        lines = (f"{i}{line[1:]}" + f",{'uv'[i % 2]}" * (at == 0) for i in range(60))
        (folder / f"p{at}.csv").write_text("\n".join([names, *lines]) + "\n")


def _texts(folder: Path, rows: list[list[float]], names: list[str], labels: list[str]) -> None:
    import gzip

    lines = [",".join([*names, "y"])]
    lines += [",".join([*(f"{v:g}" for v in r), y]) for r, y in zip(rows, labels, strict=True)]
    text = "\n".join(lines) + "\n"
    (folder / "t.csv").write_text(text)
    (folder / "t.csv.gz").write_bytes(gzip.compress(text.encode(), 1))
    with (folder / "t.svmlight").open("w") as file:
        for row, label in zip(rows, labels, strict=True):
            cells = " ".join(f"{i + 1}:{v:g}" for i, v in enumerate(row) if v)
            file.write(f"{int(label == 'c0')} {cells}\n")
    ids = [f"s{i}" for i in range(len(rows))]
    with (folder / "t.features.csv").open("w") as file:
        file.write(",".join(["id", *ids]) + "\n")
        for name, column in zip(names, zip(*rows, strict=True), strict=True):
            file.write(",".join([name, *(f"{v:g}" for v in column)]) + "\n")
    pairs = [f"{i},{label}\n" for i, label in zip(ids, labels, strict=True)]
    (folder / "samples.csv").write_text("id,y\n" + "".join(pairs))


def _binaries(folder: Path, values: "object", names: list[str], *, is_sparse: bool) -> None:
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet
    from scipy import sparse

    array = np.asarray(values)
    np.save(folder / "t.npy", array)
    if is_sparse:
        sparse.save_npz(folder / "t.npz", sparse.csr_matrix(array))
    else:
        np.savez(folder / "t.npz", array)
    columns = dict(zip(names, array.T, strict=True))
    parquet.write_table(pa.table(columns), folder / "t.parquet")


TABLES: dict[str, Callable[[Path], None]] = {
    "small": lambda folder: _write(folder, 60, 40),
    "few rows": lambda folder: _write(folder, 24, 60_000),
    "many rows": lambda folder: _write(folder, 60_000, 20),
    "wide names": lambda folder: _write(folder, 24, 8_000, "{:0>300}"),
    "sparse": lambda folder: _write(folder, 300, 6_000, share=0.02),
    "texts": lambda folder: _write_texts(folder, 240, 120),
    MANY_TEXTS: lambda folder: _write_texts(folder, 30_000, 20),
    TALL: lambda folder: _write(folder, 100_000, 60),
    "long": lambda folder: _write(folder, 24_000, 40),
    "long, 20 classes": lambda folder: _write(folder, 24_000, 40, n_classes=20),
    "a hundred classes": lambda folder: _write(folder, 10_000, 60, n_classes=100),
    LONG_TEXTS: _write_long_texts,
    PIECES: _write_pieces,
}


HANGS = 300
_NAMED = re.compile(r"memory[-_]mb[ =](\d+)\.")
CALL = """
import resource, sys
from pathlib import Path
import numpy as np
import srs_ooc as s
def hold():
    held = next(l for l in open("/proc/self/status") if l.startswith("VmRSS")).split()[1]
    print("held", int(held) * 1024, file=sys.stderr)
here, cap = Path(sys.argv[1]), int(sys.argv[2])
store, made = here / "csv.zarr", here / "python"
try:
    {}
except Exception as error:
    print(type(error).__name__, error, file=sys.stderr)
    sys.exit(2)
"""
"""A call in a process of its own; ``hold`` says what it holds before what is capped begins."""
JUDGES: dict[str, Words] = {
    "positive": ("--judge", "positive", "--iterations", 20),
    "svm": ("--model", "linear", "--iterations", 10, "--q", 5),
}
FEWER: dict[str, Words] = {
    name: [12 if before == "--iterations" else word
           for before, word in zip((None, *words), words, strict=False)]
    for name, words in METHODS.items()
}  # fmt: skip
"""The methods with few iterations: what they take of memory does not depend on how many."""
FEWER["tests"] = ("--iterations", 60, "--q", 20)  # else no feature is left to compact
for of_folds in ("prs", "rase"):
    FEWER[of_folds] = (*FEWER[of_folds], "--with", "folds=3")  # tables of few rows hold no more
FEWER_NETWORKS: dict[str, Words] = {
    **NETWORKS, "genie3": ("--with", "trees=3"), "srs": ("--method", "srs", "--with", "trees=20"),
}  # fmt: skip
NUMBERS = ("prs", "rase", "svm", "knn", "less")
"""Methods and models that categories are not given to."""


@dataclass(frozen=True)
class Case:
    """A command or a call, what it makes, and whether commands that follow read that."""

    name: str
    words: Words
    makes: Path | None = None
    is_read: bool = False
    call: str = ""


def caps(tally: Tally, folder: Path, _: int) -> None:
    """Go through the grid of commands and shapes."""
    for name, write in TABLES.items():
        place = folder / name
        grid = Table(place, name)
        cases = list(_cases(grid)) if tally.left(name) else []
        left = {c.name for c in cases if tally.left(f"{name}, {c.name}")}
        if not left:
            continue
        place.mkdir()
        _in_child(partial(write, place))
        for case in cases:
            if case.name in left:
                with tally.attack(f"{name}, {case.name}"):
                    _try(tally, name, case, place)
            if case.is_read and case.makes and not case.makes.exists():
                _ended(case, 2000, place)


def _in_child(make: Callable[[], object]) -> None:
    """Make tables in a process of its own: the peak of a command begins at this one's."""
    import os

    pid = os.fork()
    if not pid:
        try:
            make()
            os._exit(0)
        finally:
            os._exit(1)
    if os.waitpid(pid, 0)[1]:
        raise RuntimeError("a table was not made")


def _try(tally: Tally, shape: str, case: Case, folder: Path) -> None:
    what = f"{shape}, {case.name}"
    if case.makes:
        fresh(case.makes)
    refused, message, _ = _ended(case, 1, folder)
    named = _NAMED.findall(message)
    if refused.status != 2 or not named:
        tally.breaks.append(f"{what} at 1 MB: {refused.status} {message[-300:]}")
        return
    cap = int(named[-1])
    done, message, before_mb = _ended(case, cap, folder)
    if done.status == 2 and "whose texts fit" in message:  # known only once they are read
        cap = int(_NAMED.findall(message)[-1])
        done, message, before_mb = _ended(case, cap, folder)
    peak_mb = done.peak_mb - before_mb
    tally.add(f"commands at the smallest cap named: {shape}")
    if done.status != 0:
        tally.breaks.append(f"{what} at {cap} MB: {done.status} {message[-300:]}")
    elif peak_mb > cap:
        tally.breaks.append(f"{what} at {cap} MB: peak {peak_mb:.1f} MB")
    tally.closest = round(peak_mb / cap, 3)
    if done.status != 0 and case.makes:  # what follows reads it
        fresh(case.makes)


def _ended(case: Case, cap_mb: int, folder: Path) -> tuple[Measured, str, float]:
    """Return its measures, what it said, and the MB it held before, where these do not count."""
    errors = folder / "errors.txt"
    python = [sys.executable, "-P"]  # what is installed, not the checkout that this is started in
    line = [*python, "-m", "srs_ooc", *map(str, case.words), "--memory-mb", str(cap_mb)]
    if case.call:
        line = [*python, "-c", CALL.format(case.call), str(folder), str(cap_mb)]
    done = measure(line, limit_seconds=HANGS, out="/dev/null", errors=str(errors))
    said = errors.read_text(errors="replace").strip()
    held = re.findall(r"^held (\d+)$", said, re.MULTILINE)
    return done, said, int(held[0]) / 1e6 if held else 0.0


def _cases(table: Table) -> Iterator[Case]:
    folder = table.folder
    store = folder / "csv.zarr"
    if table.name == TALL:
        yield Case("ingest csv", ("ingest", folder / "t.csv", store), store, is_read=True)
        yield from _of_halves(folder, store, ("--max-depth", 3))
        return
    if table.name in (LONG_TEXTS, PIECES):
        yield from _of_sizes(folder, table.name)
        return
    if table.name in SEVERAL_THREADS:
        yield Case("ingest csv", ("ingest", folder / "t.csv", store), store, is_read=True)
        yield from _of_threads(folder, store)
        return
    for kind, words in table.ingests():
        out = folder / f"{kind}.zarr"
        yield Case(f"ingest {kind}", ("ingest", *words, out), out, is_read=kind == "csv")
    for words in (("inspect", store), ("verify", store), ("plan", store)):
        yield Case(f"{words[0]} a store", words)
    for name, options in (FEWER | JUDGES).items():
        run = folder / f"{name}.run"
        words = ("run", store, "--out", run, "--threads", 1, *options)
        if not (table.is_text and name in NUMBERS):
            yield Case(f"run {name}", words, run, is_read=True)
    yield from _of_halves(folder, store, ())
    yield from _of_runs(folder, store, is_text=table.is_text)
    yield from _of_python(folder, is_text=table.is_text)
    if table.is_text:
        return
    yield Case("scores", ("scores", store, "--csv"))
    yield Case("scores norm", ("scores", store, "--csv", "--with", "scores=norm"))
    chosen = folder / "chosen.txt"
    files = ("--regulators", chosen, "--targets", chosen)
    for name, options in FEWER_NETWORKS.items():
        out = folder / f"{name}.csv"
        yield Case(f"network {name}", ("network", store, "--out", out, *files, "--threads", 1,
                                       *options), out)  # fmt: skip


def _of_sizes(folder: Path, name: str) -> Iterator[Case]:
    """Yield ingests of long texts, or of pieces, whose smallest cap is that of all stages."""
    out, (first, second, third) = folder / "out.zarr", (folder / f"p{i}.csv" for i in range(3))
    if name == PIECES:
        for what, pieces in (("like ones", (first, second)), ("a wide one last", (first, third))):
            yield Case(f"ingest pieces, {what}", ("ingest", *pieces, out, "--target", "y"), out)
        return
    database = ("ingest", folder / "t.sqlite", out, "--query")
    yield Case("ingest wide query", (*database, "select * from wide", "--target", "y"), out)
    yield Case("ingest long query", (*database, "select * from long", "--no-target"), out)
    yield Case("ingest h5ad", ("ingest", folder / "t.h5ad", out, "--target", "label"), out)
    target = ("--target-file", folder / "y.txt")
    yield Case("ingest parquet", ("ingest", folder / "t.parquet", out, *target), out)


def _of_threads(folder: Path, store: Path) -> Iterator[Case]:
    """Yield runs, and what has threads besides, on several threads."""
    run = folder / "threads.run"
    for threads in (1, 2, 4, 8, 64):
        words = ("run", store, "--out", run, "--threads", threads, "--iterations", 30)
        yield Case(f"run on {threads} threads", words, run, is_read=True)
    some = folder / "some.run"
    few = ("--threads", 8, "--iterations", 30, "--row-sample", 6_666)
    yield Case("run with a sample of the rows", ("run", store, "--out", some, *few), some)
    if folder.name == SEVERAL_THREADS[0]:  # the others take minutes
        compact = ("compact", run, "--folds", 2, "--repeats", 1, "--threads", 8)
        yield Case("compact on 8 threads", compact, run / "compact")
    halves = ("resume", run, "--halves", 4, "--threads", 8)
    yield Case("halves on 8 threads", halves)


def _of_halves(folder: Path, store: Path, options: Words) -> Iterator[Case]:
    """Yield a run with halves of its rows, more of them later, and its small set."""
    run = folder / "halves.run"
    words = ("run", store, "--out", run, "--iterations", 12, *options, "--halves", 4)
    yield Case("run halves", words, run, is_read=True)
    yield Case("resume halves", ("resume", run, "--halves", 6))
    yield Case("compact of halves", ("compact", run, "--folds", 2, "--repeats", 1),
               run / "compact")  # fmt: skip


def _of_runs(folder: Path, store: Path, *, is_text: bool) -> Iterator[Case]:
    run, trees, out = folder / "tests.run", folder / "trees.run", folder / "out"
    first = f"{0:0>300}" if folder.name == "wide names" else "f0"
    for kind in ("csv", "csv.gz", "parquet", "feather", "svmlight", "npy", "txt", "zarr"):
        if is_text and kind in ("svmlight", "npy"):
            continue
        made = folder / f"out.{kind}"
        yield Case(f"export {kind}", ("export", store, run, made, "--top", 5), made)
    for name in ("tests", "trees", "less", "prs", "rase"):
        if is_text and name in NUMBERS:
            continue
        read = folder / f"{name}.run"
        yield Case(f"features of {name}", ("features", read, "--csv"))
        if name == "tests":
            yield Case(f"features why of {name}", ("features", read, "--why", first))
        yield Case(f"status of {name}", ("status", read))
        yield Case(f"verify of {name}", ("verify", read))
        for kind in ("json", "md", "html"):
            made = folder / f"report.{kind}"
            yield Case(f"report {kind} of {name}", ("report", read, "-o", made), made)
    yield Case("compare", ("compare", run, trees))
    for kind, data in (("a store", store), ("csv", folder / "t.csv")):
        yield Case(f"predict {kind}", ("predict", trees, data, out), out)
    yield Case("sensitivity", ("sensitivity", trees, "--csv"))
    yield Case("compact", ("compact", run, "--folds", 2, "--repeats", 1, "--threads", 1),
               run / "compact")  # fmt: skip


def _of_python(folder: Path, *, is_text: bool) -> Iterator[Case]:
    """Yield calls of Python, each in a process of its own."""
    made = folder / "python"
    wider = 'code_dtype="uint16", ' if folder.name == MANY_TEXTS else ""
    calls = {
        "ingest": f's.ingest(here / "t.csv", made, target="y", {wider}memory_mb=cap)',
        "run": "s.run(store, out=made, iterations=12, q=10, threads=1, memory_mb=cap)",
        "sensitivity": 's.sensitivity(here / "trees.run", memory_mb=cap)',
        "compact": 's.compact(here / "tests.run", folds=2, repeats=1, threads=1, memory_mb=cap)',
        "verify": "s.verify(store, memory_mb=cap)",
        "plan": "s.plan(store, threads=1, memory_mb=cap)",
    }
    if not is_text:
        x = 'X, y = np.load(here / "t.npy"), (here / "y.txt").read_text().split(); '
        fit = "(iterations=12, subspace_size=10, random_state=0, n_jobs=1, memory_mb=cap).fit(X, y)"
        calls |= {
            "run prs": 's.run(store, out=made, method="prs", iterations=12, folds=3, threads=1, '
            "memory_mb=cap)",
            "scores": 's.scores(store, "records", memory_mb=cap)',
            "network": 's.network(store, made, trees=3, regulators=here / "chosen.txt", '
            'targets=here / "chosen.txt", threads=1, memory_mb=cap)',
            "SRSSelector": f"{x}s.SRSSelector; hold(); s.SRSSelector{fit}",
            "SRSClassifier": f"{x}s.SRSClassifier; hold(); s.SRSClassifier{fit}",
        }
    for name, call in calls.items():
        kept = folder / "tests.run" / "compact"
        yield Case(f"Python {name}", (), kept if name == "compact" else made, call=call)
