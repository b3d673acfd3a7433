"""Stores and work half done in formats 3 of stores and ledgers: what was made, and its pins."""

import json
import zipfile
from pathlib import Path

from access import (
    MEMORY,
    command,
    digests_of_store,
    json_of,
    status_of_run,
    without_trials,
)
from run_cases import predictions_of, results_of
from scripts import cells_of, stable
from tables import run_table, small_table

FOLDER = Path(__file__).parents[1] / "fixtures" / "format-3"
_ROLES = ("weight", "batch", "family", "amount", "family_label", "grade", "label")
_PROBE = {"judge": "probe", "probe_min_wins": "0.7", "subspace_size": 12, "iterations": 120}
_CLOSED = {"iterations": 60, "subspace_size": 20}
_PRS = {
    "method": "prs", "models": 8, "folds": 2, "epochs": 10, "inclusion": "0.1",
    "learning_rate": "0.02", "iterations": 100_000,
}  # fmt: skip
_RASE = {
    "method": "rase", "models": 6, "candidates": 10, "rounds": 3, "folds": 2, "max_size": 4,
    "iterations": 100_000,
}  # fmt: skip
_MODEL = {"iterations": 40, "subspace_size": 8, "model_folds": 3}
_SCREEN = {"screen": 15, "screen_draws": 10}
_SAVED = {"save_trees": True}
_PRS_GENES = {
    "method": "prs", "models": 6, "folds": 2, "epochs": 8, "inclusion": "0.2",
    "learning_rate": "0.02",
}  # fmt: skip
_IDS = {"row_ids": "id"}
STORES = {
    "mixed": ("mixed.csv", {"target": "label"}),
    "numbers": ("numbers.csv", {"target": "label"}),
    "amounts": ("amounts.csv", {"target": "amount", "task": "regression"}),
    "roles": (
        "roles.csv",
        {
            "target": "label", "weights": "weight", "groups": "family",
            "strata": ("batch", "plate"), "ignore": ("amount",),
        },
    ),
    "wide": ("roles.csv", {"target": "amount", "code_dtype": "uint16", "ignore": ("label",)}),
    "codes": ("mixed.csv", {"target": "label", "keep_values": False}),
    "free": ("numbers.csv", {"no_target": True, "ignore": ("label",)}),
}  # fmt: skip
"""Name: table, and how it was ingested."""
RUNS = {
    "probe": ("numbers", _PROBE, "", 70),
    "probe-trees": ("mixed", _PROBE | _SAVED, "", 70),
    "positive": ("numbers", _CLOSED | {"judge": "positive"}, "", 20),
    "prs": ("numbers", _PRS | _SAVED, "", 90),
    "prs-end": ("numbers", _PRS | _SAVED, "", 165),
    "prs-screen": ("numbers", _PRS | _SCREEN, "screen", 30),
    "prs-screened": ("numbers", _PRS | _SCREEN, "", 260),
    "rase": ("mixed", _RASE | _SAVED, "round 2", 4),
    "rase-end": ("mixed", _RASE | _SAVED, "round 3", 10),
    "rase-screen": ("numbers", _RASE | _SCREEN, "screen", 50),
    "rase-of-knn": ("numbers", _RASE | {"model": "knn", "rounds": 2}, "round 2", 3),
    "rs-of-knn": ("numbers", _MODEL | {"method": "rs", "model": "knn"}, "", 20),
    "srs-of-linear": ("amounts", _MODEL | {"method": "srs", "model": "linear"}, "", 25),
}  # fmt: skip
"""Name: store, options, and at which call of ``progress`` in which stage it was interrupted."""
NETWORKS = {
    "genie3": ({"trees": 10}, 9),
    "srs": ({"method": "srs", "trees": 20, "subspace_size": 4}, 9),
    "prs": (_PRS_GENES, 9),
    "joint": (_PRS_GENES | {"joint": "0.01"}, 7),
}
NAMES = [
    *(f"store {name}" for name in STORES),
    *(f"run {name}" for name in RUNS),
    *(f"network {name}" for name in NETWORKS),
]
GENES = {"regulators": [f"g{i}" for i in range(8)], "targets": [f"g{i}" for i in range(8, 20)]}


def write_tables(place):
    tables = {
        "mixed": run_table(60, 60, missing=True, categories=True).without(*_ROLES[:-1]),
        "numbers": run_table(60, 60).without(*_ROLES[:-1]),
        "amounts": run_table(60, 60).without(*(role for role in _ROLES if role != "amount")),
        "roles": small_table(),
    }
    for name, table in tables.items():
        (place / f"{name}.csv").write_text(table.text(), encoding="utf-8")


def unpack(kind, name, place):
    """Copy the stores and one piece of work into ``place``; return the folder of the work."""
    for archive in {"stores", f"{kind}-{name}" if kind != "store" else "stores"}:
        with zipfile.ZipFile(FOLDER / f"{archive}.zip") as packed:
            packed.extractall(place)
    return place / (name if kind == "store" else f"{kind}-{name}")


def pin_of_fixture(name, place):
    """Of a store what it holds; of work half done where it stood, and what it ends with."""
    kind, name = name.split()
    found = unpack(kind, name, place)
    if kind == "store":
        about = stable(json_of("inspect", found, "--json"), place)
        return {"holds": digests_of_store(found), "says": about}
    if kind == "network":
        stood = stable(json_of("status", found, "--json"), place)
        return {"stood": stood} | edges_of(name, place)
    store, options = RUNS[name][:2]
    stood = status_of_run(found)
    first = [record["name"] for record in json_of("features", found, "--top", 5, "--json")]
    with without_trials():
        command("resume", found, *MEMORY, "--threads", 1)
    command("verify", found)
    return {"stood": stood, "first": first, "ends": ends_of(found, place, store, options)}


def ends_of(run, place, store, options):
    """What a run holds; what was planned is of the machine."""
    found = results_of(run, place / store)
    found["status"]["planned_iterations"] = None
    saved = ("--save-trees",) if "save_trees" in options else ()
    write_tables(place)
    (place / STORES[store][0]).rename(place / "table.csv")
    return found | predictions_of(run, place, saved)


def words_of(options):
    """Options of a call as words of the command line."""
    words = []
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        words += [flag] if value is True else [flag, value]
    return words


def edges_of(name, place):
    """What the network ends with, begun or gone on with."""
    options = words_of(NETWORKS[name][0])
    for side, names in GENES.items():
        (place / side).write_text("".join(f"{gene}\n" for gene in names))
        options += [f"--{side}", place / side]
    out, run = place / "edges.csv", place / f"network-{name}"
    words = ("--out", out, "--run", run, "--threads", 1, "--json", *MEMORY)
    said = json.loads(command("network", place / "numbers", *options, *words))
    return {"ends": stable(said, place), "edges": cells_of(out.read_text(encoding="utf-8"))}
