"""From a text table with features as rows, and a sample table, to a published store."""

import contextlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np

from srs_ooc.base.atomic import published_folder
from srs_ooc.base.budget import cap_to_name, resident_nbytes
from srs_ooc.base.errors import BudgetError, InputError, StoreError, UsageError
from srs_ooc.base.sizes import describe_nbytes, megabytes
from srs_ooc.ingestion.formats import Table
from srs_ooc.ingestion.formats.covariates import CovariateTable
from srs_ooc.ingestion.formats.csv import CsvStream, estimate
from srs_ooc.ingestion.formats.feature_rows import (
    FeatureRows,
    SpooledNames,
    needed_nbytes,
    open_stream,
)
from srs_ooc.ingestion.formats.samples import Samples, read_samples, unmatched
from srs_ooc.ingestion.formats.source import Source, check_unchanged, settle_source, stamp_of
from srs_ooc.ingestion.memory import CATEGORY_NBYTES, SLACK_NBYTES, smallest_cap
from srs_ooc.ingestion.publishing import IngestOptions, load_libraries, words_for_the_disk
from srs_ooc.ingestion.roles import check_distinct
from srs_ooc.ingestion.row_columns import Wording
from srs_ooc.ingestion.row_facts import wording_of
from srs_ooc.ingestion.table import Progress
from srs_ooc.ingestion.table_stages import Apart, TableIngest
from srs_ooc.ingestion.texts import TextSpool
from srs_ooc.store.manifest import Manifest


@dataclass(frozen=True)
class SampleTable:
    """Where it is said what samples are: a file, and the names of its columns.

    Weights, strata and groups are named by the options of the ingest.
    """

    path: Path
    id_name: str
    target_name: str
    covariates: tuple[str, ...] = ()

    def wanted(self, options: IngestOptions) -> list[tuple[str, str]]:
        """Return for each column but the ids the option that names it, and its name."""
        named = [("--target", self.target_name)]
        named += [("--weights", options.weights)] if options.weights else []
        named += [("--strata", name) for name in options.strata]
        named += [("--groups", options.groups)] if options.groups else []
        return named + [("--covariates", name) for name in self.covariates]


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
        stamp = stamp_of(source.path)
        wanted = samples.wanted(options)
        pheno = Source.file(samples.path)
        table_of_samples = read_samples(
            pheno, options.text, samples.id_name, wanted, _room_nbytes(options) // 3
        )
        with contextlib.ExitStack() as stack:
            spools = [stack.enter_context(TextSpool(scratch, name)) for name in ("samples", "rows")]
            stream = open_stream(source, options.text, spools[0])
            check_distinct(source, spools[0], "sample ids", "Rename them in the header.")
            ids = list(SpooledNames(spools[0]))[1:]
            found = table_of_samples.cells
            matched = [sample for sample in ids if sample in found]
            _check_matched(source, table_of_samples, samples, ids, matched)
            kept = np.array([sample in found for sample in ids])
            kinds = options.kinds.by_name(_room_nbytes(options) // 2)
            room = _check_room(source, stream, folder, len(kept), options, kinds)

            def tell(done: int, total: int) -> None:
                if progress:
                    progress("reading", done, total)

            features = FeatureRows(stream, spools[0], kept, scratch, spools[1], tell, room, kinds)
            check_unchanged(source.path, stamp, source)
            wording = wording_of(
                options.text, lambda row: f"{pheno}, line {table_of_samples.lines[matched[row]]}"
            )
            opened = _with_covariates(features, table_of_samples, wanted, matched, wording, kinds)

            def locate(column: int, row: int) -> str:
                name = next(islice(iter(opened.names or ()), column, None))
                if column >= features.shape[1]:
                    return f"{wording.where(row)}: column {name!r} (--covariates)"
                line = features.line_of(column)
                return f"{source}, line {line}: sample {matched[row]!r} of {name!r}"

            apart = _apart(table_of_samples, wanted, samples, ids, matched)
            pieces = stream.pieces
            origin = {"name": source.name, "nbytes": pieces.n_read, "crc32": pieces.crc32}
            settled = replace(options, target=None, weights=None, strata=(), groups=None)
            work = TableIngest(opened, source, folder, settled, progress, stack)
            manifest = work.run(apart, {"format": features.format, **origin}, wording, locate)
        shutil.rmtree(scratch)
    return manifest


def _room_nbytes(options: IngestOptions) -> int:
    """Return what the cap leaves beside the program."""
    return max(0, options.memory_nbytes - resident_nbytes() - SLACK_NBYTES)


def _check_matched(
    source: Source, found: Samples, samples: SampleTable, ids: list[str], matched: list[str]
) -> None:
    if not matched:
        raise InputError(
            f"{source}: expected sample ids as in column {samples.id_name!r} of {samples.path} "
            f"({', '.join(map(repr, list(found.cells)[:3]))}, ...), found none of them among "
            f"{', '.join(map(repr, ids[:3]))}, ... Name the column that holds them with --id."
        )


def _apart(
    found: Samples,
    wanted: list[tuple[str, str]],
    samples: SampleTable,
    ids: list[str],
    matched: list[str],
) -> Apart:
    """Return what the sample table says of the rows, in the order of the matrix."""
    columns: dict[str, list[tuple[str, list[str]]]] = {"row_ids": [(samples.id_name, matched)]}
    for place, (option, name) in enumerate(wanted):
        if option != "--covariates":
            cells = [found.cells[sample][place] for sample in matched]
            columns.setdefault(option.removeprefix("--"), []).append((name, cells))
    return Apart(columns=columns, inferred=unmatched(found, ids))


def _with_covariates(
    features: FeatureRows,
    found: Samples,
    wanted: list[tuple[str, str]],
    matched: list[str],
    wording: Wording,
    kinds: Mapping[bytes, int],
) -> Table:
    """Return the features and, after them, the covariates of the sample table."""
    places = [i for i, (option, _) in enumerate(wanted) if option == "--covariates"]
    if not places:
        return features
    columns = [[found.cells[sample][place].encode() for sample in matched] for place in places]
    return CovariateTable(features, [wanted[place][1] for place in places], columns, wording, kinds)


def _check_room(
    source: Source,
    stream: CsvStream,
    folder: Path,
    n_samples: int,
    options: IngestOptions,
    kinds: Mapping[bytes, int],
) -> int:
    """Return the memory left for the texts of categories, in bytes."""
    resident, cap = resident_nbytes(), options.memory_nbytes
    needs = {"reading": needed_nbytes(n_samples, kinds) + 2 * stream.pieces.decoder_nbytes}
    least = smallest_cap(resident, needs)
    if cap < least:
        raise BudgetError(
            f"--memory-mb {megabytes(cap):g} cannot hold this ingest: the program itself takes "
            f"{megabytes(resident):g} MB, and reading features of {n_samples} samples "
            f"{megabytes(needs['reading']):g} MB. Give at least --memory-mb {cap_to_name(least)}."
        )
    needed = 8 * n_samples * estimate(source, options.text, n_samples + 1).n_rows
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise StoreError(
            f"{folder.parent}: expected about {describe_nbytes(needed)} of free disk for scratch, "
            f"found {describe_nbytes(free)}. Free some space, or put the store on another disk."
        )
    spare = int(cap - resident - SLACK_NBYTES - needs["reading"])
    return max(0, min(CATEGORY_NBYTES, spare // 2))
