"""The engine: Algorithm 1's loop, committed to the ledger as it goes.

Iteration t belongs to round t // round_size and has slot t % round_size there; the subspaces of a
round are proposed from the F its beginning knows (round_size is 1 in the paper).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.budget import peak_resident_nbytes, resident_nbytes
from srs_ooc.evidence.judges import Judge
from srs_ooc.evidence.ranking import best_items
from srs_ooc.evidence.steadiness import Steadiness
from srs_ooc.evidence.tally import Tally
from srs_ooc.executors import Executor, Speculation
from srs_ooc.ledger import Ledger, Progress, TransientLedger, TreeWriter
from srs_ooc.ledger.pages import PAGE_ITEMS
from srs_ooc.ledger.trees import VALID
from srs_ooc.records import Outcome, Subspace
from srs_ooc.samplers.kept import KeptSet
from srs_ooc.samplers.leaders import Leaders
from srs_ooc.samplers.srs import SequentialRandomSubspace
from srs_ooc.seeds import Purpose, derive, key_of
from srs_ooc.sizes import ceil_div
from srs_ooc.spec import RunSpec

LEADERS, STEADINESS = "leaders", "steadiness"
"""Records of the ledger that hold the leaders, and whether the ranking is at rest."""
COMMIT_SECONDS = 1.0
COMMIT_SHARE = 20
"""At least COMMIT_SECONDS, and COMMIT_SHARE times the last commit's time, pass between commits."""


@dataclass
class State:
    """What a run has learnt: the iteration it stands at, the tally, and F.

    F is the features admitted by the judge, or, where it admits none on the way, the leaders.
    """

    iteration: int
    tally: Tally
    kept: KeptSet
    leaders: Leaders | None
    steadiness: Steadiness


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
        n_items = spec.n_items(n_features)
        leaders = Leaders(spec.keep, spec.round_size) if spec.concludes else None
        tally = Tally(n_items, wins=not spec.concludes)
        steadiness = Steadiness(key_of(spec.seed, Purpose.RANK_TIE))
        self.state = State(0, tally, KeptSet(n_features), leaders, steadiness)
        progress = ledger.load(self.state.tally, self.state.kept)
        if leaders is not None and isinstance(ledger, Ledger) and progress.iteration:
            leaders.restore(ledger.meta(LEADERS))
            steadiness.restore(ledger.meta(STEADINESS))
        self.state.iteration = progress.iteration
        self._earlier = progress
        self._started = time.monotonic()
        self._touched = np.zeros(ceil_div(n_items, PAGE_ITEMS), dtype=np.bool_)
        self._executor = executor

    @property
    def progress(self) -> Progress:
        """Where the run stands now."""
        peak = max(self._earlier.peak_nbytes, peak_resident_nbytes())
        seconds = self._earlier.seconds + time.monotonic() - self._started
        return Progress(self.state.iteration, self.state.kept.n, seconds, peak)

    def propose(self, iteration: int) -> Subspace:
        """Return the subspace of ``iteration`` from F as it is now."""
        spec = self.spec
        key = key_of(spec.seed, iteration // spec.round_size, iteration % spec.round_size)
        features = self.sampler.propose(self._retainable(iteration), key)
        probe = self.judge.probe(key, len(features))
        return Subspace(iteration, features, derive(key, Purpose.TREE), probe)

    def _retainable(self, iteration: int) -> NDArray[np.uint32]:
        """Return F as the iteration's round found it."""
        if self.state.leaders is not None:
            return self.state.leaders.retainable(iteration)
        return self.state.kept.features[: self._n_retainable(iteration)]

    def _n_retainable(self, iteration: int) -> int:
        return self.state.kept.n_before(iteration - iteration % self.spec.round_size)

    def _token(self, iteration: int) -> int:
        if not self.sampler.n_held:
            return 0
        if self.state.leaders is not None:
            return self.state.leaders.token(iteration)
        return self._n_retainable(iteration)

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
        leaders = state.leaders
        if leaders is not None:
            state.steadiness.look(state.tally, state.iteration)
        if leaders is not None and self.sampler.n_held and leaders.is_due(state.iteration):
            key = key_of(self.spec.seed, Purpose.RANK_TIE)
            leaders.choose(best_items(state.tally, leaders.count, key), state.iteration)

    def _commit(self) -> float:
        start = time.monotonic()
        facts: dict[str, Any] = {} if self.trees is None else {VALID: self.trees.sync()}
        if self.state.leaders is not None:
            facts[LEADERS] = self.state.leaders.to_json()
            facts[STEADINESS] = self.state.steadiness.to_json()
        pages = np.flatnonzero(self._touched)
        self.ledger.commit(
            self.progress, self.state.tally, pages, self.state.kept, resident_nbytes(), facts
        )
        self._touched[:] = False
        return time.monotonic() - start
