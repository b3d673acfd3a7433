"""How alike the selected features are: rank correlations of the first, and their clusters.

With a verdict the first are those at the top of the ranking that it cuts: the list that is shown
puts near copies late, and a map of its head would hardly show any.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.evidence.correlation import ALIKE, MOST_ROWS, RankColumns, lead
from srs_ooc.report.source import Source

MAPPED = 40
"""Features of the map at most."""


@dataclass(frozen=True)
class Correlations:
    """The first listed features, in an order that puts clusters together.

    Attributes
    ----------
    names : list of str
        Of the features.
    ranks : list of int
        Their places in the list, from 1.
    absolute : list of list of float
        Absolute rank correlations.
    clusters : list of int
        Cluster of each, from 1: features that can stand in for the best of it.
    least : float
        Absolute correlation with the best of a cluster from which a feature joins it.
    """

    names: list[str]
    ranks: list[int]
    absolute: list[list[float]]
    clusters: list[int]
    least: float


def correlations_of(source: Source) -> Correlations:
    """Return the map of correlation among the first listed features."""
    features = _mapped(source)
    rows = source.rows_looked_at(MOST_ROWS)
    codes = np.zeros((len(features), len(rows)), source.manifest.code_dtype)
    for places, some in source.columns(features, rows):
        codes[places] = some
    columns = RankColumns(codes, source.manifest.missing_code)
    everyone = np.arange(len(features))
    leaders = lead(columns, everyone)
    order = np.lexsort((everyone, leaders))
    among = source.selected if len(source.selected) else source.listed
    absolute = np.sqrt(columns.squared(order, order))
    clusters = np.unique(leaders[order], return_inverse=True)[1] + 1
    return Correlations(
        [source.reading.name(int(f)) for f in features[order]],
        [int(np.flatnonzero(among == f)[0]) + 1 for f in features[order]],
        [[round(float(r), 3) for r in row] for row in absolute],
        [int(c) for c in clusters],
        ALIKE,
    )


def _mapped(source: Source) -> NDArray[np.integer[Any]]:
    verdict = source.reading.verdict
    if verdict is None or not verdict.n_selected:
        return source.listed[:MAPPED]
    return verdict.features[verdict.is_selected][:MAPPED]
