"""Columns added to a store: what is written is read, one at a time, or refused; kills lose none."""

import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from examples import examples, given, st
from refusals import refused
from stores import make_store, noise_table

from srs_ooc.base.errors import StoreError, UsageError
from srs_ooc.base.records import Covariate
from srs_ooc.store.arrays import column_file, write_column
from srs_ooc.store.opening import open_zarr
from srs_ooc.store.store import Store

N_ROWS = 12
UTF8 = st.characters(codec="utf-8")


def made(folder):
    return Store.open(make_store(folder / "t.zarr", *noise_table(N_ROWS, 6)))


@pytest.fixture
def store(tmp_path):
    return made(tmp_path)


def add(store, kind, name, values, levels=()):
    column = Covariate(name, np.asarray(values, np.float64), tuple(levels))
    write_column(store.path, store.fingerprint, kind, column)
    return column


def add_b(store):
    return add(store, "target", "b", [0, 1] * 6, ["no", "yes"])


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return made(tmp_path_factory.mktemp("shared"))


@examples(60)
@given(
    name=st.text(UTF8, min_size=1, max_size=300),
    levels=st.lists(st.text(UTF8, max_size=9), max_size=4, unique=True),
    data=st.data(),
)
def test_a_column_is_read_as_it_was_written(shared, name, levels, data):
    kind = data.draw(st.sampled_from(["target", "covariate"]))
    items = st.sampled_from(range(len(levels))) if levels else st.floats(-1e30, 1e30)
    values = data.draw(st.lists(st.none() | items, min_size=N_ROWS, max_size=N_ROWS))
    shutil.rmtree(shared.path / "columns", ignore_errors=True)
    wrote = add(shared, kind, name, [np.nan if v is None else v for v in values], levels)
    (read,) = shared.added(kind)
    assert (read.name, read.levels) == (name, tuple(levels))
    np.testing.assert_array_equal(read.values, wrote.values)
    assert len(list(shared.added("target"))) + len(list(shared.added("covariate"))) == 1


def test_the_store_stays_the_same_and_verify_reads_what_was_added(store):
    before, covariates = store.fingerprint, store.covariates()
    n_bytes = store.verify().nbytes
    add_b(store)
    age = add(store, "covariate", "age", np.arange(N_ROWS))
    opened = Store.open(store.path)
    assert opened.fingerprint == before == opened.of_target("b").fingerprint
    assert opened.manifest == store.manifest
    found = opened.verify()
    assert (found.files["added columns"], found.nbytes) == (2, n_bytes + 2 * 8 * N_ROWS)
    assert opened.of_target("b").verify() == found
    assert [one.name for one in opened.covariates()] == [*(c.name for c in covariates), age.name]
    names = {name for name, _ in open_zarr(store.path).members()}
    assert "codes" in names
    assert "columns" not in names


def test_a_store_is_seen_with_a_target(store):
    values = [0, 1, np.nan, 2, 0, 1, 2, 2, np.nan, 0, 1, 1]
    add(store, "target", "b", values, ["x", "y", "z"])
    add(store, "target", "n", np.where(np.arange(N_ROWS) < 2, np.nan, np.arange(N_ROWS)))
    seen = store.of_target("b")
    assert (seen.manifest.classes, seen.manifest.class_counts) == (("x", "y", "z"), (3, 4, 3))
    assert (seen.manifest.task, seen.manifest.target_name) == ("classification", "b")
    assert seen.target().tolist() == [0, 1, -1, 2, 0, 1, 2, 2, -1, 0, 1, 1]
    assert seen.target_rows().tolist() == [0, 1, 3, 4, 5, 6, 7, 9, 10, 11]
    assert [piece.tolist() for _, piece in seen.pieces("target")] == [seen.target().tolist()]
    assert seen.seen_as(seen.target_identity).manifest == seen.manifest
    numbers = seen.of_target("n")
    assert (numbers.manifest.task, numbers.manifest.classes) == ("regression", ())
    assert numbers.target_rows().tolist() == list(range(2, N_ROWS))
    for own in (seen.of_target(None), seen.of_target(store.manifest.target_name), store):
        assert (own.target_identity, own.target_rows()) == ("own", None)
        np.testing.assert_array_equal(own.target(), store.target())
    refused(UsageError, r"one of its targets \(target, b, n\), found 'c'", store.of_target, "c")


def test_a_target_that_was_replaced_is_refused_and_one_put_back_is_not(store):
    add_b(store)
    identity = store.of_target("b").target_identity
    add(store, "target", "b", [1, 0] * 6, ["no", "yes"])
    refused(StoreError, "it was replaced", store.seen_as, identity)
    add_b(store)
    assert store.seen_as(identity).target().tolist() == [0, 1] * 6


@pytest.mark.parametrize("at", [0, 70, -1])
def test_damage_is_found(store, at):
    add_b(store)
    file = column_file(store.path, "target", "b")
    body = bytearray(file.read_bytes())
    body[at] ^= 1
    for wrong in (bytes(body), file.read_bytes()[:-8], file.read_bytes() + b"\0", b""):
        file.write_bytes(wrong)
        for act in (lambda: store.of_target("b"), store.verify, lambda: [*store.added("target")]):
            refused(StoreError, "damaged, or of another", act)
        assert (store.target_identity, store.of_target(None).target_rows()) == ("own", None)
        add_b(store)  # as the message says, it goes


def test_a_column_of_another_store_or_of_codes_that_are_none_is_refused(store, tmp_path):
    other = Store.open(make_store(tmp_path / "o.zarr", *noise_table(N_ROWS, 5)))
    add(other, "target", "b", [0, 1] * 6, ["no", "yes"])
    shutil.copytree(other.path / "columns", store.path / "columns")
    refused(StoreError, "of another", store.of_target, "b")
    for codes in ([0, 2] * 6, [0, -1] * 6, [0, 0.5] * 6):
        add(store, "target", "b", codes, ["no", "yes"])
        refused(StoreError, "damaged", store.of_target, "b")


@pytest.mark.slow
def test_a_kill_while_a_column_is_written_leaves_the_old_one(store):
    add_b(store)
    identity = store.of_target("b").target_identity
    for where in ("os.fsync", "pathlib.Path.rename"):
        text = (
            "import os, pathlib, signal, sys, numpy as np\n"
            "from srs_ooc.store.store import Store\n"
            "from srs_ooc.store.arrays import write_column\n"
            "from srs_ooc.base.records import Covariate\n"
            "store = Store.open(pathlib.Path(sys.argv[1]))\n"
            f"{where} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
            "new = Covariate('b', np.arange(12.0), ())\n"
            "write_column(store.path, store.fingerprint, 'target', new)\n"
        )
        done = subprocess.run([sys.executable, "-c", text, store.path], check=False, env=os.environ)
        assert done.returncode == -signal.SIGKILL
        assert len(list((store.path / "columns").iterdir())) == 2  # and what was not finished
        assert store.seen_as(identity).target().tolist() == [0, 1] * 6
        assert len(list(store.added("target"))) == 1
        store.verify()
    add(store, "target", "b", np.arange(N_ROWS))
    assert store.of_target("b").manifest.task == "regression"
    assert len(list((store.path / "columns").iterdir())) == 1
