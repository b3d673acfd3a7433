"""Runs beside covariates: what only follows them is not selected, however the work is cut short."""

import re
import signal
import subprocess
from contextlib import closing

import numpy as np
import pytest
from command import command_line, error_of, json_of, peak_kb, srs_ooc, wait_for

import srs_ooc as package
from srs_ooc.base.errors import BudgetError, RunError, UsageError
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.request import Request
from srs_ooc.runs.run import Run
from srs_ooc.runs.session import open_or_create, work_on
from srs_ooc.store.opening import open_store

N_ROWS, N_FEATURES = 300, 200


def study(seed, kind="classes"):
    """Features (n_rows, n_features), of which half follow age; the last three matter."""
    rng = np.random.default_rng(seed)
    age, sex = rng.normal(50, 10, N_ROWS), rng.integers(0, 2, N_ROWS)
    curve = ((age - 50) / 10) ** 2 - 1
    x = rng.normal(size=(N_ROWS, N_FEATURES))
    x[:, : N_FEATURES // 2] += 0.8 * curve[:, None]
    matters = x[:, -3:].sum(axis=1)
    score = 1.5 * curve + 0.5 * sex + 0.9 * matters
    target = (score + rng.logistic(size=N_ROWS) > 0.3).astype(int)
    if kind == "numbers":
        target = score + rng.normal(size=N_ROWS)
    names = ["m" if one else "f" for one in sex]
    return x, target, {"age": age, "sex": np.array(names)}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    place = tmp_path_factory.mktemp("study") / "study.zarr"
    x, target, covariates = study(1)
    package.ingest(x, place, target=target, covariates=covariates)
    return place


def ran(store, out, adjust="all", **options):
    options = {"iterations": 40, "memory_mb": 4000, "threads": 1} | options
    return package.run(store, out=out, adjust=adjust, **options)


def selected(result):
    return {int(name[1:]) for name in result.selected}


TRUE = set(range(N_FEATURES - 3, N_FEATURES))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_what_only_follows_a_covariate_is_not_selected(tmp_path, kind):
    x, target, covariates = study(2, kind)
    place = tmp_path / "a.zarr"
    package.ingest(x, place, target=target, covariates=covariates)
    plain = selected(ran(place, tmp_path / "plain.run", "none"))
    assert len(plain - TRUE) > N_FEATURES // 3
    found = selected(ran(place, tmp_path / "adjusted.run"))
    assert found >= TRUE
    assert len(found - TRUE) <= 2


def test_the_null_model_is_kept_and_names_the_run(store, tmp_path):
    ran(store, tmp_path / "a.run")
    with closing(Run(tmp_path / "a.run", writable=False)) as run:
        null, spec = run.inputs.null_model, run.spec
    assert null is not None
    assert spec.adjusts_for == ("age", "sex")
    assert spec.null_model.startswith(f"{null.basis.shape[1]} columns")
    for adjust in ("age, sex", "sex,age", "all"):
        ran(store, tmp_path / "a.run", adjust)
    with pytest.raises(RunError, match=r"adjust age,sex \(asked for: age\)"):
        ran(store, tmp_path / "a.run", "age")


@pytest.mark.slow
def test_a_run_goes_on_as_if_it_had_never_stopped(store, tmp_path):
    whole = ran(store, tmp_path / "whole.run", iterations=60)
    ran(store, tmp_path / "parts.run", iterations=20)
    parts = ran(store, tmp_path / "parts.run", iterations=60)
    assert parts.features("records") == whole.features("records")


@pytest.mark.slow
def test_a_killed_run_ends_the_same(store, tmp_path):
    out = tmp_path / "killed.run"
    how = ("--adjust", "all", "--iterations", "30000", "--memory-mb", "400", "--threads", "1")
    process = subprocess.Popen(command_line("run", store, "--out", out, *how))
    wait_for(process, out, 100)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert json_of("status", out, "--json")["iterations"] < 30000
    short = json_of("status", out, "--json")["iterations"]
    srs_ooc("resume", out, "--iterations", short)
    expected = ran(store, tmp_path / "whole.run", iterations=short)
    assert package.Result(out).features("records") == expected.features("records")


@pytest.mark.slow
def test_threads_and_caps_do_not_change_the_verdict(store, tmp_path):
    one = ran(store, tmp_path / "one.run")
    two = ran(store, tmp_path / "two.run", threads=2, memory_mb=8000)
    assert one.features("records") == two.features("records")


@pytest.mark.slow
def test_halves_have_the_null_model_of_all_rows(store, tmp_path):
    opened = open_store(store)
    request = Request(options={"adjust": "all", "subspace_size": "20"}, iterations=20, halves=2)
    with closing(open_or_create(opened, tmp_path / "a.run", request)) as run:
        plan = Plan.of_run(run, opened)
        halves = [plan.half(number) for number in (0, 1)]
        work_on(run, opened, request)
    whole = plan.inputs.null_model
    assert whole is not None
    for half in halves:
        null = half.inputs.null_model
        assert null is not None
        assert (null.basis == whole.basis[half.inputs.rows]).all()
        assert half.spec.null_model == half.inputs.null_digest != plan.spec.null_model
    assert json_of("status", tmp_path / "a.run", "--json")["halves"]["done"] == 2


@pytest.mark.slow
def test_compact_says_what_the_panel_adds(store, tmp_path):
    ran(store, tmp_path / "a.run")
    small = package.compact(tmp_path / "a.run", folds=4, repeats=1, memory_mb=4000)
    scores = {size.features: size.score for size in small.sizes}
    assert 0.55 < scores[0] < max(scores.values()) - 0.03


@pytest.mark.slow
def test_what_cannot_be_adjusted_is_refused_by_name(store, tmp_path):
    out = ("--out", tmp_path / "x.run")
    assert "(age, sex)" in (said := error_of("run", store, *out, "--adjust", "height"))
    assert "found 'height'" in said
    assert "--judge tests only" in error_of(
        "run", store, *out, "--adjust", "all", "--judge", "probe"
    )
    x, target, covariates = study(3)
    bare, grouped = tmp_path / "bare.zarr", tmp_path / "grouped.zarr"
    package.ingest(x, bare, target=target)
    assert "it has none" in error_of("run", bare, *out, "--adjust", "all")
    groups = np.arange(N_ROWS) // 2
    package.ingest(x, grouped, target=target, covariates=covariates, groups=groups)
    assert "--aggregate mean" in error_of("run", grouped, *out, "--adjust", "all")
    assert not (tmp_path / "x.run").exists()


@pytest.mark.parametrize("name", ["a,b", "all", "none"])
def test_names_that_mean_something_else_are_refused(tmp_path, name):
    x, target, covariates = study(5)
    given = {name: covariates["age"], "sex": covariates["sex"]}
    package.ingest(x, tmp_path / "a.zarr", target=target, covariates=given)
    with pytest.raises(UsageError, match=f"found {name!r}\\. .*rename what cannot"):
        ran(tmp_path / "a.zarr", tmp_path / "a.run")


def test_covariates_that_say_too_much_are_refused(tmp_path):
    x, target, _ = study(4)
    place, few = tmp_path / "a.zarr", tmp_path / "few.zarr"
    package.ingest(x, place, target=target, covariates={"same": np.array(["a", "b"])[target]})
    with pytest.raises(UsageError, match="they say the class by themselves"):
        ran(place, tmp_path / "a.run")
    many = {"town": np.array([f"t{i % 40}" for i in range(N_ROWS)])}
    package.ingest(x, few, target=target, covariates=many)
    with pytest.raises(UsageError, match="found 40 columns"):
        ran(few, tmp_path / "few.run")


def test_a_covariate_of_one_value_among_the_rows_is_refused(tmp_path):
    x, target, covariates = study(6)
    half = np.where(np.arange(N_ROWS) < 150, covariates["age"], np.nan)
    package.ingest(x, tmp_path / "a.zarr", target=target, covariates=covariates | {"half": half})
    rows = tmp_path / "rows.txt"
    rows.write_text("\n".join(str(i) for i in range(151, 301)))
    with pytest.raises(UsageError, match="found 'half' with one value"):
        ran(tmp_path / "a.zarr", tmp_path / "a.run", rows=rows)


@pytest.mark.slow
def test_the_cap_that_is_named_holds_the_fit(tmp_path):
    rng = np.random.default_rng(0)
    x, target = rng.normal(size=(20000, 20)), rng.integers(0, 2, 20000)
    covariates = {f"c{i}": rng.normal(size=20000) for i in range(12)}
    package.ingest(x, tmp_path / "a.zarr", target=target, covariates=covariates)
    with pytest.raises(BudgetError, match="columns of covariates"):
        ran(tmp_path / "a.zarr", tmp_path / "a.run", memory_mb=90)


@pytest.mark.slow
@pytest.mark.parametrize(("n_rows", "n_features", "n_numbers"), [(30000, 60, 3), (2000, 1500, 10)])
def test_the_cap_that_is_named_is_held(tmp_path, n_rows, n_features, n_numbers):
    rng = np.random.default_rng(1)
    x, target = rng.normal(size=(n_rows, n_features)), rng.integers(0, 2, n_rows)
    covariates = {f"c{i}": rng.normal(size=n_rows) for i in range(n_numbers)}
    package.ingest(x, tmp_path / "a.zarr", target=target, covariates=covariates, memory_mb=4000)
    how = ("run", tmp_path / "a.zarr", "--adjust", "all", "--iterations", "20")
    said = error_of(*how, "--out", tmp_path / "no.run", "--memory-mb", "58")
    cap = int(re.findall(r"works is --memory-mb (\d+)", said)[0])
    assert peak_kb(*how, "--out", tmp_path / "a.run", "--memory-mb", cap) <= cap * 1000


def test_rows_that_are_left_out_are_not_fitted(store, tmp_path):
    rows = tmp_path / "rows.txt"
    rows.write_text("\n".join(str(i) for i in range(1, 201)))
    ran(store, tmp_path / "a.run", rows=rows)
    with closing(Run(tmp_path / "a.run", writable=False)) as run:
        null = run.inputs.null_model
    assert null is not None
    assert len(null.basis) == 200
