"""What a sampler must pass."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import Candidates, Outcome, RowSplit, State, Subspace
from srs_ooc.base.seeds import derive, derive_array, key_of
from srs_ooc.evidence.judges import PositiveJudge
from srs_ooc.evidence.tally import Tally
from srs_ooc.samplers.base import IMPORTANCE, LOSS, PREDICTIONS, Ground, Sampler
from srs_ooc.testing.books import MemoryBook
from srs_ooc.trees.response import Response

AHEAD = 4
"""Iterations that are proposed before their turn, as a guess."""
MOST_STEPS = 100_000
N_ROWS = 60
"""Rows, of two classes, where a sampler learns from predictions."""


@dataclass
class _Work:
    """A sampler at work without a store: outcomes are hashes of what was proposed."""

    sampler: Sampler
    tally: Tally
    seed: int
    round_size: int
    iteration: int = 0

    def propose(self, iteration: int) -> Subspace:
        key = key_of(self.seed, iteration // self.round_size, iteration % self.round_size)
        return self.sampler.propose(iteration, key)

    def absorb(self, subspace: Subspace) -> None:
        outcome = _outcome(subspace, self.sampler.needs, key_of(self.seed, 7, self.iteration))
        self.tally.absorb(self.iteration, outcome)
        self.sampler.absorb(self.iteration, outcome)
        self.iteration += 1

    def learn(self) -> None:
        """Take all steps that are left before the next iteration."""
        for _ in range(MOST_STEPS):
            if not self.sampler.step():
                return
        raise AssertionError(f"step: still more to learn after {MOST_STEPS} steps")


Make = Callable[[Ground], Sampler]


def check_sampler(
    make: Make,
    *,
    n_items: int = 400,
    subspace_size: int = 24,
    n_iterations: int = 60,
    round_size: int = 1,
    candidates: NDArray[np.uint32] | None = None,
) -> None:
    """Check that a sampler keeps to the contract of :class:`srs_ooc.samplers.base.Sampler`.

    Parameters
    ----------
    make : callable
        ``make(ground) -> Sampler``, as new; called several times.
    n_items : int
        Features, decoys among them.
    subspace_size : int
        q.
    n_iterations : int
        How far it is taken, if it does not end before.
    round_size : int
        Iterations that are proposed from one state.
    candidates : uint32, optional
        Stored positions that may be drawn; all if not given.

    Raises
    ------
    AssertionError
        Saying which rule is broken.
    """
    sizes = n_items, subspace_size, round_size

    def begun(seed: int) -> _Work:
        return _begun(make, seed, *sizes, candidates)

    known = {IMPORTANCE, LOSS, PREDICTIONS}
    assert begun(0).sampler.needs <= known, f"needs: expected some of {sorted(known)}"
    assert begun(0).sampler.name.isidentifier(), "name: expected a word"
    may_be_drawn = np.arange(n_items, dtype=np.uint32) if candidates is None else candidates
    whole = _check_proposals(begun(1), n_iterations, may_be_drawn)
    again = _check_proposals(begun(1), n_iterations, may_be_drawn)
    assert _same(whole, again), "propose: another course with the same seed"
    _check_new(begun(1), whole)
    _check_guesses(begun(1), whole)
    _check_resumed(begun, whole)


def _begun(
    make: Make,
    seed: int,
    n_items: int,
    subspace_size: int,
    round_size: int,
    candidates: NDArray[np.uint32] | None,
) -> _Work:
    tally = Tally(n_items)
    n_candidates = n_items if candidates is None else len(candidates)
    ground = Ground(
        n_items,
        n_candidates,
        candidates,
        subspace_size,
        round_size,
        key_of(seed, 5),
        tally,
        PositiveJudge(),
        3,
        response=Response.classes(np.arange(N_ROWS) % 2, 2),
    )
    return _Work(make(ground), tally, seed, round_size)


def _check_proposals(
    work: _Work, n_iterations: int, candidates: NDArray[np.uint32]
) -> list[Subspace]:
    """Check each proposal; return the course."""
    course = []
    while work.iteration < n_iterations and not work.sampler.done(work.iteration):
        work.learn()
        if work.sampler.done(work.iteration):
            break
        at = f"iteration {work.iteration}"
        subspace = work.propose(work.iteration)
        features = subspace.features
        assert features.dtype == np.uint32, f"{at}: features: expected uint32"
        assert 0 < len(features) <= work.sampler.capacity, f"{at}: more features than the capacity"
        assert (np.diff(features.astype(np.int64)) > 0).all(), f"{at}: expected ascending features"
        assert np.isin(features, candidates).all(), f"{at}: a feature that may not be drawn"
        assert _same([subspace], [work.propose(work.iteration)]), f"{at}: propose is not pure"
        course.append(subspace)
        work.absorb(subspace)
    return course


def _check_new(work: _Work, course: list[Subspace]) -> None:
    """Check that a new run, of which nothing was committed yet, begins alike."""
    found = type(work.sampler.state())
    assert found is State, f"state: expected a srs_ooc.base.records.State, found {found.__name__}"
    try:
        MemoryBook().load({work.sampler.name: work.sampler})
    except Exception as error:
        raise AssertionError(
            f"restore: expected the sampler as new where nothing was committed, found {error!r}"
        ) from error
    work.learn()
    assert _same([work.propose(0)], course[:1]), "restore: another course where nothing was there"


def _check_guesses(work: _Work, course: list[Subspace]) -> None:
    """Check that an iteration whose version held would be proposed alike when its turn comes."""
    guesses: dict[int, tuple[int, Subspace]] = {}
    for subspace in course:
        work.learn()
        now = work.iteration
        if now in guesses:
            version, guess = guesses.pop(now)
            if version == work.sampler.version(now):
                assert _same([guess], [subspace]), f"version: iteration {now} changed under one"
        for ahead in range(now + 1, min(now + AHEAD, len(course))):
            guesses.setdefault(ahead, (work.sampler.version(ahead), work.propose(ahead)))
        work.absorb(subspace)


def _check_resumed(begun: Callable[[int], _Work], course: list[Subspace]) -> None:
    """Check that what is restored, wherever it was committed, goes on alike."""
    book, first = MemoryBook(), begun(1)
    for number, subspace in enumerate(course):
        states = {"tally": first.tally.state(), first.sampler.name: first.sampler.state()}
        book.commit(book.progress, states, 0)
        if number % max(1, len(course) // 6) == 0:
            work = begun(1)
            work.iteration = number
            book.load({"tally": work.tally, work.sampler.name: work.sampler})
            rest = []
            for _ in course[number:]:
                work.learn()
                rest.append(work.propose(work.iteration))
                work.absorb(rest[-1])
            assert _same(rest, course[number:]), f"restore: another course after iteration {number}"
        first.learn()
        first.absorb(subspace)


def _same(one: list[Subspace], other: list[Subspace]) -> bool:
    return len(one) == len(other) and all(
        np.array_equal(a.features, b.features)
        and _same_candidates(a.candidates, b.candidates)
        and _same_split(a.split, b.split)
        for a, b in zip(one, other, strict=True)
    )


def _same_candidates(one: Candidates | None, other: Candidates | None) -> bool:
    if one is None or other is None:
        return one is other
    splits = zip(one.splits, other.splits, strict=False)
    return (
        np.array_equal(one.places, other.places)
        and np.array_equal(one.bounds, other.bounds)
        and len(one.splits) == len(other.splits)
        and all(_same_split(a, b) for a, b in splits)
    )


def _same_split(one: RowSplit | None, other: RowSplit | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one.fitted, other.fitted) and np.array_equal(
        one.predicted, other.predicted
    )


def _outcome(subspace: Subspace, needs: frozenset[str], key: int) -> Outcome:
    """Return an outcome that depends on the proposal alone: some features matter more."""
    features = subspace.features
    importance = (derive_array(key, features) >> np.uint64(30)).astype(np.int64)
    importance[features % 7 != 0] >>= 4
    n_candidates = 1 if subspace.candidates is None else len(subspace.candidates.bounds) - 1
    numbers = np.arange(n_candidates, dtype=np.uint32)
    losses = predictions = None
    if LOSS in needs and subspace.candidates is not None:
        losses = derive_array(derive(key, 1), numbers) / 2.0**64
    if needs == {LOSS}:
        assert subspace.candidates is not None, "candidates: expected some to judge"
    if needs == {PREDICTIONS}:
        assert subspace.split is not None, "split: expected rows to predict"
    if PREDICTIONS in needs and subspace.split is not None:
        n_rows = len(subspace.split.predicted)
        cells = np.arange(n_candidates * n_rows, dtype=np.uint32)
        shares = (derive_array(derive(key, 2), cells) / 2.0**64).reshape(n_candidates, n_rows)
        predictions = np.stack([shares, 1 - shares], axis=2).astype(np.float32)
    return Outcome(features, importance, None, (), losses, predictions)
