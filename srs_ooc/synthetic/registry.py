"""The problems there are, by name. A new problem is a file beside this one and a line here."""

from srs_ooc.synthetic.correlated import Blocks
from srs_ooc.synthetic.friedman import Friedman
from srs_ooc.synthetic.linear import Linear
from srs_ooc.synthetic.madelon import Madelon
from srs_ooc.synthetic.null import Noise
from srs_ooc.synthetic.problem import Problem
from srs_ooc.synthetic.scenarios import Chain, Clique, Marginal
from srs_ooc.synthetic.shifted import Imbalance, Shift

PROBLEMS: dict[str, type[Problem]] = {
    kind.name: kind
    for kind in (
        Madelon, Chain, Clique, Marginal, Blocks, Linear, Friedman, Shift, Imbalance, Noise
    )
}  # fmt: skip
