"""Options and folds of the methods that fit models on some rows and predict others."""

from typing import Any

from srs_ooc.base.options import Share, Whole, option
from srs_ooc.base.seeds import Purpose, derive
from srs_ooc.samplers.folds import Folds, make_folds
from srs_ooc.samplers.method import Ground


def models_option() -> Any:
    """Return the field of how many models there are."""
    return option(
        Whole(2, 100_000),
        "Models: of each fold and of the final ensemble (prs, the paper's T), or of each round "
        "(rase, B1).",
        default=100,
        metavar="N",
    )


def folds_option() -> Any:
    """Return the field of how many folds there are."""
    return option(
        Whole(2, 100),
        "Folds: each one's rows are predicted by models grown on the others; with --criterion oob "
        "samples of the rows.",
        default=10,
        metavar="K",
    )


def validation_share_option() -> Any:
    """Return the field of how many rows are held out."""
    return option(
        Share(),
        "Share of the rows held out to choose the epoch (prs) or the round (rase; 0: take the "
        "last one); or name them by --validation-rows.",
        default="0.2",
        metavar="SHARE",
    )


def folds_for(ground: Ground, n_folds: int, validation_share: str) -> Folds:
    """Return the folds of a run's rows, as even in each class as can be."""
    assert ground.response is not None, "a run has a response"
    return make_folds(
        ground.response.labels,
        n_folds,
        derive(ground.key, Purpose.FOLDS),
        share=float(validation_share),
        validation=ground.validation,
    )
