"""Stability over rows: what halves select, however the work on them is cut short."""

import itertools
import shutil
import signal
import subprocess
import time
from contextlib import closing, nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from closing import FEW, closing_trees
from command import command_line, error_of, json_of, srs_ooc
from hypothesis import given
from hypothesis import strategies as st
from stores import make_store, noise_table

import srs_ooc as package
from srs_ooc.base.budget import NAMED_NBYTES, total_nbytes
from srs_ooc.base.errors import BudgetError, RunError, UsageError
from srs_ooc.base.text import MB, ceil_div
from srs_ooc.runs import halves, ledger, plan, verification
from srs_ooc.runs.halves import FIRST, halves_of
from srs_ooc.runs.inputs import Inputs
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.request import MOST_HALVES, Request
from srs_ooc.runs.run import HALVES, Run
from srs_ooc.runs.run_memory import TrainingShape, half_leases
from srs_ooc.runs.session import open_or_create, work_on
from srs_ooc.runs.settling import settle
from srs_ooc.runs.verification import verify
from srs_ooc.store.store import Store

N_ROWS, N_FEATURES, N_HALVES = 120, 60, 6


@pytest.fixture(autouse=True, scope="module")
def _few_trees():
    with pytest.MonkeyPatch.context() as patch:
        closing_trees(patch, FEW)
        yield


def asked(n_halves=N_HALVES, **how):
    how = {"iterations": 60, "memory_mb": 4000, "threads": 1} | how
    return Request(options={"subspace_size": "20", "seed": 3}, halves=n_halves, **how)


def work(store, run, request, watch=lambda _: True):
    with closing(open_or_create(store, run, request)) as ledger:
        work_on(ledger, store, request, watch)
    return run


def found_of(run):
    """What a run says of its halves, as numbers; None where it says nothing."""
    with closing(Run(run, writable=False)) as ledger:
        found = halves_of(ledger)
    if found is None:
        return None
    return found.n_selected, found.agreement, found.features.tolist(), found.counts.tolist()


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    table = noise_table(N_ROWS, N_FEATURES, n_relevant=3)
    return Store.open(make_store(tmp_path_factory.mktemp("halves") / "t.zarr", *table))


@pytest.fixture(scope="module")
def whole(store):
    return work(store, store.path.with_name("whole.run"), asked())


@pytest.mark.slow
def test_halves_select_what_runs_on_these_rows_select(store, whole, tmp_path):
    with closing(Run(whole, writable=False)) as ledger:
        plan, found = Plan.of_run(ledger, store), halves_of(ledger)
    ids, results = list(store.row_ids), []
    for number in range(N_HALVES):
        half = plan.half(number)
        results.append(
            package.run(
                store,
                out=tmp_path / f"{number}.run",
                rows=[ids[row] for row in half.inputs.rows.tolist()],
                seed=half.spec.run.seed,
                q=20,
                iterations=60,
            )
        )
    assert len({result.status.parts["run"]["seed"] for result in results}) == N_HALVES
    assert found.n_selected == [len(result.selected) for result in results]
    assert sum(found.n_selected) > 0
    names = [store.names[int(place)] for place in store.array("positions")]
    for stored, name in enumerate(names):
        n_selecting = sum(name in result.selected for result in results)
        assert found.share(stored) == n_selecting / N_HALVES
    heads = [{r["name"] for r in result.features("records", top=FIRST)} for result in results]
    shares = [len(a & b) / FIRST for a, b in zip(heads[::2], heads[1::2], strict=True)]
    assert found.agreement == pytest.approx(np.mean(shares))
    assert found.by_chance == FIRST / N_FEATURES


def test_no_answer_of_the_run_depends_on_its_halves(store, whole, tmp_path):
    plain = work(store, tmp_path / "a.run", asked(None))
    with_halves, without = (package.open_run(run, store) for run in (whole, plain))
    assert without.halves is None
    assert without.status.halves is None
    records = with_halves.features("records")
    assert max(record.pop("halves") for record in records) > 0
    others = without.features("records")
    assert {record.pop("halves") for record in others} == {None}
    assert records == others


def test_halves_asked_for_later_or_one_after_another_are_the_same(store, whole, tmp_path):
    run, stages = work(store, tmp_path / "a.run", asked(None)), []

    def watch(step):
        stages.append(step.stage)
        return True

    work(store, run, asked(2, iterations=None), watch)
    check = "halves of the rows"
    assert {stage.partition(",")[0] for stage in stages} == {check, "half 1 of 2", "half 2 of 2"}
    assert len(found_of(run)[0]) == 2
    stages.clear()
    work(store, run, asked(iterations=None), watch)
    found = {stage.partition(",")[0] for stage in stages}
    assert found == {check, *(f"half {i} of 6" for i in (3, 4, 5, 6))}
    assert found_of(run) == found_of(whole)
    assert not (run / "halves").exists()
    work(store, run, asked(0, iterations=None))
    assert found_of(run) is None


@pytest.mark.slow
def test_halves_do_not_depend_on_stops_or_threads(store, whole, tmp_path):
    run = tmp_path / "a.run"
    for stop in itertools.count(1):
        countdown = itertools.count(-(4**stop))
        request = asked(N_HALVES if stop == 1 else None, threads=1 + stop % 3)
        work(store, run, request, lambda _, c=countdown: next(c) != 0)
        verify(run)
        if found_of(run) is not None and len(found_of(run)[0]) == N_HALVES:
            break
    assert stop > 3
    assert found_of(run) == found_of(whole)


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["write_arrays", "remove_part"])
def test_a_kill_as_a_half_is_kept_or_removed_costs_nothing(
    store, whole, tmp_path, monkeypatch, killed
):
    run, place = work(store, tmp_path / "a.run", asked(None)), halves
    if killed == "write_arrays":
        place = Run
    do = getattr(place, killed)

    def dies(*given):
        if killed == "remove_part" or given[1].startswith("half-"):
            raise KeyboardInterrupt
        return do(*given)

    monkeypatch.setattr(place, killed, dies)
    with pytest.raises(KeyboardInterrupt):
        work(store, run, asked(iterations=None))
    monkeypatch.undo()
    assert (run / "halves" / "0").exists()
    work(store, run, asked(None, iterations=None))
    assert found_of(run) == found_of(whole)
    assert not (run / "halves").exists()


@pytest.mark.slow
@pytest.mark.parametrize("n_put", [0, 3])
def test_a_kill_as_the_ledger_of_a_half_is_made_costs_nothing(
    store, whole, tmp_path, monkeypatch, n_put
):
    run, left = work(store, tmp_path / "a.run", asked(None)), tmp_path / "left"
    scratch, put, counted = run / "halves" / "0.partial", ledger._put, itertools.count()

    def dies(database, *given):
        if scratch.exists() and next(counted) == n_put:
            shutil.copytree(scratch, left)  # as a kill leaves it: an error would clear it away
            raise KeyboardInterrupt
        put(database, *given)

    monkeypatch.setattr(ledger, "_put", dies)
    with pytest.raises(KeyboardInterrupt):
        work(store, run, asked(iterations=None))
    monkeypatch.undo()
    left.rename(scratch)
    verify(run)
    work(store, run, asked(None, iterations=None))
    assert found_of(run) == found_of(whole)
    assert not (run / "halves").exists()


@pytest.mark.parametrize("is_removed", [True, False])
def test_a_half_that_is_done_with_while_it_is_verified_is_no_damage(
    store, tmp_path, monkeypatch, is_removed
):
    run, pages = work(store, tmp_path / "a.run", asked(None)), verification._pages

    def stops(*given):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(halves, "remove_part", stops)
        with pytest.raises(KeyboardInterrupt):
            work(store, run, asked(iterations=None))

    def fails(ledger, database):
        if ledger.run == run:
            return pages(ledger, database)
        if is_removed:
            shutil.rmtree(ledger.run)
        raise RunError("a disk I/O error")

    monkeypatch.setattr(verification, "_pages", fails)
    with nullcontext() if is_removed else pytest.raises(RunError, match="disk I/O"):
        verify(run)


@pytest.mark.few(0, 1)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_process_stopped_or_killed_amid_halves_is_gone_on_with(store, tmp_path, number):
    asked = ("--iterations", 60, "--q", 20, "--seed", 3)
    once, run = tmp_path / "once.run", tmp_path / "a.run"
    srs_ooc("run", store.path, "--out", once, *asked, "--halves", 8)
    process = subprocess.Popen(
        command_line("run", store.path, "--out", run, *asked, "--halves", 8),
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (run / "halves" / "1").exists():
        assert process.poll() is None
        time.sleep(0.01)
    status = json_of("status", run, "--json")
    assert (status["state"], status["halves"]["asked"]) == ("running", 8)
    process.send_signal(number)
    said = process.communicate()[1]
    n_done = len(found_of(run)[0])
    assert 0 < n_done < 8
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert f"stopped after {n_done} of 8 halves; nothing is lost." in said
    status = srs_ooc("status", run).stdout
    assert "state       stopped" in status
    assert f"next        srs-ooc resume {run}" in status
    assert f"halves      {n_done} of 8 done" in status
    verify(run)
    srs_ooc("resume", run)
    assert found_of(run) == found_of(once)
    assert not (run / "halves").exists()


def test_of_more_iterations_halves_are_done_anew(store, tmp_path):
    run = work(store, tmp_path / "a.run", asked(2))
    work(store, run, asked(None, iterations=90), lambda step: not step.stage.startswith("half"))
    assert found_of(run) is None
    work(store, run, asked(None, iterations=None))
    once = work(store, tmp_path / "b.run", asked(2, iterations=90))
    assert found_of(run) == found_of(once)


@pytest.fixture(scope="module")
def spec(whole):
    with closing(Run(whole, writable=False)) as ledger:
        return ledger.spec


def planned(spec, store, **inputs):
    return Plan(Request(), spec, None, store, Inputs(**inputs))


def rows_of(spec, number, classes, strata=None, groups=None):
    """The rows of a half of a table that has nothing but these columns."""
    columns = {"target": classes, "strata": strata, "groups": groups}
    columns |= {"weights": None, "events": None}
    columns = {name: None if c is None else c.astype(np.int32) for name, c in columns.items()}
    store = SimpleNamespace(
        n_features=5,
        n_rows=len(classes),
        manifest=SimpleNamespace(classes=("a", "b"), row_columns={}),
        unchanged=nullcontext,
        **{name: lambda column=column: column for name, column in columns.items()},
    )
    return planned(spec, store).half_inputs(number).rows.tolist()


@given(st.integers(0, 99), st.integers(2, 5), st.integers(0, 2**32))
def test_a_pair_of_halves_shares_no_row_and_is_even(spec, number, n_strata, seed):
    rng = np.random.default_rng(seed)
    classes, strata = np.arange(60) % 2, rng.integers(0, n_strata, 60)
    first, second = (rows_of(spec, 2 * number + i, classes, strata) for i in range(2))
    assert sorted([*first, *second]) == list(range(60))
    kinds = 2 * strata + classes
    n_first, n_second = (np.bincount(kinds[rows], minlength=10) for rows in (first, second))
    assert np.abs(n_first - n_second).max() <= 1


@given(st.integers(0, 99), st.integers(0, 2**32))
def test_groups_stay_whole(spec, number, seed):
    groups = np.random.default_rng(seed).integers(0, 20, 200)
    first, second = (rows_of(spec, 2 * number + i, groups % 2, None, groups) for i in range(2))
    assert not set(groups[first]) & set(groups[second])
    assert sorted([*first, *second]) == list(range(200))


def test_a_pair_is_another_deal_than_the_next(store, spec):
    rows = [planned(spec, store).half_inputs(number).rows.tolist() for number in range(4)]
    assert rows[0] not in rows[2:]


def test_rows_left_out_and_excluded_features_stay_out(store, spec):
    given = {"excluded": np.array([4], np.uint32), "rows": np.arange(20, 100, dtype=np.int32)}
    pair = [planned(spec, store, **given).half_inputs(number) for number in (0, 1)]
    assert sorted([*pair[0].rows, *pair[1].rows]) == list(range(20, 100))
    assert pair[0].excluded.tolist() == [4]


@pytest.mark.slow
def test_halves_are_refused_before_anything_is_done(store, tmp_path):
    values, labels = noise_table(60, 30)
    labels[:] = 0
    labels[:30], labels[57:] = 1, 2
    few = make_store(tmp_path / "few.zarr", values, labels)
    message = error_of("run", few, "--halves", 4, "--iterations", 20)
    assert "expected at least 2 rows of each class in each half" in message
    assert "found 1 of class '2'" in message
    assert not (tmp_path / "few.run").exists()
    assert "even number" in error_of("run", few, "--halves", 3)
    assert "--judge none" in error_of("run", few, "--method", "prs", "--halves", 2)
    file = tmp_path / "scores.csv"
    file.write_text("name,score\n" + "".join(f"f{i},{i + 1}\n" for i in range(30)))
    scores = ("--method", "less", "--with", f"scores={file}", "--judge", "probe", "--q", 8)
    assert "found one with scores=FILE" in error_of("run", few, *scores, "--halves", 2)
    srs_ooc("run", few, "--iterations", 20, "--q", 10)
    assert "found 1 of class '2'" in error_of("resume", tmp_path / "few.run", "--halves", 2)
    assert not Run(tmp_path / "few.run", writable=False).has_meta(HALVES)


def test_more_halves_than_tell_anything_are_refused(store, whole):
    asked(MOST_HALVES)
    expected = f"expected an even number up to 1000.*found {MOST_HALVES + 2}. Give 20"
    with pytest.raises(UsageError, match=expected):
        asked(MOST_HALVES + 2)
    for command in (("run", store.path), ("resume", whole)):
        assert "up to 1000" in error_of(*command, "--halves", 10**9)


def test_a_stop_is_heeded_while_halves_are_checked(store, tmp_path, monkeypatch):
    run, steps, dealt = work(store, tmp_path / "a.run", asked(None)), [], []
    of_number = Plan.half

    def deal(plan, number):
        dealt.append(number)
        return of_number(plan, number)

    monkeypatch.setattr(Plan, "half", deal)

    def watch(step):
        steps.append(step)
        return len(steps) < 3

    work(store, run, asked(MOST_HALVES, iterations=None), watch)
    assert dealt == [0, 1]
    assert [(step.done, step.total, step.unit) for step in steps] == [
        (i, MOST_HALVES, "halves") for i in range(3)
    ]


def test_groups_that_are_a_class_each_cannot_be_halved(tmp_path):
    values, labels = noise_table(40, 10)
    package.ingest(
        values.T, tmp_path / "t.zarr", target=labels, groups=np.repeat(labels, 1), min_class_rows=1
    )
    with pytest.raises(UsageError, match="groups stay whole"):
        package.run(tmp_path / "t.zarr", q=5, iterations=5, halves=2, judge="probe")


def test_a_cap_that_does_not_hold_dealing_is_refused_with_the_smallest(
    store, tmp_path, monkeypatch
):
    monkeypatch.setattr(plan, "DEALING_NBYTES", 10 * MB)
    with pytest.raises(BudgetError, match="smallest cap"):
        work(store, tmp_path / "a.run", asked(2, memory_mb=600))
    assert not (tmp_path / "a.run").exists()


@pytest.mark.slow
@pytest.mark.parametrize("n_rows", [9_000, 300_000])  # where the run needs more, and dealing
def test_one_cap_is_named_for_the_run_and_its_halves(tmp_path, n_rows):
    values = np.random.default_rng(0).integers(0, 200, (600 if n_rows < 10_000 else 3, n_rows))
    store = make_store(tmp_path / "t.zarr", values.astype(np.uint8), np.arange(n_rows) % 2)
    how = ("--q", 2, "--iterations", 1, "--max-depth", 1, "--judge", "probe")
    new = named(error_of("run", store, *how, "--halves", 4, "--memory-mb", 1))
    srs_ooc("run", store, *how)
    run = tmp_path / "t.run"
    resumed = named(error_of("resume", run, "--halves", 4, "--memory-mb", 1))
    differs = NAMED_NBYTES // MB  # what a process holds as it begins, from one start to the next
    assert abs(resumed - new) <= differs
    less = new - 20
    assert abs(named(error_of("resume", run, "--halves", 4, "--memory-mb", less)) - new) <= differs
    srs_ooc("resume", run, "--halves", 2, "--memory-mb", new)


def named(message):
    """The cap that a refusal names."""
    return int(message.rsplit("--memory-mb ", 1)[1].rstrip("."))


@given(
    st.integers(8, 10**6),
    st.integers(2, 10**6),
    st.sampled_from(["uint8", "uint16"]),
    st.sampled_from([1, 2, 10]),
    st.booleans(),
)
def test_a_half_needs_no_more_than_a_named_cap_holds(
    n_rows, n_features, dtype, n_classes, by_tests
):
    sizes = n_rows, n_features, n_features, n_classes, np.dtype(dtype).itemsize
    shape = TrainingShape(*sizes, n_stored_rows=n_rows)
    options = {"subspace_size": "1", "judge": "tests" if by_tests else "probe"}
    asked = Request(options=options, memory_mb=10**6)
    whole, half = (
        total_nbytes(Plan(asked, settle(asked, shape, {}), one).leases())
        for one in (shape, replace(shape, n_rows=ceil_div(n_rows, 2)))
    )
    assert half <= whole + NAMED_NBYTES


def test_a_cap_for_halves_does_not_grow_with_the_q_it_allows():
    shape = TrainingShape(100_000, 500, 500, 2, 1)
    needs = {
        total_nbytes(half_leases(settle(Request(options={"subspace_size": q}), shape, {}), shape))
        for q in ("1", "100", "500")
    }
    assert len(needs) == 1


@pytest.mark.slow
def test_halves_are_shown_where_a_run_is(tmp_path):
    store, run = make_store(tmp_path / "t.zarr", *noise_table(200, 40)), tmp_path / "t.run"
    text = srs_ooc("run", store, "--iterations", 50, "--halves", 4, "--judge", "probe",
                   "--probe-min-draws", 5, "--q", 10).stdout  # fmt: skip
    status = json_of("status", run, "--json")["halves"]
    assert (status["asked"], status["done"], len(status["n_selected"])) == (4, 4, 4)
    least, most = min(status["n_selected"]), max(status["n_selected"])
    assert f"\n4 halves of the rows select {least} to {most} features (median " in text
    assert f"their first 20 agree by {status['agreement']:.2f} (" in text
    assert "halves      4 of 4 done" in srs_ooc("status", run).stdout
    records = json_of("features", run, "--json")
    assert sum(record["halves"] for record in records) * 4 == sum(status["n_selected"])
    assert " halves" in srs_ooc("features", run).stdout.splitlines()[1]
    assert package.open_run(run).halves.n_halves == 4
    srs_ooc("resume", run, "--halves", 0)
    assert " halves" not in srs_ooc("features", run).stdout
    assert "halves" not in json_of("status", run, "--json")


def test_the_head_of_a_ranking_says_halves_without_the_store(store, whole, tmp_path):
    from srs_ooc.results.ranking import kept_records

    with closing(Run(whole, writable=False)) as ledger:
        kept = kept_records(ledger)
    shown = package.open_run(whole, store).features("records", top=len(kept))
    assert [record.halves for record in kept.values()] == [record["halves"] for record in shown]


@pytest.mark.parametrize(("n_features", "n_left_out"), [(FIRST, 0), (FIRST + 1, 1)])
def test_where_all_features_are_among_the_first_nothing_is_said_of_agreement(
    tmp_path, n_features, n_left_out
):
    place = make_store(tmp_path / "t.zarr", *noise_table(N_ROWS, n_features, n_relevant=1))
    (tmp_path / "out.txt").write_text("\n".join(list(Store.open(place).names)[-1:]))
    given = {"exclude": tmp_path / "out.txt"} if n_left_out else {}
    result = package.run(place, q=5, iterations=30, judge="probe", halves=2, **given)
    assert result.halves.agreement is None
    assert "agree" not in str(result.halves)


def test_counts_of_thousands_are_said_as_such():
    record = halves.HalvesRecord([318, 2805], 0.15, 20 / 5966, *np.zeros((2, 0), np.uint32))
    assert str(record) == (
        "2 halves of the rows select 318 to 2,805 features (median 1,561.5); their first 20 agree "
        "by 0.15 (0.00 by chance)"
    )
