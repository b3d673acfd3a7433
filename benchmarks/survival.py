"""Times to an event on public tables of expression: what the first 5, 10, 20 features predict.

    pip install SurvSet scikit-survival        # in an environment of its own, its python is PYTHON
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 nice python benchmarks/survival.py run
        --results FILE --peers PYTHON [--halves FROM TO] [--only TEXT] [--minutes N]
    ... run ... --shuffled    srs-ooc and the score test where times and events trade places
    python benchmarks/survival.py report --results FILE    writes docs/research/survival-measured.md

The tables are SurvSet's of more than 3,000 columns: their numbers, a known value in place of a
missing one (the training median) for all but srs-ooc. Each half of the rows is drawn with as many
events, the same for every method; a method sees one half, and ranks. A Cox model with one ridge
penalty (``RIDGE``, fixed before any result was seen; columns scaled by the half) is fitted there on
the first 5, 10, 20 features of each, and Harrell's C-index is that of the other half. A table, half
and method is a line of FILE; what is there is not done again. Seconds and peak memory are those of
processes that begin with a file: a CSV that srs-ooc ingests and runs, an .npz for the others.
"""

import argparse
import json
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from measured import Measured, Record, Results, features_of, measure, srs_ooc, subcommand
from numpy.typing import NDArray

TABLES = ("gse1992", "gse4335", "gse3143", "DLBCL", "AML_Bull", "DBCD", "vdv", "chop")
SIZES, LEVEL, RIDGE, TREES, LIMIT_SECONDS = (5, 10, 20), 0.1, 10.0, 500, 180
OURS, TEST = "srs-ooc", "Cox score test"
LASSO, FOREST, DRAWN = "Cox lasso", "survival forest", "at random"
METHODS = (OURS, TEST, LASSO, FOREST, DRAWN)
PAGE = Path(__file__).parents[1] / "docs/research/survival-measured.md"

Floats = NDArray[np.float64]
Ranked = tuple[Any, int | None]
"""Columns best first, and how many a method selects, None where it only ranks."""


# What a child does, in the environment of the peers.


def write_half(name: str, half: int, folder: Path, is_shuffled: bool) -> None:
    """Write train.csv (for srs-ooc), train.npz and test.npz of a table, or of one shuffled."""
    from SurvSet.data import SurvLoader

    table = SurvLoader().load_dataset(name)["df"]
    if is_shuffled:
        target = table[["time", "event"]]
        table[["time", "event"]] = target.sample(frac=1, random_state=half).set_axis(table.index)
    features = [column for column in table if column.startswith("num_")]
    rng, event = np.random.default_rng(half), table["event"].to_numpy().astype(bool)
    first = np.zeros(len(table), bool)
    for rows in (np.flatnonzero(event), np.flatnonzero(~event)):
        first[rng.permutation(rows)[: len(rows) // 2]] = True
    train = table.loc[first, ["time", "event", *features]]
    train.columns = ["time", "event", *(f"f{i}" for i in range(len(features)))]
    train.to_csv(folder / "train.csv", index=False)
    x = table[features].to_numpy(np.float64)
    x = np.where(np.isnan(x), np.nanmedian(x[first], axis=0), x)
    for where, rows in (("train", first), ("test", ~first)):
        times = table["time"].to_numpy(np.float64)[rows]
        np.savez(folder / f"{where}.npz", x=x[rows], time=times, event=event[rows])


def read_half(folder: Path, where: str) -> tuple[Floats, Any]:
    """Return the values, (n, p), and times and events as scikit-survival takes them."""
    with np.load(folder / f"{where}.npz") as arrays:
        target = np.zeros(len(arrays["time"]), [("event", bool), ("time", float)])
        target["event"], target["time"] = arrays["event"], arrays["time"]
        return arrays["x"], target


def scaled(x: Floats, like: Floats) -> Floats:
    """Return columns less their mean over their deviation, both those of other rows."""
    z: Floats = (x - like.mean(axis=0)) / np.maximum(like.std(axis=0), 1e-12)
    return z


def score_test(x: Floats, target: Any, _: int) -> Ranked:
    """Test each column by Cox's score (Breslow's ties), normal, Benjamini and Hochberg."""
    from scipy import stats

    z, score, variance = scaled(x, x), np.zeros(x.shape[1]), np.zeros(x.shape[1])
    for when in np.unique(target["time"][target["event"]]):
        at_risk, ends = target["time"] >= when, target["event"] & (target["time"] == when)
        score += z[ends].sum(axis=0) - ends.sum() * z[at_risk].mean(axis=0)
        variance += ends.sum() * z[at_risk].var(axis=0)
    p_values = 2 * stats.norm.sf(np.abs(score) / np.sqrt(np.maximum(variance, 1e-12)))
    return np.argsort(p_values), int((stats.false_discovery_control(p_values) <= LEVEL).sum())


def lasso(x: Floats, target: Any, _: int) -> Ranked:
    """Rank by the penalty at which a column enters the path, then by its weight there."""
    from sksurv.linear_model import CoxnetSurvivalAnalysis

    path = CoxnetSurvivalAnalysis(l1_ratio=1.0).fit(scaled(x, x), target).coef_
    entered = np.where((path != 0).any(axis=1), (path != 0).argmax(axis=1), path.shape[1])
    weights = np.abs(path[np.arange(len(path)), np.minimum(entered, path.shape[1] - 1)])
    order = np.lexsort((-weights, entered))
    return order[entered[order] < path.shape[1]], None


def forest(x: Floats, target: Any, seed: int) -> Ranked:
    """Rank by splits, each of the weight of its node's rows."""
    from sksurv.ensemble import RandomSurvivalForest

    made = RandomSurvivalForest(TREES, max_features="sqrt", low_memory=True, random_state=seed)
    weights = np.zeros(x.shape[1])
    for tree in (one.tree_ for one in made.fit(x, target).estimators_):
        splits = tree.feature >= 0
        np.add.at(weights, tree.feature[splits], tree.n_node_samples[splits])
    return np.argsort(-weights), None


def at_random(x: Floats, _: Any, seed: int) -> Ranked:
    """Draw columns."""
    return np.random.default_rng(1_000 + seed).permutation(x.shape[1]), None


PEERS: dict[str, Callable[[Floats, Any, int], Ranked]] = {
    TEST: score_test,
    LASSO: lasso,
    FOREST: forest,
    DRAWN: at_random,
}


def score_ranked(folder: Path) -> None:
    """Write the C-index on the other half of the first features of each method."""
    from sksurv.linear_model import CoxPHSurvivalAnalysis
    from sksurv.metrics import concordance_index_censored

    (x, y), (x_test, y_test) = read_half(folder, "train"), read_half(folder, "test")
    found: Record = {}
    for file in folder.glob("*.json"):
        order = json.loads(file.read_text())["order"]
        for size in SIZES:
            own = order[:size]
            model = CoxPHSurvivalAnalysis(RIDGE).fit(scaled(x[:, own], x[:, own]), y)
            risk = model.predict(scaled(x_test[:, own], x[:, own]))
            index = concordance_index_censored(y_test["event"], y_test["time"], risk)[0]
            found.setdefault(file.stem, {})[str(size)] = float(index)
    (folder / "scores").write_text(json.dumps(found))


def child() -> None:
    """Do one thing among the peers: child table|shuffled|score|METHOD FOLDER TABLE HALF."""
    what, folder, name, half = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    warnings.filterwarnings("ignore")
    if what in ("table", "shuffled"):
        write_half(name, half, folder, what == "shuffled")
    elif what == "score":
        score_ranked(folder)
    else:
        order, selected = PEERS[what](*read_half(folder, "train"), half)
        ranked = {"order": [int(i) for i in order[: max(SIZES)]], "selected": selected}
        (folder / f"{what}.json").write_text(json.dumps(ranked))


# What the parent does; it imports nothing large, since a child's peak begins at its own.


def cost(*parts: Measured) -> Record:
    """Return what processes took, one after the other."""
    seconds, cpu = sum(one.seconds for one in parts), sum(one.cpu_seconds for one in parts)
    return {"seconds": seconds, "cpu": cpu, "peak_mb": max(one.peak_mb for one in parts)}


def ours(folder: Path) -> Record:
    """Ingest and run; return the cost, and how many are selected."""
    store, out = folder / "t.zarr", folder / "t.run"
    parts = [srs_ooc("ingest", folder / "train.csv", store, "--time", "time", "--event", "event")]
    parts.append(srs_ooc("run", store, "--out", out, "--threads", 1))
    features = list(features_of(out))
    order = [int(feature["name"][1:]) for feature in features[: max(SIZES)]]
    selected = sum(feature["selected"] for feature in features)
    (folder / f"{OURS}.json").write_text(json.dumps({"order": order, "selected": selected}))
    return {"selected": selected, "lambda": features[0]["inflation"], **cost(*parts)}


def one_half(python: str, key: Record, methods: Sequence[str]) -> list[Record]:
    """Return a record for each method."""
    name, half = key["table"], key["half"]
    with TemporaryDirectory() as place:
        folder, found = Path(place), dict[str, Record]()

        def do(what: str) -> Measured:
            command = [python, __file__, "child", what, place, name, str(half)]
            done = measure(command, limit_seconds=LIMIT_SECONDS)
            if done.status not in (0, None):
                raise SystemExit(f"failed: {' '.join(command)}")
            return done

        do("shuffled" if key["shuffled"] else "table")
        for who in methods:
            if who == OURS:
                found[who] = ours(folder)
            else:
                done = do(who)
                found[who] = cost(done) | {"finished": done.status == 0}
                if done.status == 0:
                    ranked = json.loads((folder / f"{who}.json").read_text())
                    found[who]["selected"] = ranked["selected"]
        do("score")
        scores = json.loads((folder / "scores").read_text())
    return [key | {"method": who, **found[who], "c": scores.get(who)} for who in methods]


def asked_for() -> argparse.Namespace:
    """Return the options of a command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--peers", default=sys.executable)
    parser.add_argument("--halves", nargs=2, type=int, default=(0, 10))
    parser.add_argument("--only", default="")
    parser.add_argument("--shuffled", action="store_true")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    return parser.parse_args()


def run() -> None:
    """Do what is left: a half of every table, then the next half."""
    asked = asked_for()
    results, end = Results(asked.results), time.monotonic() + 60 * asked.minutes
    for half in range(*asked.halves):
        for name in (name for name in TABLES if asked.only in name):
            key = {"table": name, "half": half, "shuffled": asked.shuffled}
            methods = METHODS[:2] if asked.shuffled else METHODS
            left = [who for who in methods if results.find(key | {"method": who}) is None]
            if left and time.monotonic() < end:
                for record in one_half(asked.peers, key, left):
                    results.add(record)


# The tables.

BEGIN, END = "<!-- tables: python benchmarks/survival.py report -->", "<!-- end of tables -->"
MEANS = "method; halves; C of 5; of 10; of 20; srs-ooc less it, 5; 10; 20; seconds; CPU s; peak MB"
EACH = (
    "table; halves; C of 10: {}; selected: srs-ooc; score test; select something: srs-ooc; score "
    "test; shuffled: halves; srs-ooc; score test; lambda"
)
Runs = dict[tuple[str, str], dict[int, Record]]
"""Records by table and method, then by half."""


def rows_of(names: str, rows: list[list[object]]) -> list[str]:
    """Return a table."""
    whole: list[list[Any]] = [names.split("; "), ["---"] * (names.count("; ") + 1), *rows]
    return ["", *(f"| {' | '.join(str(cell) for cell in cells)} |" for cells in whole)]


def error(values: Sequence[float]) -> float:
    """Return the standard error of a mean."""
    return stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")


def indices(runs: Runs, table: str, who: str, size: int) -> dict[int, float]:
    """Return C-indices by half, of the halves that the method finished."""
    some = runs[table, who].items()
    return {half: one["c"][str(size)] for half, one in some if one["c"] is not None}


def means_of(runs: Runs, tables: list[str], who: str) -> list[object]:
    """Return the row of a method: each table counts the same."""
    cells: list[object] = [who, min(len(runs[table, who]) for table in tables)]
    differences = []
    for size in SIZES:
        own = [list(indices(runs, table, who, size).values()) for table in tables]
        spread = sum(error(values) ** 2 for values in own) ** 0.5 / len(own)
        cells.append(f"{mean(map(mean, own)):.3f} ± {spread:.3f}")
        by_table = []
        for table in tables:
            best, its = (indices(runs, table, one, size) for one in (OURS, who))
            by_table.append(mean(best[half] - its[half] for half in best.keys() & its.keys()))
        differences.append(f"{mean(by_table):+.3f} ± {error(by_table):.3f}")
    cells += differences if who != OURS else [""] * len(SIZES)
    some = [one for table in tables for one in runs[table, who].values()]
    late = sum(one["c"] is None for one in some)
    seconds = f"{mean(one['seconds'] for one in some):.1f}" + f" ({late} not finished)" * (late > 0)
    cpu, peak = (mean(one[what] for one in some) for what in ("cpu", "peak_mb"))
    return [*cells, seconds, f"{cpu:.1f}", f"{peak:.0f}"]


def row_of(runs: Runs, null: Runs, table: str) -> list[object]:
    """Return the row of a table."""
    cells: list[object] = [table, len(runs[table, OURS])]
    cells += [f"{mean(indices(runs, table, who, 10).values()):.3f}" for who in METHODS]
    counts = [[one["selected"] for one in runs[table, who].values()] for who in METHODS[:2]]
    cells += [f"{mean(some):.0f}" for some in counts]
    cells += [sum(count > 0 for count in some) for some in counts]
    drawn = [[one["selected"] for one in null[table, who].values()] for who in METHODS[:2]]
    cells += [len(drawn[0]), *(sum(count > 0 for count in some) for some in drawn)]
    return [*cells, f"{mean(one['lambda'] for one in runs[table, OURS].values()):.2f}"]


def report() -> None:
    """Print the tables, and write them into the page."""
    runs, null = defaultdict[Any, Any](dict), defaultdict[Any, Any](dict)
    for line in Results(asked_for().results).records:
        where = null if line["shuffled"] else runs
        where[line["table"], line["method"]][line["half"]] = line
    tables = [table for table in TABLES if runs[table, OURS]]
    text = rows_of(MEANS, [means_of(runs, tables, who) for who in METHODS])
    each = EACH.format("; ".join(METHODS))
    text += rows_of(each, [row_of(runs, null, table) for table in tables])
    print("\n".join(text))
    page = PAGE.read_text()
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    PAGE.write_text("\n".join([before + BEGIN, *text, "", END + after]))


if __name__ == "__main__":
    subcommand(run=run, report=report, child=child)
