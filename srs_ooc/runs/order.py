"""The order in which a run's features are shown: by what they are worth together."""

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.evidence.correlation import HEAD, RankColumns, by_worth, sampled_rows
from srs_ooc.evidence.tally import mean_importance
from srs_ooc.runs.candidates import Candidates, tally_of
from srs_ooc.runs.item_tests import item_columns
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.resources import Resources
from srs_ooc.runs.search import TALLY

ROWS = 1024
"""Rows that correlations are computed from, at most: they tell 0.1 from 0, which is enough here."""


def first_by_worth(
    resources: Resources, ledger: Ledger, selected: NDArray[np.uint32]
) -> NDArray[np.uint32]:
    """Return the stored positions of the features to show first, at most ``HEAD`` unless selected.

    Selected features come before all others. The ``HEAD`` most important are ordered by what they
    are worth together (:func:`srs_ooc.evidence.correlation.by_worth`); further selected ones follow
    by importance. All that are not here follow by importance too.

    Parameters
    ----------
    resources : Resources
        Of the run.
    ledger : Ledger
        With the tallies of its screen.
    selected : uint32 (n,)
        Stored positions.
    """
    spec = resources.spec
    tally = tally_of(spec, resources.n_features)
    ledger.load({TALLY: tally})
    found = Candidates.of(
        tally,
        selected,
        resources.n_features,
        key_of(spec.seed),
        wanted=HEAD,
        most=len(selected),
    )
    importance = mean_importance(tally, found.features[:HEAD])
    del tally
    head = found.features[:HEAD]
    if not len(head):
        return head
    columns = _columns_of(resources, head)
    tie = key_of(spec.seed, Purpose.RANK_TIE)
    places = by_worth(importance, columns, head, tie, found.is_selected[:HEAD])
    return np.concatenate([head[places], found.features[HEAD:]])


def _columns_of(resources: Resources, features: NDArray[np.uint32]) -> RankColumns:
    rows = sampled_rows(resources.n_rows, ROWS)
    pieces = [columns[:, rows] for columns in item_columns(resources, features)]
    return RankColumns(np.concatenate(pieces), resources.manifest.missing_code)
