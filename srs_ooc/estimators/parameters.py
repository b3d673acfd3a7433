"""The parameters that all estimators have, and what they ask of a run."""

from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from srs_ooc.runs.settling import declared
from srs_ooc.store.store import Store

_SEEDS = 1 << 32


class Parameters(BaseEstimator):
    """What :class:`srs_ooc.estimators.SRSSelector` documents."""

    _saves_trees = False

    def __init__(
        self,
        *,
        method: str | None = None,
        judge: str | None = None,
        model: str | None = None,
        model_params: dict[str, Any] | None = None,
        alpha: float | None = None,
        subspace_size: int | str | None = None,
        fdr: float | None = None,
        decoys: int | None = None,
        permutations: int | None = None,
        replays: int | None = None,
        keep: int | None = None,
        closing: str | None = None,
        probe_min_draws: int | None = None,
        probe_min_wins: float | None = None,
        max_features: int | float | str | None = None,
        impurity: str | None = None,
        splitter: str | None = None,
        thresholds: str | None = None,
        min_impurity_decrease: float | None = None,
        bootstrap: bool | None = None,
        class_weight: dict[Any, float] | str | None = None,
        max_depth: int | None = None,
        min_samples_leaf: int | None = None,
        trees_per_subspace: int | None = None,
        draw_block: int | None = None,
        round_size: int | None = None,
        options: dict[str, Any] | None = None,
        n_features_to_select: int | None = None,
        iterations: int | None = None,
        until_stable: bool = False,
        task: str = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
        memory_mb: int | None = None,
        cache_dir: str | Path | None = None,
        verbose: int = 0,
    ) -> None:
        self.method = method
        self.judge = judge
        self.model = model
        self.model_params = model_params
        self.alpha = alpha
        self.subspace_size = subspace_size
        self.fdr = fdr
        self.decoys = decoys
        self.permutations = permutations
        self.replays = replays
        self.keep = keep
        self.closing = closing
        self.probe_min_draws = probe_min_draws
        self.probe_min_wins = probe_min_wins
        self.max_features = max_features
        self.impurity = impurity
        self.splitter = splitter
        self.thresholds = thresholds
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.class_weight = class_weight
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.trees_per_subspace = trees_per_subspace
        self.draw_block = draw_block
        self.round_size = round_size
        self.options = options
        self.n_features_to_select = n_features_to_select
        self.iterations = iterations
        self.until_stable = until_stable
        self.task = task
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.memory_mb = memory_mb
        self.cache_dir = cache_dir
        self.verbose = verbose

    def _request(self, store: Store) -> dict[str, Any]:
        """Return what the parameters ask of a run of ``store``, by keywords of ``api.run``."""
        given = self.get_params(deep=False)
        known = {*declared(), *(option.former for option in declared().values())}
        identity = {name: value for name, value in given.items() if name in known}
        return {
            **identity,
            **(self.options or {}),
            "seed": self._seed(),
            "class_weight": self._class_weight(store),
            "iterations": self.iterations,
            "until_stable": self.until_stable,
            "memory_mb": self.memory_mb,
            "threads": effective_n_jobs(self.n_jobs),
            "save_trees": self._saves_trees,
            "progress": bool(self.verbose),
        }

    def _seed(self) -> int:
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(_SEEDS, dtype=np.int64))

    def _class_weight(self, store: Store) -> str | None:
        """Return weights by label as a run has them, 1 for a class that is not named."""
        if not isinstance(self.class_weight, dict):
            return self.class_weight
        named = {str(label): float(weight) for label, weight in self.class_weight.items()}
        return weights_text({label: named.get(label, 1.0) for label in store.manifest.classes})


def weights_text(weights: dict[str, float]) -> str:
    """Return weights of classes as the command line has them."""
    return ",".join(f"{label}={weight!r}" for label, weight in weights.items())
