"""Options of Random Subspace Ensemble, and what follows from them before a run starts."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import exp, isqrt
from typing import Any, ClassVar, Self

from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import Choice, Number, Share, Whole, exact_share, option
from srs_ooc.base.text import ceil_div
from srs_ooc.samplers.base import IMPORTANCE, Sampler
from srs_ooc.samplers.ensemble import Ensemble
from srs_ooc.samplers.held_out_options import (
    folds_for,
    folds_option,
    models_option,
    validation_share_option,
)
from srs_ooc.samplers.method import Fits, Ground, Method
from srs_ooc.samplers.prs_loss import Truth
from srs_ooc.samplers.rase import RandomSubspaceEnsemble
from srs_ooc.samplers.rase_search import (
    CROSS_VALIDATION,
    EBIC,
    OUT_OF_BAG,
    RIC,
    VALIDATION,
    Search,
    batch_size,
)
from srs_ooc.samplers.rase_votes import HALF, TRAINING, Votes
from srs_ooc.samplers.screened import Screened, ScreenParams

FEATURE_NBYTES = 8
"""Bytes for each feature, beyond those that every run may keep (law 11): its eta."""
MEMBER_NBYTES = 160
"""Bytes for each member of a batch of subspaces, those of the batches proposed ahead included."""
CRITERIA = (CROSS_VALIDATION, OUT_OF_BAG, VALIDATION, RIC, EBIC)


@dataclass(frozen=True, kw_only=True)
class RaseParams(ScreenParams):
    """Options of Random Subspace Ensemble; defaults are those of the PRS paper."""

    models: int = models_option()
    candidates: int = option(
        Whole(1, 100_000), "B2: subspaces of which the best is each model's.", default=500,
        metavar="B2",
    )  # fmt: skip
    max_size: int = option(
        Whole(1, 10_000),
        "D: a subspace has from 1 to D features, each size as likely.",
        default=0,
        default_text="the root of the training rows, rounded down; at most all features",
        metavar="D",
    )
    rounds: int = option(
        Whole(1, 1000), "Rounds, counted from the first, which draws uniformly.", default=10,
        metavar="N",
    )  # fmt: skip
    criterion: str = option(
        Choice(CRITERIA),
        "What chooses the best subspace: the models' held-out loss by cv (cross-validation), oob "
        "(rows left out of samples with replacement) or validation (the rows held out); or, of the "
        "training rows, ric (ratio information criterion; --model lda, qda or knn, two classes) or "
        "ebic (extended BIC; --model linear).",
        default=CROSS_VALIDATION,
    )
    ebic_gamma: str = option(
        Share(),
        "With --criterion ebic, a column costs log n + 2 gamma log p: 0 is BIC.",
        default="0",
        metavar="GAMMA",
    )
    folds: int = folds_option()
    floor: str = option(
        Number(),
        "C0: features in no more than C0 / log p of the kept subspaces weigh C0 / p in the next "
        "round.",
        default="0.1",
        metavar="C0",
    )
    vote_cutoff: str = option(
        Choice((HALF, TRAINING)),
        "Share of votes above which the second of two classes is said: half, or the one that errs "
        "least on the training rows.",
        default=HALF,
    )
    validation_share: str = validation_share_option()

    @classmethod
    def settle(cls, given: Mapping[str, Any], table: Any) -> Self:
        """Settle the options; D follows from the rows that are not held out by share."""
        named = {"validation_share": "0"} if "validation" in given else {}
        params = super().settle(dict(given) | named, table)
        if not params.has_folds and "folds" in given:
            by = "of one split" if params.criterion == VALIDATION else "of all training rows"
            raise UsageError(
                f"--folds: expected with --criterion cv or oob, found {params.criterion}, which is "
                f"computed {by}. Leave it out."
            )
        if params.criterion != EBIC and "ebic_gamma" in given:
            raise UsageError(
                f"--ebic-gamma: expected with --criterion {EBIC} only, found {params.criterion}. "
                "Leave it out, or choose that."
            )
        if float(params.floor) == 0:
            raise UsageError(
                "--floor: expected a number above 0, found 0. A feature that no kept subspace held "
                "would never be drawn again."
            )
        if exact_share(params.validation_share) > exact_share("0.5"):
            raise UsageError(
                f"--validation-share: expected at most 0.5, found {params.validation_share}. "
                "Or name rows with --validation-rows."
            )
        if params.criterion == VALIDATION and not named and params.validation_share == "0":
            raise UsageError(
                "--criterion validation: expected rows held out, found --validation-share 0. Hold "
                "some out, or choose cv or oob."
            )
        if params.vote_cutoff == TRAINING and table.n_classes != 2:
            raise UsageError(
                "--vote-cutoff training: expected two classes, found "
                f"{'a regression' if table.n_classes == 1 else table.n_classes}. Leave it out."
            )
        largest = min(params.n_learnt(table.n_candidates), isqrt(params.n_training(table.n_rows)))
        return replace(
            params,
            max_size=params.max_size or max(1, largest),
            folds=0 if params.is_information else params.folds,
        )

    @property
    def has_folds(self) -> bool:
        """Whether subspaces are judged by folds, or by as many samples of the rows."""
        return self.criterion in (CROSS_VALIDATION, OUT_OF_BAG)

    @property
    def is_information(self) -> bool:
        """Whether a criterion of the training rows chooses, and no model is fitted for it."""
        return self.criterion in (RIC, EBIC)

    def n_training(self, n_rows: int) -> int:
        """Return the rows that are not held out by share."""
        return n_rows - round(float(self.validation_share) * n_rows)

    def default_subspace(self, n_candidates: int) -> int:
        """Return room for all subspaces of a model at once."""
        room = min(self.n_learnt(n_candidates), self.candidates * self.max_size)
        return max(room, self.screen_size(n_candidates))

    def check(self, n_rows: int, n_candidates: int, subspace_size: int) -> None:
        """Check that a subspace fits q, and that each fold has rows."""
        if self.max_size > subspace_size:
            raise UsageError(
                f"--max-size: expected at most {subspace_size} (the features paged in at a time), "
                f"found {self.max_size}. Raise --subspace-size or --memory-mb, or lower it."
            )
        if self.max_size > (n_learnt := self.n_learnt(n_candidates)):
            raise UsageError(
                f"--max-size: expected at most {n_learnt} (the features learnt on), found "
                f"{self.max_size}. Raise --screen, or lower it."
            )
        n_training = self.n_training(n_rows)
        if self.criterion == CROSS_VALIDATION and n_training < 2 * self.folds:
            raise UsageError(
                f"--folds: expected at least two rows for each fold, found {self.folds} folds of "
                f"{n_training} rows. Choose fewer folds."
            )

    def state_nbytes(self, n_rows: int, n_features: int) -> int:
        """Return the bytes of eta, of kept subspaces, of batches and of votes."""
        members = min(self.candidates, 100_000) * self.max_size
        kept = 3 * 8 * self.models * self.max_size
        rows = n_rows * (64 + 40 * self.folds)
        own = FEATURE_NBYTES * self.n_learnt(n_features) + MEMBER_NBYTES * members + kept + rows
        return own + self.screen_nbytes(n_features)

    def most_iterations(self, n_candidates: int, subspace_size: int) -> tuple[int, str]:
        """Return the iterations of all rounds."""
        each = self.models * (self._n_batches(n_candidates, subspace_size) + 1)
        n_first = self.n_screen_trees(n_candidates, subspace_size)
        first = f"{n_first:,} trees of the screen, then " if n_first else ""
        return n_first + each * self.rounds, (
            f"{first}{self.rounds} rounds of {self.models:,} models, each the best of "
            f"{self.candidates:,} subspaces; it ends by itself"
        )

    def fits(self, n_candidates: int, subspace_size: int) -> Fits:
        """Return the models of an iteration, were no subspace given up, and its criteria."""
        n_batches = self._n_batches(n_candidates, subspace_size)
        if self.is_information:
            n_each = n_batches + 1
            return Fits(1 / n_each, self.max_size, self.candidates / n_each)
        n_splits = 1 if self.criterion == VALIDATION else self.folds
        n_models = (self.candidates * n_splits + 1) / (n_batches + 1)
        return Fits(n_models, self.max_size)

    def _n_batches(self, n_candidates: int, subspace_size: int) -> int:
        sizes = self.candidates, self.max_size, self.n_learnt(n_candidates)
        return ceil_div(self.candidates, batch_size(*sizes, subspace_size))

    @property
    def coverage(self) -> float:
        """Features drawn in a round, on average: B1 B2 (D + 1) / 2."""
        return self.models * self.candidates * (self.max_size + 1) / 2

    def notes(self, n_rows: int, n_candidates: int, n_copies: int) -> tuple[str, ...]:
        """Say so where a screen leaves nothing out, and where a round sees too few features."""
        said = self.no_screen(n_candidates)
        if (n_learnt := self.n_learnt(n_candidates)) <= self.coverage:
            return said
        unseen = exp(-self.coverage / n_learnt)
        return (
            *said,
            f"--method rase: a round draws about {self.coverage:,.0f} features, fewer than the "
            f"{n_learnt:,} there are: about {unseen:.0%} of them are never seen in the first "
            "round, and later rounds draw mostly what it kept. Raise --models, --candidates or "
            "--max-size, or learn on fewer, such as --screen 1000.",
        )


class ScreenedRase(Screened):
    """The features that a screen ranks first, and then the best small subspaces of them."""

    name: ClassVar[str] = RandomSubspaceEnsemble.name
    needs: ClassVar[frozenset[str]] = RandomSubspaceEnsemble.needs | {IMPORTANCE}


def _make(params: RaseParams, ground: Ground) -> Sampler:
    response = ground.response
    assert response is not None, "a run has a response"
    folds = folds_for(ground, max(2, params.folds), params.validation_share)
    if params.screens(ground.n_candidates):
        return ScreenedRase(params, ground, folds.training, partial(_make, params))
    return RandomSubspaceEnsemble(
        Search(
            params.models,
            params.candidates,
            params.max_size,
            params.rounds,
            params.criterion,
            params.folds,
            float(params.floor),
            float(params.ebic_gamma),
        ),
        Votes(
            Truth.of(response, folds.training),
            response.n_classes,
            folds.training,
            folds.validation,
            params.vote_cutoff,
        ),
        response.labels,
        ground.n_items,
        ground.n_candidates,
        ground.candidates,
        ground.subspace_size,
        ground.key,
    )


def _ensemble(params: RaseParams, facts: Mapping[str, Any]) -> Ensemble | None:
    """Return that the kept subspaces of the best round predict, as they voted."""
    if not facts.get("losses"):
        return None
    first = int(facts["best_round"]) * params.models
    return Ensemble(first, params.models, votes=True, cutoff=float(facts["cutoff"]))


RASE = Method(
    "Random Subspace Ensemble: the best of many small subspaces, round after round",
    RaseParams,
    _make,
    judges=("none",),
    learner={"splitter": "best"},
    ranks_by=RandomSubspaceEnsemble.name,
    state_nbytes=RaseParams.state_nbytes,
    default_subspace=RaseParams.default_subspace,
    least_subspace=lambda params: int(params.max_size),
    check=RaseParams.check,
    splits_rows=True,
    ensemble=_ensemble,
    judges_candidates=True,
    any_model=True,
    fits=RaseParams.fits,
    criterion=lambda params: str(params.criterion),
    most_iterations=RaseParams.most_iterations,
    notes=RaseParams.notes,
)
