"""``srs-ooc compare``."""

from pathlib import Path

import click

from srs_ooc.base.budget import process_nbytes
from srs_ooc.base.text import MB
from srs_ooc.cli.output import MEMORY_OPTION, echo_json, say
from srs_ooc.results.ranking import Comparison, Side, compare, side_of
from srs_ooc.runs.ledger import Ledger


@click.command("compare")
@click.argument("first", metavar="RUN", type=click.Path(path_type=Path))
@click.argument("second", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object; keys as listed below.")
@MEMORY_OPTION
def compare_command(first: Path, second: Path, as_json: bool, memory_mb: int) -> None:
    """Compare two runs: what both select, how alike they rank, which options differ.

    Features are compared by name, so that the runs may be on different stores.

    \b
    Keys of --json:
      same_store                whether both are runs on one store
      differences               options that differ, with the value of each run
      n_iterations, n_selected  of each run
      n_both, jaccard           features that both select; their share of those either does
      n_ranked, rank_correlation  features among the first 1,000 of both; Spearman's
      only_first, only_second   the ten best that only one of them selects
      is_provisional            whether a verdict is still to come
    """
    process_nbytes()  # of the program alone, before there is work
    sides = [_side(run, memory_mb * MB) for run in (first, second)]
    found = compare(*sides)
    if as_json:
        echo_json(vars(found))
        return
    for name, value in _lines(found):
        say(f"{name:<20}{value}")
    for name, values in found.differences.items():
        say(f"  {name.replace('_', '-'):<18}{' / '.join(map(_option, values))}")


def _side(run: Path, cap_nbytes: int) -> Side:
    ledger = Ledger(run, writable=False)
    try:
        return side_of(ledger, cap_nbytes=cap_nbytes)
    finally:
        ledger.close()


def _option(value: object) -> str:
    return "not used" if value is None else str(value)


def _lines(found: Comparison) -> list[tuple[str, str]]:
    shared = "" if found.jaccard is None else f" ({found.jaccard:.0%} of those either selects)"
    alike = "-" if found.rank_correlation is None else f"{found.rank_correlation:.3f}"
    return [
        ("store", "the same" if found.same_store else "not the same"),
        ("iterations", " / ".join(f"{n:,}" for n in found.n_iterations)),
        ("selected", " / ".join(f"{n:,}" for n in found.n_selected)),
        ("by both", f"{found.n_both:,}{shared}"),
        ("rank correlation", f"{alike} (of {found.n_ranked:,} among the first 1,000 of both)"),
        ("only by the first", ", ".join(found.only_first) or "none"),
        ("only by the second", ", ".join(found.only_second) or "none"),
        *([("note", "a verdict is still to come")] if found.is_provisional else []),
        ("options", "these differ:" if found.differences else "the same"),
    ]
