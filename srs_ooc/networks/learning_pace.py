"""What learning the probabilities of a target takes: some epochs of a few targets, timed."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from srs_ooc.networks.probabilities import Probabilities
from srs_ooc.networks.probability_params import ProbabilityParams
from srs_ooc.networks.responses import training_rows
from srs_ooc.networks.task import NetworkTask
from srs_ooc.networks.weighing import Bench
from srs_ooc.runs.engine import ItemSource
from srs_ooc.runs.resources import categorical_features
from srs_ooc.samplers.prs import FINAL
from srs_ooc.trees.block import Block

SETS_AN_EPOCH = 1 / 3
"""How often models are grown anew, before any epoch was seen: measured with the usual options on
100 genes of 100 rows. It counts as much as :data:`PRIOR_EPOCHS` epochs that were seen."""
PRIOR_EPOCHS = 3
FIRST_MODELS = 10
"""Models grown first, to see how many of them there is time for."""
Target = tuple[int, NDArray[np.float64]]


@dataclass(frozen=True)
class LearningPace:
    """What was measured.

    Attributes
    ----------
    model_seconds, step_seconds : float
        Of a model, and of a step of one fold, as each of the workers took.
    sets_an_epoch : float
        How often models are grown anew.
    n_models, n_epochs, n_tried : int
        What was done for it.
    n_workers : int
        Workers.
    """

    model_seconds: float
    step_seconds: float
    sets_an_epoch: float
    n_models: int
    n_epochs: int
    n_tried: int
    n_workers: int

    def seconds(self, n_targets: int, params: ProbabilityParams) -> float:
        """Return the seconds of so many targets, all epochs of them."""
        sets = 1 + self.sets_an_epoch * (params.epochs - 1)
        growing = sets * params.folds * params.models * self.model_seconds
        stepping = params.epochs * params.folds * self.step_seconds
        batches = max(1.0, n_targets / self.n_workers)
        # Joint steps are taken by one thread, one target after the other.
        return growing * batches + stepping * (n_targets if params.is_joint else batches)


@dataclass
class _Timed:
    """What one target took."""

    n_models: int = 0
    growing: float = 0.0
    n_steps: int = 0
    stepping: float = 0.0
    n_epochs: int = 0
    n_renewed: int = 0


def learning_pace(
    task: NetworkTask,
    params: ProbabilityParams,
    source: ItemSource,
    targets: Iterator[Target],
    seconds: float,
) -> LearningPace:
    """Measure a few targets for about so long, one epoch at least.

    Where there is no time for an epoch with all its models, it is one of fewer, and a step takes
    as many times longer.
    """
    n_workers = min(task.grant.n_workers, len(task.genes.targets))
    trial = _Trial(task, source, n_workers)
    first = trial.learn(params, next(targets), 0, 0.0, FIRST_MODELS)
    model_seconds = first.growing / first.n_models
    room = int(seconds / (2 * params.folds * model_seconds))
    tried = replace(params, models=min(params.models, max(2, room)))
    joint = params.is_joint
    alone = trial.learn(tried, next(targets), 0, seconds / 2) if joint else None
    some = list(islice(targets, n_workers))
    deadline = seconds / 2 if joint else seconds
    with ThreadPoolExecutor(n_workers, "trial") as pool:
        timed = list(pool.map(lambda i: trial.learn(tried, some[i], i, deadline), range(n_workers)))
    steps = timed if alone is None else [alone]
    n_models, n_epochs = (sum(getattr(t, name) for t in timed) for name in ("n_models", "n_epochs"))
    step_seconds = sum(t.stepping for t in steps) / max(1, sum(t.n_steps for t in steps))
    renewed = sum(t.n_renewed for t in timed) + PRIOR_EPOCHS * SETS_AN_EPOCH
    return LearningPace(
        sum(t.growing for t in timed) / n_models,
        step_seconds * params.models / tried.models,
        renewed / (n_epochs + PRIOR_EPOCHS),
        n_models,
        n_epochs,
        n_workers,
        n_workers,
    )


class _Trial:
    """Has targets learnt for a while, on blocks of this network."""

    def __init__(self, task: NetworkTask, source: ItemSource, n_workers: int) -> None:
        self._regulators = task.genes.regulators
        self._blocks: list[Block] = task.blocks(n_workers)
        weights = task.store.weights()
        self._weights = weights if weights is None or task.rows is None else weights[task.rows]
        seed, categorical = task.request.params.seed, categorical_features(task.store)
        self._bench = Bench(source, categorical, seed, lambda: True)

    def learn(
        self,
        params: ProbabilityParams,
        target: Target,
        place: int,
        seconds: float,
        most_models: int | None = None,
    ) -> _Timed:
        """Learn one epoch at least and so long, or until there are ``most_models``."""
        stored, values = target
        rows = training_rows(values, self._weights)
        assert rows is not None, "targets that are tried vary"
        others, block = self._regulators[self._regulators != stored], self._blocks[place]
        sampler, models = Probabilities(params, self._bench).begun(block, stored, others, rows)
        found, begun = _Timed(), perf_counter()
        while sampler.phase != FINAL and found.n_models != most_models:
            before = perf_counter()
            if sampler.step():
                found.stepping += perf_counter() - before
                found.n_steps += 1
                if sampler.epoch > 0 and before - begun >= seconds:
                    break
                continue
            number = found.n_models
            sampler.absorb(number, models.fit(block, number, sampler.propose(number, 0)))
            found.growing += perf_counter() - before
            found.n_models += 1
        found.n_epochs = sampler.epoch
        found.n_renewed = sampler.n_drawn - (sampler.phase == FINAL)
        return found
