"""What sensitivity needs of memory: before it is known what trees use, and after."""

from srs_ooc.base.budget import Budget, Lease
from srs_ooc.base.text import MB
from srs_ooc.ensemble.ensemble import most_ensemble_nbytes
from srs_ooc.ensemble.item_codes import piece_nbytes
from srs_ooc.ensemble.unseen import DRAW_NBYTES
from srs_ooc.evidence.decoys import Exchangeability
from srs_ooc.runs.inputs import InputFiles
from srs_ooc.runs.run_trees import TreeReader
from srs_ooc.runs.spec import RunSpec
from srs_ooc.runs.tree_splits import SPLIT_NBYTES
from srs_ooc.store.store import Store
from srs_ooc.trees.block import block_nbytes
from srs_ooc.trees.saved import row_nbytes

MOST_REPEATS = 100
"""Permutations at most."""
VOTES_NBYTES = 4 * MB
"""Memory for which trees vote on which rows."""
ITEM_NBYTES = 160
"""Memory of an item that trees use, whatever the rows."""
ROW_NBYTES = 160
"""Memory of a row of the store: its target, and what is drawn for it."""
WORK_NBYTES = 8 * MB
"""Allowance for what is read of the store beside rows."""


def check_reading(
    trees: TreeReader, store: Store, spec: RunSpec, files: InputFiles, cap_nbytes: int
) -> None:
    """Check that the cap holds what comes before it is known how many features trees use.

    A cap that is named holds the rest too, with the most features that trees may use.
    """
    n_used = min(trees.nbytes // SPLIT_NBYTES, (1 + spec.decoys) * store.n_features)
    nodes = most_ensemble_nbytes(trees, 0, 0, store.n_rows)
    rest = walking_leases(spec, store, n_used, MOST_REPEATS, nodes)
    leases = [
        ("trees", nodes + 32 * n_used),
        (f"labels of {store.n_rows} rows", ROW_NBYTES * store.n_rows + WORK_NBYTES),
        *files.leases(store.n_features),
    ]
    budget = Budget(cap_nbytes, other_nbytes=sum(lease.n_bytes for lease in rest))
    budget.leases += [Lease(*lease) for lease in leases]
    budget.check()


def walking_leases(
    spec: RunSpec, store: Store, n_items: int, n_repeats: int, trees_nbytes: int
) -> list[Lease]:
    """Return what walking the trees needs besides the process; last of all, a row."""
    manifest = store.manifest
    code_nbytes, n_rows = manifest.code_nbytes, manifest.n_rows
    of_rows = (ROW_NBYTES + DRAW_NBYTES) * n_rows + 2 * VOTES_NBYTES + WORK_NBYTES
    decoys = Exchangeability.nbytes(n_rows, spec.decoys) if spec.decoys else 0
    row = row_nbytes(n_items, max(1, len(manifest.classes)), code_nbytes)
    row += n_items * code_nbytes * (n_repeats - 1) + piece_nbytes(code_nbytes, n_repeats)
    return [
        Lease("trees", trees_nbytes),
        Lease(f"{n_items} features that trees use", ITEM_NBYTES * n_items),
        Lease(f"{n_rows} rows", of_rows),
        Lease("a column", 2 * block_nbytes(1, n_rows, code_nbytes)),
        Lease("names and places", 12 * store.n_features),
        *([Lease("decoys", decoys)] if decoys else []),
        Lease("a row of all features that trees use", row),
    ]
