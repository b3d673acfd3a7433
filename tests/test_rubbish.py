"""Whatever a caller from Python gives, an error is one of the documented ones, and says what to do.

All parameters take minutes: ``pytest tests/test_rubbish.py -m slow``.
"""

import inspect
import math
import warnings

import numpy as np
import pytest
from stores import make_store

import srs_ooc
from srs_ooc.base.errors import SrsOocError, UsageError
from srs_ooc.runs.request import Request
from srs_ooc.runs.spec import declared

RUBBISH = [
    -1, 0, 2.5, math.nan, math.inf, -(10**30), 10**30, "", "no such", "a\0b", "\ud800", b"bytes",
    [], [1], [None], {}, {"a": 1}, (), object(), np.array([1, 2]), np.array([[1.5]]), True,
    ..., len, int, np.float64(-3), "-1", "1e999", "é" * 9, range(2), {1, 2},
]  # fmt: skip
VALUES = np.random.default_rng(0).normal(size=(6, 24))
LABELS = [0, 1] * 12
DOCUMENTED = (SrsOocError,)
OF_ESTIMATORS = (SrsOocError, ValueError, TypeError, OSError)
OF_TESTS = {"fdr", "keep", "closing"}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return make_store(tmp_path_factory.mktemp("s") / "t.zarr", VALUES, np.array(LABELS))


@pytest.fixture(scope="module")
def done(store):
    srs_ooc.run(store, out=store.parent / "d.run", iterations=3, threads=1)
    return store.parent / "d.run"


def broken(call, allowed, what):
    """What a call raised that it may not; None if nothing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    except allowed as error:
        text = str(error)
        return None if text else f"{what}: {type(error).__name__} that says nothing"
    except Exception as error:
        return f"{what}: {type(error).__name__}: {error}"
    return None


def faults(name, call, allowed=DOCUMENTED):
    found = (broken(lambda v=v: call(v), allowed, f"{name}={v!r:.60}") for v in RUBBISH)
    return [fault for fault in found if fault is not None]


def of_run(store, folder, name):
    options = {"iterations": 2, "threads": 1, "out": None} | {"memory_mb": 4000}
    counter = iter(range(1000))

    def call(value):
        given = options | {"out": folder / f"{next(counter)}.run"} | {name: value}
        if name == "out" and not isinstance(value, str | bytes):
            given["out"] = value
        srs_ooc.run(store, **given)

    return call


PARAMETERS = [n for n in inspect.signature(srs_ooc.run).parameters if n not in ("store", "options")]
PARAMETERS = [n for n in PARAMETERS if n not in ("out", "client", "progress")]
QUICK = {"iterations", "rows", "alpha", "subspace_size", "judge"}


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=[] if n in QUICK else [pytest.mark.campaign])
        for n in sorted({*PARAMETERS, *declared()})
    ],
)
def test_options_of_a_run(store, tmp_path, name):
    assert faults(name, of_run(store, tmp_path, name)) == []


def test_options_that_no_part_declares():
    for given in ({"p": 20}, {"judge": "positive", "p": 20}, {"": 1}, {"method": "prs", "what": 2}):
        with pytest.raises(SrsOocError, match="expected an option of a run"):
            Request(options=given, memory_mb=4000)


CALLS = {
    "run(store)": lambda v, s, d, t: srs_ooc.run(v, iterations=1, out=t / "x.run"),
    "open_store": lambda v, s, d, t: srs_ooc.open_store(v),
    "open_run": lambda v, s, d, t: srs_ooc.open_run(v),
    "resume": lambda v, s, d, t: srs_ooc.resume(v),
    "resume(iterations)": lambda v, s, d, t: srs_ooc.resume(d, iterations=v),
    "resume(memory_mb)": lambda v, s, d, t: srs_ooc.resume(d, memory_mb=v),
    "verify": lambda v, s, d, t: srs_ooc.verify(v),
    "verify(memory_mb)": lambda v, s, d, t: srs_ooc.verify(s, memory_mb=v),
    "compact": lambda v, s, d, t: srs_ooc.compact(v),
    "compact(folds)": lambda v, s, d, t: srs_ooc.compact(d, folds=v),
    "compact(repeats)": lambda v, s, d, t: srs_ooc.compact(d, repeats=v),
    "compact(max_features)": lambda v, s, d, t: srs_ooc.compact(d, max_features=v),
    "read(names)": lambda v, s, d, t: srs_ooc.read(s, [v]),
    "scores(top)": lambda v, s, d, t: srs_ooc.scores(s, "records", top=v),
    "features(top)": lambda v, s, d, t: srs_ooc.open_run(d).features("records", top=v),
    "why": lambda v, s, d, t: srs_ooc.open_run(d).why(v),
    "plan(store)": lambda v, s, d, t: srs_ooc.plan(v),
    "plan(memory_mb)": lambda v, s, d, t: srs_ooc.plan(s, memory_mb=v),
    "plan(n_rows)": lambda v, s, d, t: srs_ooc.plan(n_rows=v, n_features=100),
    "plan(n_features)": lambda v, s, d, t: srs_ooc.plan(n_rows=10, n_features=v),
    "plan(n_classes)": lambda v, s, d, t: srs_ooc.plan(n_rows=10, n_features=9, n_classes=v),
    "ingest(table)": lambda v, s, d, t: srs_ooc.ingest(v, t / "n.zarr", target=LABELS),
    "ingest(store)": lambda v, s, d, t: srs_ooc.ingest(VALUES.T, v, target=LABELS),
}
INGEST = [n for n in inspect.signature(srs_ooc.ingest).parameters if n not in ("table", "store")]
CALLS |= {
    f"ingest({n})": lambda v, s, d, t, n=n: srs_ooc.ingest(
        VALUES.T, t / "n.zarr", **{"target": LABELS, "overwrite": True} | {n: v}
    )
    for n in INGEST
    if n != "progress"
}


@pytest.mark.few(4)
@pytest.mark.parametrize("name", CALLS)
def test_calls(store, done, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    assert faults(name, lambda v: CALLS[name](v, store, done, tmp_path)) == []


def test_yes_is_no_number(store, done):
    for call in (
        lambda: srs_ooc.resume(done, iterations=True),
        lambda: CALLS["features(top)"](True, store, done, None),
    ):
        with pytest.raises(UsageError, match="expected a whole number"):
            call()
    with pytest.raises(UsageError, match="expected a number of megabytes"):
        srs_ooc.ingest(VALUES.T, "n.zarr", target=LABELS, memory_mb=True)


def test_what_a_number_must_be_is_said_in_the_words_of_python(store, done, tmp_path):
    result = srs_ooc.open_run(done)
    for call, match in (
        (lambda: srs_ooc.compact(done, folds=1), "^folds: expected a whole number from 2"),
        (lambda: result.features(top=-1), "^top: expected a whole number from 1"),
        (lambda: srs_ooc.scores(store, top=0), "^top: expected a whole number from 1"),
        (lambda: result.export(tmp_path / "o.csv", top=0), "^top: expected at least 1, found 0"),
    ):
        with pytest.raises(UsageError, match=match):
            call()


def test_one_name_may_be_given_as_it_is(store):
    one = srs_ooc.read(store, "f1", "records")
    assert one == srs_ooc.read(store, ["f1"], "records")
    assert len(one) == 24


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(8))
@pytest.mark.parametrize("face", ["SRSSelector", "SRSClassifier", "SRSRegressor"])
def test_estimators(face, part):
    if not hasattr(srs_ooc, face):
        pytest.skip(f"no {face}")
    kind = getattr(srs_ooc, face)
    found = []
    for name in list(inspect.signature(kind).parameters)[part::8]:
        given = {"iterations": 2} | ({} if name in OF_TESTS else {"judge": "positive"})

        def call(value, given=given, name=name):
            kind(**given | {name: value}).fit(VALUES.T, LABELS)

        found += faults(f"{face}({name})", call, OF_ESTIMATORS)
    assert found == []
