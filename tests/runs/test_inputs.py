"""What a run reads beside its ledger: its store, and files that options name.

The largest files take minutes: ``pytest tests/runs/test_inputs.py -m campaign``.
"""

import os
import shutil
from contextlib import closing
from itertools import count

import numpy as np
import pytest
from command import error_of, json_of, peak_kb, srs_ooc
from hypothesis import given
from hypothesis import strategies as st
from ledgers import work_on_run
from stores import make_store, noise_table

from srs_ooc.base.errors import RunError, StoreError, UsageError
from srs_ooc.ensemble import panels
from srs_ooc.ensemble.prediction import predict
from srs_ooc.ingestion.formats import hash_text
from srs_ooc.results import exporting
from srs_ooc.results.exporting import export_columns
from srs_ooc.runs import inputs
from srs_ooc.runs import verdict as conclusion
from srs_ooc.runs.inputs import NAME_NBYTES, SideFile, read_lines
from srs_ooc.runs.request import Request
from srs_ooc.runs.run import Run
from srs_ooc.runs.session import work_on
from srs_ooc.runs.verdict import TABLE, Verdict, verdict_on
from srs_ooc.store.store import Store

# A run keeps to the store it was made on, whatever comes to lie at its path.


N_ROWS, N_FEATURES, ITERATIONS = 120, 150, 300


def shifted_store(path, seed, n_features=N_FEATURES):
    labels = np.arange(N_ROWS) % 2
    values = np.random.default_rng(seed).standard_normal((n_features, N_ROWS))
    values[:12] += 2.5 * labels
    return make_store(path, values, labels)


def unrelated_store(path, n_features=N_FEATURES):
    values, labels = noise_table(N_ROWS, n_features)
    return make_store(path, np.roll(values, 3, axis=0), np.roll(labels, 7))


@pytest.fixture
def stores(tmp_path):
    """The store of a run, and another of the same shape."""
    return shifted_store(tmp_path / "t.zarr", 1), unrelated_store(tmp_path / "other.zarr")


class Swap:
    """Puts another store in a store's place, and back."""

    def __init__(self, store, other):
        self.store, self.other, self.away = store, other, store.with_name("away.zarr")

    def swap(self):
        self.store.rename(self.away)
        shutil.copytree(self.other, self.store)

    def back(self):
        shutil.rmtree(self.store)
        self.away.rename(self.store)


def request(**given):
    asked = {"subspace_size": "40", "seed": 3}
    return Request(options=asked, iterations=ITERATIONS, memory_mb=4000, threads=1, **given)


def found_of(run):
    """The verdict and what two halves select, as the ledger has them."""
    with closing(Run(run, writable=False)) as ledger:
        found = Verdict.of(ledger)
        table = None if found is None else {name: found.table[name] for name in TABLE.names}
        return [table, ledger.read_arrays("half-0"), ledger.read_arrays("half-1")]


def at(stage, act):
    """A watch that acts once, at the first step of a stage."""
    done = []

    def watch(step):
        if step.stage == stage and not done:
            done.append(stage)
            act()
        return True

    return watch


def assert_same(run, other):
    for one, two in zip(found_of(run), found_of(other), strict=True):
        assert (one is None) == (two is None)
        for name in one or {}:
            np.testing.assert_array_equal(one[name], two[name], err_msg=name)


CASES = [
    (None, "screening", 0),
    (None, "screening, last stage", 0),
    (2, "screening, last stage", 0),
    (2, "half 1 of 2, screening", 1),
    (2, "half 2 of 2, screening, last stage", 2),
]


@pytest.mark.few(1)
@pytest.mark.parametrize(("n_halves", "stage", "n_found"), CASES)
def test_what_a_store_replaced_while_a_run_works_would_give_is_not_kept(
    stores, tmp_path, n_halves, stage, n_found
):
    store, other = stores
    asked = request(halves=n_halves)
    work_on_run(store, tmp_path / "whole.run", asked)
    swap = Swap(store, other)
    with pytest.raises(StoreError, match=r"expected the store with fingerprint .* was replaced"):
        work_on_run(store, tmp_path / "t.run", asked, at(stage, swap.swap))
    assert [part is not None for part in found_of(tmp_path / "t.run")] == [
        i < n_found for i in range(3)
    ]
    with pytest.raises(RunError, match="another store"):
        work_on_run(store, tmp_path / "t.run", asked)
    swap.back()
    work_on_run(store, tmp_path / "t.run", asked)
    assert_same(tmp_path / "t.run", tmp_path / "whole.run")
    assert np.count_nonzero(found_of(tmp_path / "t.run")[0]["selected"]) >= 3


@pytest.mark.slow
def test_a_store_replaced_during_the_survey_gives_no_verdict(stores, tmp_path, monkeypatch):
    store, other = stores
    swap = Swap(store, other)

    def swapped(*arguments):
        swap.swap()
        return verdict_on(*arguments)

    monkeypatch.setattr(conclusion, "verdict_on", swapped)
    with pytest.raises(StoreError, match="was replaced"):
        work_on_run(store, tmp_path / "t.run", request())
    assert found_of(tmp_path / "t.run")[0] is None


def test_a_store_written_over_in_place_gives_no_verdict(stores, tmp_path):
    """The files that are open are the same ones: what is in them is not."""
    store, other = stores
    over = at("screening, last stage", lambda: shutil.copytree(other, store, dirs_exist_ok=True))
    with pytest.raises(StoreError, match="was replaced"):
        work_on_run(store, tmp_path / "t.run", request(), over)
    assert found_of(tmp_path / "t.run")[0] is None


@pytest.mark.few(1)
@pytest.mark.parametrize("stage", ["screening", "screening, last stage"])
def test_nothing_read_of_a_store_written_over_is_committed(stores, tmp_path, stage):
    """It would be gone on with once the store is back."""
    store, other = stores
    work_on_run(store, tmp_path / "whole.run", request())
    shutil.copytree(store, tmp_path / "kept.zarr")
    over, n_steps = at(stage, lambda: shutil.copytree(other, store, dirs_exist_ok=True)), count()

    def stopped(step):
        return over(step) and (step.stage != stage or next(n_steps) < 40)

    with pytest.raises(StoreError, match="was replaced"):
        work_on_run(store, tmp_path / "t.run", request(), stopped)
    shutil.copytree(tmp_path / "kept.zarr", store, dirs_exist_ok=True)
    work_on_run(store, tmp_path / "t.run", request())
    assert_same(tmp_path / "t.run", tmp_path / "whole.run")


def write_codes_over(store, other):
    """As `rsync --inplace` does: no file is cut or replaced, and metadata would come last."""
    for file in sorted((other / "codes").rglob("c/*/*")):
        data = file.read_bytes()
        with (store / file.relative_to(other)).open("r+b") as over:
            assert over.write(data) == os.fstat(over.fileno()).st_size


def flip_a_code(store, _):
    """And set the times back."""
    file = store / "codes" / "c" / "0" / "0"
    before = file.stat()
    with file.open("r+b") as over:
        code = over.read(1)[0]
        os.pwrite(over.fileno(), bytes([code ^ 1]), 0)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.few(1)
@pytest.mark.parametrize("change", [write_codes_over, flip_a_code])
@pytest.mark.parametrize("stage", ["screening", "screening, last stage"])
def test_nothing_read_of_codes_written_over_is_committed(stores, tmp_path, stage, change):
    """Though the metadata are still those of the run's store, when it is stopped."""
    store, other = stores
    work_on_run(store, tmp_path / "whole.run", request())
    shutil.copytree(store, tmp_path / "kept.zarr")
    over, n_steps = at(stage, lambda: change(store, other)), count()

    def stopped(step):
        return over(step) and (step.stage != stage or next(n_steps) < 40)

    with pytest.raises(StoreError, match=r"codes/c/0/0: .*written to.*nothing read since was kept"):
        work_on_run(store, tmp_path / "t.run", request(), stopped)
    write_codes_over(store, tmp_path / "kept.zarr")
    work_on_run(store, tmp_path / "t.run", request())
    assert_same(tmp_path / "t.run", tmp_path / "whole.run")


@pytest.mark.slow
def test_a_wrong_store_is_not_noted_as_the_place_of_a_run(stores, tmp_path):
    store, other = stores
    run = tmp_path / "t.run"
    work_on_run(store, run, request(), at("screening", lambda: None))
    ledger = Run(run, writable=True)
    before = ledger.meta("store")
    with pytest.raises(RunError, match="another store"):
        work_on(ledger, Store.open(other), Request(iterations=ITERATIONS + 50))
    assert ledger.meta("store") == before
    assert ledger.meta("iterations") == ITERATIONS
    ledger.close()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    store = shifted_store(folder / "t.zarr", 1)
    asked = ("--judge", "probe", "--iterations", 200, "--q", 40, "--save-trees")
    srs_ooc("run", store, "--out", folder / "t.run", *asked)
    return store, folder / "t.run"


@pytest.fixture
def copied(finished, tmp_path):
    """The store and the run of a finished run, to be done anything to."""
    store, run = tmp_path / "t.zarr", tmp_path / "t.run"
    shutil.copytree(finished[0], store)
    shutil.copytree(finished[1], run)
    (run / "splits.bin").unlink(missing_ok=True)
    ledger = Run(run, writable=True)
    ledger.set_meta("store", [str(store), "../t.zarr"])
    ledger.close()
    return store, run


@pytest.mark.slow
@pytest.mark.parametrize("n_features", [N_FEATURES, N_FEATURES + 30])
def test_no_names_of_another_store_stand_beside_a_runs_numbers(copied, tmp_path, n_features):
    store, run = copied
    other = unrelated_store(tmp_path / "other.zarr", n_features)
    commands = [
        ("features", run, "--store", other),
        ("export", other, run, tmp_path / "o.csv", "--top", 3),
        ("predict", run, store, tmp_path / "o.csv", "--store", other),
    ]
    for command in commands:
        assert "run on another store" in error_of(*command)
    Swap(store, other).swap()
    commands = [
        ("features", run),
        ("features", run, "--json"),
        ("resume", run),
        ("run", store, "--out", run),
        ("predict", run, other, tmp_path / "o.csv"),
    ]
    for command in commands:
        message = error_of(*command)
        assert "run on another store" in message
        assert "damaged" not in message


@pytest.mark.slow
def test_features_are_read_from_the_store_at_its_new_place(copied, tmp_path):
    store, run = copied
    before = json_of("features", run, "--json")
    store.rename(tmp_path / "moved.zarr")
    assert "no longer at" in error_of("features", run)
    assert json_of("features", run, "--json", "--store", tmp_path / "moved.zarr") == before
    srs_ooc("run", tmp_path / "moved.zarr", "--out", run)  # notes the place, finished or not
    assert json_of("features", run, "--json") == before


@pytest.mark.slow
def test_the_store_beside_a_run_is_found_though_another_lies_at_the_first_place(copied, tmp_path):
    store, run = copied
    before = json_of("features", run, "--json")
    away = tmp_path / "away"
    away.mkdir()
    store.rename(away / "t.zarr")
    run.rename(away / "t.run")
    unrelated_store(store, N_FEATURES + 30)
    assert json_of("features", away / "t.run", "--json") == before


@pytest.mark.parametrize("name", ["o.csv", "o.zarr"])
def test_no_columns_are_exported_of_a_store_replaced_meanwhile(stores, tmp_path, monkeypatch, name):
    store, other = stores
    places = exporting.places_of

    def swap_and_look(*arguments):
        Swap(store, other).swap()
        return places(*arguments)

    monkeypatch.setattr(exporting, "places_of", swap_and_look)
    with pytest.raises((StoreError, UsageError), match="was replaced"):
        export_columns(Store.open(store), np.arange(3), tmp_path / name)
    assert not list(tmp_path.glob(f"*{name}*"))


@pytest.mark.few(1)
@pytest.mark.parametrize("is_training", [True, False])
def test_nothing_is_predicted_of_a_store_replaced_meanwhile(
    copied, tmp_path, monkeypatch, is_training
):
    store, run = copied
    data = store if is_training else shifted_store(tmp_path / "new.zarr", 2)
    other = shifted_store(tmp_path / "other.zarr", 5)
    srs_ooc("predict", run, data, tmp_path / "first.csv")
    facts = panels.row_facts

    def swap_and_facts(*arguments):
        Swap(data, other).swap()
        return facts(*arguments)

    monkeypatch.setattr(panels, "row_facts", swap_and_facts)
    with pytest.raises(StoreError, match=r"was replaced|damaged"):
        predict(run, data, tmp_path / "o.csv", memory_nbytes=10**10)
    assert not list(tmp_path.glob("*o.csv*"))


# Files of names are read in bounded memory; what is found does not depend on how much.


WORDS = st.text("abé ", min_size=1, max_size=4).map(str.strip).filter(bool)


class Texts:
    """What is asked of a store's names."""

    def __init__(self, texts):
        self._texts = [text.encode() for text in texts]

    def __len__(self):
        return len(self._texts)

    def texts(self):
        return iter(self._texts)

    def encoded(self, index):
        return self._texts[index]


def find_all(file, names, spare_nbytes=0):
    return SideFile(file, "feature", len(names)).find_all(Texts(names), spare_nbytes)


@given(
    names=st.lists(WORDS, min_size=1, max_size=20, unique=True),
    data=st.data(),
    size=st.integers(1, 7),
    collide=st.booleans(),
)
def test_the_names_found_do_not_depend_on_the_memory(tmp_path_factory, names, data, size, collide):
    """Few names and few lines at a time, and hashes that are equal: it is set membership."""
    asked = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=30))
    file = tmp_path_factory.mktemp("side") / "names.txt"
    file.write_text("\n\n".join(asked) + "\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs, "FEWEST", size)
        patch.setattr(inputs, "LINES", size)
        if collide:
            patch.setattr(inputs, "hash_text", lambda text: hash_text(text) % 3)
        found = find_all(file, names)
    assert found.tolist() == [name in asked for name in names]


def test_more_memory_means_fewer_readings(tmp_path, monkeypatch):
    file = tmp_path / "names.txt"
    file.write_text("n7\n")
    monkeypatch.setattr(inputs, "FEWEST", 10)
    readings = []
    for n_at_a_time in (10, 50, 100):
        counts = []
        monkeypatch.setattr(
            inputs, "read_lines", lambda *a, n=counts: n.append(1) or read_lines(*a)
        )
        spare = NAME_NBYTES * n_at_a_time
        assert find_all(file, [f"n{i}" for i in range(100)], spare).sum() == 1
        readings.append(len(counts))
    assert readings == [1 + 10, 1 + 2, 1 + 1]  # one counts the lines


def test_a_line_that_is_no_name_is_refused_unread(tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "MOST_LINE_NBYTES", 100)
    file = tmp_path / "names.txt"
    file.write_bytes(b"a\n" + b"x" * 10_000)
    with pytest.raises(UsageError, match=r"names.txt, line 2: expected one feature a line"):
        list(read_lines(file, "feature"))


def test_far_more_lines_than_names_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "SPARE_LINES", 5)
    file = tmp_path / "names.txt"
    file.write_text("a\n" * 12)
    with pytest.raises(UsageError, match="at most 9 lines, as the store has 2 features"):
        find_all(file, "ab")
    file.write_text("a\n" * 9)
    np.testing.assert_array_equal(find_all(file, "ab"), [True, False])


def test_long_lines_are_looked_up_a_few_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "LINES_NBYTES", 100)
    blocks = list(inputs.together(iter([b"x" * 60] * 5 + [b"y"] * 3), len))
    assert [len(block) for block in blocks] == [2, 2, 4]


def test_a_file_that_changes_or_can_be_read_once_only_is_an_error(tmp_path):
    file = tmp_path / "names.txt"
    for before, after in (("a\n", "a\nb\n"), ("a\nb\n", "a\n"), ("c\nb\n", "")):
        file.write_text(before)
        counted = SideFile(file, "feature", 2)
        file.write_text(after)
        with pytest.raises(UsageError, match="changed while it was read"):
            counted.find_all(Texts("ab"), 0)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="pipe: expected a file, which is read more than once"):
        SideFile(tmp_path / "pipe", "feature", 2)


# Files of 10^6 to 10^7 lines stay under the smallest cap named, and all that follows does.


LARGE = [pytest.param(n, marks=pytest.mark.campaign) for n in (10**6, 10**7)]
SEVERAL = pytest.mark.parametrize("n", [100_000, *LARGE])


def write_lines(path, lines):
    with path.open("w") as file:
        file.writelines(f"{line}\n" for line in lines)
    return path


def values_of(n_features, n_rows):
    rng = np.random.default_rng(0)
    return rng.integers(0, 9, (n_features, n_rows)).astype(np.float32)


def named(*arguments):
    """The smallest cap that a command names; it is refused by a first one only."""
    refused = error_of(*arguments, "--memory-mb", 9)
    return int(refused.rsplit("--memory-mb ", 1)[1].rstrip("."))


def check(*arguments, cap=None):
    cap = named(*arguments) if cap is None else cap
    assert peak_kb(*arguments, "--memory-mb", cap) * 1024 / 1e6 < cap, arguments[0]
    return cap


@pytest.mark.slow
@SEVERAL
def test_files_of_features_and_what_reads_the_run(tmp_path, n):
    store = make_store(tmp_path / "t.zarr", values_of(n, 8), np.arange(8) % 2)
    exclude = write_lines(tmp_path / "exclude.txt", (f"f{i}" for i in range(0, n, 2)))
    scores = write_lines(tmp_path / "scores.csv", ["name,score", *(f"f{i},1" for i in range(n))])
    options = ("--judge", "probe", "--q", 100, "--iterations", 3, "--threads", 1)
    run, less = tmp_path / "a.run", tmp_path / "b.run"
    cap = check("run", store, "--out", run, "--exclude", exclude, *options)
    check("run", store, "--out", run, "--exclude", exclude, cap=cap)  # asked again
    for command in (
        ("features", run, "--csv"),
        ("status", run),
        ("inspect", store),
        ("verify", store),
        ("verify", run),
        ("export", store, run, tmp_path / "out.csv", "--top", 3),
    ):
        check(*command, cap=cap)
    check("run", store, "--out", less, "--method", "less", "--with", f"scores={scores}", *options)
    check("scores", store, "--exclude", exclude, "--csv")


@pytest.mark.slow
@SEVERAL
def test_files_of_rows(tmp_path, n):
    store = make_store(tmp_path / "t.zarr", values_of(3, n), np.arange(n) % 2)
    rows = write_lines(tmp_path / "rows.txt", range(1, n, 3))
    options = ("--q", 2, "--iterations", 2, "--max-depth", 2, "--threads", 1, "--judge", "probe")
    run = tmp_path / "a.run"
    cap = check("run", store, "--out", run, "--rows", rows, *options)
    check("features", run, cap=cap)
    check("export", store, run, tmp_path / "out.csv", "--top", 2, cap=cap)


@pytest.mark.slow
@SEVERAL
@pytest.mark.parametrize("many", ["features", "rows"])
def test_files_of_names_and_of_targets(tmp_path, n, many):
    n_rows, n_features = (8, n) if many == "features" else (n, 3)
    np.save(tmp_path / "t.npy", np.ones((n_rows, n_features), np.uint8))
    names = write_lines(tmp_path / "names.txt", (f"name{i}" for i in range(n_features)))
    target = write_lines(tmp_path / "y.txt", ("uv"[i % 2] for i in range(n_rows)))
    files = ("--names", names, "--target-file", target)
    check("ingest", tmp_path / "t.npy", tmp_path / "t.zarr", *files)


@pytest.mark.slow
@SEVERAL
def test_files_of_samples(tmp_path, n):
    with (tmp_path / "t.csv").open("w") as file:
        file.write("id," + ",".join(f"s{i}" for i in range(n)) + "\n")
        file.writelines(f"a{i}" + f",{i}" * n + "\n" for i in range(2))
    lines = ("id,y", *(f"s{i},{'uv'[i % 2]}" for i in range(n)))
    samples = write_lines(tmp_path / "samples.csv", lines)
    options = ("--orient", "features", "--samples", samples, "--id", "id", "--target", "y")
    check("ingest", tmp_path / "t.csv", tmp_path / "t.zarr", *options)
