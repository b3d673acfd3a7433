"""The engine: Algorithm 1's loop, committed to the ledger as it goes.

Iteration t belongs to round t // round_size and has slot t % round_size there; the subspaces of a
round are proposed from the F its beginning knows (round_size is 1 in the paper).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from srs_ooc.budget import peak_resident_nbytes, resident_nbytes
from srs_ooc.evidence.judges import Judge
from srs_ooc.evidence.tally import Tally
from srs_ooc.executors import Executor, Speculation
from srs_ooc.ledger import Ledger, Progress, TransientLedger, TreeWriter
from srs_ooc.ledger.pages import PAGE_ITEMS
from srs_ooc.ledger.trees import VALID
from srs_ooc.records import Outcome, Subspace
from srs_ooc.samplers.kept import KeptSet
from srs_ooc.samplers.srs import SequentialRandomSubspace
from srs_ooc.seeds import Purpose, derive, key_of
from srs_ooc.sizes import ceil_div
from srs_ooc.spec import RunSpec

COMMIT_SECONDS = 1.0
COMMIT_SHARE = 20
"""At least COMMIT_SECONDS, and COMMIT_SHARE times the last commit's time, pass between commits."""


@dataclass
class State:
    """What a run has learnt: the iteration it stands at, the tally, and F."""

    iteration: int
    tally: Tally
    kept: KeptSet


class Engine:
    """Runs iterations of one run from where its ledger left it.

    Parameters
    ----------
    spec : RunSpec
        The run's identity.
    sampler : SequentialRandomSubspace
        Proposes subspaces.
    executor : Executor
        Pages them in and grows their trees.
    ledger : Ledger or TransientLedger
        Open for writing; the state is loaded from it.
    n_features : int
        Features of the store.
    trees : TreeWriter, optional
        Where trees are kept, if the executor returns them.
    """

    def __init__(
        self,
        spec: RunSpec,
        sampler: SequentialRandomSubspace,
        executor: Executor,
        ledger: Ledger | TransientLedger,
        n_features: int,
        trees: TreeWriter | None = None,
    ) -> None:
        self.spec, self.sampler, self.ledger, self.trees = spec, sampler, ledger, trees
        self.judge: Judge = spec.make_judge()
        self.state = State(0, Tally(n_features), KeptSet(n_features))
        progress = ledger.load(self.state.tally, self.state.kept)
        self.state.iteration = progress.iteration
        self._earlier = progress
        self._started = time.monotonic()
        self._touched = np.zeros(ceil_div(n_features, PAGE_ITEMS), dtype=np.bool_)
        self._executor = executor

    @property
    def progress(self) -> Progress:
        """Where the run stands now."""
        peak = max(self._earlier.peak_nbytes, peak_resident_nbytes())
        seconds = self._earlier.seconds + time.monotonic() - self._started
        return Progress(self.state.iteration, self.state.kept.n, seconds, peak)

    def propose(self, iteration: int) -> Subspace:
        """Return the subspace of ``iteration`` from F as it is now."""
        spec, kept = self.spec, self.state.kept
        key = key_of(spec.seed, iteration // spec.round_size, iteration % spec.round_size)
        features = self.sampler.propose(kept.features[: self._n_retainable(iteration)], key)
        probe = self.judge.probe(key, len(features))
        return Subspace(iteration, features, derive(key, Purpose.TREE), probe)

    def _n_retainable(self, iteration: int) -> int:
        return self.state.kept.n_before(iteration - iteration % self.spec.round_size)

    def _token(self, iteration: int) -> int:
        return self._n_retainable(iteration) if self.sampler.n_held else 0

    def advance(self, until: int, keep_going: Callable[[], bool] = lambda: True) -> None:
        """Run to ``until`` iterations in total, or until ``keep_going`` says no.

        ``keep_going`` is asked after every iteration. The state is committed now and then, and at
        the end.
        """
        state = self.state
        speculation = Speculation(self._executor, self.propose, self._token)
        next_commit = time.monotonic() + COMMIT_SECONDS
        committed = state.iteration
        try:
            while state.iteration < until:
                self._absorb(speculation.outcome(state.iteration, until))
                if time.monotonic() >= next_commit:
                    pause = max(COMMIT_SECONDS, COMMIT_SHARE * self._commit())
                    committed = state.iteration
                    next_commit = time.monotonic() + pause
                if not keep_going():
                    break
        finally:
            speculation.drop()
        if state.iteration > committed:
            self._commit()

    def _absorb(self, outcome: Outcome) -> None:
        """Algorithm 1, step 2c: add what the tree taught, and let the judge grow F."""
        state = self.state
        state.iteration += 1
        if self.trees is not None:
            for tree in outcome.trees:
                self.trees.append(tree)
        state.tally.add(outcome)
        self._touched[outcome.features // PAGE_ITEMS] = True
        admitted = outcome.features[self.judge.admit(state.tally, outcome)]
        fresh = admitted[~state.kept.holds(admitted)]
        if len(fresh):
            state.kept.add(fresh, state.iteration)

    def _commit(self) -> float:
        start = time.monotonic()
        facts = None if self.trees is None else {VALID: self.trees.sync()}
        pages = np.flatnonzero(self._touched)
        self.ledger.commit(
            self.progress, self.state.tally, pages, self.state.kept, resident_nbytes(), facts
        )
        self._touched[:] = False
        return time.monotonic() - start
