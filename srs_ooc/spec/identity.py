"""What identifies a run (law 4): the options as given, and the identity they become."""

import dataclasses
from dataclasses import dataclass
from math import ceil
from typing import Any, Self

from srs_ooc.errors import RunError
from srs_ooc.evidence.judges import Judge, PositiveJudge, ProbeJudge
from srs_ooc.kernel.tree import IMPORTANCE_BITS, TreeLimits
from srs_ooc.shares import exact_share

DEFAULT_FDR = "0.1"
UNWEIGHTED = "none"
NO_DECREASE = "0"
RANK = "rank"


@dataclass(frozen=True)
class Options:
    """Options as given; None where not given. Names are those of the command line."""

    alpha: str | None = None
    subspace_size: str | None = None
    max_features: str | int | None = None
    judge: str | None = None
    probe_min_draws: int | None = None
    probe_min_wins: str | None = None
    impurity: str | None = None
    max_depth: int | None = None
    min_samples_leaf: int | None = None
    seed: int | None = None
    round_size: int | None = None
    draw_block: int | None = None
    trees_per_subspace: int | None = None
    decoys: int | None = None
    replays: int | None = None
    fdr: str | None = None
    keep: int | None = None
    splitter: str | None = None
    thresholds: str | None = None
    min_impurity_decrease: str | None = None
    bootstrap: bool | None = None
    class_weight: str | None = None
    excluded: str | None = None
    rows: str | None = None


@dataclass(frozen=True)
class RunSpec:
    """The identity of a run: two runs with equal specs have equal results.

    ``subspace_size`` is q, ``max_features`` K, ``probe_min_draws`` L and ``probe_min_wins`` beta of
    the paper; ``alpha`` and ``probe_min_wins`` are kept as decimal text; ``excluded`` and ``rows``
    are digests of the excluded features and the training rows; C is drawn by blocks of
    ``draw_block`` neighbours in stored order, and ``trees_per_subspace`` trees are grown on each
    subspace (both 1 in the paper). ``min_impurity_decrease`` is decimal text, ``class_weight`` as
    :func:`srs_ooc.responses.training_response` takes it.
    """

    store: str
    method: str
    alpha: str
    subspace_size: int
    max_features: int
    judge: str
    probe_min_draws: int
    probe_min_wins: str
    impurity: str
    max_depth: int | None
    min_samples_leaf: int
    seed: int
    round_size: int
    excluded: str
    rows: str
    draw_block: int = 1
    trees_per_subspace: int = 1
    decoys: int = 0
    replays: int = 0
    fdr: str = DEFAULT_FDR
    keep: int = 0
    splitter: str = "random"
    min_impurity_decrease: str = NO_DECREASE
    bootstrap: bool = False
    class_weight: str = UNWEIGHTED
    thresholds: str = RANK

    def to_json(self) -> dict[str, Any]:
        """Return the spec as JSON-ready values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, record: Any) -> Self:
        """Return the spec that :meth:`to_json` wrote.

        Raises
        ------
        RunError
            If its fields are not those of a spec.
        """
        try:
            return cls(**record)
        except TypeError as error:
            raise RunError(f"the run's identity in its ledger is damaged: {error}.") from error

    @property
    def limits(self) -> TreeLimits:
        """How trees are grown."""
        return TreeLimits(
            self.max_features,
            self.max_depth,
            self.min_samples_leaf,
            self.impurity,
            _least_importance(self.min_impurity_decrease),
            self.splitter,
        )

    @property
    def concludes(self) -> bool:
        """Whether the verdict comes last, after a closing stage."""
        return self.judge == "decoy"

    def n_items(self, n_features: int) -> int:
        """Return how many items there are: the features and their decoys."""
        return (1 + self.decoys) * n_features

    @property
    def n_columns(self) -> int:
        """Columns of a block: those of a subspace, and the probe where there is one."""
        return self.subspace_size + (self.judge == "probe")

    def make_judge(self) -> Judge:
        """Return the relevance test by which features enter F.

        A run that concludes has none.
        """
        if self.judge == "positive":
            return PositiveJudge()
        return ProbeJudge(self.probe_min_draws, self.probe_min_wins)


def _least_importance(share: str) -> int:
    """Return the least importance, in units of ``2**-36``, that is no less than a share."""
    return ceil(exact_share(share) * (1 << IMPORTANCE_BITS))
