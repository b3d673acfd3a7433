"""Options of a network, each declared once: they are its identity; and what is asked of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import Choice, Option, Params, Whole, option
from srs_ooc.networks.genie3 import ForestParams, Forests
from srs_ooc.networks.prs_edges import Probabilities, ProbabilityParams
from srs_ooc.networks.srs_edges import SubspaceParams, Subspaces
from srs_ooc.networks.weighing import Bench, EdgeParams, Weigher
from srs_ooc.runs.resources import Cluster

GENIE3, SRS, PRS = "genie3", "srs", "prs"
METHODS: dict[str, type[EdgeParams]] = {
    GENIE3: ForestParams,
    SRS: SubspaceParams,
    PRS: ProbabilityParams,
}


@dataclass(frozen=True, kw_only=True)
class _Common(Params):
    """What every method has."""

    method: str = option(
        Choice(tuple(METHODS)),
        "How a target's regulators are weighed: by a forest, by trees on random subspaces, or by "
        "learnt probabilities.",
        default=GENIE3,
    )
    seed: int = option(
        Whole(0, 2**64 - 1), "Everything random follows from it.", default=0, metavar="SEED"
    )


@dataclass(frozen=True)
class NetworkParams:
    """How the regulators of a target are weighed.

    Attributes
    ----------
    method : str
        One of :data:`METHODS`.
    seed : int
        Everything random follows from it.
    own : EdgeParams
        Options of the method.
    """

    method: str
    seed: int
    own: EdgeParams

    @classmethod
    def options(cls) -> dict[str, Option]:
        """Return the declarations of all methods, by name."""
        common = _Common.options()
        found = {"method": common["method"]}
        for params in METHODS.values():
            found |= {name: o for name, o in params.options().items() if name not in found}
        return found | {"seed": common["seed"]}

    @classmethod
    def owner_of(cls, name: str) -> str:
        """Return the methods that an option goes with, for its help; empty for all."""
        owners = [method for method, params in METHODS.items() if name in params.options()]
        return f"--method {' or '.join(owners)}" if owners else ""

    @classmethod
    def settle(cls, given: Mapping[str, Any], table: Any) -> Self:
        """Return the options as settled from those given; ``table`` plays no part.

        Raises
        ------
        UsageError
            If a value is outside its range, or an option is of another method.
        """
        common = _Common.settle(given, table)
        params = METHODS[common.method]
        known = params.options().keys() | _Common.options().keys()
        for name in cls.options():
            if name not in known and given.get(name) is not None:
                raise UsageError(
                    f"--{name.replace('_', '-')}: an option of {cls.owner_of(name)}, found "
                    f"--method {common.method}. Leave it out, or choose that method."
                )
        return cls(common.method, common.seed, params.settle(given, table))

    def values(self) -> dict[str, Any]:
        """Return the settled values by name, JSON-ready."""
        return {"method": self.method, "seed": self.seed} | self.own.values()


# What is asked of a network, and what became of it.

FOLDER_SUFFIX = ".network"


@dataclass(frozen=True)
class NetworkRequest:
    """What is asked of a network.

    Attributes
    ----------
    out : Path
        File of the edges, CSV or Parquet.
    params : NetworkParams
        Its identity, besides store, features and rows.
    regulators, targets, rows : Path or None
        Files of names; None for all.
    run : Path or None
        Folder of what is done; None for ``out`` with :data:`FOLDER_SUFFIX`.
    top : int or None
        Only so many edges.
    memory_mb : int
        Cap on the whole process.
    threads : int or None
        Workers; None for the cores there are.
    safe : bool
        No name in the CSV file is a formula to a spreadsheet.
    cluster : Cluster or None
        Workers elsewhere that targets are spread over; None for threads of this process.
    """

    out: Path
    params: NetworkParams
    regulators: Path | None = None
    targets: Path | None = None
    rows: Path | None = None
    run: Path | None = None
    top: int | None = None
    memory_mb: int = 512
    threads: int | None = None
    safe: bool = False
    cluster: Cluster | None = None

    @property
    def folder(self) -> Path:
        """Where what is done is kept."""
        return self.out.with_name(self.out.name + FOLDER_SUFFIX) if self.run is None else self.run


@dataclass(frozen=True)
class Network:
    """What became of a network.

    Attributes
    ----------
    out, run : str
        The file of its edges, and the folder of what is done.
    n_regulators, n_targets, n_done, n_edges : int
        Its size; targets done; edges written, 0 before all targets are.
    n_constant : int
        Targets without edges, as their values do not differ.
    n_duplicates : int
        Pairs of a target and a regulator with equal codes.
    duplicates : list of (str, str)
        The first of them: target, regulator.
    n_epochs : int
        Epochs of all targets together, where they are learnt jointly; else 0.
    seconds, peak_mb : float
        Time worked on targets, and the largest resident size so far.
    """

    out: str
    run: str
    n_regulators: int
    n_targets: int
    n_done: int
    n_edges: int
    n_constant: int
    n_duplicates: int
    seconds: float
    peak_mb: float
    duplicates: list[tuple[str, str]] = field(default_factory=list)
    n_epochs: int = 0

    @property
    def is_done(self) -> bool:
        """Whether all targets are done, and the edges written."""
        return self.n_done == self.n_targets


# The methods that weigh the regulators of one target at a time.


def weigher_of(params: EdgeParams, bench: Bench) -> Weigher:
    """Return what weighs the regulators of a target as the options say."""
    if isinstance(params, ForestParams):
        return Forests(params, bench)
    if isinstance(params, SubspaceParams):
        return Subspaces(params, bench)
    if isinstance(params, ProbabilityParams):
        return Probabilities(params, bench)
    raise TypeError(f"expected the options of a method, found {type(params).__name__}")
