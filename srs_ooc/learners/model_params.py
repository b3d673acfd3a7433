"""Options of the model that is fitted on each subspace."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import Choice, Params, Text, Whole, option

TREE = "tree"
SUBSPACES, PERMUTATION = "subspaces", "permutation"
MEAN, REFUSE = "mean", "refuse"
DEFAULT_FOLDS = 5
LEADERS = 10
"""Leading features that ``--method srs`` holds in every other subspace of models."""
_LONGEST = 10_000


@dataclass(frozen=True)
class JsonObject:
    """A JSON object, or a dict, kept as the one text that says it: keys sorted, no spaces."""

    takes: ClassVar[tuple[type, ...]] = (str,)

    def canonical(self, name: str, value: Any) -> str:
        """Return the text."""
        flag = f"--{name.replace('_', '-')}"
        try:
            found = json.loads(value[:_LONGEST]) if isinstance(value, str) else value
            if not isinstance(found, Mapping):
                raise TypeError(f"it is a {type(found).__name__}")  # noqa: TRY301 (said as below)
            return json.dumps(dict(found), sort_keys=True, separators=(",", ":"), allow_nan=False)
        except (ValueError, TypeError, RecursionError) as error:
            raise UsageError(
                f'{flag}: expected a JSON object such as {{"n_neighbors": 7}}, found '
                f"{str(value)[:80]!r}: {str(error)[:200]}. Names are the estimator's parameters."
            ) from error


@dataclass(frozen=True, kw_only=True)
class ModelParams(Params):
    """What is fitted on each subspace, and how features are scored by it."""

    model: str = option(
        Text(),
        "What is fitted on each subspace: tree, knn, svm, linear, lda, qda, or the import path of "
        "a scikit-learn estimator such as sklearn.naive_bayes.GaussianNB (docs/methods/models.md).",
        default=TREE,
        metavar="MODEL",
    )
    model_params: str = option(
        JsonObject(),
        "Parameters of the estimator.",
        default="{}",
        default_text="scikit-learn's",
        metavar="JSON",
    )
    model_importance: str | None = option(
        Choice((SUBSPACES, PERMUTATION)),
        "Score features by how the held-out loss differs between subspaces with and without "
        "them, or by how it rises where their values are permuted.",
        default_text="subspaces; permutation with --method srs",
    )
    model_folds: int | None = option(
        Whole(2, 100),
        "Folds of the rows; each is predicted by a model fitted on the others.",
        default_text=f"{DEFAULT_FOLDS}; with --method prs or rase its own",
        metavar="K",
    )
    model_missing: str = option(
        Choice((MEAN, REFUSE)),
        "Missing values: the mean of the rows fitted on, or refuse features that have some.",
        default=MEAN,
    )

    @classmethod
    def settle(cls, given: Mapping[str, Any], table: Any) -> Self:
        """Settle the options; :meth:`for_method` settles what depends on the method.

        Raises
        ------
        UsageError
            If an option of a model is given and the model is a tree.
        """
        params = super().settle(given, table)
        if params.is_tree:
            for name in cls.options():
                if name != "model" and name in given:
                    raise UsageError(
                        f"--{name.replace('_', '-')}: expected with --model knn, svm, linear, lda, "
                        f"qda or an import path only, found --model {TREE}. Leave it out, or "
                        "choose that."
                    )
        return params

    @property
    def is_tree(self) -> bool:
        """Whether randomized trees of this package are grown."""
        return self.model == TREE

    @property
    def scores_features(self) -> bool:
        """Whether features are scored by what these models lose; not where a method does it."""
        return self.model_importance is not None

    @property
    def parameters(self) -> dict[str, Any]:
        """What the estimator is made with."""
        found: dict[str, Any] = json.loads(self.model_params)
        return found


TREE_MODEL = ModelParams(
    model=TREE, model_params="{}", model_importance=None, model_folds=None, model_missing=MEAN
)
