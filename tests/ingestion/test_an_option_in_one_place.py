"""What an option that is declared in one place goes through; it does nothing."""

import numpy as np
import pytest
from access import commands
from click.testing import CliRunner
from command import error_of

import srs_ooc
from srs_ooc.base.errors import StoreError, UsageError
from srs_ooc.ingestion import appending, shards
from srs_ooc.ingestion.ingest_options import SideColumns, options_of
from srs_ooc.ingestion.stages import ingest_table
from srs_ooc.store.store import Store


def tables_in(folder):
    for name, column in (("a", "y"), ("b", "c")):
        rows = [f"{i},{i % 7},{'uv'[i % 2]}" for i in range(30)]
        (folder / f"{name}.csv").write_text("\n".join([f"id,{name}1,{column}", *rows]) + "\n")
    return [folder / "a.csv", folder / "b.csv"]


def test_it_is_on_the_command_line_in_python_and_refused_by_name(tmp_path):
    said = CliRunner().invoke(commands()["srs-ooc"], ["ingest", "--help-all"]).output
    assert "--most-levels N" in said
    assert "A covariate has at most N categories." in " ".join(said.split())
    table, _ = tables_in(tmp_path)
    assert "--most-levels" in error_of("ingest", table, tmp_path / "t.zarr", "--most-levels", 0)
    with pytest.raises(UsageError, match="most_levels: expected a whole number"):
        srs_ooc.ingest(np.eye(4), tmp_path / "t.zarr", target=[0, 1, 0, 1], most_levels="x")


def test_pieces_and_appended_tables_get_it_and_the_identity_has_it(tmp_path, monkeypatch):
    tables, seen = tables_in(tmp_path), []
    given = {"target": "y", "row_ids": "id", "most_levels": 9}

    def noted(table, store, options):
        seen.append(options.most_levels)
        if len(seen) == 2:
            raise KeyboardInterrupt
        ingest_table(table, store, options)

    monkeypatch.setattr(shards, "ingest_table", noted)
    with pytest.raises(KeyboardInterrupt):
        srs_ooc.ingest(tables, tmp_path / "t.zarr", **given)
    assert seen == [9, 9]
    monkeypatch.undo()
    with pytest.raises(StoreError, match="expected pieces of these tables with these options"):
        srs_ooc.ingest(tables, tmp_path / "t.zarr", **given | {"most_levels": 8})
    srs_ooc.ingest(tables, tmp_path / "t.zarr", **given)
    options, _ = options_of({"append_rows": tmp_path / "t.zarr", "most_levels": 9})
    settled = appending._settled(Store.open(tmp_path / "t.zarr"), options, SideColumns())
    assert settled.most_levels == 9
