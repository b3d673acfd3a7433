"""The problems there are, by name. A new problem is a file beside this one and a line here."""

from srs_ooc.synth.madelon import Madelon
from srs_ooc.synth.problem import Problem

PROBLEMS: dict[str, type[Problem]] = {Madelon.name: Madelon}
