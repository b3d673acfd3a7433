"""Count the modules of a Python package and their lines of code.

    python benchmarks/research/count_code.py srs_ooc [ANOTHER_PACKAGE ...]
        [--leave-out benchmarks/research/new_rooms.txt]

A line of code holds a token that is no comment and no docstring; continuation lines count. A file
of what to leave out has a path or pattern a line, below the package.
"""

import argparse
import ast
import io
import tokenize
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

_EMPTY = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def lines_of_texts(source: str) -> Iterator[int]:
    """Yield the lines of docstrings, and of texts that stand below what they document."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(ast.Constant(str())):
                yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


def code_lines(source: str) -> int:
    """Return how many lines of a module hold code."""
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _EMPTY:
            found |= set(range(token.start[0], token.end[0] + 1))
    return len(found - set(lines_of_texts(source)))


def sources_of(folder: Path, left_out: list[str]) -> dict[Path, str]:
    """Return the texts of a package's modules but those of some patterns."""
    paths = folder.rglob("*.py")
    kept = (p for p in paths if not any(fnmatch(str(p.relative_to(folder)), o) for o in left_out))
    return {path: path.read_text(encoding="utf-8") for path in kept}


def main() -> None:
    """Print one row a package."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("packages", nargs="+", type=Path)
    parser.add_argument("--leave-out", type=Path, metavar="FILE")
    given = parser.parse_args()
    left_out = given.leave_out.read_text().split() if given.leave_out else []
    print("package                    modules  lines of code  longest (all lines)")
    for folder in given.packages:
        sources = sources_of(folder, left_out)
        longest = max(sources, key=lambda path: len(sources[path].splitlines()))
        n_lines = sum(map(code_lines, sources.values()))
        name = longest.relative_to(folder)
        longest_lines = len(sources[longest].splitlines())
        print(f"{folder!s:<26} {len(sources):>7}  {n_lines:>13,}  {name} ({longest_lines})")


if __name__ == "__main__":
    main()
