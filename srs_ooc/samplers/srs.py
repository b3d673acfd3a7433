"""Sequential Random Subspace (Algorithm 1 of Sutera et al. 2018): F grows by a relevance test.

Beside it plain Random Subspace, alone or in two lanes that also hold the features that lead the
ranking, and the options of all of them.
"""

from dataclasses import dataclass

import numpy as np

from srs_ooc.base.arrays import Bools, Uints32
from srs_ooc.base.options import Share, Whole, option
from srs_ooc.base.records import PAGE_ITEMS, Outcome, Pages, Saved, State, Subspace, n_pages
from srs_ooc.evidence.judges import Judge
from srs_ooc.evidence.tally import Tally, best_features
from srs_ooc.samplers.base import IMPORTANCE, Method, Sampler, SamplerContext
from srs_ooc.samplers.draws import Drawing, WeightedDrawing

# The sampler's F: the features kept so far, in the order they entered.


class KeptSet:
    """A set of features that only grows, with the iteration at which each entered.

    Parameters
    ----------
    n_features : int
        Size of V; membership takes one bit per feature.

    Attributes
    ----------
    features : uint32 (n,)
        Members in the order they entered.
    entered : uint32 (n,)
        Iterations (counted from 1) after which each member entered.
    """

    def __init__(self, n_features: int) -> None:
        self._bits = np.zeros(-(-n_features // 8), dtype=np.uint8)
        self.features: Uints32 = np.zeros(0, dtype=np.uint32)
        self.entered: Uints32 = np.zeros(0, dtype=np.uint32)
        self._changed = np.zeros(n_pages(n_features), dtype=np.bool_)

    @property
    def n(self) -> int:
        """|F|."""
        return len(self.features)

    def n_before(self, iteration: int) -> int:
        """Return how many members had entered when iteration ``iteration`` (from 0) began."""
        return int(np.searchsorted(self.entered, iteration, side="right"))

    def holds(self, features: Uints32) -> Bools:
        """Return which of ``features`` are members."""
        bits = np.take(self._bits, features >> np.uint32(3)) >> (features & np.uint32(7)).astype(
            np.uint8
        )
        return (bits & np.uint8(1)).astype(np.bool_)

    def add(self, features: Uints32, entered: Uints32 | int) -> None:
        """Add features that are not members yet."""
        if not len(features):
            return
        first_page = self.n // PAGE_ITEMS
        self.features = np.concatenate([self.features, features])
        self.entered = np.concatenate([self.entered, np.full(len(features), entered, np.uint32)])
        flags = np.left_shift(np.uint8(1), (features & np.uint32(7)).astype(np.uint8))
        np.bitwise_or.at(self._bits, features >> np.uint32(3), flags)
        self._changed[first_page : n_pages(self.n)] = True

    def state(self) -> State:
        """Return the members and when each entered."""
        arrays = {"features": self.features, "entered": self.entered}
        return State({name: Pages(array, self._changed) for name, array in arrays.items()})

    def restore(self, saved: Saved) -> None:
        """Add the members page by page: what adding needs besides stays small."""
        n_kept = saved.length("features")
        for page in range(n_pages(n_kept)):
            size = min(PAGE_ITEMS, n_kept - page * PAGE_ITEMS)
            features, entered = np.zeros(size, np.uint32), np.zeros(size, np.uint32)
            saved.fill("features", features, page)
            saved.fill("entered", entered, page)
            self.add(features, entered)
        self._changed[:] = False


@dataclass(eq=False)
class SequentialRandomSubspace(Sampler):
    """Draws from F and all others; what passes the judge enters F for good.

    Parameters
    ----------
    drawing : Drawing or WeightedDrawing
        How a subspace is drawn.
    judge : Judge
        The relevance test of step 2c.
    tally : Tally
        What the judge reads; it has absorbed an outcome before this sampler does.
    n_features : int
        Features of the store.
    round_size : int
        Iterations proposed from one F (1 in the paper).
    """

    name = "kept"
    needs = frozenset({IMPORTANCE})
    drawing: Drawing | WeightedDrawing
    judge: Judge
    tally: Tally
    n_features: int
    round_size: int

    def __post_init__(self) -> None:
        self.capacity, self.kept = self.drawing.subspace_size, KeptSet(self.n_features)

    @property
    def n_kept(self) -> int:
        """|F|."""
        return self.kept.n

    def propose(self, iteration: int, key: int) -> Subspace:
        """Return the subspace of ``iteration`` from F as its round found it."""
        return Subspace(self.drawing.draw(self.kept.features[: self._n_known(iteration)], key))

    def version(self, iteration: int) -> int:
        """Return the size of F that the iteration's round began with: F only grows."""
        return self._n_known(iteration) if self.drawing.n_held else 0

    def _n_known(self, iteration: int) -> int:
        return self.kept.n_before(iteration - iteration % self.round_size)

    def absorb(self, iteration: int, outcome: Outcome) -> None:
        """Step 2c: let what passes the judge enter F."""
        admitted = outcome.features[self.judge.admit(self.tally, outcome)]
        self.kept.add(admitted[~self.kept.holds(admitted)], iteration + 1)

    def state(self) -> State:
        """Return F and when each member entered."""
        return self.kept.state()

    def restore(self, saved: Saved) -> None:
        """Take F back."""
        self.kept.restore(saved)


# Two lanes: plain Random Subspace, and subspaces that hold the few features that lead the ranking.

EVERY = 100
"""Iterations after which the leaders are chosen again, at the end of a round."""


@dataclass(eq=False)
class Leaders(Sampler):
    """Holds the leading features in every other round; the rounds between hold none.

    Beside what leads, features show that matter only with it; without it, those that it would
    mask.

    Parameters
    ----------
    drawing : Drawing or WeightedDrawing
        How a subspace is drawn.
    tally : Tally
        What the features are ranked by; it has absorbed an outcome before this sampler does.
    count : int
        Features held at most.
    round_size : int
        Iterations proposed from one state.
    key : int
        64-bit key that breaks ties of the ranking.
    """

    name = "leaders"
    needs = frozenset({IMPORTANCE})
    drawing: Drawing | WeightedDrawing
    tally: Tally
    count: int
    round_size: int
    key: int

    def __post_init__(self) -> None:
        self.capacity = self.drawing.subspace_size
        self._every = -(-EVERY // self.round_size) * self.round_size
        self._features: Uints32 = np.zeros(0, dtype=np.uint32)
        self._since = 0

    def propose(self, iteration: int, key: int) -> Subspace:
        """Return the subspace of ``iteration``, in its round's lane."""
        held = self._features if self._holds(iteration) else self._features[:0]
        return Subspace(self.drawing.draw(held, key))

    def version(self, iteration: int) -> int:
        """Return when the leaders were chosen, for the rounds that hold them."""
        return self._since if self.drawing.n_held and self._holds(iteration) else -1

    def _holds(self, iteration: int) -> bool:
        return iteration // self.round_size % 2 == 1

    def absorb(self, iteration: int, outcome: Outcome) -> None:
        """Choose the leaders again where it is time to."""
        if self.drawing.n_held and self.count and (iteration + 1) % self._every == 0:
            self._features = best_features(self.tally, self.count, self.key)
            self._since = iteration + 1

    def state(self) -> State:
        """Return the leaders and when they were chosen."""
        return State(facts={"items": self._features.tolist(), "since": self._since})

    def restore(self, saved: Saved) -> None:
        """Take them back."""
        if saved.facts is not None:
            self._features = np.array(saved.facts["items"], dtype=np.uint32)
            self._since = int(saved.facts["since"])


# The methods of this package that draw from kept features and all others.


def sampler_by(drawing: Drawing | WeightedDrawing, context: SamplerContext, most: int) -> Sampler:
    """Return a sampler that keeps what the judge admits, or holds at most so many leading ones."""
    judge, tally, round_size = context.judge, context.tally, context.round_size
    if judge.admits:
        return SequentialRandomSubspace(drawing, judge, tally, context.n_features, round_size)
    return Leaders(drawing, tally, most, round_size, context.key)


class RandomSubspace(Method):
    """Random Subspace: nothing is held.

    Attributes
    ----------
    draw_block : int
        Draw new features in blocks of G neighbours on disk: each as often, in fewer and longer
        reads; for a store larger than memory. 1 is the paper's.
    """

    summary = "Random Subspace: nothing is held"
    judges = ("tests", "probe", "positive")
    any_model = True
    alpha = "0"  # nothing is held
    draw_block: int = option(
        Whole(1),
        default=1,
        default_text="1; of a store larger than the cap, blocks of 64 KB",
        metavar="G",
    )

    def make(self, context: SamplerContext) -> Sampler:
        """Return the sampler: F by a relevance test, or the leaders where the verdict is last."""
        drawing = Drawing(
            context.n_candidates,
            context.subspace_size,
            self.alpha,
            context.candidates,
            self.draw_block,
        )
        return sampler_by(drawing, context, context.judge.n_leaders)


class Srs(RandomSubspace):
    """Sequential Random Subspace.

    Attributes
    ----------
    alpha : str
        Share of the subspace held for features that lead, or passed, so far (0: Random Subspace).
        Not a significance level.
    """

    summary = "Sequential Random Subspace"
    alpha: str = option(Share(), default="0.5", metavar="SHARE")
