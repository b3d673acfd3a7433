"""What a run shows of a feature beside another: the halves of both, and the target in each cell."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.arrays import Bools, Indices, Integers, Ints
from srs_ooc.evidence.conditional_tests import MOST_ROWS, halves
from srs_ooc.evidence.effects import interaction, wide_enough
from srs_ooc.results.ranking import Ranking
from srs_ooc.runs.feature_tests import NOBODY, columns_of, some_rows
from srs_ooc.runs.task import Task
from srs_ooc.runs.verdict import none_if_nan
from srs_ooc.store.store import Store

AT_ONCE = 32
"""Features whose columns, and those of the others, are held together."""


@dataclass(frozen=True)
class PairRecord:
    """A feature that shows more beside another than alone; None where a value is not defined.

    ``beside`` names the other, by the halves of which the rows were parted. Where there are two
    others, a feature has two lines: one ``within`` each half of the second. ``q_value`` is that of
    the verdict, ``p_value`` that of the test beside the others, times the number of ways to choose
    them, over the share of the level that they have.

    The rest is of the rows that were tested, all features known. ``low_high`` and the like are the
    share of a class, or the mean, as ``measure`` says, where the feature is in its lower half and
    the other in its upper half; ``n_low_high`` counts the rows. ``effect`` is the difference of
    differences (high_high - high_low) - (low_high - low_low), within strata where there are some,
    and ``low`` and ``high`` are the ends of its interval, as wide as those of features: from the
    rows that were searched, so too large on average. Of more than two classes it is that with the
    largest effect.
    """

    name: str
    beside: str
    within: str | None
    selected: bool
    q_value: float
    p_value: float | None
    measure: str
    effect: float | None
    low: float | None
    high: float | None
    low_low: float | None
    low_high: float | None
    high_low: float | None
    high_high: float | None
    n_low_low: int
    n_low_high: int
    n_high_low: int
    n_high_high: int


class Pair(NamedTuple):
    """A pair, and the rows that its record is of.

    Attributes
    ----------
    record : PairRecord
        What they show.
    codes : uint8 or uint16 (2, n_rows)
        Of the feature, and of the other.
    cells : int (n_rows,)
        Twice whether the feature is in its upper half, and whether the other is.
    values : bool or float64 (n_rows,)
        Which rows are of the class, or the target's numbers.
    """

    record: PairRecord
    codes: NDArray[Any]
    cells: Ints
    values: NDArray[Any]


def pairs_of(
    reading: Ranking, given: Task, store: Store, *, only_selected: bool = False
) -> Iterator[Pair]:
    """Yield the pairs of the verdict of a run, those of selected features first, or alone.

    Parameters
    ----------
    reading : Ranking
        Of the run.
    given : Task
        The rows trained on, and what each says.
    store : Store
        The run's store.
    only_selected : bool
        Pairs of others are left out.

    Raises
    ------
    StoreError
        If the store cannot be read, or was replaced.
    """
    verdict = reading.verdict
    if verdict is None:
        return
    rows = verdict.table[verdict.table["beside"][:, 0] != NOBODY]
    chosen = verdict.selected()
    others = rows["stored"][~rows["selected"] & (not only_selected)]
    features = np.concatenate([chosen[np.isin(chosen, rows["stored"])], others])
    is_shown = verdict.table["selected"] | (
        verdict.table["p_value"] <= verdict.facts["marginal_cutoff"]
    )
    z = wide_enough(int(np.count_nonzero(is_shown)), reading.n_candidates)
    task = given.by_group()
    tested = some_rows(task.n_rows, MOST_ROWS)
    for start in range(0, len(features), AT_ONCE):
        rows = np.array([verdict.row(f) for f in features[start : start + AT_ONCE].tolist()])
        every = np.unique(np.append(rows["stored"], rows["beside"]))
        every = every[every != NOBODY]
        codes, missing_code = codes_of(store, task, every, tested)
        for row in rows:
            together = [int(row["stored"]), *(o for o in row["beside"].tolist() if o != NOBODY)]
            columns = codes[np.searchsorted(every, together)]
            names = [reading.name(stored) for stored in together]
            p_value = verdict.facts.get("p_beside", {}).get(str(together[0]))
            said = bool(row["selected"]), float(row["q_value"]), p_value
            for within, is_in, cells in _parts(columns, missing_code, names):
                values = _values(store.manifest.target_name, task, tested[is_in])
                strata = None if task.strata is None else task.strata[tested[is_in]]
                found = {what: interaction(v, cells, strata, z) for what, v in values.items()}
                what = max(found, key=lambda name: np.nan_to_num(abs(found[name].effect), nan=-1.0))
                counts = np.bincount(cells, minlength=4).tolist()
                sums = np.bincount(cells, values[what], 4).tolist()
                means = [total / n if n else None for total, n in zip(sums, counts, strict=True)]
                measured = what, *map(none_if_nan, found[what]), *means, *counts
                record = PairRecord(names[0], names[1], within, *said, *measured)
                yield Pair(record, columns[:2, is_in], cells, values[what])


def codes_of(
    store: Store, task: Task, features: Integers, tested: Indices
) -> tuple[NDArray[Any], int]:
    """Return codes of features in rows, or groups, of a task, and how many codes are not missing.

    uint16 (n_features, n_tested); of groups the order of their mean ranks.
    """
    units, rows = task.units, task.rows
    wanted = tested if units is None else np.arange(units.n_rows)
    stored = (wanted if rows is None else rows[wanted]).astype(np.int32)
    found = np.empty((len(features), len(tested)), np.uint16)
    for places, columns in columns_of(store, features, stored, units):
        found[places] = columns if units is None else columns[:, tested]
    return found, (units or store.manifest).missing_code


def _parts(
    columns: NDArray[Any], missing_code: int, names: list[str]
) -> Iterator[tuple[str | None, Bools, Ints]]:
    """Yield within what rows are looked at, which these are, and their cells."""
    high = halves(columns, missing_code)
    is_known: Bools = np.all(columns < missing_code, axis=0)
    cells = 2 * high[0].astype(np.int64) + high[1]
    if len(columns) == 2:
        yield None, is_known, cells[is_known]
        return
    for which, half in (("lower", ~high[2]), ("upper", high[2])):
        is_in = is_known & half
        yield f"{which} half of {names[2]}", is_in, cells[is_in]


def _values(title: str, task: Task, rows: Indices) -> dict[str, NDArray[Any]]:
    """Return numbers to show of rows, by name, or which are of each class, of two the last."""
    target, classes = task.target[rows], task.classes
    if not classes:
        named = "mean score" if task.is_scored else f"mean of {title}"
        return {named: target.astype(np.float64)}
    shown = range(1 if len(classes) == 2 else 0, len(classes))
    return {f"share of {classes[k]}": target == k for k in shown}
