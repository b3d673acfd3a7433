"""What a run learns from, besides its columns: read once, shared by every stage.

Training rows, their classes or targets and weights; for base models their folds and learner.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.arrays import Floats, Integers, Ints32
from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import exact_share
from srs_ooc.evidence.conditional_tests import SHARE
from srs_ooc.evidence.exchangeability import Alike, Exchangeability, strata_instead
from srs_ooc.evidence.null_model import Censored, NullModel, censored_scores
from srs_ooc.evidence.rank_tests import Contrast, Covariates, RankTarget, strongest_contrasts
from srs_ooc.learners.tree_learner import UNWEIGHTED
from srs_ooc.native.numerics import exp, log
from srs_ooc.runs.spec import RunSpec
from srs_ooc.store.manifest import too_few_events
from srs_ooc.store.store import Store

_Item = TypeVar("_Item", bound=np.generic)
_BY_SIZE, _BY_SIZE_IN_OCTAVES = 1.0, 2.0
"""Minus the decimal logarithms of the p-values below which sizes go with the target: whole octaves
of sizes, and sizes within octaves. So p-values are at most 1 + .1 + .01 times too small."""


@dataclass(frozen=True)
class Task:
    """Training rows, what each says, and the features that may be drawn.

    Attributes
    ----------
    rows : int32 (n_rows,) or None
        Rows of the store trained on; None for all.
    classes : tuple of str
        Labels by code; none of a regression.
    class_weight : str
        How classes are weighed; see :func:`srs_ooc.runs.task.training_response`.
    target : int32 or float64 (n_rows,)
        Class code, or number, of each training row.
    weights : float64 (n_rows,) or None
        Weight of each row, where the store has them.
    strata, groups : int32 (n_rows,) or None
        Where the store has them and they were asked for.
    covariates : Covariates or None
        What features are adjusted for.
    is_scored : bool
        The target is scores, whole numbers that are not to be ranked: of a censored one, or of what
        covariates leave of one.
    row_columns : dict
        Names of the columns of weights, strata and groups.
    units : Exchangeability or None
        Of a task of groups (:meth:`by_group`), the groups.
    untested : tuple of Contrast
        What of them is not tested, as sizes of groups could pass for it.
    note : str
        What is worth saying of how they are compared, and what to do if that is not meant.
    censored : Censored or None
        Time and event of each training row, where the target is these.
    """

    rows: Ints32 | None
    classes: tuple[str, ...]
    class_weight: str
    target: Ints32 | Floats
    weights: Floats | None = None
    strata: Ints32 | None = None
    groups: Ints32 | None = None
    covariates: Covariates | None = None
    is_scored: bool = False
    row_columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    units: Exchangeability | None = None
    untested: tuple[Contrast, ...] = ()
    note: str = ""
    censored: Censored | None = None

    @classmethod
    def of(
        cls,
        store: Store,
        rows: Ints32 | None = None,
        class_weight: str = UNWEIGHTED,
        *,
        exchanges: bool = False,
    ) -> "Task":
        """Read the task from a store.

        Parameters
        ----------
        store : Store
            The store.
        rows : int32 (n_rows,), optional
            Rows trained on; default all.
        class_weight : str
            How classes are weighed.
        exchanges : bool
            Read strata and groups too: rows trade places, or are compared within strata.

        Raises
        ------
        StoreError
            If the store is damaged.
        """
        strata, target = of_rows(store.strata(), rows), stated_target(store, rows)
        censored = target if isinstance(target, Censored) else None
        if isinstance(target, Censored):
            target = censored_scores(target, strata).astype(np.float64)
        return cls(
            rows,
            store.manifest.classes,
            class_weight,
            target,
            of_rows(store.weights(), rows),
            strata if exchanges else None,
            of_rows(store.groups(), rows) if exchanges else None,
            is_scored=censored is not None,
            censored=censored,
            row_columns=store.manifest.row_columns,
        )

    def adjusted(self, null: NullModel | None) -> "Task":
        """Return the task beside a null model of its rows, where there is one.

        Rows are compared within its strata. Numbers and times have its scores for a target; rows of
        classes weigh more where covariates make their class rare.
        """
        if null is None:
            return self
        beside = replace(self, strata=null.strata, covariates=null.covariates())
        scores = null.scores.astype(np.float64)
        if self.is_regression:
            return replace(beside, target=scores, is_scored=True)
        return replace(beside, weights=scores if self.weights is None else scores * self.weights)

    @property
    def n_rows(self) -> int:
        """Rows trained on."""
        return len(self.target)

    @property
    def is_regression(self) -> bool:
        """Whether the target is numbers."""
        return not self.classes

    def exchangeability(self, alike: Alike = "size") -> Exchangeability:
        """Return which rows, or groups of them, may trade places."""
        return Exchangeability(self.n_rows, self.strata, self.groups, alike)

    def by_group(self) -> "Task":
        """Return what tests of features are of: a row a group, in strata of groups that are alike.

        The target is that of a group's rows, and groups of all sizes are alike. They are so in one
        octave of sizes, where an exact rank test of octaves against the target finds p < 0.1; of
        one size, where one of sizes within octaves finds p < 0.01, and where the target differs
        within groups: then it is the sum of numbers, or how many rows have the second of two
        classes. Without groups it is the task itself.

        Raises
        ------
        UsageError
            If more than two classes differ within groups.
        """
        if self.groups is None:
            return self
        units = self.exchangeability()
        target, largest = units.spans(self.target)
        if n_mixed := int(np.count_nonzero(target != largest)):
            return self._by_count(units, n_mixed)
        out = replace(self, target=target, groups=None)
        octaves, alike, unit = self.exchangeability("octave"), units, "of their size"
        strength = out._alike(octaves)._strength_of(units.sizes)
        if strength <= _BY_SIZE_IN_OCTAVES:
            whole = out._alike(self.exchangeability("any"))
            strength = whole._strength_of(units.octaves)
            if strength <= _BY_SIZE:  # what is missing is then tested: sizes do not tell the target
                return replace(whole, untested=whole.untested[:1])
            alike, unit = octaves, "of about their size (1, 2-3, 4-7, 8-15 rows, ...)"
        out = out._alike(alike)
        left = "; differences in spread and in what is missing are not tested"
        note = (
            f"sizes of groups go with the target (p = {10.0**-strength:.2g}): groups are permuted "
            f"among groups {unit}{left * bool(out.untested)}. Name about as many rows of each "
            "group with --rows to do without"
        )
        return replace(out, note=note)

    def _strength_of(self, sizes: Integers) -> float:
        """Return -log10 p of an exact rank test of the sizes of groups against their targets."""
        values, codes = np.unique(sizes, return_inverse=True)
        if self.is_regression:
            tested = RankTarget.of_values(self.target.astype(np.float64), self.strata)
        else:
            labels, n_classes = self.target.astype(np.int64), len(self.classes)
            tested = RankTarget.of_classes(labels, n_classes, self.strata)
        columns = codes.astype(np.uint16)[None]
        return float(strongest_contrasts(columns, len(values), tested, exactly=True)[0][0])

    def _by_count(self, units: Exchangeability, n_mixed: int) -> "Task":
        """Return the task of groups, within so many of which the target differs."""
        classes, counted = self.classes, self.target
        instead = strata_instead(self.row_columns)
        if classes:
            present, classes = np.unique(counted), ()
            if len(present) > 2:
                raise UsageError(
                    "expected groups of rows of one class each, or two classes, found "
                    f"{len(present)} classes that differ within groups: tests of groups know no "
                    f"order of them. {instead}."
                )
            counted = counted == present[1]
        note = (
            f"the target differs within {n_mixed:,} of {len(units.sizes):,} groups: tested is its "
            f"sum over the rows of a group, among groups of one size. {instead}"
        )
        counted = units.sums(counted)
        return replace(self, classes=classes, target=counted, groups=None, note=note)._alike(units)

    def _alike(self, units: Exchangeability) -> "Task":
        """Return the task of groups with those that trade places as strata."""
        untested = () if units.are_even else (Contrast.SPREAD, Contrast.ABSENCE)
        strata = units.classes.astype(np.int32)
        spans = [units.spans(part) for part in self.censored or ()]
        is_one = spans and all((low == high).all() for low, high in spans)
        censored = Censored(*(low for low, _ in spans)) if is_one else None
        return replace(self, strata=strata, units=units, untested=untested, censored=censored)

    def check_exchangeable(self, spec: RunSpec) -> None:
        """Check that exchanges of rows arrange the target in enough ways for the tests.

        Raises
        ------
        UsageError
            If exchanges arrange the target in too few ways for the level, or in one.
        """
        are_free = self.strata is None and self.groups is None
        least = 1.0 if are_free else 1 / float(exact_share(spec.fdr))
        tested = self.by_group()
        tested.exchangeability().check(tested.target, least, tested.note)

    def few(self, spec: RunSpec, n_tested: int) -> list[str]:
        """Return what is worth saying of rows before a run: too few, or not alike."""
        note = self.by_group().note if spec.concludes else ""  # how groups are compared
        said = [self.too_few(spec, n_tested), note and f"{note}."]
        if self.censored is not None:
            said.insert(0, too_few_events(int(self.censored.events.sum()), self.n_rows))
        if spec.adjusts_for:
            said.append(self._left_over())
        elif spec.concludes and (names := ", ".join(self.row_columns.get("covariates", ()))):
            said.append(f"covariates {names} play no part: --adjust all tests beside them.")
        return [*filter(None, said)]

    def _left_over(self) -> str | None:
        """Return how many rows are compared beside covariates, where these are few."""
        if self.strata is None or not self.classes:
            return None
        kinds = np.unique(np.stack([self.strata, self.target]), axis=1)[0]
        n = int(np.isin(self.strata, np.flatnonzero(np.bincount(kinds) > 1)).sum())
        said = (
            f"only {n:,} of {self.n_rows:,} rows are compared with one of another class: a class "
            "is rare, or covariates nearly say it. Then adjust for fewer to find more."
        )
        return said if 2 * n < self.n_rows else None

    def too_few(self, spec: RunSpec, n_tested: int) -> str | None:
        """Return why tests can select no single feature of so many, if so.

        No exact test has a p-value below one in the ways in which rows, or groups of them, can have
        their targets.
        """
        if not spec.concludes:
            return None
        needed = n_tested / (SHARE * float(exact_share(spec.fdr)))
        tested, what = self.by_group(), "rows" if self.groups is None else "groups"
        log_ways = tested.exchangeability().log_arrangements(tested.target)
        if log_ways >= log(needed):
            return None
        ways = exp(log_ways)
        n_together = ceil(needed / ways)
        others = f"only {n_together:,} or more together, if all are as strong"
        return (
            f"with {tested.n_rows:,} {what} no single feature among {n_tested:,} can be selected: "
            f"{what} can have these targets in {ways:,.0f} ways, so no p-value is below 1 in "
            f"{ways:,.0f}, and 1 in {needed:,.0f} is needed; "
            f"{others if n_together <= n_tested else 'nor can all together'}. Get more {what}."
        )


def stated_target(store: Store, rows: Ints32 | None) -> Ints32 | Floats | Censored:
    """Return what a store says of the rows trained on: classes, numbers, or censored times."""
    target, seen = store.target(), of_rows(store.events(), rows)
    target = target if rows is None else target[rows]
    return target if seen is None else Censored(target.astype(np.float64), seen)


def of_rows(values: NDArray[_Item] | None, rows: Ints32 | None) -> NDArray[_Item] | None:
    """Return the values of ``rows``, or all."""
    return values if values is None or rows is None else values[rows]
