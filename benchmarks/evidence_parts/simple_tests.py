"""The simple test that is told the design, feature by feature, and Benjamini and Hochberg."""

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from evidence_parts.designs import Labels, Table, Values


def _fisher(column: Values, target: Labels) -> float:
    seen = np.array([[np.sum((column > 0) & (target == c)) for c in (0, 1)]])
    classes = np.array([np.sum(target == 0), np.sum(target == 1)])
    return float(stats.fisher_exact(np.vstack([seen, classes - seen]))[1])


def _rank_sum(column: Values, target: Labels) -> float:
    known = ~np.isnan(column)
    values, labels = column[known], target[known]
    return float(stats.mannwhitneyu(values[labels == 1], values[labels == 0]).pvalue)


def _kruskal(column: Values, target: Labels) -> float:
    if np.ptp(column) == 0:
        return 1.0
    return float(stats.kruskal(*(column[target == c] for c in np.unique(target))).pvalue)


def _missing(column: Values, target: Labels) -> float:
    return _fisher(np.isnan(column).astype(np.float64), target)


def _spread(column: Values, target: Labels) -> float:
    return _rank_sum(np.abs(column - np.median(column)), target)


def _paired(column: Values, _: Labels) -> float:
    return float(stats.wilcoxon(column[1::2] - column[0::2]).pvalue)


TESTS = {
    "fisher": _fisher,
    "kruskal": _kruskal,
    "missing": _missing,
    "paired": _paired,
    "rank-sum": _rank_sum,
    "spread": _spread,
}
"""By the name that a design gives."""


def selected_by_test(table: Table, level: float) -> NDArray[np.intp]:
    """Return the features whose p-values pass Benjamini and Hochberg at the level."""
    p_values = np.array([TESTS[table.test](column, table.target) for column in table.values.T])
    passing = stats.false_discovery_control(np.nan_to_num(p_values, nan=1.0)) <= level
    return np.flatnonzero(passing)
