"""Real tables, where they are at hand: what the methods should see in them."""

import gzip
import os
from itertools import pairwise
from pathlib import Path

import pytest
from command import json_of, srs_ooc

pytestmark = pytest.mark.slow

BESIDE = Path(__file__).parents[1] / ".." / "shared" / "data"
DATA = Path(os.environ.get("SRS_OOC_DATA", BESIDE))
RELEVANT = {
    f"f{i}"
    for i in (
        28,
        48,
        64,
        105,
        128,
        153,
        241,
        281,
        318,
        336,
        338,
        378,
        433,
        442,
        451,
        453,
        455,
        472,
        475,
        493,
    )
}
"""Of madelon."""


def table(name):
    path = DATA / f"{name}.csv.gz"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return path


@pytest.mark.slow
def test_random_subspace_separates_the_relevant_features_of_madelon(tmp_path):
    """Twenty features stand clear of the other 480, by more than twice the importance."""
    store = tmp_path / "madelon.zarr"
    srs_ooc("ingest", table("madelon"), store)
    srs_ooc("run", store, "--judge", "probe", "--alpha", 0, "--iterations", 4000, "--q", 100)
    records = json_of("features", tmp_path / "madelon.run", "--json")
    assert {record["name"] for record in records[:20]} == RELEVANT
    importances = [record["importance"] for record in records]
    ratios = [a / b for a, b in pairwise(importances)]
    assert max(ratios[:480]) == ratios[19] > 2


@pytest.mark.slow
def test_the_ensemble_predicts_held_out_rows_of_madelon(tmp_path):
    """Memory of what was found is worth ten points of accuracy and more, as in Table 2."""
    header, *rows = gzip.decompress(table("madelon").read_bytes()).decode().splitlines()
    store, ids, held_out = tmp_path / "m.zarr", tmp_path / "rows", tmp_path / "held-out.csv"
    ids.write_text("\n".join(str(i + 1) for i in range(0, len(rows), 2)))
    held_out.write_text("\n".join([header, *rows[1::2]]) + "\n")
    srs_ooc("ingest", table("madelon"), store)
    accuracy = {}
    for alpha in (0, 0.5):
        run = tmp_path / f"{alpha}.run"
        options = ("--q", 50, "--alpha", alpha, "--iterations", 3000, "--save-trees")
        srs_ooc("run", store, "--rows", ids, "--out", run, *options)
        report = json_of("predict", run, held_out, tmp_path / f"{alpha}.csv", "--json")
        accuracy[alpha] = report["accuracy"]
    assert accuracy[0] > 0.6
    assert accuracy[0.5] > accuracy[0] + 0.1


@pytest.mark.slow
def test_leverage_scores_weigh_what_matters_in_madelon_by_their_rank(tmp_path):
    """As docs/methods/less.md shows: few directions are those of the relevant features."""
    store = tmp_path / "madelon.zarr"
    srs_ooc("ingest", table("madelon"), store)
    for rank, expected in ((5, 0.975), (10, 0.488), (20, 0.244), (50, 0.098), (500, 0.04)):
        records = json_of("scores", store, "--rank", rank, "--json")
        share = sum(record["share"] for record in records if record["name"] in RELEVANT)
        assert share == pytest.approx(expected, abs=0.002), rank


@pytest.mark.slow
def test_trees_drawn_by_leverage_predict_madelon_far_better_than_uniform_ones(tmp_path):
    """Table 1 of the LESS paper: 50 features, by best splits, 100 trees."""
    header, *rows = gzip.decompress(table("madelon").read_bytes()).decode().splitlines()
    store, ids, held_out = tmp_path / "m.zarr", tmp_path / "rows", tmp_path / "held-out.csv"
    ids.write_text("".join(f"{i + 1}\n" for i in range(len(rows)) if i % 4))
    held_out.write_text("\n".join([header, *rows[::4]]) + "\n")
    srs_ooc("ingest", table("madelon"), store)
    errors = {}
    for method in ("rs", "less"):
        run = tmp_path / f"{method}.run"
        asked = ("--judge", "positive", "--splitter", "best", "--save-trees", "--q", 50)
        how = ("--method", method, "--rows", ids, "--iterations", 100)
        srs_ooc("run", store, "--out", run, *asked, *how)
        report = json_of("predict", run, held_out, tmp_path / f"{method}.csv", "--json")
        errors[method] = 1 - report["accuracy"]
    assert errors["less"] < 0.2
    assert errors["rs"] > errors["less"] + 0.08
