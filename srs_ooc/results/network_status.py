"""Where a network stands."""

from dataclasses import dataclass
from typing import Any

from srs_ooc.base.text import megabytes
from srs_ooc.runs.inputs import NETWORK
from srs_ooc.runs.ledger import Ledger, is_held
from srs_ooc.runs.resources import ClusterNote


@dataclass(frozen=True)
class NetworkStatus:
    """Where a network stands; sizes are in MB of 10**6 bytes.

    ``state`` is running, stopped or finished.

    ``identity`` has the options of the network, and what identifies its regulators, targets, rows
    and store. ``cluster`` is as of :class:`srs_ooc.results.status.Status`.
    """

    state: str
    targets: int
    targets_asked: int
    identity: dict[str, Any]
    peak_rss_mb: float
    seconds: float
    cluster: ClusterNote | None


def network_status_of(ledger: Ledger) -> NetworkStatus | None:
    """Return where the network of an open ledger stands, as committed; None if it is a run's."""
    if not ledger.has_meta(NETWORK):
        return None
    progress, identity = ledger.progress(), ledger.meta(NETWORK)
    asked = int(str(identity["targets"]).split()[0])
    at_work = "running" if is_held(ledger.run) else "stopped"
    return NetworkStatus(
        "finished" if progress.iteration >= asked else at_work,
        progress.iteration,
        asked,
        identity,
        megabytes(progress.peak_nbytes),
        round(progress.seconds, 3),
        ClusterNote.of(ledger),
    )
