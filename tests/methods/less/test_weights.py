"""LESS as a run: weights computed once and kept, laws of every run, what is refused."""

import numpy as np
import pytest
from command import error_of, json_of, peak_kb, srs_ooc
from stores import make_store, noise_table

from srs_ooc.base.budget import growth_counted
from srs_ooc.evidence.tally import Tally
from srs_ooc.methods.less.less import ScoreParams
from srs_ooc.runs.inputs import WEIGHTS
from srs_ooc.runs.request import Request
from srs_ooc.runs.run import Run
from srs_ooc.runs.screening import is_done
from srs_ooc.runs.session import open_or_create, work_on
from srs_ooc.runs.weights import STAGE, Weights
from srs_ooc.store.store import Store

N_FEATURES = 400
STRONG = range(20, 30)


@pytest.fixture(autouse=True, scope="module")
def _growth_only():
    with growth_counted():  # what tests before these loaded is none of their caps
        yield


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Features 20 to 29 share a direction; 40 is constant; 50 lacks a value."""
    values, labels = noise_table(60, N_FEATURES)
    values[list(STRONG)] += 3 * np.random.default_rng(1).standard_normal(60)
    values[40] = 7.0
    values[50, 3] = np.nan
    return make_store(tmp_path_factory.mktemp("less") / "t.zarr", values, labels)


def options(**more):
    return {"method": "less", "rank": 2, "subspace_size": 30, **more}


def work(store, run, request, stops=()):
    """Work on a run, stopping wherever ``stops`` says, until it is done; return what it holds."""
    for stop in [*stops, lambda _: False]:
        opened = Store.open(store)
        ledger = open_or_create(opened, run, request)
        work_on(ledger, opened, request, lambda step, stop=stop: not stop(step))
        done = is_done(ledger, request.iterations)
        ledger.close()
    assert done
    return held(run)


def held(run):
    ledger = Run(run, writable=False)
    tally, weights = Tally(N_FEATURES), Weights()
    ledger.load({"tally": tally, WEIGHTS: weights})
    verdict = ledger.read_arrays("verdict") or {}
    ledger.close()
    return {
        "weights": weights.weights,
        "n_drawn": tally.n_drawn,
        "importance": tally.importance,
        **verdict,
    }


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert one[name].tobytes() == other[name].tobytes(), name  # NaN is equal, too


@pytest.mark.slow
@pytest.mark.parametrize("judge", ["tests", "probe"])
def test_resumed_equals_uninterrupted_whatever_the_threads(store, tmp_path, judge):
    request = Request(options=options(judge=judge), iterations=300, threads=1)
    whole = work(store, tmp_path / "whole.run", request)
    assert whole["n_drawn"].sum() == 300 * 30
    more = Request(options=options(judge=judge), iterations=300, threads=3)
    stops = [
        lambda step: step.stage == STAGE,
        lambda step: step.stage == STAGE and step.done == step.total,
        lambda step: step.stage != STAGE and step.done >= 70,
        lambda step: step.done >= 200,
        lambda step: step.stage.endswith("closing") and step.done >= 500,
    ]
    assert_same(work(store, tmp_path / "parts.run", more, stops), whole)


@pytest.mark.slow
def test_weights_are_kept_and_never_computed_again(store, tmp_path, monkeypatch):
    run = tmp_path / "a.run"
    before = work(store, run, Request(options=options(), iterations=50))
    monkeypatch.setattr("srs_ooc.runs.weights.Scoring.scores", None)
    after = work(store, run, Request(options=options(), iterations=80))
    np.testing.assert_array_equal(before["weights"], after["weights"])


@pytest.mark.slow
def test_features_are_drawn_by_their_weights(store, tmp_path):
    found = work(
        store, tmp_path / "a.run", Request(options=options(replacement=True), iterations=4000)
    )
    weights = found["weights"].astype(float)
    chance = 1 - (1 - weights / weights.sum()) ** 30
    spread = np.sqrt(4000 * chance * (1 - chance))
    assert (np.abs(found["n_drawn"] - 4000 * chance) <= 5 * spread + 1).all()
    assert (weights == 0).sum() == 1  # the constant feature


@pytest.mark.slow
def test_what_is_excluded_is_neither_scored_nor_drawn_and_rows_matter(store, tmp_path):
    excluded, rows = tmp_path / "excluded.txt", tmp_path / "rows.txt"
    excluded.write_text("".join(f"f{i}\n" for i in STRONG))
    rows.write_text("".join(f"{i}\n" for i in range(1, 61, 2)))
    run = tmp_path / "a.run"
    asked = ("--method", "less", "--with", "rank=40", "--judge", "probe", "--iterations", 300)
    srs_ooc("run", store, "--out", run, *asked, "--exclude", excluded)
    drawn = {r["name"]: r["n_drawn"] for r in json_of("features", run, "--json")}
    assert {name for name, n in drawn.items() if n == 0} == {"f40", *(f"f{i}" for i in STRONG)}
    scores = {}
    for name, more in (("all", ()), ("some", ("--rows", rows)), ("left", ("--exclude", excluded))):
        table = json_of("scores", store, "--with", "rank=2", "--json", *more)
        scores[name] = {record["name"]: record["score"] for record in table}
    assert scores["all"] != scores["some"]
    assert {name for name, score in scores["left"].items() if score == 0} == {
        "f40", *(f"f{i}" for i in STRONG),
    }  # fmt: skip
    assert sum(scores["all"].values()) == pytest.approx(1)


@pytest.mark.slow
def test_a_table_of_scores_can_be_written_ranked_and_given_back(store, tmp_path):
    table = srs_ooc("scores", store, "--with", "rank=2", "--csv").stdout
    best = json_of("scores", store, "--with", "rank=2", "--json", "--top", 10)
    assert {record["name"] for record in best} == {f"f{i}" for i in STRONG}
    assert [record["rank"] for record in best] == list(range(1, 11))
    shown = srs_ooc("scores", store, "--with", "scores=norm", "--top", 3).stdout.splitlines()
    assert "norm of the values" in shown[0]
    assert len(shown) == 5
    file, run, same = tmp_path / "s.csv", tmp_path / "file.run", tmp_path / "own.run"
    file.write_text(table)
    asked = ("--method", "less", "--judge", "probe", "--iterations", 100)
    srs_ooc("run", store, "--out", run, *asked, "--with", f"scores={file}")
    srs_ooc("run", store, "--out", same, *asked, "--with", "rank=2")
    for key in ("name", "importance", "n_drawn"):
        assert [r[key] for r in json_of("features", run, "--json")] == [
            r[key] for r in json_of("features", same, "--json")
        ]
    srs_ooc(
        "run", store, "--out", run, *asked, "--with", f"scores={file}"
    )  # the same contents: the same run
    file.write_text("name,score\nf1,1\nf2,2\n")
    assert "scores" in error_of("run", store, "--out", run, *asked, "--with", f"scores={file}")
    file.unlink()
    srs_ooc("resume", run, "--iterations", 120)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name,score\nf1,1\nnone,2\n", "found 1 that are not"),
        ("name,score\nf1,1\nf1,2\n", "each feature once"),
        ("name,score\nf1,-1\n", "line 2: expected a score from 0 on"),
        ("name,score\nf1,many\n", "line 2: expected a score from 0 on"),
        ("name,score\nf1\n", "line 2: expected 2 cells"),
        ("f1\nf2\n", "columns name and score"),
        ("", "columns name and score"),
        ("name,score\nf1,0\n", "a score above 0"),
        (f'name,score\n"{"x" * 200_000}",1\n', "field larger than field limit"),
    ],
)
def test_a_file_of_scores_that_is_none_is_refused(store, tmp_path, text, words):
    file, run = tmp_path / "s.csv", tmp_path / "a.run"
    file.write_text(text)
    asked = ("--method", "less", "--judge", "probe", "--with", f"scores={file}", "--out", run)
    assert words in error_of("run", store, *asked)
    assert not run.exists()


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (("--method", "less", "--alpha", "0.5"), "alpha: expected with --method srs only"),
        (("--method", "srs", "--with", "rank=3"), "rank: expected with --method less only"),
        (("--method", "less", "--with", "rank=0"), "rank: expected a whole number from 1"),
        (("--method", "less", "--subspace-size", 400), "--subspace-size: expected at most 399"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(store, tmp_path, asked, words):
    judge = ("--judge", "probe", "--iterations", 10)
    assert words in error_of("run", store, "--out", tmp_path / "a.run", *judge, *asked)


def test_scores_take_no_option_that_they_would_ignore(store, tmp_path):
    (tmp_path / "rows.txt").write_text("1\n")
    said = error_of("scores", store, "--with", f"validation_rows={tmp_path / 'rows.txt'}")
    assert "No such option" in said


@pytest.mark.slow
def test_a_verdict_holds_whatever_file_the_scores_are_from(store, tmp_path):
    file = tmp_path / "s.csv"
    file.write_text("name,score\nf1,1\nf2,2\n")
    asked = (
        "run",
        store,
        "--method",
        "less",
        "--with",
        f"scores={file}",
        "--iterations",
        10,
        "--q",
        2,
    )
    assert "features selected" in srs_ooc(*asked, "--out", tmp_path / "a.run").stdout


@pytest.mark.slow
def test_values_are_asked_for_only_where_they_are_kept(store, tmp_path):
    lines = srs_ooc("scores", store, "--csv").stdout.splitlines()[1:]
    names = [line.split(",")[1] for line in lines]
    table = tmp_path / "t.csv"
    rng = np.random.default_rng(0)
    rows = [[*map(str, rng.integers(0, 9, 8)), str(i % 2)] for i in range(30)]
    table.write_text("\n".join(",".join(row) for row in [[*names[:8], "target"], *rows]) + "\n")
    bare = tmp_path / "bare.zarr"
    srs_ooc("ingest", table, bare, "--no-values")
    assert "matrix=codes" in error_of("run", bare, "--method", "less", "--with", "scores=norm")
    srs_ooc("run", bare, "--method", "less", "--with", "scores=norm", "--with", "matrix=codes",
            "--iterations", 10, "--judge", "probe", "--q", 3)  # fmt: skip


@pytest.mark.slow
def test_the_default_subspace_is_twice_the_square_root_and_a_plan_can_be_made(store):
    plan = json_of("plan", store, "--method", "less", "--json")
    assert plan["subspace_size"] == 2 * 20
    assert any("method" in lease["purpose"] for lease in plan["leases"])
    assert "mean weight" in plan["advice"][0]["reason"]
    assert "if all were drawn alike" in srs_ooc("plan", store, "--method", "less").stdout


def cap_named(*arguments):
    return int(error_of(*arguments, "--memory-mb", 9).rsplit("--memory-mb ", 1)[1].rstrip("."))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(40, 60_000), (1500, 3000), (40_000, 60)])
def test_the_smallest_cap_named_is_held_also_where_the_store_is_larger(tmp_path, shape):
    n_rows, n_features = shape
    values = np.random.default_rng(0).standard_normal((n_features, n_rows), dtype=np.float32)
    store = make_store(tmp_path / "t.zarr", values, (values[0] > 0).astype(int))
    del values
    asked = (
        "--method",
        "less",
        "--with",
        "rank=10",
        "--iterations",
        6,
        "--max-depth",
        4,
        "--q",
        20,
    )
    quick = () if n_features > n_rows else ("--judge", "probe")
    for number, more in enumerate((quick, ("--with", "scores=norm", *quick))):
        run = ("run", store, "--out", tmp_path / f"{number}.run", *asked, *more)
        cap = cap_named(*run)
        assert peak_kb(*run, "--memory-mb", cap) * 1024 / 1e6 < cap
    table = ("scores", store, "--with", "rank=10", "--top", 3)
    cap = cap_named(*table)
    assert peak_kb(*table, "--memory-mb", cap) * 1024 / 1e6 < cap


@pytest.mark.parametrize(
    ("rank", "n_rows", "n_features", "said"),
    [
        (50, 100, 40, "all 40 directions"),
        (99, 100, 400, "all 99 directions"),
        (39, 100, 40, None),
        (98, 100, 400, None),
    ],
)
def test_a_rank_at_which_scores_hardly_differ_is_said(rank, n_rows, n_features, said):
    notes = ScoreParams.settle({"rank": rank}, None).notes(n_rows, n_features)
    assert [said in note for note in notes] == ([] if said is None else [True])
    assert all("equal" in note for note in notes) == (n_features < n_rows or not notes)
    if said is not None:
        smaller = int(notes[0].rsplit("such as ", 1)[1].rstrip("."))
        less = ScoreParams.settle({"rank": smaller}, None)
        assert less.notes(n_rows, n_features) == ()


@pytest.mark.slow
def test_a_full_rank_is_said_by_runs_plans_and_scores(store, tmp_path):
    asked = ("--method", "less", "--judge", "positive", "--with", "rank=59")
    said = srs_ooc("run", store, "--out", tmp_path / "a.run", "--iterations", 2, *asked).stderr
    plan = json_of("plan", store, *asked, "--json")
    assert plan["notes"][0] in said
    assert "rank=59: leverage scores sum over all 59 directions" in said
    assert "all 59 directions" in srs_ooc("scores", store, "--with", "rank=59", "--top", 1).stderr
    assert "directions" not in srs_ooc("scores", store, "--with", "rank=5", "--top", 1).stderr
