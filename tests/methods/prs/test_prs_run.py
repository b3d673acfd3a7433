"""A run of Parametric Random Subspace: resumed, on other threads, with rows held out by name."""

import numpy as np
import pytest
from command import error_of, json_of, srs_ooc
from ledgers import state_of_part, work_on_run
from stores import make_store, noise_table

import srs_ooc as python
from srs_ooc.runs.request import Request

SMALL = {"models": 12, "folds": 3, "epochs": 12, "inclusion": "0.1", "learning_rate": "0.01"}
ARGUMENTS = [word for name, value in SMALL.items() for word in ("--with", f"{name}={value}")]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    values, labels = noise_table(90, 60, n_relevant=2)
    values[40:50, ::7] = np.nan
    return make_store(tmp_path_factory.mktemp("prs") / "t.zarr", values, labels)


def work(store, run, *, threads=1, watch=lambda _: True, **given):
    request = Request(
        options={"method": "prs", **SMALL, **given}, threads=threads, iterations=10**6
    )
    work_on_run(store, run, request, watch)


def bits_of(saved):
    bits = []
    for name, dtype in (("beta", "f8"), ("score", "f8"), ("first", "f8"), ("votes", "f4")):
        array = np.zeros(saved.length(name), dtype)
        saved.fill(name, array)
        bits.append(array.tobytes())
    return bits


def state_of(run):
    return state_of_part(run, "prs", bits_of)


@pytest.fixture(scope="module")
def whole(store):
    run = store.with_name("whole.run")
    work(store, run)
    return state_of(run)


@pytest.mark.slow
def test_stopped_after_every_few_iterations_and_steps_it_ends_with_the_same_bits(
    store, whole, tmp_path
):
    for every in (1, 7, 50):
        run, calls, n_stops = tmp_path / f"{every}.run", 0, 0

        def going(_, every=every):
            nonlocal calls
            calls += 1
            return calls % every != 0

        while not run.exists() or state_of(run)[0] != whole[0]:
            work(store, run, watch=going, threads=1 + n_stops % 2)
            n_stops += 1
            if every == 1 and n_stops > 120:
                work(store, run)
                break
        assert n_stops > 5
        assert state_of(run) == whole


def test_threads_change_nothing(store, whole, tmp_path):
    work(store, tmp_path / "three.run", threads=3)
    assert state_of(tmp_path / "three.run") == whole


@pytest.mark.slow
def test_a_run_ends_by_itself_and_ranks_by_probability(store, tmp_path):
    run = tmp_path / "a.run"
    done = srs_ooc("run", store, "--out", run, "--method", "prs", *ARGUMENTS)
    assert "All features ranked by prs after" in done.stdout
    status = json_of("status", run, "--json")
    assert status["state"] == "finished"
    records = json_of("features", run, "--json")
    scores = [record["score"] for record in records]
    assert len(records) == 60
    assert scores == sorted(scores, reverse=True)
    assert {record["name"] for record in records[:2]} == {"f0", "f1"}
    assert srs_ooc("resume", run).stdout == done.stdout


@pytest.mark.slow
def test_a_ranking_is_shown_as_one_and_not_as_a_search_that_found_nothing(store):
    run = store.with_name("whole.run")
    if not run.exists():
        work(store, run)
    head, columns, first, *_ = srs_ooc("features", run, "--top", 1).stdout.splitlines()
    assert "selects none" in head
    assert columns.split() == ["rank", "name", "score", "importance", "n_drawn"]
    assert float(first.split()[2]) > 0
    assert "this method ranks features" in srs_ooc("status", run).stdout
    assert "ranks features and selects none" in error_of("features", run, "--why", "f1")


@pytest.mark.slow
def test_a_plan_says_nothing_of_what_the_method_has_no_theory_of(store):
    said = srs_ooc("plan", store, "--method", "prs", *ARGUMENTS).stdout
    assert "time:" in said
    for word in ("alpha", "seen only beside", "iterations until drawn", "judge"):
        assert word not in said
    found = json_of("plan", store, "--method", "prs", *ARGUMENTS, "--json")
    assert found["draws"] is None
    assert found["degrees"] == []
    assert [advice["name"] for advice in found["advice"]] == ["iterations"]


@pytest.mark.slow
def test_regressions_are_ranked_too(tmp_path):
    table = tmp_path / "t.csv"
    rng = np.random.default_rng(4)
    x = rng.normal(size=(90, 30))
    lines = [",".join(map(repr, map(float, [*row, 1000 + 3 * row[3] + 3 * row[7]]))) for row in x]
    table.write_text("\n".join([",".join([*(f"x{j}" for j in range(30)), "y"]), *lines]) + "\n")
    srs_ooc("ingest", table, tmp_path / "t.zarr", "--target", "y", "--task", "regression")
    srs_ooc("run", tmp_path / "t.zarr", "--method", "prs", *ARGUMENTS, "--with", "epochs=60")
    records = json_of("features", tmp_path / "t.run", "--json")
    assert {record["name"] for record in records[:2]} == {"x3", "x7"}


@pytest.fixture(scope="module")
def named_rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("named")
    values, labels = noise_table(60, 20, n_relevant=2)
    rows = zip(values.T, labels, strict=True)
    lines = [
        ",".join([f"r{i}", *map(repr, map(float, x)), str(y)]) for i, (x, y) in enumerate(rows)
    ]
    header = ",".join(["id", *(f"f{j}" for j in range(20)), "y"])
    (folder / "t.csv").write_text("\n".join([header, *lines]) + "\n")
    srs_ooc("ingest", folder / "t.csv", folder / "t.zarr", "--target", "y", "--row-ids", "id")
    return folder


@pytest.mark.slow
def test_rows_held_out_by_name_are_part_of_the_identity(named_rows, tmp_path):
    rows, other, fewer = (tmp_path / f"{name}.txt" for name in ("rows", "other", "fewer"))
    rows.write_text("\n".join(f"r{i}" for i in range(20)) + "\n")
    other.write_text("r1\nr2\n")
    fewer.write_text("\n".join(f"r{i}" for i in range(5, 60)) + "\n")
    run, method = tmp_path / "a.run", ("--method", "prs", *ARGUMENTS)
    arguments = ("run", named_rows / "t.zarr", "--out", run, *method)
    held_out = "--with", f"validation_rows={rows}"
    for wrong, says in (
        (("--rows", fewer, *held_out), "--rows"),
        (("--with", "validation_share=0.1", *held_out), "both"),
    ):
        assert says in error_of(*arguments, *wrong)
        assert not run.exists()
    first = srs_ooc(*arguments, *held_out).stdout
    assert "validation" in error_of(*arguments, "--with", f"validation_rows={other}")
    assert srs_ooc(*arguments, *held_out).stdout == first
    assert srs_ooc("resume", run).stdout == first


@pytest.mark.slow
def test_from_python_rows_held_out_are_named_by_file_or_by_list(named_rows, tmp_path):
    ids = [f"r{i}" for i in range(20)]
    (tmp_path / "rows").write_text("\n".join(ids) + "\n")
    records = [
        python.run(
            named_rows / "t.zarr",
            out=tmp_path / f"{name}.run",
            method="prs",
            validation_rows=given,
            **SMALL,
        ).features("records")
        for name, given in (("list", ids), ("file", tmp_path / "rows"), ("none", None))
    ]
    assert [row["name"] for row in records[0]] == [row["name"] for row in records[1]]
    assert [row["score"] for row in records[0]] == [row["score"] for row in records[1]]
    assert [row["score"] for row in records[0]] != [row["score"] for row in records[2]]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("--method", "srs", "--with", "epochs=5"), "epochs"),
        (("--method", "prs", "--alpha", "0.5"), "alpha"),
        (("--method", "prs", "--judge", "tests"), "--judge"),
        (("--method", "srs", "--judge", "none"), "--judge"),
        (("--method", "prs", "--with", "folds=60"), "folds"),
        (("--method", "prs", "--with", "inclusion=0.9", "--q", 20), "inclusion"),
        (("--method", "prs", "--with", "inclusion=0"), "inclusion"),
        (("--method", "prs", "--with", "validation_share=0.9"), "validation_share"),
        (("--method", "prs", "--with", "learning_rate=fast"), "learning_rate"),
    ],
)
def test_what_does_not_fit_the_method_is_refused_by_name(store, tmp_path, given, says):
    message = error_of("run", store, "--out", tmp_path / "x.run", *given)
    assert says in message
    assert not (tmp_path / "x.run").exists()


@pytest.mark.slow
def test_a_plan_says_what_happens_with_many_features():
    few, many = (
        json_of("plan", "--n-rows", 300, "--n-features", p, "--method", "prs", "--json")
        for p in (300, 20_000)
    )
    assert "notes" not in few
    assert "20,000 features" in many["notes"][0]
    assert many["iterations"] == 3000 * 1000 + 100


@pytest.mark.slow
def test_a_store_with_groups_of_rows_is_refused(tmp_path):
    values, labels = noise_table(40, 6, n_relevant=1)
    table = tmp_path / "t.csv"
    rows = zip(values.T.tolist(), np.arange(40) // 2, labels.tolist(), strict=True)
    lines = [f"{','.join(map(str, row))},{person},{label}" for row, person, label in rows]
    header = ",".join([*(f"f{i}" for i in range(6)), "person", "y"])
    table.write_text("\n".join([header, *lines]) + "\n")
    srs_ooc("ingest", table, tmp_path / "t.zarr", "--groups", "person")
    message = error_of("run", tmp_path / "t.zarr", "--method", "prs", *ARGUMENTS)
    assert "expected a store without groups of rows" in message
    assert not (tmp_path / "t.run").exists()


@pytest.mark.slow
def test_pixels_are_the_features_in_the_order_of_the_table(tmp_path):
    values, labels = noise_table(60, 12, n_relevant=2)
    store = make_store(tmp_path / "t.zarr", values, labels)
    found = {}
    for strength in ("0", "1.0"):
        run = tmp_path / f"{strength}.run"
        work(store, run, grid="3x4", smoothness=strength)
        records = json_of("features", run, "--json")
        beta = np.zeros(12)
        for record in records:
            beta[int(record["name"][1:])] = record["score"]
        pixels = beta.reshape(3, 4)
        found[strength] = sum(np.abs(np.diff(pixels, axis=axis)).sum() for axis in (0, 1))
    assert found["0"] > 2 * found["1.0"]


def test_a_grid_of_another_size_is_refused(store, tmp_path):
    given = "--method", "prs", "--with", "grid=8x8", "--with", "smoothness=0.1"
    message = error_of("run", store, "--out", tmp_path / "x.run", *given)
    assert "8 x 8 = 64 and 60 features" in message
    assert not (tmp_path / "x.run").exists()
