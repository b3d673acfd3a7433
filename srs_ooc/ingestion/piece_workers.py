"""Pieces of a table coded by the workers of a Dask client."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from srs_ooc.base.text import MB
from srs_ooc.ingestion.pieces import Piece, Workers


def on_workers(client: Any, worker_memory_mb: int) -> Workers:
    """Return what has pieces done by a client's workers, each under a cap of its own.

    A piece whose worker is lost is done by another, from its beginning: what the lost one had
    written of it does not count.

    Parameters
    ----------
    client : distributed.Client
        Its workers have the tables and the store's folder at the same paths.
    worker_memory_mb : int
        What coding a piece may take, in MB of 10**6 bytes; a worker does one for each thread.
    """

    def done(do: Callable[[Piece], str], pieces: list[Piece]) -> Iterator[str]:
        import distributed

        finished: Any = partial(distributed.as_completed, loop=client.loop)

        capped = [
            replace(p, options=replace(p.options, memory_nbytes=worker_memory_mb * MB))
            for p in pieces
        ]
        futures = [
            client.submit(do, piece, key=f"srs_ooc_piece-{number}-{piece.store}")
            for number, piece in enumerate(capped)
        ]
        try:
            for future in finished(futures):
                yield future.result()
        finally:
            client.cancel(futures)

    return done
