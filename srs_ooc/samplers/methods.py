"""The methods of this package that draw from kept features and all others."""

from dataclasses import dataclass

from srs_ooc.base.options import Params, Share, Whole, option
from srs_ooc.samplers.base import Sampler
from srs_ooc.samplers.drawing import Drawing
from srs_ooc.samplers.leaders import Leaders
from srs_ooc.samplers.method import Ground, Method
from srs_ooc.samplers.srs import SequentialRandomSubspace

PAPERS_JUDGES = ("decoy", "probe", "positive")
NOTHING_HELD = "0"


@dataclass(frozen=True, kw_only=True)
class RandomSubspaceParams(Params):
    """Options of Random Subspace."""

    draw_block: int = option(
        Whole(1),
        "Draw new features by blocks of G neighbours on disk: as often each, in fewer and longer "
        "reads; for a store larger than memory. 1 is the paper's.",
        default=1,
        default_text="1; of a store larger than the cap, blocks of 64 KB",
        metavar="G",
    )


@dataclass(frozen=True, kw_only=True)
class SrsParams(RandomSubspaceParams):
    """Options of Sequential Random Subspace."""

    alpha: str = option(
        Share(),
        "Share of the subspace held for features already kept (0: Random Subspace). Not a "
        "significance level.",
        default="0.5",
        metavar="SHARE",
    )


def _make(params: RandomSubspaceParams, ground: Ground) -> Sampler:
    """Return the sampler: F by a relevance test, or the leaders where the verdict comes last."""
    alpha = params.alpha if isinstance(params, SrsParams) else NOTHING_HELD
    drawing = Drawing(
        ground.n_candidates,
        ground.subspace_size,
        alpha,
        ground.candidates,
        params.draw_block,
        ground.n_copies,
        ground.n_items,
    )
    if ground.judge is None:
        return Leaders(drawing, ground.tally, ground.n_leaders, ground.round_size, ground.key)
    return SequentialRandomSubspace(
        drawing, ground.judge, ground.tally, ground.n_items, ground.round_size
    )


SRS = Method("Sequential Random Subspace", SrsParams, _make, PAPERS_JUDGES, any_model=True)
RS = Method(
    "Random Subspace: nothing is held", RandomSubspaceParams, _make, PAPERS_JUDGES, any_model=True
)
