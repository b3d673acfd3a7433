"""What is asked of a network, and what became of it."""

from dataclasses import dataclass, field
from pathlib import Path

from srs_ooc.networks.params import NetworkParams
from srs_ooc.runs.resources import Cluster

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
