"""Claim: with the sample that Theorem I.1 of RFEST asks for, the error is what it promises.

First, classifiers whose error is known exactly. Relevant features are told from irrelevant ones in
all but a share delta of samples; "worst" has the probabilities of the proof at their bounds,
"spread" has errors at random assignments. Counts of a sample are drawn from their exact law: what
altering a feature does to a row is one toss of a coin, independent of the other features'.

Second, the engine's trees: `run --save-trees` on rows of exact cliques and chains among fair bits,
then `sensitivity` on fresh rows, as many as the theorem asks for at the error measured on 20,000
others (400 where it says nothing). Shown: in how many tables all relevant features come before all
irrelevant ones, by the accuracy lost (what the theorem is about) and by the probability lost.

    python benchmarks/research/rfest_theory.py [--samples 20000] [--tables 20]
"""

import argparse
import itertools
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import srs_ooc

DELTA = 0.05
N_FEATURES = 1000
N_TEST = 20_000
Bits = NDArray[np.int64]


# Theorem I.1 of the supplement of RFEST: how many fresh rows sensitivity asks for.
#
# A classifier of error eps labels rows by features of a product distribution. Altering (flipping) a
# relevant feature makes it wrong with probability at least I_min - rho eps, an irrelevant one with
# at most rho eps. Where their middle is apart from both by tau > 0, Hoeffding's bound for each
# feature and the union bound over all of them give the size of the sample.
#
# As printed the theorem allows 2 rho eps = I_min, for which tau is 0 and nothing follows: the
# example that ends the supplement, consensus on three bits and a classifier that always says no, is
# such a case, and no sample distinguishes its features. The proof holds where I_min > 2 rho eps.


def margin(min_influence: float, rho: float, error: float) -> float:
    """Return tau = I_min / 2 - rho eps.

    Parameters
    ----------
    min_influence : float
        I_min: the least probability, over relevant features, that flipping one changes the label.
    rho : float
        The largest ratio, over features, of the probabilities of its two values.
    error : float
        eps: the classifier's true error.
    """
    return min_influence / 2 - rho * error


def sample_size(
    n_features: int, delta: float, min_influence: float, rho: float, error: float
) -> int:
    """Return t = ln(n / delta) / (2 tau^2), rounded up.

    With that many rows, drawn from the distribution and not seen in training, all relevant features
    have a higher accuracy lost than all irrelevant ones with probability at least ``1 - delta``.

    Raises
    ------
    ValueError
        If 2 rho eps is not below I_min: the theorem says nothing then.
    """
    tau = margin(min_influence, rho, error)
    if not tau > 0:
        raise ValueError(
            f"expected an error below I_min / (2 rho) = {min_influence / (2 * rho):.4g}, found "
            f"{error:.4g}"
        )
    return ceil(log(n_features / delta) / (2 * tau * tau))


@dataclass(frozen=True)
class Concept:
    """A label by ``n_relevant`` independent bits and a hidden number below ``n_hidden``.

    The hidden number makes a target noisy; the theorem holds with it as an input that nobody
    alters. ``ones`` is the probability that a bit is 1.
    """

    name: str
    n_relevant: int
    label: Callable[[Bits, Bits], Bits]
    n_hidden: int = 1
    ones: float = 0.5

    @property
    def rho(self) -> float:
        """The ratio of the probabilities of the two values."""
        return max(self.ones, 1 - self.ones) / min(self.ones, 1 - self.ones)

    def cells(self) -> tuple[Bits, Bits, NDArray[np.float64]]:
        """Return bits (n_cells, r), hidden numbers and probabilities of all cells."""
        every = list(itertools.product((0, 1), repeat=self.n_relevant))
        bits = np.repeat(np.array(every), self.n_hidden, axis=0)
        hidden = np.tile(np.arange(self.n_hidden), len(every))
        chances = np.where(bits == 1, self.ones, 1 - self.ones).prod(axis=1) / self.n_hidden
        return bits, hidden, chances

    def min_influence(self) -> float:
        """Return I_min: the least chance, over bits, that flipping one changes the label."""
        bits, hidden, chances = self.cells()
        found = []
        for j in range(self.n_relevant):
            other = bits.copy()
            other[:, j] = 1 - other[:, j]
            changed = self.label(bits, hidden) != self.label(other, hidden)
            found.append(float(chances[changed].sum()))
        return min(found)

    def least_error(self) -> float:
        """Return the error of the best classifier, which does not see the hidden number."""
        bits, hidden, chances = self.cells()
        labels = self.label(bits, hidden)
        by_bits = chances.reshape(-1, self.n_hidden)
        ones = (chances * labels).reshape(-1, self.n_hidden).sum(axis=1)
        return float(np.minimum(ones, by_bits.sum(axis=1) - ones).sum())

    def draw(self, rng: np.random.Generator, n_rows: int, n_features: int) -> tuple[Bits, Bits]:
        """Return a table of bits, the first ones relevant, and its labels."""
        bits = (rng.random((n_rows, n_features)) < self.ones).astype(np.int64)
        hidden = rng.integers(0, self.n_hidden, n_rows)
        return bits, self.label(bits[:, : self.n_relevant], hidden)


def parity(bits: Bits, _: Bits) -> Bits:
    """Return the label of a clique."""
    return np.asarray(bits.sum(axis=1) % 2, np.int64)


def chain(bits: Bits, hidden: Bits) -> Bits:
    """Return the parity of the first ``hidden + 1`` bits."""
    sums = bits.cumsum(axis=1)
    return np.asarray(np.take_along_axis(sums, hidden[:, None], axis=1)[:, 0] % 2, np.int64)


def consensus(bits: Bits, _: Bits) -> Bits:
    """Return whether all bits agree."""
    return np.asarray((bits == bits[:, :1]).all(axis=1), np.int64)


def conjunction(bits: Bits, _: Bits) -> Bits:
    """Return whether all bits are 1."""
    return np.asarray(bits.min(axis=1), np.int64)


CONCEPTS = [
    Concept("clique of 2", 2, parity),
    Concept("clique of 3", 3, parity),
    Concept("clique of 3, P(1) = 3/4", 3, parity, ones=0.75),
    Concept("consensus of 3", 3, consensus),
    Concept("consensus of 4", 4, consensus),
    Concept("AND of 2", 2, conjunction),
]
GROWN = [
    *CONCEPTS[:2],
    CONCEPTS[3],
    CONCEPTS[5],
    Concept("chain of 2", 2, chain, 2),
    Concept("chain of 3", 3, chain, 3),
]


def missed(
    rng: np.random.Generator, relevant: float, irrelevant: float, r: int, t: int, samples: int
) -> float:
    """Return the share of samples of ``t`` rows whose features are not told apart.

    ``relevant`` and ``irrelevant`` are the chances that altering such a feature makes a row wrong.
    """
    lowest = rng.binomial(t, relevant, (samples, r)).min(axis=1)
    # The largest of many equal laws, by one uniform number through the law's distribution.
    counts = np.arange(t + 1)
    log_chance = _log_binomial(t, irrelevant, counts)
    below = np.minimum(np.cumsum(np.exp(log_chance)), 1.0) ** (N_FEATURES - r)
    highest = np.searchsorted(below, rng.random(samples))
    return float((lowest <= highest).mean())


def _log_binomial(n: int, p: float, k: Bits) -> NDArray[np.float64]:
    if p == 0:
        return np.where(k == 0, 0.0, -np.inf)
    steps = np.log(np.arange(n, 0, -1)) - np.log(np.arange(1, n + 1))
    chosen = np.append(0.0, np.cumsum(steps))
    found: NDArray[np.float64] = chosen[k] + k * np.log(p) + (n - k) * np.log1p(-p)
    return found


def known_errors(samples: int) -> None:
    """Print the table of classifiers of known error."""
    rng = np.random.default_rng(0)
    print(f"n = {N_FEATURES:,} features, delta = {DELTA}, {samples:,} samples each\n")
    print("| concept | I_min | rho | error | tau | rows t | missed, worst | missed, spread "
          "| missed at t / 4, worst |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|")
    for concept in CONCEPTS:
        influence, rho = concept.min_influence(), concept.rho
        for share in (0.25, 0.75):
            error = share * influence / (2 * rho)
            tau, t = margin(influence, rho, error), 0
            t = sample_size(N_FEATURES, DELTA, influence, rho, error)
            worst = influence - rho * error, rho * error
            spread = influence * (1 - error) + (1 - influence) * error, error
            r = concept.n_relevant
            found = [missed(rng, *chances, r, t, samples) for chances in (worst, spread)]
            fewer = missed(rng, *worst, r, t // 4, samples)
            print(
                f"| {concept.name} | {influence:.3g} | {rho:.3g} | {error:.3g} | {tau:.3g} | {t:,} "
                f"| {found[0]:.4f} | {found[1]:.4f} | {fewer:.4f} |"
            )


def grown(concept: Concept, folder: Path, seed: int, n_features: int) -> dict[str, float]:
    """Return of one table: error, rows asked for, and whether features are told apart."""
    rng = np.random.default_rng([seed, concept.n_relevant])
    n_train, n_most = 600, 3000
    bits, labels = concept.draw(rng, n_train + n_most, n_features)
    store, run = folder / "t.zarr", folder / "t.run"
    srs_ooc.ingest(bits.astype(np.float32), store, target=labels)
    ids = [str(i + 1) for i in range(len(labels))]
    options = {"judge": "positive", "q": n_features, "splitter": "best", "max_features": 0.5}
    result = srs_ooc.run(
        store, out=run, rows=ids[:n_train], save_trees=True, iterations=200, seed=seed, **options
    )
    test, truth = concept.draw(rng, N_TEST, n_features)
    said = result.predict(test.astype(np.float32), "records")
    error = float(np.mean([int(one["prediction"]) for one in said] != truth))
    error = max(error, concept.least_error())  # below that by chance alone
    influence, rho = concept.min_influence(), concept.rho
    holds = margin(influence, rho, error) > 0
    asked = sample_size(n_features, DELTA, influence, rho, error) if holds else 400
    t = min(asked, n_most)
    found = result.sensitivity(rows=ids[n_train : n_train + t]).features("records")
    relevant = {f"f{j}" for j in range(concept.n_relevant)}
    told = {"error": error, "rows": t, "holds": float(holds)}
    for name in ("accuracy_lost", "score"):
        own = [one[name] for one in found if one["name"] in relevant]
        others = [one[name] for one in found if one["name"] not in relevant]
        all_used = len(own) == len(relevant)
        told[name] = float(all_used and min(own) > max(others, default=0.0))
    return told


def grown_trees(tables: int, n_features: int) -> None:
    """Print the table of the engine's trees."""
    print(f"\n{tables} tables of {n_features} features each, 600 rows trained on, 200 trees\n")
    print("| concept | I_min / 2 rho | least error | error of the trees | hypothesis holds "
          "| rows | told apart, accuracy lost | told apart, probability lost |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    for concept in GROWN:
        found = []
        for seed in range(tables):
            with tempfile.TemporaryDirectory() as folder:
                found.append(grown(concept, Path(folder), seed, n_features))
        mean = {name: float(np.mean([one[name] for one in found])) for name in found[0]}
        print(
            f"| {concept.name} | {concept.min_influence() / (2 * concept.rho):.3g} "
            f"| {concept.least_error():.3g} | {mean['error']:.3f} "
            f"| {round(mean['holds'] * tables)} of {tables} | {mean['rows']:.0f} "
            f"| {round(mean['accuracy_lost'] * tables)} | {round(mean['score'] * tables)} |",
            flush=True,
        )


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--features", type=int, default=30, help="of the trees' tables")
    given = parser.parse_args()
    known_errors(given.samples)
    if given.tables:
        grown_trees(given.tables, given.features)


if __name__ == "__main__":
    main()
