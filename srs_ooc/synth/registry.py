"""The problems there are, by name. A new problem is a file beside this one and a line here."""

from srs_ooc.synth.madelon import Madelon
from srs_ooc.synth.problem import Problem
from srs_ooc.synth.scenarios import Chain, Clique, Marginal

PROBLEMS: dict[str, type[Problem]] = {
    kind.name: kind for kind in (Madelon, Chain, Clique, Marginal)
}
