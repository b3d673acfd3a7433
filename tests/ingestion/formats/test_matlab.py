"""Files that SciPy writes as MATLAB's are read with names, row ids and target beside the matrix."""

import math

import numpy as np
import pytest
from command import srs_ooc

from srs_ooc.base.errors import BudgetError, InputError
from srs_ooc.ingestion.formats.files import opener_of
from srs_ooc.ingestion.ingest_options import IngestOptions
from srs_ooc.store.opening import open_store
from srs_ooc.testing import check_table

io = pytest.importorskip("scipy.io")
COLUMNS = [[1.5, math.nan, -3.0], [0.0, 2.0, 1e30]]
BESIDE = {"ids": ["p", "qq", "r"], "y": ["u", "v", "u"], "age": [30.0, 40.5, 20.0]}


def written(folder, **arrays):
    io.savemat(folder / "t.mat", arrays)
    return folder / "t.mat"


def whole(folder):
    return written(folder, X=np.array(COLUMNS).T, names=np.array(["a", "bb"], object), **BESIDE)


def opened(path, memory_mb=4000):
    return opener_of(path)(path.parent, IngestOptions(memory_mb=memory_mb))


def test_it_keeps_the_contract(tmp_path):
    check_table(opened(whole(tmp_path)), COLUMNS, ["a", "bb"], BESIDE)


def test_the_command_line_takes_its_ids_and_its_target(tmp_path):
    said = srs_ooc("ingest", whole(tmp_path), tmp_path / "t.zarr", "--covariates", "age").stdout
    assert "3 rows x 2 features" in said
    store = open_store(tmp_path / "t.zarr")
    assert (store.manifest.target_name, store.manifest.classes) == ("y", ("u", "v"))
    assert (list(store.row_ids), list(store.names)) == (BESIDE["ids"], ["a", "bb"])


def test_what_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"t\.mat: expected a matrix, found y\. Save one as X"):
        opened(written(tmp_path, y=[1.0, 2.0]))
    with pytest.raises(BudgetError, match="SciPy"):
        opened(whole(tmp_path), memory_mb=50)
