"""Values: small tables of what formats mean by their cells, each ingested and read back.

Every table is made anew at random. What the store holds is compared with what was meant.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from attack_parts.forks import Done, Words, finish
from attack_parts.ground import Tally, fresh

N_ROWS = 60
Cells = Sequence[Any]
"""What a column holds, as is meant; None where it is missing."""


def values(tally: Tally, folder: Path, n_each: int) -> None:
    """Ingest each kind of table so many times."""
    for name, attack in KINDS.items():
        for i in tally.left(name, n_each):
            with tally.attack(name, i) as random:
                place = folder / f"{name.replace(' ', '-')}-{i}"
                place.mkdir()
                wrong = _in_child(attack, place, random)
                tally.add(f"tables read back: {name}")
                if wrong:
                    tally.breaks.append(f"{name}, {i}: {wrong}")
                fresh(place)


def _in_child(attack: Callable[[Path, Random], str], place: Path, random: Random) -> str:
    """Return what is wrong, found in a process of its own: libraries that load stay there."""
    out, into = os.pipe()
    pid = os.fork()
    if not pid:
        said = "no answer"
        try:
            said = attack(place, random)
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        finally:
            os.write(into, said.encode()[:4000])
            os._exit(0)
    os.close(into)
    with os.fdopen(out, "rb") as file:
        said = file.read().decode()
    os.waitpid(pid, 0)
    return said


def _ingested(words: Words, place: Path) -> tuple[Done, Any]:
    """Return the end of an ingest, and the store."""
    from srs_ooc.store.store import Store

    done = finish("ingest", *words, place / "t.zarr")
    return done, Store.open(place / "t.zarr") if done.status == 0 else None


def _labels(store: Any) -> Cells:
    """Return the class of each row, or its number."""
    classes = store.manifest.classes
    target = store.target().tolist()
    return [classes[int(code)] for code in target] if classes else target


def _compared(done: Done, found: Cells | None, expected: Cells) -> str:
    if done.status != 0:
        return f"status {done.status}: {done.err[:300]}"
    return "" if list(found or ()) == list(expected) else f"expected {expected}, found {found}"


def _genotypes(place: Path, random: Random, families: Cells, phenotypes: Cells) -> Path:
    """Write PLINK's three files, of random genotypes."""
    people = enumerate(zip(families, phenotypes, strict=True))
    place.joinpath("g.fam").write_text("".join(f"{f} p{i} 0 0 1 {y}\n" for i, (f, y) in people))
    place.joinpath("g.bim").write_text("".join(f"1 rs{i} 0 {i + 1} A C\n" for i in range(5)))
    n_bytes = 5 * -(-len(families) // 4)
    cells = random.choices([0b00, 0b10, 0b11], k=4 * n_bytes)
    fours = (cells[i : i + 4] for i in range(0, len(cells), 4))
    packed = bytes(sum(cell << 2 * at for at, cell in enumerate(four)) for four in fours)
    place.joinpath("g.bed").write_bytes(b"\x6c\x1b\x01" + packed)
    return place / "g.bed"


def _minus_nine(place: Path, random: Random) -> str:
    """Give phenotypes of -9 in a table of samples beside genotypes: they are missing."""
    said = [*random.choices(["1", "2", "-9"], k=N_ROWS - 4), "1", "1", "2", "2"]
    bed = _genotypes(place, random, [f"f{i}" for i in range(N_ROWS)], ["-9"] * N_ROWS)
    lines = (f"p{i},{cell}\n" for i, cell in enumerate(said))
    place.joinpath("s.csv").write_text("IID,ill\n" + "".join(lines))
    words = (bed, "--samples", place / "s.csv", "--id", "IID", "--target", "ill")
    done, store = _ingested(words, place)
    return _compared(done, store and _labels(store), [cell for cell in said if cell != "-9"])


def _family_0(place: Path, random: Random) -> str:
    """Who has family 0 is a group alone."""
    families = random.choices(["0", "a", "b"], k=N_ROWS)
    bed = _genotypes(place, random, families, [*random.choices(["1", "2"], k=N_ROWS - 2), "1", "2"])
    done, store = _ingested((bed, "--groups", "FID"), place)
    n_groups = families.count("0") + len({*families} - {"0"})
    found = store and [len(set(store.array("groups").tolist()))]
    return _compared(done, found, [n_groups])


def _declared(place: Path, random: Random) -> str:
    """Declare numbers categorical in a file: they are classes, in any order."""
    import pandas as pd

    labels = [str(i % 20 + 1) for i in range(N_ROWS)]
    random.shuffle(labels)
    frame = pd.DataFrame({"x": [random.random() for _ in labels], "y": pd.Categorical(labels)})
    suffix = random.choice(["parquet", "feather"])
    getattr(frame, f"to_{suffix}")(place / f"t.{suffix}")
    done, store = _ingested((place / f"t.{suffix}", "--target", "y"), place)
    return _compared(done, store and _labels(store), labels)


def _one_number(place: Path, random: Random) -> str:
    """Labels of one number are one class."""
    ways = {"1": ["1", "1.0", "+1", "1e0"], "2": ["2", "2.00", "2e0"]}
    meant = [*random.choices(["1", "2"], k=N_ROWS - 4), "1", "1", "2", "2"]
    lines = [f"{random.random()},{random.choice(ways[one])}\n" for one in meant]
    lines[-4:] = [f"{i},{one}\n" for i, one in enumerate(meant[-4:])]
    place.joinpath("t.csv").write_text("x,y\n" + "".join(lines))
    done, store = _ingested((place / "t.csv",), place)
    return _compared(done, store and _labels(store), meant)


def _attributes(place: Path, random: Random) -> str:
    """Attributes of netCDF say which cells are missing, and what packed ones stand for."""
    import h5py
    import numpy as np

    cells = np.array(random.choices([-7, 0, 3, 12], k=N_ROWS), "i2")
    with h5py.File(place / "t.h5", "w") as file:
        file["x"] = np.stack([cells, np.arange(N_ROWS, dtype="i2")], axis=1)
        file["x"].attrs.update({"_FillValue": np.int16(-7), "scale_factor": 0.5, "add_offset": 1.0})
    place.joinpath("y.txt").write_text("u\nv\n" * (N_ROWS // 2))
    words = (f"{place}/t.h5::/x", "--target-file", place / "y.txt")
    done, store = _ingested(words, place)
    meant = [None if cell == -7 else cell * 0.5 + 1 for cell in cells.tolist()]
    return _compared(done, store and _column(store, "f0"), meant)


def _repeats(place: Path, random: Random) -> str:
    """Cells that a sparse matrix holds several times are summed."""
    import numpy as np
    from scipy import sparse

    n = 20 * N_ROWS
    rows, columns = ([random.randrange(k) for _ in range(n)] for k in (N_ROWS, 3))
    order = np.argsort(rows, kind="stable")
    ends = np.cumsum([0, *np.bincount(rows, minlength=N_ROWS)])
    made = sparse.csr_matrix((np.ones(n), np.array(columns)[order], ends), shape=(N_ROWS, 3))
    sparse.save_npz(place / "t.npz", made)
    place.joinpath("y.txt").write_text("u\nv\n" * (N_ROWS // 2))
    done, store = _ingested((place / "t.npz", "--target-file", place / "y.txt"), place)
    return _compared(done, store and _column(store, "f1"), made.toarray()[:, 1].tolist())


def _column(store: Any, name: str) -> Cells:
    """Return the values of a feature, None where missing."""
    import numpy as np

    position = list(store.names).index(name)
    stored = np.flatnonzero(np.asarray(store.array("positions")) == position)
    parts = [part for _, _, part in store.values().columns(stored)]
    return [None if np.isnan(cell) else cell for cell in np.concatenate(parts).tolist()]


KINDS = {
    "-9 beside genotypes": _minus_nine,
    "family 0": _family_0,
    "declared categories": _declared,
    "labels of one number": _one_number,
    "attributes of netCDF": _attributes,
    "repeats of a sparse matrix": _repeats,
}
