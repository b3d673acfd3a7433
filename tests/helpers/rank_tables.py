"""Small columns and targets crossed, and what the reference says of them."""

import numpy as np
import rank_tests_reference as reference
from hypothesis import strategies as st

from srs_ooc.evidence.rank_tests import Contrast, RankTarget, strongest_contrasts

MISSING = 255


def strengths(columns, missing_code, target, **given):
    """How strong the test of each column is."""
    return strongest_contrasts(columns, missing_code, target, **given)[0]


def joined_p_values(columns, target, **given):
    """Of all contrasts together."""
    columns = np.ascontiguousarray(np.atleast_2d(columns).astype(np.uint8))
    return 10.0 ** -strengths(columns, MISSING, target, **({"exactly": True} | given))


def p_values(columns, target, **given):
    """Of location alone."""
    return joined_p_values(columns, target, **({"only": Contrast.LOCATION} | given))


def strata_of(column, target):
    """The rows of each stratum: codes, missing ones included, and targets."""
    for start, stop in zip(target.starts[:-1], target.starts[1:], strict=True):
        yield column[target.rows[start:stop]], target.targets[start:stop]


def crossed(column, target):
    """The crossed strata that the reference takes, without empty levels, and the levels' codes."""
    tables, codes = [], []
    for own, to in strata_of(column, target):
        present = np.unique(own[own < MISSING])
        table = np.zeros((len(present), target.n_targets), int)
        there = own < MISSING
        np.add.at(table, (np.searchsorted(present, own[there]), to[there]), 1)
        if table.any():
            tables.append(table.tolist())
            codes.append(present.tolist())
    return tables, codes


def location_scores(column, target):
    """Scores of the levels, or None where they are by rank."""
    sizes = np.diff(target.starts)
    if len(sizes) < 2 or sizes.max() > reference.TINY_STRATUM:
        return None
    return reference.aligned_scores(*crossed(column, target))


def location_p(column, target, *, two_classes):
    """The p-value of location as the reference has it."""
    tables, scores = crossed(column, target)[0], location_scores(column, target)
    if not tables:
        return 1.0
    several = len(target.starts) > 2
    return float(
        reference.linear_p_value(tables, two_classes=two_classes, in_strata=several, scores=scores)
    )


@st.composite
def small_tables(draw, n_targets, most_rows=18):
    """A column, a target, strata or None."""
    n = draw(st.integers(4, most_rows))
    n_levels = draw(st.integers(2, 5))
    codes = st.sampled_from([*range(n_levels), MISSING, 0, 0])
    column = np.array([draw(codes) for _ in range(n)])
    target = np.array([draw(st.integers(0, n_targets - 1)) for _ in range(n)])
    strata = np.array([draw(st.integers(0, draw(st.integers(0, 2)))) for _ in range(n)])
    return column, target, strata if strata.any() else None


def null_tables(name, rng):
    """Many columns that nothing relates to their target."""
    if name == "rare":
        labels = (np.arange(800) < 80).astype(int)
        share = rng.uniform(0.01, 0.03, 20_000)[:, None]
        return (rng.random((20_000, 800)) < share).astype(int), RankTarget.of_classes(labels, 2)
    if name == "counts":
        labels = (np.arange(100) < 10).astype(int)
        return rng.poisson(0.15, (40_000, 100)), RankTarget.of_classes(labels, 2)
    if name == "zero-inflated":
        target = np.where(rng.random(400) < 0.9, 0, rng.random(400))
        share = rng.uniform(0.01, 0.05, 20_000)[:, None]
        return rng.poisson(share, (20_000, 400)), RankTarget.of_values(target)
    if name == "genotypes":
        labels = np.repeat(np.arange(5), [200, 100, 60, 24, 16])
        share = rng.uniform(0.01, 0.4, 20_000)[:, None]
        return rng.binomial(2, share, (20_000, 400)), RankTarget.of_classes(labels, 5)
    strata = np.arange(400) % 20
    target = rng.integers(0, 40, 400).astype(float)
    share = rng.uniform(0.01, 0.3, 20_000)[:, None]
    return rng.binomial(2, share, (20_000, 400)), RankTarget.of_values(target, strata)


def weights_of_sums(counts, scores, n_drawn):
    """Weights of the sums of ``n_drawn`` rows: a convolution of positive numbers, row by row."""
    weights = np.zeros((n_drawn + 1, max(scores) * n_drawn + 1))
    weights[0, 0] = 1
    for count, score in zip(counts, scores, strict=True):
        for _ in range(count):
            weights[1:, score:] += weights[:-1, : weights.shape[1] - score].copy()
        weights /= weights.max()
    return weights[n_drawn] / weights[n_drawn].sum()
