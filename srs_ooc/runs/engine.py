"""The one loop: propose, grow, learn, commit.

Iteration t belongs to round t // round_size and has slot t % round_size there. A run's screen, its
closing stage and its permutation runs are this loop with other parts.
"""

import time
from collections.abc import Callable, Mapping
from typing import Protocol

from srs_ooc.base.budget import peak_resident_nbytes, resident_nbytes
from srs_ooc.base.errors import UsageError
from srs_ooc.base.records import Iteration, Outcome, Part, State, Stateful
from srs_ooc.base.seeds import Purpose, derive, key_of
from srs_ooc.evidence.judges import Judge
from srs_ooc.runs.executors import Executor, Speculation
from srs_ooc.runs.ledger import Progress
from srs_ooc.samplers.base import Sampler

COMMIT_SECONDS = 1.0
COMMIT_SHARE = 20
"""At least COMMIT_SECONDS, and COMMIT_SHARE times the last commit's time, pass between commits."""


class Book(Protocol):
    """Where states are committed to: a ledger, a stage of one, or nowhere."""

    def load(self, parts: Mapping[str, Stateful]) -> Progress:
        """Restore parts, which are as new, from one commit; return where it stands."""

    def commit(
        self, progress: Progress, states: Mapping[str, State], resident_nbytes: int
    ) -> float:
        """Write what is known after ``progress.iteration`` in one transaction; return its time."""


class Engine:
    """Runs iterations from where the last commit left them.

    Parameters
    ----------
    sampler : Sampler
        Proposes subspaces.
    executor : Executor
        Pages them in and grows on them.
    book : Book
        The states are loaded from it and committed to it.
    seed : int
        64-bit key of all iterations.
    round_size : int
        Iterations proposed from one state.
    observers : mapping of Part, optional
        What else learns from outcomes, by name, each before the sampler does.
    judge : Judge, optional
        Asked which probe to grow beside a subspace.
    """

    def __init__(
        self,
        sampler: Sampler,
        executor: Executor,
        book: Book,
        *,
        seed: int,
        round_size: int,
        observers: Mapping[str, Part] | None = None,
        judge: Judge | None = None,
    ) -> None:
        self.sampler, self._executor, self._book = sampler, executor, book
        self._seed, self._round_size, self._judge = seed, round_size, judge
        self._parts: dict[str, Part] = dict(observers or {}) | {sampler.name: sampler}
        self._earlier = book.load(self._parts)
        self.iteration = self._earlier.iteration
        self._started = time.monotonic()

    @property
    def progress(self) -> Progress:
        """Where the work stands now."""
        peak = max(self._earlier.peak_nbytes, peak_resident_nbytes())
        seconds = self._earlier.seconds + time.monotonic() - self._started
        return Progress(self.iteration, self.sampler.n_kept, seconds, peak)

    @property
    def is_over(self) -> bool:
        """Whether the method has ended by itself."""
        return self.sampler.done(self.iteration)

    def propose(self, number: int) -> Iteration:
        """Return iteration ``number`` as the sampler would have it now."""
        key = key_of(self._seed, number // self._round_size, number % self._round_size)
        subspace = self.sampler.propose(number, key)
        probe = None
        if self._judge is not None:
            probe = self._judge.probe(key, len(subspace.features))
        return Iteration(number, subspace, derive(key, Purpose.TREE), probe)

    def advance(self, until: int, keep_going: Callable[[], bool] = lambda: True) -> None:
        """Run to ``until`` iterations in total, or to the method's end, or until told to stop.

        ``keep_going`` is asked after every iteration and every step of learning between them. The
        states are committed now and then, and at the end.
        """
        speculation = Speculation(
            self._executor, self.propose, self.sampler.version, self._round_size
        )
        next_commit = time.monotonic() + COMMIT_SECONDS
        is_committed, going = True, True
        try:
            while going and self.iteration < until and not self.is_over:
                if not self.sampler.step():
                    self._absorb(speculation.outcome(self.iteration, until))
                is_committed = False
                if time.monotonic() >= next_commit:
                    pause = max(COMMIT_SECONDS, COMMIT_SHARE * self.commit())
                    is_committed = True
                    next_commit = time.monotonic() + pause
                going = keep_going()
        finally:
            speculation.drop()
        if not is_committed:
            self.commit()

    def _absorb(self, outcome: Outcome) -> None:
        for part in self._parts.values():
            part.absorb(self.iteration, outcome)
        self.iteration += 1

    def commit(self) -> float:
        """Commit the states as they are; return the seconds it took."""
        start = time.monotonic()
        states = {name: part.state() for name, part in self._parts.items()}
        self._book.commit(self.progress, states, resident_nbytes())
        return time.monotonic() - start


def check_needs(sampler: Sampler, provides: frozenset[str], learner: str) -> None:
    """Check that a learner gives a sampler what it must learn of each subspace.

    Raises
    ------
    UsageError
        Naming what is missing.
    """
    missing = sorted(sampler.needs - provides)
    if missing:
        raise UsageError(
            f"--method {sampler.name}: expected a learner that provides {', '.join(missing)}, "
            f"found {learner}. Choose another --model."
        )
