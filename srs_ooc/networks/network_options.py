"""Options of a network, each declared once: they are its identity; and what is asked of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import Option
from srs_ooc.networks.genie3 import ForestParams
from srs_ooc.networks.prs_edges import ProbabilityParams
from srs_ooc.networks.srs_edges import SubspaceParams
from srs_ooc.networks.weighing import GENIE3, PRS, SRS, EdgeParams
from srs_ooc.runs.resources import Cluster

METHODS: dict[str, type[EdgeParams]] = {
    GENIE3: ForestParams,
    SRS: SubspaceParams,
    PRS: ProbabilityParams,
}


def network_options() -> dict[str, Option]:
    """Return the declarations of all methods, by name."""
    found: dict[str, Option] = {}
    for params in METHODS.values():
        found |= {name: o for name, o in params.options().items() if name not in found}
    return found | {"seed": found.pop("seed")}


def owner_of(name: str) -> str:
    """Return the methods that an option goes with, for its help; empty for all."""
    owners = [method for method, params in METHODS.items() if name in params.options()]
    return "" if len(owners) == len(METHODS) else f"--method {' or '.join(owners)}"


def settle_network(given: Mapping[str, Any]) -> EdgeParams:
    """Return the options as settled from those given.

    Raises
    ------
    UsageError
        If a value is outside its range, or an option is of another method.
    """
    method = EdgeParams.settle(given, None).method
    known = METHODS[method].options()
    for name in network_options():
        if name not in known and given.get(name) is not None:
            raise UsageError(
                f"--{name.replace('_', '-')}: an option of {owner_of(name)}, found "
                f"--method {method}. Leave it out, or choose that method."
            )
    return METHODS[method].settle(given, None)


# What is asked of a network, and what became of it.

FOLDER_SUFFIX = ".network"


@dataclass(frozen=True)
class NetworkRequest:
    """What is asked of a network.

    Attributes
    ----------
    out : Path
        File of the edges, CSV or Parquet.
    params : EdgeParams
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
    params: EdgeParams
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
