"""``srs-ooc sensitivity``: what altering each feature does to what a run's trees say."""

import json
from collections.abc import Mapping
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import click

from srs_ooc.base.text import MB, counted
from srs_ooc.cli.output import (
    CSV_OPTION,
    FILE,
    MEMORY_OPTION,
    PROGRESS_OPTIONS,
    RUN_STORE_OPTION,
    SAFE_OPTION,
    TOP_OPTION,
    stream_json,
    with_options,
    write_records,
)
from srs_ooc.ensemble.feature_sensitivity import (
    AUTO,
    FLIPS,
    MOST_REPEATS,
    REPEATS,
    SensitivityRecord,
    sensitivity,
)
from srs_ooc.results.live import RunProgress

_COLUMNS = {"rank": 6, "name": 20, "score": 12, "accuracy_lost": 14, "altered": 10}


@click.command("sensitivity")
@click.argument("run", type=FILE)
@click.option("--rows", type=FILE, metavar="FILE",
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
@with_options(PROGRESS_OPTIONS)
def sensitivity_command(
    run: Path,
    top: int | None,
    as_csv: bool,
    as_json: bool,
    safe_csv: bool,
    memory_mb: int,
    shows: str | None,
    **how: Any,
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
      theorem         what Theorem I.1 of the supplement of RFEST is about
    """
    with closing(RunProgress(memory_mb, shows)) as progress:
        found = sensitivity(run, memory_nbytes=memory_mb * MB, watch=progress.show, **how)
    if as_json:
        facts = json.dumps(found.facts, ensure_ascii=False)
        stream_json(islice(found.records(), top), facts[:-1] + ', "features": [', "]}")
        return
    form = {"as_json": False, "as_csv": as_csv, "safe_csv": safe_csv}
    write_records(SensitivityRecord, found.records(), _COLUMNS, top, _heading(found.facts), **form)


def _heading(facts: Mapping[str, Any]) -> str:
    which = "out of bag" if facts["out_of_bag"] else "of --rows"
    name = "accuracy" if facts["r2"] is None else "r2"
    lines = [
        f"{counted(facts['n_trees'], 'tree')} on {counted(facts['n_features'], 'feature')}, "
        f"{counted(facts['n_rows'], 'row')} {which}: {name} {facts[name]:.4f}",
        f"{facts['theorem']}.",
    ]
    return "\n".join(lines)
