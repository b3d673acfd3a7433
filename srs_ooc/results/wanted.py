"""Which features are exported: the selected ones, the first by rank, or those that are named."""

from pathlib import Path
from shlex import quote

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import Budget
from srs_ooc.base.errors import RunError, UsageError
from srs_ooc.results.export_store import COLUMN_NBYTES
from srs_ooc.results.ranking import Reading
from srs_ooc.runs.inputs import LOOKING_NBYTES, SideFile, read_lines
from srs_ooc.runs.ledger import Ledger
from srs_ooc.store.store import Store


def check_one(top: int | None, names: object) -> None:
    """Refuse both ways of saying which features at once, and fewer than one.

    Raises
    ------
    UsageError
        If both are given, or ``top`` is below 1.
    """
    if top is not None and names is not None:
        raise UsageError("expected --top or --names, found both. Leave one out.")
    if top is not None and top < 1:
        raise UsageError(f"--top: expected at least 1, found {top}.")


def ranked_positions(ledger: Ledger, reading: Reading, top: int | None) -> NDArray[np.int64]:
    """Return the source positions of the selected features, or of the ``top`` first, best first.

    Raises
    ------
    RunError
        If there are none.
    """
    stored = reading.selected() if top is None else reading.top(top)
    if len(stored) == 0:
        raise _none(ledger, reading)
    return reading.positions[stored].astype(np.int64)


def _none(ledger: Ledger, reading: Reading) -> RunError:
    run, n = ledger.run, reading.n_iterations
    if reading.ranks_only:
        return RunError(
            f"{run}: expected selected features to export, found a run that only ranks features. "
            "Export the best of them with --top."
        )
    if reading.is_provisional:
        return RunError(
            f"{run}: expected a run with its verdict, found one after {n} iterations that has none "
            f"yet. Wait for it, go on with `srs-ooc resume {quote(str(run))}`, or export the best "
            "by rank so far with --top."
        )
    return RunError(
        f"{run}: expected selected features to export, found none after {n} iterations. Export the "
        "best by rank with --top."
    )


def named_positions(store: Store, file: Path, cap_nbytes: int) -> NDArray[np.int64]:
    """Return the source positions of the features that a file names, in its order.

    Raises
    ------
    UsageError
        If a line is no feature, or a name comes twice.
    BudgetError
        If the cap cannot hold the names.
    """
    side = SideFile.of(file, "feature", store.n_features)
    budget = Budget(cap_nbytes)
    budget.grant(f"{side.n_lines} names", COLUMN_NBYTES * side.n_lines + LOOKING_NBYTES)
    budget.check()
    names = [line.decode() for line in read_lines(file, "feature")]
    found = store.names.find(names)
    absent = np.flatnonzero(found < 0)
    if len(absent):
        raise UsageError(
            f"{file}: expected every line to be a feature of the store, found {len(absent)} that "
            f"are not (first: {names[int(absent[0])][:80]!r}). `srs-ooc inspect STORE --names` "
            "lists them."
        )
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(
            f"{file}: expected each feature once, found {twice[:80]!r} more often. Leave it there "
            "once."
        )
    return found
