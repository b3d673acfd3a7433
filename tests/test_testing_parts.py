"""The conformance suites: parts that keep to their contract pass, each broken rule is seen."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command import environment, error_of, json_of, srs_ooc
from refusals import refused
from stores import make_store, noise_table

from srs_ooc.base.records import State, Subspace
from srs_ooc.base.seeds import key_of
from srs_ooc.evidence import judges
from srs_ooc.evidence.judges import Judge, PositiveJudge
from srs_ooc.learners.tree_learner import TreeLearner
from srs_ooc.methods.less.leverage import SquaredNorm
from srs_ooc.runs.engine import ThreadExecutor
from srs_ooc.runs.run_memory import TrainingShape
from srs_ooc.samplers.base import methods
from srs_ooc.samplers.elimination import Elimination
from srs_ooc.testing import N_ROWS, check_executor, check_learner, check_sampler, check_score
from srs_ooc.trees.response import Response, TrainingRows, TreeLimits

DOCS = Path(__file__).parents[1] / "docs"
WORKED = re.findall(r"```python\n(.*?)```", (DOCS / "extending.md").read_text(), re.DOTALL)


def defaults(method):
    return method.settle({}, TrainingShape(N_ROWS, 400, 400, 2, 1))


@pytest.mark.few(4)
@pytest.mark.parametrize("round_size", [1, 5])
@pytest.mark.parametrize("name", [name for name, _ in methods()])
def test_every_method_of_the_package_passes(name, round_size):
    method = dict(methods())[name]
    some = np.arange(5, 400, 3, dtype=np.uint32)
    for candidates in (None, some):
        check_sampler(defaults(method).make, round_size=round_size, candidates=candidates)


@pytest.mark.slow
def test_the_leaders_and_the_closing_stage_pass():
    def leaders(ground):
        judge = judges.TestsJudge.settle({"keep": 3}, TrainingShape(N_ROWS, 400, 400, 2, 1))
        return defaults(dict(methods())["srs"]).make(replace(ground, judge=judge))

    check_sampler(leaders, n_iterations=250)
    features = np.arange(100, dtype=np.uint32)
    check_sampler(
        lambda _: Elimination(features, key_of(3), ((0.3, 0.3),), 24),
        n_iterations=2500,
        round_size=1000,
    )


def test_the_worked_examples_pass_as_the_page_says():
    known = {}
    for block in WORKED:
        exec(block, known)
    for kind in ("sampler", "learner", "score", "table", "executor"):
        assert any(f"check_{kind}(" in block for block in WORKED)


def broken(change, **given):
    def make(ground):
        method = dict(methods())["srs"]
        sampler = defaults(method).make(ground)
        change(sampler)
        return sampler

    check_sampler(make, **given)


def not_pure(sampler):
    calls, propose = [], sampler.propose

    def proposed(iteration, key):
        calls.append(iteration)
        return propose(iteration, key + len(calls))

    sampler.propose = proposed


def not_ascending(sampler):
    propose = sampler.propose
    sampler.propose = lambda i, key: Subspace(propose(i, key).features[::-1].copy())


def with_other(**methods):
    return lambda sampler: sampler.__dict__.update(methods)


def never_new(sampler):
    sampler.restore = lambda saved: saved.arrays["kept"]


MANY = np.arange(25, dtype=np.uint32)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (not_pure, "not pure"),
        (not_ascending, "ascending"),
        (with_other(propose=lambda i, key: Subspace(MANY)), "capacity"),
        (with_other(state=State), "restore"),
        (
            with_other(state=lambda: {"kept": 0}),
            "expected a srs_ooc.base.records.State, found dict",
        ),
        (never_new, "restore: expected the sampler as new where nothing was committed"),
        (with_other(version=lambda iteration: 0), "version"),
        (with_other(step=lambda: True), "step"),
    ],
)
def test_each_broken_rule_is_seen(change, match):
    refused(AssertionError, match, broken, change)


@pytest.mark.parametrize("tiled", [True, False])
def test_the_tree_learner_passes(tiled):
    labels = (np.arange(90) % 3).astype(np.int32)
    rows = TrainingRows.of(Response.classes(labels, 3), "gini")
    limits = TreeLimits(12 if tiled else 2)
    learner = TreeLearner(rows, limits, 200 if not tiled else 12, 2, bootstrap=True)
    check_learner(learner, 90, tiled=learner.tiled)


def test_a_learner_that_remembers_is_seen():
    class Remembers(TreeLearner):
        n = 0

        def fit(self, block, columns, iteration):
            self.n += 1
            outcome = super().fit(block, columns, iteration)
            return replace(outcome, importance=outcome.importance + self.n)

    rows = TrainingRows.of(Response.classes((np.arange(60) % 2).astype(np.int32), 2), "gini")
    learner = Remembers(rows, TreeLimits(12), 12)
    refused(AssertionError, "fitted before", check_learner, learner, 60, tiled=learner.tiled)


class NoReader:
    depth = 2

    def ask(self, features):
        pass


@pytest.mark.parametrize("n_workers", [1, 2, 3])
def test_the_thread_executor_passes(n_workers):
    def make(fit):
        return ThreadExecutor(lambda _, iteration: fit(iteration), [None] * n_workers, NoReader())

    check_executor(make)


def test_an_executor_that_mixes_up_outcomes_is_seen():
    class Mixed(ThreadExecutor):
        last = None

        def submit(self, iteration):
            asked, self.last = self.last or iteration, iteration
            return super().submit(asked)

    def make(fit):
        return Mixed(lambda _, iteration: fit(iteration), [None, None], NoReader())

    refused(AssertionError, "another's", check_executor, make)


def install(site, monkeypatch, name, source, entry_point):
    """Leave a package of one module as pip would, and have new processes find it."""
    site.mkdir()
    (site / f"{name}.py").write_text(source)
    facts = site / f"{name}-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(entry_point)
    paths = [str(site), environment().get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", ":".join(path for path in paths if path))
    return site


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package from outside with the worked example of a sampler."""
    point = "[srs_ooc.samplers]\ndealt = dealt:Dealt\n"
    return install(tmp_path / "site", monkeypatch, "dealt", WORKED[0], point)


@pytest.mark.slow
def test_a_format_from_outside_is_ingested_by_the_command_line(tmp_path, monkeypatch):
    """Its files are known by their ending; one of a package that is broken is refused by name."""
    example = "\n".join(b for b in WORKED if "class JsonTable" in b or "def open_json" in b)
    point = "[srs_ooc.formats]\njson = json_table:open_json\ndat = json_table:gone\n"
    install(tmp_path / "site", monkeypatch, "json_table", example, point)
    path, store = tmp_path / "t.json", tmp_path / "t.zarr"
    features = '{"age": [30, null, 2.5], "sex": ["m", "f", "m"], "y": ["u", "v", "u"]}'
    path.write_text(f'{{"id": [1, 2, 3], "ill": [0, 1, 0], "features": {features}}}')
    assert "rows: 3" in srs_ooc("ingest", path, store, "--dry-run").stdout
    assert "3 rows x 2 features" in srs_ooc("ingest", path, store, "--target", "y").stdout
    assert json_of("inspect", store, "--json")["n_features"] == 2
    other = path.rename(tmp_path / "t.dat")
    message = error_of("ingest", other, tmp_path / "d.zarr")
    assert "files named .dat: expected a part at json_table:gone" in message


@pytest.mark.slow
def test_a_method_from_outside_is_a_part_of_the_program(installed, tmp_path):
    values, labels = noise_table(80, 150, n_relevant=3)
    store = make_store(tmp_path / "t.zarr", values, labels)
    text = srs_ooc("run", "--help-all").stdout
    assert "dealt" in text
    section = text.partition("With --method dealt:")[2]
    assert "Draw every so many features only." in " ".join(section.split())
    asked = ("--method", "dealt", "--with", "stride=2", "--judge", "probe", "--q", 30)
    whole = tmp_path / "whole.run"
    srs_ooc("run", store, "--out", whole, "--iterations", 200, *asked)
    status = json_of("status", whole, "--json")
    assert (status["method"], status["stride"], status["iterations"]) == ("dealt", 2, 200)
    config = tmp_path / "dealt.toml"
    config.write_text('method = "dealt"\nstride = 2\njudge = "probe"\nq = 30\n')
    parts = tmp_path / "parts.run"
    for iterations in (70, 130, 200):
        arguments = ("--config", config, "--iterations", iterations, "--threads", 2)
        srs_ooc("run", store, "--out", parts, *arguments)
    found = [json_of("features", run, "--json") for run in (whole, parts)]
    assert found[0] == found[1]
    assert sum(feature["n_drawn"] > 0 for feature in found[0]) == 75
    for run, message in (
        (whole, "stride 2 (asked for: 3)"),
        (tmp_path / "b.run", "stride: expected with --method dealt"),
    ):
        assert message in error_of("run", store, "--out", run, "--with", "stride=3")
    srs_ooc("run", store, "--out", tmp_path / "tests.run", "--method", "dealt")


def test_a_learner_from_outside_is_what_a_model_names(tmp_path, monkeypatch):
    """Nothing of the package knows it: it is made, ranks, and is known again by its name."""
    source = "\n".join(block for block in WORKED if "MeanDifference" in block)
    point = "[srs_ooc.learners]\nmeans = means:Means\n"
    install(tmp_path / "site", monkeypatch, "means", source, point)
    values, labels = noise_table(80, 150, n_relevant=3)
    store, run = make_store(tmp_path / "t.zarr", values, labels), tmp_path / "t.run"
    asked = ("--model", "means", "--method", "rs", "--q", 30)
    srs_ooc("run", store, "--out", run, "--iterations", 40, *asked)
    srs_ooc("run", store, "--out", run, "--iterations", 60, *asked)
    status = json_of("status", run, "--json")
    assert (status["model"], status["judge"], status["iterations"]) == ("means", "none", 60)
    best = [feature["name"] for feature in json_of("features", run, "--json")[:3]]
    assert sorted(best) == ["f0", "f1", "f2"]
    assert "--model means" in error_of("compact", run)
    wrong = error_of("run", store, "--out", tmp_path / "w.run", *asked, "--with", "model_folds=3")
    assert "model_folds: expected with --model knn" in wrong


@pytest.mark.slow
def test_a_run_whose_method_is_not_installed_says_so(installed, tmp_path, monkeypatch):
    values, labels = noise_table(60, 40)
    store = make_store(tmp_path / "t.zarr", values, labels)
    run = tmp_path / "t.run"
    srs_ooc("run", store, "--out", run, "--method", "dealt", "--judge", "probe", "--iterations", 5)
    without = environment()["PYTHONPATH"].replace(str(installed), "")
    monkeypatch.setenv("PYTHONPATH", without)
    message = error_of("status", run)
    assert "--method: expected one of" in message
    assert "dealt" in message


@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("judge", [Judge(), PositiveJudge()])
def test_less_passes_with_weights_that_differ(replacement, judge):
    weights = (np.arange(400, dtype=np.uint32) % 7) ** 9
    params = replace(defaults(dict(methods())["less"]), replacement=replacement)

    def make(ground):
        return params.make(replace(ground, weights=weights, judge=judge))

    check_sampler(make, candidates=np.flatnonzero(weights).astype(np.uint32))


class ByPlace(SquaredNorm):
    def update(self, first, columns):
        super().update(first, columns)
        self._scores[first] += 1.0 if first else 0.0


class Grows(SquaredNorm):
    def update(self, first, columns):
        columns += 1
        super().update(first, columns)


class Negative(SquaredNorm):
    def scores(self):
        return -super().scores()


class Shares(SquaredNorm):
    def scores(self):
        return super().scores() / self._n_columns


class Floats(SquaredNorm):
    def scores(self):
        return super().scores().astype(np.float32)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (ByPlace, "in other blocks"),
        (Grows, "changed the columns"),
        (Negative, "from 0 on"),
        (Shares, "a column of zeros changed others"),
        (Floats, "dtype float32"),
    ],
)
def test_scores_that_break_a_rule_are_seen(kind, words):
    columns = np.random.default_rng(0).integers(1, 200, (50, 30)).astype(np.float32)
    check_score(lambda n, d: SquaredNorm(n, d, center=True), columns)
    refused(AssertionError, words, check_score, lambda n, d: kind(n, d, center=True), columns)
