"""Files of MATLAB 5 to 7.2, as ``scipy.io.savemat`` writes them: a matrix and what is beside it."""

import math

import numpy as np

from srs_ooc.base.budget import Lease
from srs_ooc.base.errors import InputError
from srs_ooc.base.text import MB
from srs_ooc.ingestion.formats.files import File
from srs_ooc.ingestion.formats.in_memory import ArrayTable, list_of

_SCIPY = Lease("SciPy", 40 * MB)


class MatTable(ArrayTable):
    """The matrix X, or the largest; vectors as long as its columns and rows name and tell of them.

    Row ids are ``ids``, the target is ``y``, where nothing else is said.

    Raises
    ------
    InputError
        If there is no matrix.
    BudgetError
        If the cap cannot hold all of the file.
    """

    format = "mat"

    def __init__(self, file: File) -> None:
        import scipy.io

        sizes = {name: shape for name, shape, _ in scipy.io.whosmat(file.path)}
        matrices = [name for name, shape in sizes.items() if len(shape) == 2 and min(shape) > 1]
        if not matrices:
            raise InputError(f"{file}: expected a matrix, found {', '.join(sizes)}. Save one as X.")
        main = "X" if "X" in matrices else max(matrices, key=lambda name: math.prod(sizes[name]))
        self.shape = sizes[main]
        self.held = _SCIPY, Lease("cells", 100 * sum(map(math.prod, sizes.values())))
        file.check(self)
        known = scipy.io.loadmat(file.path, squeeze_me=True)
        super().__init__(known[main], str(file))
        lists = {name: np.atleast_1d(known[name]) for name in sizes if name != main}
        names = [one for one in lists if one == "names" and len(lists[one]) == self.shape[1]]
        self.names = list_of(lists.pop(names[0])) if names else None
        rows = {name: list_of(one) for name, one in lists.items() if one.shape == self.shape[:1]}
        self.annotations = rows
        self.default_ids = "ids" if "ids" in rows else None
        self.default_target = "y" if "y" in rows else None
