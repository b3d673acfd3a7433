"""Scores and components of a table by itself: ``srs-ooc scores``, ``components``, the call."""

import csv
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import click

import srs_ooc.extend as core
from srs_ooc.methods.less.less import ScoreParams
from srs_ooc.methods.less.scoring import ScoreRecord, principal_components, score_table

_COLUMNS = {"rank": 6, "name": 20, "score": 12, "share": 12}


def scores(
    store: core.StoreOrPath,
    kind: str = "pandas",
    *,
    top: int | None = None,
    seed: int = 0,
    rows: core.NamesOrFile = None,
    exclude: core.NamesOrFile = None,
    exclude_missing: bool = False,
    memory_mb: int = 512,
    progress: core.Progress = None,
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
    with core.asked_in_python(exclude=exclude, rows=rows) as files:
        core.check_kind(kind)
        core.check_known(options, ScoreParams.options(), "scores")
        params = ScoreParams.settle(options, None)
        key = core.Whole(0, 2**64 - 1).canonical("seed", seed)
        table: dict[str, Any] = {f"{name}_file": file for name, file in files.items()}
        request = core.Request(memory_mb=memory_mb, exclude_missing=exclude_missing, **table)
        with core.interruptible(progress) as watch:
            found = score_table(core.store_of(store), params, request, watch, key=key)
        assert found is not None, "it was not stopped"
        return core.frame_of(kind, ScoreRecord, islice(found, core.whole_given(top, "--top")))


@click.command("scores", cls=core.Brief)
@click.argument("store", type=core.STORE)
@core.with_options([core.option_of(name, option) for name, option in ScoreParams.options().items()])
@click.option("--seed", type=click.INT, default=0, show_default=True,
              help="Seed of the passes over more than 3000 rows, which draw by "
              "chance.")  # fmt: skip
@core.with_options([*core.TABLE_OPTIONS, *core.RECORD_OPTIONS, *core.PROGRESS_OPTIONS])
def scores_command(
    store: core.StoreOrPath,
    seed: int,
    memory_mb: int,
    shows: bool | None,
    **given: Any,
) -> None:
    """Score the columns of STORE as `srs-ooc run --method less` would draw them.

    The target is not looked at. What --csv writes is what `run --with scores=FILE` reads.

    \b
    rank, name                highest score first; ties as in the source
    score                     leverage (sums to 1 over all features) or squared norm
    share                     what it is of the sum of all

    \b
    Examples:
      srs-ooc scores data.zarr --csv
    """
    core.process_nbytes()  # of the program alone, before there is work
    table = {name: given.pop(name) for name in ("exclude_file", "rows_file", "exclude_missing")}
    # What is then left of ``given`` says how records are written.
    params = ScoreParams.settle({name: given.pop(name) for name in ScoreParams.options()}, None)
    key = core.Whole(0, 2**64 - 1).canonical("seed", seed)
    opened = core.store_of(store)
    request = core.Request(memory_mb=memory_mb, **table)
    with core.RunProgress(memory_mb, shows) as progress:
        note = partial(core.say, err=True)
        records = score_table(opened, params, request, progress.show, key=key, note=note)
    assert records is not None, "it was not stopped"
    features, centred = core.counted(opened.n_features, "feature"), ", centred" * params.center
    heading = f"{features}, {params.scores} of the {params.matrix}{centred}"
    core.write_records(ScoreRecord, records, _COLUMNS, heading=heading, **given)


@click.command("components")
@click.argument("store", type=core.STORE)
@click.option("-k", type=core.COUNT, default=10, show_default=True, metavar="K",
              help="How many components.")  # fmt: skip
@click.option("-o", "--out", type=core.FILE, required=True, metavar="FILE.csv",
              help="The file to make: row id, PC1, PC2, ...")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object; keys as listed below.")
@core.with_options([core.MEMORY_OPTION, *core.PROGRESS_OPTIONS])
def components_command(
    store: core.StoreOrPath, k: int, out: Path, as_json: bool, memory_mb: int, shows: bool | None
) -> None:
    """Compute principal components of the rows of STORE over all its features: ancestry, batches.

    The target is not looked at. Features are standardised codes (ranks; of genotypes the alleles
    counted), missing cells their mean; categorical features are left out. Up to 3000 rows they are
    exact, of more a random sketch that is the same every time. To adjust for them, put the
    columns of FILE.csv beside those of the table, or of its sample sheet, and name them at ingest:

    \b
      cut -d, -f2- pcs.csv | paste -d, table.csv - > adjusted.csv
      srs-ooc ingest adjusted.csv adjusted.zarr --covariates PC1,PC2
      srs-ooc run adjusted.zarr --adjust all

    paste takes rows in their order, which is right if none was left out at ingest.

    \b
    Keys of --json:
      n_rows, n_features        rows; features that the components are over
      is_exact                  false of a random sketch
      shares                    of the variance of all of them, by component

    \b
    Examples:
      srs-ooc components data.zarr -k 10 --out pcs.csv
    """
    core.process_nbytes()  # of the program alone, before there is work
    core.check_free(out)
    opened = core.store_of(store)
    opened.check_files()
    with core.RunProgress(memory_mb, shows) as progress:
        found = principal_components(opened, k, memory_mb * core.MB, progress.show)
    assert found is not None, "it was not stopped"
    shares, n_rows = found.shares.tolist(), opened.n_rows
    titles = [f"PC{i + 1}" for i in range(k)]
    with (
        core.explained(out),
        core.published_file(out) as scratch,
        scratch.open("w", newline="", encoding="utf-8") as text,
    ):
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([opened.manifest.row_id_name or "row", *titles])
        for row_id, scores in zip(opened.row_ids, found.scores.tolist(), strict=True):
            writer.writerow([row_id, *(f"{score:.6g}" for score in scores)])
    if as_json:
        facts = {"n_rows": n_rows, "n_features": found.n_features, "is_exact": found.is_exact}
        core.echo_json(facts | {"shares": shares})
        return
    how = "exact" if found.is_exact else "by a random sketch"
    features = core.counted(found.n_features, "feature")
    core.say(
        f"{out}: {core.counted(k, 'component')} of {core.counted(n_rows, 'row')} over {features}, "
        f"{how}"
    )
    parts = zip(titles, shares, strict=True)
    core.say(
        f"shares of the variance: {', '.join(f'{title} {share:.2%}' for title, share in parts)}"
    )
