"""``srs-ooc predict`` and ``sensitivity``: what the trees that a run saved say."""

from pathlib import Path
from typing import Any

import click

from srs_ooc.base.text import MB, counted
from srs_ooc.base.urls import Place
from srs_ooc.cli import output
from srs_ooc.cli.output import FILE, say, write_records
from srs_ooc.ensemble import feature_sensitivity
from srs_ooc.ensemble.feature_sensitivity import SensitivityRecord, sensitivity
from srs_ooc.ensemble.prediction import predict
from srs_ooc.results.live import RunProgress


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


_COLUMNS = {"rank": 6, "name": 20, "score": 12, "accuracy_lost": 14, "altered": 10}


@click.command("sensitivity")
@click.argument("run", type=FILE)
@click.option("--rows", type=FILE, metavar="FILE",
              help="Row ids to ask the trees about, one a line.  [default: the training rows of a "
              "run with --bootstrap, each asked of the trees not grown on it]")  # fmt: skip
@click.option("--flip", type=click.Choice(feature_sensitivity.FLIPS),
              default=feature_sensitivity.AUTO, show_default=True,
              help="How a feature is altered. auto: one of two values is flipped, any other "
              "permuted; mirror: the order of its values is reversed; permute: each row takes the "
              "value of another row.")  # fmt: skip
@click.option("--repeats", type=output.whole(1, feature_sensitivity.MOST_REPEATS), metavar="N",
              default=feature_sensitivity.REPEATS, show_default=True,
              help="Permutations, of which the mean is taken.")  # fmt: skip
@output.THREADS_OPTION
@output.TOP_OPTION
@output.CSV_OPTION
@click.option("--json", "as_json", is_flag=True, help="One JSON object; keys as below.")
@output.SAFE_OPTION
@output.MEMORY_OPTION
@output.RUN_STORE_OPTION
@output.with_options(output.PROGRESS_OPTIONS)
def sensitivity_command(run: Path, memory_mb: int, shows: bool | None, **how: Any) -> None:
    """Rank features by what altering them does to what the trees of RUN say.

    RUN must have been made with --save-trees, and with --bootstrap or rows held out by --rows: the
    trees are asked about rows that they were not grown on. All features that they use are scored in
    one pass over rows and trees. No error rate is claimed (docs/methods/rfest.md).

    \b
    rank, name      largest score first; ties as in the source
    score           mean loss of the probability of the true class; of a
                    regression, of R2
    accuracy_lost   accuracy less that with the feature altered; empty of a
                    regression
    n_worse         rows, counted once a repeat, that were voted right and are
                    wrong with the feature altered; n_better: the other way
    altered         flipped, mirrored or permuted

    \b
    Further keys of --json, beside the list features:
      n_rows          rows that some tree votes on; n_rows_asked: all of them
      out_of_bag      whether each row was asked of the trees not grown on it
      n_trees         trees of the run, as of its last commit
      n_features      features that they use; n_flipped: of these, flipped
      flip, repeats   as given; repeats is 1 where nothing is permuted
      accuracy, r2    of the trees on these rows, nothing altered
      theorem         what Theorem I.1 of the supplement of RFEST is about

    \b
    Examples:
      srs-ooc run data.zarr --save-trees --bootstrap
      srs-ooc sensitivity data.run
      srs-ooc sensitivity data.run --rows unseen.txt --flip permute --csv
    """
    form = {name: how.pop(name) for name in ("top", "as_csv", "as_json", "safe_csv")}
    with RunProgress(memory_mb, shows) as progress:
        found = sensitivity(run, memory_nbytes=memory_mb * MB, watch=progress.show, **how)
    facts = found.facts
    which = "out of bag" if facts["out_of_bag"] else "of --rows"
    name = "accuracy" if facts["r2"] is None else "r2"
    heading = (
        f"{counted(facts['n_trees'], 'tree')} on {counted(facts['n_features'], 'feature')}, "
        f"{counted(facts['n_rows'], 'row')} {which}: {name} {facts[name]:.4f}\n{facts['theorem']}."
    )
    records = found.records()
    write_records(SensitivityRecord, records, _COLUMNS, heading=heading, facts=facts, **form)
