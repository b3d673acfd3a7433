"""Principal components of the rows of a store: those of the whole table, under any cap."""

import csv
import re

import numpy as np
import pandas
import pytest
from command import error_of, json_of, peak_kb, srs_ooc
from stores import make_store

import srs_ooc as package
from srs_ooc.base.budget import growth_counted
from srs_ooc.base.errors import UsageError
from srs_ooc.methods.less import less
from srs_ooc.methods.less.scoring import principal_components
from srs_ooc.store.store import Store

CAP = 1 << 30


@pytest.fixture(autouse=True, scope="module")
def _growth_only():
    with growth_counted():
        yield


def genotypes(n_rows, n_features, seed=0, n_populations=3):
    """Alleles (n_features, n_rows) of some populations, and the population of each row."""
    rng = np.random.default_rng(seed)
    of = rng.integers(0, n_populations, n_rows)
    shares = np.clip(rng.uniform(0.1, 0.9, (n_features, 1)) +
                     rng.normal(0, 0.15, (n_features, n_populations)), 0.02, 0.98)  # fmt: skip
    return rng.binomial(2, shares[:, of]).astype(float), of


def by_svd(values, k):
    """Codes standardised, missing cells the mean: scores of variance 1, and shares."""
    n_rows = values.shape[1]
    codes = np.full(values.shape, np.nan)
    for column, out in zip(values, codes, strict=True):
        known = ~np.isnan(column)
        out[known] = np.unique(column[known], return_inverse=True)[1]
    codes -= np.nanmean(codes, axis=1)[:, None]
    codes[np.isnan(codes)] = 0
    lengths = np.linalg.norm(codes, axis=1)
    codes = codes[lengths > 1e-9] / lengths[lengths > 1e-9, None]
    _, scales, vectors = np.linalg.svd(codes)
    vectors = vectors[:k]
    signs = np.sign(vectors[np.arange(k), np.abs(vectors).argmax(axis=1)])
    return (vectors * signs[:, None]).T * np.sqrt(n_rows), scales[:k] ** 2 / len(codes)


def found_of(path, k, cap=CAP):
    return principal_components(Store.open(path), k, cap, lambda _: True)


@pytest.mark.parametrize("n_features", [20, 700])
def test_components_of_few_rows_are_those_of_a_full_svd(tmp_path, n_features):
    """Missing cells and constant columns among them."""
    values, of = genotypes(40, n_features)
    values[3] = 1.0
    values[5, ::7] = np.nan
    values[6, 1:] = np.nan
    found = found_of(make_store(tmp_path / "t.zarr", values, of), 4)
    scores, shares = by_svd(values, 4)
    assert found.is_exact
    assert found.n_features == n_features - 2
    np.testing.assert_allclose(found.shares, shares, rtol=1e-4)
    np.testing.assert_allclose(found.scores, scores, atol=1e-3)  # means are rounded
    np.testing.assert_allclose(found.scores.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(found.scores.std(axis=0), 1)


def test_a_sketch_of_many_rows_is_near_them_and_the_same_again(tmp_path, monkeypatch):
    values, of = genotypes(300, 500, n_populations=4)
    store = make_store(tmp_path / "t.zarr", values, of)
    exact = found_of(store, 3)
    monkeypatch.setattr(less, "MOST_ROWS", 100)
    found, again = found_of(store, 3), found_of(store, 3, 2 * CAP)
    assert not found.is_exact
    np.testing.assert_array_equal(found.scores, again.scores)
    np.testing.assert_allclose(found.shares, exact.shares, rtol=1e-3)
    np.testing.assert_allclose(found.scores, exact.scores, atol=0.02)


def test_categories_are_left_out(tmp_path):
    values, of = genotypes(50, 30)
    letters = np.array(list("abc"))[np.random.default_rng(1).integers(0, 3, 50)]
    table = pandas.DataFrame(values.T.copy()).rename(columns=str)
    table = table.assign(letter=letters, y=of.astype(str))
    package.ingest(table, tmp_path / "t.zarr", target="y")
    found = found_of(tmp_path / "t.zarr", 2)
    assert found.n_features == 30
    np.testing.assert_allclose(found.shares, by_svd(values, 2)[1], rtol=1e-5)


def test_who_is_told_to_stop_stops(tmp_path):
    values, of = genotypes(30, 600)
    store = Store.open(make_store(tmp_path / "t.zarr", values, of))
    assert principal_components(store, 2, CAP, lambda step: step.done < 2) is None


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("components")
    values, of = genotypes(60, 200)
    make_store(path / "t.zarr", values, of)
    lines = [",".join(["id", *(f"s{i}" for i in range(200)), "y"])]
    lines += [f"r{i}," + ",".join(f"{v:g}" for v in values[:, i]) + f",c{of[i]}" for i in range(60)]
    (path / "ids.csv").write_text("\n".join(lines) + "\n")
    srs_ooc("ingest", "ids.csv", "ids.zarr", "--target", "y", "--row-ids", "id", cwd=path)
    return path


def test_the_file_has_row_ids_and_components(folder):
    said = srs_ooc("components", "ids.zarr", "-k", 2, "--out", "pcs.csv", cwd=folder).stdout
    assert "2 components of 60 rows over 200 features, exact" in said
    with (folder / "pcs.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["id", "PC1", "PC2"]
    assert [row[0] for row in rows] == [f"r{i}" for i in range(60)]
    values, of = genotypes(60, 200)
    scores, shares = by_svd(values, 2)
    np.testing.assert_allclose(np.array([row[1:] for row in rows], float), scores, atol=1e-4)
    assert f"PC1 {shares[0]:.2%}, PC2 {shares[1]:.2%}" in said
    firsts = [scores[of == population, 0].mean() for population in range(3)]
    assert np.ptp(firsts) > 1.5


def test_the_same_file_again_and_what_json_says(folder):
    first = json_of("components", "t.zarr", "-k", 3, "-o", "a.csv", "--json", cwd=folder)
    json_of(
        "components", "t.zarr", "-k", 3, "-o", "b.csv", "--json", "--memory-mb", 900, cwd=folder
    )
    assert (folder / "a.csv").read_bytes() == (folder / "b.csv").read_bytes()
    assert (folder / "a.csv").read_text().startswith("row,PC1,PC2,PC3\n1,")
    assert first["is_exact"]
    assert (first["n_rows"], first["n_features"]) == (60, 200)
    assert first["shares"] == sorted(first["shares"], reverse=True)


@pytest.mark.slow
def test_what_there_is_not_is_refused(folder):
    refused = error_of("components", "t.zarr", "-k", 60, "-o", "no.csv", cwd=folder)
    assert "-k: expected at most 59 components (rows - 1, or features), found 60" in refused
    assert "no.zarr" in error_of("components", "no.zarr", "-o", "no.csv", cwd=folder)
    (folder / "there.csv").touch()
    assert "expected a path that is free" in error_of(
        "components", "t.zarr", "-o", "there.csv", cwd=folder
    )
    assert not (folder / "no.csv").exists()


def test_fewer_directions_than_asked_for_are_refused(tmp_path):
    values = np.repeat(genotypes(30, 3)[0], 4, axis=0)
    store = make_store(tmp_path / "t.zarr", values, np.arange(30) % 2)
    with pytest.raises(UsageError, match="expected at most 3 components"):
        found_of(store, 5)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(1500, 300), (60, 60_000), (40_000, 60)])
def test_the_smallest_cap_that_is_named_is_held(tmp_path, shape):
    values = np.random.default_rng(0).standard_normal(shape[::-1], dtype=np.float32)
    store = make_store(tmp_path / "t.zarr", values, (values[0] > 0).astype(int))
    given = ("components", store, "-k", 2, "-o", tmp_path / "p.csv")
    refused = error_of(*given, "--memory-mb", 40)
    assert "--memory-mb 40 cannot hold the work" in refused
    cap = int(re.search(r"smallest cap that works is --memory-mb (\d+)", refused)[1])
    assert peak_kb(*given, "--memory-mb", cap) * 1024 <= cap * 10**6
