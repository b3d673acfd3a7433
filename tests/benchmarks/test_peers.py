"""The peers at small sizes: each finds a strong signal, and their answers are read as written."""

import json
import subprocess
import sys

import numpy as np
import pytest
import selection_peers as peers
from selection import HERE, METHODS, read_answer

RELEVANT = {4, 17, 30}
PACKAGES = {"lightgbm": "lightgbm", "boruta": "boruta", "knockoffs": "knockpy"}
QUICK = [
    *("ranksum", "ftest", "lasso", "knockoffs"),
    *(
        pytest.param(name, marks=pytest.mark.slow)
        for name in ("mutual_info", "lightgbm", "extra_trees_default")
    ),
]


def table(task):
    random = np.random.default_rng(0)
    x = random.normal(size=(400, 40)).astype(np.float32)
    score = x[:, sorted(RELEVANT)].sum(axis=1)
    if task == "regression":
        return x, score.astype(np.float64)
    edges = [0.0] if task == "two classes" else [-0.7, 0.7]
    return x, np.digitize(score, edges)


def answer(name, task):
    pytest.importorskip(PACKAGES.get(name, "sklearn"))
    x, y = table(task)
    selected, scores = (peers.FUNCTIONS | peers.OF_SIZES)[name](x, y, 0)
    assert scores.shape == (40,)
    return selected, scores


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("task", ["two classes", "three classes", "regression"])
@pytest.mark.parametrize("name", QUICK)
def test_a_peer_ranks_strong_features_first(name, task):
    if name == "knockoffs" and task == "three classes":
        pytest.skip("runs on generated tables only, which have two classes or none")
    selected, scores = answer(name, task)
    assert set(np.argsort(-scores)[:3].tolist()) == RELEVANT
    if selected is not None and name != "knockoffs":  # too few features for knockoffs to select
        assert set(np.flatnonzero(selected).tolist()) >= RELEVANT


def test_every_peer_is_a_function_and_back():
    assert set(peers.FUNCTIONS) == {name for name in METHODS if not METHODS[name].is_ours}


def test_bh_selects_nothing_of_a_constant_table():
    x, y = np.zeros((30, 5), np.float32), np.arange(30) % 2
    with np.errstate(all="ignore"):
        selected, _ = peers.ranksum(x, y, 0)
    assert not selected.any()


@pytest.mark.slow
def test_an_answer_is_read_as_it_was_written(tmp_path):
    x, y = table("two classes")
    np.save(tmp_path / "values.npy", x)
    np.save(tmp_path / "target.npy", y)
    command = [sys.executable, str(HERE / "selection_peers.py"), "ranksum", str(tmp_path), "0"]
    subprocess.run(command, check=True, timeout=3600)
    found = read_answer(tmp_path)
    assert set(found.selected) >= RELEVANT == set(found.ranking[:3])
    assert sorted(found.ranking) == list(range(40))
    assert json.loads((tmp_path / "selected.json").read_text()) == found.selected
