"""``srs-ooc inspect`` and ``verify``: what a store says of itself, and damage to it or to a run."""

import json
from typing import Any

import click
import numpy as np

from srs_ooc.base.budget import Budget, Lease
from srs_ooc.base.text import MB, counted, describe_nbytes
from srs_ooc.base.urls import Place
from srs_ooc.cli.output import MEMORY_OPTION, STORE, describe_counts, echo_json, kind_of, say, write
from srs_ooc.store.manifest import FORMAT, NO_TARGET
from srs_ooc.store.opening import open_store
from srs_ooc.store.store import READING_NBYTES, Store

_FIRST_NAMES = 5
_FIRST_CLASSES = 20


@click.command("inspect")
@click.argument("store", type=STORE)
@click.option("--json", "as_json", is_flag=True, help="One JSON object; keys as listed below.")
@click.option(
    "--names", "listed", flag_value="names", help="Only the names of all features, one a line."
)
@click.option(
    "--row-ids", "listed", flag_value="row_ids", help="Only the ids of all rows, one a line."
)
@MEMORY_OPTION
def inspect_command(store: Place, as_json: bool, listed: str | None, memory_mb: int) -> None:
    """Say what is in STORE: shape, target, classes, missing values, sizes, first names.

    \b
    Keys of --json:
      n_rows, n_features        shape of the table
      task                      "classification" or "regression"
      target                    name of the target
      classes, class_counts     labels, and rows of each; empty for a regression
      target_range              lowest and highest target of a regression, or null
      n_dropped_rows            rows of the source left out, having no target, or no covariate
                                where that was asked
      row_columns               columns of weights, strata, groups, covariates and events, as far
                                as given
      covariates                name, categories (none of numbers) and n_missing of each
      n_events                  rows whose event was seen; null if the target is not censored
      kind_counts               features of each kind
      row_ids                   name of the column of row ids, or null
      n_missing_cells, n_missing_features
      code_dtype, values_dtype  values_dtype is null where only codes are kept
      codes_nbytes, store_nbytes   the latter null at a URL whose server lists no files
      format, fingerprint       version of the layout; identity of the store
      source, inferred          where the table came from; what was inferred
      first_names               of the first features, in the order of the source

    \b
    Examples:
      srs-ooc inspect data.zarr
      srs-ooc inspect data.zarr --json
    """
    leases = [Lease("reading a store in pieces", READING_NBYTES)]
    Budget(memory_mb * MB, leases).check()
    opened = open_store(store)
    row_nbytes = 9 * (opened.manifest.format != FORMAT or any(opened.added("covariate")))
    leases.append(Lease("a covariate, or events", row_nbytes * opened.n_rows))
    Budget(memory_mb * MB, leases).check()
    opened.check_files()
    if listed is not None:
        for text in opened.names if listed == "names" else opened.row_ids:
            write(text + "\n")
        return
    facts = _facts(opened)
    if as_json:
        say(json.dumps(facts, indent=2))  # plain ASCII, as its texts are another's
    else:
        _show(store, facts, in_bed=opened.manifest.n_linked_rows > 0)


def _facts(store: Store) -> dict[str, Any]:
    manifest, names, events = store.manifest, store.names, store.events()
    target_range = None
    if manifest.task == "regression":
        pieces = store.pieces("target_values")
        ends = np.array([(piece.min(), piece.max()) for _, piece in pieces], np.float64)
        target_range = [float(ends.min()), float(ends.max())]

    def said(*keys: str) -> dict[str, Any]:
        return {key: getattr(manifest, key) for key in keys}

    return {
        **said("n_rows", "n_features", "task"),
        "target": manifest.target_name,
        "classes": list(manifest.classes),
        "class_counts": list(manifest.class_counts),
        "target_range": target_range,
        **said("n_dropped_rows", "row_columns"),
        "covariates": [
            {"name": name, "categories": list(levels), "n_missing": int(np.isnan(values).sum())}
            for name, values, levels in store.each_covariate()
        ],
        "n_events": None if events is None else int(events.sum()),
        **said("kind_counts"),
        "row_ids": manifest.row_id_name,
        **said("n_missing_cells", "n_missing_features"),
        **said("code_dtype", "values_dtype", "codes_nbytes"),
        "store_nbytes": store.stored_nbytes(),
        "format": manifest.format,
        "fingerprint": store.fingerprint,
        **said("source", "inferred"),
        "first_names": [names[i] for i in range(min(_FIRST_NAMES, len(names)))],
    }


def _show(store: Place, facts: dict[str, Any], *, in_bed: bool) -> None:
    counts = [
        f"{label} ({count})"
        for label, count in zip(facts["classes"], facts["class_counts"], strict=True)
    ]
    more = f", ... {len(counts)} in all" if len(counts) > _FIRST_CLASSES else ""
    names = ", ".join(facts["first_names"])
    is_numbered = facts["target"] == NO_TARGET
    low_high = None if is_numbered else facts["target_range"]
    dropped, on_disk = facts["n_dropped_rows"], facts["store_nbytes"]
    events, with_some = facts["n_events"], "rows_without_covariates" in facts["inferred"]
    without = "without a target" + " or a covariate" * with_some
    lines = {
        "store": str(store),
        "rows": f"{facts['n_rows']}" + (f" ({dropped} {without} left out)" * bool(dropped)),
        "features": facts["n_features"],
        "task": "" if is_numbered else facts["task"] if events is None else "time to an event",
        "target": "none" if is_numbered else facts["target"],
        "classes": ", ".join(counts[:_FIRST_CLASSES]) + more,
        "range": "" if low_high is None else f"{low_high[0]:g} to {low_high[1]:g}",
        **{what: ", ".join(columns) for what, columns in facts["row_columns"].items()},
        "covariates": ", ".join(
            f"{one['name']} {kind_of(len(one['categories']), one['n_missing'])}"
            for one in facts["covariates"]
        ),
        "events": "" if events is None else f"{events} of {facts['n_rows']} rows",
        "kinds": describe_counts(facts["kind_counts"]),
        "row ids": facts["row_ids"] or "numbered from 1",
        "missing": f"{facts['n_missing_cells']} cells in {facts['n_missing_features']} features",
        "codes": ("2 bits each, in a .bed file" if in_bed else facts["code_dtype"])
        + f", {describe_nbytes(facts['codes_nbytes'])}",
        "values": facts["values_dtype"] or "not kept",
        "on disk": "" if on_disk is None else describe_nbytes(on_disk),
        "names": names + (", ..." if facts["n_features"] > len(facts["first_names"]) else ""),
        "source": facts["source"].get("name", "not recorded"),
        "fingerprint": facts["fingerprint"],
    }
    for key, value in lines.items():
        if value != "":
            say(f"{key:<12} {value}")


@click.command("verify")
@click.argument("path", metavar="STORE|RUN", type=STORE)
@click.option("--json", "as_json", is_flag=True, help="One JSON object; keys as listed below.")
@MEMORY_OPTION
def verify_command(path: Place, as_json: bool, memory_mb: int) -> None:
    """Read every byte of a store or a run that any command could use, and compare.

    Says what was read; the first damage ends it, with the file named and exit status 2.

    \b
    Keys of --json:
      files                     what was read, by what it is, and how many
      nbytes                    bytes read

    \b
    Examples:
      srs-ooc verify data.zarr
      srs-ooc verify data.run
    """
    from srs_ooc.runs.verification import verify

    found = verify(path, memory_mb * MB)
    if as_json:
        echo_json({"files": found.files, "nbytes": found.nbytes})
        return
    files = found.files.items()
    said = [f"{counted(count, 'file')} of {what}" for what, count in files if count]
    if found.is_run:
        said = [f"{count:,} {what}" for what, count in files]
    say(f"{found.path}: {describe_nbytes(found.nbytes)} read, all as written ({', '.join(said)})")
