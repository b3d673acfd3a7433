"""``srs-ooc theory``: how many iterations Random Subspace and SRS need, by the paper's theory."""

import json
from pathlib import Path
from typing import Any

import click

from srs_ooc.base.errors import UsageError
from srs_ooc.cli.output import say
from srs_ooc.planning.paper_theory import SCENARIOS, Cell, Extras, Row, Setting, compare, rows


@click.command("theory")
@click.argument("scenario", required=False, type=click.Choice(SCENARIOS))
@click.option("--n-features", "-p", type=int, help="p, all features.")
@click.option("--q", "-q", "subspace_size", type=int, help="q, features in memory at once.")
@click.option("--n-relevant", "-r", type=int, help="r, relevant features.")
@click.option(
    "--alpha",
    default="1",
    show_default=True,
    help="For SRS: share of the subspace held for features already found (no significance level).",
)
@click.option("--share", help="Find this share of the relevant features instead of all.")
@click.option("--quantile", type=float, help="Also iterations enough with this probability.")
@click.option("--after", type=int, help="Also features found after this many iterations (mean).")
@click.option("--round-size", type=int, help="Also rounds of this many subspaces from one F.")
@click.option("--table", is_flag=True, help="The paper's Table 1, as computed beside as printed.")
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw the paper's Figure 1 into this file (.png, .svg, .pdf; needs matplotlib).",
)
@click.option("--json", "as_json", is_flag=True, help="JSON on standard output.")
def theory_command(
    *,
    scenario: str | None,
    n_features: int | None,
    subspace_size: int | None,
    n_relevant: int | None,
    alpha: str,
    share: str | None,
    quantile: float | None,
    after: int | None,
    round_size: int | None,
    table: bool,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Compute the mean iterations to find all relevant features, RS beside SRS.

    SCENARIO: chain (each feature is seen only beside all the ones before it), clique (each only
    beside all the others) or marginal (each by itself). Infinite samples, K = q, the paper's
    simplified trees; see docs/research/theory.md.
    """
    if scenario is None and not table and plot is None:
        raise UsageError(
            f"expected a scenario ({', '.join(SCENARIOS)}), --table or --plot FILE; found none"
        )
    if scenario is None and not (n_features is subspace_size is n_relevant is None):
        raise UsageError(
            f"--n-features, --q and --n-relevant need a scenario ({', '.join(SCENARIOS)}), "
            "found none; --table and --plot have sizes of their own"
        )
    if scenario is not None:
        sizes = _required(n_features, subspace_size, n_relevant)
        rs, srs = (Setting.of(scenario, *sizes, a) for a in ("0", alpha))
        summary = compare(rs, srs, Extras(share, quantile, after, round_size))
        click.echo(json.dumps(summary) if as_json else "\n".join(summary_lines(summary)))
    if table:
        found = rows()
        say(
            json.dumps([row_values(row) for row in found])
            if as_json
            else "\n".join(table_lines(found))
        )
    if plot is not None:
        from srs_ooc.planning.paper_theory import draw

        draw(plot)
        if not as_json:
            say(f"Figure 1 drawn: {plot}")


def _required(
    n_features: int | None, subspace_size: int | None, n_relevant: int | None
) -> tuple[int, int, int]:
    """Return p, q and r, or name the one that is missing."""
    if n_features is None:
        raise UsageError("missing --n-features, the number of all features (p)")
    if subspace_size is None:
        raise UsageError("missing --q, the number of features in memory at once")
    if n_relevant is None:
        raise UsageError("missing --n-relevant, the number of relevant features (r)")
    return n_features, subspace_size, n_relevant


def summary_lines(summary: dict[str, Any]) -> list[str]:
    """Return the lines for a reader of one summary."""
    wanted = summary.get("n_wanted", summary["n_relevant"])
    lines = [
        f"{summary['scenario']}: p = {summary['n_features']:,}, q = {summary['q']:,}, "
        f"r = {summary['n_relevant']:,}, infinite samples, K = q",
        f"mean iterations to find {wanted:,} of {summary['n_relevant']:,} relevant features",
        f"  RS  (alpha = 0)      {_time(summary['rs'], summary['log10_rs'])}",
        f"  SRS (alpha = {summary['alpha']:g})".ljust(23)
        + _time(summary["srs"], summary["log10_srs"]),
    ]
    if "reason" in summary:
        lines.append(f"  {summary['reason']}")
    if "quantile" in summary:
        part = summary["quantile"]
        lines.append(f"iterations enough with probability {part['level']:g}")
        lines += [f"  {name.upper():<21}{_time(part[name], None)}" for name in ("rs", "srs")]
    if "after" in summary:
        part = summary["after"]
        lines.append(f"mean number found after {part['iterations']:,} iterations")
        lines += [f"  {name.upper():<21}{part[name]:.6g}" for name in ("rs", "srs")]
    if "rounds" in summary:
        part = summary["rounds"]
        lines.append(f"rounds of {part['round_size']} subspaces drawn from one F (means)")
        lines += [f"  {name.upper():<21}{_rounds(part[name])}" for name in ("rs", "srs")]
    return lines


def _rounds(cost: dict[str, float] | None) -> str:
    if cost is None:
        return "never, or beyond 1.7e308"
    return (
        f"{cost['n_rounds']:,.6g} rounds, {cost['n_lost']:+,.4g} iterations against one at a "
        f"time, wall-clock {cost['speedup']:.4g} times shorter"
    )


def _time(value: float | int | None, log10: float | None) -> str:
    if isinstance(value, int):
        return f"{value:,}" if value < 10**12 else f"{value:.6g}"
    if value is not None:
        return f"{value:,.1f}" if value < 1e9 else f"{value:.6g}"
    return "never" if log10 is None else f"10^{log10:.6g}"


def row_values(row: Row) -> dict[str, Any]:
    """Return one row of Table 1 for JSON."""
    setting = row.setting
    values: dict[str, Any] = {
        "part": row.part,
        "scenario": setting.scenario,
        "n_features": setting.n_features,
        "q": setting.subspace_size,
        "n_relevant": setting.n_relevant,
    }
    for name, cell in (("rs", row.rs), ("srs", row.srs)):
        values |= {
            name: cell.computed,
            f"printed_{name}": cell.printed,
            f"agrees_{name}": cell.agrees,
        }
    return values


def table_lines(found: list[Row]) -> list[str]:
    """Return Table 1 as lines; disagreements carry a mark."""
    lines = [
        "Table 1 of the paper: mean iterations to find all relevant features "
        "(see docs/research/errata.md)",
        f"{'':14}{'p':>7} {'q':>5} {'r':>4}  {'RS computed':>16} {'printed':>9}   "
        f"{'SRS computed':>16} {'printed':>9}",
    ]
    for row in found:
        setting = row.setting
        lines.append(
            f"({row.part}) {setting.scenario:<10}{setting.n_features:>7} "
            f"{setting.subspace_size:>5} {setting.n_relevant:>4}  {_cell(row.rs)} {_cell(row.srs)}"
        )
    wrong = sum(not cell.agrees for row in found for cell in (row.rs, row.srs))
    lines.append(f"* {wrong} printed figures are not what the theorems give")
    return lines


def _cell(cell: Cell) -> str:
    return f"{cell.computed:>16,.1f} {cell.printed:>9}{' ' if cell.agrees else '*'} "
