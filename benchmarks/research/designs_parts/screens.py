"""Screens: which items survive, and where the relevant ones rank."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import Outcome
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.evidence.tally import Tally, best_items, mean_importance
from srs_ooc.planning.iterations import MIN_ITERATIONS, MOST_DRAWS
from srs_ooc.runs.engine import TALLY, Engine
from srs_ooc.runs.ledger import TransientLedger
from srs_ooc.runs.resources import Resources
from srs_ooc.runs.session import RunDraft
from srs_ooc.runs.settling import Request
from srs_ooc.runs.spec import Options
from srs_ooc.samplers.draws import Drawing
from srs_ooc.samplers.srs import Leaders
from srs_ooc.store.store import Store

MEMORY_MB = 4000
SURVIVORS = 2000
"""Best items that are kept: as many as the widest closing stage takes."""
REPEAT_SEEDS = 1000
"""Distance of the seeds of repeated screens on one table."""
FIRST_WEIGHT, DOUBLINGS = 16, 3
"""Weight of the first iteration where they fade, and how often it doubles until the last."""
BOTH, PLAIN, LED = "both", "plain", "led"


class AlwaysHeld(Leaders):
    """The leading items held in every round: the SRS lane alone."""

    def _holds(self, iteration: int) -> bool:
        return True


class FadingTally(Tally):
    """A tally in which each iteration weighs more than those before: the past fades as R changes.

    Parameters
    ----------
    n_items : int
        Items there are.
    n_iterations : int
        Iterations that will come.
    """

    def __init__(self, n_items: int, n_iterations: int) -> None:
        super().__init__(n_items, wins=False)
        self._n_iterations = n_iterations

    def absorb(self, iteration: int, outcome: Outcome) -> None:
        """Add one iteration by its weight."""
        weight = round(FIRST_WEIGHT * 2 ** (DOUBLINGS * iteration / self._n_iterations))
        self.importance[outcome.features] += weight * outcome.importance
        self.n_drawn[outcome.features] += np.uint32(weight)


@dataclass(frozen=True)
class Screen:
    """One way to screen. All grow as many trees per item, families of decoys included.

    Attributes
    ----------
    name, label : str
        In files, and in tables.
    families : int
        M.
    lanes : {'both', 'plain', 'led'}
        Plain Random Subspace, subspaces that hold the leaders, or both in turn.
    trees : int
        Grown on each subspace; there are as many fewer subspaces.
    max_features : str or None
        K, as ``srs-ooc run`` takes it.
    min_samples_leaf, max_depth : int or None
        As there.
    fades : bool
        Whether iterations lose half of their weight in every third of the run.
    repeat : int
        From 1 a repetition with decoys and subspaces of its own.
    """

    name: str
    label: str
    families: int = 1
    lanes: str = BOTH
    trees: int = 1
    max_features: str | None = None
    min_samples_leaf: int | None = None
    max_depth: int | None = None
    fades: bool = False
    repeat: int = 0

    def seed(self, table_seed: int) -> int:
        """Return the seed of the run."""
        return table_seed + REPEAT_SEEDS * self.repeat

    def options(self, table_seed: int) -> Options:
        """Return the options of the run."""
        return Options(
            judge="decoy",
            decoys=self.families,
            keep=0 if self.lanes == PLAIN else None,
            trees_per_subspace=self.trees,
            max_features=self.max_features,
            min_samples_leaf=self.min_samples_leaf,
            max_depth=self.max_depth,
            seed=self.seed(table_seed),
        )

    def n_iterations(self, resources: Resources) -> int:
        """Return T as the program settles it for two lanes, fewer by the trees of a subspace."""
        draws = ceil(MOST_DRAWS * resources.n_candidates / resources.spec.subspace_size)
        return ceil(max(2 * draws, MIN_ITERATIONS) / self.trees)

    @contextmanager
    def resources(self, store: Path, table_seed: int) -> Iterator[Resources]:
        """Yield the resources of a run with one worker."""
        request = Request(self.options(table_seed), memory_mb=MEMORY_MB, threads=1)
        with RunDraft.of(Store.open(store), request).resources() as resources:
            yield resources

    def closing_key(self, resources: Resources) -> int:
        """Return the key of a closing stage after this screen."""
        return key_of(resources.spec.seed, Purpose.CLOSING, self.n_iterations(resources))

    def tie_key(self, resources: Resources) -> int:
        """Return the key that breaks ties of marginal tests after this screen."""
        return key_of(resources.spec.seed, Purpose.RANK_TIE, self.n_iterations(resources))

    def run(self, resources: Resources, relevant: NDArray[np.uint32]) -> dict[str, NDArray[Any]]:
        """Screen, and return what is kept of it.

        Parameters
        ----------
        resources : Resources
            Of :meth:`resources`.
        relevant : uint32 (r,)
            Stored positions of the relevant features.

        Returns
        -------
        dict
            ``survivors``, uint32 (at most SURVIVORS,), best first; ``ranks``, int64 (r,): items
            with a larger mean importance than each relevant feature.
        """
        tally = self._advanced(resources)
        count = min(SURVIVORS, resources.n_candidates)
        means = mean_importance(tally, slice(None))
        ranks = [np.count_nonzero(means > mean) for mean in means[relevant]]
        survivors = best_items(tally, count, self.closing_key(resources))
        return {"survivors": survivors, "ranks": np.array(ranks, np.int64)}

    def _advanced(self, resources: Resources) -> Tally:
        """Return what all iterations of the screen taught."""
        spec, n_iterations = resources.spec, self.n_iterations(resources)
        n_items, key = spec.n_items(resources.n_features), key_of(spec.seed, Purpose.RANK_TIE)
        tally = FadingTally(n_items, n_iterations) if self.fades else Tally(n_items, wins=False)
        drawing = Drawing(
            resources.n_candidates,
            spec.subspace_size,
            spec.alpha,
            resources.candidates,
            spec.draw_block,
        )
        lanes = AlwaysHeld if self.lanes == LED else Leaders
        engine = Engine(
            lanes(drawing, tally, spec.judging.n_leaders, spec.round_size, key),
            resources.executor,
            TransientLedger(),
            seed=spec.seed,
            round_size=spec.round_size,
            observers={TALLY: tally},
        )
        engine.advance(n_iterations)
        return tally
