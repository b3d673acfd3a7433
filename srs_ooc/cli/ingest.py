"""``srs-ooc ingest``: a table into a store."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import Any

import click
import numpy as np

from srs_ooc.base.errors import InputError, UsageError
from srs_ooc.base.options import flag_given
from srs_ooc.base.text import counted, describe_nbytes
from srs_ooc.base.urls import Place
from srs_ooc.cli import output
from srs_ooc.cli.output import FILE, STORE, describe_counts, kind_of, say
from srs_ooc.ingestion import ingest_options
from srs_ooc.ingestion.feature_rows import begins_as, sample_columns
from srs_ooc.ingestion.formats.genotypes import RAW, TRAW
from srs_ooc.ingestion.ingest import add_columns, made_first_at, make_at
from srs_ooc.ingestion.ingest_options import FLAGS, HELP, OPTIONS, IngestOptions
from srs_ooc.ingestion.remarks import far_out, remarks_of
from srs_ooc.ingestion.rows import said_of_missing
from srs_ooc.ingestion.stages import forecast
from srs_ooc.results.live import RunProgress
from srs_ooc.store.manifest import LAST_COLUMN, NO_TARGET, Manifest
from srs_ooc.store.opening import open_store
from srs_ooc.store.store import Store

# What `ingest` prints: what an ingest would take, and what was found out about a table.


CLASSES_SHOWN = 8


def _class_counts(manifest: Manifest) -> str:
    """Return the rows of each class, the largest first."""
    rows = np.array(manifest.class_counts)
    order = np.argsort(-rows, kind="stable")
    shown = [f"{manifest.classes[i]!r} {rows[i]}" for i in order[:CLASSES_SHOWN].tolist()]
    if len(rest := rows[order[CLASSES_SHOWN:]]):
        shown.append(f"{len(rest)} others {rest.min()} to {rest.max()} each")
    return ", ".join(shown)


def report_store(store: Place, manifest: Manifest, options: IngestOptions) -> None:
    """Say what is in a new store, what of it was found rather than said, and what is unusual."""
    inferred, name, is_here = manifest.inferred, manifest.target_name, isinstance(store, Path)
    last = {None: "", LAST_COLUMN: ", the last column"}.get(inferred.get("target"), " of the file")
    kind = "time to an event" if "events" in manifest.row_columns else manifest.task
    n_classes = f", {len(manifest.classes)} classes" if manifest.classes else ""
    has_none, more = inferred.get("target") == NO_TARGET, inferred.get("rows_without_covariates", 0)
    n_without, one_of = manifest.n_dropped_rows - more, inferred.get("aggregate", {})
    without = NO_TARGET if manifest.row_id_name is None else "none"
    lines = [
        f"{store}: {manifest.n_rows} rows x {manifest.n_features} features",
        f"target: {without}" if has_none else f"target: {name!r}{last} ({kind}{n_classes})",
        manifest.classes and is_here and f"rows of each class: {_class_counts(manifest)}",
        "task" in inferred and f"task: {inferred['task']}, as found",
        *(
            f"target {other!r}, too; rows without it: {found['n_without']}"
            + f"; with it, but left out for want of {name!r}: {found['n_left_out']}"
            * bool(found["n_left_out"])
            for other, found in inferred.get("targets", {}).items()
        ),
        one_of and "aggregated: a row is the {how} of a group's, of {n_rows} rows".format(**one_of),
        n_without and f"rows without a target, left out: {n_without}",
        more and f"rows without a covariate, left out: {more}",
        *(f"appended: {line}" for line in inferred.get("appended", ())),
        f"kinds: {describe_counts(manifest.kind_counts)}",
        *_found(manifest, has_samples=bool(options.samples)),
        manifest.n_missing_cells
        and f"missing: {manifest.n_missing_cells} cells in {manifest.n_missing_features} features",
        _kept(manifest),
    ]
    for line in filter(None, lines):
        say(line)
    missing = options.text.missing
    for remark in remarks_of(Store.open(store), missing) if isinstance(store, Path) else ():
        say(f"note: {remark}")


def _kept(manifest: Manifest) -> str:
    """Return where the codes are, and whether the values are kept."""
    size = describe_nbytes(manifest.codes_nbytes)
    if manifest.is_linked:
        name = manifest.source["name"]
        return f"linked: {name} holds the genotypes ({size}) and must stay as it is"
    if manifest.n_linked_rows:
        return f"kept: 2-bit codes ({size}), which are the values"
    kept = f"and {manifest.values_dtype} values" if manifest.values_dtype else "without the values"
    return f"kept: {manifest.code_dtype} codes ({size}) {kept}"


def _found(manifest: Manifest, *, has_samples: bool) -> Iterator[str]:
    """Yield what the rows have besides a target, and what of the table was found."""
    inferred = manifest.inferred
    for what, columns in manifest.row_columns.items():
        if what not in ("covariates", "events"):
            yield f"{what}: {', '.join(map(repr, columns))}"
    if names := manifest.row_columns.get("covariates"):
        missing, sizes = inferred.get("missing_covariates", {}), map(len, manifest.levels)
        shown = [
            f"{name!r} {kind_of(n_levels, missing.get(name, 0))}"
            for name, n_levels in zip(names, sizes, strict=True)
        ]
        yield f"covariates: {', '.join(shown)}"
        more = "; --sample-features makes features of columns of --samples" if has_samples else ""
        yield f"covariates are kept beside the features, not searched{more}"
    if events := inferred.get("events"):
        (name,) = manifest.row_columns["events"]
        yield f"events: {events['n']} of {manifest.n_rows} rows ({name!r} is {events['value']!r})"
    yield from _unmatched(inferred)
    why = {"names": ", since none were given", "separator": ", as found in the first lines"}
    roles = ("row_ids", "index", "names", "alleles", "samples", "renamed")
    for what in ("read_as", *roles, "separator"):
        if found := inferred.get(what):
            yield f"{what.replace('_', ' ')}: {found}{why.get(what, '')}"


def _unmatched(
    inferred: Mapping[str, Any],
    samples: str = "samples without a label, left out",
    labels: str = "labels without a sample, left out",
) -> Iterator[str]:
    for side, words in (("samples_without_label", samples), ("labels_without_sample", labels)):
        if found := inferred.get(side):
            more = ", ..." if found["n"] > len(found["first"]) else ""
            yield f"{words}: {found['n']} ({', '.join(found['first'])}{more})"
    for words, n_rows in inferred.get("plink", {}).items():
        yield f"{counted(n_rows, 'row')} {words}"


# What is ingested: a table, or its pieces, here or on the workers of a Dask cluster.


def check_single(tables: tuple[Path, ...], option: str) -> None:
    """Refuse what pieces cannot have.

    Raises
    ------
    UsageError
        If there are several tables.
    """
    if len(tables) > 1:
        raise UsageError(f"{option}: expected one table, found {len(tables)} pieces. Leave it out.")


_SHARED = {"memory_mb": output.MEMORY_OPTION, "threads": output.THREADS_OPTION}
_TYPES = {"FILE": FILE, "OLD": STORE, "N": output.COUNT}


def _option_of(name: str, takes: Mapping[str, Any]) -> Callable[[Any], Any]:
    """Return the click option of one that is declared."""
    words, default = takes["words"], takes["default"]

    def read(*given: Any) -> Any:
        if takes["several"]:
            return tuple(chain.from_iterable(map(takes["read"], given[-1]))) or default
        return default if given[-1] is None else takes["read"](given[-1])

    return click.option(
        *(FLAGS[name], name),
        type=click.Choice(words) if words else _TYPES.get(takes["metavar"]),
        default=default if words else None,
        show_default=bool(words),
        metavar=takes["metavar"],
        multiple=takes["several"],
        is_flag=takes["check"] is flag_given,
        callback=read,
        help=HELP.get(name),
    )


_INGEST = {name: _SHARED.get(name) or _option_of(name, one) for name, one in OPTIONS.items()}
_OPTIONS = [
    *_INGEST.values(),
    *output.PROGRESS_OPTIONS,
    click.option("--dry-run", is_flag=True, help="Say what the ingest would take, and write "
                 "nothing."),
    click.option("--dask", metavar="ADDRESS", help="Code pieces on the workers of a Dask "
                 "scheduler, as tcp://HOST:PORT or the file that it wrote, or local:N for N "
                 "processes of this machine, each under --memory-mb."),
]  # fmt: skip


@click.command("ingest", cls=output.Brief, first=(
    "--target", "--ignore", "--row-ids", "--covariates", "--groups", "--orient", "--samples",
    "--id", "--memory-mb", "--dry-run", "--overwrite",
))  # fmt: skip
@click.argument("tables", metavar="SOURCE...", nargs=-1, type=FILE)
@click.argument("store", type=STORE)
@output.with_options(_OPTIONS)
def ingest_command(
    *,
    tables: tuple[Path, ...],
    store: Place,
    shows: bool | None,
    dry_run: bool,
    dask: str | None,
    **given: Any,
) -> None:
    """Turn the table SOURCE (- for text on standard input) into STORE.

    Text tables, Parquet, NumPy, genotypes of PLINK and VCF, 10x and .h5ad, HDF5 (FILE::PATH), Zarr
    (FOLDER::ARRAY), databases (--query) and more are read; `srs-ooc formats` lists all. All columns
    but the target and those that an option names are features: numbers, or texts (categories).

    Text may be packed by gzip, xz, bzip2 or zstd.
    An .npz file may also hold a sparse matrix of SciPy. FILE.h5::/PATH names a dataset of HDF5 or a
    matrix of .h5ad; .T after it turns it round. Missing values are stored. STORE appears whole or
    not at all; at a URL it is made in $SRS_OOC_CACHE_DIR first.

    Several SOURCEs are pieces of one table: the same rows, other columns. The first has the target.
    They are coded one by one, or by the workers of --dask, and put together; the same command again
    does those that are missing.

    \b
    Examples:
      srs-ooc ingest data.csv data.zarr --target diagnosis --memory-mb 512
      srs-ooc ingest betas.tsv.gz data.zarr --orient features \\
          --samples pheno.csv --id ID --target Group
    """
    if not tables:
        is_store = Path(str(store)).suffix == ".zarr"
        pair = ("TABLE", store) if is_store else (store, Path(str(store)).with_suffix(".zarr"))
        raise UsageError(
            f"expected SOURCE and STORE, found only {store}. Name both: "
            f"srs-ooc ingest {' '.join(quote(str(one)) for one in pair)}"
        )
    from srs_ooc.ingestion.formats.files import together, turned  # loads libraries

    tables = tuple(together(tables))
    tables = tuple(map(turned, tables)) if given["orient"] == "features" else tables
    options = _options_of(given, tables)
    options = options if isinstance(store, Path) else options.settled()
    for source in tables:
        if source.is_fifo() or source.is_char_device():
            raise InputError(
                f"{source}: expected a file, which is read more than once, found a pipe or a "
                "device. Give a text table on standard input with `-` as SOURCE."
            )
    if dry_run:
        check_single(tables, "--dry-run")
        for line in forecast(tables[0], made_first_at(store), options):
            say(line)
        return
    if options.has_items:
        check_single(tables, "--names or --target-file")
    if any(str(table) == "-" for table in tables):
        check_single(tables, "standard input")

    progress = RunProgress(shows=shows)
    tell = progress.show_bytes

    table, client = tables[0] if len(tables) == 1 else list(tables), None
    with progress, ExitStack() as stack:
        if dask is not None:
            from srs_ooc.runs.dask_cluster import dask_cluster  # loads Dask

            cluster = dask_cluster(dask, int(options.memory_mb))
            table, client = list(tables), stack.enter_context(cluster).client
        manifest = make_at(store, table, options, tell, client)
    report_store(store, manifest, options)


@click.command("targets")
@click.argument("store", type=STORE)
@click.argument("table", type=FILE, required=False)
@click.option("--id", "id_name", metavar="NAME", help="Column of TABLE with the row ids of STORE.")
@click.option("--target", metavar="NAMES", help="Columns of targets, separated by commas.")
@output.with_options([_INGEST[name] for name in (
    "task", "min_class_rows", "kind", "covariates", "separator", "decimal", "missing", "memory_mb",
)])  # fmt: skip
def targets_command(store: Place, table: Path | None, **given: Any) -> None:
    """Add targets and covariates to STORE from the text table TABLE, or list those there are.

    A column that was added before is replaced: its runs are refused from then on, all others go on.
    `srs-ooc run STORE --target NAME` searches for a target, `run --adjust` takes covariates.

    \b
    Examples:
      srs-ooc targets data.zarr pheno.csv --id ID --target bmi,smoker --covariates age,sex
      srs-ooc targets data.zarr
    """
    opened = open_store(store)
    if table is not None:
        if given["id_name"] is None:
            raise UsageError(f"{table}: expected --id NAME, the column of row ids, found none.")
        options = _options_of(given | {"samples": (table,)})
        words = "rows without a line in the table", "lines without a row, left out"
        for line in _unmatched(found := add_columns(opened, options), *words):
            say(line)
        said = partial(said_of_missing, known=options.text.missing)
        for remark in (*found.get("joined", ()), *far_out(opened, said, features=False)):
            say(f"note: {remark}")
    own, n_rows = opened.manifest, opened.n_rows
    if opened.own_target:
        kind = kind_of(len(own.classes), 0)
        say(f"target {own.target_name!r} {kind}: {n_rows} of {n_rows} rows, the store's own")
    for kind in ("target", "covariate"):
        for name, values, levels in opened.added(kind):
            n_there = np.count_nonzero(~np.isnan(values))
            say(f"{kind} {name!r} {kind_of(len(levels), 0)}: {n_there} of {n_rows} rows")


def _options_of(given: dict[str, Any], tables: Any = ()) -> IngestOptions:
    """Return what the options of a command say; a ``.traw`` with samples says how it is turned."""
    if given["samples"] and any(begins_as(TRAW, table) for table in tables):
        given["orient"] = "features"
    options = ingest_options.options_of(given)
    orient, samples, id_name = given.get("orient"), options.samples, options.id_name
    if orient == "samples" and (options.sample_features or (not samples) != (id_name is None)):
        raise UsageError(
            "expected --samples and --id together, and --sample-features only with --orient "
            "features. Give both, or leave them out."
        )
    if orient == "features" and None in (samples or None, id_name, options.target):
        raise UsageError(
            "--orient features (.traw): expected --samples FILE, --id NAME and --target NAME (or "
            "--time and --event), which say where the target of a sample stands. Give all three. "
            "Turn an array by `numpy.save(NEW, numpy.load(FILE).T)` for --target-file and --names."
        )
    if samples:
        from srs_ooc.ingestion.formats.files import opener_of  # loads libraries

        texts = (one for one in tables if opener_of(one) is None and not begins_as(RAW, one))
        if orient == "samples" and any(texts):
            raise UsageError(
                "--samples: expected --orient features, or a file that is no text table. Of others "
                "the target is a column: name it by --target, or add it later by `srs-ooc targets`."
            )
        options = options.with_targets(sample_columns(options))
    file, names = given.get("target_file"), given.get("names")
    if options.target is not None and file is not None:
        found = options.flag_of("target")
        raise UsageError(f"expected {found} or --target-file, found both. Leave one out.")
    if samples and (names or file):
        raise UsageError(
            "expected no --names or --target-file with --orient features: the table names its "
            "features, --samples holds the target. Leave them out."
        )
    return options if file is None else replace(options, beside={"target": [("target", file)]})
