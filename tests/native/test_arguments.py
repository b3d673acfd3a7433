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


def u1(*shape):
    return (np.arange(np.prod(shape)) % 5).astype(np.uint8).reshape(shape)


def of(dtype, *items):
    return np.array(items, dtype)


def upto(stop, dtype="i4", start=0):
    return np.arange(start, stop, dtype=dtype)


def zeros(dtype, *shape):
    return np.zeros(shape, dtype)


def ones(dtype, *shape):
    return np.ones(shape, dtype)


@functools.cache
def descriptor():
    """Open a chunk of three columns in a file that has no name, while the process lives."""
    opened, name = tempfile.mkstemp()
    Path(name).unlink()
    os.write(opened, u1(N_COLUMNS, N_ROWS).tobytes())
    return opened


def reader():
    table = _native.TableReader(**call_of("TableReader"))
    table.set_panel(np.zeros((2, 4)))
    return table


TREE = bytes([1, 1, 0, 1, 0, 3, 0, 1, 1, 3])  # a split by slot 0 and two leaves
MAPPED = u1(1000)  # how long a mapping is is not known: none of the calls reads further
GOOD = """
    codes=u1(36), columns=u1(3, 12), steps=u1(3, 12), code_nbytes=1, tiled=False,
    n_rows=N_ROWS, n_columns=3, values=zeros("f8", 3, 6), features=upto(3, "u4"),
    rows=upto(12), categorical=zeros("u1", 3), importance=zeros("i8", 3), regression=False,
    root_stats=np.array([[6, 6], [6, 6]]), n_classes=2, channels=ones("i4", 1, 12),
    root_scale=12.0, tree_key=1, max_features=2, max_depth=-1, min_samples_leaf=1, min_decrease=0,
    best=False, impurity=0, xlogx=upto(13, "i8"), isa="", records=True, first_tree=0, n_trees=1,
    bootstrap=False, n_threads=2, predicted=upto(12, start=8), last_tree=2,
    labels=upto(12) // 6, shares=zeros("f8", 6, 2), places=upto(3), bounds=of("i8", 0, 5, 12),
    predicted_bounds=of("i8", 0, 2, 4), tree_keys=of("u8", 1, 2), losses=zeros("f8", 2),

    slot=of("i8", *[0, -1, -1] * 2), threshold=zeros("f8", 6), altered=u1(2, 6) + np.uint8(1),
    votes=ones("u1", 2, 6), bits=20, base=ones("i8", 6, 2), effects=ones("i8", 6, 4),
    n_votes=ones("i8", 6), truth=zeros("i8", 6), tally=zeros("i8", 2, 3), unit=1.0,

    key=1, bound=9, excluded=of("u4", 1, 2), block_size=2, items=of("u4", 3, 1, 2), first=0,
    largest=3, n_candidates=9, heavy=of("u4", 1, 5), counts=of("i4", 1, 2), light=0.5,
    compared_with=5, sums=zeros("i8", 4), n_drawn=zeros("u4", 4), n_better=zeros("u4", 4),
    changed=zeros("?", 2), page_items=2, min_draws=0, numerator=1, denominator=2,

    addresses=of("u8", MAPPED.ctypes.data, MAPPED.ctypes.data), n_features=6, chunk_features=3,
    descriptors=of("i4", descriptor(), descriptor()), present=of("u1", *[7] * 6),
    lines=upto(6, "u1"), kept=of("u1", 85, 5), offset=1, nbytes=3, positions=of("i8", 1, 0),
    column_nbytes=12, source=0, target=2,

    data=np.frombuffer(b"1,2,3\\n4,5,6\\n", np.uint8), start=0, slots=of("i4", 0, 1, -1),
    marks=b",\\0.", missing=None, line=1, after_return=False, by_row=False,
    max_category_nbytes=1000, row_kinds={}, text=b"1 1 5\\n2 3 7\\n", blob=b"one two",
    ends=of("u8", 3, 7), n_missing=zeros("u4", 3), n_codes=5, exact=zeros("?", 3),
    kinds=zeros("u1", 3), lows=zeros("f8", 3, 12), highs=zeros("f8", 3, 12), long_rows=1000,
    width=3, block_lines=2, missing_code=255, other=False, tiles=zeros("u8", 1, 2, 64),
    coefficients=np.array([[7.0, -5.0]]), last=2, pairs=zeros("i4", 8, 2),

    starts=of("i8", 0, 6, 12), targets=upto(12) % 2, n_targets=2, nominal=True,
    order=of("i4", 0, 1), scores=of("i8", 0, 5), exactly=True, only=3, log_p=zeros("f8", 3, 3),
    which=of("i8", 0, 2),
    rare=1, most_levels=64, target_levels=32, times=upto(12), events=upto(12) % 2 > 0,
    bar=1.0, shrink=0.5,
    basis=np.full((12, 2), 0.25), products=np.eye(2), symmetric=np.eye(3),
    vectors=zeros("f8", 3, 2), x=ones("f8", 3), a=ones("f8", 3, 2), b=ones("f8", 3, 4),
    n_root_rows=9, n_channels=0, n_fitted=9, n_predicted=1,
"""
"""What is right of each argument by its name, in most of the calls."""

GATHER = 'features=of("u4", 0, 1, 5), rows=upto(8), out=zeros("u1", 24)'
TREES = f"data=np.frombuffer({TREE!r} * 2, np.uint8)"
BLOCK = 'block=made("Block"), limits=made("TreeLimits")'
TESTED = 'target=made("RankTarget"), covariates='
ADJUSTED = TESTED + 'made("Covariates")'
DEALT = 'rows=zeros("f8", 2, 3), first=3, '
CALLS = {
    "Block": "",
    "Response": "",
    "Response plain": 'channels=zeros("i4", 0, 12)',
    "Response regression": """channels=upto(12)[None] // 6 * 7, labels=zeros("i4", 12), n_classes=1,
        regression=True""",
    "TrainingRows": 'response=made("Response"), order=upto(12)',
    "TrainingRows plain": """response=made("Response plain"), order=upto(12),
        root_stats=np.array([[6], [6]])""",
    "TrainingRows regression": """response=made("Response regression"), order=upto(12),
        root_stats=np.array([[12, 42]])""",
    "TreeLimits": "",
    "TreeLimits entropy": "impurity=1",
    "TreeLimits regression": "impurity=2",
    "grow": f'{BLOCK}, rows=made("TrainingRows"), n_threads=1',
    "grow entropy": """block=made("Block"), rows=made("TrainingRows plain"),
        limits=made("TreeLimits entropy"), n_threads=1""",
    "grow regression": """block=made("Block"), rows=made("TrainingRows regression"), n_trees=2,
        limits=made("TreeLimits regression"), n_threads=1, records=False, bootstrap=True""",
    "grow_sorted": f'{BLOCK}, rows=made("TrainingRows plain"), shares=zeros("f8", 4, 2)',
    "Block without values": 'values=zeros("f8", 0, 0)',
    "judge_subsets": """block=made("Block without values"), response=made("Response plain"),
        limits=made("TreeLimits"), bounds=of("i8", 0, 1, 3), times=ones("u2", 2, 12),
        predicted=upto(4, "u2")""",
    "decode_trees": f'{TREES}, starts=of("i8", 0, 10), stops=of("i8", 10, 20)',
    "predict_block": f"{BLOCK}, {TREES}[:10], rows=upto(6)",
    "add_shares": 'trees=made("decode_trees"), panel=zeros("f8", 2, 6)',
    "add_effects": """trees=made("decode_trees"), codes=u1(2, 6), base=zeros("i8", 6, 2),
        effects=zeros("i8", 6, 4)""",
    "tally_classes": "",
    "tally_targets": 'base=ones("i8", 6, 1), effects=ones("i8", 6, 2), truth=zeros("f8", 6)',
    "draw_distinct": 'out=zeros("u4", 4)',
    "draw_blocks": 'out=zeros("u4", 4)',
    "sort_items": "",
    "draw_subsets": 'bounds=zeros("i8", 4)',
    "add_outcome": 'features=of("u4", 0, 3), importance=of("i8", 5, 6)',
    "passes": """features=of("u4", 0, 3), n_drawn=ones("u4", 4), n_better=ones("u4", 4),
        out=zeros("?", 2)""",
    "gather_mapped": GATHER,
    "gather_files": GATHER,
    "gather_genotypes": f'{GATHER}, addresses=of("u8"), descriptors=of("i4", descriptor())',
    "count_genotypes": 'out=zeros("u4", 9)',
    "pack_genotypes": 'values=ones("f8", 3, 5), out=zeros("u1", 6)',
    "read_lines": 'descriptors=of("i4", descriptor()), out=zeros("u1", 6)',
    "advise_files": 'features=of("u4", 0, 2)',
    "copy_shuffled": BLOCK,
    "HeaderReader.feed": "",
    "TableReader": 'kinds=b"", counts=False',
    "TableReader.set_panel": 'panel=zeros("f8", 2, 4)',
    "TableReader.feed": "",
    "EntryReader.read": 'out=zeros("u1", 3, 12)',
    "TextCoder.code": "",
    "code_columns": """values=np.linspace(0, 1, 36).reshape(3, 12), codes=zeros("u1", 3, 12),
        n_codes=zeros("u2", 3)""",
    "code_columns long": """values=np.linspace(0, 1, 36).reshape(3, 12).astype("f4"),
        codes=zeros("u2", 3, 12), n_codes=zeros("u2", 3)""",
    "look_at": 'values=zeros("f8", 2, 3)',
    "put_rows": DEALT + 'columns=of("u4", 2, 0), panel=zeros("f8", 2, 5)',
    "RowDealer": 'columns=of("u4", 2, 0)',
    "RowDealer.deal": DEALT + 'panel=zeros("f8", 5, 2)',
    "RowDealer.lines": 'panel=zeros("f8", 5, 2), block=0, out=zeros("f8", 2, 4)',
    "halve_columns": "codes=u1(3, 12), first=61",
    "scan_pairs": 'tiles=np.full((2, 2, 64), 5, "u8"), n_columns=70, scores=zeros("f8", 8)',
    "RankTarget": "",
    "RankTarget levels": 'nominal=False, order=of("i4")',
    "RankTarget censoring": 'nominal=False, order=of("i4"), targets=of("i4", *[0, 1, 1] * 4)',
    "Covariates": "",
    "rank_tests": TESTED + "None",
    "rank_tests adjusted": ADJUSTED,
    "level_tests": TESTED + "None",
    "level_tests adjusted": ADJUSTED,
    "risk_set_tests": 'target=made("RankTarget levels"), censoring=made("RankTarget censoring")',
    "adjusted_steps": ADJUSTED + ', out=zeros("u1", 3, 36)',
    "step_tests": ADJUSTED,
    "logs": 'out=zeros("f8", 3)',
    "powers": 'out=zeros("f8", 3)',
    "add_products": 'out=zeros("f8", 2, 4)',
    "top_eigenvectors": 'values=zeros("f8", 2)',
    "scratch_nbytes": "n_threads=1",
    "sorted_scratch_nbytes": "n_rows=9",
}
"""Each call: its function, and what it has that GOOD has not."""
MADE = {
    "HeaderReader": lambda: _native.HeaderReader(b",\0."),
    "TableReader": reader,
    "EntryReader": lambda: _native.EntryReader(2, 3, True, True, False),
    "TextCoder": lambda: _native.TextCoder(1000, counts=False),
    "RowDealer": lambda: _native.RowDealer(of("u4", 2, 0), 3, 2),
}
"""What has the methods."""


@functools.cache
def signatures():
    """The arguments of each function, class and method by name: name, and whether an array."""
    stub = ast.parse(Path(inspect.getfile(_native)).with_name("_native.pyi").read_text())
    found = {}
    for node in stub.body:
        owner = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        for inner in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(inner, ast.FunctionDef):
                found[f"{owner}{inner.name}".removesuffix(".__init__")] = {
                    a.arg: "NDArray" in ast.unparse(a.annotation)
                    for a in inner.args.args
                    if a.arg != "self"
                }
    return found


def call_of(name):
    """Return the right arguments of a call, made anew."""
    values = eval(f"dict({GOOD})") | eval(f"dict({CALLS[name]})")
    names = signatures()[name.partition(" ")[0]]
    return {key: values[key] for key in names}


def made(name, **others):
    """Return what a call makes, or returns."""
    return function_at(name)(**call_of(name) | others)


def function_at(name):
    """Return what a call calls."""
    owner, _, method = name.partition(" ")[0].rpartition(".")
    return getattr(MADE[owner]() if owner else _native, method)


def names_in(text):
    """Return the names of a text: `out`, or `out of logs` where others have one of the name."""
    return {name.strip() for name in text.split(",")}


OUTPUTS = names_in(
    "importance of grow, importance of grow_sorted, shares, losses, base of add_effects,"
    "effects of add_effects, tally, out, bounds of draw_subsets, sums, n_drawn of add_outcome,"
    "n_better of add_outcome, changed, codes of Block, codes of code_columns, n_missing,"
    "n_codes of code_columns, exact, kinds of code_columns, lows, highs, panel of set_panel,"
    "panel of put_rows, panel of deal, log_p, contrasts, symmetric, values of top_eigenvectors,"
    "vectors, items of sort_items, tiles of halve_columns, scores of scan_pairs, pairs"
)
"""Arguments that are written to."""

ANY_LENGTH = names_in(
    "excluded, out of draw_distinct, out of draw_blocks, bounds of draw_subsets, data, "
    "values of look_at, values of Block, channels of Response, panel of set_panel, addresses, "
    "descriptors, items, features of grow, features of grow_sorted, features of judge_subsets, "
    "features of advise_files, features of gather_mapped, features of gather_files, "
    "rows of gather_mapped, rows of gather_files, rows of gather_genotypes, "
    "features of gather_genotypes, slots, ends, panel of add_shares, shares of add_shares, "
    "features of predict_block, values of top_eigenvectors, rows of put_rows, "
    "xlogx of TrainingRows, which of level_tests, columns of adjusted_steps, "
    "columns of RowDealer, rows of deal, panel of deal, basis of Covariates, panel of lines, "
    "out of lines, codes of halve_columns, coefficients"
)
"""Arguments of which a length that differs by one says something else, and nothing wrong."""

ROWS = [-1, N_ROWS]
READ = {"features": [6, 2**32 - 1], "rows": ROWS}
NODES = {"slot": [-3, -2, 0, 2, LARGE]}
SAMPLED = {"features": [4, 2**32 - 1]}
LEVELS = {"rows": [-1, 2**31 - 1], "starts": [-1, 5, 13, LARGE], "targets": [-1, 2]}
LEVELS |= {"scores": [-1, 0, 65536]}
BEYOND = {
    "Response": {"labels": [-1, 2], "channels": [-(2**31)]},
    "TrainingRows": {"order": [*ROWS, 2**31 - 1], "root_stats": [-1, 0, 7, LARGE]},
    "TrainingRows regression": {"root_stats": [-1, LARGE]},
    "grow_sorted": {"predicted": ROWS},
    "judge_subsets": {"places": [-1, N_COLUMNS], "predicted": [N_ROWS], "times": [65535]}
    | {"bounds": [-LARGE, -1, 1, 4, LARGE], "predicted_bounds": [-LARGE, 1, 5, LARGE]},
    "decode_trees": {"starts": [-1, 21, LARGE], "stops": [-1, 0, 21, LARGE]},
    "predict_block": {"rows": ROWS, "features": [0, 1]},
    "add_shares": NODES,
    "add_effects": NODES,
    "tally_classes": {"truth": [-1, 2, LARGE], "n_votes": [-1]},
    "tally_targets": {"n_votes": [-1]},
    "draw_distinct": {"excluded": [9, 2**32 - 1]},
    "draw_blocks": {"excluded": [9, 2**32 - 1]},
    "draw_subsets": {"heavy": [0, 1, 9], "counts": [-1, 0]},
    "add_outcome": SAMPLED,
    "passes": SAMPLED,
    "gather_mapped": READ,
    "gather_files": READ,
    "gather_genotypes": READ,
    "advise_files": {"features": [6, 2**32 - 1]},
    "TableReader": {"slots": [-7, 3, -(2**31), 2**31 - 1]},
    "TextCoder.code": {"ends": [2, 8, 2**64 - 1]},
    "put_rows": {"columns": [3, 2**32 - 1]},
    "RowDealer": {"columns": [2, 3, 2**32 - 1]},
    "RankTarget": LEVELS | {"order": [-1, 2]},
    "RankTarget levels": LEVELS,
    "level_tests": {"which": [-1, N_COLUMNS]},
    "level_tests adjusted": {"which": [-1, N_COLUMNS]},
}
"""What the last item of an array may not be."""

SHORT = made("Response", labels=upto(11) // 6, channels=ones("i4", 1, 11))
OF_SHORT = {"response": SHORT, "order": upto(11), "root_stats": of("i8", [6, 6], [5, 5])}
WRONG_NUMBERS: dict[str, tuple | list] = {
    **dict.fromkeys(["column_nbytes", "max_features", "n_trees", "page_items"], (-1, 0)),
    **dict.fromkeys(["n_classes", "n_candidates", "rare"], (-1, 0, LARGE)),
    **dict.fromkeys(["n_columns", "first_tree", "first", "n_codes"], (-1, LARGE)),
    **dict.fromkeys(["n_root_rows", "n_fitted", "n_predicted"], (-1, LARGE)),
    **dict.fromkeys(["source", "target", "impurity", "n_channels"], (-1, 3)),
    "code_nbytes": [-1, 0, 3, 8],
    "n_rows": [-1, 0, 13, 2**31, LARGE],
    "n_features": [-1, 0, 100, LARGE],
    "chunk_features": [-1, 0, 2**31],
    "min_decrease": [-1],
    "last_tree": [-1, 3, LARGE],
    "shrink": [0.0, 1.5, float("nan")],
    "root_scale": [-1.0, float("nan"), float("inf")],
    "bits": [-1, 63],
    "block_size": [-1, 0, 10, LARGE],
    "bound": [-1, 0, 5, 2**32, LARGE],
    "largest": [-1, 0, 10],
    "unit": [0.0, float("nan")],
    "start": [-1, 13, LARGE],
    "n_targets": [-1, 0, 1, LARGE],
    "only": [-1, 4],
    "most_levels": [-1, 1, LARGE],
    "target_levels": [-1, 1, 256, LARGE],
    "marks": [b"", b",", b",,,,"],
    "kinds": [b"\0", bytes([9, 0, 0]), bytes([2, 0, 0]), bytes(4)],
    "row_kinds": [{b"1": 2}, {b"1": 5}, {b"1": 300}],
    "block": [made("Block without values", n_columns=2)],
    "rows": [made("TrainingRows", **OF_SHORT)],
    "response": [SHORT],
    "covariates": [made("Covariates", basis=np.eye(2))],
    "censoring": [made("RankTarget", rows=upto(13, start=1))],
}
RIGHT_NUMBERS = names_in(
    f"unit 0.0 of tally_targets, first {LARGE} of draw_subsets, n_rows 13 of gather_mapped,"
    "n_rows 13 of gather_genotypes, n_rows 0 of sorted_scratch_nbytes,"
    "n_rows 13 of sorted_scratch_nbytes"
)
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
    for argument, value in call_of(name).items():
        if isinstance(value, np.ndarray):
            cases = list(other_arrays(name, argument, value))
        else:
            is_read = (name, argument) != ("step_tests", "covariates")  # but for their scale
            wrong = WRONG_NUMBERS.get(argument, []) if is_read else []
            cases = [("ValueError", str(item), item) for item in wrong]
            if type(value).__module__ == _native.__name__:
                cases.append(("TypeError", "another object", MADE["TextCoder"]()))
            if type(value) is int:
                cases += [("", str(item), item) for item in (-LARGE, -1, 0, 1, 300, LARGE)]
        for error, what, other in cases:
            call = call_of(name) | {argument: other}
            yield f"{argument} {what}", argument, error, function_at(name), call


def outcome(function, call):
    try:
        function(**call)
    except Exception as error:
        return type(error).__name__, str(error)
    return "", ""


def say_all(name):
    """Say each case before it is made, then what came of it: a crash leaves the name."""
    right = [("as it is", call_of(name)), ("inputs read-only", call_of(name))]
    for key, value in right[1][1].items():
        if isinstance(value, np.ndarray) and not is_in(OUTPUTS, key, name):
            right[1][1][key] = frozen(value)
    for what, call in right:
        print(json.dumps([what, "", "", *outcome(function_at(name), call)]), flush=True)
    for what, argument, error, function, call in other_calls(name):
        print(what, file=sys.stderr, flush=True)
        found = outcome(function, call)
        print(json.dumps([what, argument, error, *found]), flush=True)


SHARED = ("add_effects", "tally_classes", "tally_targets")


def shared(n_threads):
    """Outputs of functions that share their work among threads."""
    for name in SHARED:
        call = call_of(name)
        function_at(name)(**call | {"n_threads": n_threads})
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
    is_array = isinstance(call_of(name)[argument], np.ndarray)
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
    called = {name.partition(" ")[0] for name in CALLS}
    with_arrays = {name for name, arguments in signatures().items() if any(arguments.values())}
    assert with_arrays <= called
    for name in called:
        arrays = {key for key, is_array in signatures()[name].items() if is_array}
        assert arrays <= {k for k, v in call_of(name).items() if isinstance(v, np.ndarray)}, name


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
