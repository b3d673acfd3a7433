"""A compacted run as people and programs read it."""

from dataclasses import dataclass
from typing import Any

from srs_ooc.base.frames import frame_of
from srs_ooc.compaction.compact import Compacted
from srs_ooc.store.store import Store


@dataclass(frozen=True)
class Size:
    """One size: mean score on rows held out, its standard error, and whether it is chosen."""

    features: int
    score: float
    error: float
    chosen: bool


@dataclass(frozen=True)
class Member:
    """One feature of the chosen set, and those that can stand in for it."""

    rank: int
    name: str
    stand_ins: tuple[str, ...]


@dataclass(frozen=True)
class MemberRecord:
    """A member as a line of a table; names of stand-ins are separated by blanks."""

    rank: int
    name: str
    n_stand_ins: int
    stand_ins: str


@dataclass(frozen=True)
class SmallSet:
    """A small set of features that predicts about as well as any of a run.

    Attributes
    ----------
    n_selected : int
        Features that the run selected from all rows.
    n_selected_within : list of int
        Features selected without the rows of each fold.
    sizes : list of Size
        Score of the nested set of each size, on rows held out.
    best : int
        The size with the best mean score.
    members : list of Member
        The chosen set, best first.
    """

    n_selected: int
    n_selected_within: list[int]
    sizes: list[Size]
    best: int
    members: list[Member]

    @property
    def names(self) -> list[str]:
        """Names of the chosen features, best first."""
        return [member.name for member in self.members]

    @property
    def records(self) -> list[MemberRecord]:
        """The chosen features as lines of a table."""
        return [
            MemberRecord(one.rank, one.name, len(one.stand_ins), " ".join(one.stand_ins))
            for one in self.members
        ]

    def features(self, kind: str = "pandas") -> Any:
        """Return the chosen features as a frame (``pandas``, ``polars``) or ``records``."""
        return frame_of(kind, MemberRecord, self.records)

    def curve(self, kind: str = "pandas") -> Any:
        """Return the score of each size as a frame (``pandas``, ``polars``) or ``records``."""
        return frame_of(kind, Size, self.sizes)


def small_set(found: Compacted, store: Store, max_features: int | None = None) -> SmallSet:
    """Return the set that is chosen of a compacted run, by name."""
    positions, names = store.array("positions"), store.names
    chosen, curve = found.chosen(max_features), found.curve

    def name(stored: int) -> str:
        return names[int(positions[stored])]

    points = zip(curve.sizes, curve.means.tolist(), curve.errors.tolist(), strict=True)
    pairs = zip(found.order[:chosen], found.stand_ins, strict=False)
    return SmallSet(
        found.n_selected,
        found.n_selected_within,
        [Size(size, mean, error, size == chosen) for size, mean, error in points],
        curve.sizes[curve.best],
        [
            Member(rank, name(feature), tuple(map(name, others)))
            for rank, (feature, others) in enumerate(pairs, 1)
        ],
    )
