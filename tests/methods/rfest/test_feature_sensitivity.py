"""`srs-ooc sensitivity`: scores by the definition, on rows that trees were not grown on."""

import numpy as np
import pytest
from command import error_of, json_of, peak_kb, srs_ooc
from forest_reference import class_changes, decode_tree, effects_of, features_of
from stores import make_store, noise_table

import srs_ooc as package
from srs_ooc.base.errors import UsageError
from srs_ooc.base.text import MB
from srs_ooc.methods.rfest import feature_sensitivity as module
from srs_ooc.methods.rfest.feature_sensitivity import permutation, sensitivity
from srs_ooc.runs.engine import ColumnSource
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.run import Run
from srs_ooc.runs.training import training_response
from srs_ooc.store.store import Store
from srs_ooc.trees import kernel
from srs_ooc.trees.block import Block
from srs_ooc.trees.saved import CLASS_BITS, TARGET_BITS

N_ROWS, N_FEATURES = 40, 24
QUICK = {"iterations": 12, "q": 9, "save_trees": True, "bootstrap": True, "threads": 1}


def table(kind):
    rng = np.random.default_rng(4)
    values = rng.standard_normal((N_ROWS, N_FEATURES))
    values[:, ::3] = values[:, ::3] > 0
    values[rng.random(values.shape) < 0.05] = np.nan
    score = np.nan_to_num(values[:, :3]).sum(axis=1)
    return values, score if kind == "regression" else np.digitize(score, [0, 1.5])


def stored(tmp_path, kind="classes"):
    values, target = table(kind)
    task = "regression" if kind == "regression" else "classification"
    package.ingest(values, tmp_path / "t.zarr", target=target, task=task)
    return tmp_path / "t.zarr"


@pytest.fixture
def grown(monkeypatch):
    """Bytes of each tree that is grown, with the rows that it was grown on."""
    seen, grow = {}, kernel.grow_tree

    def noted(block, features, rows, *given, **named):
        tree = grow(block, features, rows, *given, **named)
        if tree.record is not None:
            seen[tree.record] = rows.order
        return tree

    monkeypatch.setattr(kernel, "grow_tree", noted)
    return seen


def records_of(run):
    data, place = (run / "trees.bin").read_bytes(), len(b"srs-ooc trees 1\n")
    while place < len(data):
        length = int.from_bytes(data[place : place + 4], "little")
        yield data[place + 8 : place + 8 + length]
        place += 8 + length


def codes_of(run, store, features):
    """Codes of features at all training rows, as the run itself pages them in."""
    ledger = Run(run, writable=False)
    opened = Store.open(store)
    plan = Plan.of_run(ledger, opened)
    ledger.close()
    spec, task = plan.spec, plan.task
    block = Block(len(features), N_ROWS, opened.manifest.code_nbytes, tiled=False)
    with opened.columns(mapped=False) as columns:
        source = ColumnSource(columns, task.rows)
        source.gather(np.array(features, np.uint32), block)
    return block.as_columns(len(features)).astype(int), spec, task


def by_definition(run, store, seen, flip):
    """Scores with every feature altered by itself."""
    forest = [(decode_tree(record, regression=False), seen[record]) for record in records_of(run)]
    features = sorted(set().union(*(features_of(tree) for tree, _ in forest)))
    codes, spec, task = codes_of(run, store, features)
    n_codes = np.array(Store.open(store).array("n_codes"), int)[features]
    place = {feature: i for i, feature in enumerate(features)}
    scores, counts = np.zeros(len(features)), np.zeros((len(features), 2))
    for repeat in range(2):
        other = permutation(spec.run.seed, repeat, N_ROWS)
        for row in range(N_ROWS):
            voting = [tree for tree, rows in forest if row not in rows]
            truth = int(task.target[row])

            def as_it_is(feature, row=row):
                return int(codes[place[feature], row])

            def altered(feature, row=row, other=other):
                code, n = codes[place[feature], row], n_codes[place[feature]]
                if flip == "mirror" or (flip == "auto" and n == 2):
                    return int(code if code == 255 else n - 1 - code)
                return int(codes[place[feature], other[row]])

            base, effects = effects_of(voting, as_it_is, altered, 255, CLASS_BITS, 3)
            for feature, added in effects.items():
                worse, better, lost = class_changes(base, added, len(voting), truth)
                scores[place[feature]] += lost / 2**36 / N_ROWS / 2
                counts[place[feature]] += worse, better
    return features, scores, counts


@pytest.mark.few(3)
@pytest.mark.parametrize("flip", ["auto", "mirror", "permute"])
@pytest.mark.parametrize("judge", ["probe", "tests"])
def test_scores_are_those_of_altering_each_feature_by_itself(tmp_path, grown, judge, flip):
    """Out of bag; missing values among them."""
    store, run = stored(tmp_path), tmp_path / "a.run"
    package.run(store, out=run, judge=judge, trees_per_subspace=2, **QUICK)
    features, scores, counts = by_definition(run, store, grown, flip)
    found = sensitivity(run, flip=flip, repeats=2)
    position = np.array(Store.open(store).array("positions"))
    own = {f"f{position[i]}": k for k, i in enumerate(features)}
    records = list(found.records())
    times = found.facts["repeats"]  # 1 where nothing is permuted
    assert {record.name for record in records} == set(own)
    for record in records:
        assert record.score == pytest.approx(scores[own[record.name]], abs=1e-12)
        assert (record.n_worse, record.n_better) == tuple(counts[own[record.name]] * times / 2)
    assert [r.score for r in records] == sorted((r.score for r in records), reverse=True)


def test_scores_of_a_regression_are_losses_of_r2(tmp_path, grown):
    store, run = stored(tmp_path, "regression"), tmp_path / "a.run"
    package.run(store, out=run, judge="probe", **QUICK)
    found = sensitivity(run, flip="mirror")
    forest = [(decode_tree(r, regression=True), grown[r]) for r in records_of(run)]
    features = sorted(set().union(*(features_of(tree) for tree, _ in forest)))
    codes, _, task = codes_of(run, store, features)
    n_codes = np.array(Store.open(store).array("n_codes"), int)[features]
    response = training_response(task)
    said = np.zeros((1 + len(features), N_ROWS))
    for row in range(N_ROWS):
        voting = [tree for tree, rows in forest if row not in rows]
        base, effects = effects_of(
            voting,
            lambda i, row=row: int(codes[features.index(i), row]),
            lambda i, row=row: int(
                c
                if (c := codes[features.index(i), row]) == 255
                else n_codes[features.index(i)] - 1 - c
            ),
            255,
            TARGET_BITS,
            1,
        )
        sums = [base[0], *(base[0] + effects[i][0] for i in features)]
        mean = np.array(sums, float) / len(voting) / 2.0**TARGET_BITS
        said[:, row] = response.center + mean / response.scale
    errors = ((said - task.target) ** 2).sum(1)
    r2 = 1 - errors / ((task.target - task.target.mean()) ** 2).sum()
    assert found.facts["r2"] == pytest.approx(r2[0], abs=1e-6)
    position = np.array(Store.open(store).array("positions"))
    expected = {f"f{position[i]}": r2[0] - r for i, r in zip(features, r2[1:], strict=True)}
    assert {r.name: pytest.approx(r.score, abs=1e-6) for r in found.records()} == expected


def test_threads_and_memory_do_not_change_the_bits(tmp_path, monkeypatch):
    store = stored(tmp_path)
    package.run(store, out=tmp_path / "a.run", judge="probe", **QUICK)
    whole = sensitivity(tmp_path / "a.run", threads=1)
    monkeypatch.setattr(module._Measuring, "_rows_at_a_time", lambda *_: 7)
    monkeypatch.setattr(module, "VOTES_NBYTES", 21)  # three trees at a time
    parts = sensitivity(tmp_path / "a.run", threads=3)
    assert list(parts.records()) == list(whole.records())
    assert parts.facts == whole.facts


@pytest.mark.parametrize("judge", ["probe", "tests"])
def test_rows_held_out_are_asked_of_all_trees(tmp_path, judge):
    """The accuracy is that of `predict` on them."""
    values, labels = noise_table(90, 40)
    store, run = make_store(tmp_path / "t.zarr", values, labels), tmp_path / "a.run"
    ids = [str(i + 1) for i in range(90)]
    bootstrap = judge == "tests"
    package.run(store, out=run, rows=ids[:60], judge=judge, **QUICK | {"bootstrap": bootstrap})
    result = package.open_run(run)
    found = result.sensitivity(rows=ids[60:])
    predicted = result.predict(Store.open(store), "records")[60:]
    right = [one["prediction"] == str(labels[60 + i]) for i, one in enumerate(predicted)]
    assert found.facts["accuracy"] == pytest.approx(np.mean(right))
    assert found.facts["n_rows"] == 30
    assert not found.facts["out_of_bag"]


@pytest.mark.slow
def test_the_command_writes_what_the_call_returns_and_says_what_the_theorem_is_about(
    tmp_path, capsys
):
    store, run = stored(tmp_path), tmp_path / "a.run"
    package.run(store, out=run, judge="probe", **QUICK)
    found = package.sensitivity(run)
    assert capsys.readouterr() == ("", "")
    told = json_of("sensitivity", run, "--json")
    assert told.pop("features") == found.features("records")
    assert told == found.facts
    assert "about flipping" in told["theorem"]
    shown = srs_ooc("sensitivity", run, "--flip", "permute", "--csv").stdout
    assert len(shown.splitlines()) == 1 + told["n_features"]
    assert "none was flipped here" in srs_ooc("sensitivity", run, "--flip", "permute").stdout


@pytest.mark.slow
def test_what_cannot_be_asked_is_refused_with_what_to_do(tmp_path):
    store = stored(tmp_path)
    plain, bagged, none = (tmp_path / f"{name}.run" for name in ("plain", "bagged", "none"))
    package.run(store, out=bagged, judge="probe", **QUICK)
    package.run(store, out=plain, judge="probe", **{**QUICK, "bootstrap": False})
    package.run(store, out=none, judge="probe", **{**QUICK, "save_trees": False})
    ids = tmp_path / "ids.txt"
    ids.write_text("1\n2\n")
    unknown = tmp_path / "unknown.txt"
    unknown.write_text("1\nnobody\n")
    (tmp_path / "other").mkdir()
    other = make_store(tmp_path / "other" / "o.zarr", *noise_table(20, 10))
    for arguments, message in [
        ((none,), "--save-trees"),
        ((plain,), "--bootstrap"),
        ((plain, "--rows", ids), "2 of 2 that all trees were grown on (first: '1')"),
        ((bagged, "--rows", unknown), "1 that are not (first: 'nobody')"),
        ((bagged, "--store", other), "another store"),
        ((bagged, "--memory-mb", 60), "The smallest cap that works"),
    ]:
        assert message in error_of("sensitivity", *arguments)
    with pytest.raises(UsageError, match="flip: expected auto, mirror, permute, found 'swap'"):
        package.sensitivity(bagged, flip="swap")


def test_categories_without_an_order_are_not_mirrored(tmp_path):
    path = tmp_path / "t.csv"
    lines = [f"{i},{'abc'[i % 3]},{i * 7 % 11},{i % 2}" for i in range(60)]
    path.write_text("\n".join(["id,letter,number,target", *lines]) + "\n")
    package.ingest(path, tmp_path / "t.zarr", target="target", row_ids="id")
    run = tmp_path / "a.run"
    package.run(tmp_path / "t.zarr", out=run, judge="positive", **{**QUICK, "q": 2})
    with pytest.raises(UsageError, match="first: 'letter'"):
        package.sensitivity(run, flip="mirror")
    found = package.sensitivity(run, flip="auto")
    assert {r["altered"] for r in found.features("records")} == {"permuted"}


@pytest.mark.slow
def test_it_stays_under_the_smallest_cap_that_is_accepted(tmp_path):
    values, labels = noise_table(300, 20_000)
    store, run = make_store(tmp_path / "t.zarr", values, labels), tmp_path / "a.run"
    more = ("--judge", "tests", "--save-trees", "--bootstrap", "--q", 4000)
    srs_ooc("run", store, "--out", run, "--iterations", 150, *more)
    refused = error_of("sensitivity", run, "--memory-mb", 30)
    smallest = int(refused.rsplit("--memory-mb ", 1)[1].rstrip("."))
    arguments = ("sensitivity", run, "--repeats", 1, "--csv", "--memory-mb")
    assert peak_kb(*arguments, smallest) * 1024 < smallest * MB
    assert peak_kb(*arguments, smallest + 40) * 1024 < (smallest + 40) * MB
