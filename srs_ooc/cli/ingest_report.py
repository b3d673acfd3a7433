"""What `ingest` prints: what an ingest would take, and what was found out about a table."""

from pathlib import Path

import numpy as np

from srs_ooc.base.text import MB, describe_nbytes
from srs_ooc.base.urls import Place
from srs_ooc.cli.output import say
from srs_ooc.ingestion.pipeline import Forecast, remarks_of
from srs_ooc.store.manifest import NO_TARGET, Manifest, describe_counts
from srs_ooc.store.store import Store


def report_forecast(found: Forecast, cap: int) -> None:
    """Say what an ingest would take of disk and memory, ``cap`` being the bytes allowed."""
    about = "" if found.rows_are_known else "about "
    say(f"columns: {found.n_columns}")
    say(f"rows: {about}{found.n_rows}")
    say(f"scratch disk: {about}{describe_nbytes(found.scratch_nbytes)}, given back")
    say(f"store: at most {about}{describe_nbytes(found.store_nbytes)}")
    words = "enough" if found.fits else "NOT enough"
    say(f"free disk: {describe_nbytes(found.free_nbytes)}, {words}")
    words = "enough" if found.fits_memory else "NOT enough"
    say(f"memory: --memory-mb {found.least_mb} or more; {cap // MB} is {words}")


CLASSES_SHOWN = 8


def report_store(store: Place, manifest: Manifest) -> None:
    """Say what is in a new store, what of it was found rather than said, and what is unusual."""
    _report_manifest(store, manifest)
    if isinstance(store, Path):
        for remark in remarks_of(Store.open(store)):
            say(f"note: {remark}")


def _class_counts(store: Place, manifest: Manifest) -> str:
    """Return the rows of each class, the largest first; nothing of a store at a URL."""
    if not isinstance(store, Path):
        return ""
    target = Store.open(store).target()
    rows = np.bincount(target.astype(np.int64), minlength=len(manifest.classes))
    order = np.argsort(-rows, kind="stable")
    shown = [f"{manifest.classes[i]!r} {rows[i]}" for i in order[:CLASSES_SHOWN].tolist()]
    rest = order[CLASSES_SHOWN:]
    each = f"{rows[rest].min()} to {rows[rest].max()} each" if len(rest) else ""
    more = f", {len(rest)} others {each}" if len(rest) else ""
    return f"{', '.join(shown)}{more}"


def _report_manifest(store: Place, manifest: Manifest) -> None:
    inferred = manifest.inferred
    say(f"{store}: {manifest.n_rows} rows x {manifest.n_features} features")
    last = ", the last column" if inferred.get("target") else ""
    n_classes = f", {len(manifest.classes)} classes" if manifest.classes else ""
    if inferred.get("target") == NO_TARGET:
        say(f"target: {NO_TARGET}")
    else:
        say(f"target: {manifest.target_name!r}{last} ({manifest.task}{n_classes})")
    if manifest.classes and (counts := _class_counts(store, manifest)):
        say(f"rows of each class: {counts}")
    if task := inferred.get("task"):
        say(f"task: {task}, as found")
    if manifest.n_dropped_rows:
        say(f"rows without a target, left out: {manifest.n_dropped_rows}")
    say(f"kinds: {describe_counts(manifest.kind_counts)}")
    _report_found(manifest)
    if manifest.n_missing_cells:
        say(f"missing: {manifest.n_missing_cells} cells in {manifest.n_missing_features} features")
    kept = f"and {manifest.values_dtype} values" if manifest.values_dtype else "without the values"
    size = describe_nbytes(manifest.codes_nbytes)
    say(f"kept: {manifest.code_dtype} codes ({size}) {kept}")


def _report_found(manifest: Manifest) -> None:
    """Say what the rows have besides a target, and what of the table was found."""
    inferred = manifest.inferred
    for what, columns in manifest.row_columns.items():
        say(f"{what}: {', '.join(map(repr, columns))}")
    for side, words in (
        ("samples_without_label", "samples without a label, left out"),
        ("labels_without_sample", "labels without a sample, left out"),
    ):
        if found := inferred.get(side):
            more = ", ..." if found["n"] > len(found["first"]) else ""
            say(f"{words}: {found['n']} ({', '.join(found['first'])}{more})")
    if row_ids := inferred.get("row_ids"):
        say(f"row ids: {row_ids}")
    if index := inferred.get("index"):
        say(f"index: {index}")
    if names := inferred.get("names"):
        say(f"names: {names}, since none were given")
    if separator := inferred.get("separator"):
        say(f"separator: {separator}, as found in the first lines")
