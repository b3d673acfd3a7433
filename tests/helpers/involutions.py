"""A random pairing of rows, as plainly as can be: the twin of a single family of decoys."""

import numpy as np


def involution(rows, key):
    """Return a random pairing: where row i takes its value from; int32 (n_rows,).

    No row is paired with itself, save one unit of each class with an odd number of them.
    """
    order = rows._shuffled(key)
    classes = rows.classes[order]
    starts = np.searchsorted(classes, classes)
    is_left = (np.arange(len(order)) - starts) % 2 == 0
    has_partner = np.append(classes[1:] == classes[:-1], False)
    places = np.flatnonzero(is_left & has_partner)
    left, right = rows._rows_of(order[places]), rows._rows_of(order[places + 1])
    partners = np.arange(rows.n_rows, dtype=np.int32)
    partners[left], partners[right] = right, left
    return partners
