"""Count the modules of a Python package and their lines of code.

    python benchmarks/research/count_code.py srs_ooc [ANOTHER_PACKAGE ...]

A line of code holds a token that is no comment and no docstring; continuation lines count.
"""

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
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


def main() -> None:
    """Print one row a package."""
    print("package                    modules  lines of code  longest (all lines)")
    for folder in map(Path, sys.argv[1:]):
        sources = {path: path.read_text(encoding="utf-8") for path in folder.rglob("*.py")}
        longest = max(sources, key=lambda path: len(sources[path].splitlines()))
        n_lines = sum(map(code_lines, sources.values()))
        name = longest.relative_to(folder)
        longest_lines = len(sources[longest].splitlines())
        print(f"{folder!s:<26} {len(sources):>7}  {n_lines:>13,}  {name} ({longest_lines})")


if __name__ == "__main__":
    main()
