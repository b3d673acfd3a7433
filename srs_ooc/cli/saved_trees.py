"""``srs-ooc predict``: what the trees that a run saved say of rows."""

from pathlib import Path
from typing import Any

import click

from srs_ooc.base.text import MB, counted
from srs_ooc.base.urls import Place
from srs_ooc.cli import output
from srs_ooc.cli.output import FILE, say
from srs_ooc.ensemble.prediction import predict


@click.command("predict")
@click.argument("run", type=FILE)
@click.argument("data", type=output.STORE)
@click.argument("out", type=FILE)
@click.option("--row-ids", metavar="NAME",
              help="Column of row ids in a file.  [default: of a CSV file that of the training "
              "table, if it is there; of others as ingested; else rows are numbered]")  # fmt: skip
@output.MEMORY_OPTION
@output.RUN_STORE_OPTION
@click.option("--json", "as_json", is_flag=True, help="One JSON object; keys as listed below.")
def predict_command(
    run: Path, data: Place, out: Path, memory_mb: int, as_json: bool, **how: Any
) -> None:
    """Predict the class or number of each row of DATA by the trees of RUN into the CSV file OUT.

    RUN must have been made with --save-trees; it may be going on. DATA is a CSV file (plain or
    compressed, with a header), a store, which may be at a URL, or a file of another format, of
    which a store is made for the while, without a target. Its columns are found by name; only those
    that the trees use are read, and must be numbers or categories as in training. OUT has the row
    id, the prediction, and a column probability_CLASS for each class: the mean over trees of the
    leaf's class shares. A predicted number is the mean over trees of the leaf's mean. Of times to
    an event OUT has a risk in place of a prediction: the higher, the sooner.

    \b
    Keys of --json:
      n_rows                    rows predicted
      n_trees                   trees of the run, as of its last commit
      n_features                columns they use
      accuracy, log_loss        null where DATA has no target
      r2, rmse                  of numbers; null where DATA has no target
      n_unknown_labels          rows of classes not seen in training: they count
                                as wrong (of numbers: of other labels than
                                numbers, left out); null where DATA has no
                                target
      n_training_rows           rows that RUN was trained on, all or those of its
                                --rows; null where DATA is neither its store nor
                                the very table that this was made of
      is_risk                   whether a risk is predicted, of a time to an event
      n_unlabelled              rows whose label is missing: predicted, left out
                                of the scores; null where DATA has no target

    \b
    Examples:
      srs-ooc predict data.run new.csv predictions.csv
    """
    report = predict(run, data, out, memory_nbytes=memory_mb * MB, **how)
    if as_json:
        output.echo_json(vars(report))
        return
    say(f"{out}: {report.n_rows} rows by {report.n_trees} trees on {report.n_features} features")
    if report.is_risk:
        say("risk: the log-rank score, in steps from 0 to 64; a higher one means a sooner event")
    if report.n_training_rows and (report.accuracy is not None or report.rmse is not None):
        which = "all"
        if report.n_training_rows != report.n_rows:
            which = f"{report.n_training_rows:,} of the {report.n_rows:,}"
        say(
            f"{which} rows are those that the run was trained on: these scores say nothing of new "
            "rows. Predict rows that were left out (--rows of `srs-ooc run`), or another table."
        )
    if report.accuracy is not None:
        say(f"accuracy {report.accuracy:.4f}, log-loss {report.log_loss:.4f}")
    if report.rmse is not None:
        r2 = "undefined" if report.r2 is None else f"{report.r2:.4f}"
        say(f"R2 {r2}, root mean squared error {report.rmse:.4g}")
    if report.n_unknown_labels:
        is_of_classes = report.accuracy is not None
        what = "classes not seen in training" if is_of_classes else "no number as target"
        say(f"{counted(report.n_unknown_labels, 'row')} of {what}")
    if report.n_unlabelled:
        say(f"{counted(report.n_unlabelled, 'row')} without a label, left out of the scores")
