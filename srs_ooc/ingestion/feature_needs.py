"""What the ingest of a text table with features as rows takes, sample table and kinds included."""

from srs_ooc.base.budget import Lease
from srs_ooc.ingestion.formats.csv_looks import count_rows, rows_at_most
from srs_ooc.ingestion.formats.feature_rows import reading_nbytes
from srs_ooc.ingestion.formats.pieces import N_DECODERS, PieceReader
from srs_ooc.ingestion.formats.samples import ids_nbytes, samples_nbytes
from srs_ooc.ingestion.formats.source import SourceFile
from srs_ooc.ingestion.memory import SLACK_NBYTES
from srs_ooc.ingestion.needs import Needs
from srs_ooc.ingestion.options import IngestOptions, SampleTable
from srs_ooc.ingestion.scratch import TextSpool
from srs_ooc.ingestion.table_needs import line_nbytes

_FEW_FEATURES = 1 << 16
"""Tables of so many features are asked for the same memory, however many they have."""


def asked_of(samples: SampleTable, options: IngestOptions) -> list[tuple[str, str]]:
    """Return for each column of a sample table that is asked for the option, and its name."""
    asked = [(f"--{what}", name) for what, name in options.columns()]
    return asked + [("--covariates", name) for name in samples.covariates]


def feature_needs(
    source: SourceFile, header: TextSpool, samples: SampleTable, options: IngestOptions
) -> Needs:
    """Return what a bound on the features takes, or their number where the bound is too high.

    Raises
    ------
    InputError
        If the sample table cannot be read as asked.
    """
    n_samples, labels = len(header) - 1, SourceFile.file(samples.path)
    known = samples_nbytes(labels, options.text, samples.id_name, asked_of(samples, options))
    known += ids_nbytes(n_samples, header.nbytes)
    held = [Lease("the samples", known)]
    if options.kinds:
        held.append(Lease("kinds by name", options.kinds.by_name_nbytes()))
    decoder = PieceReader(source).decoder_nbytes
    reading = Lease("reading features", reading_nbytes(n_samples) + N_DECODERS * decoder)
    room = Lease("working room", SLACK_NBYTES)
    lines = Lease("lines on their way", line_nbytes((n_samples, 1), by_rows=False))

    def needs(n_features: int) -> Needs:
        n_columns = max(n_features, _FEW_FEATURES) + len(samples.covariates)
        return Needs.of(options, n_columns, n_samples, (*held, lines), (*held, room, reading))

    bound = rows_at_most(source, n_samples + 1)
    if bound is not None:
        most = needs(bound)
        if most.fits(options.memory_nbytes) or most.least_mb == needs(1).least_mb:
            return most
    return needs(count_rows(source, options.text, n_samples + 1)[0])
