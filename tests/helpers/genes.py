"""Stores of genes whose network is known, their networks, and edges as they are read."""

import csv

import numpy as np
from stores import make_store

from srs_ooc.methods.networks.network_run import NetworkRequest, settle_network, work_on_network
from srs_ooc.store.store import Store

JOINT = {"method": "prs", "models": 12, "folds": 3, "epochs": 8, "inclusion": 0.3, "joint": 0.001}
METHODS = {
    "genie3": {"trees": 40},
    "srs": {"method": "srs", "trees": 120, "subspace_size": 4},
    "prs": JOINT | {"joint": 0},
    "joint": JOINT,
}
"""Options of each method, quick."""


N_GENES, N_REGULATORS = 12, 6


def expression(n_genes=N_GENES, n_regulators=N_REGULATORS, n_rows=80, *, seed=1, noise=0.1):
    """Genes (n_genes, n_rows): each beyond the regulators follows two of them; and those two."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((n_genes, n_rows))
    edges = set()
    for gene in range(n_regulators, n_genes):
        first, second = rng.choice(n_regulators, 2, replace=False).tolist()
        values[gene] = values[first] - values[second] + noise * rng.standard_normal(n_rows)
        edges |= {(f"f{first}", f"f{gene}"), (f"f{second}", f"f{gene}")}
    return values, edges


def write_genes(folder, values, n_regulators, first_target):
    """Write ``t.zarr``, ``regulators.txt`` and ``targets.txt``."""
    make_store(folder / "t.zarr", values, np.arange(values.shape[1]) % 2)
    (folder / "regulators.txt").write_text("".join(f"f{i}\n" for i in range(n_regulators)))
    places = range(first_target, len(values))
    (folder / "targets.txt").write_text("".join(f"f{i}\n" for i in places))
    return folder


def files_of(folder):
    return {name: folder / f"{name}.txt" for name in ("regulators", "targets")}


def network(folder, out, *, watch=lambda _: True, notes=None, **options):
    """Work on a network of ``t.zarr`` in a folder."""
    kinds = {"top", "threads", "memory_mb", "regulators", "targets", "rows", "run"}
    asked = {name: options.pop(name) for name in kinds & set(options)}
    note = (lambda _: None) if notes is None else notes.append
    params = settle_network(({} if "method" in options else METHODS["genie3"]) | options)
    request = NetworkRequest(out, params, **asked)
    return work_on_network(Store.open(folder / "t.zarr"), request, watch, note)


def edges_of(file):
    with file.open(newline="") as stream:
        return [(r["regulator"], r["target"], float(r["weight"])) for r in csv.DictReader(stream)]
