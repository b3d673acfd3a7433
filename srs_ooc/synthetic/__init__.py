"""Problems whose relevant features are known, by name.

A new problem is a class in a module here and a line in the table.
"""

from srs_ooc.synthetic.blocks import Blocks, Noise
from srs_ooc.synthetic.chain import Chain
from srs_ooc.synthetic.madelon import Madelon
from srs_ooc.synthetic.problems import Problem

PROBLEMS: dict[str, type[Problem]] = {kind.name: kind for kind in (Madelon, Chain, Blocks, Noise)}
