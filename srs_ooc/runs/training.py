"""What training rows say: their response, and what covariates say of them."""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from srs_ooc.base.arrays import Floats, Ints32
from srs_ooc.base.budget import Lease
from srs_ooc.base.errors import UsageError
from srs_ooc.base.records import Covariate
from srs_ooc.evidence.null_model import NullModel, fit_nbytes, form_of
from srs_ooc.learners.tree_learner import UNWEIGHTED
from srs_ooc.runs.inputs import Inputs
from srs_ooc.runs.task import Task, of_rows, stated_target
from srs_ooc.store.store import Store
from srs_ooc.trees.response import Response

BALANCED = "balanced"


def training_response(task: Task) -> Response:
    """Return what the training rows say.

    A row's weight is that of the store's column of weights, if it has one, times that of its class.
    ``task.class_weight`` is ``none``; ``balanced``, for n / (classes x rows of the class); or
    ``NAME=w,NAME=w``, where a class that is not named weighs 1.

    Raises
    ------
    UsageError
        If there is nothing to learn from them, or a weight is none.
    """
    target, weights, class_weight = task.target, task.weights, task.class_weight
    if task.is_regression:
        if class_weight != UNWEIGHTED:
            raise UsageError("--class-weight: expected a store of classes, found one of numbers.")
        if task.censored is not None and not task.censored.events.any():
            raise UsageError(
                f"expected an event in some of the rows trained on, found none in {len(target)} "
                "rows. Check the file given with --rows."
            )
        if bool((target == target[0]).all()):
            raise UsageError(
                f"expected training rows whose targets differ, found {len(target)} rows of "
                f"{float(target[0])}. Check the file given with --rows."
            )
        return Response.targets(target.astype(np.float64), weights)
    labels = target.astype(np.int32, copy=False)
    if len(np.unique(labels)) < 2:
        raise UsageError(
            f"expected training rows of at least two classes, found {len(labels)} rows of one. "
            "Check the file given with --rows."
        )
    if class_weight != UNWEIGHTED:
        by_class = class_weights(class_weight, labels, task.classes)[labels]
        with np.errstate(over="ignore", under="ignore"):
            products = by_class if weights is None else by_class * weights
        wrong = ~(np.isfinite(products) & (products > 0))
        if weights is not None and wrong.any():
            raise UsageError(
                "--class-weight: expected weights that times those of the rows are finite numbers "
                f"above 0, found {by_class[wrong][0]:g} times {weights[wrong][0]:g}. "
                "Choose weights nearer to 1."
            )
        weights = products
    return Response.classes(labels, len(task.classes), weights)


def class_weights(text: str, labels: Ints32, classes: tuple[str, ...]) -> Floats:
    """Return the weight of each class; float64 (n_classes,).

    Raises
    ------
    UsageError
        If the text names no class, or one twice, or no number above 0.
    """
    if text == BALANCED:
        counts = np.bincount(labels, minlength=len(classes))
        present = np.count_nonzero(counts)
        return np.asarray(len(labels) / (present * np.maximum(counts, 1)), dtype=np.float64)
    weights = np.ones(len(classes))
    named: set[str] = set()
    for part in text.split(","):
        name, _, number = part.rpartition("=")
        if name not in classes:
            raise UsageError(
                f"--class-weight: expected none, balanced or CLASS=WEIGHT,..., found {part!r}. "
                f"Classes of the store: {', '.join(classes[:5])}{', ...' * (len(classes) > 5)}."
            )
        if name in named:
            raise UsageError(
                f"--class-weight: expected each class once, found {name!r} again. Leave one out."
            )
        named.add(name)
        try:
            weight = float(Fraction(number))
        except (ValueError, ZeroDivisionError, OverflowError):
            weight = 0.0
        if not weight > 0:
            raise UsageError(
                f"--class-weight: expected a number above 0, found {part!r}. "
                "To train without a class, name the other rows with --rows."
            )
        weights[classes.index(name)] = weight
    return weights


def adjusted_inputs(store: Store, inputs: Inputs, names: str) -> Inputs:
    """Return inputs with the null model of some covariates, by name, fitted to the rows.

    Raises
    ------
    UsageError
        As of :meth:`srs_ooc.evidence.null_model.NullModel.of`.
    """
    strata = of_rows(store.strata(), inputs.rows)
    covariates = _covariates_of(store, inputs, names)
    null = NullModel.of(stated_target(store, inputs.rows), covariates, strata)
    return replace(inputs, null_model=null)


def fit_of(store: Store, inputs: Inputs, names: str) -> tuple[int, Lease]:
    """Return how many columns a null model has at most, and what fitting it takes.

    Raises
    ------
    UsageError
        If rows come in groups, or are too few for the covariates.
    """
    if "groups" in store.manifest.row_columns:
        raise UsageError(
            f"--adjust: expected a store without groups of rows, found {store.place} with groups. "
            "Make one row of each: ingest the table with --aggregate mean, or keep one row of "
            "each where the target differs within groups; or leave --adjust out."
        )
    strata = of_rows(store.strata(), inputs.rows)
    covariates = _covariates_of(store, inputs, names)
    for one in covariates:
        if len(np.unique(one.values)) < 2:
            raise UsageError(
                f"--adjust: expected covariates that differ among the rows trained on, found "
                f"{one.name!r} with one value, or none. Name the others."
            )
    n_columns, n_rows = form_of(covariates, strata)[2], len(covariates[0].values)
    what = f"fitting {n_columns} columns of covariates"
    return n_columns, Lease(what, fit_nbytes(n_rows, n_columns))


def _covariates_of(store: Store, inputs: Inputs, names: str) -> list[Covariate]:
    kept = slice(None) if inputs.rows is None else inputs.rows
    found = (one for one in store.covariates() if one.name in names.split(","))
    return [one._replace(values=one.values[kept]) for one in found]
