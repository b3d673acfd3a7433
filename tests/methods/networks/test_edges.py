"""Edges: their names are read together, their order is one, and whose folder is gone on with."""

import numpy as np
import pytest

import srs_ooc
from srs_ooc.base.errors import RunError
from srs_ooc.methods.networks.edges import edge_ledger, ranked
from srs_ooc.store import arrays as store_names
from srs_ooc.store.opening import open_store


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    folder = tmp_path_factory.mktemp("names")
    header = [f"g{'é' * (i % 7)}{i}" for i in range(1100)]
    lines = [",".join([*header, "y"]), *(",".join(["1"] * 1100 + [y]) for y in "abab")]
    (folder / "t.csv").write_text("\n".join(lines), encoding="utf-8")
    srs_ooc.ingest(folder / "t.csv", folder / "t.zarr", target="y")
    return open_store(folder / "t.zarr").names


@pytest.mark.parametrize("most_nbytes", [1 << 20, 40])  # with the latter, far ones are read alone
def test_names_read_together_are_those_read_one_by_one(names, monkeypatch, most_nbytes):
    monkeypatch.setattr(store_names, "TEXTS_NBYTES", most_nbytes)
    for count in (0, 1, 40, 1100):
        some = np.random.default_rng(count).choice(1100, count, replace=False).tolist()
        assert names.several(some) == {i: names[i] for i in some}


def test_edges_come_in_one_order_however_many_are_held():
    rng = np.random.default_rng(3)
    weights = rng.integers(0, 9, (7, 11)) / 8  # many are equal
    shards = lambda: iter([(0, weights[:4]), (4, weights[4:])])  # noqa: E731
    expected = sorted((-w, i) for i, w in enumerate(weights.reshape(-1).tolist()) if w > 0)
    for n_together in (1, 5, 1000):
        for top in (None, 1, 12):
            parts = list(ranked(shards, n_together, top))
            found = [
                (-w, i)
                for heavy, places in parts
                for w, i in zip(heavy.tolist(), places.tolist(), strict=True)
            ]
            assert found == expected[:top]


def test_a_network_goes_on_with_the_same_options_and_names_those_that_differ(tmp_path):
    folder, identity = tmp_path / "a.network", {"method": "prs", "epochs": 5}
    for _ in range(2):
        with edge_ledger(folder, identity, 4):
            pass
    with (
        pytest.raises(RunError, match=r"epochs 5 \(asked for: 6\)"),
        edge_ledger(folder, identity | {"epochs": 6}, 4),
    ):
        pass


def test_a_network_of_a_version_with_other_options_is_refused_by_their_names(tmp_path):
    folder, identity = tmp_path / "a.network", {"method": "prs", "thresholds": "rank"}
    with edge_ledger(folder, {"method": "prs", "smoothness": "0.0"}, 4):
        pass
    refused = r"smoothness 0\.0.*thresholds None.*name another folder"
    with pytest.raises(RunError, match=refused), edge_ledger(folder, identity, 4):
        pass
