"""From a text table with features as rows, and a sample table, to a published store."""

import contextlib
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import psutil

from srs_ooc.atomic import published_folder
from srs_ooc.errors import BudgetError, InputError, StoreError, UsageError
from srs_ooc.sizes import MB, describe_nbytes, megabytes
from srs_ooc.store.formats.csv import CsvStream, estimate
from srs_ooc.store.formats.feature_rows import (
    FeatureRows,
    SpooledNames,
    needed_nbytes,
    open_stream,
)
from srs_ooc.store.formats.samples import Samples, read_samples, unmatched
from srs_ooc.store.formats.source import Source, settle_source
from srs_ooc.store.ingest_table import Apart, TableIngest
from srs_ooc.store.manifest import Manifest
from srs_ooc.store.memory import smallest_cap
from srs_ooc.store.publishing import IngestOptions, load_libraries, words_for_the_disk
from srs_ooc.store.roles import check_distinct
from srs_ooc.store.table import Progress
from srs_ooc.store.texts import TextSpool


@dataclass(frozen=True)
class SampleTable:
    """Where the labels of samples are: a file, and the names of its columns."""

    path: Path
    id_name: str
    target_name: str


def ingest_features_as_rows(
    table: Path,
    store: Path,
    samples: SampleTable,
    options: IngestOptions,
    progress: Progress | None = None,
) -> Manifest:
    """Ingest a table with a feature a row; labels are joined by sample id.

    Samples without a label, and labels without a sample, are left out; the manifest's ``inferred``
    counts them and lists the first.

    Raises
    ------
    InputError
        If a table cannot be read as asked, or no sample has a label.
    StoreError
        If the store exists, or cannot be written.
    BudgetError
        If the memory cap cannot hold the work.
    """
    if not options.text.header or options.ignore or options.row_ids:
        raise UsageError(
            "expected no --no-header, --ignore or --row-ids with --orient features: the header "
            "holds the sample ids, the first column the names. Leave the option out."
        )
    load_libraries()
    with words_for_the_disk(store), published_folder(store) as folder:
        scratch = folder / "scratch"
        scratch.mkdir()
        source = settle_source(table, scratch)
        labels = read_samples(
            Source.file(samples.path), options.text, samples.id_name, samples.target_name
        )
        with contextlib.ExitStack() as stack:
            spools = [stack.enter_context(TextSpool(scratch, name)) for name in ("samples", "rows")]
            stream = open_stream(source, options.text, spools[0])
            check_distinct(source, spools[0], "sample ids", "Rename them in the header.")
            ids = list(SpooledNames(spools[0]))[1:]
            apart = _join(source, labels, samples, ids)
            kept = np.array([sample in labels.labels for sample in ids])
            _check_room(source, stream, folder, len(kept), options)

            def tell(done: int, total: int) -> None:
                if progress:
                    progress("reading", done, total)

            opened = FeatureRows(stream, spools[0], kept, scratch, spools[1], tell)
            pieces = stream.pieces
            origin = {"name": source.name, "nbytes": pieces.n_read, "crc32": pieces.crc32}
            work = TableIngest(
                opened, source, folder, replace(options, target=None), progress, stack
            )
            manifest = work.run(apart, {"format": opened.format, **origin})
        shutil.rmtree(scratch)
    return manifest


def _join(source: Source, labels: Samples, samples: SampleTable, ids: list[str]) -> Apart:
    matched = [sample for sample in ids if sample in labels.labels]
    if not matched:
        raise InputError(
            f"{source}: expected sample ids as in column {samples.id_name!r} of {samples.path} "
            f"({', '.join(map(repr, list(labels.labels)[:3]))}, ...), found none of them among "
            f"{', '.join(map(repr, ids[:3]))}, ... Name the column that holds them with --id."
        )
    return Apart(
        target=[labels.labels[sample] for sample in matched],
        row_ids=matched,
        target_name=samples.target_name,
        row_id_name=samples.id_name,
        inferred=unmatched(labels, ids),
    )


def _check_room(
    source: Source, stream: CsvStream, folder: Path, n_samples: int, options: IngestOptions
) -> None:
    resident, cap = psutil.Process().memory_info().rss, options.memory_nbytes
    needs = {"reading": needed_nbytes(n_samples) + 2 * stream.pieces.decoder_nbytes}
    least = smallest_cap(resident, needs)
    if cap < least:
        raise BudgetError(
            f"--memory-mb {megabytes(cap):g} cannot hold this ingest: the program itself takes "
            f"{megabytes(resident):g} MB, and reading features of {n_samples} samples "
            f"{megabytes(needs['reading']):g} MB. Give at least --memory-mb {least // MB}."
        )
    needed = 8 * n_samples * estimate(source, options.text, n_samples + 1).n_rows
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise StoreError(
            f"{folder.parent}: expected about {describe_nbytes(needed)} of free disk for scratch, "
            f"found {describe_nbytes(free)}. Free some space, or put the store on another disk."
        )
