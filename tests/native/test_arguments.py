"""Whatever arrays the native functions are handed: refused by name, or right; never a crash.

Each function is called in a process of its own, as `python test_arguments.py NAME`: with a call
that is right, and with that call where one argument is another.
"""

import ast
import functools
import inspect
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest

from srs_ooc.native import _native

N_ROWS, N_COLUMNS = 12, 3
LARGE = 2**62


def bytes_of(*shape):
    return (np.arange(np.prod(shape)) % 5).astype(np.uint8).reshape(shape)


def none_of(dtype):
    return np.zeros(0, dtype)


def of(dtype, *items):
    return np.array(items, dtype)


def target_side():
    """The arguments of a test's target."""
    return {
        "rows": np.arange(N_ROWS, dtype=np.int32),
        "starts": of(np.int64, 0, 6, N_ROWS),
        "targets": (np.arange(N_ROWS) % 2).astype(np.int32),
        "n_targets": 2,
        "nominal": True,
        "order": of(np.int32, 0, 1),
        "scores": of(np.int64, 0, 5),
    }


def block_of_codes():
    return {
        "codes": bytes_of(N_COLUMNS * N_ROWS),
        "code_nbytes": 1,
        "tiled": False,
        "n_rows": N_ROWS,
        "values": np.arange(N_COLUMNS * 6.0),
        "n_values": 6,
        "features": np.arange(N_COLUMNS, dtype=np.uint32),
    }


def grow(impurity=0, **others):
    labels = np.arange(N_ROWS) // 6
    call = {
        **block_of_codes(),
        "categorical": np.zeros(N_COLUMNS, np.uint8),
        "rows": np.arange(N_ROWS, dtype=np.int32),
        "root_stats": of(np.int64, 6, 6, 6, 6),
        "n_classes": 2,
        "channels": np.ones(N_ROWS, np.int32),
        "flush": 1000,
        "root_scale": 12.0,
        "tree_key": 1,
        "max_features": 2,
        "max_depth": -1,
        "min_samples_leaf": 1,
        "min_decrease": 0,
        "best": False,
        "impurity": impurity,
        "xlogx": np.arange(N_ROWS + 1),
        "importance": np.zeros(N_COLUMNS, np.int64),
        "isa": "",
        "record_leaves": N_ROWS,
        "n_threads": 1,
        "first_tree": 0,
        "n_trees": 1,
        "bootstrap": False,
    }
    if impurity == 1:
        call |= {"channels": none_of(np.int32), "root_stats": of(np.int64, 6, 6)}
    if impurity == 2:
        targets = (labels * 7).astype(np.int32)
        call |= {"n_classes": 1, "channels": targets}
        call |= {"root_stats": of(np.int64, N_ROWS, targets.sum())}
    return _native.grow, call | others


def sorted_call():
    return _native.grow_sorted, {
        **block_of_codes(),
        "fitted": np.arange(8, dtype=np.int32),
        "predicted": np.arange(8, 12, dtype=np.int32),
        "labels": (np.arange(N_ROWS) % 2).astype(np.int32),
        "targets": none_of(np.int32),
        "n_classes": 2,
        "root_scale": 8.0,
        "tree_key": 1,
        "max_depth": -1,
        "min_samples_leaf": 1,
        "isa": "",
        "importance": np.zeros(N_COLUMNS, np.int64),
        "shares": np.zeros((4, 2)),
    }


def subsets_call():
    return _native.judge_subsets, {
        "codes": bytes_of(N_COLUMNS * N_ROWS),
        "code_nbytes": 1,
        "n_rows": N_ROWS,
        "features": np.arange(N_COLUMNS, dtype=np.uint32),
        "places": of(np.int32, 0, 1, 2),
        "bounds": of(np.int64, 0, 1, 3),
        "times": np.ones((2, N_ROWS), np.uint16),
        "predicted": of(np.uint16, 0, 1, 2, 3),
        "predicted_bounds": of(np.int64, 0, 2, 4),
        "tree_keys": of(np.uint64, 1, 2),
        "labels": (np.arange(N_ROWS) % 2).astype(np.int32),
        "targets": none_of(np.int32),
        "n_classes": 2,
        "max_depth": -1,
        "min_samples_leaf": 1,
        "isa": "",
        "losses": np.zeros(2),
    }


NODES = {  # a split by slot 0 and two leaves
    "slot": of(np.int64, 0, -1, -1),
    "code": of(np.int32, 1, 1, 1),
    "right": of(np.int32, 2, 0, 1),
    "n_rows": of(np.int64, 6, 3, 3),
    "how": of(np.int32, 0, 0, 0),
    "hashes": of(np.uint32, 0, 0, 0),
    "pair_class": of(np.int32, 0, 1),
    "pair_count": of(np.int64, 3, 3),
    "code_nbytes": 1,
}
TREE = bytes([1, 1, 0, 1, 0, 3, 0, 1, 1, 3])
TREES = np.frombuffer(TREE * 2, np.uint8)


def tree_arrays():
    arrays = {name: np.copy(a) if isinstance(a, np.ndarray) else a for name, a in NODES.items()}
    return {"root": of(np.int32, 0, 0)} | arrays


def tally_call(function, n_outputs, truth, **others):
    return function, {
        "base": np.ones((6, n_outputs), np.int64),
        "effects": np.ones((6, 2 * n_outputs), np.int64),
        "n_votes": np.ones(6, np.int64),
        "truth": truth,
        **others,
        "tally": np.zeros((2, 3), np.int64),
        "n_threads": 2,
    }


CHUNK = bytes_of(N_COLUMNS, N_ROWS)
MAPPED = np.resize(
    CHUNK, 1000
)  # how long a mapping is is not known: none of the calls reads further


def gather_call(function, sources):
    return function, sources | {
        "features": of(np.uint32, 0, 1, 5),
        "n_features": 2 * N_COLUMNS,
        "chunk_features": N_COLUMNS,
        "n_rows": N_ROWS,
        "rows": np.arange(8, dtype=np.int32),
        "code_nbytes": 1,
        "tiled": False,
        "out": np.zeros(N_COLUMNS * 8, np.uint8),
    }


@functools.cache
def descriptor():
    """Open the chunk in a file that has no name, while the process lives."""
    opened, name = tempfile.mkstemp()
    Path(name).unlink()
    os.write(opened, CHUNK.tobytes())
    return opened


def coded(values, codes):
    return _native.code_columns, {
        "values": values,
        "codes": np.zeros(values.shape, codes),
        "n_missing": np.zeros(N_COLUMNS, np.uint32),
        "n_codes": np.zeros(N_COLUMNS, np.uint16),
        "exact": np.zeros(N_COLUMNS, bool),
        "kinds": np.zeros(N_COLUMNS, np.uint8),
        "lows": np.zeros((N_COLUMNS, N_ROWS)),
        "highs": np.zeros((N_COLUMNS, N_ROWS)),
        "long_rows": 1000,
    }


def reader_call():
    return {
        "slots": of(np.int32, 0, 1, -1),
        "marks": b",\0.",
        "missing": None,
        "line": 1,
        "after_return": False,
        "kinds": b"",
        "by_row": False,
        "max_category_nbytes": 1000,
        "row_kinds": {},
        "counts": False,
    }


def reader():
    table = _native.TableReader(**reader_call())
    table.set_panel(np.zeros((2, 4)))
    return table


def dealer():
    return _native.RowDealer(of(np.uint32, 2, 0), 3, 2)


TEXT = np.frombuffer(b"1,2,3\n4,5,6\n", np.uint8)
_numbers = {"values": np.linspace(0, 1, N_COLUMNS * N_ROWS).reshape(N_COLUMNS, N_ROWS)}
CALLS = {
    "grow": grow,
    "grow entropy": lambda: grow(1),
    "grow regression": lambda: grow(2, record_leaves=0, n_trees=2, bootstrap=True),
    "grow_sorted": sorted_call,
    "judge_subsets": subsets_call,
    "decode_trees": lambda: (
        _native.decode_trees,
        {
            "data": TREES,
            "starts": of(np.int64, 0, len(TREE)),
            "stops": of(np.int64, len(TREE), 2 * len(TREE)),
            "regression": False,
        },
    ),
    "predict_block": lambda: (
        _native.predict_block,
        {
            "data": TREES[: len(TREE)],
            "regression": False,
            "codes": bytes_of(N_COLUMNS * N_ROWS),
            "code_nbytes": 1,
            "tiled": False,
            "n_rows": N_ROWS,
            "features": np.arange(N_COLUMNS, dtype=np.uint32),
            "rows": np.arange(6, dtype=np.int32),
            "shares": np.zeros((6, 2)),
        },
    ),
    "add_shares": lambda: (
        _native.add_shares,
        tree_arrays()
        | {"threshold": np.zeros(3), "panel": np.zeros((2, 6)), "shares": np.zeros((6, 2))},
    ),
    "add_effects": lambda: (
        _native.add_effects,
        tree_arrays()
        | {
            "codes": bytes_of(2, 6),
            "altered": bytes_of(2, 6) + 1,
            "votes": np.ones((2, 6), np.uint8),
            "bits": 20,
            "base": np.zeros((6, 2), np.int64),
            "effects": np.zeros((6, 4), np.int64),
            "n_threads": 2,
        },
    ),
    "tally_classes": lambda: tally_call(_native.tally_classes, 2, np.zeros(6, np.int64)),
    "tally_targets": lambda: tally_call(_native.tally_targets, 1, np.zeros(6), unit=1.0),
    "draw_distinct": lambda: (
        _native.draw_distinct,
        {"key": 1, "bound": 9, "excluded": of(np.uint32, 1, 2), "out": np.zeros(4, np.uint32)},
    ),
    "draw_blocks": lambda: (
        _native.draw_blocks,
        {
            "key": 1,
            "bound": 9,
            "block_size": 2,
            "excluded": of(np.uint32, 1, 2),
            "out": np.zeros(4, np.uint32),
        },
    ),
    "sort_items": lambda: (_native.sort_items, {"items": of(np.uint32, 3, 1, 2)}),
    "draw_subsets": lambda: (
        _native.draw_subsets,
        {
            "key": 1,
            "first": 0,
            "largest": 3,
            "n_candidates": 9,
            "heavy": of(np.uint32, 1, 5),
            "counts": of(np.int32, 1, 2),
            "unit": 1.0,
            "light": 0.5,
            "bounds": np.zeros(4, np.int64),
        },
    ),
    "add_outcome": lambda: (
        _native.add_outcome,
        {
            "features": of(np.uint32, 0, 3),
            "importance": of(np.int64, 5, 6),
            "compared_with": 5,
            "sums": np.zeros(4, np.int64),
            "n_drawn": np.zeros(4, np.uint32),
            "n_better": np.zeros(4, np.uint32),
            "changed": np.zeros(2, bool),
            "page_items": 2,
        },
    ),
    "passes": lambda: (
        _native.passes,
        {
            "features": of(np.uint32, 0, 3),
            "n_drawn": np.ones(4, np.uint32),
            "n_better": np.ones(4, np.uint32),
            "min_draws": 0,
            "numerator": 1,
            "denominator": 2,
            "out": np.zeros(2, bool),
        },
    ),
    "gather_mapped": lambda: gather_call(
        _native.gather_mapped, {"addresses": of(np.uint64, MAPPED.ctypes.data, MAPPED.ctypes.data)}
    ),
    "gather_files": lambda: gather_call(
        _native.gather_files,
        {"descriptors": of(np.int32, descriptor(), descriptor())},
    ),
    "gather_genotypes": lambda: (
        _native.gather_genotypes,
        {
            "addresses": np.zeros(0, np.uint64),
            "descriptors": of(np.int32, descriptor()),
            "present": of(np.uint8, *[7] * 6),
            "features": of(np.uint32, 0, 1, 5),
            "n_rows": N_ROWS,
            "rows": np.arange(8, dtype=np.int32),
            "tiled": False,
            "out": np.zeros(N_COLUMNS * 8, np.uint8),
        },
    ),
    "count_genotypes": lambda: (
        _native.count_genotypes,
        {"lines": of(np.uint8, *range(6)), "kept": of(np.uint8, 85, 5), "out": np.zeros(9, "u4")},
    ),
    "pack_genotypes": lambda: (
        _native.pack_genotypes,
        {"values": np.ones((3, 5)), "out": np.zeros(6, np.uint8)},
    ),
    "read_lines": lambda: (
        _native.read_lines,
        {
            "descriptors": of(np.int32, descriptor()),
            "offset": 1,
            "nbytes": 3,
            "positions": of(np.int64, 1, 0),
            "out": np.zeros(6, np.uint8),
        },
    ),
    "advise_files": lambda: (
        _native.advise_files,
        {
            "descriptors": of(np.int32, descriptor(), descriptor()),
            "features": of(np.uint32, 0, 2),
            "chunk_features": N_COLUMNS,
            "column_nbytes": N_ROWS,
        },
    ),
    "copy_shuffled": lambda: (
        _native.copy_shuffled,
        {
            "block": bytes_of(N_COLUMNS * N_ROWS),
            "n_columns": N_COLUMNS,
            "n_rows": N_ROWS,
            "code_nbytes": 1,
            "tiled": False,
            "source": 0,
            "target": 2,
            "key": 1,
        },
    ),
    "HeaderReader.feed": lambda: (
        _native.HeaderReader(b",\0.").feed,
        {"data": TEXT, "start": 0},
    ),
    "TableReader": lambda: (_native.TableReader, reader_call()),
    "TableReader.set_panel": lambda: (reader().set_panel, {"panel": np.zeros((2, 4))}),
    "TableReader.feed": lambda: (reader().feed, {"data": TEXT, "start": 0}),
    "EntryReader.read": lambda: (
        _native.EntryReader(2, 3, True, True, False).read,
        {"text": b"1 1 5\n2 3 7\n", "out": np.zeros((3, 12), np.uint8)},
    ),
    "TextCoder.code": lambda: (
        _native.TextCoder(1000, counts=False).code,
        {"blob": b"one two", "ends": of(np.uint64, 3, 7)},
    ),
    "code_columns": lambda: coded(_numbers["values"], np.uint8),
    "code_columns long": lambda: coded(_numbers["values"].astype(np.float32), np.uint16),
    "look_at": lambda: (_native.look_at, {"values": np.zeros((2, 3))}),
    "put_rows": lambda: (
        _native.put_rows,
        {
            "rows": np.zeros((2, 3)),
            "columns": of(np.uint32, 2, 0),
            "panel": np.zeros((2, 5)),
            "first": 3,
        },
    ),
    "RowDealer": lambda: (
        _native.RowDealer,
        {"columns": of(np.uint32, 2, 0), "width": 3, "block_lines": 2},
    ),
    "RowDealer.deal": lambda: (
        dealer().deal,
        {"rows": np.zeros((2, 3)), "panel": np.zeros((5, 2)), "first": 3},
    ),
    "RowDealer.lines": lambda: (
        dealer().lines,
        {"panel": np.zeros((5, 2)), "block": 0, "out": np.zeros((2, 4))},
    ),
    "halve_columns": lambda: (
        _native.halve_columns,
        {
            "codes": bytes_of(N_COLUMNS, N_ROWS),
            "rows": np.arange(N_ROWS, dtype=np.int32),
            "bounds": of(np.int64, 0, 5, N_ROWS),
            "missing_code": 255,
            "other": False,
            "tiles": np.zeros((1, 2, 64), np.uint64),
            "first": 61,
        },
    ),
    "scan_pairs": lambda: (
        _native.scan_pairs,
        {
            "tiles": np.full((2, 2, 64), 5, np.uint64),
            "n_columns": 70,
            "bounds": of(np.int64, 0, 5, N_ROWS),
            "coefficients": np.array([[7.0, -5.0]]),
            "first": 0,
            "last": 2,
            "scores": np.zeros(8),
            "pairs": np.zeros((8, 2), np.int32),
            "n_threads": 2,
            "isa": "",
        },
    ),
    "rank_tests": lambda: (
        _native.rank_tests,
        {
            "columns": bytes_of(N_COLUMNS, N_ROWS),
            "n_codes": 5,
            **target_side(),
            "exactly": True,
            "only": 3,
            "log_p": np.zeros((N_COLUMNS, 3)),
        },
    ),
    "level_tests": lambda: (
        _native.level_tests,
        {
            "columns": bytes_of(N_COLUMNS, N_ROWS),
            "n_codes": 5,
            **target_side(),
            "exactly": True,
            "which": of(np.int64, 0, 2),
            "rare": 1,
            "most_levels": 64,
            "target_levels": 32,
            "log_p": np.zeros((N_COLUMNS, 3)),
        },
    ),
    "risk_set_tests": lambda: (
        _native.risk_set_tests,
        {
            "columns": bytes_of(N_COLUMNS, N_ROWS),
            "n_codes": 5,
            "rows": np.arange(N_ROWS, dtype=np.int32),
            "starts": of(np.int64, 0, 6, N_ROWS),
            "targets": (np.arange(N_ROWS) % 2).astype(np.int32),
            "n_targets": 2,
            "nominal": False,
            "order": of(np.int32),
            "scores": of(np.int64, 0, 5),
            "times": np.arange(N_ROWS, dtype=np.int32),
            "events": np.arange(N_ROWS) % 2 > 0,
            "censored": (np.arange(N_ROWS) % 3 > 0).astype(np.int32),
            "censoring": of(np.int64, 0, 5),
            "bar": 1.0,
            "log_p": np.zeros((N_COLUMNS, 3)),
        },
    ),
    "adjusted_tests": lambda: (
        _native.adjusted_tests,
        {
            "columns": bytes_of(N_COLUMNS, N_ROWS),
            "n_codes": 5,
            **target_side(),
            "basis": np.full((N_ROWS, 2), 0.25),
            "products": np.eye(2),
            "shrink": 0.5,
            "exactly": True,
            "only": 3,
            "log_p": np.zeros((N_COLUMNS, 3)),
            "isa": "",
        },
    ),
    "adjusted_steps": lambda: (
        _native.adjusted_steps,
        {
            "columns": bytes_of(N_COLUMNS, N_ROWS),
            "n_codes": 5,
            "basis": np.full((N_ROWS, 2), 0.25),
            "products": np.eye(2),
            "out": np.zeros((N_COLUMNS, 3 * N_ROWS), np.uint8),
            "isa": "",
        },
    ),
    "step_tests": lambda: (
        _native.step_tests,
        {
            "steps": bytes_of(N_COLUMNS, N_ROWS),
            **target_side(),
            "shrink": 0.5,
            "log_p": np.zeros((N_COLUMNS, 3)),
        },
    ),
    "adjusted_level_tests": lambda: (
        _native.adjusted_level_tests,
        {
            "columns": bytes_of(N_COLUMNS, N_ROWS),
            "n_codes": 5,
            **target_side(),
            "basis": np.full((N_ROWS, 2), 0.25),
            "products": np.eye(2),
            "shrink": 0.5,
            "exactly": True,
            "which": of(np.int64, 0, 2),
            "rare": 1,
            "most_levels": 64,
            "log_p": np.zeros((N_COLUMNS, 3)),
            "isa": "",
        },
    ),
    "logs": lambda: (_native.logs, {"x": np.ones(3), "out": np.zeros(3)}),
    "powers": lambda: (_native.powers, {"x": np.ones(3), "out": np.zeros(3)}),
    "add_products": lambda: (
        _native.add_products,
        {"a": np.ones((3, 2)), "b": np.ones((3, 4)), "out": np.zeros((2, 4)), "isa": ""},
    ),
    "top_eigenvectors": lambda: (
        _native.top_eigenvectors,
        {
            "symmetric": np.eye(3),
            "values": np.zeros(2),
            "vectors": np.zeros((3, 2)),
            "isa": "",
        },
    ),
    "scratch_nbytes": lambda: (
        _native.scratch_nbytes,
        {
            "n_root_rows": 9,
            "n_columns": 3,
            "n_classes": 2,
            "n_channels": 0,
            "code_nbytes": 1,
            "best": False,
            "n_threads": 1,
        },
    ),
    "sorted_scratch_nbytes": lambda: (
        _native.sorted_scratch_nbytes,
        {"n_rows": 9, "n_columns": 3, "n_fitted": 9, "n_predicted": 1, "tiled": False},
    ),
}

OUTPUTS = {
    *("importance of grow", "importance of grow_sorted", "shares", "losses", "base of add_effects"),
    *("effects of add_effects", "tally", "out", "bounds of draw_subsets", "sums"),
    *(
        "n_drawn of add_outcome",
        "n_better of add_outcome",
        "changed",
        "block",
        "codes of code_columns",
    ),
    *("n_missing", "n_codes of code_columns", "exact", "kinds of code_columns", "lows", "highs"),
    *(
        "panel of set_panel",
        "panel of put_rows",
        "panel of deal",
        "log_p",
        "contrasts",
        "symmetric",
    ),
    *("values of top_eigenvectors", "vectors", "items of sort_items"),
    *("tiles of halve_columns", "scores of scan_pairs", "pairs"),
}
"""Arguments that are written to; of a function alone where others have one of the name."""

ANY_LENGTH = {
    *("excluded", "out of draw_distinct", "out of draw_blocks", "bounds of draw_subsets", "data"),
    *("values of look_at", "panel of set_panel", "root", "addresses", "descriptors", "items"),
    *(
        *("features of advise_files", "features of gather_mapped", "features of gather_files"),
        *("rows of gather_mapped", "rows of gather_files", "rows of gather_genotypes"),
        "features of gather_genotypes",
        "xlogx of grow",
        "slots",
        "ends",
        "panel of add_shares",
        "shares of add_shares",
        "features of predict_block",
    ),
    *("values of top_eigenvectors", "rows of put_rows", "rows of grow", "fitted", "values of grow"),
    "which of level_tests",
    "which of adjusted_level_tests",
    *("columns of RowDealer", "rows of deal", "panel of deal", "panel of lines", "out of lines"),
    *("codes of halve_columns", "coefficients"),
}
"""Arguments of which a length that differs by one says something else, and nothing wrong."""

BEYOND = {
    "grow": {
        "rows": [-1, N_ROWS, 2**31 - 1],
        "root_stats": [-1, 0, 7, LARGE],
        "channels": [0, 2**31 - 1],
    },
    "grow regression": {"root_stats": [-1, LARGE], "channels": [-(2**31), 2**31 - 1]},
    "grow_sorted": {"fitted": [-1, N_ROWS], "predicted": [-1, N_ROWS], "labels": [-1, 2]},
    "judge_subsets": {
        "places": [-1, N_COLUMNS],
        "bounds": [-LARGE, -1, 1, 4, LARGE],
        "predicted": [N_ROWS],
        "predicted_bounds": [-LARGE, 1, 5, LARGE],
        "labels": [-1, 2],
        "times": [65535],
    },
    "decode_trees": {"starts": [-1, 21, LARGE], "stops": [-1, 0, 21, LARGE]},
    "predict_block": {"rows": [-1, N_ROWS], "features": [0, 1]},
    "add_shares": {
        "root": [-1, 3],
        "slot": [-3, 2, LARGE],
        "right": [-1, 2],
        "code": [-1, 2],
        "n_rows": [-1, 0],
        "pair_class": [-1, 2],
    },
    "add_effects": {
        "root": [-1, 3],
        "slot": [-3, 2, LARGE],
        "right": [-1, 2],
        "code": [-1, 2],
        "n_rows": [-1, 0],
        "pair_class": [-1, 2],
    },
    "tally_classes": {"truth": [-1, 2, LARGE], "n_votes": [-1]},
    "tally_targets": {"n_votes": [-1]},
    "draw_distinct": {"excluded": [9, 2**32 - 1]},
    "draw_blocks": {"excluded": [9, 2**32 - 1]},
    "draw_subsets": {"heavy": [0, 1, 9], "counts": [-1, 0]},
    "add_outcome": {"features": [4, 2**32 - 1]},
    "passes": {"features": [4, 2**32 - 1]},
    "gather_mapped": {"features": [6, 2**32 - 1], "rows": [-1, N_ROWS]},
    "gather_files": {"features": [6, 2**32 - 1], "rows": [-1, N_ROWS]},
    "gather_genotypes": {"features": [6, 2**32 - 1], "rows": [-1, N_ROWS]},
    "advise_files": {"features": [6, 2**32 - 1]},
    "TableReader": {"slots": [-7, 3, -(2**31), 2**31 - 1]},
    "TextCoder.code": {"ends": [2, 8, 2**64 - 1]},
    "put_rows": {"columns": [3, 2**32 - 1]},
    "RowDealer": {"columns": [2, 3, 2**32 - 1]},
    "rank_tests": {
        "rows": [-1, N_ROWS],
        "starts": [-1, 5, 13, LARGE],
        "targets": [-1, 2],
        "order": [-1, 2],
        "scores": [-1, 0, 65536],
    },
    "level_tests": {
        "rows": [-1, N_ROWS],
        "starts": [-1, 5, 13, LARGE],
        "targets": [-1, 2],
        "order": [-1, 2],
        "scores": [-1, 0, 65536],
        "which": [-1, N_COLUMNS],
    },
    "adjusted_tests": {
        "rows": [-1, N_ROWS],
        "starts": [-1, 5, 13, LARGE],
        "targets": [-1, 2],
        "order": [-1, 2],
        "scores": [-1, 0, 65536],
    },
    "risk_set_tests": {
        "rows": [-1, N_ROWS],
        "starts": [-1, 5, 13, LARGE],
        "targets": [-1, 2],
        "scores": [-1, 0, 65536],
        "censored": [-1, 2],
        "censoring": [-1, 0, 65536],
    },
    "step_tests": {
        "rows": [-1, N_ROWS],
        "starts": [-1, 5, 13, LARGE],
        "targets": [-1, 2],
        "order": [-1, 2],
        "scores": [-1, 0, 65536],
    },
    "adjusted_level_tests": {
        "rows": [-1, N_ROWS],
        "starts": [-1, 5, 13, LARGE],
        "targets": [-1, 2],
        "order": [-1, 2],
        "scores": [-1, 0, 65536],
        "which": [-1, N_COLUMNS],
    },
}
"""What the last item of an array may not be."""

WRONG_NUMBERS: dict[str, list] = {
    "code_nbytes": [-1, 0, 3, 8],
    "n_rows": [-1, 0, 13, 2**31, LARGE],
    "n_classes": [-1, 0, LARGE],
    "n_values": [-1, 0, 7, LARGE],
    "n_features": [-1, 0, 100, LARGE],
    "chunk_features": [-1, 0, 2**31],
    "column_nbytes": [-1, 0],
    "max_features": [-1, 0],
    "impurity": [-1, 3],
    "record_leaves": [-1, 1, N_ROWS - 1, LARGE],
    "first_tree": [-1, LARGE],
    "min_decrease": [-1],
    "n_trees": [-1, 0],
    "flush": [LARGE],
    "root_scale": [-1.0, float("nan"), float("inf")],
    "bits": [-1, 63],
    "n_columns": [-1, LARGE],
    "source": [-1, N_COLUMNS],
    "target": [-1, N_COLUMNS],
    "page_items": [-1, 0],
    "block_size": [-1, 0, 10, LARGE],
    "bound": [-1, 0, 5, 2**32, LARGE],
    "largest": [-1, 0, 10],
    "n_candidates": [-1, 0, LARGE],
    "unit": [0.0, float("nan")],
    "first": [-1, LARGE],
    "start": [-1, 13, LARGE],
    "n_codes": [-1, LARGE],
    "n_targets": [-1, 0, 1, LARGE],
    "only": [-1, 4],
    "rare": [-1, 0, LARGE],
    "most_levels": [-1, 1, LARGE],
    "target_levels": [-1, 1, 256, LARGE],
    "n_root_rows": [-1, LARGE],
    "n_fitted": [-1, LARGE],
    "n_predicted": [-1, LARGE],
    "n_channels": [-1, 3],
    "marks": [b"", b",", b",,,,"],
    "kinds": [b"\0", bytes([9, 0, 0]), bytes([2, 0, 0]), bytes(4)],
    "row_kinds": [{b"1": 2}, {b"1": 5}, {b"1": 300}],
}
RIGHT_NUMBERS = {
    *("unit 0.0 of tally_targets", f"first {LARGE} of draw_subsets", "n_rows 13 of gather_mapped"),
    "n_rows 13 of gather_genotypes",
    *("n_rows 0 of sorted_scratch_nbytes", "n_rows 13 of sorted_scratch_nbytes"),
}
"""Which of these are right, of which function: where a chunk file ends is not known, say."""


def function_of(name):
    return name.split(" ")[0].rpartition(".")[2]


def is_in(names, argument, name):
    return argument in names or f"{argument} of {function_of(name)}" in names


def strided(array):
    return np.repeat(array, 2, axis=0)[::2]


def unaligned(array):
    raw = np.zeros(array.nbytes + 1, np.uint8)[1:]
    raw[:] = np.frombuffer(array.tobytes(), np.uint8)
    return raw.view(array.dtype).reshape(array.shape)


def frozen(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def with_last(array, item):
    array = array.copy()
    array.reshape(-1)[-1] = item
    return array


def other_arrays(name, argument, array):
    """Yield what an array may not be: the error, a word for it, and the array."""
    other = np.int16 if array.dtype != np.int16 else np.int64
    for dtype in (other, array.dtype.newbyteorder(), object, np.complex128):
        if dtype != array.dtype:
            yield "TypeError", f"as {np.dtype(dtype).str}", array.astype(dtype)
    yield "TypeError", "in another dimension", array[None]
    yield "TypeError", "of none", np.array(1, array.dtype)
    yield "TypeError", "None", None  # nanobind's own words: they name all arguments
    yield "TypeError", "a list", array.tolist()
    if len(array) > 1:
        yield "TypeError", "strided", strided(array)
    if array.itemsize > 1 and array.size:
        yield "TypeError", "not aligned", unaligned(array)
    if is_in(OUTPUTS, argument, name):
        yield "TypeError", "read-only", frozen(array)
    if array.size and not is_in(ANY_LENGTH, argument, name):
        yield "ValueError", "shorter", array[:-1].copy()
    if array.ndim == 2 and not is_in(ANY_LENGTH, argument, name):
        yield "ValueError", "narrower", array[:, :-1].copy()
    for item in BEYOND.get(name, {}).get(argument, []):
        yield "ValueError", f"with {item}", with_last(array, item)


def other_calls(name):
    """Yield a word for each wrong call, its error, the function and its arguments."""
    arguments = CALLS[name]()[1]
    for argument, value in arguments.items():
        if isinstance(value, np.ndarray):
            cases = list(other_arrays(name, argument, value))
        else:
            wrong = WRONG_NUMBERS.get(argument, [])
            cases = [("ValueError", str(item), item) for item in wrong]
            if type(value) is int:
                cases += [("", str(item), item) for item in (-LARGE, -1, 0, 1, 300, LARGE)]
        for error, what, other in cases:
            function, call = CALLS[name]()
            yield f"{argument} {what}", argument, error, function, call | {argument: other}


def outcome(function, call):
    try:
        function(**call)
    except Exception as error:
        return type(error).__name__, str(error)
    return "", ""


def say_all(name):
    """Say each case before it is made, then what came of it: a crash leaves the name."""
    function, call = CALLS[name]()
    print(json.dumps(["as it is", "", "", *outcome(function, call)]), flush=True)
    inputs = {
        k: v for k, v in call.items() if isinstance(v, np.ndarray) and not is_in(OUTPUTS, k, name)
    }
    function, call = CALLS[name]()
    call |= {key: frozen(value) for key, value in inputs.items()}
    print(json.dumps(["inputs read-only", "", "", *outcome(function, call)]), flush=True)
    for what, argument, error, function, call in other_calls(name):
        print(what, file=sys.stderr, flush=True)
        found = outcome(function, call)
        print(json.dumps([what, argument, error, *found]), flush=True)


SHARED = ("add_effects", "tally_classes", "tally_targets")


def shared(n_threads):
    """Outputs of functions that share their work among threads."""
    for name in SHARED:
        function, call = CALLS[name]()
        function(**call | {"n_threads": n_threads})
        yield from (array.tolist() for key, array in call.items() if is_in(OUTPUTS, key, name))


def say_without_threads():
    """Say that no thread can be had, then whether the work was done all the same."""
    expected = list(shared(1))
    status = Path("/proc/self/status").read_text()
    most = 1024 * int(re.search(r"VmSize:\s+(\d+)", status)[1]) + 4_000_000  # no stack of a thread
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    with pytest.raises(RuntimeError, match="new thread"):
        threading.Thread(target=int).start()
    print("no thread", list(shared(6)) == expected)


def wrong(name, what, argument, error, found, message):
    """Whether a case came out as it may not."""
    if not argument:
        return found != ""
    if not error:  # any number: an error of any kind, or none
        return found not in ("", "ValueError", "TypeError", "MemoryError", "RuntimeError")
    if f"{argument} {what.partition(' ')[2]} of {function_of(name)}" in RIGHT_NUMBERS:
        return found != ""
    if name == "gather_files" and found == "RuntimeError":
        return "the end of the file" not in message
    if found not in (error, "TypeError"):
        return True
    is_array = isinstance(CALLS[name]()[1][argument], np.ndarray)
    if error == "TypeError" and is_array and not what.endswith(" None"):
        return not re.match(rf"{argument}: expected .*, found ", message, re.DOTALL)
    return found == "ValueError" and not re.search("expected|cannot draw|no |beyond", message)


@pytest.mark.few(8)
@pytest.mark.parametrize("name", CALLS)
def test_wrong_arguments_are_refused_by_name(name):
    command = [sys.executable, "-X", "faulthandler", __file__, name]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=3600)
    assert done.returncode == 0, done.stderr[-2000:]
    cases = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(cases) == 2 + len(list(other_calls(name)))
    assert [case for case in cases if wrong(name, *case)] == []


def test_every_function_that_takes_an_array_has_a_call_here():
    stub = ast.parse(Path(inspect.getfile(_native)).with_name("_native.pyi").read_text())
    found = {}
    for node in ast.walk(stub):
        if isinstance(node, ast.FunctionDef):
            arrays = {
                a.arg
                for a in node.args.args
                if a.annotation and "NDArray" in ast.unparse(a.annotation)
            }
            found.setdefault(node.name, set()).update(arrays)
    calls = {function_of(name): CALLS[name]()[1] for name in CALLS}
    calls["__init__"] = calls["TableReader"] | calls["RowDealer"]
    for function, arrays in found.items():
        own = calls.get(function, {})
        assert arrays <= {k for k, v in own.items() if isinstance(v, np.ndarray)}, function


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere memory is not bounded so")
def test_work_is_done_where_no_thread_can_be_had():
    command = [sys.executable, __file__, "without threads"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=3600)
    assert done.stdout == "no thread True\n", done.stderr


if __name__ == "__main__":
    if sys.argv[1] == "without threads":
        say_without_threads()
    else:
        say_all(sys.argv[1])
