"""Types of the native module; the sources are in ``src/``."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

TILE: int
IMPORTANCE_BITS: int
ENTROPY_BITS: int

def isas() -> list[str]: ...

class Block:
    def __init__(
        self,
        codes: NDArray[np.uint8],
        n_columns: int,
        n_rows: int,
        code_nbytes: int,
        tiled: bool,
        values: NDArray[np.float64],
    ) -> None: ...

class Response:
    def __init__(
        self,
        labels: NDArray[np.int32],
        n_classes: int,
        channels: NDArray[np.int32],
        regression: bool,
    ) -> None: ...
    @property
    def flush(self) -> int: ...

class TrainingRows:
    def __init__(
        self,
        response: Response,
        order: NDArray[np.int32],
        root_stats: NDArray[np.int64],
        root_scale: float,
        xlogx: NDArray[np.int64],
    ) -> None: ...

class TreeLimits:
    def __init__(
        self,
        max_features: int,
        max_depth: int,
        min_samples_leaf: int,
        min_decrease: int,
        best: bool,
        impurity: int,
    ) -> None: ...

class Trees:
    @property
    def root(self) -> NDArray[np.int32]: ...
    @property
    def feature(self) -> NDArray[np.int64]: ...
    @property
    def code(self) -> NDArray[np.int32]: ...
    @property
    def n_rows(self) -> NDArray[np.int64]: ...
    @property
    def how(self) -> NDArray[np.int32]: ...

def grow(
    block: Block,
    features: NDArray[np.uint32],
    categorical: NDArray[np.uint8],
    rows: TrainingRows,
    limits: TreeLimits,
    tree_key: int,
    importance: NDArray[np.int64],
    isa: str,
    records: bool,
    n_threads: int,
    first_tree: int = 0,
    n_trees: int = 1,
    bootstrap: bool = False,
) -> tuple[int, int, int, bytes | None]: ...
def decode_trees(
    data: NDArray[np.uint8], starts: NDArray[np.int64], stops: NDArray[np.int64], regression: bool
) -> Trees: ...
def predict_block(
    data: NDArray[np.uint8],
    regression: bool,
    block: Block,
    features: NDArray[np.uint32],
    rows: NDArray[np.int32],
    shares: NDArray[np.float64],
) -> None: ...
def add_shares(
    trees: Trees,
    first_tree: int,
    last_tree: int,
    slot: NDArray[np.int64],
    threshold: NDArray[np.float64],
    code_nbytes: int,
    panel: NDArray[np.float64],
    shares: NDArray[np.float64],
) -> None: ...
def add_effects(
    trees: Trees,
    first_tree: int,
    last_tree: int,
    slot: NDArray[np.int64],
    code_nbytes: int,
    codes: NDArray[np.uint8],
    altered: NDArray[np.uint8],
    votes: NDArray[np.uint8],
    bits: int,
    base: NDArray[np.int64],
    effects: NDArray[np.int64],
    n_threads: int,
) -> None: ...
def tally_classes(
    base: NDArray[np.int64],
    effects: NDArray[np.int64],
    n_votes: NDArray[np.int64],
    truth: NDArray[np.int64],
    tally: NDArray[np.int64],
    n_threads: int,
) -> None: ...
def tally_targets(
    base: NDArray[np.int64],
    effects: NDArray[np.int64],
    n_votes: NDArray[np.int64],
    truth: NDArray[np.float64],
    unit: float,
    tally: NDArray[np.int64],
    n_threads: int,
) -> None: ...
def scratch_nbytes(
    n_root_rows: int,
    n_columns: int,
    n_classes: int,
    n_channels: int,
    code_nbytes: int,
    best: bool,
    n_threads: int,
) -> int: ...
def draw_distinct(
    key: int, bound: int, excluded: NDArray[np.uint32], out: NDArray[np.uint32]
) -> None: ...
def sort_items(items: NDArray[np.uint32]) -> None: ...
def draw_blocks(
    key: int, bound: int, block_size: int, excluded: NDArray[np.uint32], out: NDArray[np.uint32]
) -> None: ...
def derive(key: int, word: int) -> int: ...
def mix32(x: int) -> int: ...
def gather_mapped(
    addresses: NDArray[np.uint64],
    features: NDArray[np.uint32],
    n_features: int,
    chunk_features: int,
    n_rows: int,
    rows: NDArray[np.int32],
    code_nbytes: int,
    tiled: bool,
    out: NDArray[np.uint8],
    isa: str = "",
) -> None: ...
def gather_files(
    descriptors: NDArray[np.int32],
    features: NDArray[np.uint32],
    n_features: int,
    chunk_features: int,
    n_rows: int,
    rows: NDArray[np.int32],
    code_nbytes: int,
    tiled: bool,
    out: NDArray[np.uint8],
    isa: str = "",
    n_threads: int = 1,
) -> None: ...
def gather_genotypes(
    addresses: NDArray[np.uint64],
    descriptors: NDArray[np.int32],
    present: NDArray[np.uint8],
    features: NDArray[np.uint32],
    n_rows: int,
    rows: NDArray[np.int32],
    tiled: bool,
    out: NDArray[np.uint8],
    isa: str = "",
    n_threads: int = 1,
) -> None: ...
def pack_genotypes(values: NDArray[Any], out: NDArray[np.uint8]) -> int: ...
def count_genotypes(
    lines: NDArray[np.uint8], kept: NDArray[np.uint8], out: NDArray[np.uint32]
) -> None: ...
def read_lines(
    descriptors: NDArray[np.int32],
    offset: int,
    nbytes: int,
    positions: NDArray[np.int64],
    out: NDArray[np.uint8],
) -> None: ...
def advise_files(
    descriptors: NDArray[np.int32],
    features: NDArray[np.uint32],
    chunk_features: int,
    column_nbytes: int,
) -> int: ...
def copy_shuffled(block: Block, source: int, target: int, key: int) -> None: ...

class HeaderReader:
    def __init__(self, marks: bytes) -> None: ...
    def feed(self, data: NDArray[Any], start: int) -> int: ...
    def finish(self) -> None: ...
    def take_names(self) -> tuple[bytes, bytes, bytes]: ...
    @property
    def done(self) -> bool: ...
    @property
    def line(self) -> int: ...
    @property
    def after_return(self) -> bool: ...
    @property
    def problem(self) -> tuple[str, int, int, bytes] | None: ...

class TableReader:
    def __init__(
        self,
        slots: NDArray[Any],
        marks: bytes,
        missing: list[bytes] | None,
        line: int,
        after_return: bool,
        kinds: bytes,
        by_row: bool,
        max_category_nbytes: int,
        row_kinds: dict[bytes, int],
        counts: bool,
    ) -> None: ...
    def set_panel(self, panel: NDArray[Any]) -> None: ...
    def feed(self, data: NDArray[Any], start: int) -> int: ...
    def finish(self) -> None: ...
    def take_texts(self, column: int) -> tuple[bytes, bytes, bytes]: ...
    def take_lines(self) -> bytes: ...
    def take_row_cells(self) -> bytes: ...
    def cells(self) -> bytes: ...
    def categories(self) -> tuple[bytes, bytes]: ...
    def stage(self, n_rows: int) -> None: ...
    @property
    def texts_nbytes(self) -> int: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def panel_row(self) -> int: ...
    @property
    def column(self) -> int: ...
    @property
    def line(self) -> int: ...
    @property
    def fits_float32(self) -> bool: ...
    @property
    def problem(self) -> tuple[str, int, int, bytes] | None: ...

class TextCoder:
    def __init__(self, max_nbytes: int, counts: bool) -> None: ...
    def code(self, blob: bytes, ends: NDArray[Any]) -> bytes: ...
    def texts(self) -> tuple[bytes, bytes]: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def needed(self) -> int: ...
    @property
    def size(self) -> int: ...

class EntryReader:
    def __init__(
        self, n_rows: int, n_columns: int, has_value: bool, is_whole: bool, is_turned: bool
    ) -> None: ...
    def read(self, text: bytes, out: NDArray[np.uint8]) -> tuple[int, int, int, int, bool]: ...
    def counts(self) -> bytes: ...

def return_large_blocks() -> None: ...
def reuse_blocks() -> None: ...
def parse_decimal(text: bytes) -> float | None: ...
def hash_text(text: bytes) -> int: ...
def code_columns(
    values: NDArray[Any],
    codes: NDArray[Any],
    n_missing: NDArray[Any],
    n_codes: NDArray[Any],
    exact: NDArray[Any],
    kinds: NDArray[Any],
    lows: NDArray[Any],
    highs: NDArray[Any],
    long_rows: int,
) -> None: ...
def look_at(values: NDArray[Any]) -> tuple[int, bool]: ...

class RowDealer:
    def __init__(
        self, columns: NDArray[np.uint32], width: int, block_lines: int, n_threads: int = 1
    ) -> None: ...
    def deal(self, rows: NDArray[Any], panel: NDArray[Any], first: int) -> tuple[int, bool]: ...
    def lines(self, panel: NDArray[Any], block: int, out: NDArray[Any]) -> None: ...

def put_rows(
    rows: NDArray[Any],
    columns: NDArray[np.uint32],
    panel: NDArray[Any],
    first: int,
    n_threads: int = 1,
) -> tuple[int, bool]: ...
def halve_columns(
    codes: NDArray[Any],
    rows: NDArray[np.int32],
    bounds: NDArray[np.int64],
    missing_code: int,
    other: bool,
    tiles: NDArray[np.uint64],
    first: int,
) -> None: ...
def scan_pairs(
    tiles: NDArray[np.uint64],
    n_columns: int,
    bounds: NDArray[np.int64],
    coefficients: NDArray[np.float64],
    first: int,
    last: int,
    scores: NDArray[np.float64],
    pairs: NDArray[np.int32],
    n_threads: int = 1,
    isa: str = "",
) -> None: ...

class RankTarget:
    def __init__(
        self,
        rows: NDArray[np.int32],
        starts: NDArray[np.int64],
        targets: NDArray[np.int32],
        n_targets: int,
        nominal: bool,
        order: NDArray[np.int32],
        scores: NDArray[np.int64],
    ) -> None: ...

class Covariates:
    def __init__(
        self, basis: NDArray[np.float64], products: NDArray[np.float64], shrink: float
    ) -> None: ...

def rank_tests(
    columns: NDArray[Any],
    n_codes: int,
    target: RankTarget,
    covariates: Covariates | None,
    exactly: bool,
    only: int,
    log_p: NDArray[np.float64],
    isa: str = "",
) -> None: ...
def adjusted_steps(
    columns: NDArray[Any],
    n_codes: int,
    covariates: Covariates,
    out: NDArray[np.uint8],
    isa: str = "",
) -> None: ...
def step_tests(
    steps: NDArray[np.uint8],
    target: RankTarget,
    covariates: Covariates,
    log_p: NDArray[np.float64],
) -> None: ...
def risk_set_tests(
    columns: NDArray[Any],
    n_codes: int,
    target: RankTarget,
    censoring: RankTarget,
    times: NDArray[np.int32],
    events: NDArray[np.bool_],
    bar: float,
    log_p: NDArray[np.float64],
) -> None: ...
def level_tests(
    columns: NDArray[Any],
    n_codes: int,
    target: RankTarget,
    covariates: Covariates | None,
    exactly: bool,
    which: NDArray[np.int64],
    rare: int,
    most_levels: int,
    target_levels: int,
    log_p: NDArray[np.float64],
    isa: str = "",
) -> None: ...

MAX_PRESORTED_ROWS: int
MAX_PRESORTED_CLASSES: int

def judge_subsets(
    block: Block,
    features: NDArray[np.uint32],
    places: NDArray[np.int32],
    bounds: NDArray[np.int64],
    times: NDArray[np.uint16],
    predicted: NDArray[np.uint16],
    predicted_bounds: NDArray[np.int64],
    tree_keys: NDArray[np.uint64],
    response: Response,
    limits: TreeLimits,
    isa: str,
    losses: NDArray[np.float64],
) -> int: ...
def grow_sorted(
    block: Block,
    features: NDArray[np.uint32],
    rows: TrainingRows,
    predicted: NDArray[np.int32],
    limits: TreeLimits,
    tree_key: int,
    isa: str,
    importance: NDArray[np.int64],
    shares: NDArray[np.float64],
) -> bool: ...
def logs(x: NDArray[np.float64], out: NDArray[np.float64]) -> None: ...
def powers(x: NDArray[np.float64], out: NDArray[np.float64]) -> None: ...
def add_products(
    a: NDArray[np.float64], b: NDArray[np.float64], out: NDArray[np.float64], isa: str = ""
) -> None: ...
def top_eigenvectors(
    symmetric: NDArray[np.float64],
    values: NDArray[np.float64],
    vectors: NDArray[np.float64],
    isa: str = "",
) -> None: ...
def sorted_scratch_nbytes(
    n_rows: int, n_columns: int, n_fitted: int, n_predicted: int, tiled: bool
) -> int: ...
def draw_subsets(
    key: int,
    first: int,
    largest: int,
    n_candidates: int,
    heavy: NDArray[np.uint32],
    counts: NDArray[np.int32],
    unit: float,
    light: float,
    bounds: NDArray[np.int64],
) -> bytes: ...
def add_outcome(
    features: NDArray[np.uint32],
    importance: NDArray[np.int64],
    compared_with: int,
    sums: NDArray[np.int64],
    n_drawn: NDArray[np.uint32],
    n_better: NDArray[np.uint32],
    changed: NDArray[np.bool_],
    page_items: int,
) -> None: ...
def passes(
    features: NDArray[np.uint32],
    n_drawn: NDArray[np.uint32],
    n_better: NDArray[np.uint32],
    min_draws: int,
    numerator: int,
    denominator: int,
    out: NDArray[np.bool_],
) -> None: ...
