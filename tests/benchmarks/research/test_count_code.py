"""Each count is of what its definition says, on a checkout small enough to count by hand."""

import json
import subprocess
import sys
from pathlib import Path

import count_code
import pytest
from count_code import (
    checkout_rows,
    circles_of,
    code_lines,
    has_refusal,
    imports_of,
    modules_of,
    package_rows,
)

pytestmark = pytest.mark.research

MODULE = '''"""A module."""

# A comment is no code.
import os
from typing import Any, NamedTuple

CAP_NBYTES: int = 3  # type: ignore
Pair = tuple[int, int]
made = namedtuple("made", "a b")


@dataclass(frozen=True)
class Kept:
    """Kept."""

    total_nbytes: int
    rest: Any

    def bare(
        self,
    ) -> int:
        return (1 +
                2)  # fmt: skip


class _Private(NamedTuple):
    def also_bare(self): ...
'''
TESTS = "def test_a():\n    with raises(E):\n        f()\ndef test_b():\n    f()\n"
HELP = {
    "help of run": ["  --a N   A.", "  --help  Say this."],
    "all help of run": ["  --a N   A.", "  -b, --bee  B. Not", "          --c."],
    "help of plan": ["  --a N   A."],
    "module srs_ooc": {},
}
LONG = '"""Long."""\n\n\ndef f():\n' + "    pass\n" * 60


@pytest.fixture
def root(tmp_path):
    files = {
        "srs_ooc/__init__.py": "",
        "srs_ooc/a/__init__.py": "",
        "srs_ooc/a/one.py": MODULE,
        "srs_ooc/a/two.py": LONG,
        "srs_ooc/b/two.py": "def resident_nbytes(): return 1\n",
        "srs_ooc/methods/m.py": "x.is_tree\n",
        "srs_ooc/native/k.cpp": "int a;\nint b;\n",
        "srs_ooc/native/deep/k.hpp": "#pragma once\n",
        "srs_ooc/native/_native.pyi": "a: int\n",
        "tests/test_a.py": TESTS,
        "tests/pins/pinned/surface.json": json.dumps(HELP),
        "README.md": "five six",
        "docs/a.md": "one two\nthree\n",
        "docs/research/b.md": "four",
        "benchmarks/a.py": "",
        "benchmarks/parts/b.txt": "",
        "benchmarks/results/c.json": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_a_package_is_counted_as_defined(root):
    found = {row.name: row.value for row in package_rows(root / "srs_ooc")}
    assert found == {
        "modules": 6,
        "code lines": 16 + 61 + 1 + 1,
        "code lines of the core": 16 + 61 + 1,
        "code lines of methods": 1,
        "characters, 90th percentile": len("@dataclass(frozen=True)"),
        "code lines, median module": (16 + 1) / 2,
        "code lines, largest module": 61,
        "modules under 80 code lines": 4,
        "module names used more than once": 1,
        "classes": 2,
        "stand-ins for classes": 2,
        "dataclasses": 1,
        "modules that do memory arithmetic": 2,
        "AST statements": (1 + 2 + 3 + 1 + 3 + 2 + 1 + 1 + 1) + 62 + 2 + 1,
        "circles of imports": 0,
        "lines that ask what a learner is": 1,
        "functions that count bytes": 1,
        "fmt: skip|off": 1,
        "Any": 1,
        "type: ignore": 1,
        "functions over 60 lines": 1,
        "public things": 6 + 2 + 1 + 1,
        "public things without docstring": 2 + 1 + 1 + 1 + 1 + 1,
    }


def test_a_checkout_is_counted_as_defined(root):
    found = {row.name: row.value for row in checkout_rows(root)}
    assert found == {
        "options of commands": 3,
        "options of run": 2,
        "spellings of options": 2,
        "C++ files": 2,
        "C++ raw lines": 3,
        "C++ raw lines with stub": 4,
        "test files": 1,
        "test raw lines": 5,
        "test code lines": 5,
        "tests of refused input": 1,
        "words for users": 5,
        "words of docs": 3,
        "words of docs with research": 4,
        "benchmark files": 2,
    }


def test_lines_of_code_hold_more_than_docstrings_comments_and_blanks():
    text = '"""Say."""\n\n# Why.\nx = """a\nb"""  # here\n"""Of x."""\nf(\n    1,\n)\n'
    assert code_lines(text) == 5


def test_every_row_says_how_it_is_counted(root):
    rows = [*package_rows(root / "srs_ooc"), *checkout_rows(root)]
    assert [row.name for row in rows if not row.definition] == ["code lines, largest module"]


def test_the_program_prints_a_row_a_line(root):
    script = Path(count_code.__file__)
    command = [sys.executable, str(script), "--root", str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[0].split()[:2] == ["6", "modules:"]
    assert len(lines) == len(package_rows(root / "srs_ooc")) + len(checkout_rows(root))


def test_a_refusal_is_a_test_that_raises(root):
    (module,) = modules_of(root / "tests")
    assert [has_refusal(node) for node in module.tree.body] == [True, False]


@pytest.mark.parametrize(
    ("one", "two", "found"),
    [
        ("from srs_ooc.b import two", "import os", 0),
        ("from srs_ooc.b import two", "from srs_ooc.a.one import f", 1),
        ("from srs_ooc.b.two import f", "def f():\n    from srs_ooc.a import one", 1),
        ("from ..b import two", "if TYPE_CHECKING:\n    import srs_ooc.a.one", 1),
    ],
)
def test_circles_are_groups_of_modules(tmp_path, one, two, found):
    package = tmp_path / "srs_ooc"
    for name, text in {"a/one": one, "b/two": two, "c": "from srs_ooc.a import one"}.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / f"{name}.py").write_text(text)
    graph = imports_of(modules_of(package), package)
    both = {package / "a/one.py", package / "b/two.py"}
    assert circles_of(graph) == [both][:found]
