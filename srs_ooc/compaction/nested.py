"""The stage that nests small sets: clusters of candidates, and the order of their representatives.

Of features that can stand in for one another the most important one is kept. What is left is
ordered twice: by importance in the screen, where a feature has mostly irrelevant features beside
it, and by elimination, halving after halving down to single features, where it has its rivals
beside it. The order is by the product of the two ranks; the first k of it are the set of k
features. What is not selected comes last: after the representatives of the selected, and those they
stand for.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srs_ooc.evidence.correlation import HEAD, MOST_ROWS, RankColumns, lead, sampled_rows
from srs_ooc.runs.engine import Engine
from srs_ooc.runs.ledger import TransientLedger
from srs_ooc.runs.resources import Resources, item_columns
from srs_ooc.runs.run_verdict import Candidates
from srs_ooc.samplers.elimination import TREES, Elimination, Manner

NESTING = Manner(((0.3, 0.7),), 0.0)
"""How the rounds of the elimination are grown."""
CODES_NBYTES = 1 << 25
"""Bytes of codes that correlations are computed from, at most."""


@dataclass(frozen=True)
class Nested:
    """Nested sets of features.

    Attributes
    ----------
    order : uint32 (m,)
        Stored positions, representatives of the selected first; the set of k is the first k.
    features, leaders : uint32 (n,)
        All candidates, the most important first, and the representative of each.
    """

    order: NDArray[np.uint32]
    features: NDArray[np.uint32]
    leaders: NDArray[np.uint32]

    def stand_ins(self, feature: int) -> list[int]:
        """Return the other members of a representative's cluster, the most important first."""
        members = self.features[self.leaders == feature]
        return [int(member) for member in members if member != feature]


def sampled_nbytes(n: int, n_rows: int, code_nbytes: int) -> int:
    """Return the bytes that clustering ``n`` candidates takes."""
    n_sampled = _n_sampled(n, n_rows, code_nbytes)
    return 2 * n * n_sampled * code_nbytes + RankColumns.nbytes(n, n_sampled, code_nbytes)


def _n_sampled(n: int, n_rows: int, code_nbytes: int) -> int:
    return min(n_rows, MOST_ROWS, max(1, CODES_NBYTES // (n * code_nbytes)))


def nest(
    parts: Resources,
    candidates: Candidates,
    key: int,
    keep_going: Callable[[int, int], bool],
) -> Nested | None:
    """Return nested sets of candidates; None if ``keep_going(done, total)`` says no.

    Parameters
    ----------
    parts : Resources
        With room for ``HEAD`` columns, and as many rows as are trained on.
    candidates : Candidates
        Of the run.
    key : int
        64-bit key of the stage.
    keep_going : callable
        Told how many trees are done, of how many.
    """
    features = candidates.features
    leader = lead(columns_of(parts, features), np.arange(len(features)))
    first = features[leader == np.arange(len(features))][:HEAD]
    most = min(parts.spec.subspace_size, len(first))
    stage = Elimination(first, key, NESTING, most, fewest=2)
    with parts.closing_executor(0, most) as executor:
        engine = Engine(stage, executor, TransientLedger(), seed=key, round_size=TREES)
        engine.advance(stage.n_trees, lambda: keep_going(engine.iteration, stage.n_trees))
    if not stage.is_over:
        return None
    order = selected_first(pooled_order(first, stage.items), candidates)
    return Nested(order, features, features[leader])


def selected_first(
    representatives: NDArray[np.uint32], candidates: Candidates
) -> NDArray[np.uint32]:
    """Return selected representatives, other selected ones by importance, the rest; HEAD of all."""
    selected = candidates.features[candidates.is_selected]
    is_selected = np.isin(representatives, selected)
    others = selected[~np.isin(selected, representatives)]
    last = representatives[~is_selected]
    return np.concatenate([representatives[is_selected], others, last])[:HEAD]


def pooled_order(first: NDArray[np.uint32], second: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Order the same features by the product of their ranks in two orders, ties by the first."""
    rank = {feature: i for i, feature in enumerate(second.tolist(), 1)}
    products = [i * rank[feature] for i, feature in enumerate(first.tolist(), 1)]
    return first[np.argsort(products, kind="stable")]


def columns_of(parts: Resources, features: NDArray[np.uint32]) -> RankColumns:
    """Return the codes of features, of rows few enough to be held."""
    n_rows, manifest = parts.n_rows, parts.manifest
    rows = sampled_rows(n_rows, _n_sampled(len(features), n_rows, manifest.code_nbytes))
    pieces = [columns[:, rows] for columns in item_columns(parts, features)]
    return RankColumns(np.concatenate(pieces), manifest.missing_code)
