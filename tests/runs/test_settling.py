"""What options make of a run: models other than trees, and thresholds between values.

What they find, that they resume, and what they refuse.
"""

from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from command import error_of, json_of
from command import srs_ooc as command
from ledgers import work_on_run
from stores import make_store, noise_table

import srs_ooc
from srs_ooc.base.budget import PROCESS_NBYTES
from srs_ooc.base.errors import BudgetError, RunError, UsageError
from srs_ooc.learners.tree_learner import Trial
from srs_ooc.methods.models import model_learner
from srs_ooc.methods.models.model_learner import DEFAULT_FOLDS, tried
from srs_ooc.planning.run_plan import plan_values
from srs_ooc.runs.dask_cluster import DaskCluster
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.request import Request
from srs_ooc.runs.run import Run
from srs_ooc.runs.run_memory import RunBudget, TrainingShape
from srs_ooc.runs.session import open_or_create, work_on
from srs_ooc.runs.settling import settle
from srs_ooc.runs.spec import declared
from srs_ooc.store.store import Store

# Models other than trees.


RS = {"method": "rs", "q": 4, "progress": None}


@pytest.fixture(autouse=True)
def no_processes(request, monkeypatch):
    """Most tests need no process that tries the model; it takes seconds."""
    if "tries_a_model" not in request.node.name:
        monkeypatch.setattr(model_learner, "tried", lambda *_: Trial(0, 0, 0.01))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    return rng.standard_normal((16, 160))


@pytest.fixture(scope="module")
def checkerboard(folder, table):
    return make_store(folder / "c.zarr", table, (table[3] * table[7] > 0).astype(int))


@pytest.fixture(scope="module")
def slope(folder, table):
    """A sum of many features: a line follows it, and neighbours are far away."""
    noisy = table[:12].sum(axis=0) + 0.1 * np.random.default_rng(0).standard_normal(160)
    return make_store(folder / "s.zarr", table, (noisy > 0).astype(int))


def ranked(store, run, **given):
    options = RS | {"iterations": 150} | given
    return srs_ooc.run(store, out=run, **options).features("records")


def first(records, n=2):
    return {record["name"] for record in records[:n]}


@pytest.mark.slow
def test_neighbours_find_a_checkerboard_and_lines_do_not(checkerboard, tmp_path):
    knn = ranked(checkerboard, tmp_path / "k.run", model="knn")
    assert first(knn) == {"f3", "f7"}
    for record in knn[:2]:
        assert record["score"] > 2.5 * record["standard_error"] > 0
    linear = ranked(checkerboard, tmp_path / "l.run", model="linear")
    assert first(linear) != {"f3", "f7"}
    scores = [record["score"] for record in linear]
    assert scores == sorted(scores, reverse=True)


def test_lines_follow_a_sum_better_than_neighbours(slope, tmp_path):
    gains = {
        model: sum(
            r["importance"]
            for r in ranked(slope, tmp_path / f"{model}.run", model=model, q=12, iterations=8)
        )
        for model in ("linear", "knn")
    }
    assert gains["linear"] > 1.3 * gains["knn"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("method", ["srs", "less"])
def test_other_methods_draw_for_models_too(checkerboard, tmp_path, method):
    more = {"model_importance": "permutation"} if method == "less" else {}
    found = ranked(
        checkerboard, tmp_path / "a.run", method=method, model="knn", iterations=100, **more
    )
    assert first(found) == {"f3", "f7"}


def test_probabilities_are_learnt_from_neighbours(checkerboard, tmp_path):
    records = ranked(
        checkerboard, tmp_path / "p.run", method="prs", model="knn", q=None, models=30, folds=2,
        epochs=20, inclusion="0.15", learning_rate="0.01", iterations=None,
    )  # fmt: skip
    assert first(records) == {"f3", "f7"}
    assert "standard_error" not in records[0]


RASE = {
    "method": "rase", "model": "knn", "q": None, "iterations": None, "models": 5, "candidates": 40,
    "rounds": 2, "folds": 2, "max_size": 3,
}  # fmt: skip


@pytest.mark.slow
def test_small_subspaces_are_judged_by_neighbours_on_any_number_of_threads(checkerboard, tmp_path):
    records = ranked(checkerboard, tmp_path / "a.run", **RASE)
    assert first(records) == {"f3", "f7"}
    assert records[1]["score"] > 0.5
    assert "standard_error" not in records[0]
    run = tmp_path / "b.run"
    ranked(checkerboard, run, **RASE | {"iterations": 5, "threads": 2})  # in the first round
    ranked(checkerboard, run, **RASE | {"iterations": 7, "threads": 1})
    assert ranked(checkerboard, run, **RASE | {"iterations": 20, "threads": 2}) == records


RIC = {name: value for name, value in RASE.items() if name != "folds"} | {
    "criterion": "ric", "model": "lda",
}  # fmt: skip


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"validation_share": "0"},
        {"model": "qda"},
        {"model": "knn", "candidates": 10},
        {"criterion": "ebic", "model": "linear", "ebic_gamma": "0.5"},
    ],
    ids=["lda", "none held out", "qda", "knn", "linear"],
)
def test_information_criteria_find_a_sum_on_any_number_of_threads_and_after_interruptions(
    slope, tmp_path, given
):
    given = RIC | given
    records = ranked(slope, tmp_path / "a.run", **given)
    few = ["records", tmp_path / "b.run"]
    for iterations, threads in ((3, 2), (9, 1), (20, 2)):  # stopped while judging, and while voting
        last = ranked(slope, few[1], **given | {"iterations": iterations, "threads": threads})
    assert last == records
    assert {record["name"] for record in records[:4]} <= {f"f{j}" for j in range(12)}


def test_extended_bic_finds_what_a_regression_is_made_of(table, tmp_path):
    store, target = tmp_path / "t.zarr", 1000 + 3 * table[2] + 3 * table[5]
    srs_ooc.ingest(table.T, store, target=target, task="regression")
    records = ranked(store, tmp_path / "a.run", **RIC | {"criterion": "ebic", "model": "linear"})
    assert first(records) == {"f2", "f5"}
    assert records[1]["score"] > 0.7


def test_a_criterion_is_part_of_the_identity(slope, tmp_path):
    run = tmp_path / "a.run"
    ranked(slope, run, **RIC | {"iterations": 3})
    with pytest.raises(RunError, match="criterion ric"):
        ranked(slope, run, **RIC | {"criterion": "cv", "iterations": 4})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"model": "tree"}, "expected model lda, qda or knn"),
        ({"criterion": "ebic"}, "which has a likelihood"),
        ({"folds": 3}, "folds: expected with"),
    ],
)
def test_a_criterion_that_a_model_has_not_is_refused_before_a_run_is_made(
    slope, tmp_path, given, says
):
    with pytest.raises(UsageError) as caught:
        ranked(slope, tmp_path / "x.run", **RIC | given)
    assert says in str(caught.value)
    assert not (tmp_path / "x.run").exists()


def test_a_plan_of_a_criterion_counts_subspaces_and_models(slope):
    options = {name: value for name, value in RIC.items() if value is not None}
    request = Request(options=options, memory_mb=4000, threads=1)
    plan = plan_values(Plan.of(Store.open(slope), request))
    assert not plan["seconds_measured"]
    assert "ric is computed for 400 subspaces, and 10 models are fitted" in plan["notes"][-1]


def test_a_slow_criterion_is_counted_as_it_was_tried(slope, monkeypatch):
    monkeypatch.setattr(model_learner, "tried", lambda *_: Trial(0, 0, 0.01, 0.1))
    options = {name: value for name, value in RIC.items() if value is not None}
    request = Request(options=options, memory_mb=4000, threads=1)
    plan = plan_values(Plan.of(Store.open(slope), request))
    assert not plan["seconds_measured"]
    assert plan["total_seconds"] == pytest.approx(400 * 0.1 + 10 * 0.01 / DEFAULT_FOLDS)


def test_a_plan_of_small_subspaces_counts_their_models(checkerboard):
    options = {name: value for name, value in RASE.items() if value is not None}
    request = Request(options=options, memory_mb=4000, threads=1)
    plan = plan_values(Plan.of(Store.open(checkerboard), request))
    assert plan["total_seconds"] == pytest.approx(2 * 5 * (40 * 2 + 1) * 0.01 / DEFAULT_FOLDS)
    assert "times 40 models an iteration" in plan["seconds_how"]
    assert "up to 810 models are fitted" in plan["notes"][-1]


@pytest.mark.slow
def test_a_regression_with_missing_values_ranks_what_it_is_made_of(table, tmp_path):
    values = table.copy()
    values[2, ::9] = np.nan
    target = 1000 + 3 * table[2] + 3 * table[5]
    cells = np.where(np.isnan(values), "", values.astype(str)).T.tolist()
    lines = [",".join([*row, str(y)]) for row, y in zip(cells, target, strict=True)]
    header = ",".join([*(f"f{j}" for j in range(16)), "y"])
    (tmp_path / "t.csv").write_text("\n".join([header, *lines]) + "\n")
    srs_ooc.ingest(tmp_path / "t.csv", tmp_path / "t.zarr", target="y", task="regression")
    for model in ("linear", "sklearn.tree.DecisionTreeRegressor"):
        assert first(
            ranked(tmp_path / "t.zarr", tmp_path / f"{model}.run", model=model, iterations=40)
        ) == {"f2", "f5"}
    with pytest.raises(UsageError, match="found 1 with some"):
        ranked(tmp_path / "t.zarr", tmp_path / "x.run", model="linear", model_missing="refuse")


def work(store, run, *, threads=1, watch=lambda _: True, iterations=24, **given):
    options = {"method": "rs", "subspace_size": "4", "model": "knn"} | given
    request = Request(options=options, threads=threads, iterations=iterations, memory_mb=4000)
    work_on_run(store, run, request, watch)
    return srs_ooc.open_run(run).features("records")


@pytest.mark.few(1)
@pytest.mark.parametrize("importance", ["subspaces", "permutation"])
def test_stopped_after_every_few_iterations_on_other_threads_it_ends_with_the_same_bits(
    checkerboard, tmp_path, importance
):
    given = {"model": "sklearn.ensemble.ExtraTreesClassifier", "model_params": '{"n_estimators":2}',
             "model_importance": importance, "model_folds": 2}  # fmt: skip
    whole = work(checkerboard, tmp_path / "w.run", **given)
    assert work(checkerboard, tmp_path / "three.run", threads=3, **given) == whole
    run, calls = tmp_path / "s.run", 0

    def going(_):
        nonlocal calls
        calls += 1
        return calls % 7 != 0

    for sitting in range(20):
        records = work(checkerboard, run, threads=1 + sitting % 2, watch=going, **given)
        if srs_ooc.open_run(run).n_iterations == 24:
            break
    assert sitting >= 3
    assert records == whole


def test_groups_of_rows_are_held_out_whole(tmp_path):
    # Each group has values of its own: neighbours know it again unless it is held out whole.
    rng = np.random.default_rng(1)
    person = np.repeat(np.arange(30), 4)
    values = rng.standard_normal((30, 6))[person] + 0.01 * rng.standard_normal((120, 6))
    labels = rng.permutation(30)[person] % 2
    rows = zip(values.tolist(), person.tolist(), labels.tolist(), strict=True)
    lines = [",".join(map(str, [*row, f"p{who}", label])) for row, who, label in rows]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c,d,e,f,person,y", *lines]) + "\n")
    gains = {}
    for name, given in (("whole", {"groups": "person"}), ("apart", {"ignore": ["person"]})):
        store = tmp_path / f"{name}.zarr"
        srs_ooc.ingest(tmp_path / "t.csv", store, target="y", **given)
        gains[name] = max(
            r["importance"]
            for r in ranked(store, tmp_path / f"{name}.run", model="knn", iterations=10)
        )
    assert gains["apart"] > 0.1
    assert gains["whole"] < 0.05


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"model": "knn", "judge": "tests"}, "judge: expected none with"),
        ({"model": "knn", "max_features": 3}, "max_features: expected with"),
        ({"model": "knn", "save_trees": True}, "save_trees: expected with"),
        ({"model_folds": 3}, "model_folds: expected with"),
        ({"model": "knn", "q": 16}, "fewer than the 16 features"),
        ({"model": "knn", "method": "srs", "model_importance": "subspaces"}, "share one score"),
        ({"model": "knn", "method": "prs", "model_folds": 3, "q": None}, "scores and folds of its"),
        ({"model": "knn", "method": "rase", "model_folds": 3, "q": None}, "scores and folds"),
        ({"model": "knn", "model_folds": 100}, None),
        ({"model": "forest"}, "found 'forest'"),
        ({"model": "knn", "model_params": "[]"}, "expected a JSON object"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused_by_name(checkerboard, tmp_path, given, says):
    run = tmp_path / "x.run"
    if says is None:
        assert ranked(checkerboard, run, iterations=1, **given)[0]["score"] is None
        return
    with pytest.raises(UsageError) as caught:
        ranked(checkerboard, run, **given)
    assert says in str(caught.value)
    assert not run.exists()


def test_workers_elsewhere_are_refused_before_a_run_is_made_and_when_it_goes_on(
    checkerboard, tmp_path
):
    run, store = tmp_path / "x.run", Store.open(checkerboard)
    cluster = DaskCluster(lambda: None, worker_memory_mb=512)
    given = {"method": "rs", "subspace_size": "4", "model": "knn"}
    with pytest.raises(UsageError, match="dask: expected --model tree, found knn"):
        open_or_create(store, run, Request(options=given, iterations=4, cluster=cluster))
    assert not run.exists()
    with closing(
        open_or_create(store, run, Request(options=given, iterations=2, memory_mb=4000))
    ) as ledger:
        work_on(ledger, store, Request(options=given))
        with pytest.raises(UsageError, match="dask: expected --model tree, found knn"):
            work_on(ledger, store, Request(options=given, iterations=4, cluster=cluster))
        assert ledger.progress().iteration == 2


@pytest.mark.slow
def test_a_report_lists_the_scores_of_models(checkerboard, tmp_path):
    ranked(checkerboard, tmp_path / "x.run", model="knn", iterations=40)
    page = srs_ooc.open_run(tmp_path / "x.run").report(tmp_path / "x.html").read_text()
    assert 'data-column="score"' in page


def test_the_model_is_part_of_the_identity_and_predicts_nothing_afterwards(checkerboard, tmp_path):
    run = tmp_path / "a.run"
    once = ranked(checkerboard, run, model="knn", model_params={"n_neighbors": 7}, iterations=10)
    assert ranked(checkerboard, run, model_params='{"n_neighbors":7}', iterations=10) == once
    with pytest.raises(RunError, match="model knn"):
        ranked(checkerboard, run, model="linear")
    result = srs_ooc.open_run(run)
    assert result.status.parts["model"]["model_params"] == '{"n_neighbors":7}'
    with pytest.raises(RunError, match="fitted models are not kept"):
        result.predict(checkerboard)
    trees = tmp_path / "t.run"
    ranked(checkerboard, trees, judge="probe", iterations=5)
    ranked(checkerboard, trees, model="tree", judge="probe", iterations=5)
    with pytest.raises(RunError, match="model tree"):
        ranked(checkerboard, trees, model="knn", iterations=5)


def test_a_cap_too_small_for_a_candidate_is_refused_with_the_smallest_that_works(
    checkerboard, tmp_path
):
    given = RIC | {"max_size": 12, "models": 2, "rounds": 2}
    with pytest.raises(BudgetError, match="a block of 12 columns") as caught:
        ranked(checkerboard, tmp_path / "x.run", **given, memory_mb=1)
    cap = int(str(caught.value).rpartition("memory_mb=")[2].rstrip(". "))
    assert ranked(checkerboard, tmp_path / "x.run", **given, memory_mb=cap)


def test_a_cap_too_small_is_refused_with_the_smallest_that_works(
    checkerboard, tmp_path, monkeypatch
):
    monkeypatch.setattr(model_learner, "tried", lambda *_: Trial(0, 90_000_000, 0.01))
    with pytest.raises(BudgetError, match="memory_mb=") as caught:
        ranked(checkerboard, tmp_path / "x.run", model="knn", memory_mb=150)
    assert "block of 4 columns and its model 90." in str(caught.value)
    cap = int(str(caught.value).rpartition("memory_mb=")[2].rstrip(". "))
    with pytest.raises(BudgetError):
        ranked(checkerboard, tmp_path / "x.run", model="knn", memory_mb=cap - 5)
    ranked(checkerboard, tmp_path / "x.run", model="knn", memory_mb=cap, iterations=2)
    assert Run(tmp_path / "x.run", writable=False).progress().iteration == 2


@pytest.mark.slow
def test_a_run_tries_a_model_before_it_is_made(checkerboard, tmp_path):
    tried.cache_clear()  # of what this process tried before
    with pytest.raises(UsageError, match="n_neighbors"):
        ranked(checkerboard, tmp_path / "x.run", model="knn", model_params={"n_neighbors": 10**6})
    assert not (tmp_path / "x.run").exists()
    assert tried.cache_info().currsize == 0


@pytest.mark.slow
def test_a_plan_counts_the_model_and_advises_nothing_of_trees(checkerboard):
    request = Request(
        options={"method": "rs", "subspace_size": "4", "model": "knn"}, memory_mb=4000
    )
    plan = plan_values(Plan.of(Store.open(checkerboard), request))
    leases = {lease["purpose"]: lease["mb"] for lease in plan["leases"]}
    assert leases["scikit-learn and what it loads"] == 200
    assert "a block of 4 columns and its model" in leases
    assert [advice["name"] for advice in plan["advice"]] == ["iterations"]
    assert plan["alternatives"] == []
    assert plan["seconds_measured"]


# Thresholds that are drawn between values.


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    values, labels = noise_table(60, 300, n_relevant=2)
    return make_store(tmp_path_factory.mktemp("by-value") / "t.zarr", np.exp(values), labels)


def run(store, out, *options):
    command("run", store, "--out", out, "--q", 40, "--with", "thresholds=value", *options)
    return command("features", out, "--csv").stdout


@pytest.mark.slow
def test_threads_and_stops_change_nothing(store, tmp_path):
    """The closing stage draws by values, too; their tables are made again."""
    first = run(store, tmp_path / "a.run", "--iterations", 60, "--threads", 1)
    run(store, tmp_path / "b.run", "--iterations", 20, "--threads", 3)
    assert run(store, tmp_path / "b.run", "--iterations", 60, "--threads", 3) == first
    other = tmp_path / "rank.run"
    command("run", store, "--out", other, "--q", 40, "--iterations", 60)
    assert command("features", other, "--csv").stdout != first


@pytest.mark.slow
def test_predictions_are_as_good_as_those_of_extra_trees(tmp_path):
    """Held-out half of a table of integers: by rank, by value, and scikit-learn's."""
    ensemble = pytest.importorskip("sklearn.ensemble")
    rng = np.random.default_rng(0)
    values = rng.integers(0, 40, (12, 600)).astype(float)
    labels = ((values[0] > 20) ^ (values[1] > 25)).astype(int)
    rows = zip(values.T, labels, strict=True)
    lines = [",".join([*(f"{x:g}" for x in row), str(y)]) for row, y in rows]
    header = ",".join([*(f"f{i}" for i in range(12)), "y"])
    for name, part in (("train", lines[:300]), ("test", lines[300:])):
        (tmp_path / f"{name}.csv").write_text("\n".join([header, *part]) + "\n")
    command("ingest", tmp_path / "train.csv", tmp_path / "train.zarr", "--target", "y")
    found = []
    for thresholds in ("rank", "value"):
        out = tmp_path / f"{thresholds}.run"
        options = ("--q", 12, "--alpha", "0", "--iterations", 200, "--save-trees")
        more = ("--with", f"thresholds={thresholds}", "--out", out)
        command("run", tmp_path / "train.zarr", *options, *more)
        csv = tmp_path / f"{thresholds}.csv"
        found.append(json_of("predict", out, tmp_path / "test.csv", csv, "--json")["accuracy"])
    peer = ensemble.ExtraTreesClassifier(200, max_features=None, random_state=0)
    accuracy = peer.fit(values.T[:300], labels[:300]).score(values.T[300:], labels[300:])
    assert accuracy > 0.9
    np.testing.assert_allclose(found, accuracy, atol=0.03)


@pytest.mark.slow
def test_nothing_is_left_beside_the_store(store, tmp_path):
    before = sorted(store.parent.iterdir())
    run(store, tmp_path / "a.run", "--iterations", 3, "--judge", "probe")
    assert sorted(store.parent.iterdir()) == before


@pytest.mark.slow
def test_they_are_part_of_the_identity(store, tmp_path):
    out = tmp_path / "a.run"
    run(store, out, "--iterations", 5, "--judge", "probe")
    command("resume", out, "--iterations", 7)
    assert "thresholds value" in error_of("run", store, "--out", out, "--with", "thresholds=rank")


def test_best_splits_part_values_midway_as_those_of_scikit_learn(tmp_path):
    tree = pytest.importorskip("sklearn.tree")
    rng = np.random.default_rng(0)
    values = np.exp(2 * rng.normal(size=(250, 3)))
    numbers = np.log(values).sum(axis=1) ** 3
    store = tmp_path / "t.zarr"
    srs_ooc.ingest(values, store, target=numbers, task="regression")
    (tmp_path / "rows.txt").write_text("\n".join(map(str, range(1, 61))))
    told = tree.DecisionTreeRegressor(min_samples_leaf=4).fit(values[:60], numbers[:60])
    expected, found = told.predict(values[60:]), {}
    for thresholds in ("rank", "value"):
        result = srs_ooc.run(
            store,
            out=tmp_path / f"{thresholds}.run",
            iterations=1,
            judge="positive",
            q=3,
            alpha="0",
            rows=tmp_path / "rows.txt",
            splitter="best",
            min_samples_leaf=4,
            thresholds=thresholds,
            save_trees=True,
        )
        found[thresholds] = result.predict(values[60:]).to_numpy()[:, -1].astype(float)
    alike = {name: np.isclose(one, expected, atol=0.1).mean() for name, one in found.items()}
    assert alike["value"] == 1.0, alike
    assert alike["rank"] < 1.0, alike


@pytest.mark.slow
def test_plan_counts_their_memory():
    def largest(*options):
        table = ("--n-rows", 1000, "--n-features", 10**6)
        return json_of("plan", *table, "--json", *options)["largest_subspace_size"]

    assert largest("--with", "thresholds=value") < 0.5 * largest()


@pytest.mark.parametrize(
    ("n_features", "judge", "size"),
    [
        (10_000, "probe", 500), (1000, "probe", 100), (10_000, "tests", 500),
        (300_000, "tests", 15_000),
    ],
)  # fmt: skip
def test_q_is_what_the_help_says_where_it_is_not_given(n_features, judge, size):
    request = Request(options={"judge": judge}, memory_mb=4000)
    assert Plan.of_numbers(request, 100, n_features).spec.subspace_size == size
    said = declared()["subspace_size"].default_text
    assert said.startswith("5% of the features, at least 100, within the cap;")


# Rows that trees are grown on.

SHAPE = TrainingShape(1000, 500, 500, 2, 1, n_stored_rows=1000)


@pytest.mark.parametrize(
    ("options", "n_rows", "expected"),
    [
        ({}, 20_000, 4000),
        ({}, 19_999, None),
        ({"row_sample": 30_000}, 20_000, 30_000),
        ({"row_sample": 50}, 100, 50),
        ({"judge": "probe"}, 20_000, None),
        ({"bootstrap": True}, 20_000, None),
        ({"save_trees": True}, 20_000, None),
        ({"method": "rase"}, 20_000, None),
        ({"method": "less"}, 20_000, 4000),
    ],
    ids=str,
)
def test_tall_tables_are_sampled_where_tests_of_all_rows_follow(options, n_rows, expected):
    saves = options.pop("save_trees", False)
    shape = replace(SHAPE, n_rows=n_rows, n_stored_rows=n_rows)
    spec = settle(Request(options=options, save_trees=saves), shape, {})
    assert spec.learner.row_sample == expected


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"row_sample": 9, "bootstrap": True}, "--row-sample or --bootstrap, found both"),
        ({"row_sample": 9, "method": "prs"}, "a method whose trees have all rows"),
        ({"row_sample": 1}, "--row-sample: expected a whole number from 2"),
    ],
    ids=str,
)
def test_samples_of_rows_that_cannot_be_are_refused(options, match):
    with pytest.raises(UsageError, match=match):
        settle(Request(options=options), SHAPE, {})


def test_the_default_subspace_has_room_for_two_workers():
    shape = replace(SHAPE, n_rows=500, n_candidates=10**7, n_features=10**7, n_stored_rows=500)
    asked = Request(memory_mb=512)
    spec = settle(asked, shape, {})
    for n_cores in (1, 2, 8):
        budget = RunBudget(asked.cap_nbytes, Plan(asked, spec, shape).leases(), PROCESS_NBYTES)
        budget.spend(spec, shape, n_cores)
        assert budget.n_workers == min(2, n_cores)
    assert spec.subspace_size < 10**7 // 20
    roomy = settle(Request(memory_mb=4000), shape, {})
    assert roomy.subspace_size == 10**7 // 20
