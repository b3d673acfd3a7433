"""What counting decoys can select at a level, known before a run but for clusters of noise."""

from dataclasses import dataclass

from srs_ooc.base.options import exact_share
from srs_ooc.evidence.verdict import fewest_features
from srs_ooc.native.numerics import log
from srs_ooc.planning.subject import Subject
from srs_ooc.runs.task import Task

CLUSTERS = (1, 5, 20)
"""Sizes of clusters of correlated noise that are shown; the first is what is assumed."""


@dataclass(frozen=True)
class Counting:
    """What a verdict by counting lets through.

    Attributes
    ----------
    families : int
        M.
    level : float
        Bound of the expected share of false features.
    fewest : dict of int to int
        By the size of the largest cluster of correlated decoys (c), the fewest features that are
        not marginally significant that can be selected.
    log_arrangements : float or None
        Natural logarithm of the ways in which exchanges of rows arrange the target; None without a
        store.
    """

    families: int
    level: float
    fewest: dict[int, int]
    log_arrangements: float | None

    def are_few(self, n_features: int) -> bool:
        """Return whether no p-value of exchanges passes among so many features at the level."""
        if self.log_arrangements is None:
            return False
        return self.log_arrangements < log(n_features / self.level)


def counting_of(subject: Subject) -> Counting | None:
    """Return what counting lets through; None for a run that does not count decoys."""
    spec = subject.spec
    if not spec.decoys:
        return None
    level = float(exact_share(spec.fdr))
    found = None
    if subject.store is not None:
        task = Task.of_run(spec, subject.store, subject.inputs)
        found = task.exchangeability().log_arrangements(task.target)
    fewest = {size: fewest_features(spec.decoys, size, level) for size in CLUSTERS}
    return Counting(spec.decoys, level, fewest, found)
