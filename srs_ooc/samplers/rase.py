"""Random Subspace Ensemble (Tian and Feng 2021, as Huynh-Thu and Geurts 2023 run it, D.4).

In each round, each of B1 models is the best of B2 small subspaces by held-out loss, or by an
information criterion; the share of the kept subspaces that hold a feature is its weight in the next
round. ``docs/methods/rase.md`` has the equations.
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import (
    Candidates,
    Outcome,
    Pages,
    RowSplit,
    Saved,
    State,
    Step,
    Subspace,
    n_pages,
)
from srs_ooc.base.seeds import Purpose, derive
from srs_ooc.native.numerics import log
from srs_ooc.samplers.base import LOSS, PREDICTIONS
from srs_ooc.samplers.folds import deal, resample
from srs_ooc.samplers.rase_search import OUT_OF_BAG, VALIDATION, Search, batch_size, eta
from srs_ooc.samplers.rase_votes import Votes
from srs_ooc.samplers.subset_draws import SubsetWeights

SEARCHING, VOTING, OVER = "searching", "voting", "over"


class RandomSubspaceEnsemble:
    """Learns which features the best small subspaces hold.

    An iteration judges as many of a model's subspaces as ``capacity`` has room for. A round ends
    with an iteration for each model: the kept one, fitted on all training rows.

    Parameters
    ----------
    search : Search
        How it searches.
    votes : Votes
        What its models say of rows held out.
    strata : int (n_rows,)
        Class of each row; all the same in a regression.
    n_features : int
        Features of the store.
    n_candidates : int
        p: those that may be drawn.
    candidates : uint32 (p,) or None
        Their stored positions; None where all may be drawn.
    capacity : int
        The most features of an iteration, at least ``search.largest``.
    key : int
        64-bit key of subspaces and folds.

    Attributes
    ----------
    score : float64 (n_features,)
        eta of the best round: share of its kept subspaces that hold a feature.
    best : list of uint32 arrays
        Its kept subspaces.
    losses : list of float or None
        Of the rows held out, by round; None where there are none: then the last round is the best.
    cutoff : float
        Share of votes above which the best round says the second of two classes.
    """

    name: ClassVar[str] = "rase"
    needs: ClassVar[frozenset[str]] = frozenset({LOSS, PREDICTIONS})

    def __init__(
        self,
        search: Search,
        votes: Votes,
        strata: NDArray[np.integer],
        n_features: int,
        n_candidates: int,
        candidates: NDArray[np.uint32] | None,
        capacity: int,
        key: int,
    ) -> None:
        self._search, self._votes, self._strata = search, votes, strata
        self._candidates, self._n_candidates = candidates, n_candidates
        self._criterion = search.information(n_candidates)
        self._capacity, self._key = capacity, derive(key, Purpose.JUDGED_SUBSETS)
        self._rows_key = derive(key, Purpose.JUDGED_ROWS)
        sizes = search.n_candidates, search.largest
        self._batch = batch_size(*sizes, n_candidates, capacity)
        self.n_batches = -(-search.n_candidates // self._batch)
        self.score = np.zeros(n_features)
        self._bettered = np.ones(n_pages(n_features), np.bool_)
        self.phase, self._first, self._n_done, self._version = SEARCHING, 0, 0, 0
        self._least = np.inf
        self._kept: list[NDArray[np.uint32]] = []
        self.best: list[NDArray[np.uint32]] = []
        self.losses: list[float | None] = []
        self.best_round, self.cutoff = 0, 0.5
        self._drawn_by: list[NDArray[np.uint32]] = []
        self._weights = self._weights_of([])

    def _weights_of(self, kept: list[NDArray[np.uint32]]) -> SubsetWeights:
        """Return eta where it is above C0 / log p, else C0 / p; uniform where nothing was kept."""
        p, floor = self._n_candidates, self._search.floor
        members, counts = eta(kept)
        if self._candidates is not None:
            members = np.searchsorted(self._candidates, members).astype(np.uint32)
        unit = 1.0 / self._search.n_models
        least = floor / log(float(p)) if p > 1 else np.inf
        heavy = counts * unit > least
        return SubsetWeights(
            p, members[heavy], counts[heavy].astype(np.int32), unit, floor / float(p)
        )

    @property
    def capacity(self) -> int:
        """The most features of an iteration."""
        return self._capacity

    @property
    def n_kept(self) -> int:
        """None is kept on the way."""
        return 0

    @property
    def round(self) -> int:
        """The round that is under way, from 0."""
        return len(self.losses)

    @property
    def _n_wanted(self) -> int:
        return self._search.n_models * (self.n_batches if self.phase == SEARCHING else 1)

    def propose(self, iteration: int, key: int) -> Subspace:
        """Return some of a model's subspaces, or the one that was kept."""
        number = (iteration - self._first) % self._n_wanted
        if self.phase != SEARCHING:
            return Subspace(self._kept[number], split=self._votes.split)
        model, batch = divmod(number, self.n_batches)
        first = batch * self._batch
        count = min(self._batch, self._search.n_candidates - first)
        members, bounds = self._draw(model, first, count)
        features, places = np.unique(members, return_inverse=True)
        candidates = Candidates(
            places.astype(np.int32), bounds, self._splits(model), self._criterion
        )
        return Subspace(features, candidates)

    def _draw(
        self, model: int, first: int, count: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        key = derive(derive(self._key, self.round), model)
        members, bounds = self._weights.draw(key, first, count, self._search.largest)
        return members if self._candidates is None else self._candidates[members], bounds

    def _splits(self, model: int) -> tuple[RowSplit, ...]:
        """Return the rows by which all subspaces of a model are judged."""
        search, whole = self._search, self._votes.split
        if self._criterion is not None:
            return (RowSplit(whole.fitted, whole.fitted[:0]),)
        if search.criterion == VALIDATION:
            return (RowSplit(whole.fitted, whole.predicted[self._votes.held_out]),)
        key, rows = derive(derive(self._rows_key, self.round), model), whole.fitted
        if search.criterion == OUT_OF_BAG:
            return tuple(resample(rows, derive(key, number)) for number in range(search.n_folds))
        fold = deal(self._strata[rows], search.n_folds, key)
        return tuple(RowSplit(rows[fold != k], rows[fold == k]) for k in range(search.n_folds))

    def version(self, iteration: int) -> int:
        """Return how often what is proposed has changed."""
        return self._version

    def done(self, iteration: int) -> bool:
        """Return whether all rounds are over."""
        return self.phase == OVER

    def step(self) -> bool:
        """Return that there is nothing to learn between iterations."""
        return False

    def progress(self) -> Step:
        """Return the models whose subspace was chosen, of all rounds."""
        n_models, n_rounds = self._search.n_models, self._search.n_rounds
        done = n_models * self.round + len(self._kept)
        stage = f"round {min(self.round + 1, n_rounds)}"
        return Step(stage, done, n_models * n_rounds, unit="models")

    def absorb(self, iteration: int, outcome: Outcome) -> None:
        """Keep the best subspace so far, or count the votes of a kept one."""
        if self.phase == SEARCHING:
            self._choose(outcome)
        else:
            assert outcome.predictions is not None
            self._votes.add(outcome.predictions[0])
        self._n_done += 1
        if self._n_done == self._n_wanted:
            self._end_phase()

    def _choose(self, outcome: Outcome) -> None:
        """Keep the subspace of least loss; of equal ones the first, which is no better a draw."""
        assert outcome.losses is not None
        model, batch = divmod(self._n_done, self.n_batches)
        best = int(outcome.losses.argmin())
        loss = float(outcome.losses[best])
        if batch > 0 and loss >= self._least:
            return
        self._least = loss
        subspace = self._draw(model, batch * self._batch + best, 1)[0]
        if batch > 0:
            self._kept.pop()
        self._kept.append(subspace)

    def _end_phase(self) -> None:
        self._first += self._n_done
        self._n_done = 0
        self._version += 1
        if self.phase == SEARCHING:
            self.phase = VOTING
            self._votes.begin()
            return
        loss, cutoff = self._votes.loss()
        earlier = self.losses[self.best_round] if self.losses else None
        if loss is None or earlier is None or loss < earlier:
            self.best, self.best_round, self.cutoff = self._kept, self.round, cutoff
            members, counts = eta(self.best)
            self.score[:] = 0.0
            self.score[members] = counts / self._search.n_models
            self._bettered[:] = True
        self.losses.append(loss)
        self._drawn_by, self._kept = self._kept, []
        self._weights = self._weights_of(self._drawn_by)
        self.phase = OVER if self.round == self._search.n_rounds else SEARCHING

    def state(self) -> State:
        """Return what was learnt, and where the work stands."""
        arrays = self._votes.arrays()
        for name, subspaces in self._lists().items():
            arrays[name] = np.concatenate([np.zeros(0, np.uint32), *subspaces])
            arrays[f"{name}_sizes"] = np.array([len(one) for one in subspaces], np.int64)
        return State({"score": Pages(self.score, self._bettered)}, arrays, self.facts())

    def _lists(self) -> dict[str, list[NDArray[np.uint32]]]:
        return {"kept": self._kept, "best": self.best, "drawn_by": self._drawn_by}

    def facts(self) -> dict[str, Any]:
        """Return where the work stands, JSON-ready."""
        return {
            "phase": self.phase,
            "begun": self._first,
            "done": self._n_done,
            "version": self._version,
            "least": None if np.isinf(self._least) else self._least,
            "losses": self.losses,
            "best_round": self.best_round,
            "cutoff": self.cutoff,
        }

    def restore(self, saved: Saved) -> None:
        """Take up the work where it was committed."""
        facts = saved.facts
        if facts is None:
            return
        saved.fill("score", self.score)
        self._bettered[:] = False
        self.phase = str(facts["phase"])
        self._first, self._n_done = int(facts["begun"]), int(facts["done"])
        self._version, self.best_round = int(facts["version"]), int(facts["best_round"])
        self._least = np.inf if facts["least"] is None else float(facts["least"])
        self.losses, self.cutoff = list(facts["losses"]), float(facts["cutoff"])
        arrays = saved.arrays
        self._votes.restore(arrays, self._n_done if self.phase == VOTING else 0)
        for name, subspaces in self._lists().items():
            ends = np.cumsum(arrays[f"{name}_sizes"])[:-1]
            parts = np.split(arrays[name], ends) if len(arrays[f"{name}_sizes"]) else []
            subspaces[:] = [part.astype(np.uint32) for part in parts]
        self._weights = self._weights_of(self._drawn_by)
