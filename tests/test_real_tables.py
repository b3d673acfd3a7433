"""Real tables, where they are at hand: what the methods should see in them."""

import gzip
from itertools import pairwise

import pytest
from command import json_of, srs_ooc
from tables import data_file

pytestmark = pytest.mark.slow

PLACES = "28 48 64 105 128 153 241 281 318 336 338 378 433 442 451 453 455 472 475 493"
RELEVANT = {f"f{place}" for place in PLACES.split()}
"""Of madelon."""


@pytest.fixture
def madelon(tmp_path):
    """The table, and the store of it."""
    table = data_file("madelon.csv.gz")
    srs_ooc("ingest", table, tmp_path / "madelon.zarr")
    return table, tmp_path / "madelon.zarr"


def parted(madelon, is_fitted):
    """Write the ids of the rows to fit on, and a table of the others."""
    header, *rows = gzip.decompress(madelon[0].read_bytes()).decode().splitlines()
    ids, held_out = (madelon[1].with_name(name) for name in ("rows", "held-out.csv"))
    ids.write_text("".join(f"{i + 1}\n" for i in range(len(rows)) if is_fitted(i)))
    others = [row for i, row in enumerate(rows) if not is_fitted(i)]
    held_out.write_text("\n".join([header, *others]) + "\n")
    return ids, held_out


def accuracy_of(run, held_out):
    return json_of("predict", run, held_out, run.with_suffix(".csv"), "--json")["accuracy"]


def test_random_subspace_separates_the_relevant_features_of_madelon(madelon):
    """Twenty features stand clear of the other 480, by more than twice the importance."""
    _, store = madelon
    srs_ooc("run", store, "--judge", "probe", "--alpha", "0", "--iterations", 4000, "--q", 100)
    records = json_of("features", store.with_suffix(".run"), "--json")
    assert {record["name"] for record in records[:20]} == RELEVANT
    importances = [record["importance"] for record in records]
    ratios = [a / b for a, b in pairwise(importances)]
    assert max(ratios[:480]) == ratios[19] > 2


def test_the_ensemble_predicts_held_out_rows_of_madelon(madelon, tmp_path):
    """Memory of what was found is worth ten points of accuracy and more, as in Table 2."""
    (ids, held_out), accuracy = parted(madelon, lambda i: i % 2 == 0), {}
    for alpha in (0, 0.5):
        run = tmp_path / f"{alpha}.run"
        options = ("--q", 50, "--alpha", alpha, "--iterations", 3000, "--save-trees")
        srs_ooc("run", madelon[1], "--rows", ids, "--out", run, *options)
        accuracy[alpha] = accuracy_of(run, held_out)
    assert accuracy[0] > 0.6
    assert accuracy[0.5] > accuracy[0] + 0.1


def test_leverage_scores_weigh_what_matters_in_madelon_by_their_rank(madelon):
    """As docs/methods/less.md shows: few directions are those of the relevant features."""
    for rank, expected in ((5, 0.975), (10, 0.488), (20, 0.244), (50, 0.098), (500, 0.04)):
        records = json_of("scores", madelon[1], "--with", f"rank={rank}", "--json")
        share = sum(record["share"] for record in records if record["name"] in RELEVANT)
        assert share == pytest.approx(expected, abs=0.002), rank


def test_trees_drawn_by_leverage_predict_madelon_far_better_than_uniform_ones(madelon, tmp_path):
    """Table 1 of the LESS paper: 50 features, by best splits, 100 trees."""
    (ids, held_out), errors = parted(madelon, lambda i: i % 4 > 0), {}
    for method in ("rs", "less"):
        run = tmp_path / f"{method}.run"
        asked = ("--judge", "positive", "--splitter", "best", "--save-trees", "--q", 50)
        how = ("--method", method, "--rows", ids, "--iterations", 100)
        srs_ooc("run", madelon[1], "--out", run, *asked, *how)
        errors[method] = 1 - accuracy_of(run, held_out)
    assert errors["less"] < 0.2
    assert errors["rs"] > errors["less"] + 0.08
