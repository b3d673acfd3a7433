"""Options of a network, each declared once: they are its identity."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import Choice, Option, Params, Whole, option
from srs_ooc.networks.edge_params import EdgeParams
from srs_ooc.networks.forest_params import ForestParams
from srs_ooc.networks.probability_params import ProbabilityParams
from srs_ooc.networks.subspace_params import SubspaceParams

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
