import csv
import io
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pandas
import pytest
from command import srs_ooc as command
from refusals import refused
from stores import make_store, noise_table

import srs_ooc
from srs_ooc.base.errors import BudgetError, RunError, StoreError, UsageError

OPTIONS = {"iterations": 300, "subspace_size": 20, "fdr": 0.2}


@pytest.fixture
def store(tmp_path):
    values, labels = noise_table(120, 60, seed=3)
    return make_store(tmp_path / "t.zarr", values, labels)


def rows_of(result):
    records = result.features("records")
    return [{k: None if v is None else str(v) for k, v in one.items()} for one in records]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"method": "srs", "alpha": 0.25, "fdr": 0.2, "seed": 7},
        {"method": "rs", "judge": "probe", "probe_min_draws": 3, "max_features": "sqrt"},
    ],
)
def test_a_run_equals_that_of_the_command_line_to_the_bit(store, tmp_path, options):
    result = srs_ooc.run(store, out=tmp_path / "a.run", iterations=300, q=20, **options)
    flags = [x for name, value in options.items() for x in (f"--{name.replace('_', '-')}", value)]
    command("run", store, "--out", tmp_path / "b.run", "--iterations", 300, "--q", 20, *flags)
    said = csv.DictReader(io.StringIO(command("features", tmp_path / "b.run", "--csv").stdout))
    words = {"": None, "true": "True", "false": "False"}
    assert rows_of(result) == [{k: words.get(v, v) for k, v in row.items()} for row in said]
    assert result.status.parts == srs_ooc.open_run(tmp_path / "b.run").status.parts


def test_a_run_and_its_result_print_nothing(store, tmp_path, capfd):
    result = srs_ooc.run(store, progress=None, **OPTIONS)
    result.features("records"), result.selected, result.status, repr(result), result._repr_html_()
    result.export(tmp_path / "out.csv", top=2)
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_calls_without_a_run_are_their_commands_and_print_nothing(store, tmp_path, capfd):
    said = list(
        csv.DictReader(io.StringIO(command("scores", store, "--csv", "--with", "rank=3").stdout))
    )
    found = srs_ooc.scores(store, "records", rank=3)
    assert [{k: str(v) for k, v in record.items()} for record in found] == said
    size = ("--rows", 40, "--features", 30, "--relevant", 4)
    command("synth", "chain", tmp_path / "a.csv", *size, "--seed", 2)
    options = {"rows": 40, "features": 30, "relevant": 4, "seed": 2}
    truth = srs_ooc.synth("chain", tmp_path / "b.csv", **options)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert truth == json.loads((tmp_path / "a.csv.truth.json").read_text())
    asked = ("theory", "clique", "--n-features", 50, "--q", 10, "--n-relevant", 2, "--json")
    found = srs_ooc.theory("clique", n_features=50, q=10, n_relevant=2)
    assert found == json.loads(command(*asked).stdout)
    for wrong in (
        lambda: srs_ooc.synth("nothing", tmp_path / "c.csv", rows=9, features=9),
        lambda: srs_ooc.synth("madelon", tmp_path / "c.csv", rows=9, features=9),
        lambda: srs_ooc.synth("noise", tmp_path / "c.csv", rows=9, features=9, relevant=1),
        lambda: srs_ooc.theory("ring", n_features=50, q=10, n_relevant=2),
        lambda: srs_ooc.scores(store, ranks=3),
    ):
        refused(UsageError, "expected", wrong)
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_a_fresh_run_lies_beside_those_that_are_there(store):
    first, second = (srs_ooc.run(store, fresh=True, **OPTIONS).run for _ in range(2))
    assert (first.name, second.name) == ("t.run", "t-2.run")
    with pytest.raises(UsageError, match="expected fresh or out"):
        srs_ooc.run(store, fresh=True, out=first, **OPTIONS)


@pytest.mark.slow
def test_ctrl_c_is_raised_once_all_is_committed_and_the_run_goes_on(store, tmp_path):
    whole = srs_ooc.run(store, out=tmp_path / "whole.run", **OPTIONS)
    seen = []

    def press(step):
        seen.append(step.done)
        if step.done == 100:
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        srs_ooc.run(store, progress=press, **OPTIONS)
    assert signal.getsignal(signal.SIGINT) is before
    stopped = srs_ooc.open_run(tmp_path / "t.run")
    assert (stopped.n_iterations, stopped.status.state) == (seen[-1], "stopped")
    assert stopped.is_provisional
    assert rows_of(srs_ooc.resume(stopped)) == rows_of(whole)


@pytest.mark.slow
def test_a_second_ctrl_c_stops_at_once_and_what_was_committed_stays(store, tmp_path):
    whole = srs_ooc.run(store, out=tmp_path / "whole.run", **OPTIONS)

    def press_twice(step):
        if step.done == 50:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        srs_ooc.run(store, progress=press_twice, **OPTIONS)
    assert rows_of(srs_ooc.resume(tmp_path / "t.run")) == rows_of(whole)


def test_an_error_of_a_callable_is_raised_once_all_is_committed(store, tmp_path):
    def fail(step):
        if step.done == 70:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        srs_ooc.run(store, progress=fail, **OPTIONS)
    assert srs_ooc.open_run(tmp_path / "t.run").n_iterations == 70


def test_results_are_readable_while_the_run_goes_on(store, tmp_path):
    seen = []

    def look(step):
        if step.stage == "screening" and step.done == 200:
            result = srs_ooc.open_run(tmp_path / "t.run")
            seen.append((result.status.state, result.selected, len(result.features("records"))))

    srs_ooc.run(store, progress=look, **OPTIONS)
    assert seen == [("running", [], 60)]


def test_a_result_follows_the_commits_of_its_run(store):
    result = srs_ooc.run(store, judge="probe", iterations=20, subspace_size=20)
    assert result.reading.n_iterations == 20
    srs_ooc.resume(result, iterations=50)
    assert result.reading.n_iterations == result.n_iterations == 50


def lives_until(told):
    told.poll(600)


@pytest.mark.slow
@pytest.mark.parametrize("attempt", range(4))
def test_children_forked_beside_a_run_keep_nothing_of_it(store, tmp_path, attempt):
    whole = srs_ooc.run(store, out=tmp_path / "whole.run", **OPTIONS)
    forks, children, found = multiprocessing.get_context("fork"), [], []
    options = OPTIONS | {"iterations": 200 + 20 * attempt}
    work = lambda: found.append(srs_ooc.run(store, out=tmp_path / "a.run", **options))  # noqa: E731
    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive() and len(children) < 40:
        theirs, ours = forks.Pipe(duplex=False)
        child = forks.Process(target=lives_until, args=(theirs,), daemon=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the thread, from Python 3.12 on
            child.start()
        children.append((child, ours))
        thread.join(0.01)
    thread.join()
    assert children
    assert all(child.is_alive() for child, _ in children)
    resumed = srs_ooc.resume(tmp_path / "a.run", iterations=OPTIONS["iterations"])
    for child, ours in children:
        ours.send(None)
        child.join()
    assert [child.exitcode for child, _ in children] == [0] * len(children)
    assert rows_of(resumed) == rows_of(srs_ooc.open_run(tmp_path / "a.run")) == rows_of(whole)
    srs_ooc.verify(tmp_path / "a.run")


def test_a_child_that_a_run_forks_and_that_goes_its_own_way_does_no_harm(store, tmp_path):
    """It unwinds through what its parent began, with a copy of its connections."""
    options, children = OPTIONS | {"subspace_size": 10}, []

    def forking(step):
        if not children and step.done == 100:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                children.append(os.fork())
            if not children[0]:
                raise KeyError("the child")
        return True

    whole = srs_ooc.run(store, out=tmp_path / "whole.run", **options)
    parent = os.getpid()
    try:
        result = srs_ooc.run(store, out=tmp_path / "a.run", progress=forking, **options)
    except (KeyError, RunError):  # of the child's own, or of what it may not commit
        assert os.getpid() != parent
        os._exit(7)
    finally:
        if os.getpid() != parent:
            os._exit(8)
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 7
    assert rows_of(result) == rows_of(whole)
    srs_ooc.verify(tmp_path / "a.run")


def test_a_run_works_outside_the_main_thread(store):
    found = []
    thread = threading.Thread(target=lambda: found.append(srs_ooc.run(store, **OPTIONS)))
    thread.start()
    thread.join()
    assert found[0].status.state == "finished"


@pytest.mark.slow
def test_rows_and_features_are_named_by_file_or_by_list(store, tmp_path):
    exclude, rows = ["f0", "f7"], [str(i) for i in range(1, 91)]
    (tmp_path / "exclude").write_text("f0\nf7\n")
    (tmp_path / "rows").write_text("\n".join(rows))
    by_list = srs_ooc.run(store, out=tmp_path / "a.run", exclude=exclude, rows=rows, **OPTIONS)
    files = {"exclude": tmp_path / "exclude", "rows": str(tmp_path / "rows")}
    by_file = srs_ooc.run(store, out=tmp_path / "b.run", **files, **OPTIONS)
    assert rows_of(by_list) == rows_of(by_file)
    assert by_list.status.rows.startswith("90 rows")
    with pytest.raises(UsageError, match="exclude: expected"):
        srs_ooc.run(store, out=tmp_path / "c.run", exclude=["f1\nf2"])
    refused(UsageError, "rows: expected", srs_ooc.run, store, out=tmp_path / "c.run", rows=[1])


def test_a_run_that_is_there_goes_on_and_another_identity_is_refused(store):
    srs_ooc.run(store, judge="probe", iterations=20, alpha=0.5)
    assert srs_ooc.run(store, iterations=30).n_iterations == 30
    refused(RunError, r"asked for: 0\.25", srs_ooc.run, store, alpha=0.25)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpa": 0.5}, "Did you mean alpha?"),
        ({"q": 3, "subspace_size": 3}, "expected once"),
        ({"fdr": 2}, r"^fdr: expected"),
        ({"progress": 3}, "progress: expected True"),
    ],
)
def test_options_that_cannot_be_are_refused_in_pythons_spelling(store, options, message):
    assert "--" not in refused(UsageError, message, srs_ooc.run, store, **options)


def test_a_cap_too_small_is_refused_with_the_keyword_that_would_do(store):
    said = refused(BudgetError, r"memory_mb=\d+", srs_ooc.run, store, memory_mb=20)
    least = int(said.rsplit("memory_mb=", 1)[1].rstrip("."))
    assert srs_ooc.run(store, memory_mb=least, iterations=10).n_iterations == 10


@pytest.mark.slow
def test_what_was_resident_before_the_call_does_not_count(store, tmp_path):
    held = np.ones(30_000_000)  # 240 MB, far above the cap
    result = srs_ooc.run(store, memory_mb=100, iterations=50)
    assert held.all()
    assert result.status.peak_rss_mb < 100


def test_a_missing_store_or_run_is_an_error_not_a_start(tmp_path):
    for error, call in (
        (StoreError, srs_ooc.run),
        (RunError, srs_ooc.open_run),
        (RunError, srs_ooc.resume),
    ):
        refused(error, "nothing there", call, tmp_path / "no.zarr")


def test_a_bar_shows_each_stage(store, capfd):
    srs_ooc.run(store, progress=True, **OPTIONS)
    said = capfd.readouterr().err
    assert "300 of 300 iterations" in said
    assert "last stage" in said
    assert "\x1b" not in said


def test_every_declared_option_is_listed_with_its_help():
    listed = srs_ooc.options()
    assert {"alpha", "subspace_size", "fdr", "seed", "method"} <= set(listed)
    assert all(listed.values())


@pytest.mark.slow
def test_the_public_names_are_listed_and_load():
    code = "import srs_ooc; [getattr(srs_ooc, n) for n in srs_ooc.__all__]; print(dir(srs_ooc))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(srs_ooc.__all__) <= set(eval(done.stdout))
    assert Path(srs_ooc.__file__).name == "__init__.py"
    with pytest.raises(AttributeError, match="nothing"):
        srs_ooc.nothing  # noqa: B018


def test_features_of_a_store_are_read_by_name(tmp_path):
    frame = pandas.DataFrame({"a": [1.5, 2, None], "b": ["x", None, "x"], "c": [3, 4, 5]})
    srs_ooc.ingest(frame, tmp_path / "t.zarr", target=[0, 1, 1])
    found = srs_ooc.read(tmp_path / "t.zarr", ["c", "b", "a"], "records")
    assert [row["b"] for row in found] == ["x", None, "x"]
    assert [row["c"] for row in found] == [3, 4, 5]
    store = srs_ooc.open_store(tmp_path / "t.zarr")
    pandas.testing.assert_frame_equal(srs_ooc.read(store, ["a"]), frame[["a"]])
    with pytest.raises(UsageError, match=r"names: expected features of .*'z', which is none"):
        srs_ooc.read(store, ["a", "z"])


_IDS = {
    "numbered": (None, None, [0, 2, 3]),
    "texts": (["a", "b", "c", "d"], "id", ["a", "c", "d"]),
    "whole numbers": ([7, 12, -3, 0], "id", [7, -3, 0]),
    "numbers as texts": (["007", "12", "3", "0"], "id", ["007", "3", "0"]),
}


@pytest.mark.parametrize(("ids", "name", "expected"), _IDS.values(), ids=_IDS)
def test_values_read_say_which_rows_of_the_users_table_they_are_of(tmp_path, ids, name, expected):
    frame = pandas.DataFrame({"a": [1.5, 2, 4, 8], "y": ["u", None, "v", "v"]})
    if ids is not None:
        frame = frame.set_index(pandas.Index(ids, name=name))
    table = frame if ids is None else frame.reset_index()
    srs_ooc.ingest(table, tmp_path / "t.zarr", target="y", row_ids=name)
    found = srs_ooc.read(tmp_path / "t.zarr", ["a"])
    pandas.testing.assert_frame_equal(found, frame.loc[found.index, ["a"]])
    assert found.index.tolist() == expected
    records = srs_ooc.read(tmp_path / "t.zarr", ["a"], "records")
    assert [row[name or "index"] for row in records] == expected
    assert [row["a"] for row in records] == [1.5, 4, 8]


def test_the_column_of_rows_is_called_otherwise_than_features(tmp_path):
    frame = pandas.DataFrame({"index": [1.5, 2, 4]})
    srs_ooc.ingest(frame, tmp_path / "t.zarr", target=[0, 1, 1])
    found = srs_ooc.read(tmp_path / "t.zarr", ["index"], "records")
    assert found[1] == {"_index": 1, "index": 2}


@pytest.mark.slow
def test_a_plan_is_that_of_the_command_line(store):
    found = srs_ooc.plan(n_rows=72, n_features=850_000, memory_mb=512, threads=2, fdr=0.2)
    flags = ("--n-rows", 72, "--n-features", 850_000, "--memory-mb", 512, "--threads", 2)
    said = json.loads(command("plan", *flags, "--fdr", 0.2, "--json").stdout)
    assert list(found) == list(said)
    assert found["leases"] == said["leases"]
    assert found["subspace_size"] == said["subspace_size"]
    assert srs_ooc.plan(store, exclude=["f0"])["n_features"] == 59


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "found neither"),
        ({"n_rows": 10}, "found no n_features"),
        ({"n_rows": 1, "n_features": 5}, "n_classes"),
        ({"n_rows": 10, "n_features": 5, "alhpa": 1}, "alpha"),
    ],
)
def test_a_plan_of_nothing_is_refused(given, said):
    refused(UsageError, said, srs_ooc.plan, **given)


def test_damage_is_found_in_a_store_and_in_a_run(store, tmp_path):
    result = srs_ooc.run(store, **OPTIONS)
    assert srs_ooc.verify(store).files["codes"] >= 1
    assert srs_ooc.verify(result.run).is_run
    chunk = next(path for path in (store / "codes" / "c").rglob("*") if path.is_file())
    content = bytearray(chunk.read_bytes())
    content[7] ^= 1
    chunk.write_bytes(content)
    refused(StoreError, "codes", srs_ooc.verify, store)


@pytest.mark.slow
def test_a_small_set_is_that_of_the_command_line(store):
    result = srs_ooc.run(store, **OPTIONS)
    small = srs_ooc.compact(result, folds=2, repeats=1, max_features=3)
    options = ("--folds", 2, "--repeats", 1, "--max-features", 3, "--json")
    known = json.loads(command("compact", result.run, *options).stdout)
    assert small.names == [feature["name"] for feature in known["features"]]
    assert small.curve("records") == known["curve"]
    assert len(small.features("records")) == 3
