"""The first features of a run, ordered by what they are worth together."""

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.compaction.candidates import Candidates
from srs_ooc.compaction.fold_runs import Site, small_parts
from srs_ooc.compaction.nested import columns_of, sampled_nbytes
from srs_ooc.evidence.ranking import mean_importance
from srs_ooc.evidence.redundancy import HEAD, by_worth
from srs_ooc.evidence.tally import Tally
from srs_ooc.runs.inputs import inputs_of
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.place import spec_of
from srs_ooc.runs.search import TALLY


def first_by_worth(ledger: Ledger, site: Site) -> NDArray[np.uint32]:
    """Return the stored positions of the first ``HEAD`` features of a run that is done, by worth.

    The selected ones come before the others. All that are not here follow by importance
    (:func:`srs_ooc.evidence.redundancy.full_order`), which is that of the screen.
    """
    spec, manifest = spec_of(ledger), site.store.manifest
    candidates = Candidates.of(ledger, manifest.n_features, HEAD)
    head, is_selected = candidates.features[:HEAD], candidates.is_selected[:HEAD]
    tally = Tally(spec.n_items(manifest.n_features), wins=not spec.concludes)
    ledger.load({TALLY: tally})
    importance = mean_importance(tally, head)
    del tally
    inputs = inputs_of(ledger)
    n_rows = manifest.n_rows if inputs.rows is None else len(inputs.rows)
    extra = sampled_nbytes(len(head), n_rows, manifest.code_nbytes)
    with small_parts(spec, inputs, site, extra) as parts:
        columns = columns_of(parts, head)
    return head[
        by_worth(importance, columns, head, key_of(spec.seed, Purpose.RANK_TIE), is_selected)
    ]
