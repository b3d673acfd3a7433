"""The methods that weigh the regulators of one target at a time."""

from srs_ooc.networks.edge_params import EdgeParams
from srs_ooc.networks.forest_params import ForestParams
from srs_ooc.networks.forests import Forests
from srs_ooc.networks.probabilities import Probabilities
from srs_ooc.networks.probability_params import ProbabilityParams
from srs_ooc.networks.subspace_params import SubspaceParams
from srs_ooc.networks.subspaces import Subspaces
from srs_ooc.networks.weighing import Bench, Weigher


def weigher_of(params: EdgeParams, bench: Bench) -> Weigher:
    """Return what weighs the regulators of a target as the options say."""
    if isinstance(params, ForestParams):
        return Forests(params, bench)
    if isinstance(params, SubspaceParams):
        return Subspaces(params, bench)
    if isinstance(params, ProbabilityParams):
        return Probabilities(params, bench)
    raise TypeError(f"expected the options of a method, found {type(params).__name__}")
