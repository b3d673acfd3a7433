"""A network from a store: made or gone on with, worked on, and its edges written."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np

from srs_ooc.base.budget import Budget, Lease
from srs_ooc.base.errors import UsageError
from srs_ooc.base.sizes import MB
from srs_ooc.networks.book import EdgeBook, open_book
from srs_ooc.networks.files import Edge, check_edge_file, write_edges
from srs_ooc.networks.forests import Forests, wants_tiles
from srs_ooc.networks.genes import GeneFiles, Genes, equal_columns, find_genes, names_of
from srs_ooc.networks.memory import Grant, grant
from srs_ooc.networks.params import NetworkParams
from srs_ooc.networks.ranking import ranked
from srs_ooc.networks.work import TargetWork, Watch
from srs_ooc.runs.executors import Source
from srs_ooc.runs.inputs import InputFiles, Inputs, digest, resolve
from srs_ooc.runs.memory import n_cores
from srs_ooc.runs.resources import categorical_features
from srs_ooc.runs.spec.needs import LEDGER_NBYTES
from srs_ooc.store.kinds import CONSTANT
from srs_ooc.store.store import Store
from srs_ooc.store.value_tables import n_values_of
from srs_ooc.trees.block import Block

FOLDER_SUFFIX = ".network"
WRITTEN_TOGETHER = 1 << 13
"""Edges whose names are looked up together."""


@dataclass(frozen=True)
class NetworkRequest:
    """What is asked of a network.

    Attributes
    ----------
    out : Path
        File of the edges, CSV or Parquet.
    params : NetworkParams
        Its identity, besides store, features and rows.
    regulators, targets, rows : Path or None
        Files of names; None for all.
    run : Path or None
        Folder of what is done; None for ``out`` with :data:`FOLDER_SUFFIX`.
    top : int or None
        Only so many edges.
    memory_mb : int
        Cap on the whole process.
    threads : int or None
        Workers; None for the cores there are.
    safe : bool
        No name in the CSV file is a formula to a spreadsheet.
    """

    out: Path
    params: NetworkParams
    regulators: Path | None = None
    targets: Path | None = None
    rows: Path | None = None
    run: Path | None = None
    top: int | None = None
    memory_mb: int = 512
    threads: int | None = None
    safe: bool = False

    @property
    def folder(self) -> Path:
        """Where what is done is kept."""
        return self.out.with_name(self.out.name + FOLDER_SUFFIX) if self.run is None else self.run


@dataclass(frozen=True)
class Network:
    """What became of a network.

    Attributes
    ----------
    out, run : str
        The file of its edges, and the folder of what is done.
    n_regulators, n_targets, n_done, n_edges : int
        Its size; targets done; edges written, 0 before all targets are.
    n_constant : int
        Targets without edges, as their values do not differ.
    n_duplicates : int
        Pairs of a target and a regulator with equal codes.
    duplicates : list of (str, str)
        The first of them: target, regulator.
    seconds, peak_mb : float
        Time worked on targets, and the largest resident size so far.
    """

    out: str
    run: str
    n_regulators: int
    n_targets: int
    n_done: int
    n_edges: int
    n_constant: int
    n_duplicates: int
    seconds: float
    peak_mb: float
    duplicates: list[tuple[str, str]] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        """Whether all targets are done, and the edges written."""
        return self.n_done == self.n_targets


def work_on_network(
    store: Store,
    request: NetworkRequest,
    watch: Watch = lambda _: True,
    note: Callable[[str], None] = lambda _: None,
) -> Network:
    """Weigh the regulators of all targets and write the edges; go on where it was stopped.

    Parameters
    ----------
    store : Store
        The store; its own target plays no part, its weights of rows do.
    request : NetworkRequest
        What is asked.
    watch : callable
        Shown each step; the work stops where it says no, with all that is done kept.
    note : callable
        Given sentences worth saying before the work begins.

    Raises
    ------
    UsageError, StoreError, RunError, BudgetError
        If it cannot be done as asked, or the store is replaced meanwhile.
    """
    check_edge_file(request.out)
    _check_free(request)
    with store.unchanged():
        store.check_files()
        named = GeneFiles.of(store, request.regulators, request.targets)
        files = InputFiles.of(store, None, request.rows)
        budget = Budget(request.memory_mb * MB)
        leases = [*named.leases(), *files.leases(store.n_features), ("ledger", LEDGER_NBYTES)]
        budget.leases += [Lease(*lease) for lease in leases]
        budget.check()
        inputs = resolve(store, files, budget.free_nbytes)
        genes = find_genes(store, named, budget.free_nbytes)
        n_others = len(genes.regulators) - (len(genes.targets) == 1)
        request.params.check(max(1, min(n_others, len(genes.regulators))))
        work = _Work(store, request, inputs, genes)
        with closing(open_book(request.folder, work.identity(), {})) as ledger:
            book = EdgeBook(ledger, len(genes.targets), len(genes.regulators))
            n_duplicates, duplicates = work.work(book, watch, note)
            n_edges = 0
            if book.n_done == len(genes.targets):
                store.check_unchanged()
                n_edges = work.write(book)
            return work.network(book, n_edges, n_duplicates, duplicates)


def _check_free(request: NetworkRequest) -> None:
    """Refuse to overwrite a file that is not this network's own."""
    if request.out.exists() and not request.folder.exists():
        raise UsageError(
            f"{request.out}: expected no file there, found one, and no {request.folder} of a "
            "network that it may be of. Move it away, or choose another name."
        )
    if not request.out.absolute().parent.is_dir():
        raise UsageError(
            f"--out: expected a file in a folder that is there, found {request.out}. Make the "
            "folder first."
        )


class _Work:
    """One network at work."""

    def __init__(self, store: Store, request: NetworkRequest, inputs: Inputs, genes: Genes) -> None:
        self.store, self.request, self.rows, self.genes = store, request, inputs.rows, genes
        self.n_rows = store.n_rows if inputs.rows is None else len(inputs.rows)
        self.n_values = 0
        if request.params.thresholds == "value":
            self.n_values = n_values_of(store.manifest)
        self.grant = self._grant()

    def _grant(self) -> Grant:
        request = self.request
        return grant(
            self.store.manifest,
            self.genes,
            request.params,
            self.n_rows,
            self.n_values,
            request.memory_mb * MB,
            request.threads or n_cores(),
        )

    def identity(self) -> dict[str, Any]:
        """Return what identifies the network."""
        return self.request.params.values() | {
            "store": self.store.fingerprint,
            "regulators": digest(self.genes.regulators, "features"),
            "targets": digest(self.genes.targets, "features"),
            "rows": digest(self.rows, "rows"),
        }

    def work(
        self, book: EdgeBook, watch: Watch, note: Callable[[str], None]
    ) -> tuple[int, list[tuple[str, str]]]:
        """Compare columns, and weigh the regulators of the targets that are left."""
        params, genes, stopping = self.request.params, self.genes, Event()
        with ExitStack() as stack:
            columns = stack.enter_context(self.store.columns(mapped=self.grant.mapped))
            source = Source(columns, self.rows)
            n_equal, equal = equal_columns(source, genes, self.store.kinds(), self.n_rows)
            named = self._named(equal)
            for sentence in _said(n_equal, named):
                note(sentence)
            if book.n_done < len(genes.targets):
                if self.n_values:
                    values = stack.enter_context(self.store.value_tables())
                    source = Source(columns, self.rows, values=values)
                categorical = categorical_features(self.store)
                forests = Forests(params, source, categorical, stopping)
                blocks = self._blocks()
                TargetWork(self.store, genes, self.rows, forests, blocks, stopping).run(book, watch)
        return n_equal, named

    def _blocks(self) -> list[Block]:
        n_columns = len(self.genes.regulators)
        tiled = wants_tiles(self.request.params.candidates(n_columns), n_columns)
        code_nbytes = self.store.manifest.code_nbytes
        return [
            Block(n_columns, self.n_rows, code_nbytes, tiled=tiled, n_values=self.n_values)
            for _ in range(self.grant.n_workers)
        ]

    def _named(self, pairs: list[tuple[int, int]]) -> list[tuple[str, str]]:
        flat = np.array(pairs, np.int64).reshape(-1)
        names = [self.store.names[i] for i in names_of(self.store, flat).tolist()]
        return list(zip(names[::2], names[1::2], strict=True))

    def write(self, book: EdgeBook) -> int:
        """Write the edges; return how many."""
        request = self.request
        return write_edges(
            request.out, self._edges(book), replaces=request.out.exists(), safe=request.safe
        )

    def _edges(self, book: EdgeBook) -> Iterator[list[Edge]]:
        n_regulators, names = len(self.genes.regulators), self.store.names
        regulators = names_of(self.store, self.genes.regulators)
        targets = names_of(self.store, self.genes.targets)
        for edges in ranked(book.shards, self.grant.n_edges, self.request.top):
            for start in range(0, len(edges.weights), WRITTEN_TOGETHER):
                some = slice(start, start + WRITTEN_TOGETHER)
                pairs = np.divmod(edges.places[some], n_regulators)
                to, by = targets[pairs[0]].tolist(), regulators[pairs[1]].tolist()
                text = {place: names[place] for place in {*to, *by}}
                yield [
                    (text[r], text[t], weight)
                    for r, t, weight in zip(by, to, edges.weights[some].tolist(), strict=True)
                ]

    def network(
        self, book: EdgeBook, n_edges: int, n_duplicates: int, duplicates: list[tuple[str, str]]
    ) -> Network:
        """Return what became of it."""
        genes, kinds = self.genes, self.store.kinds()
        return Network(
            os.fspath(self.request.out),
            os.fspath(self.request.folder),
            len(genes.regulators),
            len(genes.targets),
            book.n_done,
            n_edges,
            int(np.count_nonzero(kinds[genes.targets] == CONSTANT)),
            n_duplicates,
            round(book.committed.seconds, 3),
            round(book.committed.peak_nbytes / MB, 1),
            duplicates,
        )


def _said(n_equal: int, named: list[tuple[str, str]]) -> Iterator[str]:
    if n_equal:
        target, regulator = named[0]
        more = f", and {n_equal - 1} more such pairs" if n_equal > 1 else ""
        yield (
            f"target {target}: the regulator {regulator} orders the rows exactly as it does{more}. "
            "Such a regulator takes nearly all of the weight. Leave it out of the regulators if it "
            "is the same gene measured twice."
        )
