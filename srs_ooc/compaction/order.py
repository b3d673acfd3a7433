"""The first features of a run, ordered by what they are worth together."""

import numpy as np
from numpy.typing import NDArray

from srs_ooc.compaction.fold_runs import Site, inputs_of, small_parts
from srs_ooc.compaction.nested import columns_of, sampled_nbytes
from srs_ooc.evidence.ranking import largest, mean_importance
from srs_ooc.evidence.redundancy import HEAD, by_worth
from srs_ooc.evidence.tally import Tally
from srs_ooc.ledger import Ledger
from srs_ooc.runs import spec_of
from srs_ooc.samplers.kept import KeptSet
from srs_ooc.seeds import Purpose, key_of
from srs_ooc.store.manifest import read_manifest


def first_by_worth(ledger: Ledger, site: Site) -> NDArray[np.uint32]:
    """Return the stored positions of the ``HEAD`` most important features, by worth.

    All others follow them by importance
    (:func:`srs_ooc.evidence.redundancy.full_order`). Importance is that of the screen, so the order
    is defined for every run, with a verdict or without.
    """
    spec, manifest = spec_of(ledger), read_manifest(site.store)
    n_features = manifest.n_features
    tally = Tally(spec.n_items(n_features), wins=not spec.concludes)
    ledger.load(tally, KeptSet(n_features))
    key = key_of(spec.seed, Purpose.RANK_TIE)

    def importance(piece: slice) -> NDArray[np.float64]:
        return mean_importance(tally, slice(piece.start, min(piece.stop, n_features)))

    head = largest(importance, n_features, HEAD, key)
    values = mean_importance(tally, head)
    inputs = inputs_of(ledger)
    n_rows = manifest.n_rows if inputs.rows is None else len(inputs.rows)
    extra = sampled_nbytes(len(head), n_rows, manifest.code_nbytes)
    with small_parts(spec, inputs, site, extra) as parts:
        columns = columns_of(parts, head, manifest)
    return head[by_worth(values, columns, head, key)]
