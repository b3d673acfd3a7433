"""A table in pieces of columns makes the store of the joined table, whatever happens meanwhile."""

import dataclasses
import shutil
from pathlib import Path
from shutil import rmtree

import numpy as np
import pytest
from access import command
from command import check_least_cap, least_cap, srs_ooc
from refusals import refused
from tables import write_columns as write

from srs_ooc.base.errors import InputError, StoreError, UsageError
from srs_ooc.ingestion import shards
from srs_ooc.ingestion.ingest import ingest
from srs_ooc.ingestion.ingest_options import ForcedKinds, IngestOptions
from srs_ooc.ingestion.shards import ingest_pieces
from srs_ooc.ingestion.stages import ingest_table
from srs_ooc.store.store import Store

N = 40


def columns(first, stop, seed=0):
    """Names and cells: numbers, some missing, a few whole, every tenth a category."""
    made = {}
    for i in range(first, stop):
        rng = np.random.default_rng([seed, i])
        if i % 10 == 7:
            made[f"f{i}"] = rng.choice(["ä", "b", "c,d"], N).tolist()
        elif i % 10 == 3:
            made[f"f{i}"] = rng.integers(0, 5, N).tolist()
        else:
            cells = np.round(rng.normal(size=N), 3 if i < 60 else 9).astype(object)
            cells[rng.random(N) < 0.1] = "NA"
            made[f"f{i}"] = cells.tolist()
    return made


ROLES = {"id": [f"r{i}" for i in range(N)], "label": ["case", "control"] * (N // 2)}


@pytest.fixture
def tables(tmp_path):
    """Three pieces, of which the last has neither target nor ids; and the joined table."""
    parts = [ROLES | columns(0, 31), ROLES | columns(31, 64), columns(64, 90)]
    files = [write(tmp_path / f"p{i}.csv", part) for i, part in enumerate(parts)]
    whole = write(tmp_path / "whole.csv", ROLES | columns(0, 90))
    return files, whole


OPTIONS = IngestOptions(target="label", row_ids="id", memory_mb=4000)


@pytest.mark.slow
def test_columns_of_any_piece_are_left_out_or_forced(tmp_path, tables):
    files, whole = tables
    kinds = ForcedKinds((("f40", "categorical"), ("f1", "numeric")))
    ignore = ("f2", "f35", "f70", "f71")
    options = dataclasses.replace(OPTIONS, ignore=ignore, kinds=kinds)
    found = ingest_pieces(files, tmp_path / "t.zarr", options)
    expected = ingest_table(whole, tmp_path / "whole.zarr", options)
    assert found.checksums == expected.checksums
    wrong = dataclasses.replace(options, ignore=("f2", "f99"))
    with pytest.raises(InputError, match=r"no such column 'f99' \(--ignore, --kind\)"):
        ingest_pieces(files, tmp_path / "u.zarr", wrong)


def same(made, joined):
    """All fields but where the table came from, checksums of every file included."""
    a, b = dataclasses.asdict(made), dataclasses.asdict(joined)
    assert a.pop("source")["pieces"] == 3
    b.pop("source")
    assert a == b


@pytest.mark.slow
@pytest.mark.parametrize("change", [{}, {"keep_values": False}, {"code_dtype": "uint16"}])
def test_all_that_the_store_holds_is_that_of_the_joined_table(tables, tmp_path, change):
    options = dataclasses.replace(OPTIONS, **change)
    made = ingest_pieces(tables[0], tmp_path / "t.zarr", options)
    same(made, ingest_table(tables[1], tmp_path / "whole.zarr", options))
    store = Store.open(tmp_path / "t.zarr")
    assert store.verify().nbytes > 0
    assert list(store.names) == [f"f{i}" for i in range(90)]
    assert not (tmp_path / "t.zarr.pieces").exists()


@pytest.mark.slow
def test_small_batches_merge_the_same(tables, tmp_path, monkeypatch):
    options = dataclasses.replace(OPTIONS, keep_values=False)
    whole = ingest_pieces(tables[0], tmp_path / "whole.zarr", options)
    monkeypatch.setattr("srs_ooc.ingestion.shards.MERGED_NBYTES", 1)
    monkeypatch.setattr("srs_ooc.store.manifest.VALUES_CHUNK_NBYTES", 8 * N * 7)
    small = ingest_pieces(tables[0], tmp_path / "small.zarr", options)
    assert small.values_chunk != whole.values_chunk
    assert Store.open(tmp_path / "small.zarr").verify().nbytes > 0
    assert small.checksums["codes/c/0/0"] == whole.checksums["codes/c/0/0"]


@pytest.mark.slow
def test_a_killed_ingest_does_the_missing_pieces_only(tables, tmp_path, monkeypatch):
    done = []

    def killed_after_two(client, work):
        for piece in work[1:]:  # in any order
            done.append(piece[1].name)
            shards.do_piece(*piece)
            yield
        raise KeyboardInterrupt

    store = tmp_path / "t.zarr"
    monkeypatch.setattr(shards, "on_workers", killed_after_two)
    with pytest.raises(KeyboardInterrupt):
        ingest_pieces(tables[0], store, OPTIONS, client=object())
    assert not store.exists()
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "t.zarr.pieces").glob("*.zarr")}
    assert len(times) == 2
    seen = []

    def note(client, work):
        for piece in work:
            shards.do_piece(*piece)
            yield
            seen.append(piece[1].stat().st_mtime_ns)

    monkeypatch.setattr(shards, "on_workers", note)
    made = ingest_pieces(tables[0], store, OPTIONS, client=object())
    assert seen[1:] == [times[path] for path in sorted(times)]
    same(made, ingest_table(tables[1], tmp_path / "whole.zarr", OPTIONS))
    again = ingest_pieces(tables[0], tmp_path / "again.zarr", OPTIONS)
    assert again.fingerprint == made.fingerprint


@pytest.mark.slow
@pytest.mark.parametrize("n_before", [0, 2])
def test_a_kill_as_pieces_are_removed_or_begun_is_cleared_up(
    tables, tmp_path, monkeypatch, n_before
):
    store, folder = tmp_path / "t.zarr", tmp_path / "t.zarr.pieces"
    left = iter(range(n_before))

    def killed(path, *rest, **how):
        path = Path(path)
        if path.suffix in (".zarr", ".pieces") and next(left, None) is None:
            for name in ("zarr.json", "identity"):
                (path / name).unlink(missing_ok=True)
            raise KeyboardInterrupt
        rmtree(path, *rest, **how)

    monkeypatch.setattr(shutil, "rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        ingest_pieces(tables[0], store, OPTIONS)
    monkeypatch.undo()
    assert any(folder.iterdir())
    made = Store.open(store).fingerprint
    rmtree(store)
    assert ingest_pieces(tables[0], store, OPTIONS).fingerprint == made
    assert not folder.exists()
    rmtree(store)
    folder.mkdir()
    (folder / "identity.partial").touch()
    assert ingest_pieces(tables[0], store, OPTIONS).fingerprint == made


def test_pieces_are_known_by_what_decides_what_they_become(tables):
    files = tables[0]
    same = {"overwrite": True, "threads": 1, "memory_mb": OPTIONS.memory_mb + 1}
    other = dataclasses.replace(OPTIONS, covariates=("a",))
    known = shards._identity(files, OPTIONS)
    assert shards._identity(files, dataclasses.replace(OPTIONS, **same)) == known
    assert shards._identity(files, other) != known


def test_pieces_in_another_order_than_that_of_the_whole_are_refused(tables, tmp_path):
    files, store = tables[0], tmp_path / "t.zarr"
    (folder := tmp_path / "t.zarr.pieces").mkdir()
    (folder / "identity").write_text(shards._identity(files, OPTIONS))
    bare = dataclasses.replace(OPTIONS, target=None, row_ids=None, no_target=True)
    ingest_table(files[2], folder / "000002.zarr", dataclasses.replace(bare, first_feature=3))
    with pytest.raises(StoreError, match="expected features in the order of the whole"):
        ingest_pieces(files, store, OPTIONS)
    assert not store.exists()


def test_pieces_of_something_else_are_not_taken(tables, tmp_path, monkeypatch):
    def fail(client, pieces):
        shards.do_piece(*pieces[0])
        raise KeyboardInterrupt

    store = tmp_path / "t.zarr"
    monkeypatch.setattr(shards, "on_workers", fail)
    with pytest.raises(KeyboardInterrupt):
        ingest_pieces(tables[0], store, OPTIONS, client=object())
    with pytest.raises(StoreError, match="found those of others"):
        ingest_pieces(tables[0], store, dataclasses.replace(OPTIONS, keep_values=False))
    refused(StoreError, "found those of others", ingest_pieces, tables[0][:2], store, OPTIONS)
    monkeypatch.setattr(shards, "try_lock", lambda path: None)
    refused(StoreError, "another process", ingest_pieces, tables[0], store, OPTIONS)
    monkeypatch.undo()
    rmtree(tmp_path / "t.zarr.pieces")
    (tmp_path / "t.zarr.pieces").mkdir()
    (tmp_path / "t.zarr.pieces" / "mine").touch()
    refused(StoreError, "somebody else's", ingest_pieces, tables[0], store, OPTIONS)
    assert (tmp_path / "t.zarr.pieces" / "mine").exists()


def test_what_is_refused_before_a_piece_is_begun_leaves_no_folder(tables, tmp_path):
    store = tmp_path / "t.zarr"
    with pytest.raises(InputError, match="no such column"):
        ingest_pieces(tables[0], store, dataclasses.replace(OPTIONS, target="nope"))
    assert not store.with_name("t.zarr.pieces").exists()
    ingest_pieces(tables[0], store, OPTIONS)


@pytest.mark.slow
def test_pieces_that_do_not_fit_together_are_refused(tables, tmp_path):
    files, _ = tables
    store = tmp_path / "t.zarr"

    def unfit(second, error, match, **change):
        options = dataclasses.replace(OPTIONS, **change)
        refused(error, match, ingest_pieces, [files[0], second], store, options)
        rmtree(tmp_path / "t.zarr.pieces", ignore_errors=True)
        assert not store.exists()

    rows = write(tmp_path / "rows.csv", ROLES | columns(0, 31, seed=2))
    unfit(rows, InputError, r"'f0' in .*p0.csv and .*rows.csv.*rows of one table.*tail")
    fewer = write(tmp_path / "fewer.csv", {k: v[1:] for k, v in columns(31, 35).items()})
    unfit(fewer, InputError, "expected the 40 rows of .*found 39")
    ids = {"id": ROLES["id"][::-1]}
    unfit(write(tmp_path / "i.csv", ids | columns(31, 35)), InputError, "the row ids of")
    labels = {"label": ROLES["label"][::-1]}
    unfit(write(tmp_path / "l.csv", labels | columns(31, 35)), InputError, "the target of")
    unfit(files[1], UsageError, "expected --target", target=None)
    unfit(files[1], InputError, "no such column 'nothing'", target="nothing")


COMMAND = ("--target", "label", "--row-ids", "id", "--memory-mb", 4000)


@pytest.mark.slow
def test_the_command_takes_pieces(tables, tmp_path):
    command("ingest", *tables[0], tmp_path / "t.zarr", *COMMAND)
    made = ingest_pieces(tables[0], tmp_path / "same.zarr", OPTIONS)
    assert Store.open(tmp_path / "t.zarr").fingerprint == made.fingerprint
    with pytest.raises(AssertionError) as raised:
        command("ingest", *tables[0], tmp_path / "x.zarr", *COMMAND, "--dry-run")
    assert "one table, found 3 pieces" in str(raised.value.__cause__)


@pytest.mark.dask
@pytest.mark.slow
def test_workers_make_the_same_store(tables, tmp_path):
    pytest.importorskip("distributed")
    srs_ooc("ingest", *tables[0], tmp_path / "d.zarr", *COMMAND, "--dask", "local:2")
    made = ingest_pieces(tables[0], tmp_path / "same.zarr", OPTIONS)
    assert Store.open(tmp_path / "d.zarr").fingerprint == made.fingerprint


@pytest.mark.slow
def test_a_call_with_a_list_of_files_makes_what_the_command_makes(tables, tmp_path):
    files, _ = tables
    command("ingest", *files, tmp_path / "a.zarr", "--target", "label", "--row-ids", "id")
    made = ingest(files, tmp_path / "b.zarr", target="label", row_ids="id")
    assert made.fingerprint == Store.open(tmp_path / "a.zarr").fingerprint
    with pytest.raises(UsageError, match="names of columns with a table in pieces"):
        ingest(files, tmp_path / "c.zarr", target=[0, 1] * 20)
    with pytest.raises(UsageError, match="client: expected with a list of files"):
        ingest(files[0], tmp_path / "c.zarr", client=object())


@pytest.mark.slow
@pytest.mark.parametrize("n_columns", [(40_000, 40_000, 40_000), (40, 200_000)])
@pytest.mark.parametrize("options", [(), ("--no-values",)])
def test_the_cap_that_is_named_first_holds_all_pieces_and_putting_them_together(
    tmp_path, n_columns, options
):
    cells = np.random.default_rng(0).integers(0, 99, (60, max(n_columns))) / 8
    files = []
    for piece, n in enumerate(n_columns):
        made = {} if piece else {"y": ["u", "v"] * 30}
        made |= {f"p{piece}f{i}": cells[:, i].tolist() for i in range(n)}
        files.append(write(tmp_path / f"p{piece}.csv", made))
    arguments = ("ingest", *files, tmp_path / "t.zarr", "--target", "y", *options)
    least = least_cap(*arguments)
    assert least_cap(*arguments, too_small=least - 1) == least
    assert not list((tmp_path / "t.zarr.pieces").glob("*.zarr"))
    assert check_least_cap(*arguments) == least
