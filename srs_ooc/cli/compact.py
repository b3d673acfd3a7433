"""``srs-ooc compact``."""

from dataclasses import replace
from pathlib import Path

import click

from srs_ooc.base.text import counted
from srs_ooc.base.urls import Place
from srs_ooc.cli import output
from srs_ooc.cli.output import FILE
from srs_ooc.cli.run_options import CLUSTER_OPTIONS
from srs_ooc.ensemble import compaction
from srs_ooc.results.live import RunProgress, watched
from srs_ooc.runs.jobs import Cluster
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.request import Request
from srs_ooc.runs.run import Run

SHOWN = 3
"""Stand-ins named in a table."""
_CURVE_COLUMNS = {"features": 8, "score": 8, "error": 8, "chosen": 6}
_SET_COLUMNS = {"rank": 6, "name": 20, "n_stand_ins": 11, "stand_ins": 0}


@click.command("compact")
@click.argument("run", type=FILE)
@output.RUN_STORE_OPTION
@click.option("--max-features", type=output.COUNT, metavar="K",
              help="The best set of exactly K features, or of all there are.  [default: the "
              "smallest set within one standard error of the best]")  # fmt: skip
@click.option("--folds", type=output.whole(2), default=compaction.N_FOLDS, show_default=True,
              help="Folds of the rows, each held out once.")  # fmt: skip
@click.option("--repeats", type=output.COUNT, default=compaction.N_REPEATS, show_default=True,
              help="How often the rows are split into folds anew.")  # fmt: skip
@click.option("--held-out-rows", type=FILE, metavar="FILE", help="Hold out the rows whose ids FILE "
              "names, one a line, once, in place of folds.")  # fmt: skip
@click.option("--time-split", metavar="COLUMN", help="Hold out the fifth of the rows with the "
              "largest numbers in a covariate, such as a date.")  # fmt: skip
@output.memory_option("the run's")
@output.THREADS_OPTION
@output.with_options(CLUSTER_OPTIONS + output.PROGRESS_OPTIONS)
@click.option("--csv", "as_csv", is_flag=True, help="The chosen set as CSV with a header.")
@click.option("--json", "as_json", is_flag=True, help="All of it as one JSON object.")
def compact_command(
    run: Path,
    store: Place | None,
    memory_mb: int | None,
    threads: int | None,
    cluster: Cluster | None,
    shows: bool | None,
    as_csv: bool,
    as_json: bool,
    held_out_rows: Path | None,
    time_split: str | None,
    **how: int,
) -> None:
    """Find a small set of features that predicts about as well as any.

    From the selected features of RUN (and the best-ranked others, where few are selected) one is
    kept of each cluster of features that can stand in for one another; sets of them, each inside
    the next larger one, predict rows that were held out. The whole selection is repeated without
    those rows. The same command again goes on where it was interrupted.

    \b
    Examples:
      srs-ooc compact data.run
      srs-ooc compact data.run --max-features 20 --csv
    """
    with Run(run, writable=True) as ledger:
        place = ledger.find_store(store)
        megabytes = memory_mb or int(ledger.meta("memory_mb"))
        held_out = compaction.rows_held_out(ledger, place, held_out_rows, time_split)
        with watched(RunProgress(megabytes, shows)) as (watch, received):
            asked = Request(memory_mb=megabytes, threads=threads, cluster=cluster)
            plan = replace(Plan.of_run(ledger, place, asked), watch=watch)
            small = compaction.compact(ledger, plan, **how, held_out=held_out)
    if small is None:
        click.echo("stopped; folds that are done are kept. Go on with the same command.", err=True)
        raise SystemExit(128 + sum(received))
    if as_json:
        features = [vars(m.record("")) | {"stand_ins": list(m.stand_ins)} for m in small.members]
        output.echo_json(
            {
                "n_selected": small.n_selected,
                "n_selected_within": small.n_selected_within,
                "chosen": len(small.members),
                "curve": [vars(size) for size in small.sizes],
                "features": features,
            }
        )
    elif as_csv:
        output.stream_csv(compaction.MemberRecord, small.records)
    else:
        what = "Scores" if place.manifest.classes else "Scores (R squared: variance explained)"
        what = "C-indices" if "events" in place.manifest.row_columns else what
        _show(small, what, 0 if held_out is None else len(held_out))


def _show(small: compaction.SmallSet, what: str, n_held_out: int) -> None:
    within = small.n_selected_within
    found = f"{min(within)} to {max(within)} where one of {counted(len(within), 'fold')} was"
    if n_held_out:
        found = f"{within[0]} where {counted(n_held_out, 'row')} were"
    click.echo(
        f"{counted(small.n_selected, 'feature')} selected from all rows; {found} held out. {what} "
        "are of the rows held out."
    )
    output.stream_table(_CURVE_COLUMNS, small.sizes)
    if small.sizes[0].features == 0:
        click.echo("0 features: covariates alone; others add to what these predict.")
    chosen = counted(len(small.members), "feature")
    click.echo(f"\n{chosen} chosen (the best score is with {small.best}):")
    shown = []
    for member in small.members:
        more = max(0, len(member.stand_ins) - SHOWN)
        names = " ".join(member.stand_ins[:SHOWN]) + f" and {more} more" * bool(more)
        shown.append(member.record(names))
    output.stream_table(_SET_COLUMNS, shown)
