"""What runs need by the published constants, and what plans say of them."""

from itertools import product

from access import MEMORY, json_of, needs_of
from digests import rounded
from run_cases import make_store

MB = 10**6
SHAPES = {
    "72 rows x 850,000": (72, 850_000, 2, 1),
    "1,000 rows x 100,000": (1_000, 100_000, 2, 1),
    "100,000 rows x 10,000, 10 classes": (100_000, 10_000, 10, 1),
    "5,000 rows x 30,000, uint16": (5_000, 30_000, 3, 2),
    "300 rows x 500, regression": (300, 500, 1, 1),
    "20,000 rows x 1,000,000, regression": (20_000, 1_000_000, 1, 1),
}
OPTIONS: dict[str, dict[str, object]] = {
    "tests": {},
    "probe": {"judge": "probe"},
    "probe, trees saved": {"judge": "probe"},
    "positive, 5 trees, bootstrap": {
        "judge": "positive",
        "trees_per_subspace": 5,
        "bootstrap": True,
    },
    "probe, best splits, depth 4": {"judge": "probe", "splitter": "best", "max_depth": 4},
    "probe, leaves of 5, value thresholds": {
        "judge": "probe",
        "min_samples_leaf": 5,
        "thresholds": "value",
    },
}
CAPS = (128, 512, 4096)
NEEDS = [f"{shape}; {options}" for shape, options in product(SHAPES, OPTIONS)]


def pin_of_needs(name, _folder):
    """Of each cap: q by default and at most, and the smallest cap that holds a run at that q."""
    shape, options = name.split("; ")
    n_rows, n_features, n_classes, code_nbytes = SHAPES[shape]
    by_value = OPTIONS[options].get("thresholds") == "value"
    numbers = {
        "n_rows": n_rows,
        "n_candidates": n_features,
        "n_features": n_features,
        "n_classes": n_classes,
        "code_nbytes": code_nbytes,
        "n_channels": 1 if n_classes == 1 else 0,
        "n_values": min(254 if code_nbytes == 1 else 65_534, n_rows) if by_value else 0,
    }
    saves = "saved" in options
    return {f"{cap} MB": needs_of(numbers, OPTIONS[options], cap, saves=saves) for cap in CAPS}


_NUMBERS = ("--n-rows", 72, "--n-features", 850_000)
PLANS = {
    "numbers, 4 classes, 128 MB": (
        None,
        (*_NUMBERS, "--n-classes", 4, "--memory-mb", 128),
    ),
    "numbers, probe, alpha 0": (None, (*_NUMBERS, "--judge", "probe", "--alpha", "0")),
    "numbers, q max": (None, (*_NUMBERS, "--q", "max")),
    "numbers, 3 trees, draw block 16, value": (
        None,
        (
            *(*_NUMBERS, "--trees-per-subspace", 3),
            *("--with", "draw_block=16", "--with", "thresholds=value"),
        ),
    ),
    "numbers, tests": (None, _NUMBERS),
    "numbers, many rows, tests": (None, ("--n-rows", 200_000, "--n-features", 20_000)),
    "store, tests": ((), MEMORY),
    "store, regression, probe": (
        ("amount", "--task", "regression"),
        (*MEMORY, "--judge", "probe", "--q", 50),
    ),
}
_WORDS = {"reason", "what", "how", "purpose", "store", "seconds_how"}
"""Texts of a plan: what they say may be said better."""


def pin_of_plan(name, folder):
    """The plan without times, places and texts."""
    table, options = PLANS[name]
    stores = [] if table is None else [make_store(folder, *table)]
    plan = json_of("plan", *stores, *options, "--threads", 2, "--json")
    plan["sight"] = plan.pop("power")  # as pinned
    return _numbers_of(rounded(plan))


def _numbers_of(value):
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if key not in _WORDS}
        return {key: _numbers_of(item) for key, item in kept.items() if "seconds" not in key}
    if isinstance(value, list):
        return [_numbers_of(item) for item in value]
    return value
