"""``srs-ooc sensitivity`` and ``srs_ooc.sensitivity``: what altering features does to trees."""

from pathlib import Path
from typing import Any

import click

import srs_ooc.extend as core
from srs_ooc.methods.rfest.feature_sensitivity import (
    AUTO,
    FLIPS,
    MOST_REPEATS,
    REPEATS,
    Sensitivity,
    SensitivityRecord,
)
from srs_ooc.methods.rfest.feature_sensitivity import sensitivity as measured

_COLUMNS = {"rank": 6, "name": 20, "score": 12, "accuracy_lost": 14, "altered": 10}


@click.command("sensitivity")
@click.argument("run", type=core.FILE)
@click.option("--rows", type=core.FILE, metavar="FILE",
              help="Row ids to ask the trees about, one a line.  [default: the training rows of a "
              "run with --bootstrap, each asked of the trees not grown on it]")  # fmt: skip
@click.option("--flip", type=click.Choice(FLIPS), default=AUTO, show_default=True,
              help="How a feature is altered. auto: one of two values is flipped, any other "
              "permuted; mirror: the order of its values is reversed; permute: each row takes the "
              "value of another row.")  # fmt: skip
@click.option("--repeats", type=core.whole(1, MOST_REPEATS), metavar="N",
              default=REPEATS, show_default=True,
              help="Permutations, of which the mean is taken.")  # fmt: skip
@core.THREADS_OPTION
@core.with_options(core.record_options("One JSON object; keys as below."))
@core.RUN_STORE_OPTION
@core.with_options(core.PROGRESS_OPTIONS)
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
    with core.RunProgress(memory_mb, shows) as progress:
        found = measured(run, memory_nbytes=memory_mb * core.MB, watch=progress.show, **how)
    facts = found.facts
    which = "out of bag" if facts["out_of_bag"] else "of --rows"
    name = "accuracy" if facts["r2"] is None else "r2"
    kinds = {"n_trees": "tree", "n_features": "feature", "n_rows": "row"}
    trees, features, rows = (core.counted(facts[key], kind) for key, kind in kinds.items())
    said = f"{trees} on {features}, {rows} {which}: {name} {facts[name]:.4f}"
    form |= {"heading": f"{said}\n{facts['theorem']}.", "facts": facts}
    core.write_records(SensitivityRecord, found.records(), _COLUMNS, **form)


def sensitivity(
    run: core.Result | str | Path,
    *,
    rows: core.NamesOrFile = None,
    flip: str = AUTO,
    repeats: int = REPEATS,
    store: core.StoreOrPath | None = None,
    memory_mb: int = core.READING_MB,
    threads: int | None = None,
    progress: core.Progress = None,
) -> Sensitivity:
    """Rank features by what altering them does to what a run's trees say (RFEST).

    All features that the trees use are scored in one pass over rows and trees, on rows that trees
    were not grown on.

    Parameters
    ----------
    run : Result or path
        The run, made with ``save_trees``, and with ``bootstrap`` or rows held out by ``rows``.
    rows : path or iterable of str, optional
        Ids of the rows to ask about; those out of bag, if not given.
    flip : {'auto', 'mirror', 'permute'}
        How a feature is altered; ``auto`` flips those of two values and permutes all others.
    repeats : int
        Permutations, of which the mean is taken.
    store : Store or path, optional
        Its store, if it was moved.
    memory_mb : int
        Cap on growth, in MB of 10^6 bytes.
    threads, progress
        As for :func:`srs_ooc.run`.

    Returns
    -------
    Sensitivity
        ``features()`` is a frame with the columns of ``srs-ooc sensitivity --csv``; ``facts`` has
        the further keys of its ``--json``.

    Raises
    ------
    RunError, StoreError
        If the run keeps no trees, or the store is another.
    UsageError
        If rows are unknown or were trained on, or a feature cannot be altered so.
    BudgetError
        If the cap is too small.
    """
    place = None if store is None else core.store_of(store).path
    if place is not None or not isinstance(run, core.Result):
        run = core.Result(core.folder_of(run), place)
    how: dict[str, Any] = {"flip": flip, "repeats": repeats, "threads": threads}
    how |= {"memory_nbytes": memory_mb * core.MB, "store": run.store_given}
    with core.shown(progress) as watch, core.asked_in_python(rows=rows) as files:
        return measured(run.run, rows=files["rows"], watch=watch, **how)
