"""What is ingested: a table, or its pieces, here or on the workers of a Dask cluster."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

import click

from srs_ooc.base.errors import InputError, UsageError
from srs_ooc.ingestion.ingest_options import ByteProgress, IngestOptions, SideColumns
from srs_ooc.ingestion.pipeline import ingest_table
from srs_ooc.ingestion.shards import ingest_pieces, on_workers
from srs_ooc.store.manifest import Manifest


class IngestCommand(click.Command):
    """Says what is missing where only one path is given, which may be either."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; a table alone gets a command to copy."""
        files = [arg for arg in args if not arg.startswith("-") and Path(arg).is_file()]
        try:
            return super().parse_args(ctx, args)
        except click.MissingParameter as error:
            if len(files) != 1:
                raise
            store = quote(str(Path(files[0]).with_suffix(".zarr")))
            raise UsageError(
                f"expected SOURCE and STORE, found only {files[0]}. Name the store to make, too: "
                f"srs-ooc ingest {quote(files[0])} {store}"
            ) from error


def with_workers(command: Any) -> Any:
    """Add the options that name workers to a command."""
    command = click.option(
        "--dask-scheduler-file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="The same, of the scheduler that wrote FILE.",
    )(command)
    return click.option(
        "--dask",
        metavar="ADDRESS",
        help="Code pieces on the workers of a Dask scheduler, as tcp://HOST:PORT, or local:N for N "
        "processes of this machine, each under --memory-mb.",
    )(command)


@dataclass(frozen=True)
class Sources:
    """The files of an ingest.

    Attributes
    ----------
    tables : tuple of Path
        One, or the pieces.
    side : SideColumns
        What stands beside the table.
    dask, dask_scheduler_file : str, Path or None
        Workers, where there are some.
    """

    tables: tuple[Path, ...]
    side: SideColumns
    dask: str | None
    dask_scheduler_file: Path | None

    def __post_init__(self) -> None:
        for source in self.tables:
            if source.is_fifo() or source.is_char_device():
                raise InputError(
                    f"{source}: expected a file, which is read more than once, found a pipe or a "
                    "device. Give a text table on standard input with `-` as SOURCE."
                )

    def check_single(self, option: str) -> None:
        """Refuse what pieces cannot have.

        Raises
        ------
        UsageError
            If there are several tables.
        """
        if len(self.tables) > 1:
            raise UsageError(
                f"{option}: expected one table, found {len(self.tables)} pieces. Leave it out."
            )

    def ingest(self, store: Path, options: IngestOptions, progress: ByteProgress) -> Manifest:
        """Make the store at a path; errors as of :func:`ingest_table` and :func:`ingest_pieces`."""
        has_workers = self.dask is not None or self.dask_scheduler_file is not None
        if len(self.tables) == 1 and not has_workers:
            return ingest_table(self.tables[0], store, options, progress, side=self.side)
        if self.side:
            self.check_single("--names or --target-file")
        if any(str(table) == "-" for table in self.tables):
            self.check_single("standard input")
        with ExitStack() as stack:
            workers = None
            if has_workers:
                from srs_ooc.runs.dask_cluster import dask_cluster  # loads Dask

                megabytes = options.memory_nbytes // 10**6
                cluster = dask_cluster(self.dask, self.dask_scheduler_file, megabytes)
                workers = on_workers(stack.enter_context(cluster).client, megabytes)
            return ingest_pieces(list(self.tables), store, options, progress, workers=workers)
