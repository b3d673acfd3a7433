"""Stores of genes whose network is known, with files of the names of regulators and targets."""

import numpy as np
from stores import make_store


def expression(n_genes, n_regulators, n_rows, *, seed, noise):
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
