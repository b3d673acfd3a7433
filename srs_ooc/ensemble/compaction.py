"""Compacting a run: nested small sets, and what they are worth on rows held out."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from shlex import quote
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import RunError, UsageError
from srs_ooc.base.frames import frame_of
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.ensemble.fold_runs import (
    Fold,
    FoldJob,
    FoldRecord,
    Records,
    Site,
    WholeRecord,
    check_room,
    folds_from_workers,
    nest_fold,
    nest_run,
    room_for,
    score_sizes,
)
from srs_ooc.evidence.correlation import HEAD
from srs_ooc.evidence.exchangeability import deal_folds
from srs_ooc.learners.models import TREE
from srs_ooc.runs.halves import named
from srs_ooc.runs.inputs import Inputs
from srs_ooc.runs.run import Run
from srs_ooc.runs.screening import is_done
from srs_ooc.runs.task import Task, check_cluster
from srs_ooc.store.store import Store

# Accuracy on rows held out against the number of features, and the size that is enough.

N_FOLDS, N_REPEATS = 5, 2
SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 40, 50, 70, 100, 140, 200)
"""Numbers of features that are tried."""


COMPACTED = "compacted"
"""Fact of a ledger that says how many folds and repeats were asked for last."""


def sizes_up_to(most: int, *others: int) -> list[int]:
    """Return the sizes to try among ``most`` features; ``others`` are tried as well."""
    return sorted({min(size, most) for size in (*SIZES, *others)} - {0})


@dataclass(frozen=True)
class Curve:
    """What sets of growing size are worth.

    Attributes
    ----------
    sizes : list of int
        Ascending.
    scores : float64 (n_folds, n_sizes)
        On the rows held out of each fold, of each repeat: the share of rows predicted right, or
        the share of the variance of numbers.
    n_parts : int
        Folds that rows were dealt into in each repeat.
    """

    sizes: list[int]
    scores: NDArray[np.float64]
    n_parts: int = N_FOLDS

    @property
    def means(self) -> NDArray[np.float64]:
        """Mean over folds; float64 (n_sizes,)."""
        means: NDArray[np.float64] = self.scores.mean(axis=0)
        return means

    @property
    def errors(self) -> NDArray[np.float64]:
        """Standard error of each mean, folds taken as independent; 0 of a single fold."""
        n = len(self.scores)
        if n < 2:
            return np.zeros(len(self.sizes))
        spread: NDArray[np.float64] = self.scores.std(axis=0, ddof=1) / np.sqrt(n)
        return spread

    def interval(self, size: int, n_rows: int = 0) -> tuple[float, float] | None:
        """Return the 95% interval of the score of a size; None of a single fold.

        Folds share the rows they train on. So the variance of the mean of J scores, whose rows
        held out are 1 to k - 1 trained on, is s^2 (1 / J + 1 / (k - 1)): Nadeau and Bengio (2003),
        section 3. Where rows are predicted right or wrong, it holds Wilson's interval (1927) of
        so many rows, too: scores of folds that are all right do not vary.

        Parameters
        ----------
        size : int
            One of ``sizes``.
        n_rows : int
            Rows predicted in each repeat, where scores are shares of rows; else 0.
        """
        from scipy.special import stdtrit

        at, n = self.sizes.index(size), len(self.scores)
        if n < 2:
            return None
        mean, variance = float(self.means[at]), float(self.scores[:, at].var(ddof=1))
        half = stdtrit(n - 1, 0.975) * np.sqrt(variance * (1 / n + 1 / (self.n_parts - 1)))
        low, high = mean - half, mean + half
        if n_rows:
            z2 = 1.96**2 / n_rows
            middle = (mean + z2 / 2) / (1 + z2)
            half = np.sqrt(z2 * (mean * (1 - mean) + z2 / 4)) / (1 + z2)
            low, high = max(0.0, min(low, middle - half)), max(high, middle + half)
        return float(low), min(1.0, float(high))

    @property
    def best(self) -> int:
        """Place of the best size, the smallest of equal ones."""
        return int(np.argmax(self.means))

    def smallest(self, most: int | None = None) -> int:
        """Return the smallest size whose mean is within one standard error of the best.

        Parameters
        ----------
        most : int, optional
            Larger sizes are not looked at.

        Raises
        ------
        ValueError
            If no size is that small.
        """
        n = len([size for size in self.sizes if most is None or size <= most])
        if n == 0:
            raise ValueError(f"expected a size of at most {most}, found {self.sizes[0]} and more")
        means, errors = self.means[:n], self.errors[:n]
        best = int(np.argmax(means))
        return self.sizes[int(np.argmax(means >= means[best] - errors[best]))]


@dataclass(frozen=True)
class Size:
    """One size: mean score on rows held out, its standard error, and whether it is chosen."""

    features: int
    score: float
    error: float
    chosen: bool


@dataclass(frozen=True)
class Member:
    """One feature of the chosen set, and those that can stand in for it."""

    rank: int
    name: str
    stand_ins: tuple[str, ...]


@dataclass(frozen=True)
class MemberRecord:
    """A member as a line of a table; names of stand-ins are separated by blanks."""

    rank: int
    name: str
    n_stand_ins: int
    stand_ins: str


@dataclass(frozen=True)
class SmallSet:
    """A small set of features that predicts about as well as any of a run.

    Attributes
    ----------
    n_selected : int
        Features that the run selected from all rows.
    n_selected_within : list of int
        Features selected without the rows of each fold.
    sizes : list of Size
        Score of the nested set of each size, on rows held out.
    best : int
        The size with the best mean score.
    members : list of Member
        The chosen set, best first.
    order : list of int
        Stored positions, best first: the set of k features is the first k.
    held_out : Curve
        Scores of the sizes, fold by fold.
    """

    n_selected: int
    n_selected_within: list[int]
    sizes: list[Size]
    best: int
    members: list[Member]
    order: list[int]
    held_out: Curve

    @property
    def names(self) -> list[str]:
        """Names of the chosen features, best first."""
        return [member.name for member in self.members]

    @property
    def records(self) -> list[MemberRecord]:
        """The chosen features as lines of a table."""
        return [
            MemberRecord(one.rank, one.name, len(one.stand_ins), " ".join(one.stand_ins))
            for one in self.members
        ]

    def features(self, kind: str = "pandas") -> Any:
        """Return the chosen features as a frame (``pandas``, ``polars``) or ``records``."""
        return frame_of(kind, MemberRecord, self.records)

    def curve(self, kind: str = "pandas") -> Any:
        """Return the score of each size as a frame (``pandas``, ``polars``) or ``records``."""
        return frame_of(kind, Size, self.sizes)


def compact(
    ledger: Run,
    site: Site,
    folds: int = N_FOLDS,
    repeats: int = N_REPEATS,
    max_features: int | None = None,
) -> SmallSet | None:
    """Compact a run that is done; None if ``site.watch`` says no, to be gone on with later.

    The whole procedure is repeated without the rows of each fold: selection, closing stage,
    clusters and elimination. So scores are of rows that nothing has seen.

    Parameters
    ----------
    ledger : Run
        Of the run, open for writing: its lock is held meanwhile.
    site : Site
        The store, memory, workers, and who watches.
    folds, repeats : int
        Rows are held out in so many parts, so many times.
    max_features : int, optional
        Size of the set, tried besides those of :data:`SIZES`, or all there are if they are fewer;
        the smallest within one standard error of the best, if not given.

    Raises
    ------
    RunError
        If the run is not done, or is one on another store.
    UsageError, BudgetError
        If the run was given what cannot be made anew without some rows, rows cannot be dealt into
        folds, or the cap cannot hold the work.
    """
    ledger.check_store(site.store)
    _check_repeatable(ledger)
    if site.cluster is not None:
        check_cluster(ledger.spec)
    manifest = site.store.manifest
    n_iterations = ledger.progress().iteration
    if not n_iterations or not is_done(ledger, int(ledger.meta("iterations"))):
        raise RunError(
            f"{ledger.run}: expected a run that is done, found one after {n_iterations} "
            f"iterations. Bring it to its end with `srs-ooc resume {quote(str(ledger.run))}`."
        )
    splits = list(_splits(ledger, site, folds, repeats))
    room = room_for(ledger.spec, ledger.inputs, manifest)
    asked = [max_features] if max_features else []
    check_room(ledger, site, splits[0], sizes_up_to(room, *asked)[-1])
    records = Records(ledger, folds)
    whole = records.whole()
    if whole is None:
        whole = nest_run(ledger, site)
        if whole is None:
            return None
        records.keep_whole(whole)
    sizes = sizes_up_to(min(len(whole.order), room), *asked)
    job = FoldJob.of(ledger, site, sizes)
    ledger.set_meta(COMPACTED, [folds, repeats])
    do = _here if site.cluster is None else folds_from_workers
    done = do(job, site, records, splits)
    return None if done is None else _small_set(whole, done, site.store, max_features)


def _here(job: FoldJob, site: Site, records: Records, folds: list[Fold]) -> list[FoldRecord] | None:
    """Return the records of all folds, done one after another; None if stopped."""
    done: list[FoldRecord] = []
    for fold in folds:
        here = replace(site, watch=named(f"fold {len(done) + 1} of {len(folds)}", site.watch))
        place = fold.repeat, fold.fold
        record = records.fold(*place) or nest_fold(job, fold, records.run_of(*place), here)
        if record is None:
            return None
        records.keep_fold(record)
        finished = score_sizes(job, record, fold, here)
        records.keep_fold(record)
        if not finished:
            return None
        done.append(record)
    return done


def curve_of(ledger: Run) -> Curve | None:
    """Return what sets are worth, of the folds that are done of what was asked for last.

    None if none is done since the run has as many iterations as it has.
    """
    if not ledger.has_meta(COMPACTED):
        return None
    n_folds, n_repeats = ledger.meta(COMPACTED)
    records, numbers = Records(ledger, n_folds), product(range(n_repeats), range(n_folds))
    done = [record for place in numbers if (record := records.fold(*place)) and record.scores]
    return _curve(done, n_folds)


def _curve(done: list[FoldRecord], n_folds: int, most: int = HEAD) -> Curve | None:
    """Return the scores of sizes up to ``most`` that every fold reached; None if there is none."""
    common = set.intersection(*(set(record.scores) for record in done)) if done else set()
    sizes = sorted(size for size in map(int, common) if size <= most)
    scores = np.array([[record.scores[str(size)] for size in sizes] for record in done])
    return Curve(sizes, scores, max(2, n_folds)) if sizes else None


def _check_repeatable(ledger: Run) -> None:
    """Refuse a run that grows no trees, or was given what was made with rows to be held out."""
    inputs, model = ledger.inputs, ledger.spec.model
    if not model.is_tree:
        raise UsageError(
            f"{ledger.run}: expected a run of --model {TREE}, found one of --model {model.model}: "
            "small sets are found by trees. Compact a run of trees, or export the best of this one "
            "with --top N."
        )
    given = {"--scores FILE": inputs.weights, "--validation-rows": inputs.validation}
    for option, array in given.items():
        if array is not None:
            raise UsageError(
                f"{ledger.run}: expected a run whose selection can be repeated without the rows "
                f"that are held out, found one with {option}: what the file says may come from "
                "all rows. Compact a run without it."
            )


def _splits(ledger: Run, site: Site, n_folds: int, n_repeats: int) -> Iterator[Fold]:
    """Yield the folds: what is trained on and what is held out."""
    inputs, seed = ledger.inputs, ledger.spec.seed
    rows = np.arange(site.store.manifest.n_rows, dtype=np.int32)
    rows = rows if inputs.rows is None else inputs.rows
    task = Task.of(site.store, inputs, exchanges=True)
    target, strata, groups = task.target, task.strata, task.groups
    for repeat in range(n_repeats):
        key = key_of(seed, Purpose.COMPACT, repeat)
        fold_of: NDArray[np.intp] = deal_folds(key, n_folds, target, strata, groups)
        for fold in range(n_folds):
            out = fold_of == fold
            train = Inputs(inputs.excluded, rows[~out])
            yield Fold(repeat, fold, train, rows[out], target[out])


def _small_set(
    whole: WholeRecord, done: list[FoldRecord], store: Store, max_features: int | None
) -> SmallSet:
    """Put the records together, by name."""
    curve = _curve(done, 1 + max(record.fold for record in done), len(whole.order))
    assert curve is not None, "each fold has the set of one feature"
    positions, sizes = store.array("positions"), curve.sizes
    chosen = min(max_features or curve.smallest(), len(whole.order))
    names = [
        [store.names[int(positions[i])] for i in (one, *whole.stand_ins[str(one)])]
        for one in whole.order[:chosen]
    ]
    points = zip(sizes, curve.means.tolist(), curve.errors.tolist(), strict=True)
    return SmallSet(
        whole.n_selected,
        [record.n_selected for record in done],
        [Size(size, mean, error, size == chosen) for size, mean, error in points],
        sizes[curve.best],
        [Member(rank, first, tuple(others)) for rank, (first, *others) in enumerate(names, 1)],
        whole.order,
        curve,
    )
