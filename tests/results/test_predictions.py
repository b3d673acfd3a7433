import numpy as np
import pytest
from stores import make_store, noise_table

import srs_ooc
from srs_ooc.base.errors import BudgetError
from srs_ooc.ensemble import ensemble_memory


@pytest.fixture(params=["probe", "decoy"])
def ensemble(tmp_path, request):
    values, labels = noise_table(80, 30, seed=1)
    store = make_store(tmp_path / "t.zarr", values, labels)
    return srs_ooc.run(store, iterations=20, judge=request.param, save_trees=True), values


def test_predictions_are_the_same_at_the_smallest_cap_that_is_named(ensemble, tmp_path):
    result, values = ensemble
    lines = [",".join(f"f{i}" for i in range(30)), *(",".join(map(str, row)) for row in values.T)]
    (tmp_path / "new.csv").write_text("\n".join(lines) + "\n")
    for data in (result.store, values.T, tmp_path / "new.csv"):
        with pytest.raises(BudgetError, match="smallest cap") as refused:
            result.predict(data, memory_mb=1)
        cap = int(str(refused.value).rpartition("memory_mb=")[2].rstrip("."))
        roomy = result.predict(data, "records")
        assert len(roomy) == 80
        assert result.predict(data, "records", memory_mb=cap) == roomy


def test_more_predictions_than_the_cap_holds_are_refused(ensemble, tmp_path, monkeypatch):
    result, values = ensemble
    with pytest.raises(BudgetError, match="predictions of 1000000 rows 492"):
        result.predict(np.broadcast_to(values.T[:1], (1_000_000, 30)), memory_mb=400)
    lines = [",".join(f"f{i}" for i in range(30)), *(",".join(map(str, row)) for row in values.T)]
    (tmp_path / "new.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(ensemble_memory, "OUTPUT_NBYTES", 3_000_000)
    with pytest.raises(BudgetError, match="predictions of 80 rows and more"):
        result.predict(tmp_path / "new.csv")
