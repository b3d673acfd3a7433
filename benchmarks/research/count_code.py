"""Count the program: how large it is.

    python benchmarks/research/count_code.py [--root FOLDER]
    python benchmarks/research/count_code.py --package FOLDER     another package, beside this one

Each row says how it is counted. Files are those of a checkout; nothing is run.

A line of code holds a token that is no comment and no docstring; continuation lines count. Branch
coverage is not counted here: ``pip install pytest-cov``, then ``--cov=srs_ooc --cov-branch`` with
the tests.
"""

import argparse
import ast
import io
import json
import re
import statistics
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SHORT_MODULE, LONG_FUNCTION = 80, 60
_EMPTY = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
_MEMORY = re.compile(r".*nbytes.*|.*_NBYTES")
_NOT_FORMATTED = re.compile(r"#.*\bfmt: (?:skip|off)\b")
_NOT_TYPED = re.compile(r"#.*\btype: ignore\b")
_SIZES = re.compile(r".*nbytes.*|.*_bytes")
_ASKS = re.compile(r"is_tree|splits_rows|judges_candidates|scores_features|is_decoded")
_OPTION = re.compile(r"^  (?:-\w, )?(--[\w-]+)", re.MULTILINE)
_MAKERS = {"namedtuple", "NamedTuple", "TypedDict", "make_dataclass"}
_STAND_INS = {"dict", "tuple", "Mapping", "OrderedDict"}
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Row(NamedTuple):
    """One figure: its value, what it is of, and how it is counted."""

    value: float
    name: str
    definition: str


class Module(NamedTuple):
    """One file of Python: where it is, its text and its syntax."""

    path: Path
    source: str
    tree: ast.Module


def modules_of(folder: Path) -> list[Module]:
    """Read the modules of a folder, inits too, in the order of their paths."""
    read = ((path, path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.py")))
    return [Module(path, source, ast.parse(source)) for path, source in read]


def lines_of_texts(tree: ast.Module) -> Iterator[int]:
    """Yield the lines of docstrings, and of texts that stand below what they document."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(ast.Constant(str())):
                yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


def code_lines(source: str) -> int:
    """Return how many lines of a module hold code."""
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _EMPTY:
            found |= set(range(token.start[0], token.end[0] + 1))
    return len(found - set(lines_of_texts(ast.parse(source))))


def raw_lines(paths: Iterable[Path]) -> int:
    """Return how many lines some files have, whatever is in them."""
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def nodes_of(modules: list[Module]) -> Iterator[ast.AST]:
    """Yield every node of the syntax of some modules."""
    for module in modules:
        yield from ast.walk(module.tree)


def last_name(node: ast.AST) -> str:
    """Return the last word of what is named, called or subscripted: ``b`` of ``a.b(...)``."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=inner) | ast.Subscript(value=inner):
            return last_name(inner)
    return ""


def is_dataclass(node: ast.AST) -> bool:
    """Whether a node is the statement of a dataclass."""
    return isinstance(node, ast.ClassDef) and "dataclass" in map(last_name, node.decorator_list)


def stand_ins(module: Module) -> int:
    """Return how many classes are made by a call, or are a name for a dict or tuple of a kind."""
    found = sum(isinstance(n, ast.Call) and last_name(n) in _MAKERS for n in ast.walk(module.tree))
    for node in module.tree.body:
        value = getattr(node, "value", None)
        is_alias = isinstance(value, ast.Subscript) and last_name(value) in _STAND_INS
        found += is_alias and not (isinstance(node, ast.Expr))
    return found


def defined_names(module: Module) -> set[str]:
    """Return the names of a module's functions and variables, and of its classes' fields."""
    functions = {n.name for n in ast.walk(module.tree) if isinstance(n, _Function)}
    classes = (n.body for n in ast.walk(module.tree) if isinstance(n, ast.ClassDef))
    variables: set[str] = set()
    for body in (module.tree.body, *classes):
        for node in body:
            match node:
                case ast.Assign(targets=targets):
                    inner = (name for target in targets for name in ast.walk(target))
                    variables |= {last_name(name) for name in inner}
                case ast.AnnAssign(target=ast.Name(id=name)):
                    variables.add(name)
    return functions | variables


def public_things(
    node: ast.Module | ast.ClassDef,
) -> Iterator[ast.Module | ast.ClassDef | _Function]:
    """Yield a module or class, and the public classes, functions and methods in it."""
    yield node
    for inner in node.body:
        if isinstance(inner, ast.ClassDef | _Function) and not inner.name.startswith("_"):
            if isinstance(inner, ast.ClassDef):
                yield from public_things(inner)
            else:
                yield inner


def imports_of(modules: list[Module], folder: Path) -> dict[Path, set[Path]]:
    """Return which modules of a package each imports: at the top, in functions, for types alone."""
    by_name = {}
    for module in modules:
        parts = module.path.relative_to(folder.parent).with_suffix("").parts
        by_name[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = module.path
    found: dict[Path, set[Path]] = {}
    for name, path in by_name.items():
        package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
        named: set[str] = set()
        for node in ast.walk(next(m.tree for m in modules if m.path == path)):
            match node:
                case ast.Import(names=names):
                    named |= {alias.name for alias in names}
                case ast.ImportFrom(module=stem, names=names, level=level):
                    base = package[: len(package) - level + 1] if level else []
                    whole = ".".join([*base, *([stem] if stem else [])])
                    inner = {f"{whole}.{alias.name}" for alias in names}
                    named |= {one if one in by_name else whole for one in inner}
        found[path] = {by_name[one] for one in named if one in by_name} - {path}
    return found


def circles_of(graph: dict[Path, set[Path]]) -> list[set[Path]]:
    """Return the groups of modules that import each other, directly or through others."""
    reached = {module: set(others) for module, others in graph.items()}
    for middle in graph:
        for module in graph:
            if middle in reached[module]:
                reached[module] |= reached[middle]
    groups = {
        frozenset(other for other in reached[module] if module in reached[other])
        for module in graph
        if module in reached[module]
    }
    return sorted(map(set, groups), key=lambda group: sorted(map(str, group)))


def package_rows(folder: Path) -> list[Row]:
    """Count one package of Python."""
    modules = modules_of(folder)
    nodes = list(nodes_of(modules))
    lines = {module.path: code_lines(module.source) for module in modules}
    named = [module.path for module in modules if module.path.name != "__init__.py"]
    uses = Counter(path.name for path in named)
    public = [thing for module in modules for thing in public_things(module.tree)]
    bare = [thing for thing in public if ast.get_docstring(thing) is None]
    functions = [node for node in nodes if isinstance(node, _Function)]
    long = [f for f in functions if (f.end_lineno or 0) - f.lineno >= LONG_FUNCTION]
    middle = statistics.median(lines[path] for path in named or lines)
    text = "\n".join(module.source for module in modules)
    methods = sum(n for path, n in lines.items() if folder / "methods" in path.parents)
    asking = (m.source for m in modules if folder / "learners" not in m.path.parents)
    return [
        Row(len(modules), "modules", "files *.py, __init__ too"),
        Row(sum(lines.values()), "code lines", "that hold more than comment, docstring or blank"),
        Row(sum(lines.values()) - methods, "code lines of the core", "without methods/"),
        Row(methods, "code lines of methods", "below methods/"),
        Row(long_line(text), "characters, 90th percentile", "of lines that are not blank"),
        Row(middle, "code lines, median module", "without __init__"),
        Row(max(lines.values()), "code lines, largest module", ""),
        Row(
            sum(lines[path] < SHORT_MODULE for path in named),
            f"modules under {SHORT_MODULE} code lines",
            "without __init__",
        ),
        Row(
            sum(count > 1 for count in uses.values()),
            "module names used more than once",
            "without __init__, which would be one more",
        ),
        Row(
            sum(isinstance(node, ast.ClassDef) for node in nodes),
            "classes",
            "class statements; NamedTuple, TypedDict, Protocol and nested ones too",
        ),
        Row(
            sum(map(stand_ins, modules)),
            "stand-ins for classes",
            "names of a module for a kind of dict or tuple; namedtuple(...) and the like called. "
            "What is more than at the beginning counts as classes",
        ),
        Row(sum(map(is_dataclass, nodes)), "dataclasses", "of the classes"),
        Row(
            sum(any(map(_MEMORY.fullmatch, defined_names(m))) for m in modules),
            "modules that do memory arithmetic",
            "define a function, a variable of the module or a field named *nbytes* or *_NBYTES",
        ),
        Row(
            sum(isinstance(node, ast.stmt) for node in nodes),
            "AST statements",
            "ast.stmt at any depth; docstrings are statements",
        ),
        Row(
            len(circles_of(imports_of(modules, folder))),
            "circles of imports",
            "groups of modules that import each other; in functions and under TYPE_CHECKING too",
        ),
        Row(
            sum(bool(_ASKS.search(line)) for source in asking for line in source.splitlines()),
            "lines that ask what a learner is",
            f"outside of learners/, {_ASKS.pattern}",
        ),
        Row(
            sum(bool(_SIZES.fullmatch(f.name)) for f in functions),
            "functions that count bytes",
            f"named {_SIZES.pattern}",
        ),
        Row(len(_NOT_FORMATTED.findall(text)), "fmt: skip|off", "comments"),
        Row(
            sum("Any" in (getattr(n, "id", 0), getattr(n, "attr", 0)) for n in nodes),
            "Any",
            "uses of the name, imports not counted",
        ),
        Row(len(_NOT_TYPED.findall(text)), "type: ignore", "comments"),
        Row(
            len(long),
            f"functions over {LONG_FUNCTION} lines",
            "all lines from def to the end, docstring too",
        ),
        Row(
            len(public),
            "public things",
            "modules; classes, functions and methods without a leading _, in nothing that has one",
        ),
        Row(len(bare), "public things without docstring", "of these"),
    ]


def long_line(text: str) -> int:
    """Return the 90th percentile of the characters of a line."""
    lengths = sorted(len(line) for line in text.splitlines() if line.strip())
    return lengths[len(lengths) * 9 // 10]


def options_by_command(root: Path) -> dict[str, list[str]]:
    """Return the long names of the options of each command, from the help that the tests pin."""
    place = root / "tests" / "pins" / "pinned" / "surface.json"
    helps = {}
    for title, text in json.loads(place.read_text(encoding="utf-8")).items():
        kind, found, command = title.partition("help of ")
        if found and (kind or command not in helps):  # "all help" says more than "help"
            helps[command] = "\n".join(text) if isinstance(text, list) else text
    names = {command: _OPTION.findall(text) for command, text in helps.items()}
    return {command: [n for n in found if n != "--help"] for command, found in names.items()}


def has_refusal(node: ast.AST) -> bool:
    """Whether a node is a test that meets refused input."""
    if not (isinstance(node, _Function) and node.name.startswith("test_")):
        return False
    return any(last_name(n) in ("raises", "error_of", "refused") for n in ast.walk(node))


def words(paths: Iterable[Path]) -> int:
    """Return how many words some files have, as ``wc -w`` counts them."""
    return sum(len(path.read_text(encoding="utf-8").split()) for path in paths)


def checkout_rows(root: Path) -> list[Row]:
    """Count what stands in a checkout beside the package's Python."""
    native = root / "srs_ooc" / "native"
    cpp = sorted({*native.rglob("*.cpp"), *native.rglob("*.hpp")})
    stubs = sorted({*native.rglob("*.py"), *native.rglob("*.pyi")})
    tests = sorted((root / "tests").rglob("*.py"))
    pages = sorted((root / "docs").rglob("*.md"))
    user = [page for page in pages if root / "docs" / "research" not in page.parents]
    scripts = [
        path
        for path in (root / "benchmarks").rglob("*")
        if path.is_file() and not {"results", "__pycache__"} & set(path.parts)
    ]
    test_modules = modules_of(root / "tests")
    refusals = sum(map(has_refusal, nodes_of(test_modules)))
    options = options_by_command(root)
    return [
        Row(
            sum(map(len, options.values())),
            "options of commands",
            f"lines of the pinned help of every command, {_OPTION.pattern}, without --help",
        ),
        Row(len(options["run"]), "options of run", "of these"),
        Row(len(set(chain(*options.values()))), "spellings of options", "names that differ"),
        Row(len(cpp), "C++ files", "*.cpp and *.hpp of srs_ooc/native"),
        Row(raw_lines(cpp), "C++ raw lines", "of these"),
        Row(raw_lines([*cpp, *stubs]), "C++ raw lines with stub", "and its .pyi and __init__.py"),
        Row(len(tests), "test files", "*.py below tests"),
        Row(raw_lines(tests), "test raw lines", "of these"),
        Row(
            sum(code_lines(module.source) for module in test_modules),
            "test code lines",
            "that hold more than comment, docstring or blank",
        ),
        Row(
            refusals,
            "tests of refused input",
            "test functions that use raises, error_of or refused",
        ),
        Row(words([root / "README.md", *user]), "words for users", "README and docs but research"),
        Row(words(user), "words of docs", "wc -w of docs/**/*.md without docs/research"),
        Row(words(pages), "words of docs with research", "the same with it"),
        Row(len(scripts), "benchmark files", "below benchmarks, without results"),
    ]


def show(rows: Iterable[Row]) -> None:
    """Print a row a line, as it is known."""
    for value, name, definition in rows:
        print(f"{value:>10,}  {name}{': ' if definition else ''}{definition}", flush=True)


def main() -> None:
    """Count a checkout, or another package."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--root", type=Path, default=ROOT, metavar="FOLDER")
    parser.add_argument("--package", type=Path, metavar="FOLDER")
    given = parser.parse_args()
    if given.package is not None:
        show(package_rows(given.package))
        return
    show(package_rows(given.root / "srs_ooc"))
    show(checkout_rows(given.root))


if __name__ == "__main__":
    main()
