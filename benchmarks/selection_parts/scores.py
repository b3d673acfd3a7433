"""How well a selection and a ranking name the relevant features."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Truth:
    """Relevant features in units: a block counts once, else each feature is a unit."""

    units: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Scores:
    """``power``, ``f1`` and ``average_precision`` are None where nothing is relevant."""

    n_selected: int
    power: float | None
    false_share: float
    f1: float | None
    average_precision: float | None


def truth_of(record: dict[str, Any]) -> Truth:
    """Return the truth of the JSON record ``srs-ooc synth`` writes beside a table."""
    units = record.get("blocks") or [[name] for name in record["relevant"]]
    return Truth(tuple(tuple(position_of(name) for name in unit) for unit in units))


def position_of(name: str) -> int:
    """Return the source position in a feature's name."""
    return int(name.removeprefix("f"))


def score(truth: Truth, selected: Sequence[int], ranking: Iterable[int]) -> Scores:
    """Score one answer.

    The false share is that of irrelevant features among the selected, 0 where none is. F1 takes
    power for recall and one minus the false share for precision.
    """
    unit_of = {feature: i for i, unit in enumerate(truth.units) for feature in unit}
    n_false = sum(feature not in unit_of for feature in selected)
    false_share = n_false / max(1, len(selected))
    if not truth.units:
        return Scores(len(selected), None, false_share, None, None)
    power = len({unit_of[f] for f in selected if f in unit_of}) / len(truth.units)
    precision = 1 - false_share if selected else 0.0
    f1 = 2 * precision * power / (precision + power) if power else 0.0
    average = average_precision(unit_of, len(truth.units), ranking)
    return Scores(len(selected), power, false_share, f1, average)


def average_precision(unit_of: dict[int, int], n_units: int, ranking: Iterable[int]) -> float:
    """Return the mean over units of the precision where each is first found, 0 if never.

    Further members of a unit already found take no place in the ranking.
    """
    found: set[int] = set()
    place, total = 0, 0.0
    for feature in ranking:
        unit = unit_of.get(feature)
        if unit in found:
            continue
        place += 1
        if unit is not None:
            found.add(unit)
            total += len(found) / place
            if len(found) == n_units:
                break
    return total / n_units
