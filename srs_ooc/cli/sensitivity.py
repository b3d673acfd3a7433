"""``srs-ooc sensitivity``: what altering each feature does to what a run's trees say."""

import json
import sys
from contextlib import closing
from itertools import islice
from pathlib import Path

import click

from srs_ooc.base.text import MB, counted
from srs_ooc.base.urls import Place
from srs_ooc.cli.output import (
    CSV_OPTION,
    FILE,
    MEMORY_OPTION,
    RUN_STORE_OPTION,
    SAFE_OPTION,
    TABLE_ROWS,
    TOP_OPTION,
    say,
    stream_csv,
    stream_table,
)
from srs_ooc.cli.progress import RunProgress
from srs_ooc.ensemble.ensemble_memory import MOST_REPEATS
from srs_ooc.ensemble.feature_sensitivity import (
    AUTO,
    FLIPS,
    REPEATS,
    Sensitivities,
    SensitivityRecord,
    sensitivity,
)

_COLUMNS = {"rank": 6, "name": 20, "score": 12, "accuracy_lost": 14, "altered": 10}


@click.command("sensitivity")
@click.argument("run", type=FILE)
@click.option("--rows", "rows_file", type=FILE, metavar="FILE",
              help="Row ids to ask the trees about, one a line.  [default: the training rows of a "
              "run with --bootstrap, each asked of the trees not grown on it]")  # fmt: skip
@click.option("--flip", type=click.Choice(FLIPS), default=AUTO, show_default=True,
              help="How a feature is altered. auto: one of two values is flipped, any other "
              "permuted; mirror: the order of its values is reversed; permute: each row takes the "
              "value of another row.")  # fmt: skip
@click.option("--repeats", type=click.IntRange(1, MOST_REPEATS), metavar="N",
              default=REPEATS, show_default=True,
              help="Permutations, of which the mean is taken.")  # fmt: skip
@click.option("--threads", type=click.IntRange(1), metavar="N",
              help="Threads that share the rows; they change no result.  "
              "[default: the cores]")  # fmt: skip
@TOP_OPTION
@CSV_OPTION
@click.option("--json", "as_json", is_flag=True, help="One JSON object; keys as below.")
@SAFE_OPTION
@MEMORY_OPTION
@RUN_STORE_OPTION
def sensitivity_command(
    run: Path,
    rows_file: Path | None,
    flip: str,
    repeats: int,
    threads: int | None,
    top: int | None,
    as_csv: bool,
    as_json: bool,
    safe_csv: bool,
    memory_mb: int,
    store: Place | None,
) -> None:
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
      n_decoys        decoys that the trees use and that were scored alike;
                      best_decoy: their largest score, null without
      theorem         what Theorem I.1 of the supplement of RFEST is about
    """
    with closing(RunProgress(memory_mb)) as progress:
        found = sensitivity(
            run,
            rows=rows_file,
            flip=flip,
            repeats=repeats,
            memory_nbytes=memory_mb * MB,
            threads=threads,
            store=store,
            watch=progress.show,
        )
    if as_json:
        _write_json(found, top)
    elif as_csv:
        stream_csv(SensitivityRecord, islice(found.records(), top), safe=safe_csv)
    else:
        _say(found, top or TABLE_ROWS)


def _write_json(found: Sensitivities, top: int | None) -> None:
    """Write one object, its list of features a line each, never held whole."""
    facts = json.dumps(found.facts, ensure_ascii=False)
    sys.stdout.write(facts[:-1] + ', "features": [')
    separator = "\n"
    for record in islice(found.records(), top):
        sys.stdout.write(separator + json.dumps(vars(record), ensure_ascii=False))
        separator = ",\n"
    sys.stdout.write("\n]}\n")


def _say(found: Sensitivities, n_shown: int) -> None:
    facts = found.facts
    which = "out of bag" if facts["out_of_bag"] else "of --rows"
    name = "accuracy" if facts["r2"] is None else "r2"
    say(
        f"{counted(facts['n_trees'], 'tree')} on {counted(facts['n_features'], 'feature')}, "
        f"{counted(facts['n_rows'], 'row')} {which}: {name} {facts[name]:.4f}"
    )
    say(f"{facts['theorem']}.")
    if facts["n_decoys"]:
        say(f"largest score of {counted(facts['n_decoys'], 'decoy')}: {facts['best_decoy']:.4g}")
    stream_table(_COLUMNS, islice(found.records(), n_shown))
