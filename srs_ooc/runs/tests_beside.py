"""The tests of a run's features beside one another: which are looked at, in which rows."""

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from srs_ooc.base.records import Step
from srs_ooc.base.seeds import derive_array
from srs_ooc.evidence.conditional_tests import (
    MOST_ROWS,
    PAIRS_ROWS,
    Halved,
    beside_others,
    best_pairs,
    can_scan,
    cost,
    n_looked_at,
)
from srs_ooc.evidence.tally import largest
from srs_ooc.runs.resources import TESTS, MarginalTests, UnitTable

NOBODY = 2**32 - 1
"""In place of a stored position, where there is no other feature."""


def strongest(strengths: NDArray[np.float32], key: int, most: int) -> NDArray[np.uint32]:
    """Return at most so many features, strongest first; those of NaN are left out.

    ``key``: breaks ties.
    """

    def scores(piece: slice) -> NDArray[np.float64]:
        found = strengths[piece].astype(np.float64)
        return np.where(np.isnan(found), -np.inf, found)

    features = largest(scores, len(strengths), most, key)
    return features[~np.isnan(strengths[features])]


def strongest_alone(
    tests: MarginalTests, strengths: NDArray[np.float32], key: int
) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
    """Return as many features as are looked at beside one another, the strongest alone first.

    And their strengths. Those given are by equal shares of the contrasts: no feature has a part in
    those of others.
    """
    n_rows, n_scores = min(tests.table.task.n_rows, MOST_ROWS), tests.table.target().n_scores
    features = strongest(strengths, key, n_looked_at(n_rows, n_scores))
    return features, strengths[features]


def add_tests_beside(
    tests: MarginalTests,
    strengths: NDArray[np.float32],
    leaders: tuple[NDArray[np.uint32], NDArray[np.float32]],
    closing: NDArray[np.uint32],
) -> dict[int, list[int]]:
    """Test the most promising features beside one another.

    Looked at are, of as many as :func:`srs_ooc.evidence.conditional_tests.n_looked_at` allows,
    those that are strongest alone, one half; those of the best pairs, where there are not too many
    features to look at all pairs; and those that are best in the closing stage.

    Parameters
    ----------
    tests : MarginalTests
        Of each feature alone.
    strengths : float32 (n_features,)
        Of each feature alone; NaN where it is left out. Becomes that of its strongest test, less
        the cost of choosing it.
    leaders : uint32 (m,) and float32 (m,)
        As of :func:`strongest_alone`.
    closing : uint32 (n,)
        Features by their place in the closing stage.

    Returns
    -------
    dict
        For each feature that shows most beside others, the stored positions of these; ``NOBODY``
        where there is one only.
    """

    def tell(done: int, total: int) -> None:
        tests.tell(Step(f"{TESTS} beside others", done, total, unit="partitions"))

    n_tested = int(np.count_nonzero(~np.isnan(strengths)))
    table = tests.table
    rows = _some_rows(table.task.n_rows, MOST_ROWS)
    target = table.target(rows)
    most, first = len(leaders[0]), leaders[0]
    if most < n_tested:  # a half, so that others may be among those looked at
        first = first[: most // 2]
    strengths -= np.float32(cost(0, n_tested))
    with ThreadpoolController().limit(limits=1):  # sums this short take longer on several
        if most < n_tested and can_scan(n_tested, min(len(rows), PAIRS_ROWS), target.n_scores):
            tests.tell()
            closing = np.concatenate([of_best_pairs(table, strengths), closing])
            tests.tell()
        features = _promising(leaders[0], len(first), closing)
        codes, missing_code = _codes_of(table, features, rows)
        alone = strengths[features].astype(np.float64)
        shares = tests.shares_of(features)
        kinds = table.categorical(features)
        places = np.searchsorted(features, first)
        known = leaders[1][: len(first)].astype(np.float64) - cost(0, n_tested)
        found = beside_others(
            codes, missing_code, target, alone, (places, known), n_tested, shares, kinds, tell
        )
    wins = np.flatnonzero(found.strengths > alone)
    strengths[features[wins]] = found.strengths[wins]
    others = np.append(features.astype(np.int64), NOBODY)[found.others[wins]]
    return dict(zip(features[wins].tolist(), others.tolist(), strict=True))


def _some_rows(n_rows: int, most: int) -> NDArray[np.intp]:
    """Return rows, one of each of ``most`` stretches; all where there are no more.

    Which one is as good as random: rows that come in turns are not all of one kind.
    """
    ends = np.arange(most + 1) * n_rows // most if n_rows > most else np.arange(n_rows + 1)
    sizes = np.diff(ends).astype(np.uint64)
    return (ends[:-1] + derive_array(0, np.arange(len(sizes))) % sizes).astype(np.intp)


def of_best_pairs(table: UnitTable, strengths: NDArray[np.float32]) -> NDArray[np.uint32]:
    """Return the features of the best of all pairs."""
    features = np.flatnonzero(~np.isnan(strengths)).astype(np.uint32)
    rows = _some_rows(table.task.n_rows, PAIRS_ROWS)
    halved = Halved(len(rows))
    for columns in table.columns(features):
        halved.add(columns[:, rows], table.missing_code)
    return features[best_pairs(halved, table.target(rows))]


def _promising(
    leaders: NDArray[np.uint32], n_first: int, closing: NDArray[np.uint32]
) -> NDArray[np.uint32]:
    """Return the features that are looked at beside one another, ascending.

    As many as ``leaders``: the first of these, the best of the closing stage, the next of these.
    """
    first, rest = leaders[:n_first], leaders[n_first:]
    best = closing[~np.isin(closing, first)]
    best = best[np.sort(np.unique(best, return_index=True)[1])][: len(rest)]
    rest = rest[~np.isin(rest, best)][: len(rest) - len(best)]
    return np.sort(np.concatenate([first, best, rest]))


def _codes_of(
    table: UnitTable, features: NDArray[np.uint32], rows: NDArray[np.intp]
) -> tuple[NDArray[np.integer], int]:
    """Return the codes of features in some rows, and from which code on values are missing."""
    codes = np.concatenate([columns[:, rows] for columns in table.columns(features)])
    missing_code = table.missing_code
    if codes.itemsize == 1:
        return codes, missing_code
    for column in codes:  # as few as are in use, or a test would take room for all there can be
        is_known = column < missing_code
        column[is_known] = np.unique(column[is_known], return_inverse=True)[1]
        column[~is_known] = len(rows)
    return codes, len(rows)
