"""Problems whose relevant features are known, by name.

A new problem is a class in a module here and a line in the table.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import check_known
from srs_ooc.synthetic.blocks import Blocks, Noise
from srs_ooc.synthetic.chain import Chain
from srs_ooc.synthetic.madelon import Madelon
from srs_ooc.synthetic.problems import Problem

PROBLEMS: dict[str, type[Problem]] = {kind.name: kind for kind in (Madelon, Chain, Blocks, Noise)}


def problem_of(name: str, given: Mapping[str, Any]) -> Problem:
    """Return the problem with its parameters as given, by name (``rows`` for ``n_rows``).

    An exact chain has a row of each cell where no number of rows is given.

    Raises
    ------
    UsageError
        If there is no such problem, or a parameter is unknown, absent or out of range.
    """
    kind: Any = PROBLEMS.get(name)
    if kind is None:
        raise UsageError(f"problem: expected {' or '.join(PROBLEMS)}, found {name!r}.")
    known = {one.name.removeprefix("n_"): one for one in fields(kind)}
    check_known(given, known, name)
    if given.get("exact") and "rows" not in given and "relevant" in given:
        n_relevant = min(max(given["relevant"], 1), kind.most_relevant)
        given = {"rows": max(2, kind.n_cells(n_relevant)), **given}
    for parameter, one in known.items():
        if one.default is MISSING and parameter not in given:
            instead = " (or --exact)" * (name == "chain" and parameter == "rows")
            raise UsageError(f"--{parameter}: expected a number for {name}{instead}, found none.")
    made: Problem = kind(**{known[parameter].name: value for parameter, value in given.items()})
    return made
