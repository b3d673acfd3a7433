"""Features that do not matter pass at their level, also where censoring follows them.

    python benchmarks/research/censored_level.py [--tables 10000] [--seed 1]

For each design: how often rows trading places, and the test that is made (by risk sets where
censoring differs), reject at 0.05, 0.01 and 0.001, over these levels (docs/methods/censored.md).
"""

import argparse
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.evidence.null_model import Censored, censored_scores
from srs_ooc.evidence.rank_tests import Contrast, RankTarget, contrasts_log_p

LEVELS = (0.05, 0.01, 0.001)
DESIGNS: tuple[dict[str, Any], ...] = (
    *({"n": n, "who": who} for who in ("others", "carriers", "nobody") for n in (400, 100, 60)),
    *({"n": n, "share": 0.03} for n in (400, 60)),
    *({"n": n, "censored": 0.9} for n in (400, 60)),
    *({"n": n, "levels": levels} for levels in (3, 50) for n in (400, 60)),
    {"n": 400, "levels": 50, "contrast": Contrast.SPREAD},
    *({"n": n, "times": 6} for n in (400, 60)),
    *({"n": n, "strata": 5} for n in (400, 60)),
    {"n": 400, "strata": 40, "levels": 50},
    *({"n": n, "faster": 1.7} for n in (400, 60)),
    {"n": 400, "times": 6, "rounded_last": True},
)


def one_table(
    rng: np.random.Generator,
    n: int,
    share: float = 0.15,
    who: str = "others",
    censored: float = 0.5,
    levels: int = 2,
    times: int = 0,
    strata: int = 1,
    faster: float = 4.0,
    *,
    rounded_last: bool = False,
    contrast: Contrast = Contrast.LOCATION,
) -> tuple[NDArray[np.uint8], Censored, NDArray[np.intp] | None]:
    """Return a column that knows nothing of the time, what is seen of it, and strata."""
    column = rng.binomial(levels - 1, share, n) if levels < 4 else rng.permutation(n) * levels // n
    high = column / max(int(column.max()), 1) >= 0.5
    if contrast == Contrast.SPREAD:
        high = np.abs(column / (levels - 1) - 0.5) >= 0.25
    where = rng.integers(0, strata, n)
    event = rng.exponential(1.0, n) * (1 + 2 * where / strata)
    leaves = {"others": ~high, "carriers": high, "nobody": np.zeros(n, np.bool_)}[who]
    end = rng.exponential((1 - censored) / censored, n) / np.where(leaves, faster, 1.0)
    if times and not rounded_last:
        event, end = np.floor(event * times), np.floor(end * times)
    seen = np.minimum(event, end)
    seen = np.floor(seen * times) if rounded_last else seen
    return column.astype(np.uint8), Censored(seen, event <= end), where if strata > 1 else None


def rejected(seed: int, n_tables: int, design: dict[str, Any]) -> list[str]:
    """Return the shares over the levels: rows trading places, and the test that is made."""
    rng, only = np.random.default_rng(seed), design.get("contrast", Contrast.LOCATION)
    found = np.zeros((2, n_tables))
    for i in range(n_tables):
        column, censored, strata = one_table(rng, **design)
        target = RankTarget.of_scores(censored_scores(censored, strata), strata)
        made = target._replace(risk=censored.risk_sets(strata))
        for k, asked in enumerate((target, made)):
            found[k, i] = contrasts_log_p(column[None], 254, asked, only=only)[0, only]
    p = np.exp(np.nan_to_num(found))
    return [" / ".join(f"{(own <= a).mean() / a:.2f}" for a in LEVELS) for own in p]


def main() -> None:
    """Print a line for each design."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for design in DESIGNS:
        traded, made = rejected(given.seed, given.tables, design)
        words = ", ".join(f"{key} {value}" for key, value in design.items())
        print(f"{words}: rows trade places {traded}; made {made}", flush=True)


if __name__ == "__main__":
    main()
