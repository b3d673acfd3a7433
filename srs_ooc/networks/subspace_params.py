"""Options of Sequential Random Subspace for every target."""

from dataclasses import dataclass
from math import ceil

from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import Share, Whole, option
from srs_ooc.evidence.judges import ProbeParams
from srs_ooc.networks.edge_params import EdgeParams, EdgeTable, trees_option
from srs_ooc.trees.block import block_nbytes
from srs_ooc.trees.kernel import scratch_nbytes

USUAL_SHARE, LEAST_SIZE = 0.05, 10
"""q by default: the runs' share of the regulators, and so many where there are as many."""
REGULATOR_NBYTES = 64
"""Bytes of a regulator: what was learnt of it, and whether it is kept."""


@dataclass(frozen=True, kw_only=True)
class SubspaceParams(ProbeParams, EdgeParams):
    """Sequential Random Subspace under the paper's probe; trees as those of runs."""

    trees: int = trees_option()
    subspace_size: int | None = option(
        Whole(1),
        "Regulators in a subspace.",
        default_text=f"{USUAL_SHARE:.0%} of them, at least {LEAST_SIZE}",
        metavar="Q",
        flags=("--q",),
    )
    alpha: str = option(
        Share(),
        "Share of the subspace held for regulators already kept (0: Random Subspace).",
        default="0.5",
        metavar="SHARE",
    )

    def size(self, n_regulators: int) -> int:
        """Return q for a target with so many regulators."""
        usual = max(LEAST_SIZE, ceil(USUAL_SHARE * n_regulators))
        return min(n_regulators, self.subspace_size or usual)

    def check_table(self, table: EdgeTable) -> None:
        """Refuse subspaces of more regulators than there are."""
        if self.subspace_size is not None and self.subspace_size > table.n_regulators:
            raise UsageError(
                f"--subspace-size: expected at most {table.n_regulators}, the regulators of a "
                f"target, found {self.subspace_size}. Choose a smaller one."
            )

    def work_nbytes(self, table: EdgeTable) -> int:
        """Return the bytes of a subspace's columns, its tree, and the tallies."""
        size = self.size(table.n_regulators) + 1
        scratch = scratch_nbytes(table.n_rows, size, 1, table.code_nbytes, 1 + table.weighted)
        columns = 2 * block_nbytes(size, table.n_rows, table.code_nbytes)
        return columns + scratch + REGULATOR_NBYTES * table.n_regulators
