"""Calls that need no run: ``srs_ooc.scores``, ``synth``, ``theory``."""

from collections.abc import Mapping
from dataclasses import fields
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from srs_ooc.api.runs import StoreOrPath, store_of
from srs_ooc.base.budget import growth_counted
from srs_ooc.base.errors import UsageError
from srs_ooc.base.frames import check_kind, frame_of
from srs_ooc.base.options import Whole, python_spelling
from srs_ooc.base.text import MB
from srs_ooc.planning.paper_theory import SCENARIOS, Extras, Setting, compare
from srs_ooc.results.live import Progress, interruptible
from srs_ooc.runs.item_weights import ScoreRecord, ScoreRequest, score_table
from srs_ooc.runs.settling import NamesOrFile, names_file
from srs_ooc.samplers.less import ScoreParams
from srs_ooc.synthetic.output import write_table
from srs_ooc.synthetic.problem import describe
from srs_ooc.synthetic.registry import PROBLEMS

SCORES_MB = 512
"""Cap on what scoring takes, in MB, unless another is given."""


def scores(
    store: StoreOrPath,
    kind: str = "pandas",
    *,
    top: int | None = None,
    seed: int = 0,
    rows: NamesOrFile = None,
    exclude: NamesOrFile = None,
    exclude_missing: bool = False,
    memory_mb: int = SCORES_MB,
    progress: Progress = None,
    **options: Any,
) -> Any:
    """Score the columns of a store by themselves, as ``method="less"`` would draw them.

    The same as ``srs-ooc scores``. The target is not looked at.

    Parameters
    ----------
    store : Store or path
        The store.
    kind : {'pandas', 'polars', 'records'}
        A DataFrame, or a list of dicts.
    top : int, optional
        Only the first so many.
    seed : int
        What the passes over many rows draw by chance follows from it.
    rows, exclude, exclude_missing
        As for :func:`srs_ooc.run`.
    memory_mb : int
        Cap on growth of the process, in MB of 10^6 bytes.
    progress
        As for :func:`srs_ooc.run`.
    **options
        ``scores`` (``leverage`` or ``norm``), ``rank``, ``center``, ``matrix``, ``power_passes``:
        see ``srs-ooc scores --help``.

    Returns
    -------
    DataFrame or list of dict
        ``rank``, ``name``, ``score``, ``share``, highest score first.

    Raises
    ------
    UsageError, StoreError, BudgetError
        As on the command line.
    """
    with python_spelling(), growth_counted(), TemporaryDirectory(prefix="srs-ooc-") as scratch:
        check_kind(kind)
        _check_known(options, ScoreParams.options(), "scores")
        request = ScoreRequest(
            ScoreParams.settle({k: v for k, v in options.items() if v is not None}, None),
            Whole(0, 2**64 - 1).canonical("seed", seed),
            names_file(exclude, Path(scratch) / "exclude", "exclude"),
            names_file(rows, Path(scratch) / "rows", "rows"),
            exclude_missing,
        )
        with interruptible(progress) as watch:
            found = score_table(store_of(store), request, memory_mb * MB, watch)
        assert found is not None, "it was not stopped"
        return frame_of(kind, ScoreRecord, islice(found, top))


def synth(
    problem: str,
    out: str | Path,
    *,
    rows: int,
    features: int,
    relevant: int | None = None,
    seed: int = 0,
    **parameters: Any,
) -> dict[str, Any]:
    """Write a table whose relevant features are known, as ``srs-ooc synth`` does.

    Parameters
    ----------
    problem : str
        ``madelon``, ``chain``, ``clique``, ``marginal``, ``blocks``, ``linear``, ``friedman``,
        ``shift``, ``imbalance`` or ``noise``; ``srs-ooc synth --help`` says what they are.
    out : path
        A table that ends in ``.csv`` or ``.csv.gz``, or a store that ends in ``.zarr``; the truth
        is written beside it.
    rows, features : int
        Its size.
    relevant : int, optional
        Relevant features, of the problems that take a number.
    seed : int
        The same seed makes the same table.
    **parameters
        Further options of the problem, such as ``block_size`` or ``exact``.

    Returns
    -------
    dict
        The truth: ``problem``, ``parameters``, ``target``, ``relevant`` (names), ``roles``.

    Raises
    ------
    UsageError
        If the problem, a parameter or the path cannot be used.
    """
    with python_spelling(), growth_counted():
        kind: Any = PROBLEMS.get(problem)
        if kind is None:
            raise UsageError(f"problem: expected {' or '.join(PROBLEMS)}, found {problem!r}.")
        known = {field.name.removeprefix("n_"): field.name for field in fields(kind)}
        given = {"rows": rows, "features": features, "seed": seed} | parameters
        if relevant is not None:
            given["relevant"] = relevant
        elif "relevant" in known:
            raise UsageError(f"relevant: expected how many features of {problem} are, found none.")
        if problem in SCENARIOS:
            given = {"exact": False} | given
        _check_known(given, known, problem)
        made = kind(**{known[name]: value for name, value in given.items()})
        write_table(made, Path(out))
        return describe(made)


def theory(
    scenario: str,
    *,
    n_features: int,
    q: int,
    n_relevant: int,
    alpha: float | str = 1,
    share: float | str | None = None,
    quantile: float | None = None,
    after: int | None = None,
    round_size: int | None = None,
) -> dict[str, Any]:
    """Compute the mean iterations to find all relevant features, RS beside SRS.

    By the paper's Section 4: infinite samples, K = q, simplified trees.

    Parameters
    ----------
    scenario : {'chain', 'clique', 'marginal'}
        Each feature is seen only beside all before it, beside all others, or by itself.
    n_features, q, n_relevant : int
        p, the features of a subspace, and r.
    alpha : float or str
        For SRS: share of the subspace held for features already found.
    share : float or str, optional
        Find this share of the relevant features instead of all.
    quantile : float, optional
        Also iterations enough with this probability.
    after : int, optional
        Also features found after so many iterations.
    round_size : int, optional
        Also rounds of so many subspaces from one F.

    Returns
    -------
    dict
        With the keys of ``srs-ooc theory --json``.

    Raises
    ------
    UsageError
        If a number is out of range.
    """
    with python_spelling():
        if scenario not in SCENARIOS:
            raise UsageError(f"scenario: expected {' or '.join(SCENARIOS)}, found {scenario!r}.")
        rs, srs = (Setting.of(scenario, n_features, q, n_relevant, a) for a in ("0", alpha))
        return compare(rs, srs, Extras(share, quantile, after, round_size))


def _check_known(given: Mapping[str, Any], known: Mapping[str, Any], of: str) -> None:
    for name in given:
        if name not in known:
            raise UsageError(
                f"{name}: expected an option of {of} ({', '.join(known)}), found another name."
            )
