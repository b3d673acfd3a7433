"""``srs-ooc theory`` and ``srs_ooc.theory``: how many iterations RS and SRS need."""

import json
from typing import Any

import click

import srs_ooc.extend as core
from srs_ooc.methods.theory.paper_theory import SCENARIOS, compare


@click.command("theory")
@click.argument("scenario", type=click.Choice(SCENARIOS))
@click.option("--n-features", "-p", type=int, required=True, help="p, all features.")
@click.option("--q", "-q", "subspace_size", type=int, required=True,
              help="q, features in memory at once.")  # fmt: skip
@click.option("--n-relevant", "-r", type=int, required=True, help="r, relevant features.")
@click.option(
    "--alpha",
    default="1",
    show_default=True,
    help="For SRS: share of the subspace held for features already found (no significance level).",
)
@click.option("--json", "as_json", is_flag=True, help="JSON on standard output.")
def theory_command(scenario: str, alpha: str, as_json: bool, **sizes: int) -> None:
    """Compute the mean iterations to find all relevant features, RS beside SRS.

    SCENARIO: chain (each feature is seen only beside all the ones before it), clique (each only
    beside all the others) or marginal (each by itself). Infinite samples, K = q, the paper's
    simplified trees; see docs/research/theory.md.

    \b
    Examples:
      srs-ooc theory chain --n-features 10000 --q 100 --n-relevant 5
    """
    summary = compare(scenario, alpha, **sizes)
    if as_json:
        click.echo(json.dumps(summary))
        return
    n = summary["n_relevant"]
    lines = [
        f"{summary['scenario']}: p = {summary['n_features']:,}, q = {summary['q']:,}, "
        f"r = {n:,}, infinite samples, K = q",
        f"mean iterations to find {n:,} of {n:,} relevant features",
        f"  RS  (alpha = 0)      {_time(summary['rs'], summary['log10_rs'])}",
        f"  SRS (alpha = {summary['alpha']:g})".ljust(23)
        + _time(summary["srs"], summary["log10_srs"]),
    ]
    if "reason" in summary:
        lines.append(f"  {summary['reason']}")
    click.echo("\n".join(lines))


def _time(value: float | None, log10: float | None) -> str:
    if value is not None:
        return f"{value:,.1f}" if value < 1e9 else f"{value:.6g}"
    return "never" if log10 is None else f"10^{log10:.6g}"


def theory(
    scenario: str, *, n_features: int, q: int, n_relevant: int, alpha: float | str = 1
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

    Returns
    -------
    dict
        With the keys of ``srs-ooc theory --json``.

    Raises
    ------
    UsageError
        If a number is out of range.
    """
    sizes = {"n_features": n_features, "subspace_size": q, "n_relevant": n_relevant}
    with core.python_spelling():
        if scenario not in SCENARIOS:
            raise core.UsageError(
                f"scenario: expected {' or '.join(SCENARIOS)}, found {scenario!r}."
            )
        return compare(scenario, alpha, **sizes)
