"""RS beside SRS in one setting, as plain values for the command line and for JSON."""

import math
from dataclasses import dataclass
from typing import Any

from srs_ooc.paper_theory.ratios import Magnitude
from srs_ooc.paper_theory.rounds import round_cost
from srs_ooc.paper_theory.settings import Alpha, Setting
from srs_ooc.paper_theory.times import (
    expected_found,
    expected_time,
    n_wanted_for,
    time_quantile,
)


@dataclass(frozen=True)
class Extras:
    """What is asked beside the mean time to find all: each None where not asked."""

    share: Alpha | None = None
    quantile: float | None = None
    after: int | None = None
    round_size: int | None = None


def compare(rs: Setting, srs: Setting, extras: Extras) -> dict[str, Any]:
    """Return the mean iterations of RS and SRS, and what else was asked.

    Parameters
    ----------
    rs, srs : Setting
        The same setting with alpha = 0 and with the alpha of interest.
    extras : Extras
        A share of the features instead of all; a quantile of the time; the number found after so
        many iterations; the cost of rounds.

    Returns
    -------
    dict
        ``scenario``, ``n_features``, ``q``, ``n_relevant``, ``alpha``, ``rs``, ``srs``,
        ``log10_rs``, ``log10_srs``: rs and srs are null where nothing is found (then the logarithm
        is null too) or above 1.7e308; ``reason`` says which, and is there only then. ``share``,
        ``quantile``, ``after`` and ``rounds`` are there only when asked.
    """
    wanted = n_wanted_for(srs, 1 if extras.share is None else extras.share)
    times = {"rs": expected_time(rs, wanted), "srs": expected_time(srs, wanted)}
    summary: dict[str, Any] = {
        "scenario": srs.scenario,
        "n_features": srs.n_features,
        "q": srs.subspace_size,
        "n_relevant": srs.n_relevant,
        "alpha": float(srs.alpha),
        **{name: finite(time) for name, time in times.items()},
        **{f"log10_{name}": time and time.log10 for name, time in times.items()},
    }
    reasons = {
        name: setting.why_not(wanted) or "above 1.7e308; see its logarithm"
        for name, setting in (("rs", rs), ("srs", srs))
        if summary[name] is None
    }
    if reasons:
        summary["reason"] = "; ".join(f"{name}: {why}" for name, why in reasons.items())
    return summary | _asked(rs, srs, extras, wanted)


def finite(time: Magnitude | None) -> float | None:
    """Return a mean time as a float; None where there is none, or above 1.7e308."""
    return time.value if time is not None and math.isfinite(time.value) else None


def _asked(rs: Setting, srs: Setting, extras: Extras, wanted: int) -> dict[str, Any]:
    """Return the parts that were asked for."""
    asked: dict[str, Any] = {}
    if extras.share is not None:
        asked["share"] = float(extras.share)
        asked["n_wanted"] = wanted
    if extras.quantile is not None:
        level = extras.quantile
        asked["quantile"] = {
            "level": level,
            "rs": time_quantile(rs, level, wanted),
            "srs": time_quantile(srs, level, wanted),
        }
    if extras.after is not None:
        asked["after"] = {
            "iterations": extras.after,
            "rs": expected_found(rs, [extras.after])[0],
            "srs": expected_found(srs, [extras.after])[0],
        }
    if extras.round_size is not None:
        size = extras.round_size
        asked["rounds"] = {
            "round_size": size,
            "rs": _round_summary(rs, size, wanted),
            "srs": _round_summary(srs, size, wanted),
        }
    return asked


def _round_summary(setting: Setting, round_size: int, wanted: int) -> dict[str, float] | None:
    cost = round_cost(setting, round_size, wanted)
    if cost is None:
        return None
    return {
        "n_rounds": cost.n_rounds,
        "n_iterations": cost.n_iterations,
        "n_lost": cost.n_lost,
        "speedup": cost.speedup,
    }
