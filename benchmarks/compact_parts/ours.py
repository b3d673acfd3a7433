"""Ours on the training half of a table: a run with its defaults, its order, its nested sets."""

import subprocess
from contextlib import closing
from pathlib import Path

import numpy as np
from measured import find_srs_ooc
from numpy.typing import NDArray

from srs_ooc.ensemble.compaction import compact
from srs_ooc.ensemble.fold_runs import Site, nest_run
from srs_ooc.results.ranking import Ranking
from srs_ooc.runs.ledger import Ledger
from srs_ooc.store.store import Store

MEMORY_MB, MOST = 512, 50


def _run(source: Path, train: NDArray[np.intp], seed: int, folder: Path) -> tuple[Ledger, Site]:
    """Return a run that is done, and where it was made."""
    store, run, ids = folder / "table.zarr", folder / "a.run", folder / "rows"
    ids.write_text("\n".join(str(row + 1) for row in train.tolist()) + "\n")
    for command in (
        ["ingest", source, store],
        ["run", store, "--out", run, "--rows", ids, "--seed", seed, "--threads", 1,
         "--memory-mb", MEMORY_MB],
    ):  # fmt: skip
        arguments = [find_srs_ooc(), *map(str, command)]
        subprocess.run(arguments, check=True, capture_output=True)
    return Ledger(run, writable=True), Site(Store.open(store), MEMORY_MB, 1, lambda _: True)


def _columns(site: Site, stored: list[int]) -> list[int]:
    positions = site.store.array("positions").view(np.uint32)
    return [int(positions[feature]) for feature in stored]


def order(
    source: Path, train: NDArray[np.intp], seed: int, folder: Path
) -> tuple[list[int], list[int] | None]:
    """Return the first columns by rank."""
    ledger, site = _run(source, train, seed, folder)
    with closing(ledger):
        first = Ranking(ledger, site.store).top(MOST)
    return _columns(site, first.tolist()), None


def nested(
    source: Path, train: NDArray[np.intp], seed: int, folder: Path
) -> tuple[list[int], list[int] | None]:
    """Return the first columns of the nested sets."""
    ledger, site = _run(source, train, seed, folder)
    with closing(ledger):
        found = nest_run(ledger, site)
    assert found is not None
    return _columns(site, found[1].order[:MOST].tolist()), None


def compacted(
    source: Path, train: NDArray[np.intp], seed: int, folder: Path
) -> tuple[list[int], list[int] | None]:
    """Return the same, and the set chosen by five folds."""
    ledger, site = _run(source, train, seed, folder)
    with closing(ledger):
        found = compact(ledger, site, n_folds=5, n_repeats=1)
    assert found is not None
    first = _columns(site, found.order)
    return first[:MOST], first[: found.curve.smallest()]
