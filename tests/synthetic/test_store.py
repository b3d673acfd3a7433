"""A problem written as a store is the store of its CSV file."""

from pathlib import Path

import numpy as np
import pytest

from srs_ooc.base.errors import UsageError
from srs_ooc.ingestion.ingest import ingest_table
from srs_ooc.ingestion.ingest_options import IngestOptions
from srs_ooc.store.arrays import Names
from srs_ooc.store.manifest import read_manifest
from srs_ooc.store.store import Store
from srs_ooc.synthetic import problem_tables
from srs_ooc.synthetic.problem_tables import Problem, columns, write_table
from srs_ooc.synthetic.problems import Friedman, Madelon

PROBLEM = Madelon(300, 70, 12, seed=2)


def files(folder: Path) -> dict[str, bytes]:
    """Every file of a store but the manifest's, which tells where it came from."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    found = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
    del found["zarr.json"]
    return found


@pytest.mark.parametrize(
    ("problem", "ending"),
    [(PROBLEM, ".csv"), (PROBLEM, ".csv.gz"), (Friedman(300, 70, seed=2), ".csv")],
    ids=["csv", "gzip", "regression"],
)
def test_the_store_equals_the_ingested_text(tmp_path: Path, problem: Problem, ending: str) -> None:
    write_table(problem, tmp_path / "direct.zarr")
    write_table(problem, tmp_path / f"table{ending}")
    ingest_table(
        tmp_path / f"table{ending}", tmp_path / "ingested.zarr", IngestOptions(target="target")
    )
    direct, ingested = files(tmp_path / "direct.zarr"), files(tmp_path / "ingested.zarr")
    assert sorted(direct) == sorted(ingested)
    assert [name for name in direct if direct[name] != ingested[name]] == []
    one, other = (read_manifest(tmp_path / f"{name}.zarr") for name in ("direct", "ingested"))
    differing = {key for key, value in one.to_json().items() if value != other.to_json()[key]}
    assert differing == {"source", "inferred"}


def test_the_store_holds_names_values_and_truth(tmp_path: Path) -> None:
    import zarr

    write_table(PROBLEM, tmp_path / "t.zarr")
    manifest = read_manifest(tmp_path / "t.zarr")
    assert (manifest.n_rows, manifest.n_features) == (300, 70)
    assert list(Names(tmp_path / "t.zarr", manifest)) == [f"f{i}" for i in range(70)]
    group = zarr.open_group(tmp_path / "t.zarr", mode="r")
    positions = np.asarray(group["positions"])
    np.testing.assert_array_equal(np.asarray(group["values"]), columns(PROBLEM, positions))
    np.testing.assert_array_equal(np.asarray(group["target"]), PROBLEM.target(0, 300))
    assert (tmp_path / "t.zarr.truth.json").is_file()
    assert manifest.source["parameters"]["seed"] == 2


def test_batches_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_table(PROBLEM, tmp_path / "one.zarr")
    monkeypatch.setattr(problem_tables, "N_THREADS", 1)
    monkeypatch.setattr(problem_tables, "WORK_NBYTES", 1)
    write_table(PROBLEM, tmp_path / "other.zarr")
    assert files(tmp_path / "one.zarr") == files(tmp_path / "other.zarr")


def test_the_target_of_a_regression_is_kept_as_numbers(tmp_path: Path) -> None:
    problem = Friedman(40, 9, seed=1)
    write_table(problem, tmp_path / "t.zarr")
    manifest = read_manifest(tmp_path / "t.zarr")
    assert (manifest.task, manifest.classes) == ("regression", ())
    np.testing.assert_array_equal(
        Store(tmp_path / "t.zarr", manifest).target(), problem.target(0, 40)
    )


@pytest.mark.parametrize("name", ["t.csv", "t.zarr"])
def test_a_table_of_one_class_is_refused(tmp_path: Path, name: str) -> None:
    """One label of two is flipped under this seed."""
    with pytest.raises(UsageError, match="expected a table of at least two classes"):
        write_table(Madelon(2, 3, 1, seed=78), tmp_path / name)
    assert list(tmp_path.iterdir()) == []
