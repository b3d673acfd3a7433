"""Closing stages with a tenth of the trees, for tests that hold something else."""

from srs_ooc.ensemble import compaction
from srs_ooc.runs import screening
from srs_ooc.samplers import elimination

ALL, FEW = elimination.TREES, 100


def closing_trees(monkeypatch, n_trees):
    """Have the closing stages of this process grow so many trees a round."""
    for module in (elimination, screening, compaction):
        monkeypatch.setattr(module, "TREES", n_trees)
