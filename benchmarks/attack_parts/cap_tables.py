"""Tables of several shapes for the grid of caps, each in several formats."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from attack_parts.forks import Words

N_CHOSEN = 40
"""Features that a network is made of."""


@dataclass(frozen=True)
class Table:
    """A table that was written into a folder, in every format that suits it."""

    folder: Path

    def ingests(self) -> Iterator[tuple[str, Words]]:
        """Yield each format with the sources and options of its ingest."""
        target = ("--target-file", self.folder / "y.txt")
        for kind in ("csv", "csv.gz", "features.csv", "npy", "npz", "parquet", "svmlight"):
            path = self.folder / f"t.{kind}"
            if not path.exists():
                continue
            if kind == "features.csv":
                samples = ("--samples", self.folder / "samples.csv", "--id", "id", "--target", "y")
                yield kind, (path, "--orient", "features", *samples)
            else:
                yield kind, (path, *(() if kind in ("csv", "csv.gz", "svmlight") else target))


def _write(folder: Path, n_rows: int, n_features: int, name: str = "f{}", share: float = 1) -> None:
    """Write one table; ``share`` of its cells are not 0."""
    import numpy as np

    rng = np.random.default_rng(0)
    values = rng.integers(0, 99, (n_rows, n_features)) / 8
    values[rng.random(values.shape) >= share] = 0
    labels = ["uv"[i % 2] for i in range(n_rows)]
    values[::2, : min(3, n_features)] += 9
    names = [name.format(i) for i in range(n_features)]
    (folder / "y.txt").write_text("\n".join(labels) + "\n")
    (folder / "chosen.txt").write_text("\n".join(names[:N_CHOSEN]) + "\n")
    _texts(folder, values.tolist(), names, labels)
    _binaries(folder, values, names, is_sparse=share < 1)


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
            file.write(f"{int(label == 'u')} {cells}\n")
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
    "many rows": lambda folder: _write(folder, 60_000, 12),
    "wide names": lambda folder: _write(folder, 24, 8_000, "{:0>300}"),
    "sparse": lambda folder: _write(folder, 300, 6_000, share=0.02),
}
