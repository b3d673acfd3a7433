"""The problems there are, by name. A new problem is a file beside this one and a line here."""

from srs_ooc.synth.correlated import Blocks
from srs_ooc.synth.friedman import Friedman
from srs_ooc.synth.linear import Linear
from srs_ooc.synth.madelon import Madelon
from srs_ooc.synth.null import Noise
from srs_ooc.synth.problem import Problem
from srs_ooc.synth.scenarios import Chain, Clique, Marginal
from srs_ooc.synth.shifted import Imbalance, Shift

PROBLEMS: dict[str, type[Problem]] = {
    kind.name: kind
    for kind in (
        Madelon, Chain, Clique, Marginal, Blocks, Linear, Friedman, Shift, Imbalance, Noise
    )
}  # fmt: skip
